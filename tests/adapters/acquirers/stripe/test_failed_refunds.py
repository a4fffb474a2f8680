"""Refunds that Stripe could not deliver, as its events tell of them."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from tests.adapters.acquirers.stripe.stub import INTENTS, NOTHING, Stub, intent, listed

from paydesk.adapters.acquirers.disputes import FailedRefund
from paydesk.adapters.acquirers.interface import OutcomeUnknown
from paydesk.adapters.acquirers.stripe import StripeAcquirer

EVENTS = "/v1/events"


def event(number: int, **changes: Any) -> dict[str, Any]:
    """What Stripe's documents show of a refund that failed after it had succeeded."""
    refund = {
        "id": f"re_{number}",
        "object": "refund",
        "amount": 400,
        "currency": "usd",
        "status": "failed",
        "failure_balance_transaction": "txn_2",
        "failure_reason": "expired_or_canceled_card",
        "metadata": {"paydesk_key": f"refund-{number}"},
        "payment_intent": "pi_1",
    }
    told = {"object": refund | changes, "previous_attributes": {"status": "succeeded"}}
    return {"id": f"evt_{number}", "object": "event", "created": 1_700_000_000, "type": "refund.failed", "data": told}


class TestReading:
    async def test_a_refund_that_failed_is_told_in_main_units(self, acquirer: StripeAcquirer, stub: Stub) -> None:
        stub.will("GET", EVENTS, listed(event(1)))
        page = await acquirer.failed_refunds("")
        at = datetime.fromtimestamp(1_700_000_000, UTC)
        reason = "expired_or_canceled_card"
        assert page.refunds == (FailedRefund("re_1", "refund-1", Decimal(4), "USD", reason, at),)
        assert page.next == "evt_1"

    async def test_of_several_that_were_to_undo_a_charge_each_is_told_by_the_key_of_that(
        self, acquirer: StripeAcquirer, stub: Stub
    ) -> None:
        stub.will("GET", EVENTS, listed(event(1, metadata={"paydesk_key": "one:void:1", "paydesk_void": "one:void"})))
        (told,) = (await acquirer.failed_refunds("")).refunds
        assert told.key == "one:void"

    async def test_what_did_not_fail_or_is_not_ours_is_passed_over(self, acquirer: StripeAcquirer, stub: Stub) -> None:
        stub.will("GET", EVENTS, listed(event(2, status="succeeded"), event(1, metadata={})))
        stub.will("GET", EVENTS, NOTHING)
        stub.will("GET", f"{INTENTS}/pi_1", intent(metadata={}))
        page = await acquirer.failed_refunds("")
        assert (page.refunds, page.next) == ((), "evt_2")
        assert [one.params.get("ending_before") for one in stub.to("GET", EVENTS)] == [None, "evt_2"]

    @pytest.mark.parametrize("metadata", [{}, None])
    async def test_one_of_stripe_s_own_pages_is_ours_if_its_payment_is(
        self, acquirer: StripeAcquirer, stub: Stub, metadata: dict[str, str] | None
    ) -> None:
        stub.will("GET", EVENTS, listed(event(1, metadata=metadata)))
        stub.will("GET", EVENTS, NOTHING)
        stub.will("GET", f"{INTENTS}/pi_1", intent())
        (told,) = (await acquirer.failed_refunds("")).refunds
        assert (told.reference, told.key, told.amount) == ("re_1", "", Decimal(4))

    async def test_whose_it_is_must_be_known_before_it_is_passed_over(
        self, acquirer: StripeAcquirer, stub: Stub
    ) -> None:
        stub.will("GET", EVENTS, listed(event(1, metadata={})))
        stub.will("GET", EVENTS, NOTHING)
        stub.will("GET", f"{INTENTS}/pi_1", {"error": {"type": "api_error"}}, 500)
        with pytest.raises(OutcomeUnknown):
            await acquirer.failed_refunds("")

    async def test_the_oldest_comes_first(self, acquirer: StripeAcquirer, stub: Stub) -> None:
        stub.will("GET", EVENTS, listed(event(3), event(2), more=True))
        stub.will("GET", EVENTS, listed(event(1, status="canceled", failure_reason=None)))
        page = await acquirer.failed_refunds("")
        assert [one.reference for one in page.refunds] == ["re_1", "re_2", "re_3"]
        assert page.refunds[0].reason == "canceled"
        assert page.next == "evt_3"

    async def test_a_cursor_that_stripe_has_forgotten_begins_anew(self, acquirer: StripeAcquirer, stub: Stub) -> None:
        forgotten = {"error": {"type": "invalid_request_error", "code": "resource_missing", "message": "No such event"}}
        stub.will("GET", EVENTS, forgotten, 404)
        stub.will("GET", EVENTS, listed(event(1)))
        assert len((await acquirer.failed_refunds("evt_0")).refunds) == 1

    async def test_no_answer_is_unknown(self, acquirer: StripeAcquirer, stub: Stub) -> None:
        stub.will("GET", EVENTS, "not json")
        with pytest.raises(OutcomeUnknown):
            await acquirer.failed_refunds("evt_0")
