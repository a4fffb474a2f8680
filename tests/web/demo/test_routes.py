from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Mapping
from html import escape, unescape
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.markup import Markup
from tests.web.demo.visiting import PRIVATE_KEY, SHIPPING_KEY, SHOP, Visitor

from paydesk.domain.payments.time_to_ship import TIME_TO_SHIP
from paydesk.web.demo import create_shop
from paydesk_client import Gateway
from paydesk_client.signature import canonical_string, pingback_signature

PUBLIC_KEY = "95b682bafc8837b1e80e5fe940cb5731"
PAYDESK = "http://127.0.0.1:8000"


def payment(fields: Mapping[str, str], **changed: Any) -> dict[str, Any]:
    """The pingback about an order's payment; `changed` replaces fields of its payment_order."""
    order = {
        "id": 7,
        "merchant_order_id": fields["merchant_order_id"],
        "payment_system": 1,
        "status": "successful",
        "paid_amount": json.loads(fields["amount"]),
        "paid_currency": fields["currency"],
    }
    return {"event": "payment", "payment_order": order | changed, "pingback_ts": int(time.time())}


def is_paid(thanks: str) -> bool:
    return 'data-paid="1"' in thanks


def pingbacks_on(page: str) -> int:
    return page.count('<article class="pingback')


def visit(folder: Path, **more: Any) -> Visitor:
    """A visitor of a shop that is started now."""
    gateways = Gateway(PUBLIC_KEY, PRIVATE_KEY, PAYDESK, **more), Gateway("shipping", SHIPPING_KEY, PAYDESK, **more)
    shop = create_shop(*gateways, base_url=SHOP, folder=folder, time_to_ship=TIME_TO_SHIP)
    return Visitor(transport=httpx.ASGITransport(shop), base_url=SHOP, follow_redirects=True)


@pytest.fixture
async def visitor(tmp_path: Path) -> AsyncIterator[Visitor]:
    async with visit(tmp_path) as visitor:
        yield visitor


class TestShelf:
    async def test_prices_are_written_with_each_currencys_digits(self, visitor: Visitor) -> None:
        page = (await visitor.get("/", headers={"Accept-Language": "en-US"})).text
        club = "5.00\u00a0USD for the first month, then 12.00\u00a0USD a month"
        for price in ("10.00\u00a0USD<", "€24.90<", "1,500\u00a0JPY<", "12.500", club):
            assert price in page

    async def test_the_chosen_signature_version_goes_with_the_purchase(self, visitor: Visitor) -> None:
        page = (await visitor.get("/", params={"sign_version": "v2"})).text
        assert page.count('name="sign_version" value="v2"') == page.count("<form") == 7

    async def test_an_unknown_signature_version_in_the_address_is_v1(self, visitor: Visitor) -> None:
        assert 'value="v1"' in (await visitor.get("/?sign_version=<script>")).text


class TestBuying:
    @pytest.mark.parametrize("version", ["v1", "v2"])
    @pytest.mark.parametrize("article", ["coffee", "mug", "tea", "pot"])
    async def test_the_posted_form_is_genuine(self, visitor: Visitor, article: str, version: str) -> None:
        fields = await visitor.buy(article, version)
        signature = Gateway(PUBLIC_KEY, PRIVATE_KEY).signature()
        assert signature.verify(fields, fields["hash"])
        assert fields.get("sign_version", "v1") == version
        assert fields["api_key"] == PUBLIC_KEY

    async def test_each_purchase_has_a_reference_of_its_own(self, visitor: Visitor) -> None:
        assert (await visitor.buy())["merchant_order_id"] != (await visitor.buy())["merchant_order_id"]

    async def test_a_reload_shows_the_same_signed_form_again(self, visitor: Visitor) -> None:
        page = await visitor.post("/buy", data={"article": "mug"})
        assert page.url.path == "/pay"
        assert (await visitor.get(page.url)).text == page.text

    async def test_the_form_works_without_javascript(self, visitor: Visitor) -> None:
        page = (await visitor.post("/buy", data={"article": "mug"})).text
        assert f'<form method="post" action="{PAYDESK}/payment/form"' in page
        assert 'type="submit" form="paydesk_payment_form"' in page
        assert "<script" not in page

    async def test_only_paydesk_may_receive_the_form(self, visitor: Visitor) -> None:
        page = await visitor.post("/buy", data={"article": "mug"})
        assert f"form-action 'self' {PAYDESK}" in page.headers["Content-Security-Policy"]
        assert PAYDESK not in (await visitor.get("/")).headers["Content-Security-Policy"]

    async def test_a_test_gateway_posts_to_the_sandbox(self, tmp_path: Path) -> None:
        async with visit(tmp_path, is_test=True) as visitor:
            page = await visitor.post("/buy", data={"article": "mug"})
        assert f'action="{PAYDESK}/sandbox/payment/form"' in page.text

    @pytest.mark.parametrize("version", ["v1", "v2"])
    async def test_the_page_explains_the_hash_and_keeps_the_key(self, visitor: Visitor, version: str) -> None:
        page = await visitor.post("/buy", data={"article": "mug", "sign_version": version})
        fields = Markup(page.text).inputs()
        assert escape(canonical_string(fields, "v2" if version == "v2" else "v1")) in page.text
        assert page.text.count(fields["hash"]) == 3
        assert PRIVATE_KEY not in page.text

    @pytest.mark.parametrize(
        "form", [{}, {"article": "gold"}, {"article": "mug", "sign_version": "v3"}, {"article": ["<b>", "mug"]}]
    )
    async def test_what_is_not_on_the_shelf_is_refused(self, visitor: Visitor, form: dict[str, Any]) -> None:
        page = await visitor.post("/buy", data=form)
        assert page.status_code == 400
        assert "<b>" not in page.text
        assert "No orders yet" in await visitor.orders()

    async def test_a_large_form_is_refused(self, visitor: Visitor) -> None:
        assert (await visitor.post("/buy", data={"article": "x" * 2000})).status_code == 413

    async def test_a_paid_order_is_not_offered_for_payment_again(self, visitor: Visitor) -> None:
        fields = await visitor.buy()
        await visitor.pingback(payment(fields))
        page = await visitor.get("/pay", params={"order": fields["merchant_order_id"]})
        assert page.url.path == "/thanks"


class TestThanks:
    async def test_coming_back_from_paydesk_does_not_mark_an_order_as_paid(self, visitor: Visitor) -> None:
        fields = await visitor.buy()
        assert not is_paid(await visitor.thanks(fields))
        assert "Not paid" in await visitor.orders()

    async def test_without_javascript_the_page_looks_again_a_limited_number_of_times(self, visitor: Visitor) -> None:
        fields = await visitor.buy()
        page, looks = await visitor.thanks(fields), 0
        while found := re.search(r'http-equiv="refresh" content="3; url=([^"]+)"', page):
            page, looks = (await visitor.get(unescape(found[1]))).text, looks + 1
        assert looks == 20
        assert "longer than it should" in page

    @pytest.mark.parametrize("look", ["-1", "²", "1e9", "9" * 5000, "'\"><script>"])
    async def test_an_odd_count_of_looks_ends_them(self, visitor: Visitor, look: str) -> None:
        fields = await visitor.buy()
        page = await visitor.get("/thanks", params={"order": fields["merchant_order_id"], "look": look})
        assert page.status_code == 200
        assert "refresh" not in page.text

    async def test_an_unknown_order_is_not_found(self, visitor: Visitor) -> None:
        for path in ("/thanks", "/pay", "/thanks?order=<script>"):
            page = await visitor.get(path)
            assert page.status_code == 404
            assert "<script>" not in page.text


class TestPingback:
    @pytest.mark.parametrize("version", ["v1", "v2"])
    @pytest.mark.parametrize("article", ["coffee", "tea", "pot"])
    async def test_a_genuine_one_pays_the_order(self, visitor: Visitor, article: str, version: str) -> None:
        fields = await visitor.buy(article, version)
        answer = await visitor.pingback(payment(fields), version)
        assert (answer.status_code, answer.text) == (200, "ok")
        page = await visitor.thanks(fields)
        assert is_paid(page)
        assert "Genuine" in page
        assert f"version {version[1:]}" in page
        assert ">Paid<" in await visitor.orders()

    async def test_a_genuine_form_body_pays_the_order(self, visitor: Visitor) -> None:
        fields = await visitor.buy("mug")
        answer = await visitor.form_pingback(payment(fields, paid_amount="24.9"))
        assert (answer.status_code, answer.text) == (200, "ok")
        page = await visitor.thanks(fields)
        assert is_paid(page)
        assert "payment_order[paid_currency] = EUR" in page

    @pytest.mark.parametrize("version", ["v1", "v2"])
    async def test_a_forged_one_is_refused_and_pays_nothing(self, visitor: Visitor, version: str) -> None:
        fields = await visitor.buy("coffee", version)
        answer = await visitor.pingback(payment(fields), version, key="guessed")
        assert (answer.status_code, answer.text) == (400, "NOK")
        page = await visitor.thanks(fields)
        assert not is_paid(page)
        assert "Refused" in page
        assert "guessed" not in page

    @pytest.mark.parametrize(
        ("body", "headers"),
        [
            (b"", {"X-ApiKey": PRIVATE_KEY}),
            (b"{}", {}),
            (b"{}", {"X-Service-Signature-Version": "v9"}),
            (b"\xff\xfe", {"X-ApiKey": PRIVATE_KEY}),
            (b"[]", {"X-ApiKey": PRIVATE_KEY}),
            (b"[" * 60_000, {"X-ApiKey": "guessed"}),
        ],
    )
    async def test_nonsense_is_refused_and_listed(self, visitor: Visitor, body: bytes, headers: dict[str, str]) -> None:
        answer = await visitor.post("/pingback", content=body, headers=headers)
        assert (answer.status_code, answer.text) == (400, "NOK")
        assert pingbacks_on(await visitor.orders()) == 1

    async def test_a_stale_one_is_refused(self, visitor: Visitor) -> None:
        fields = await visitor.buy("coffee", "v2")
        answer = await visitor.pingback(payment(fields) | {"pingback_ts": int(time.time()) - 400}, "v2")
        assert answer.text == "NOK"
        assert not is_paid(await visitor.thanks(fields))

    async def test_a_body_over_the_limit_is_refused(self, visitor: Visitor) -> None:
        answer = await visitor.post("/pingback", content=b"x" * 70_000, headers={"X-ApiKey": PRIVATE_KEY})
        assert (answer.status_code, answer.text) == (413, "NOK")
        assert "larger than 64 KiB" in await visitor.orders()

    async def test_the_same_one_twice_is_listed_twice_and_fulfils_once(self, visitor: Visitor) -> None:
        fields = await visitor.buy()
        answers = await asyncio.gather(*(visitor.pingback(payment(fields)) for _ in range(2)))
        assert [answer.text for answer in answers] == ["ok", "ok"]
        page = await visitor.thanks(fields)
        assert pingbacks_on(page) == 2
        assert page.count(": fulfilled.") == 1
        assert page.count("was fulfilled before") == 1

    @pytest.mark.parametrize(
        "changed",
        [
            {"paid_amount": 0.01},
            {"paid_amount": "NaN"},
            {"paid_amount": None},
            {"paid_amount": {}},
            {"paid_currency": "JPY"},
            {"status": "declined"},
        ],
    )
    async def test_a_genuine_one_that_differs_from_the_order_is_acknowledged_but_pays_nothing(
        self, visitor: Visitor, changed: dict[str, Any]
    ) -> None:
        fields = await visitor.buy()
        assert (await visitor.pingback(payment(fields, **changed))).text == "ok"
        page = await visitor.thanks(fields)
        assert not is_paid(page)
        assert "not fulfilled" in page

    async def test_one_about_something_else_than_a_payment_pays_nothing(self, visitor: Visitor) -> None:
        fields = await visitor.buy()
        assert (await visitor.pingback(payment(fields) | {"event": "refund"})).text == "ok"
        assert not is_paid(await visitor.thanks(fields))

    @pytest.mark.parametrize("payment_order", [None, [], {"merchant_order_id": "elsewhere"}, {"merchant_order_id": {}}])
    async def test_a_genuine_one_about_no_order_of_this_shop_is_acknowledged_and_listed(
        self, visitor: Visitor, payment_order: object
    ) -> None:
        payload = {"event": "payment", "payment_order": payment_order, "pingback_ts": int(time.time())}
        assert (await visitor.pingback(payload)).text == "ok"
        assert "no such order" in await visitor.orders()

    async def test_the_private_key_is_neither_shown_nor_kept(self, visitor: Visitor, tmp_path: Path) -> None:
        fields = await visitor.buy()
        await visitor.pingback(payment(fields))
        page = await visitor.thanks(fields)
        assert "X-ApiKey" in page
        kept = (tmp_path / "shop.jsonl").read_bytes()
        assert PRIVATE_KEY not in page
        assert PRIVATE_KEY.encode() not in kept

    async def test_another_header_prefix_is_understood(self, tmp_path: Path) -> None:
        async with visit(tmp_path, header_prefix="X-Brand") as visitor:
            fields = await visitor.buy("coffee", "v2")
            body = json.dumps(payment(fields)).encode()
            signed = {
                "X-Brand-Signature-Version": "v2",
                "X-Brand-Signature": pingback_signature(body, PRIVATE_KEY),
            }
            assert (await visitor.post("/pingback", content=body, headers=signed)).text == "ok"
            assert "X-Brand-Signature" in await visitor.thanks(fields)


def told(fields: Mapping[str, str], number: int, *, paid: str = "12.00", event: str = "payment") -> dict[str, Any]:
    """The pingback about the n-th payment of a subscription (1 is the first; interface.md §5.7),
    or about its end.
    """
    reference = fields["merchant_order_id"]
    payload: dict[str, Any] = {
        "event": event,
        "subscription": {"id": 31, "recurring_id": 7, "status": "Active" if event == "payment" else "Cancelled"},
        "pingback_ts": int(time.time()),
    }
    if event == "payment":
        payload["subscription"]["init_merchant_order_id"] = reference
        payload["payment_order"] = {
            "id": 6 + number,
            "merchant_order_id": reference if number == 1 else f"{reference}:{number}",
            "status": "successful",
            "paid_amount": json.loads(paid),
            "paid_currency": fields["currency"],
        }
    return payload


class TestSubscription:
    @pytest.mark.parametrize("version", ["v1", "v2"])
    async def test_the_form_carries_the_signed_recurring_fields(self, visitor: Visitor, version: str) -> None:
        fields = await visitor.buy("club", version)
        assert Gateway(PUBLIC_KEY, PRIVATE_KEY).signature().verify(fields, fields["hash"])
        assert {name: value for name, value in fields.items() if name.startswith(("recurring", "amount"))} == {
            "amount": "12.00",
            "recurring_name": "Coffee club",
            "recurring_sku_id": "coffee-club",
            "recurring_period": "1m",
            "recurring_trial_amount": "5.00",
            "recurring_trial_period": "1m",
            "recurring_duration": "0",
        }

    async def test_the_first_payment_is_that_of_the_trial(self, visitor: Visitor) -> None:
        fields = await visitor.buy("club")
        assert (await visitor.pingback(told(fields, 1, paid="12.00"))).text == "ok"
        assert not is_paid(await visitor.thanks(fields))
        assert (await visitor.pingback(told(fields, 1, paid="5.00"))).text == "ok"
        page = await visitor.thanks(fields)
        assert is_paid(page)
        assert "Subscribed." in page
        assert 'data-awaits="1"' in page

    async def test_a_free_trial_is_fulfilled_by_an_order_of_nothing(self, visitor: Visitor) -> None:
        fields = await visitor.buy("letter")
        await visitor.pingback(told(fields, 1, paid="0"))
        assert is_paid(await visitor.thanks(fields))

    async def test_renewals_are_listed_and_each_counts_once(self, visitor: Visitor) -> None:
        fields = await visitor.buy("club")
        await visitor.pingback(told(fields, 1, paid="5.00"))
        for number in (2, 3, 3, 4):
            assert (await visitor.pingback(told(fields, number))).text == "ok"
        page = await visitor.thanks(fields)
        assert pingbacks_on(page) == 5
        assert page.count("the next parcel goes out") == 3
        assert page.count("this renewal was known before") == 1
        assert "Renewed 3 times since" in page

    @pytest.mark.parametrize("paid", ["9.60", "24.00", "19.20"], ids=["coupon", "twice as much", "both"])
    async def test_a_renewal_at_what_the_shop_offers_sends_a_parcel(self, visitor: Visitor, paid: str) -> None:
        fields = await visitor.buy("club")
        await visitor.pingback(told(fields, 1, paid="5.00"))
        await visitor.pingback(told(fields, 2, paid=paid))
        assert "Renewed 1 time since" in await visitor.thanks(fields)

    async def test_a_renewal_at_another_price_sends_nothing_out(self, visitor: Visitor) -> None:
        fields = await visitor.buy("club")
        await visitor.pingback(told(fields, 1, paid="5.00"))
        await visitor.pingback(told(fields, 2, paid="5.00"))
        page = await visitor.thanks(fields)
        assert "not that of the subscription" in page
        assert "Renewed" not in page

    @pytest.mark.parametrize("event", ["subscription_cancelled", "subscription_stopped", "subscription_expired"])
    async def test_its_end_is_found_by_the_first_payment_and_ends_it(self, visitor: Visitor, event: str) -> None:
        fields, other = await visitor.buy("club"), await visitor.buy("letter")
        await visitor.pingback(told(fields, 1, paid="5.00"))
        await visitor.pingback(told(fields, 1, event=event))
        page = await visitor.thanks(fields)
        assert pingbacks_on(page) == 2
        assert "Ended." in page
        assert 'data-awaits="0"' in page
        assert pingbacks_on(await visitor.thanks(other)) == 0

    async def test_a_forged_end_changes_nothing(self, visitor: Visitor) -> None:
        fields = await visitor.buy("club")
        await visitor.pingback(told(fields, 1, paid="5.00"))
        answer = await visitor.pingback(told(fields, 1, event="subscription_cancelled"), key="guessed")
        assert answer.text == "NOK"
        assert "Ended." not in await visitor.thanks(fields)

    async def test_a_form_body_says_the_same(self, visitor: Visitor) -> None:
        fields = await visitor.buy("club")
        for payload in (told(fields, 1, paid="5.00"), told(fields, 2)):
            as_text = json.loads(json.dumps(payload), parse_int=str, parse_float=str)
            assert (await visitor.form_pingback(as_text)).text == "ok"
        assert "Renewed 1 time since" in await visitor.thanks(fields)

    @pytest.mark.parametrize("subscription", [None, [], "x", {"recurring_id": {}}, {"init_merchant_order_id": []}])
    async def test_a_strange_subscription_object_is_acknowledged_and_listed(
        self, visitor: Visitor, subscription: object
    ) -> None:
        payload = {"event": {"a": 1}, "subscription": subscription, "pingback_ts": int(time.time())}
        assert (await visitor.pingback(payload)).text == "ok"
        assert "no such order" in await visitor.orders()

    async def test_a_restart_keeps_it(self, visitor: Visitor, tmp_path: Path) -> None:
        fields = await visitor.buy("club")
        await visitor.pingback(told(fields, 1, paid="5.00"))
        await visitor.pingback(told(fields, 2))
        before = await visitor.thanks(fields)
        async with visit(tmp_path) as later:
            assert await later.thanks(fields) == before
            await later.pingback(told(fields, 1, event="subscription_cancelled"))
            assert "Ended." in await later.thanks(fields)

    async def test_only_a_begun_subscription_can_be_managed(self, visitor: Visitor) -> None:
        for fields in (await visitor.buy("club"), await visitor.buy("mug")):
            page = await visitor.get("/manage", params={"order": fields["merchant_order_id"]})
            assert page.status_code == 404


class TestPages:
    async def test_what_a_pingback_says_is_escaped(self, visitor: Visitor) -> None:
        fields = await visitor.buy()
        hostile = "</pre><script>alert(1)</script>"
        await visitor.pingback(payment(fields) | {"user": {"firstname": hostile}})
        await visitor.post("/pingback", content=hostile, headers={"User-Agent": "<script>", "Content-Type": "<script>"})
        for page in (await visitor.thanks(fields), await visitor.orders()):
            assert "<script>" not in page
        assert escape(hostile) in await visitor.orders()

    @pytest.mark.parametrize("path", ["/", "/orders", "/nowhere", "/thanks"])
    async def test_pages_run_only_their_own_files_and_are_not_stored(self, visitor: Visitor, path: str) -> None:
        page = await visitor.get(path)
        assert "default-src 'none'" in page.headers["Content-Security-Policy"]
        assert "unsafe" not in page.headers["Content-Security-Policy"]
        assert page.headers["Cache-Control"] == "no-store"

    async def test_pictures_and_styles_are_served(self, visitor: Visitor) -> None:
        page = (await visitor.get("/")).text
        addresses = set(re.findall(r'(?:src|href)="(/static/[^"]+)"', page))
        assert len(addresses) == 9
        for address in addresses:
            assert (await visitor.get(address)).status_code == 200

    async def test_a_restart_keeps_orders_and_pingbacks(self, visitor: Visitor, tmp_path: Path) -> None:
        paid, unpaid = await visitor.buy(), await visitor.buy("tea")
        await visitor.pingback(payment(paid))
        await visitor.pingback(payment(unpaid), key="guessed")
        before = [await visitor.thanks(paid), await visitor.thanks(unpaid), await visitor.orders()]
        async with visit(tmp_path) as later:
            assert [await later.thanks(paid), await later.thanks(unpaid), await later.orders()] == before
            await later.pingback(payment(paid))
            assert (await later.thanks(paid)).count(": fulfilled.") == 1
