"""What the shop's staff sees and does: parcels, money that goes back, and pingbacks about both."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.markup import Markup
from tests.web.demo.visiting import PRIVATE_KEY, SHIPPING_KEY, SHOP, Visitor

from paydesk.domain.payments.time_to_ship import TIME_TO_SHIP
from paydesk.web.demo import create_shop
from paydesk_client import Gateway

# Nobody listens there: each call to Paydesk gets no answer.
PAYDESK = "http://127.0.0.1:1"


def open_shop(folder: Path) -> Visitor:
    gateways = Gateway("usual", PRIVATE_KEY, PAYDESK), Gateway("shipping", SHIPPING_KEY, PAYDESK)
    shop = create_shop(*gateways, base_url=SHOP, folder=folder, time_to_ship=TIME_TO_SHIP)
    return Visitor(transport=httpx.ASGITransport(shop), base_url=SHOP, follow_redirects=True)


@pytest.fixture
async def staff(tmp_path: Path) -> AsyncIterator[Visitor]:
    async with open_shop(tmp_path) as staff:
        yield staff


async def test_shipped_goods_are_sold_under_an_account_of_their_own(staff: Visitor) -> None:
    fields = await staff.buy("grinder")
    assert fields["api_key"] == "shipping"
    assert Gateway("shipping", SHIPPING_KEY).signature().verify(fields, fields["hash"])
    assert await staff.tell(fields, "payment", key=PRIVATE_KEY) == "NOK"
    assert await staff.tell(fields, "payment") == "ok"


async def test_an_authorized_order_says_until_when_it_must_be_shipped(staff: Visitor) -> None:
    fields = await staff.sold()
    for page in (await staff.thanks(fields), (await staff.get("/orders")).text):
        assert "Authorized" in page
        assert "2031-03-08 09:44:16 UTC" in page


async def test_goods_that_are_sent_at_once_are_paid_at_once(staff: Visitor) -> None:
    page = await staff.thanks(await staff.sold("mug"))
    assert "Paid." in page
    assert "Mark as shipped" not in page
    assert ">Refund<" in page


async def test_the_end_of_the_hold_means_that_nothing_is_shipped(staff: Visitor) -> None:
    fields = await staff.sold()
    refund: dict[str, Any] = {
        "status": "reversal_refunded",
        "refund_amount": 89,
        "total_refunded_amount": 89,
        "reference_id": 3,
    }
    await staff.tell(fields, "refund", **refund)
    page = await staff.thanks(fields)
    assert "Not taken." in page
    assert "Mark as shipped" not in page


async def test_a_refund_that_is_told_twice_counts_once(staff: Visitor) -> None:
    fields = await staff.sold("mug")
    part: dict[str, Any] = {"status": "reversal_refunded_partially", "refund_amount": 4.5, "reference_id": 3}
    for _ in range(2):
        assert await staff.tell(fields, "partial_refund", **part) == "ok"
    assert "€4.50 went back" in await staff.thanks(fields)
    await staff.tell(fields, "partial_refund", **part | {"reference_id": 4})
    assert "€9.00 went back" in await staff.thanks(fields)
    await staff.tell(fields, "refund", status="reversal_refunded", refund_amount=15.9, reference_id=5)
    page = await staff.thanks(fields)
    assert "Refunded." in page
    assert ">Refund<" not in page


async def test_a_chargeback_and_its_end_are_shown(staff: Visitor) -> None:
    fields = await staff.sold("mug")
    dispute: dict[str, Any] = {"chargeback_amount": 24.9, "reason": "fraudulent", "reference_id": 9}
    await staff.tell(fields, "chargeback", status="reversal_chargeback", **dispute)
    assert "Charged back." in await staff.thanks(fields)
    await staff.tell(fields, "chargeback_reversed", **dispute)
    assert "Paid." in await staff.thanks(fields)


async def test_a_forged_refund_changes_nothing(staff: Visitor) -> None:
    fields = await staff.sold("mug")
    assert await staff.tell(fields, "refund", key="guessed", refund_amount=24.9, reference_id=3) == "NOK"
    assert "Paid." in await staff.thanks(fields)


@pytest.mark.parametrize("told", [{"refund_amount": "NaN"}, {"refund_amount": None}, {"reference_id": ""}])
async def test_a_refund_that_cannot_be_counted_is_noted_only(staff: Visitor, told: dict[str, Any]) -> None:
    fields = await staff.sold("mug")
    assert await staff.tell(fields, "refund", **{"refund_amount": 24.9, "reference_id": 3} | told) == "ok"
    assert "Paid." in await staff.thanks(fields)


async def test_a_refunded_renewal_is_found_by_the_reference_of_the_first_payment(staff: Visitor) -> None:
    fields = await staff.buy("club")
    reference = f"{fields['merchant_order_id']}:2"
    refund: dict[str, Any] = {"merchant_order_id": reference, "refund_amount": 12, "reference_id": 3}
    assert await staff.tell(fields, "refund", **refund) == "ok"
    assert "all of the money went back" in await staff.thanks(fields)


@pytest.mark.parametrize("action", ["/ship", "/refund"])
async def test_only_a_paid_order_of_this_shop_can_be_shipped_or_given_back(staff: Visitor, action: str) -> None:
    fields = await staff.buy("grinder")
    for order, status in ((fields["merchant_order_id"], 409), ("<script>", 404), ("", 404)):
        answer = await staff.post(action, data={"order": order, "key": f"{order}-1"})
        assert answer.status_code == status
        assert "<script>" not in answer.text


async def test_a_refund_without_the_forms_key_is_refused(staff: Visitor) -> None:
    order = (await staff.sold())["merchant_order_id"]
    for key in ("", "mine"):
        assert (await staff.post("/refund", data={"order": order, "key": key})).status_code == 400


async def test_a_call_without_an_answer_is_tried_again_with_the_same_key(staff: Visitor, tmp_path: Path) -> None:
    fields = await staff.sold()
    order = fields["merchant_order_id"]
    key = Markup(await staff.thanks(fields)).inputs()["key"]
    for action in ("/ship", "/refund"):
        page = await staff.post(action, data={"order": order, "key": key, "carrier": "DHL", "tracking_id": "1"})
        assert page.status_code == 200
        assert "Press the button again; nothing is done twice" in page.text
        assert "Authorized." in page.text
        assert Markup(page.text).inputs()["key"] == key
        assert PRIVATE_KEY not in page.text
        assert SHIPPING_KEY not in page.text
    async with open_shop(tmp_path) as later:
        assert await later.thanks(fields) == await staff.thanks(fields)
