"""What people of a merchant are told while payments are held, and what they may do all the same."""

from __future__ import annotations

from decimal import Decimal

import pytest
from tests.shopfront import ships
from tests.web.account.conftest import PASSWORD, OpenVisitor, Visitor, fields_of, leads_to, text_of
from tests.web.account.selling import Seller, seller_of
from tests.web.account.test_getting_in import log_in
from tests.web.conftest import Hold

from paydesk.core.periods import Period
from paydesk.domain.payments.desk import Desk
from paydesk.domain.subscriptions.subscription_terms import Terms

MONTHLY = Terms("Tea", "tea", "USD", Decimal("10.00"), Period(1, "month"), None, 0)


@pytest.fixture(autouse=True)
def _held_later(hold: Hold) -> None:
    """It is there before a service is."""


@pytest.fixture
def seller(desk: Desk, owner: Visitor) -> Seller:
    return seller_of(desk, owner)


async def movements(seller: Seller) -> int:
    return int(
        await seller.database.fetchval("select count(*) from movement where merchant_id = $1", seller.shop.merchant_id)
    )


@pytest.mark.parametrize(
    ("shipped", "before", "after"), [(False, "captured", "refunded"), (True, "authorized", "voided")]
)
async def test_the_form_that_could_not_give_back_does_so_later_and_once(
    owner: Visitor, seller: Seller, hold: Hold, shipped: bool, before: str, after: str
) -> None:
    await ships(seller.database, seller.shop, shipped=shipped)
    payment_id = await seller.sell()
    page = f"{owner.merchant_path}/payments/{payment_id}"
    form = {**fields_of((await owner.see(page)).text, f"{page}/refund"), "amount": "10.00", "sure": "1"}
    await hold.begin()
    hold.is_told(await owner.web.post(f"{page}/refund", data=form), "Payments are held: the database was restored")
    assert (await seller.state(payment_id), await movements(seller)) == (before, 0)
    assert await seller.audited("payment_refunded") == []
    assert (await owner.see(page)).status_code == 200
    hold.lift()
    for _ in range(2):
        assert leads_to(await owner.web.post(f"{page}/refund", data=form)) == page
    assert (await seller.state(payment_id), await movements(seller)) == (after, 1)


async def test_a_shipment_keeps_what_was_typed_until_it_can_take_its_money(
    owner: Visitor, seller: Seller, hold: Hold
) -> None:
    await ships(seller.database, seller.shop)
    payment_id = await seller.sell()
    page = f"{owner.merchant_path}/deliveries/{payment_id}"
    said = {"status": "order_shipped", "type": "physical", "carrier_type": "DHL", "carrier_tracking_id": "0034-77"}
    await hold.begin()
    answer = await owner.send(page, **said)
    hold.is_told(answer, "Payments are held: the database was restored")
    assert "0034-77" in answer.text
    assert (await seller.state(payment_id), await movements(seller)) == ("authorized", 0)
    assert await seller.audited("delivery_confirmed") == []
    hold.lift()
    assert leads_to(await owner.send(page, **said)) == f"{owner.merchant_path}/payments/{payment_id}"
    assert (await seller.state(payment_id), await movements(seller)) == ("captured", 1)


async def test_the_test_clock_stays_where_it_is(owner: Visitor, seller: Seller, hold: Hold) -> None:
    await seller.sell(terms=MONTHLY)
    page = f"{owner.merchant_path}/developers/clock"
    await hold.begin()
    hold.is_told(await owner.send(page, period="31d"), "Payments are held: the database was restored")
    assert "ahead of real time" not in text_of(await owner.see(page))
    assert await seller.audited("test_clock_moved") == []
    hold.lift()
    assert "Renewed: 1" in text_of(await owner.send(page, period="31d"))


async def test_a_subscription_is_cancelled_all_the_same(owner: Visitor, seller: Seller, hold: Hold) -> None:
    await seller.sell(terms=MONTHLY)
    found = await seller.database.fetchval(
        "select id from subscription where merchant_id = $1", seller.shop.merchant_id
    )
    await hold.begin()
    await owner.send(f"{owner.merchant_path}/subscriptions/{found}/cancel")
    assert await seller.audited("subscription_cancelled") == [f"subscription {found}"]
    hold.bank_heard_nothing()


async def test_who_signs_up_logs_in_and_reads_notices_nothing(
    owner: Visitor, hold: Hold, stranger: OpenVisitor
) -> None:
    visitor, newcomer = await stranger(), await stranger()
    await hold.begin()
    await log_in(visitor, owner.email)
    signed_up = await newcomer.send(
        "/account/signup", shop_name="New Shop", name="Grace", email=f"new-{owner.email}", password=PASSWORD
    )
    assert leads_to(signed_up).endswith("/developers/keys/first")
    for path in (
        "/overview",
        "/payments",
        "/subscriptions",
        "/deliveries",
        "/pingbacks",
        "/balance",
        "/developers/clock",
    ):
        assert (await visitor.see(owner.merchant_path + path)).status_code == 200, path
