"""What is sent to Stripe, and under which keys."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest
from tests.adapters.acquirers.stripe.stub import (
    INTENTS,
    NOON,
    NOTHING,
    NUMBER,
    Stub,
    intent,
    purchase,
)

from paydesk.adapters.acquirers.interface import (
    Approved,
    Challenged,
    Declined,
    DeclineReason,
    OutcomeUnknown,
)
from paydesk.adapters.acquirers.marks import Mark, PurchaseKind
from paydesk.adapters.acquirers.stripe import StripeAcquirer
from paydesk.adapters.acquirers.stripe.objects import mark_of


class TestSending:
    async def test_a_purchase_is_one_intent_under_our_key(self, acquirer: StripeAcquirer, stub: Stub) -> None:
        stub.will("POST", INTENTS, intent())
        assert await acquirer.authorize(purchase()) == Approved("pi_1", "")
        (sent,) = stub.to("POST", INTENTS)
        assert sent.key == "one"
        assert sent.params == {
            "amount": "1000",
            "currency": "usd",
            "capture_method": "automatic",
            "confirm": "true",
            "metadata[paydesk_key]": "one",
            "metadata[paydesk_until]": "2026-05-04T12:10:00+00:00",
            "allowed_payment_method_types[0]": "card",
            "payment_method": "pm_1",
            "return_url": "https://shop.example/back",
        }

    async def test_a_purchase_says_what_it_is_for(self, acquirer: StripeAcquirer, stub: Stub) -> None:
        stub.will("POST", INTENTS, intent())
        mark = Mark("here", 1, "tag", live=True, kind=PurchaseKind.ORDER, order="order-1", payment_id=18, attempt=2)
        await acquirer.authorize(replace(purchase(), mark=mark))
        (sent,) = stub.to("POST", INTENTS)
        metadata = {name[9:-1]: text for name, text in sent.params.items() if name.startswith("metadata[")}
        assert mark_of(metadata) == mark
        assert metadata["paydesk_key"] == "one"

    async def test_the_card_is_sent_once_and_under_a_key_too(self, acquirer: StripeAcquirer, stub: Stub) -> None:
        stub.will("POST", INTENTS, intent())
        await acquirer.authorize(purchase())
        with_number = [asked for asked in stub.asked if NUMBER in str(asked.params)]
        assert [(asked.path, asked.key) for asked in with_number] == [
            ("/v1/payment_methods", "one:card:1777896600.000000")
        ]

    async def test_the_banks_address_check_gets_what_is_known(self, acquirer: StripeAcquirer, stub: Stub) -> None:
        stub.will("POST", INTENTS, intent())
        await acquirer.authorize(replace(purchase(), card=replace(purchase().card, postal_code="10115")))
        await acquirer.authorize(purchase())
        named = [asked.params for asked in stub.to("POST", "/v1/payment_methods")]
        details = [{name: text for name, text in one.items() if "address" in name} for one in named]
        assert details == [{"billing_details[address][postal_code]": "10115"}, {}]

    async def test_a_card_to_be_kept_is_kept_with_a_customer(self, acquirer: StripeAcquirer, stub: Stub) -> None:
        stub.will("POST", INTENTS, intent(customer="cus_1"))
        assert await acquirer.authorize(purchase(keep_card=True)) == Approved("pi_1", "cus_1/pm_1")
        (sent,) = stub.to("POST", INTENTS)
        assert (sent.params["customer"], sent.params["setup_future_usage"]) == ("cus_1", "off_session")

    async def test_when_a_hold_of_a_typed_card_ends_is_asked_for_with_it(
        self, acquirer: StripeAcquirer, stub: Stub
    ) -> None:
        # Stripe: a card's hold ends at `capture_before` of its charge, for some after less than 5
        # days; then the payment is canceled and nothing can be captured.
        ends = NOON + timedelta(days=4, hours=18)
        card = {"last4": "4242", "capture_before": int(ends.timestamp())}
        charge = {"id": "ch_1", "object": "charge", "payment_method_details": {"type": "card", "card": card}}
        stub.will("POST", INTENTS, intent(status="requires_capture", amount_received=0, latest_charge=charge))
        for held in (purchase(capture=False), purchase("two", capture=False, stored_reference="cus_1/pm_1")):
            answer = await acquirer.authorize(held)
            assert isinstance(answer, Approved)
            assert answer.hold_until == ends
        assert [one.params["expand[0]"] for one in stub.to("POST", INTENTS)] == ["latest_charge"] * 2

    async def test_3d_secure_for_all_is_asked_for(self, acquirer: StripeAcquirer, stub: Stub) -> None:
        stub.will("POST", INTENTS, intent())
        await acquirer.authorize(purchase(authenticate=True))
        (sent,) = stub.to("POST", INTENTS)
        assert sent.params["payment_method_options[card][request_three_d_secure]"] == "any"

    async def test_a_kept_card_is_charged_without_its_number(self, acquirer: StripeAcquirer, stub: Stub) -> None:
        stub.will("POST", INTENTS, intent(customer="cus_1"))
        await acquirer.charge_stored(purchase(network_reference="cus_1/pm_1", return_url=""))
        (sent,) = stub.asked
        assert (sent.params["customer"], sent.params["payment_method"]) == ("cus_1", "pm_1")
        assert sent.params["off_session"] == "true"
        assert "return_url" not in sent.params

    async def test_a_card_that_stripe_does_not_keep_is_declined(self, acquirer: StripeAcquirer, stub: Stub) -> None:
        kept_elsewhere = purchase(network_reference="network_payment_1")
        assert await acquirer.charge_stored(kept_elsewhere) == Declined(DeclineReason.DECLINED)
        assert stub.asked == []

    async def test_a_capture_and_a_refund_carry_their_keys(self, acquirer: StripeAcquirer, stub: Stub) -> None:
        held = intent(status="requires_capture", amount_received=0)
        stub.will("GET", f"{INTENTS}/pi_1", held)
        stub.will("POST", f"{INTENTS}/pi_1/capture", intent())
        await acquirer.capture("capture", "pi_1", Decimal(10), "USD")
        (sent,) = stub.to("POST", f"{INTENTS}/pi_1/capture")
        assert (sent.key, sent.params["metadata[paydesk_capture]"]) == ("capture", "capture")
        stub.answers["GET", f"{INTENTS}/pi_1"] = [(200, intent())]
        stub.will("GET", "/v1/refunds", NOTHING)
        stub.will("POST", "/v1/refunds", {"id": "re_1", "amount": 400, "status": "succeeded"})
        assert await acquirer.refund("refund", "pi_1", Decimal(4), "USD") == "re_1"
        (sent,) = stub.to("POST", "/v1/refunds")
        assert sent.key == "refund"
        assert sent.params == {"payment_intent": "pi_1", "amount": "400", "metadata[paydesk_key]": "refund"}

    async def test_nothing_is_ever_sent_twice_by_itself(self, acquirer: StripeAcquirer, stub: Stub) -> None:
        stub.will("POST", INTENTS, {"error": {"type": "api_error"}}, 500)
        with pytest.raises(OutcomeUnknown):
            await acquirer.authorize(purchase())
        assert len(stub.to("POST", INTENTS)) == 1

    @pytest.mark.parametrize("amount", [Decimal(10), Decimal(0)])
    async def test_nothing_is_asked_for_once_its_time_is_over(self, stub: Stub, amount: Decimal) -> None:
        times = iter([NOON, NOON + timedelta(hours=1)])
        slow = StripeAcquirer("sk_test_stub", api_base=stub.base_url, now=lambda: next(times))
        assert await slow.authorize(purchase(amount=amount)) == Declined(DeclineReason.TOO_LATE)
        assert [asked.path for asked in stub.asked] == ["/v1/payment_methods"]
        await slow.close()

    async def test_a_challenge_that_no_redirect_answers_is_ended(self, acquirer: StripeAcquirer, stub: Stub) -> None:
        waiting = intent(status="requires_action", next_action={"type": "use_stripe_sdk"}, latest_charge=None)
        stub.will("POST", INTENTS, waiting)
        stub.will("GET", f"{INTENTS}/pi_1", waiting)
        stub.will("POST", f"{INTENTS}/pi_1/cancel", intent(status="canceled"))
        assert await acquirer.authorize(purchase()) == Declined(DeclineReason.AUTHENTICATION_FAILED)
        assert stub.to("POST", f"{INTENTS}/pi_1/cancel")

    async def test_a_checked_card_may_be_challenged_too(self, acquirer: StripeAcquirer, stub: Stub) -> None:
        page = {"type": "redirect_to_url", "redirect_to_url": {"url": "https://hooks.stripe.com/3ds"}}
        made = {"id": "seti_1", "object": "setup_intent", "metadata": {"paydesk_key": "one"}, "customer": "cus_1"}
        waiting = made | {"status": "requires_action", "next_action": page, "payment_method": "pm_1"}
        stub.will("POST", "/v1/setup_intents", made | {"status": "requires_payment_method"})
        stub.will("POST", "/v1/setup_intents/seti_1/confirm", waiting)
        check = purchase(amount=Decimal(0), capture=False, keep_card=True)
        assert await acquirer.authorize(check) == Challenged("seti_1", "https://hooks.stripe.com/3ds")
        stub.will("GET", "/v1/setup_intents/seti_1", waiting | {"status": "succeeded", "next_action": None})
        assert await acquirer.find("one") == Approved("seti_1", "cus_1/pm_1")


async def test_two_questions_at_once_do_not_wait_for_each_other(acquirer: StripeAcquirer, stub: Stub) -> None:
    stub.will("POST", INTENTS, intent())
    outcomes = await asyncio.gather(*(acquirer.authorize(purchase(str(number))) for number in range(10)))
    assert outcomes == [Approved("pi_1", "")] * 10
