import re
from datetime import timedelta

import httpx
import pytest
from tests.shopfront import ships
from tests.web.account.conftest import Join, SignUp, Visitor, fields_of, leads_to, text_of
from tests.web.account.selling import Seller, seller_of

from paydesk.core.clock import utc_now
from paydesk.domain.accounts.roles import Role
from paydesk.domain.payments.desk import Desk


@pytest.fixture
async def seller(desk: Desk, owner: Visitor) -> Seller:
    """A shop that ships its goods."""
    seller = seller_of(desk, owner)
    await ships(seller.database, seller.shop)
    return seller


def url(visitor: Visitor, page: object = "") -> str:
    return f"{visitor.merchant_path}/deliveries{page}"


async def confirm(visitor: Visitor, payment_id: int, **fields: str) -> httpx.Response:
    shipped = {"status": "order_shipped", "type": "physical", "carrier_type": "DHL", "carrier_tracking_id": "0034"}
    return await visitor.send(url(visitor, f"/{payment_id}"), **{**shipped, **fields})


async def test_orders_wait_with_the_most_urgent_first(owner: Visitor, seller: Seller) -> None:
    now = utc_now()
    for order, days in {"soon": 5, "late": 1, "over": 8, "next": 6.5}.items():
        await seller.sell(order, now=now - timedelta(days=days))
    shown = await owner.see(url(owner))
    assert re.findall(r"<bdi>(soon|late|over|next)</bdi>", shown.text) == ["over", "next", "soon", "late"]
    assert "over: will be voided" in text_of(shown)
    assert "in 2 days" in text_of(shown)


async def test_a_long_list_is_read_page_by_page(
    owner: Visitor, seller: Seller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("paydesk.web.account.deliveries.ROWS", 2)
    for number in range(5):
        await seller.sell(f"n-{number}")
    seen: list[str] = []
    page = url(owner)
    while page:
        shown = (await owner.see(page)).text
        seen += re.findall(r"<bdi>(n-\d)</bdi>", shown)
        further = re.search(r'href="([^"]+)" rel="next"', shown)
        page = further[1] if further else ""
    assert seen == [f"n-{number}" for number in range(5)]


async def test_all_that_is_wrong_is_said_at_once_and_in_words(owner: Visitor, seller: Seller) -> None:
    answer = await confirm(
        owner,
        await seller.sell("A-1"),
        carrier_type="",
        carrier_tracking_id="",
        carrier_tracking_url="parcels",
        details="a\x01b",
    )
    assert answer.status_code == 400
    assert re.findall(r'id="e-(\w+)" role="alert"', answer.text) == [
        "carrier_type", "carrier_tracking_id", "carrier_tracking_url", "details"
    ]  # fmt: skip
    said = text_of(answer)
    assert "Tracking id is missing: Shipped needs the parcel's number" in said
    assert "Carrier is missing: Shipped needs the carrier's name" in said
    assert "order_shipped" not in said.replace('value="order_shipped"', "")
    assert "carrier_" not in said


async def test_a_confirmed_shipment_takes_the_money(owner: Visitor, seller: Seller) -> None:
    payment_id = await seller.sell("A-1")
    assert leads_to(await confirm(owner, payment_id)) == f"{owner.merchant_path}/payments/{payment_id}"
    assert await seller.state(payment_id) == "captured"
    shown = text_of(await owner.see(f"{owner.merchant_path}/payments/{payment_id}"))
    assert "the money is yours" in shown
    assert "Delivery: Shipped DHL · 0034 Follow the parcel" in shown
    assert "because the shipment was confirmed" in shown
    assert "A-1" in text_of(await owner.see(url(owner, "/confirmed")))
    assert "Nothing waits to be shipped." in text_of(await owner.see(url(owner)))
    assert (await confirm(owner, payment_id)).status_code == 303
    assert await seller.audited("delivery_confirmed") == [f"payment {payment_id}"]


@pytest.mark.parametrize(
    ("field", "typed"),
    [
        ("carrier_type", ""),
        ("carrier_type", "x" * 101),
        ("carrier_tracking_id", ""),
        ("carrier_tracking_id", "a\x01b"),
        ("carrier_tracking_url", "javascript:alert(1)"),
        ("status", "eaten"),
        ("type", "x"),
        ("details", "x" * 4500),
    ],
)
async def test_what_is_wrong_is_named_at_its_field_and_takes_nothing(
    owner: Visitor, seller: Seller, field: str, typed: str
) -> None:
    payment_id = await seller.sell()
    answer = await confirm(owner, payment_id, **{field: typed})
    assert answer.status_code == 400
    assert f'id="e-{field}"' in answer.text
    assert "carrier_t" not in text_of(answer)
    assert await seller.state(payment_id) == "authorized"


async def test_an_unknown_carrier_needs_a_link_of_its_own(owner: Visitor, seller: Seller) -> None:
    payment_id = await seller.sell()
    assert (await confirm(owner, payment_id, carrier_type="My cousin's van")).status_code == 400
    link = "https://van.example/0034"
    answer = await confirm(owner, payment_id, carrier_type="My cousin's van", carrier_tracking_url=link)
    assert answer.status_code == 303
    assert link in (await owner.see(f"{owner.merchant_path}/payments/{payment_id}")).text


async def test_money_that_is_only_held_is_let_go_whole(owner: Visitor, seller: Seller) -> None:
    payment_id = await seller.sell()
    page = f"{owner.merchant_path}/payments/{payment_id}"
    form = fields_of((await owner.see(page)).text, f"{page}/refund")
    assert (await owner.web.post(f"{page}/refund", data={**form, "amount": "4.00"})).status_code == 400
    asked = await owner.web.post(f"{page}/refund", data={**form, "how": "all"})
    assert "Release 10.00 USD to Visa •••• 4242?" in text_of(asked).replace("\u00a0", " ")
    form = fields_of(asked.text, f"{page}/refund")
    assert leads_to(await owner.web.post(f"{page}/refund", data=form)) == page
    assert await seller.state(payment_id) == "voided"
    assert "Voided: 10.00 USD released" in text_of(await owner.see(page)).replace("\u00a0", " ")
    assert (await confirm(owner, payment_id)).status_code == 409


async def test_an_order_that_comes_too_late_is_refused(owner: Visitor, seller: Seller) -> None:
    payment_id = await seller.sell(now=utc_now() - timedelta(days=8))
    answer = await confirm(owner, payment_id)
    assert answer.status_code == 409
    assert "don't ship it" in text_of(answer)


async def test_who_may_not_confirm_is_refused(owner: Visitor, seller: Seller, join: Join) -> None:
    payment_id = await seller.sell()
    viewer = await join(owner, Role.viewer)
    shown = await viewer.see(url(owner))
    assert shown.status_code == 200
    assert url(owner, f"/{payment_id}") not in shown.text
    assert (await viewer.see(url(owner, f"/{payment_id}"))).status_code == 403
    csrf = fields_of(shown.text, "/account/logout")
    assert (await viewer.web.post(url(owner, f"/{payment_id}"), data=csrf)).status_code == 403


async def test_another_merchants_order_is_not_found(owner: Visitor, seller: Seller, sign_up: SignUp) -> None:
    payment_id = await seller.sell()
    other = await sign_up("Other Shop")
    assert (await other.see(url(other, f"/{payment_id}"))).status_code == 404
    csrf = fields_of((await other.see(url(other))).text, "/account/logout")
    assert (await other.web.post(url(other, f"/{payment_id}"), data=csrf)).status_code == 404


@pytest.mark.parametrize(
    "query", ["?after=x", "?after=9-9999999999999999999", "/confirmed?before=0", "/confirmed?before=x"]
)
async def test_a_hostile_query_never_fails(owner: Visitor, query: str) -> None:
    assert (await owner.see(url(owner, query))).status_code == 200
