"""Keys that meet an older purchase at the acquirer,
which a database that was put back has forgotten.

What took the money that is asked for now is adopted; what took other money holds the order, for a
person; what took nothing says nothing of the card typed now, so the next number is tried at once.
Nothing is ever charged beside it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal

import structlog

from paydesk.adapters.acquirers.interface import (
    Acquirer,
    Approved,
    Challenged,
    Declined,
    Earlier,
    KeyUsed,
    Outcome,
    OutcomeUnknown,
    Pending,
    Voided,
    is_earlier,
)
from paydesk.adapters.acquirers.purchases import Purchase
from paydesk.core.clock import utc_now
from paydesk.core.wording import noted
from paydesk.database.pool import Database
from paydesk.database.records import record_if_any
from paydesk.database.statements import load_statements
from paydesk.domain.alarms.kinds import AlarmKind
from paydesk.domain.alarms.raising import Alarm, raise_alarms
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.marking import digest_of
from paydesk.domain.subscriptions.rows import PackageRow, package_of

queries = load_statements(__package__ or "", "forgotten_purchases.sql")
log = structlog.get_logger()

MOST_NUMBERS = 10
"""How many numbers of an attempt are tried at once; each had taken nothing before."""

Send = Callable[[Purchase], Awaitable[Outcome]]


@dataclass(frozen=True, slots=True)
class Wish:
    """An attempt whose intent is committed, and what it asks for.

    `may_be_old` if its key may be forgotten at the acquirer already; `was_forgotten` if the
    acquirer's list had a purchase under one of its numbers that our books had forgotten: then it is
    found, and nothing is sent. `since` (UTC, real time) is when its key may have been used at the
    earliest, where that is known.
    """

    shop: Shop
    attempt_id: int
    purchase: Purchase
    pads: bytes
    may_be_old: bool = False
    was_forgotten: bool = False
    since: datetime | None = None


async def under_its_key(database: Database, acquirer: Acquirer, wish: Wish, send: Send) -> tuple[Outcome, Purchase]:
    """Ask for a purchase, or take up what an older one under its key has come to;
    with what was asked in the end.

    Moves money. Raises: OutcomeUnknown, also for an older purchase that can't be found, or that
    took other money.
    """
    for _ in range(MOST_NUMBERS):
        answer = None
        if not wish.was_forgotten and not await _is_forgotten(acquirer, wish):
            answer = await _sent(wish.purchase, send)
        answer = answer or await _taken_before(database, acquirer, wish)
        if answer is not None:
            return answer, wish.purchase
        wish = await _next(database, wish)
    raise OutcomeUnknown(f"{MOST_NUMBERS} keys of this attempt were used before")


async def _is_forgotten(acquirer: Acquirer, wish: Wish) -> bool:
    """Whether the acquirer's list has a purchase under a key that it may have forgotten."""
    return wish.may_be_old and await acquirer.look_back(wish.purchase.key, wish.since) is not None


async def _sent(purchase: Purchase, send: Send) -> Outcome | None:
    """The acquirer's answer to this very purchase, None if its key was used before."""
    try:
        answer = await send(purchase)
    except KeyUsed:
        return None
    return None if is_earlier(answer, purchase.not_after) else answer


async def _taken_before(database: Database, acquirer: Acquirer, wish: Wish) -> Approved | Pending | None:
    """The approval of an older purchase that took just this, or may take it in some days;
    None if it took nothing, and never will.

    An open challenge of it is ended. Raises: OutcomeUnknown.
    """
    key = wish.purchase.key
    earlier = await acquirer.look_back(key)
    if earlier is None and wish.was_forgotten:
        return None
    if earlier is None:
        raise OutcomeUnknown("the key was used before, and what for can't be found yet")
    finding = earlier.finding
    if isinstance(finding, Challenged):
        finding = await acquirer.end_challenge(key)
    if isinstance(finding, Approved | Pending):
        if is_the_same(earlier, wish.purchase):
            log.warning("a forgotten purchase is adopted", attempt_id=wish.attempt_id, reference=finding.reference)
            await take_up(database, wish.shop, wish.attempt_id, earlier)
            return by_key(finding)
        await hold(database, wish.shop, wish.attempt_id, earlier)
        raise OutcomeUnknown("an older purchase under this key took other money")
    if isinstance(finding, Declined | Voided):
        return None
    raise OutcomeUnknown("the acquirer does not say what an older purchase under this key came to")


def by_key(finding: Approved | Pending) -> Approved | Pending:
    """What an older purchase came to; a pending one is asked for by its key alone: what its page
    was called is forgotten.
    """
    return replace(finding, reference="") if isinstance(finding, Pending) else finding


async def take_up(database: Database, shop: Shop, attempt_id: int, earlier: Earlier) -> None:
    """Give an attempt's payment the id that it had before it was forgotten, if it is free.
    Moves no money.

    Its shop may have been told of it, and would take another id for another payment.
    """
    if earlier.mark is not None:
        await queries.pass_id(database, payment_id=earlier.mark.payment_id)
        await queries.take_up_id(
            database,
            merchant_id=shop.merchant_id,
            live=shop.live,
            attempt_id=attempt_id,
            payment_id=earlier.mark.payment_id,
        )


def is_the_same(earlier: Earlier, purchase: Purchase) -> bool:
    """Whether an older purchase took just what is asked for now, for the same."""
    marks = earlier.mark, purchase.mark
    for_the_same = marks[0] is None or marks[1] is None or marks[0].is_of(marks[1])
    return for_the_same and took(earlier, purchase.amount, purchase.currency, capture=purchase.capture)


def took(earlier: Earlier, amount: Decimal, currency: str, *, capture: bool) -> bool:
    """Whether an older purchase took, or held, this amount;
    a card that was only checked has no currency everywhere.
    """
    if earlier.amount != amount or earlier.capture != capture:
        return False
    return earlier.currency == currency or amount == 0


async def is_of_its_terms(database: Database, shop: Shop, attempt_id: int, earlier: Earlier) -> bool:
    """Whether an older purchase was for the terms that an attempt is for,
    as far as its mark says.
    """
    if earlier.mark is None:
        return True
    row = record_if_any(
        PackageRow,
        await queries.terms_of(database, merchant_id=shop.merchant_id, live=shop.live, attempt_id=attempt_id),
    )
    return earlier.mark.terms == digest_of(package_of(row).terms if row is not None else None)


async def hold(database: Database, shop: Shop, attempt_id: int, earlier: Earlier) -> None:
    """Tell an operator that an order waits: something else was taken under its key.
    Moves no money.
    """
    found = f"{earlier.amount:f} {earlier.currency}".strip()
    why = noted(
        "the acquirer has an older purchase of %(found)s under its key, with another amount or other terms", found=found
    )
    details = {"attempt": attempt_id, "found": found, "order": earlier.mark.order if earlier.mark else ""}
    alarm = Alarm(AlarmKind.order_held, f"attempt {attempt_id}", why, shop, details)
    await raise_alarms(database, [alarm], now=utc_now())


@dataclass(frozen=True, slots=True)
class _Numbered:
    """The number under which an attempt goes on, and its key."""

    idempotency_key: str
    number: int


async def _next(database: Database, wish: Wish) -> Wish:
    """The wish under its next number.

    Raises: OutcomeUnknown if somebody else has ended the attempt.
    """
    purchase = wish.purchase
    taken = record_if_any(
        _Numbered,
        await queries.take_next_number(
            database,
            merchant_id=wish.shop.merchant_id,
            live=wish.shop.live,
            attempt_id=wish.attempt_id,
            idempotency_key=purchase.key,
            pads=wish.pads,
        ),
    )
    if taken is None:
        raise OutcomeUnknown("the attempt was ended by somebody else")
    mark = purchase.mark and replace(purchase.mark, attempt=taken.number)
    return replace(wish, purchase=replace(purchase, key=taken.idempotency_key, mark=mark))
