"""What Stripe's errors mean."""

from __future__ import annotations

import logging
from decimal import Decimal
from typing import Any

import pytest
from tests.adapters.acquirers.stripe.stub import (
    INTENTS,
    NOON,
    NUMBER,
    SEARCH,
    Stub,
    intent,
    listed,
    purchase,
)

from paydesk.adapters.acquirers.interface import (
    AcquirerRefused,
    Declined,
    DeclineReason,
    OutcomeUnknown,
)
from paydesk.adapters.acquirers.stripe import StripeAcquirer
from paydesk.core.errors import SetupError


class TestErrors:
    @pytest.mark.parametrize(
        ("status", "body"),
        [
            (500, {"error": {"type": "api_error", "message": "down"}}),
            (503, "<html>busy</html>"),
            (429, {"error": {"type": "invalid_request_error", "code": "rate_limit"}}),
            (409, {"error": {"type": "invalid_request_error", "code": "lock_timeout"}}),
            (200, "<html>captive portal</html>"),
            (200, {"object": "payment_intent"}),
            (200, None),
        ],
    )
    async def test_whatever_is_not_a_clear_answer_is_unknown(
        self, acquirer: StripeAcquirer, stub: Stub, status: int, body: Any
    ) -> None:
        stub.will("POST", INTENTS, body, status)
        with pytest.raises(OutcomeUnknown):
            await acquirer.authorize(purchase())

    async def test_no_connection_is_unknown(self) -> None:
        nobody = StripeAcquirer("sk_test_stub", api_base="http://127.0.0.1:1", now=lambda: NOON)
        with pytest.raises(OutcomeUnknown):
            await nobody.authorize(purchase())
        await nobody.close()

    async def test_no_answer_in_time_is_unknown(self, stub: Stub) -> None:
        impatient = StripeAcquirer("sk_test_stub", api_base=stub.base_url, timeout=0.000001, now=lambda: NOON)
        with pytest.raises(OutcomeUnknown):
            await impatient.find("one")
        await impatient.close()

    async def test_a_wrong_secret_key_is_refused_with_advice(self, acquirer: StripeAcquirer, stub: Stub) -> None:
        stub.will("POST", INTENTS, {"error": {"type": "invalid_request_error", "message": "Invalid API Key"}}, 401)
        with pytest.raises(AcquirerRefused, match="PAYDESK_STRIPE_SECRET_KEY"):
            await acquirer.authorize(purchase())

    async def test_a_look_up_with_a_wrong_secret_key_tells_nothing(self, acquirer: StripeAcquirer, stub: Stub) -> None:
        told = {"error": {"type": "invalid_request_error", "message": "Invalid API Key"}}
        stub.will("GET", SEARCH, told, 401)
        stub.will("GET", f"{INTENTS}/pi_1", told, 401)
        stub.will("POST", INTENTS, told, 401)
        stub.will("GET", "/v1/setup_intents", told, 401)
        for question in (
            acquirer.find("one"),
            acquirer.find_movement("refund", "one", "pi_1"),
            acquirer.refund("refund", "pi_1", Decimal(1), "USD"),
            acquirer.void("void", "one"),
        ):
            with pytest.raises(OutcomeUnknown, match="PAYDESK_STRIPE_SECRET_KEY"):
                await question

    @pytest.mark.parametrize(
        ("kept", "status"),
        [
            ({"id": "pm_1", "object": "payment_method", "customer": None}, 200),
            ({"error": {"type": "invalid_request_error", "code": "resource_missing", "message": "No such one"}}, 404),
        ],
        ids=["detached", "gone with its customer"],
    )
    async def test_what_stripe_does_not_keep_any_more_is_declined_and_no_refused_request(
        self, acquirer: StripeAcquirer, stub: Stub, kept: Any, status: int
    ) -> None:
        # Stripe: once a method is detached it can no longer be used for a payment; it is one of an
        # invalid request without a code.
        told = {"type": "invalid_request_error", "message": "It may not be used again."}
        stub.will("POST", INTENTS, {"error": told}, 400)
        stub.will("GET", "/v1/payment_methods/pm_1", kept, status)
        stub.will("GET", "/v1/customers/cus_1", {"id": "cus_1", "object": "customer", "deleted": True})
        renewal = purchase(network_reference="cus_1/pm_1", return_url="")
        assert await acquirer.charge_stored(renewal) == Declined(DeclineReason.DECLINED)
        one_click = purchase(stored_reference="cus_1/pm_1/card")
        assert await acquirer.authorize(one_click) == Declined(DeclineReason.DECLINED)

    @pytest.mark.parametrize(
        ("kept", "status"),
        [
            ({"id": "pm_1", "object": "payment_method", "customer": "cus_1"}, 200),
            ({"error": {"type": "api_error", "message": "down"}}, 500),
        ],
        ids=["kept", "unknown"],
    )
    async def test_a_refused_charge_of_what_stripe_keeps_stays_refused_with_its_reason(
        self, acquirer: StripeAcquirer, stub: Stub, kept: Any, status: int
    ) -> None:
        told = {"type": "invalid_request_error", "code": "amount_too_small", "message": "Amount too small."}
        stub.will("POST", INTENTS, {"error": told}, 400)
        stub.will("GET", "/v1/payment_methods/pm_1", kept, status)
        with pytest.raises(AcquirerRefused, match=r"Amount too small\."):
            await acquirer.charge_stored(purchase(network_reference="cus_1/pm_1", return_url=""))

    @pytest.mark.parametrize("status", [404, 403], ids=["unknown there", "not allowed"])
    async def test_what_another_account_keeps_is_no_decline(
        self, acquirer: StripeAcquirer, stub: Stub, status: int
    ) -> None:
        # Stripe: with the key of another account, or of the other side, nothing that is kept is
        # found. A deleted customer can still be retrieved where it was.
        told = {"error": {"type": "invalid_request_error", "code": "resource_missing", "message": "No such one."}}
        stub.will("POST", INTENTS, told, 400)
        stub.will("GET", "/v1/payment_methods/pm_1", told, 404)
        stub.will("GET", "/v1/customers/cus_1", told, status)
        with pytest.raises(AcquirerRefused, match="No such one"):
            await acquirer.charge_stored(purchase(network_reference="cus_1/pm_1", return_url=""))
        with pytest.raises(AcquirerRefused, match="No such one"):
            await acquirer.authorize(purchase(stored_reference="cus_1/pm_1/card"))

    @pytest.mark.parametrize("code", ["payment_intent_mandate_invalid", "india_recurring_payment_mandate_canceled"])
    async def test_a_mandate_that_was_revoked_is_a_decline(
        self, acquirer: StripeAcquirer, stub: Stub, code: str
    ) -> None:
        # Stripe: an inactive mandate was rejected or revoked, and is good for no payment any more.
        told = {"type": "invalid_request_error", "code": code, "message": "The provided mandate is invalid."}
        stub.will("POST", INTENTS, {"error": told}, 400)
        renewal = purchase(stored_reference="cus_1/pm_1/sepa_debit", return_url="")
        assert await acquirer.charge_stored(renewal) == Declined(DeclineReason.DECLINED)

    async def test_a_payment_that_is_not_there_is_refused(self, acquirer: StripeAcquirer, stub: Stub) -> None:
        missing = {"error": {"type": "invalid_request_error", "code": "resource_missing", "message": "No such intent"}}
        stub.will("GET", f"{INTENTS}/pi_1", missing, 404)
        with pytest.raises(AcquirerRefused, match="no payment of this reference to refund"):
            await acquirer.refund("refund", "pi_1", Decimal(1), "USD")

    async def test_an_invalid_request_is_refused_with_stripes_reason(
        self, acquirer: StripeAcquirer, stub: Stub
    ) -> None:
        told = {"error": {"type": "invalid_request_error", "code": "amount_too_small", "message": "Amount too small."}}
        stub.will("POST", INTENTS, told, 400)
        with pytest.raises(AcquirerRefused, match=r"Amount too small\."):
            await acquirer.authorize(purchase())

    @pytest.mark.parametrize(
        ("code", "decline_code", "reason"),
        [
            ("card_declined", "generic_decline", DeclineReason.DECLINED),
            ("card_declined", "insufficient_funds", DeclineReason.INSUFFICIENT_FUNDS),
            ("card_declined", "stolen_card", DeclineReason.STOLEN_CARD),
            ("card_declined", "invalid_account", DeclineReason.CLOSED_ACCOUNT),
            ("card_declined", "a_code_of_tomorrow", DeclineReason.DECLINED),
            ("card_declined", None, DeclineReason.DECLINED),
            ("account_closed", None, DeclineReason.CLOSED_ACCOUNT),
            ("no_account", None, DeclineReason.CLOSED_ACCOUNT),
            ("debit_not_authorized", None, DeclineReason.DECLINED),
            ("expired_card", None, DeclineReason.EXPIRED_CARD),
            ("expired_payment_method", None, DeclineReason.EXPIRED_CARD),
            ("incorrect_cvc", None, DeclineReason.WRONG_CVC),
            ("processing_error", None, DeclineReason.PROCESSING_ERROR),
            ("authentication_required", "authentication_required", DeclineReason.AUTHENTICATION_FAILED),
        ],
    )
    async def test_stripes_declines_are_ours(
        self, acquirer: StripeAcquirer, stub: Stub, code: str, decline_code: str | None, reason: DeclineReason
    ) -> None:
        error = {"type": "card_error", "code": code, "decline_code": decline_code, "message": "Your card was declined."}
        stub.will("POST", INTENTS, {"error": error}, 402)
        assert await acquirer.authorize(purchase()) == Declined(reason)
        failed = intent(status="requires_payment_method", last_payment_error=error, amount_received=0)
        stub.will("GET", SEARCH, listed(failed))
        stub.will("GET", f"{INTENTS}/pi_1", failed)
        assert await acquirer.find("one") == Declined(reason)

    @pytest.mark.parametrize("status", [400, 402])
    async def test_a_card_past_its_date_is_declined_before_any_purchase(
        self, acquirer: StripeAcquirer, stub: Stub, status: int
    ) -> None:
        error = {
            "type": "card_error",
            "code": "invalid_expiry_year",
            "message": "Your card's expiration year is invalid.",
        }
        stub.answers["POST", "/v1/payment_methods"] = [(status, {"error": error})]
        assert await acquirer.authorize(purchase()) == Declined(DeclineReason.EXPIRED_CARD)
        assert stub.to("POST", INTENTS) == []

    @pytest.mark.parametrize("status", [200, 400, 401, 500])
    async def test_no_card_number_is_in_an_error_or_a_log(
        self, acquirer: StripeAcquirer, stub: Stub, caplog: pytest.LogCaptureFixture, status: int
    ) -> None:
        stub.answers["POST", "/v1/payment_methods"] = [(status, {"error": {"message": "no"}} if status > 200 else "?")]
        with caplog.at_level(logging.DEBUG), pytest.raises((AcquirerRefused, OutcomeUnknown)) as raised:
            await acquirer.authorize(purchase())
        seen: BaseException | None = raised.value
        while seen is not None:
            assert NUMBER not in f"{seen!r} {vars(seen)}"
            seen = seen.__context__
        assert NUMBER not in caplog.text

    def test_the_librarys_own_log_of_what_it_sends_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("STRIPE_LOG", "debug")
        with pytest.raises(SetupError, match="STRIPE_LOG"):
            StripeAcquirer("sk_test_stub")

    def test_the_secret_key_shows_nowhere(self) -> None:
        assert "sk_test_stub" not in repr(StripeAcquirer("sk_test_stub"))
