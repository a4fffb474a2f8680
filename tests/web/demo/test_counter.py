"""What the shop's staff sees and does: parcels, money that goes back, and pingbacks about both."""

from __future__ import annotations

import json
import re
import time
from collections.abc import AsyncIterator, Mapping
from html import unescape
from pathlib import Path
from typing import Any

import httpx
import pytest

from paydesk.domain.payments.hold_periods import TIME_TO_SHIP
from paydesk.web.demo import create_shop
from paydesk_client import Gateway

KEY, SHIPPING_KEY = "9c4d4efcfe74317c5df7d564cfe9565t", "0a61e6f9015121d6884fe7a450f430a5"
# Nobody listens there: each call to Paydesk gets no answer.
PAYDESK, SHOP = "http://127.0.0.1:1", "http://127.0.0.1:8001"
_INPUT = re.compile(r'<input type="hidden" name="([^"]*)" value="([^"]*)">')


class Staff(httpx.AsyncClient):
    """Whoever looks at the shop's orders, and Paydesk's server, which posts its pingbacks."""

    async def sell(self, article: str) -> dict[str, str]:
        """Sell something; the fields that went to Paydesk."""
        page = await self.post("/buy", data={"article": article})
        return {unescape(name): unescape(value) for name, value in _INPUT.findall(page.text)}

    async def tell(self, fields: Mapping[str, str], event: str, *, key: str = "", **told: Any) -> str:
        """Send a pingback to where the form wanted it; what the shop answered."""
        order = {
            "id": 7,
            "merchant_order_id": fields["merchant_order_id"],
            "status": "successful",
            "paid_amount": json.loads(fields["amount"]),
            "paid_currency": fields["currency"],
            "date": {"date": "2031-03-01 09:44:16.000000", "timezone_type": 3, "timezone": "UTC"},
        }
        body = {"event": event, "payment_order": order | told, "pingback_ts": int(time.time())}
        own = SHIPPING_KEY if fields["api_key"] == "shipping" else KEY
        answer = await self.post(fields["pingback_url"], json=body, headers={"X-ApiKey": key or own})
        return answer.text

    async def sold(self, article: str = "grinder") -> dict[str, str]:
        """Sell something that is paid."""
        fields = await self.sell(article)
        assert await self.tell(fields, "payment") == "ok"
        return fields

    async def page(self, fields: Mapping[str, str]) -> str:
        return (await self.get(fields["success_url"])).text


def open_shop(folder: Path) -> Staff:
    gateways = Gateway("usual", KEY, PAYDESK), Gateway("shipping", SHIPPING_KEY, PAYDESK)
    shop = create_shop(*gateways, base_url=SHOP, folder=folder, time_to_ship=TIME_TO_SHIP)
    return Staff(transport=httpx.ASGITransport(shop), base_url=SHOP, follow_redirects=True)


@pytest.fixture
async def staff(tmp_path: Path) -> AsyncIterator[Staff]:
    async with open_shop(tmp_path) as staff:
        yield staff


async def test_shipped_goods_are_sold_under_an_account_of_their_own(staff: Staff) -> None:
    fields = await staff.sell("grinder")
    assert fields["api_key"] == "shipping"
    assert Gateway("shipping", SHIPPING_KEY).signature().verify(fields, fields["hash"])
    assert await staff.tell(fields, "payment", key=KEY) == "NOK"
    assert await staff.tell(fields, "payment") == "ok"


async def test_an_authorized_order_says_until_when_it_must_be_shipped(staff: Staff) -> None:
    fields = await staff.sold()
    for page in (await staff.page(fields), (await staff.get("/orders")).text):
        assert "Authorized" in page
        assert "2031-03-08 09:44:16 UTC" in page


async def test_goods_that_are_sent_at_once_are_paid_at_once(staff: Staff) -> None:
    page = await staff.page(await staff.sold("mug"))
    assert "Paid." in page
    assert "Mark as shipped" not in page
    assert ">Refund<" in page


async def test_the_end_of_the_hold_means_that_nothing_is_shipped(staff: Staff) -> None:
    fields = await staff.sold()
    refund: dict[str, Any] = {
        "status": "reversal_refunded",
        "refund_amount": 89,
        "total_refunded_amount": 89,
        "reference_id": 3,
    }
    await staff.tell(fields, "refund", **refund)
    page = await staff.page(fields)
    assert "Not taken." in page
    assert "Mark as shipped" not in page


async def test_a_refund_that_is_told_twice_counts_once(staff: Staff) -> None:
    fields = await staff.sold("mug")
    part: dict[str, Any] = {"status": "reversal_refunded_partially", "refund_amount": 4.5, "reference_id": 3}
    for _ in range(2):
        assert await staff.tell(fields, "partial_refund", **part) == "ok"
    assert "€4.50 went back" in await staff.page(fields)
    await staff.tell(fields, "partial_refund", **part | {"reference_id": 4})
    assert "€9.00 went back" in await staff.page(fields)
    await staff.tell(fields, "refund", status="reversal_refunded", refund_amount=15.9, reference_id=5)
    page = await staff.page(fields)
    assert "Refunded." in page
    assert ">Refund<" not in page


async def test_a_chargeback_and_its_end_are_shown(staff: Staff) -> None:
    fields = await staff.sold("mug")
    dispute: dict[str, Any] = {"chargeback_amount": 24.9, "reason": "fraudulent", "reference_id": 9}
    await staff.tell(fields, "chargeback", status="reversal_chargeback", **dispute)
    assert "Charged back." in await staff.page(fields)
    await staff.tell(fields, "chargeback_reversed", **dispute)
    assert "Paid." in await staff.page(fields)


async def test_a_forged_refund_changes_nothing(staff: Staff) -> None:
    fields = await staff.sold("mug")
    assert await staff.tell(fields, "refund", key="guessed", refund_amount=24.9, reference_id=3) == "NOK"
    assert "Paid." in await staff.page(fields)


@pytest.mark.parametrize("told", [{"refund_amount": "NaN"}, {"refund_amount": None}, {"reference_id": ""}])
async def test_a_refund_that_cannot_be_counted_is_noted_only(staff: Staff, told: dict[str, Any]) -> None:
    fields = await staff.sold("mug")
    assert await staff.tell(fields, "refund", **{"refund_amount": 24.9, "reference_id": 3} | told) == "ok"
    assert "Paid." in await staff.page(fields)


async def test_a_refunded_renewal_is_found_by_the_reference_of_the_first_payment(staff: Staff) -> None:
    fields = await staff.sell("club")
    reference = f"{fields['merchant_order_id']}:2"
    refund: dict[str, Any] = {"merchant_order_id": reference, "refund_amount": 12, "reference_id": 3}
    assert await staff.tell(fields, "refund", **refund) == "ok"
    assert "all of the money went back" in await staff.page(fields)


@pytest.mark.parametrize("action", ["/ship", "/refund"])
async def test_only_a_paid_order_of_this_shop_can_be_shipped_or_given_back(staff: Staff, action: str) -> None:
    fields = await staff.sell("grinder")
    for order, status in ((fields["merchant_order_id"], 409), ("<script>", 404), ("", 404)):
        answer = await staff.post(action, data={"order": order, "key": f"{order}-1"})
        assert answer.status_code == status
        assert "<script>" not in answer.text


async def test_a_refund_without_the_forms_key_is_refused(staff: Staff) -> None:
    order = (await staff.sold())["merchant_order_id"]
    for key in ("", "mine"):
        assert (await staff.post("/refund", data={"order": order, "key": key})).status_code == 400


async def test_a_call_without_an_answer_is_tried_again_with_the_same_key(staff: Staff, tmp_path: Path) -> None:
    fields = await staff.sold()
    order = fields["merchant_order_id"]
    key = dict(_INPUT.findall(await staff.page(fields)))["key"]
    for action in ("/ship", "/refund"):
        page = await staff.post(action, data={"order": order, "key": key, "carrier": "DHL", "tracking_id": "1"})
        assert page.status_code == 200
        assert "Press the button again; nothing is done twice" in page.text
        assert "Authorized." in page.text
        assert dict(_INPUT.findall(page.text))["key"] == key
        assert KEY not in page.text
        assert SHIPPING_KEY not in page.text
    async with open_shop(tmp_path) as later:
        assert await later.page(fields) == await staff.page(fields)
