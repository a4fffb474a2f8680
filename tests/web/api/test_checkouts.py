"""`POST /api/v1/checkouts`: a checkout without a signed form, as a merchant's server meets it."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Callable
from datetime import timedelta
from io import BytesIO
from typing import Any

import httpx
import pytest
from PIL import Image
from tests import breaking
from tests.conftest import CountRows, OpenWeb
from tests.domain.coupons.test_coupons import coupon
from tests.servers import answering
from tests.shopfront import press_pay
from tests.till import Till

from paydesk.adapters.acquirers.simulator.purchase_state import Standing
from paydesk.core.clock import utc_now
from paydesk.core.pictures import read_picture
from paydesk.database.pool import Database
from paydesk.domain.merchants.merchant import Merchant, change_merchant
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.line_items import MOST_ITEMS, MOST_PICTURES
from paydesk.domain.privacy.belongings import Subject
from paydesk.domain.privacy.erasing import erase
from paydesk.domain.test_clock.resetting import reset_test_side
from paydesk_client import Gateway

PATH = "/api/v1/checkouts"
MUG = {"name": "Mug <b>", "unit_price": "4.00", "quantity": 2}
TEA = {"name": "Tea", "unit_price": "2.00"}


@pytest.fixture
def body() -> dict[str, Any]:
    return {"merchant_order_id": "A-7", "amount": "10.00", "currency": "USD", "description": "Golden Ticket"}


@pytest.fixture
def headers(gateway: Gateway) -> dict[str, str]:
    return {"X-ApiKey": gateway.private_key, "Idempotency-Key": "checkout-1"}


def picture(width: int = 300) -> bytes:
    drawn = BytesIO()
    Image.new("RGB", (width, 200), (200, 30, 30)).save(drawn, "PNG")
    return drawn.getvalue()


async def page_of(web: httpx.AsyncClient, made: httpx.Response) -> str:
    assert made.status_code == 200, made.text
    return str(made.json()["data"]["url"]).removeprefix("http://pay.test")


async def test_a_checkout_is_paid_on_its_page_as_one_of_a_form_is(
    web: httpx.AsyncClient, body: dict[str, Any], headers: dict[str, str], customers: Till, gateway: Gateway
) -> None:
    asked = {**body, "success_url": "https://shop.example/thanks", "email": "ada@example.com"}
    made = await web.post(PATH, json=asked, headers=headers)
    data = made.json()["data"]
    assert (data["status"], data["amount"], data["currency"]) == ("open", 10, "USD")
    assert (data["merchant_order_id"], data["payment_order_id"], data["line_items"]) == ("A-7", None, [])
    assert data["expires_at"] - data["created_at"] == timedelta(hours=24).total_seconds()
    page = await page_of(web, made)
    shown = (await web.get(page)).text
    assert "Golden Ticket" in shown
    assert "ada@example.com" in shown
    assert (await press_pay(web, page)).headers["location"] == "https://shop.example/thanks"
    seen = (await web.get(f"{PATH}/{data['id']}", headers=headers)).json()["data"]
    assert (seen["status"], seen["url"]) == ("paid", data["url"])
    (told,) = await customers.told()
    assert told["payment_order"]["id"] == seen["payment_order_id"]
    assert (told["event"], told["payment_order"]["merchant_order_id"]) == ("payment", "A-7")


@pytest.mark.parametrize(
    ("asked", "version"), [({}, "v2"), ({"sign_version": "v1"}, "v1"), ({"sign_version": ""}, "v1")]
)
async def test_its_pingbacks_are_signed_with_the_callers_key_in_the_version_asked_for(
    web: httpx.AsyncClient,
    body: dict[str, Any],
    headers: dict[str, str],
    database: Database,
    merchant: Merchant,
    asked: dict[str, str],
    version: str,
) -> None:
    url = {"pingback_url": "https://shop.example/pingback"}
    await press_pay(web, await page_of(web, await web.post(PATH, json={**body, **url, **asked}, headers=headers)))
    told = await database.fetchrow("select sign_version, key_id, url from pingback where merchant_id = $1", merchant.id)
    key = await database.fetchval("select id from merchant_key where merchant_id = $1", merchant.id)
    assert told is not None
    assert tuple(told) == (version, key, url["pingback_url"])


async def test_the_same_key_gives_the_same_checkout_and_its_address_rests_nowhere(
    web: httpx.AsyncClient, body: dict[str, Any], headers: dict[str, str], database: Database, merchant: Merchant
) -> None:
    asked = {**body, "line_items": [MUG, TEA]}
    first, second = [(await web.post(PATH, json=asked, headers=headers)).json()["data"] for _ in range(2)]
    assert first == second
    kept = await database.fetchval("select count(*) from api_call where merchant_id = $1", merchant.id)
    assert kept == 0
    refused = await web.post(PATH, json={**asked, "description": "Another"}, headers=headers)
    assert (refused.status_code, "new key" in refused.json()["message"]) == (409, True)
    other = {**asked, "line_items": [{**MUG, "name": "Pot"}, TEA]}
    assert (await web.post(PATH, json=other, headers=headers)).status_code == 409
    another = await web.post(PATH, json=asked, headers={**headers, "Idempotency-Key": "checkout-2"})
    assert another.json()["data"]["id"] != first["id"]


async def test_twenty_at_once_under_one_key_make_one_checkout(
    web: httpx.AsyncClient, body: dict[str, Any], headers: dict[str, str], count_rows: CountRows
) -> None:
    answers = await asyncio.gather(*(web.post(PATH, json=body, headers=headers) for _ in range(20)))
    assert {answer.status_code for answer in answers} <= {200, 409}
    assert len({answer.json()["data"]["id"] for answer in answers if answer.status_code == 200}) == 1
    assert await count_rows("checkout") == 1


async def test_one_order_of_two_checkouts_is_paid_once(
    web: httpx.AsyncClient, body: dict[str, Any], headers: dict[str, str], charges: Callable[[], list[Standing]]
) -> None:
    pages = [
        await page_of(web, await web.post(PATH, json=body, headers={**headers, "Idempotency-Key": key}))
        for key in ("one", "two")
    ]
    for page in pages:
        await press_pay(web, page)
    assert len(charges()) == 1


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"ammount": "1.00"}, "ammount"),
        ({"hash": "00"}, "hash"),
        ({"api_key": "t"}, "api_key"),
        ({"amount": 10}, "amount"),
        ({"amount": 10.5}, "amount"),
        ({"amount": "10.001"}, "amount"),
        ({"amount": "0"}, "amount"),
        ({"amount": "-1"}, "amount"),
        ({"amount": "1e3"}, "amount"),
        ({"currency": "usd"}, "currency"),
        ({"merchant_order_id": ""}, "merchant_order_id"),
        ({"merchant_order_id": "4111111111111111"}, "merchant_order_id"),
        ({"description": None}, "description"),
        ({"email": "nobody"}, "email"),
        ({"country": "Germany"}, "country"),
        ({"zip": "1" * 21}, "zip"),
        ({"success_url": "javascript:alert(1)"}, "success_url"),
        ({"pingback_url": "ftp://shop.example"}, "pingback_url"),
        ({"sign_version": "v3"}, "sign_version"),
        ({"recurring_name": "Club"}, "recurring_sku_id"),
        ({"later_charges": "Power"}, "later_charges_limit"),
        ({"line_items": []}, "line_items"),
        ({"line_items": "[]"}, "line_items"),
        ({"line_items": [MUG]}, "line_items"),
        ({"line_items": [MUG, {**TEA, "price": "2.00"}]}, "line_items"),
        ({"line_items": [MUG, {**TEA, "unit_price": 2}]}, "line_items"),
        ({"line_items": [MUG, {**TEA, "unit_price": "-2.00"}]}, "line_items"),
        ({"line_items": [MUG, {**TEA, "unit_price": "2.001"}]}, "line_items"),
        ({"line_items": [{**MUG, "quantity": 0}, TEA]}, "line_items"),
        ({"line_items": [{**MUG, "quantity": True}, TEA]}, "line_items"),
        ({"line_items": [{**MUG, "quantity": "2"}, TEA]}, "line_items"),
        ({"line_items": [{**MUG, "quantity": 2.0}, TEA]}, "line_items"),
        ({"line_items": [MUG, {**TEA, "name": ""}]}, "line_items"),
        ({"line_items": [MUG, {**TEA, "name": "tea\u202eaet"}]}, "line_items"),
        ({"line_items": [MUG, {**TEA, "name": "x" * 256}]}, "line_items"),
        ({"line_items": [MUG, {**TEA, "picture_url": "file:///etc/passwd"}]}, "line_items"),
        ({"line_items": [MUG, {**TEA, "picture_url": "http://user:pw@shop.example/"}]}, "line_items"),
        ({"line_items": [MUG, {**TEA, "picture_url": "http://shop.example/\r\nX: 1"}]}, "line_items"),
        ({"line_items": [{"name": "A", "unit_price": "1.00"}] * (MOST_ITEMS + 1)}, "line_items"),
        (
            {
                "line_items": [
                    {"name": "A", "unit_price": "0", "picture_url": f"http://shop.example/{number}"}
                    for number in range(MOST_PICTURES + 1)
                ]
            },
            "line_items",
        ),
    ],
)
async def test_what_is_unknown_or_wrong_is_refused_by_its_name(
    web: httpx.AsyncClient,
    body: dict[str, Any],
    headers: dict[str, str],
    count_rows: CountRows,
    changed: dict[str, Any],
    field: str,
) -> None:
    answer = await web.post(PATH, json={**body, **changed}, headers=headers)
    assert answer.status_code == 400
    assert field in answer.json()["message"], answer.text
    assert await count_rows("checkout") == 0


async def test_a_key_a_name_for_the_body_and_no_address_are_asked_for(
    web: httpx.AsyncClient, body: dict[str, Any], headers: dict[str, str]
) -> None:
    keyless = {"X-ApiKey": headers["X-ApiKey"]}
    assert "Idempotency-Key" in (await web.post(PATH, json=body, headers=keyless)).json()["message"]
    assert (await web.post(PATH, data=body, headers=headers)).status_code == 400
    elsewhere = {**headers, "Idempotency-Key": "elsewhere"}
    assert (await web.post(PATH, json=body, headers=elsewhere, params={"amount": "1.00"})).status_code == 400
    assert (await web.post(PATH, json=body, headers={"Idempotency-Key": "a"})).status_code == 401
    twice = '{"amount": "1.00", "amount": "10.00", "currency": "USD", "description": "a", "merchant_order_id": "A"}'
    typed = {**headers, "Content-Type": "application/json", "Idempotency-Key": "twice"}
    assert "given twice" in (await web.post(PATH, content=twice, headers=typed)).json()["message"]


async def test_a_key_that_signs_forms_makes_checkouts_and_another_does_not(
    web: httpx.AsyncClient, body: dict[str, Any], headers: dict[str, str], database: Database, merchant: Merchant
) -> None:
    await breaking.say(database, "merchant_key", {"merchant_id": merchant.id}, scopes=["sign"])
    made = await web.post(PATH, json=body, headers=headers)
    assert made.status_code == 200
    assert (await web.get(f"{PATH}/{made.json()['data']['id']}", headers=headers)).status_code == 403
    await breaking.say(database, "merchant_key", {"merchant_id": merchant.id}, scopes=["read", "move"])
    refused = await web.post(PATH, json=body, headers={**headers, "Idempotency-Key": "b"})
    assert (refused.status_code, "scope sign" in refused.json()["message"]) == (403, True)


async def test_nobody_sees_another_ones_checkout(
    web: httpx.AsyncClient, body: dict[str, Any], headers: dict[str, str], other_shop: Any, database: Database
) -> None:
    made = (await web.post(PATH, json=body, headers=headers)).json()["data"]
    await breaking.say(database, "checkout", {"id": made["id"]}, live=True)
    assert (await web.get(f"{PATH}/{made['id']}", headers=headers)).status_code == 404
    assert (await web.get(f"{PATH}/{made['id'] + 1}", headers=headers)).status_code == 404


async def test_a_subscription_is_begun_as_by_a_form(
    web: httpx.AsyncClient, body: dict[str, Any], headers: dict[str, str], customers: Till
) -> None:
    terms = {"recurring_name": "Club", "recurring_sku_id": "club", "recurring_period": "1m"}
    trial = {"recurring_trial_period": "1w", "recurring_trial_amount": "1.00"}
    made = await web.post(PATH, json={**body, **terms, **trial, "line_items": [MUG, TEA]}, headers=headers)
    assert made.json()["data"]["amount"] == 1
    page = await page_of(web, made)
    shown = (await web.get(page)).text
    assert "Subscribe to Club" in shown
    assert "Total" not in shown
    await press_pay(web, page, agree="en")
    (told,) = await customers.told()
    assert told["subscription"]["package"]["sku_id"] == "club"


async def test_several_of_a_thing_are_charged_for_where_that_is_switched_on(
    web: httpx.AsyncClient, body: dict[str, Any], headers: dict[str, str], customers: Till
) -> None:
    terms = {"recurring_name": "Club", "recurring_sku_id": "club", "recurring_period": "1m"}
    asked = {**body, **terms, "recurring_quantity": "3", "line_items": [{**MUG, "quantity": 6}, {**TEA, "quantity": 3}]}
    refused = await web.post(PATH, json=asked, headers=headers)
    assert (refused.status_code, "not switched on" in refused.json()["message"]) == (409, True)
    merchant = {"id": customers.shop.merchant_id}
    await breaking.say(customers.database, "merchant", merchant, signs_quantities=True)
    for wrong in (
        {"recurring_quantity": "0"},
        {"recurring_quantity": 3},
        {"line_items": [MUG, TEA]},
        {"recurring_name": "", "recurring_sku_id": "", "recurring_period": ""},
    ):
        again = {**headers, "Idempotency-Key": repr(wrong)[:60]}
        assert (await web.post(PATH, json={**asked, **wrong}, headers=again)).status_code == 400
    made = await web.post(PATH, json=asked, headers=headers)
    assert made.json()["data"]["amount"] == 30
    page = await page_of(web, made)
    assert "3 × 10.00\u00a0USD = 30.00\u00a0USD" in (await web.get(page)).text
    await press_pay(web, page, agree="en")
    (told,) = await customers.told()
    assert told["payment_order"]["paid_amount"] == 30
    seen = {name: told["subscription"].get(name) for name in ("price", "quantity", "unit_price")}
    assert seen == {"price": "30.00", "quantity": 3, "unit_price": "10.00"}
    assert await customers.problems() == []


class TestLineItems:
    async def test_the_page_shows_each_with_its_price_and_the_total(
        self, web: httpx.AsyncClient, body: dict[str, Any], headers: dict[str, str]
    ) -> None:
        made = await web.post(PATH, json={**body, "line_items": [MUG, TEA]}, headers=headers)
        items = made.json()["data"]["line_items"]
        assert [(one["name"], one["unit_price"], one["quantity"]) for one in items] == [
            ("Mug <b>", 4, 2),
            ("Tea", 2, 1),
        ]
        shown = (await web.get(await page_of(web, made))).text
        words = " ".join(re.sub(r"<[^>]+>", " ", shown[shown.index('class="items"') :]).split())
        assert words.startswith('class="items"> Mug &lt;b&gt; 2 × 4.00 USD 8.00 USD Tea 2.00 USD Total 10.00 USD')
        assert "<b>" not in shown

    async def test_a_form_has_none_whatever_it_sends(
        self, web: httpx.AsyncClient, signed_form: Any, database: Database
    ) -> None:
        page = (await web.post("/payment/form", data=signed_form(line_items='[{"name": "A"}]'))).headers["location"]
        assert 'class="items"' not in (await web.get(page)).text

    async def test_one_that_names_who_is_erased_is_erased_with_them(
        self,
        web: httpx.AsyncClient,
        body: dict[str, Any],
        headers: dict[str, str],
        database: Database,
        merchant: Merchant,
    ) -> None:
        engraved = {**MUG, "name": "Mug for Ada@Example.com"}
        for key, line in (("a", engraved), ("b", MUG)):
            asked = {**body, "merchant_order_id": key, "line_items": [line, TEA]}
            await web.post(PATH, json=asked, headers={**headers, "Idempotency-Key": key})
        await erase(database, Subject(merchant.id, email="ada@example.com"), now=utc_now())
        left = await database.fetch(
            "select line_items::text, email from checkout where merchant_id = $1 order by merchant_order_id",
            merchant.id,
        )
        assert [(row["line_items"] is None, row["email"]) for row in left] == [(True, "erased"), (False, "")]

    async def test_fifty_of_them_with_pictures_keep_the_first_view_light(
        self, open_web: OpenWeb, body: dict[str, Any], headers: dict[str, str]
    ) -> None:
        web = await open_web(outbound_allow="127.0.0.0/8")
        with answering(body=picture(), at="") as (server, seen):
            lines = [
                {"name": f"Thing {number}", "unit_price": "0.20", "picture_url": f"{server}/{number % MOST_PICTURES}"}
                for number in range(MOST_ITEMS)
            ]
            made = await web.post(PATH, json={**body, "line_items": lines}, headers=headers)
            assert made.status_code == 200, made.text
            assert len(seen) == MOST_PICTURES
        page = await web.get(await page_of(web, made), headers={"Accept-Encoding": "gzip"})
        sent = int(page.headers["content-length"])
        drawn = [len((await web.get(src)).content) for src in set(re.findall(r'<img src="([^"]+)"', page.text))]
        assert sent + sum(drawn) < 25_000 - 9_000, "with style and script"


class TestPictures:
    async def test_one_is_fetched_made_small_and_shown_from_here(
        self, open_web: OpenWeb, body: dict[str, Any], headers: dict[str, str]
    ) -> None:
        web = await open_web(outbound_allow="127.0.0.0/8")
        with answering(body=picture()) as (server, seen):
            asked = {**body, "line_items": [MUG, {**TEA, "picture_url": f"{server}/tea.png?size=1#top"}]}
            made = await web.post(PATH, json=asked, headers=headers)
            again = await web.post(
                PATH, json={**asked, "merchant_order_id": "B"}, headers={**headers, **{"Idempotency-Key": "b"}}
            )
            assert [one.path for one in seen] == ["/tea.png?size=1"]
            assert "x-apikey" not in seen[0].headers
        for answer in (made, again):
            first, second = answer.json()["data"]["line_items"]
            assert (first["picture"], second["picture_problem"]) == (None, None)
            address = second["picture"].removeprefix("http://pay.test").removeprefix("/sandbox")
            shown = await web.get(address)
            small = read_picture(shown.content)
            assert small is not None
            assert (small.media_type, small.width, small.height) == ("image/webp", 96, 64)
            assert shown.headers["content-type"] == "image/webp"
            assert shown.headers["content-security-policy"] == "default-src 'none'; sandbox"
            page = await web.get(await page_of(web, answer))
            assert f'<img src="{address}"' in page.text
            assert "img-src 'self' data:" in page.headers["content-security-policy"]
            assert server not in page.text

    @pytest.mark.parametrize(
        ("url", "said"),
        [
            ("http://169.254.169.254/latest/meta-data", "link-local"),
            ("http://10.0.0.1/", "private network"),
            ("http://[::1]:5432/", "loopback"),
            ("http://[::ffff:127.0.0.1]/", "not allowed"),
            ("http://2130706433/", "not allowed"),
        ],
    )
    async def test_one_in_a_private_network_is_never_asked_for(
        self, web: httpx.AsyncClient, body: dict[str, Any], headers: dict[str, str], url: str, said: str
    ) -> None:
        asked = {**body, "line_items": [MUG, {**TEA, "picture_url": url}]}
        _, tea = (await web.post(PATH, json=asked, headers=headers)).json()["data"]["line_items"]
        assert tea["picture"] is None
        assert said in tea["picture_problem"] or "name not found" in tea["picture_problem"]

    async def test_one_on_this_machine_is_never_asked_for(
        self, web: httpx.AsyncClient, body: dict[str, Any], headers: dict[str, str]
    ) -> None:
        with answering(body=picture()) as (server, seen):
            asked = {**body, "line_items": [MUG, {**TEA, "picture_url": server}]}
            _, tea = (await web.post(PATH, json=asked, headers=headers)).json()["data"]["line_items"]
            assert (tea["picture"], seen) == (None, [])
            assert "loopback" in tea["picture_problem"]

    @pytest.mark.parametrize(
        ("status", "content", "said"),
        [
            (200, b"<svg onload=alert(1)>", "PNG, JPEG or WebP"),
            (200, picture()[:60], "can't be drawn"),
            (200, bytes(4 * 1024**2 + 1), "4096 kB"),
            (200, b"", "PNG, JPEG or WebP"),
            (404, picture(), "answered 404"),
            (302, picture(), "answered 302"),
        ],
    )
    async def test_one_that_can_not_be_had_is_left_out_and_said(
        self,
        open_web: OpenWeb,
        body: dict[str, Any],
        headers: dict[str, str],
        count_rows: CountRows,
        status: int,
        content: bytes,
        said: str,
    ) -> None:
        web = await open_web(outbound_allow="127.0.0.0/8")
        with answering(status, content, Location="http://127.0.0.1:1/") as (server, _):
            asked = {**body, "line_items": [MUG, {**TEA, "picture_url": server}]}
            made = await web.post(PATH, json=asked, headers=headers)
        _, tea = made.json()["data"]["line_items"]
        assert tea["picture"] is None
        assert said in tea["picture_problem"]
        assert "<img" not in (await web.get(await page_of(web, made))).text
        assert await count_rows("item_picture") == 0

    async def test_one_that_could_be_had_the_second_time_is_the_same_request(
        self, open_web: OpenWeb, body: dict[str, Any], headers: dict[str, str]
    ) -> None:
        web = await open_web(outbound_allow="127.0.0.0/8")
        with answering(body=picture()) as (server, _):
            asked = {**body, "line_items": [MUG, {**TEA, "picture_url": server}]}
            first = await web.post(PATH, json=asked, headers=headers)
        second = await web.post(PATH, json=asked, headers=headers)
        assert first.json()["data"]["id"] == second.json()["data"]["id"]

    async def test_no_other_address_shows_one(
        self, open_web: OpenWeb, body: dict[str, Any], headers: dict[str, str], desk: Desk, merchant: Merchant
    ) -> None:
        web = await open_web(outbound_allow="127.0.0.0/8")
        with answering(body=picture()) as (server, _):
            asked = {**body, "line_items": [MUG, {**TEA, "picture_url": server}]}
            made = await web.post(PATH, json=asked, headers=headers)
        address = (
            made.json()["data"]["line_items"][1]["picture"].removeprefix("http://pay.test").removeprefix("/sandbox")
        )
        name = address.rpartition("/")[2]
        assert (await web.get(address)).status_code == 200
        for other in (
            address.replace("/test/", "/live/"),
            address.replace("/test/", "/all/"),
            address.replace(f"/{merchant.id}/", f"/{merchant.id + 1}/"),
            address.replace(name, hashlib.sha256(b"").hexdigest()),
            address.replace(name, "..%2f"),
            f"/picture/test/{10**18 * 9}/{name}",
        ):
            assert (await web.get(other)).status_code == 404, other
        await reset_test_side(desk.database, merchant.id)
        assert (await web.get(address)).status_code == 404


CLUB = {"recurring_name": "Coffee club", "recurring_sku_id": "club", "recurring_period": "1m"}


@pytest.fixture
async def coupons_signed(customers: Till) -> None:
    await breaking.say(customers.database, "merchant", {"id": customers.shop.merchant_id}, signs_coupons=True)
    await coupon(customers, percent="50", most_uses="1")


@pytest.mark.usefixtures("coupons_signed")
async def test_a_subscription_has_its_coupon_off(
    web: httpx.AsyncClient, body: dict[str, Any], headers: dict[str, str], customers: Till
) -> None:
    asked = {**body, **CLUB, "recurring_coupon": "half"}
    first, second = [await web.post(PATH, json=asked, headers=headers) for _ in range(2)]
    assert first.json() == second.json()
    assert first.json()["data"]["amount"] == 5
    page = await page_of(web, first)
    assert (await press_pay(web, page, agree="en")).status_code == 303
    assert [row["amount"] for row in await customers.payments()] == [5]
    paid = (await web.post(PATH, json=asked, headers=headers)).json()["data"]
    assert (paid["id"], paid["status"]) == (first.json()["data"]["id"], "paid")
    # Used up, it takes nothing off any more.
    late = await web.post(
        PATH, json={**asked, "merchant_order_id": "A-8"}, headers={**headers, "Idempotency-Key": "checkout-2"}
    )
    assert (late.status_code, late.json()["data"]["amount"]) == (200, 10)


@pytest.mark.usefixtures("coupons_signed")
@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({**CLUB, "recurring_coupon": "none-such"}, "there is no coupon"),
        ({**CLUB, "recurring_coupon": "no code"}, "letters from A to Z"),
        ({"recurring_coupon": "half"}, "coupons are for subscriptions"),
        ({**CLUB, "recurring_coupon": 5}, "must be a text"),
    ],
)
async def test_a_coupon_that_is_none_for_it_is_refused_and_makes_nothing(
    web: httpx.AsyncClient, body: dict[str, Any], headers: dict[str, str], customers: Till, more: Any, why: str
) -> None:
    answer = await web.post(PATH, json={**body, **more}, headers=headers)
    assert (answer.status_code, why in answer.json()["message"]) == (400, True)
    assert await customers.rows("checkout") == []


async def test_a_coupon_needs_the_switch_of_the_account(
    web: httpx.AsyncClient, body: dict[str, Any], headers: dict[str, str], customers: Till
) -> None:
    await coupon(customers)
    answer = await web.post(PATH, json={**body, **CLUB, "recurring_coupon": "half"}, headers=headers)
    assert (answer.status_code, "switched on" in answer.json()["message"]) == (409, True)
    assert await customers.rows("checkout") == []


async def test_a_free_trial_asks_for_no_card_where_the_account_wants_that(
    web: httpx.AsyncClient, body: dict[str, Any], headers: dict[str, str], customers: Till
) -> None:
    await change_merchant(customers.database, customers.shop.merchant_id, trials_without_card=True)
    club = {"recurring_name": "Club", "recurring_sku_id": "club", "recurring_period": "1m"}
    made = await web.post(PATH, json={**body, **club, "recurring_trial_period": "14d"}, headers=headers)
    page = await page_of(web, made)
    assert 'name="number"' not in (await web.get(page)).text
    pressed = await web.post(f"{page}/start", data={"email": "ada@example.com", "agree": "en"})
    assert pressed.status_code == 303
    (told,) = await customers.told()
    assert (told["payment_order"]["paid_amount"], told["subscription"]["status"]) == (0, "Trial")
