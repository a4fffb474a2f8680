"""Captures, refunds and voids in states that localstripe does not know."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from tests.adapters.acquirers.stripe.stub import (
    INTENTS,
    KEY_REUSED,
    NOTHING,
    SEARCH,
    Stub,
    intent,
    listed,
)

from paydesk.adapters.acquirers.interface import (
    AcquirerRefused,
    Captured,
    Declined,
    DeclineReason,
    Moved,
    OutcomeUnknown,
    Refused,
    UnderWay,
    Voided,
)
from paydesk.adapters.acquirers.stripe import StripeAcquirer


class TestMovements:
    async def test_a_partial_capture_leaves_all_of_it_to_refund(self, acquirer: StripeAcquirer, stub: Stub) -> None:
        taken = intent(amount_received=450, latest_charge={"id": "ch_1", "amount_refunded": 550})
        stub.will("GET", f"{INTENTS}/pi_1", taken)
        stub.will("GET", "/v1/refunds", listed({"id": "re_0", "amount": 550, "status": "succeeded", "metadata": {}}))
        stub.will("POST", "/v1/refunds", {"id": "re_1", "amount": 450, "status": "succeeded"})
        assert await acquirer.refund("refund", "pi_1", Decimal("4.50"), "USD") == "re_1"
        with pytest.raises(AcquirerRefused, match=r"4\.5 is left"):
            await acquirer.refund("more", "pi_1", Decimal("4.51"), "USD")

    async def test_a_refund_of_which_nobody_wrote_anything_hinders_no_other(
        self, acquirer: StripeAcquirer, stub: Stub
    ) -> None:
        # Stripe's types: the metadata of a refund may be null.
        stub.will("GET", f"{INTENTS}/pi_1", intent(latest_charge={"id": "ch_1", "amount_refunded": 300}))
        stub.will("GET", "/v1/refunds", listed({"id": "re_0", "amount": 300, "status": "succeeded", "metadata": None}))
        stub.will("POST", "/v1/refunds", {"id": "re_1", "amount": 700, "status": "succeeded", "metadata": None})
        assert await acquirer.refund("refund", "pi_1", Decimal(7), "USD") == "re_1"

    async def test_a_capture_that_stripe_works_on_is_not_made_until_it_is(
        self, acquirer: StripeAcquirer, stub: Stub
    ) -> None:
        # Stripe: of an intent that requires a capture, attempting that moves it to `processing`.
        asked = {"paydesk_key": "one", "paydesk_capture": "capture"}
        held = intent(status="requires_capture", amount_received=0)
        working = intent(status="processing", amount_received=0, metadata=asked)
        stub.will("GET", f"{INTENTS}/pi_1", held)
        stub.will("POST", f"{INTENTS}/pi_1/capture", working)
        with pytest.raises(OutcomeUnknown, match="not done"):
            await acquirer.capture("capture", "pi_1", Decimal(10), "USD")
        stub.answers["GET", f"{INTENTS}/pi_1"] = [(200, working)]
        stub.will("GET", "/v1/refunds", NOTHING)
        assert await acquirer.find_movement("capture", "one", "pi_1") == UnderWay()
        with pytest.raises(OutcomeUnknown, match="not done"):
            await acquirer.capture("capture", "pi_1", Decimal(10), "USD")
        assert len(stub.to("POST", f"{INTENTS}/pi_1/capture")) == 1
        stub.answers["GET", f"{INTENTS}/pi_1"] = [(200, intent(metadata=asked))]
        assert await acquirer.find_movement("capture", "one", "pi_1") == Moved("pi_1")
        await acquirer.capture("capture", "pi_1", Decimal(10), "USD")

    async def test_a_capture_that_failed_in_the_end_is_refused(self, acquirer: StripeAcquirer, stub: Stub) -> None:
        asked = {"paydesk_key": "one", "paydesk_capture": "capture"}
        stub.will("GET", f"{INTENTS}/pi_1", intent(status="canceled", amount_received=0, metadata=asked))
        with pytest.raises(AcquirerRefused, match="nothing is held any more"):
            await acquirer.capture("capture", "pi_1", Decimal(10), "USD")

    async def test_what_is_held_no_more_since_its_capture_failed_is_let_go_of(
        self, acquirer: StripeAcquirer, stub: Stub
    ) -> None:
        # Stripe: an intent that was processing returns to `requires_payment_method` if that fails.
        failed = {"code": "card_declined", "decline_code": "generic_decline"}
        back = intent(status="requires_payment_method", amount_received=0, last_payment_error=failed)
        back["metadata"] = {"paydesk_key": "one", "paydesk_capture": "capture"}
        stub.will("GET", SEARCH, listed(back))
        stub.will("GET", f"{INTENTS}/pi_1", back)
        with pytest.raises(AcquirerRefused, match="nothing is left"):
            await acquirer.capture("capture", "pi_1", Decimal(10), "USD")
        assert await acquirer.void("void", "one") == Declined(DeclineReason.DECLINED)

    async def test_disputed_money_is_not_refunded(self, acquirer: StripeAcquirer, stub: Stub) -> None:
        stub.will("GET", f"{INTENTS}/pi_1", intent())
        stub.will("GET", "/v1/refunds", NOTHING)
        told = {"type": "invalid_request_error", "code": "charge_disputed", "message": "Charge has been charged back."}
        stub.will("POST", "/v1/refunds", {"error": told}, 400)
        with pytest.raises(AcquirerRefused, match="charged back"):
            await acquirer.refund("refund", "pi_1", Decimal(1), "USD")

    @pytest.mark.parametrize("status", ["pending", "requires_action"])
    async def test_a_refund_that_is_made_but_on_its_way_has_no_outcome_yet(
        self, acquirer: StripeAcquirer, stub: Stub, status: str
    ) -> None:
        stub.will("GET", f"{INTENTS}/pi_1", intent())
        stub.will("GET", "/v1/refunds", NOTHING)
        stub.will("POST", "/v1/refunds", {"id": "re_1", "amount": 400, "status": status})
        with pytest.raises(OutcomeUnknown, match=f"re_1 is {status}"):
            await acquirer.refund("refund", "pi_1", Decimal(4), "USD")

    @pytest.mark.parametrize("status", ["pending", "requires_action"])
    async def test_a_refund_that_is_found_on_its_way_has_no_outcome_yet(
        self, acquirer: StripeAcquirer, stub: Stub, status: str
    ) -> None:
        on_its_way = {"id": "re_1", "amount": 400, "status": status, "metadata": {"paydesk_key": "refund"}}
        stub.will("GET", f"{INTENTS}/pi_1", intent(latest_charge={"id": "ch_1", "amount_refunded": 400}))
        stub.will("GET", "/v1/refunds", listed(on_its_way))
        with pytest.raises(OutcomeUnknown, match=f"re_1 is {status}"):
            await acquirer.find_movement("refund", "one", "pi_1")
        with pytest.raises(OutcomeUnknown, match=f"re_1 is {status}"):
            await acquirer.refund("refund", "pi_1", Decimal(4), "USD")

    async def test_a_refund_that_failed_later_is_found_as_refused(self, acquirer: StripeAcquirer, stub: Stub) -> None:
        stub.will("GET", f"{INTENTS}/pi_1", intent(latest_charge={"id": "ch_1", "amount_refunded": 400}))
        failed = {"id": "re_1", "amount": 400, "status": "failed", "metadata": {"paydesk_key": "refund"}}
        stub.will("GET", "/v1/refunds", listed(failed))
        assert await acquirer.find_movement("refund", "one", "pi_1") == Refused("Stripe's refund re_1 failed")

    @pytest.mark.parametrize("status", ["failed", "canceled"])
    async def test_a_refund_that_failed_never_counts_as_made(
        self, acquirer: StripeAcquirer, stub: Stub, status: str
    ) -> None:
        # Stripe takes the amount of a refund that failed out of the charge's `amount_refunded`
        # again.
        stub.will("GET", f"{INTENTS}/pi_1", intent())
        gone = {"id": "re_1", "amount": 400, "status": status, "metadata": {"paydesk_key": "refund"}}
        stub.will("GET", "/v1/refunds", listed(gone | {"failure_reason": "lost_or_stolen_card"}))
        why = f"Stripe's refund re_1 {status}: lost_or_stolen_card"
        assert await acquirer.find_movement("refund", "one", "pi_1") == Refused(why)
        with pytest.raises(AcquirerRefused, match=why):
            await acquirer.refund("refund", "pi_1", Decimal(4), "USD")
        assert stub.to("POST", "/v1/refunds") == []

    async def test_a_movements_key_that_stands_for_something_else_is_refused(
        self, acquirer: StripeAcquirer, stub: Stub
    ) -> None:
        stub.will("GET", f"{INTENTS}/pi_1", intent(status="requires_capture", amount_received=0))
        stub.will("POST", f"{INTENTS}/pi_1/capture", KEY_REUSED, 400)
        with pytest.raises(AcquirerRefused, match="another request"):
            await acquirer.capture("used", "pi_1", Decimal(10), "USD")

    @pytest.mark.parametrize("reference", ["pi_1/../../v1/refunds", "pi_1?x=1", "ch_1", "", "pi_%2e%2e"])
    async def test_a_reference_that_is_none_reaches_nobody(
        self, acquirer: StripeAcquirer, stub: Stub, reference: str
    ) -> None:
        with pytest.raises(AcquirerRefused, match="no payment of this reference"):
            await acquirer.capture("key", reference, Decimal(10), "USD")
        assert stub.asked == []

    async def test_a_payment_of_somebody_else_at_the_account_is_left_alone(
        self, acquirer: StripeAcquirer, stub: Stub
    ) -> None:
        stub.will("GET", f"{INTENTS}/pi_1", intent(metadata={}))
        with pytest.raises(AcquirerRefused, match="no payment of this reference"):
            await acquirer.refund("refund", "pi_1", Decimal(1), "USD")

    async def test_a_void_that_loses_to_a_capture_leaves_the_money(self, acquirer: StripeAcquirer, stub: Stub) -> None:
        stub.will("GET", SEARCH, listed(intent()))
        held = intent(status="requires_capture", amount_received=0, metadata={"paydesk_key": "one"})
        stub.will("GET", f"{INTENTS}/pi_1", held)
        stub.will("GET", f"{INTENTS}/pi_1", intent())
        stub.will("POST", f"{INTENTS}/pi_1", held)
        told = {"type": "invalid_request_error", "code": "payment_intent_unexpected_state", "message": "succeeded"}
        stub.will("POST", f"{INTENTS}/pi_1/cancel", {"error": told}, 400)
        assert await acquirer.void("void", "one") == Captured("pi_1", Decimal(10))
        assert stub.to("POST", "/v1/refunds") == []

    async def test_undoing_what_is_captured_meanwhile_gives_the_money_back(
        self, acquirer: StripeAcquirer, stub: Stub
    ) -> None:
        stub.will("GET", SEARCH, listed(intent()))
        held = intent(status="requires_capture", amount_received=0, metadata={"paydesk_key": "one"})
        stub.will("GET", f"{INTENTS}/pi_1", held)
        stub.will("GET", f"{INTENTS}/pi_1", intent())
        stub.will("POST", f"{INTENTS}/pi_1", held)
        told = {"type": "invalid_request_error", "code": "payment_intent_unexpected_state", "message": "succeeded"}
        stub.will("POST", f"{INTENTS}/pi_1/cancel", {"error": told}, 400)
        stub.will("GET", "/v1/refunds", NOTHING)
        stub.will("POST", "/v1/refunds", {"id": "re_1", "amount": 1000, "status": "succeeded"})
        assert type(await acquirer.undo("void", "one")).__name__ == "Voided"
        (sent,) = stub.to("POST", "/v1/refunds")
        assert (sent.key, sent.params["metadata[paydesk_void]"]) == ("void", "void")

    @pytest.mark.parametrize("status", ["pending", "requires_action"])
    async def test_an_undoing_is_under_way_until_stripe_has_given_the_money_back(
        self, acquirer: StripeAcquirer, stub: Stub, status: str
    ) -> None:
        # Stripe: a refund is pending until the account's balance covers it, and may fail then.
        stub.will("GET", SEARCH, listed(intent()))
        stub.will("GET", f"{INTENTS}/pi_1", intent())
        stub.will("GET", "/v1/refunds", NOTHING)
        made = {"id": "re_1", "amount": 1000, "metadata": {"paydesk_key": "void", "paydesk_void": "void"}}
        stub.will("POST", "/v1/refunds", made | {"status": status})
        assert await acquirer.undo("void", "one") == UnderWay()
        stub.answers["GET", f"{INTENTS}/pi_1"] = [(200, refunded())]
        stub.answers["GET", "/v1/refunds"] = [(200, listed(made | {"status": status}))]
        assert await acquirer.undo("void", "one") == UnderWay()
        stub.answers["GET", "/v1/refunds"] = [(200, listed(made | {"status": "succeeded"}))]
        assert await acquirer.undo("void", "one") == Voided()
        assert len(stub.to("POST", "/v1/refunds")) == 1

    @pytest.mark.parametrize("status", ["failed", "canceled"])
    async def test_an_undoing_whose_refund_came_to_nothing_is_made_anew_a_few_times(
        self, acquirer: StripeAcquirer, stub: Stub, status: str
    ) -> None:
        stub.will("GET", SEARCH, listed(intent()))
        stub.will("GET", f"{INTENTS}/pi_1", intent())
        gone = [
            {
                "id": f"re_{n}",
                "amount": 1000,
                "status": status,
                "metadata": {"paydesk_key": key, "paydesk_void": "void"},
            }
            for n, key in enumerate(("void", "void:1", "void:2"))
        ]
        stub.will("GET", "/v1/refunds", listed(gone[0]))
        stub.will("POST", "/v1/refunds", {"id": "re_1", "amount": 1000, "status": "succeeded"})
        assert await acquirer.undo("void", "one") == Voided()
        (again,) = stub.to("POST", "/v1/refunds")
        # Under the key of the first one Stripe would only tell of that again.
        assert (again.key, again.params["metadata[paydesk_void]"]) == ("void:1", "void")
        stub.answers["GET", "/v1/refunds"] = [(200, listed(*reversed(gone)))]
        with pytest.raises(AcquirerRefused, match="another way"):
            await acquirer.undo("void", "one")
        assert len(stub.to("POST", "/v1/refunds")) == 1

    async def test_what_an_undoing_gave_back_is_no_capture_to_a_void(
        self, acquirer: StripeAcquirer, stub: Stub
    ) -> None:
        made = {"id": "re_1", "amount": 1000, "status": "succeeded", "metadata": {"paydesk_void": "void"}}
        stub.will("GET", SEARCH, listed(intent()))
        stub.will("GET", f"{INTENTS}/pi_1", refunded())
        stub.will("GET", "/v1/refunds", listed(made))
        assert await acquirer.void("void", "one") == Voided()


def refunded() -> dict[str, Any]:
    return intent(latest_charge={"id": "ch_1", "object": "charge", "amount_refunded": 1000})
