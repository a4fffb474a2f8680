"""Disputes, which localstripe does not know."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from tests.adapters.acquirers.stripe.stub import (
    INTENTS,
    NOON,
    NOTHING,
    Stub,
    intent,
    listed,
)

from paydesk.adapters.acquirers.interface import (
    AcquirerRefused,
    Dispute,
    DisputeStatus,
)
from paydesk.adapters.acquirers.stripe import StripeAcquirer


def event(name: str, status: str, **changes: Any) -> dict[str, Any]:
    dispute = {
        "id": "du_1",
        "object": "dispute",
        "amount": 1000,
        "currency": "usd",
        "reason": "fraudulent",
        "status": status,
        "payment_intent": "pi_1",
    }
    return {"id": name, "object": "event", "created": 1777896000, "data": {"object": dispute | changes}}


class TestDisputes:
    OPENED = Dispute("du_1", "one", Decimal(10), "USD", "fraudulent", DisputeStatus.OPEN, NOON)

    async def test_events_are_read_oldest_first_and_the_newest_is_the_cursor(
        self, acquirer: StripeAcquirer, stub: Stub
    ) -> None:
        stub.will("GET", "/v1/events", listed(event("evt_3", "lost"), more=True))
        stub.will("GET", "/v1/events", listed(event("evt_2", "under_review"), event("evt_1", "needs_response")))
        stub.will("GET", f"{INTENTS}/pi_1", intent())
        page = await acquirer.disputes("")
        assert [dispute.status for dispute in page.disputes] == ["open", "open", "lost"]
        assert page.disputes[0] == self.OPENED
        assert page.next == "evt_3"
        assert stub.to("GET", "/v1/events")[1].params["starting_after"] == "evt_3"

    async def test_a_cursor_asks_only_for_what_is_newer(self, acquirer: StripeAcquirer, stub: Stub) -> None:
        stub.will("GET", "/v1/events", NOTHING)
        page = await acquirer.disputes("evt_3")
        assert (page.disputes, page.next) == ((), "evt_3")
        (sent,) = stub.asked
        assert sent.params["ending_before"] == "evt_3"
        assert "charge.dispute.created" in sent.params.values()

    async def test_a_cursor_that_stripe_forgot_reads_all_that_is_kept(
        self, acquirer: StripeAcquirer, stub: Stub
    ) -> None:
        told = {"error": {"type": "invalid_request_error", "code": "resource_missing", "message": "No such event"}}
        stub.will("GET", "/v1/events", told, 400)
        stub.will("GET", "/v1/events", listed(event("evt_9", "won")))
        stub.will("GET", f"{INTENTS}/pi_1", intent())
        page = await acquirer.disputes("evt_old")
        assert ([dispute.status for dispute in page.disputes], page.next) == (["won"], "evt_9")

    async def test_inquiries_and_payments_of_others_are_passed_over(self, acquirer: StripeAcquirer, stub: Stub) -> None:
        stub.will(
            "GET",
            "/v1/events",
            listed(
                event("evt_3", "needs_response", payment_intent="pi_2"),
                event("evt_2", "needs_response", payment_intent=None),
                event("evt_1", "warning_needs_response"),
            ),
        )
        stub.will("GET", "/v1/events", listed(event("evt_4", "needs_response")))
        stub.will("GET", f"{INTENTS}/pi_1", intent())
        stub.will("GET", f"{INTENTS}/pi_2", intent(id="pi_2", metadata={}))
        page = await acquirer.disputes("")
        assert (page.disputes, page.next) == ((self.OPENED,), "evt_4")
        assert stub.to("GET", "/v1/events")[1].params["ending_before"] == "evt_3"

    async def test_evidence_is_handed_in(self, acquirer: StripeAcquirer, stub: Stub) -> None:
        stub.will("POST", "/v1/disputes/du_1", {"id": "du_1"})
        await acquirer.submit_evidence("du_1", "a receipt")
        (sent,) = stub.asked
        assert sent.params == {"evidence[uncategorized_text]": "a receipt", "submit": "true"}

    async def test_evidence_for_nothing_is_refused(self, acquirer: StripeAcquirer, stub: Stub) -> None:
        for reference in ("", "du_1/close"):
            with pytest.raises(AcquirerRefused, match="no dispute"):
                await acquirer.submit_evidence(reference, "a receipt")
        assert stub.asked == []
