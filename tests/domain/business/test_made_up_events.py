"""Made-up pingbacks look like real ones, and are about nothing that exists."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from paydesk.domain.business.made_up_events import EMAIL, EVENTS, NOBODYS_ID, ORDER, make_up
from paydesk.domain.business.pingback_settings import EXTRA_EVENTS
from paydesk.domain.merchants.merchant import MUTABLE_EVENTS

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)


def made(event: str) -> dict[str, Any]:
    return dict(msgspec.json.decode(make_up(event, NOW)))


def test_every_event_that_a_merchant_may_be_told_of_can_be_tried() -> None:
    # Who asks to be told of pauses is told of their ends.
    always = ("payment", "subscription_stopped", "subscription_cancelled", "subscription_resumed")
    assert set(EVENTS) == {*always, *EXTRA_EVENTS, *MUTABLE_EVENTS}


@pytest.mark.parametrize("event", EVENTS)
def test_each_is_marked_by_its_order_and_an_id_that_nobody_has(event: str) -> None:
    body = made(event)
    assert body["event"] == event
    about = body.get("payment_order") or body["subscription"]
    assert about["id"] == NOBODYS_ID
    assert ORDER in (about.get("merchant_order_id"), about.get("package", {}).get("sku_id"))
    assert "pingback_ts" not in body


def test_a_payment_adds_up_and_has_its_user() -> None:
    body = made("payment")
    order = body["payment_order"]
    assert round(order["merchant_net_revenue"] + order["merchant_rolling_reserve"] + order["fees"], 4) == 10
    assert (body["user"]["email"], body["with_risk_check"], order["payment_system"]) == (EMAIL, False, 1)


@pytest.mark.parametrize(
    ("event", "status"),
    [
        ("refund", "reversal_refunded"),
        ("partial_refund", "reversal_refunded_partially"),
        ("chargeback", "reversal_chargeback"),
        ("chargeback_reversed", "successful"),
    ],
)
def test_a_reversal_says_how_the_order_stands(event: str, status: str) -> None:
    assert made(event)["payment_order"]["status"] == status
    assert made(event)["payment_order"]["reference_id"] == NOBODYS_ID


@pytest.mark.parametrize(("event", "status"), [("subscription_paused", "Paused"), ("subscription_resumed", "Active")])
def test_a_pause_says_what_is_to_come(event: str, status: str) -> None:
    subscription = made(event)["subscription"]
    assert subscription["status"] == status
    assert (subscription["change_request"] is None) is (subscription["date_next"] > 0) is (status == "Active")


@pytest.mark.parametrize("event", ["subscription_stopped", "subscription_cancelled"])
def test_an_end_of_a_subscription_says_when(event: str) -> None:
    subscription = made(event)["subscription"]
    assert (subscription["status"], subscription["date_cancelled"]) == ("Cancelled", int(NOW.timestamp()))
    assert bool(subscription["date_stopped"]) == (event == "subscription_stopped")
