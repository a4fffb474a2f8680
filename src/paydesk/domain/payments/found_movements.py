"""Captures, voids and refunds that an acquirer has made and our books don't know:
recorded as what they were.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

import asyncpg

from paydesk.adapters.acquirers.disputes import FailedRefund
from paydesk.adapters.acquirers.listing import ListedRefund
from paydesk.database.statements import Connection, load_statements
from paydesk.domain.acquirers.leases import Within
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.intents import Movement
from paydesk.domain.payments.movement_outcomes import record_done_within
from paydesk.domain.payments.states import MovementKind

queries = load_statements(__package__ or "", "found_movements.sql")

_BY_HAND = "-given-back-at-the-bank"
"""What the key of a refund ends with that was not asked for by us."""


@dataclass(frozen=True, slots=True)
class Held:
    """A payment with the attempt that holds it; `clock` is how far its shop's time is ahead."""

    shop: Shop
    payment_id: int
    attempt_id: int
    acquirer: str
    key: str
    reference: str
    clock: timedelta = timedelta(0)


@dataclass(frozen=True, slots=True)
class _Made:
    """What the acquirer did, at a real time (UTC); a refund has an amount and a reference
    of its own.
    """

    kind: MovementKind
    at: datetime
    amount: Decimal = Decimal(0)
    reference: str = ""


def key_of(refund: ListedRefund | FailedRefund) -> str:
    """The key that a refund has in our books:
    its own, or one of its reference if it was not asked for by us.
    """
    return refund.key or key_by_hand(refund.reference)


def key_by_hand(reference: str) -> str:
    """The key of a refund that was made in an acquirer's own pages, which calls it so."""
    return f"{reference}{_BY_HAND}"


def is_by_hand(key: str) -> bool:
    """Whether this is the key of a refund that was made in an acquirer's own pages."""
    return key.endswith(_BY_HAND)


async def record_refund(within: Within, held: Held, refund: ListedRefund, *, now: datetime) -> bool:
    """Record a refund that was made, with its posting and pingback; false if it does not fit.
    Moves no money.

    `now` is real time, UTC. One that somebody else records at the same moment is theirs; its number
    is given to nobody, whoever records it.
    """
    number = refund.number if refund.key else 0
    async with within() as connection:
        await queries.pass_number(connection, number=number)
    asked = {
        "amount": refund.amount,
        "idempotency_key": key_of(refund),
        "number": number,
        "by_us": bool(refund.key),
    }
    made = _Made(MovementKind.REFUND, refund.at, refund.amount, refund.reference)
    return await _record(within, held, made, asked, now=now)


async def record_ending(
    within: Within, held: Held, kind: MovementKind, pads: bytes, *, at: datetime, now: datetime
) -> bool:
    """Record that an authorization was captured or let go of; false if it is none any more.
    Moves no money.

    `at` and `now` are real times, UTC.
    """
    return await _record(within, held, _Made(kind, at), {"kind": str(kind), "pads": pads}, now=now)


async def _record(within: Within, held: Held, made: _Made, asked: Mapping[str, object], *, now: datetime) -> bool:
    begin = queries.begin_found_refund if made.kind is MovementKind.REFUND else queries.begin_found_ending
    names = {
        "merchant_id": held.shop.merchant_id,
        "live": held.shop.live,
        "payment_id": held.payment_id,
        "attempt_id": held.attempt_id,
        "acquirer": held.acquirer,
        "at": made.at + held.clock,
        "now": now,
    }
    try:
        async with within() as connection:
            movement_id = await begin(connection, **names, **asked)
            if movement_id is None:
                return False
            movement = _movement(held, made, movement_id)
            if not await record_done_within(connection, movement, made.reference, now=now + held.clock):
                raise _Overtaken
    except (_Overtaken, asyncpg.UniqueViolationError):
        return False
    return True


class _Overtaken(Exception):
    """The payment has changed meanwhile."""


def _movement(held: Held, made: _Made, movement_id: int) -> Movement:
    return Movement(
        shop=held.shop,
        id=movement_id,
        payment_id=held.payment_id,
        kind=made.kind,
        amount=made.amount,
        currency="",
        key="",
        acquirer=held.acquirer,
        of_key=held.key,
        reference=held.reference,
        created_at=made.at,
    )


async def name_refund(connection: Connection, shop: Shop, payment_id: int, pads: bytes, request_key: str) -> bool:
    """Give a recorded refund the name under which its caller asks for it again;
    whether there was one.
    """
    named = await queries.name_found_refund(
        connection,
        merchant_id=shop.merchant_id,
        live=shop.live,
        payment_id=payment_id,
        pads=pads,
        request_key=request_key,
    )
    return named is not None
