"""An acquirer that has too much to do (429) is left alone for as long as it asks, and a customer
whom it turned away has not been declined.

A server that turns every request away stands in for Stripe's and Mollie's rate limiters, with the
answers of their documents: docs.stripe.com/rate-limits, docs.stripe.com/error-low-level ("rate
limiters run before the API's idempotency layer"), and `429-rate-limit` in Mollie's specification.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from decimal import Decimal

import pytest
from aiohttp import web
from tests.adapters.acquirers.test_reaching import OPENED, purchase, wanted

from paydesk.adapters.acquirers.interface import Acquirer, NothingBegun, OutcomeUnknown
from paydesk.adapters.acquirers.quiet import LONGEST, KeptQuiet, Quiet, seconds_of
from paydesk.adapters.acquirers.reaching import one_call
from paydesk.core.clock import utc_now

LIMITED = {"error": {"type": "invalid_request_error", "code": "rate_limit", "message": "Too many requests"}}
LOCKED = {"error": {"type": "invalid_request_error", "code": "lock_timeout", "message": "In use, try again"}}
OTHERWISE = {"error": {"type": "invalid_request_error", "code": "busy_payment_method", "message": "Try again"}}
SLOW_DOWN = {"status": 429, "title": "Too Many Requests", "detail": "You have exceeded the rate limit."}
MADE = {"id": "pm_1", "object": "payment_method"}


@dataclass
class Busy:
    """Turns away what it is asked, but for what it has an answer to; its clock stands still."""

    answer: object
    headers: dict[str, str] = field(default_factory=dict)
    answers: dict[str, object] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    clock: float = 1000.0
    base_url: str = ""

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        self.asked.append(f"{request.method} {request.path}")
        if request.path in self.answers:
            return web.json_response(self.answers[request.path])
        return web.json_response(self.answer, status=429, headers=self.headers)


@pytest.fixture
async def busy(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Busy]:
    busy = Busy(LIMITED)
    monkeypatch.setattr("paydesk.adapters.acquirers.quiet.monotonic", lambda: busy.clock)
    runner = web.ServerRunner(web.Server(busy), shutdown_timeout=0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    busy.base_url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield busy
    await runner.cleanup()


REMOTE = [kind for kind in OPENED if kind != "simulator"]


@pytest.fixture
async def acquirer(busy: Busy, request: pytest.FixtureRequest) -> AsyncIterator[Acquirer]:
    kind: str = request.param
    busy.answer = SLOW_DOWN if kind == "mollie" else LIMITED
    opened = OPENED[kind](busy.base_url)
    yield opened
    await opened.close()


def asked_by_customer(acquirer: Acquirer) -> Awaitable[object]:
    if acquirer.capabilities.cards:
        return acquirer.authorize(purchase())
    return acquirer.open_page(replace(wanted(), asked_at=utc_now().replace(microsecond=0)))


@pytest.mark.parametrize("acquirer", REMOTE, indirect=True)
async def test_a_customer_who_was_turned_away_has_begun_nothing(acquirer: Acquirer) -> None:
    with pytest.raises(NothingBegun, match="too many requests"):
        await asked_by_customer(acquirer)


@pytest.mark.parametrize("acquirer", ["stripe"], indirect=True)
async def test_who_was_turned_away_with_a_card_that_was_handed_over_has_begun_nothing(
    acquirer: Acquirer, busy: Busy
) -> None:
    busy.answers = {"/v1/payment_methods": MADE, "/v1/customers": {"id": "cus_1", "object": "customer"}}
    with pytest.raises(NothingBegun):
        await acquirer.authorize(replace(purchase(), keep_card=True))
    assert busy.asked[-1] == "POST /v1/payment_intents"


@pytest.mark.parametrize("answer", [LOCKED, OTHERWISE], ids=["lock", "not known"])
@pytest.mark.parametrize("acquirer", ["stripe"], indirect=True)
async def test_what_no_rate_limiter_turned_away_may_have_begun_something(
    acquirer: Acquirer, busy: Busy, answer: object
) -> None:
    # Stripe of a lock: another request works on the same object, perhaps this very one.
    busy.answers, busy.answer = {"/v1/payment_methods": MADE}, answer
    with pytest.raises(OutcomeUnknown) as said:
        await acquirer.authorize(purchase())
    assert not isinstance(said.value, NothingBegun)


def named(bank: Acquirer) -> str:
    return "tr_1" if bank.name == "mollie" else "pi_1"


QUESTIONS: dict[str, Callable[[Acquirer], Awaitable[object]]] = {
    "find": lambda bank: bank.find("key-1"),
    "refund": lambda bank: bank.refund("key-1:refund", named(bank), Decimal(1), "USD"),
    "capture": lambda bank: bank.capture("key-1:capture", named(bank), Decimal(1), "USD"),
    "void": lambda bank: bank.void("key-1:void", "key-1"),
    "what became of a refund": lambda bank: bank.find_movement("key-1:refund", "key-1", named(bank)),
    "disputes": lambda bank: bank.disputes(""),
    "failed refunds": lambda bank: bank.failed_refunds(""),
    "purchases": lambda bank: bank.list_purchases(utc_now() - timedelta(hours=1), ""),
}


async def asked_for_quiet(acquirer: Acquirer, busy: Busy) -> int:
    """Have an acquirer ask to be left alone for half a minute; how often it was asked by then."""
    busy.headers = {"Retry-After": "30"}
    with pytest.raises(OutcomeUnknown):
        await acquirer.disputes("")
    return len(busy.asked)


@pytest.mark.parametrize("question", [*QUESTIONS])
@pytest.mark.parametrize("acquirer", ["stripe", "mollie"], indirect=True)
async def test_nothing_is_asked_again_before_the_time_that_the_bank_said(
    acquirer: Acquirer, busy: Busy, question: str
) -> None:
    before = await asked_for_quiet(acquirer, busy)
    busy.clock += 29
    with pytest.raises(KeptQuiet, match="1 s"):
        await QUESTIONS[question](acquirer)
    assert len(busy.asked) == before, "nothing is sent"
    busy.clock += 1.5
    with pytest.raises(OutcomeUnknown):
        await QUESTIONS[question](acquirer)
    assert len(busy.asked) == before + 1


@pytest.mark.parametrize("acquirer", REMOTE, indirect=True)
async def test_a_customer_is_not_kept_waiting_for_it(acquirer: Acquirer, busy: Busy) -> None:
    before = await asked_for_quiet(acquirer, busy)
    with pytest.raises(NothingBegun):
        await asked_by_customer(acquirer)
    assert len(busy.asked) > before


@pytest.mark.parametrize("acquirer", ["stripe"], indirect=True)
async def test_a_renewal_is_not_failed_by_somebody_elses_limit(acquirer: Acquirer, busy: Busy) -> None:
    before = await asked_for_quiet(acquirer, busy)
    with pytest.raises(OutcomeUnknown):
        await acquirer.charge_stored(replace(purchase(), network_reference="cus_1/pm_1"))
    assert len(busy.asked) == before + 1


@pytest.mark.parametrize(
    ("headers", "answer"),
    [({"Stripe-Rate-Limited-Reason": "resource-specific"}, LIMITED), ({}, LOCKED)],
    ids=["resource", "lock"],
)
@pytest.mark.parametrize("acquirer", ["stripe"], indirect=True)
async def test_a_limit_of_one_object_keeps_nobody_from_the_others(
    acquirer: Acquirer, busy: Busy, headers: dict[str, str], answer: object
) -> None:
    busy.headers, busy.answer = headers | {"Retry-After": "30"}, answer
    for _ in range(2):
        with pytest.raises(OutcomeUnknown):
            await acquirer.find_dispute("dp_1")
    assert len(busy.asked) == 2


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("5", 5),
        (" 5 ", 5),
        ("0", 0),
        ("86400", LONGEST),
        ("9" * 400, LONGEST),
        ("-30", 0),
        ("1.5", 0),
        ("1e9", 0),
        ("nan", 0),
        ("²", 0),
        ("", 0),
        (None, 0),
        ("Fri, 31 Dec 2999 23:59:59 GMT", 0),
    ],
)
def test_a_time_that_makes_no_sense_does_no_harm(said: str | None, seconds: int) -> None:
    assert seconds_of(said) == seconds


async def test_a_later_answer_does_not_shorten_what_was_asked_for(busy: Busy) -> None:
    quiet = Quiet("the bank")
    quiet.begin("30")
    quiet.begin("1")
    quiet.begin(None)
    busy.clock += 5
    with pytest.raises(KeptQuiet, match="the bank"):
        quiet.keep()
    async with one_call():
        quiet.keep()
