"""What localstripe can't show: the adapter against answers in the shapes that Stripe documents, given in turn.

The stub has no behaviour of its own. Which answer Stripe gives when is Stripe's documentation's word: idempotent
requests, error codes, decline codes, disputes and events (docs.stripe.com/api, docs.stripe.com/declines/codes).
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qsl

import pytest
from aiohttp import web

from paydesk.adapters.acquirers.interface import (
    AcquirerRefused,
    Approved,
    CardDetails,
    Challenged,
    Declined,
    DeclineReason,
    Dispute,
    DisputeStatus,
    NotFound,
    OutcomeUnknown,
    Purchase,
    Refused,
)
from paydesk.adapters.acquirers.stripe import StripeAcquirer
from paydesk.core.errors import SetupError

NOON = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
NUMBER = "4242424242424242"
INTENTS, SEARCH = "/v1/payment_intents", "/v1/payment_intents/search"
NOTHING: dict[str, Any] = {"object": "list", "data": [], "has_more": False}
KEY_REUSED = {
    "error": {
        "type": "idempotency_error",
        "message": "Keys for idempotent requests can only be used with the same parameters they were first used with.",
    }
}


def intent(**changes: Any) -> dict[str, Any]:
    made = {
        "id": "pi_1",
        "object": "payment_intent",
        "status": "succeeded",
        "amount": 1000,
        "amount_received": 1000,
        "currency": "usd",
        "metadata": {"paydesk_key": "one"},
        "customer": None,
        "payment_method": "pm_1",
        "next_action": None,
        "last_payment_error": None,
        "latest_charge": {"id": "ch_1", "object": "charge", "amount_refunded": 0},
    }
    return made | changes


def listed(*objects: dict[str, Any], more: bool = False) -> dict[str, Any]:
    return {"object": "list", "data": list(objects), "has_more": more}


@dataclass
class Asked:
    """One request that the adapter made."""

    method: str
    path: str
    key: str
    params: dict[str, str]


@dataclass
class Stub:
    """Gives the answers it was told, in turn; the last one again and again."""

    base_url: str = ""
    answers: dict[tuple[str, str], list[tuple[int, Any]]] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)

    def will(self, method: str, path: str, body: Any, status: int = 200) -> None:
        self.answers.setdefault((method, path), []).append((status, body))

    def to(self, method: str, path: str) -> list[Asked]:
        return [asked for asked in self.asked if (asked.method, asked.path) == (method, path)]

    async def respond(self, request: web.Request) -> web.Response:
        params = dict(parse_qsl((await request.text()) or request.query_string))
        key = request.headers.get("Idempotency-Key", "")
        self.asked.append(Asked(request.method, request.path, key, params))
        waiting = self.answers[request.method, request.path]
        status, body = waiting.pop(0) if len(waiting) > 1 else waiting[0]
        if body is None:
            assert request.transport is not None
            request.transport.abort()
        text = body if isinstance(body, str) else json.dumps(body)
        return web.Response(status=status, text=text, content_type="application/json")


@pytest.fixture
async def stub() -> AsyncIterator[Stub]:
    stub = Stub()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", stub.respond)
    runner = web.AppRunner(app, shutdown_timeout=0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    stub.base_url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    stub.will("POST", "/v1/payment_methods", {"id": "pm_1", "object": "payment_method"})
    stub.will("POST", "/v1/customers", {"id": "cus_1", "object": "customer"})
    yield stub
    await runner.cleanup()


@pytest.fixture
async def acquirer(stub: Stub) -> AsyncIterator[StripeAcquirer]:
    opened = StripeAcquirer("sk_test_stub", api_base=stub.base_url, timeout=5, now=lambda: NOON)
    yield opened
    await opened.close()


def purchase(key: str = "one", **changes: Any) -> Purchase:
    asked: dict[str, Any] = {
        "key": key,
        "amount": Decimal("10.00"),
        "currency": "USD",
        "card": CardDetails(NUMBER, 12, 2030, "Ada Lovelace", "987"),
        "capture": True,
        "not_after": NOON + timedelta(minutes=10),
        "return_url": "https://shop.example/back",
    }
    return Purchase(**(asked | changes))


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
            "payment_method_types[0]": "card",
            "payment_method": "pm_1",
            "return_url": "https://shop.example/back",
        }

    async def test_the_card_is_sent_once_and_under_a_key_too(self, acquirer: StripeAcquirer, stub: Stub) -> None:
        stub.will("POST", INTENTS, intent())
        await acquirer.authorize(purchase())
        with_number = [asked for asked in stub.asked if NUMBER in str(asked.params)]
        assert [(asked.path, asked.key) for asked in with_number] == [("/v1/payment_methods", "one:card")]

    async def test_a_card_to_be_kept_is_kept_with_a_customer(self, acquirer: StripeAcquirer, stub: Stub) -> None:
        stub.will("POST", INTENTS, intent(customer="cus_1"))
        assert await acquirer.authorize(purchase(keep_card=True)) == Approved("pi_1", "cus_1/pm_1")
        (sent,) = stub.to("POST", INTENTS)
        assert (sent.params["customer"], sent.params["setup_future_usage"]) == ("cus_1", "off_session")

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


class TestUnknownOutcomes:
    """Search lags, idempotency keys don't: looking.py says how the two together tell what became of a purchase."""

    async def test_what_search_has_is_looked_at_afresh(self, acquirer: StripeAcquirer, stub: Stub) -> None:
        stub.will("GET", SEARCH, listed(intent(status="requires_capture")))
        stub.will("GET", f"{INTENTS}/pi_1", intent(status="canceled"))
        assert type(await acquirer.find("one")).__name__ == "Voided"
        assert stub.to("POST", INTENTS) == []

    async def test_a_quote_in_a_key_does_not_end_the_search(self, acquirer: StripeAcquirer, stub: Stub) -> None:
        stub.will("GET", SEARCH, NOTHING)
        stub.will("POST", INTENTS, intent(id="pi_2", status="requires_payment_method"))
        await acquirer.find("a' OR metadata['x']:'y")
        (sent,) = stub.to("GET", SEARCH)
        assert sent.params["query"] == "metadata['paydesk_key']:'a\\' OR metadata[\\'x\\']:\\'y'"

    async def test_a_free_key_is_used_up_without_money(self, acquirer: StripeAcquirer, stub: Stub) -> None:
        stub.will("GET", SEARCH, NOTHING)
        stub.will("POST", INTENTS, intent(id="pi_2", status="requires_payment_method"))
        assert await acquirer.find("one") == NotFound()
        (sent,) = stub.to("POST", INTENTS)
        assert sent.key == "one"
        assert "confirm" not in sent.params
        assert "payment_method" not in sent.params

    async def test_a_purchase_whose_key_was_used_up_comes_too_late(self, acquirer: StripeAcquirer, stub: Stub) -> None:
        stub.will("POST", INTENTS, KEY_REUSED, 400)
        stub.will("POST", INTENTS, intent(id="pi_2", status="requires_payment_method"))
        stub.will("GET", SEARCH, NOTHING)
        assert await acquirer.authorize(purchase()) == Declined(DeclineReason.TOO_LATE)

    async def test_a_key_of_another_purchase_is_refused(self, acquirer: StripeAcquirer, stub: Stub) -> None:
        stub.will("POST", INTENTS, KEY_REUSED, 400)
        stub.will("GET", SEARCH, listed(intent()))
        stub.will("GET", f"{INTENTS}/pi_1", intent())
        with pytest.raises(AcquirerRefused, match="another purchase"):
            await acquirer.authorize(purchase())

    async def test_what_search_does_not_have_yet_is_found_in_the_list(
        self, acquirer: StripeAcquirer, stub: Stub
    ) -> None:
        stub.will("GET", SEARCH, NOTHING)
        stub.will("POST", INTENTS, KEY_REUSED, 400)
        stub.will("GET", "/v1/setup_intents", NOTHING)
        stub.will("GET", INTENTS, listed(intent(id="pi_9", metadata={}), more=True))
        stub.will("GET", INTENTS, listed(intent(id="pi_8", metadata={"paydesk_key": "two"}), intent()))
        stub.will("GET", f"{INTENTS}/pi_1", intent())
        assert await acquirer.find("one") == Approved("pi_1", "")
        assert stub.to("GET", INTENTS)[1].params["starting_after"] == "pi_9"

    async def test_a_checked_card_is_found_in_the_list(self, acquirer: StripeAcquirer, stub: Stub) -> None:
        checked = {"id": "seti_1", "status": "succeeded", "metadata": {"paydesk_key": "one"}}
        stub.will("GET", SEARCH, NOTHING)
        stub.will("POST", INTENTS, KEY_REUSED, 400)
        stub.will("GET", "/v1/setup_intents", listed(checked))
        stub.will("GET", "/v1/setup_intents/seti_1", checked)
        assert await acquirer.find("one") == Approved("seti_1", "")

    async def test_a_used_key_that_nothing_shows_stays_unknown(self, acquirer: StripeAcquirer, stub: Stub) -> None:
        stub.will("GET", SEARCH, NOTHING)
        stub.will("POST", INTENTS, KEY_REUSED, 400)
        for path in (INTENTS, "/v1/setup_intents"):
            stub.will("GET", path, NOTHING)
        with pytest.raises(OutcomeUnknown):
            await acquirer.find("one")

    async def test_a_country_without_search_has_the_list(self, acquirer: StripeAcquirer, stub: Stub) -> None:
        refusal = {"error": {"type": "invalid_request_error", "message": "Search is not available"}}
        stub.will("GET", SEARCH, refusal, 400)
        stub.will("POST", INTENTS, KEY_REUSED, 400)
        stub.will("GET", "/v1/setup_intents", NOTHING)
        stub.will("GET", INTENTS, listed(intent()))
        stub.will("GET", f"{INTENTS}/pi_1", intent())
        assert await acquirer.find("one") == Approved("pi_1", "")

    async def test_a_key_in_use_at_this_moment_is_unknown(self, acquirer: StripeAcquirer, stub: Stub) -> None:
        stub.will("GET", SEARCH, NOTHING)
        busy = {"error": {"type": "invalid_request_error", "code": "idempotency_key_in_use", "message": "in use"}}
        stub.will("POST", INTENTS, busy, 409)
        with pytest.raises(OutcomeUnknown):
            await acquirer.find("one")

    async def test_a_purchase_under_way_is_unknown(self, acquirer: StripeAcquirer, stub: Stub) -> None:
        stub.will("GET", SEARCH, listed(intent()))
        stub.will("GET", f"{INTENTS}/pi_1", intent(status="processing"))
        with pytest.raises(OutcomeUnknown, match="not done"):
            await acquirer.find("one")


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
        for question in (
            acquirer.find("one"),
            acquirer.find_movement("refund", "one", "pi_1"),
            acquirer.refund("refund", "pi_1", Decimal(1), "USD"),
            acquirer.void("void", "one"),
        ):
            with pytest.raises(OutcomeUnknown, match="PAYDESK_STRIPE_SECRET_KEY"):
                await question

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
            ("expired_card", None, DeclineReason.EXPIRED_CARD),
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


class TestMovements:
    async def test_a_partial_capture_leaves_all_of_it_to_refund(self, acquirer: StripeAcquirer, stub: Stub) -> None:
        taken = intent(amount_received=450, latest_charge={"id": "ch_1", "amount_refunded": 550})
        stub.will("GET", f"{INTENTS}/pi_1", taken)
        stub.will("GET", "/v1/refunds", listed({"id": "re_0", "amount": 550, "status": "succeeded", "metadata": {}}))
        stub.will("POST", "/v1/refunds", {"id": "re_1", "amount": 450, "status": "pending"})
        assert await acquirer.refund("refund", "pi_1", Decimal("4.50"), "USD") == "re_1"
        with pytest.raises(AcquirerRefused, match=r"4\.5 is left"):
            await acquirer.refund("more", "pi_1", Decimal("4.51"), "USD")

    async def test_disputed_money_is_not_refunded(self, acquirer: StripeAcquirer, stub: Stub) -> None:
        stub.will("GET", f"{INTENTS}/pi_1", intent())
        stub.will("GET", "/v1/refunds", NOTHING)
        told = {"type": "invalid_request_error", "code": "charge_disputed", "message": "Charge has been charged back."}
        stub.will("POST", "/v1/refunds", {"error": told}, 400)
        with pytest.raises(AcquirerRefused, match="charged back"):
            await acquirer.refund("refund", "pi_1", Decimal(1), "USD")

    async def test_a_refund_that_failed_later_is_found_as_refused(self, acquirer: StripeAcquirer, stub: Stub) -> None:
        stub.will("GET", f"{INTENTS}/pi_1", intent(latest_charge={"id": "ch_1", "amount_refunded": 400}))
        failed = {"id": "re_1", "amount": 400, "status": "failed", "metadata": {"paydesk_key": "refund"}}
        stub.will("GET", "/v1/refunds", listed(failed))
        assert await acquirer.find_movement("refund", "one", "pi_1") == Refused("Stripe's refund re_1 failed")

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

    async def test_a_void_that_loses_to_a_capture_gives_the_money_back(
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
        assert type(await acquirer.void("void", "one")).__name__ == "Voided"
        (sent,) = stub.to("POST", "/v1/refunds")
        assert (sent.key, sent.params["metadata[paydesk_void]"]) == ("void", "void")


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


async def test_two_questions_at_once_do_not_wait_for_each_other(acquirer: StripeAcquirer, stub: Stub) -> None:
    stub.will("POST", INTENTS, intent())
    outcomes = await asyncio.gather(*(acquirer.authorize(purchase(str(number))) for number in range(10)))
    assert outcomes == [Approved("pi_1", "")] * 10
