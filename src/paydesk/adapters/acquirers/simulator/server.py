"""The simulated bank as a web server of its own: a JSON interface for `RemoteSimulator`,
and the challenge pages.

The interface protects nothing (it takes card numbers over plain HTTP, from anybody): loopback only,
test cards only.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route

from paydesk.adapters.acquirers.balance import LinePage, PayoutPage
from paydesk.adapters.acquirers.disputes import DisputePage, EvidenceFile, FailedRefundPage
from paydesk.adapters.acquirers.hosted_pages import Page, PageList, PageRequest
from paydesk.adapters.acquirers.interface import AcquirerRefused, KeyUsed, NoSuchPage, OutcomeUnknown
from paydesk.adapters.acquirers.listing import PurchasePage, RefundPage
from paydesk.adapters.acquirers.purchases import Purchase
from paydesk.adapters.acquirers.simulator.acquirer import SimulatedAcquirer
from paydesk.adapters.acquirers.simulator.challenge import challenge_app
from paydesk.adapters.acquirers.simulator.notifying import Notifier
from paydesk.adapters.acquirers.simulator.wire import (
    DONE,
    AboutDispute,
    AboutKept,
    AboutKey,
    AboutPage,
    AboutPayout,
    After,
    Answer,
    Claim,
    Decided,
    DisputeAnswer,
    EarlierAnswer,
    Evidence,
    Failure,
    Movement,
    Refusal,
    Since,
    answer_of,
    earlier_answer_of,
    movement_answer_of,
)
from paydesk.core.wording import plain

_Question = TypeVar("_Question")
_Told = (
    Answer
    | EarlierAnswer
    | DisputePage
    | DisputeAnswer
    | FailedRefundPage
    | PurchasePage
    | RefundPage
    | LinePage
    | PayoutPage
    | Page
    | PageList
)


def bank_app(acquirer: SimulatedAcquirer) -> Starlette:
    """The whole bank as an ASGI app, which closes `acquirer` when it stops."""
    notifier = Notifier()

    async def authorize(purchase: Purchase) -> Answer:
        return answer_of(await acquirer.authorize(purchase))

    async def charge_stored(purchase: Purchase) -> Answer:
        return answer_of(await acquirer.charge_stored(purchase))

    async def capture(asked: Movement) -> Answer:
        await acquirer.capture(asked.key, asked.reference, asked.amount, asked.currency)
        return Answer(DONE)

    async def refund(asked: Movement) -> Answer:
        named = (asked.key, asked.reference, asked.amount, asked.currency, asked.number)
        return Answer(DONE, await acquirer.refund(*named))

    async def find(asked: AboutKey) -> Answer:
        return answer_of(await acquirer.find(asked.of_key))

    async def look_back(asked: AboutKey) -> EarlierAnswer:
        return earlier_answer_of(await acquirer.look_back(asked.of_key))

    async def find_movement(asked: AboutKey) -> Answer:
        return movement_answer_of(await acquirer.find_movement(asked.key, asked.of_key, ""))

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        yield
        await notifier.close()
        await acquirer.close()

    return Starlette(
        lifespan=lifespan,
        routes=[
            _question("/authorize", Purchase, authorize),
            _question("/charge_stored", Purchase, charge_stored),
            _question("/capture", Movement, capture),
            _question("/refund", Movement, refund),
            _question("/find", AboutKey, find),
            _question("/look_back", AboutKey, look_back),
            _question("/find_movement", AboutKey, find_movement),
            *_page_questions(acquirer),
            *_ending_questions(acquirer),
            *_dispute_questions(acquirer),
            *_failed_refund_questions(acquirer),
            *_listing_questions(acquirer),
            Route("/healthz", _healthy),
            Mount("/simulator", challenge_app(acquirer.bank, notifier)),
        ],
    )


def _page_questions(acquirer: SimulatedAcquirer) -> list[Route]:
    """The routes that are about the bank's own pages."""

    async def open_page(asked: PageRequest) -> Page:
        return await acquirer.open_page(asked)

    async def find_page(asked: AboutPage) -> Page:
        return await acquirer.find_page("", asked.reference)

    async def end_page(asked: AboutPage) -> Page:
        return await acquirer.end_page("", asked.reference)

    async def pages(asked: Since) -> PageList:
        return await acquirer.list_pages(asked.since, asked.cursor)

    async def pass_time(asked: AboutKey) -> Answer:
        await acquirer.pass_time(asked.of_key)
        return Answer(DONE)

    async def release_kept(asked: AboutKept) -> Answer:
        await acquirer.release_kept(asked.reference)
        return Answer(DONE)

    return [
        _question("/open_page", PageRequest, open_page),
        _question("/find_page", AboutPage, find_page),
        _question("/end_page", AboutPage, end_page),
        _question("/pages", Since, pages),
        _question("/pass_time", AboutKey, pass_time),
        _question("/release_kept", AboutKept, release_kept),
    ]


def _ending_questions(acquirer: SimulatedAcquirer) -> list[Route]:
    """The routes by which a purchase is ended."""

    async def void(asked: AboutKey) -> Answer:
        return answer_of(await acquirer.void(asked.key, asked.of_key))

    async def undo(asked: AboutKey) -> Answer:
        return answer_of(await acquirer.undo(asked.key, asked.of_key))

    async def end_challenge(asked: AboutKey) -> Answer:
        return answer_of(await acquirer.end_challenge(asked.of_key))

    return [
        _question("/void", AboutKey, void),
        _question("/undo", AboutKey, undo),
        _question("/end_challenge", AboutKey, end_challenge),
    ]


def _dispute_questions(acquirer: SimulatedAcquirer) -> list[Route]:
    """The routes that are about disputes, those of the bank's own side included."""

    async def disputes(asked: After) -> DisputePage:
        return await acquirer.disputes(asked.cursor)

    async def find_dispute(asked: AboutDispute) -> DisputeAnswer:
        return DisputeAnswer(await acquirer.find_dispute(asked.reference))

    async def open_dispute(asked: Claim) -> Answer:
        return Answer(DONE, await acquirer.open_dispute(asked.of_key, asked.reason))

    async def close_dispute(asked: Decided) -> Answer:
        await acquirer.close_dispute(asked.reference, asked.won)
        return Answer(DONE)

    async def submit_evidence(asked: Evidence) -> Answer:
        await acquirer.submit_evidence(asked.reference, asked.text, asked.files)
        return Answer(DONE)

    async def upload_evidence(asked: EvidenceFile) -> Answer:
        return Answer(DONE, await acquirer.upload_evidence(asked))

    return [
        _question("/disputes", After, disputes),
        _question("/find_dispute", AboutDispute, find_dispute),
        _question("/open_dispute", Claim, open_dispute),
        _question("/close_dispute", Decided, close_dispute),
        _question("/submit_evidence", Evidence, submit_evidence),
        _question("/upload_evidence", EvidenceFile, upload_evidence),
    ]


def _failed_refund_questions(acquirer: SimulatedAcquirer) -> list[Route]:
    """The routes that are about refunds that fail, that of the customer's bank included."""

    async def failed_refunds(asked: After) -> FailedRefundPage:
        return await acquirer.failed_refunds(asked.cursor)

    async def fail_refund(asked: Failure) -> Answer:
        await acquirer.fail_refund(asked.reference, asked.reason)
        return Answer(DONE)

    return [
        _question("/failed_refunds", After, failed_refunds),
        _question("/fail_refund", Failure, fail_refund),
    ]


def _listing_questions(acquirer: SimulatedAcquirer) -> list[Route]:
    """The routes by which the bank's own list is read."""

    async def purchases(asked: Since) -> PurchasePage:
        return await acquirer.list_purchases(asked.since, asked.cursor)

    async def refunds(asked: Since) -> RefundPage:
        return await acquirer.list_refunds(asked.since, asked.cursor)

    balance = acquirer.balance
    assert balance is not None, "the bank tells of it"

    async def lines(asked: Since) -> LinePage:
        return await balance.lines(asked.since, asked.cursor)

    async def payouts(asked: Since) -> PayoutPage:
        return await balance.payouts(asked.since, asked.cursor)

    async def lines_of(asked: AboutPayout) -> LinePage:
        return await balance.lines_of(asked.payout, asked.cursor)

    return [
        _question("/purchases", Since, purchases),
        _question("/refunds", Since, refunds),
        _question("/balance_lines", Since, lines),
        _question("/payouts", Since, payouts),
        _question("/payout_lines", AboutPayout, lines_of),
    ]


def _question(path: str, asked: type[_Question], answer: Callable[[_Question], Awaitable[_Told]]) -> Route:
    """A route that reads a question, and writes the bank's answer or its refusal."""
    decoder = msgspec.json.Decoder(asked)

    async def endpoint(request: Request) -> Response:
        try:
            question = decoder.decode(await request.body())
        except msgspec.DecodeError:
            # The decoder's message could repeat a card number.
            return _json(Refusal("the question can't be read"), 400)
        try:
            return _json(await answer(question), 200)
        except AcquirerRefused as refused:
            told = Refusal(str(refused), isinstance(refused, KeyUsed), isinstance(refused, NoSuchPage))
            return _json(told, 409)
        except OutcomeUnknown:
            return PlainTextResponse("the answer was lost", status_code=504)

    return Route(path, endpoint, methods=["POST"])


def _json(answer: _Told | Refusal, status: int) -> Response:
    """A JSON response."""
    return Response(msgspec.json.encode(answer, enc_hook=plain), status_code=status, media_type="application/json")


async def _healthy(_request: Request) -> Response:
    """Say that the bank is open."""
    return PlainTextResponse("ok")
