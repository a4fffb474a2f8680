"""Giving money back: a part or all of what was captured, or the hold that was not yet
(interface.md §8.3).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from enum import StrEnum

import asyncpg

from paydesk.core.errors import Conflict, NotFound, Unavailable
from paydesk.core.wording import worded
from paydesk.database.durability import make_durable
from paydesk.database.pool import AWAY, Database
from paydesk.database.records import record_if_any, records_of
from paydesk.database.statements import Connection, load_statements
from paydesk.database.surely import PATIENCE, drawn_key, surely
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments import asked_again, movements
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.found_movements import name_refund
from paydesk.domain.payments.intents import MovementRow, movement_of
from paydesk.domain.payments.movement_effects import PART, WHOLE
from paydesk.domain.payments.movements import Corrected, Unsettled, carry_out, find_intent
from paydesk.domain.payments.refundable import Asked, Refundable, RefundLimits, find_refundable, refuse_over, what_to_do
from paydesk.domain.payments.states import MovementKind, MovementState

queries = load_statements(__package__ or "", "refunding.sql")

_LOOK_AGAIN = 50
"""How often a payment is looked at anew that somebody else changes at the same moment."""


class RefundStatus(StrEnum):
    """How a refund is answered: where it leaves its order,
    or that the acquirer has not answered yet.
    """

    WHOLE = WHOLE
    PART = PART
    PROCESSING = "processing"


@dataclass(frozen=True, slots=True)
class Refund:
    """A refund, or the void of an authorization; amounts are in main units of `currency`.

    `reference_id` is its own id, `total` what was given back of the order in all so far; `again`
    if its request was made before.
    """

    payment_id: int
    reference_id: int
    status: RefundStatus
    merchant_order_id: str
    currency: str
    amount: Decimal
    total: Decimal
    again: bool = False


@dataclass(frozen=True, slots=True)
class SeenRefund:
    """A refund or void in a payment's history; `at` (UTC) is when it ended,
    or began if it has not.
    """

    reference_id: int
    amount: Decimal
    state: MovementState
    at: datetime


@dataclass(frozen=True, slots=True)
class _Known:
    """A movement that was begun under a caller's key."""

    id: int
    payment_id: int
    kind: MovementKind
    amount: Decimal
    unanswered_since: datetime | None


@dataclass(frozen=True, slots=True)
class _Shown:
    """A refund or void, and its payment: what was paid, and given back in all."""

    id: int
    payment_id: int
    kind: MovementKind
    state: MovementState
    amount: Decimal
    currency: str
    refusal: str
    merchant_order_id: str
    paid: Decimal
    refunded: Decimal


async def refund(
    desk: Desk,
    shop: Shop,
    payment_id: int,
    amount: Decimal | None,
    *,
    requested_by: str,
    request_key: str | None = None,
    told_later: bool = False,
    limits: RefundLimits | None = None,
    now: datetime,
) -> Refund:
    """Give back an amount (None: all that is left) of a payment. Moves money.

    Of an authorization that is not captured yet the hold is let go, which is possible for all of it
    only. `amount` is in main units of the payment's currency; zeros that it has no decimals for do
    no harm. `request_key` is the caller's own name for this request: one key moves money once,
    whoever sends it again gets what became of it. Without one a name is drawn, so that a refund
    whose intent may or may not have been committed is looked for and not made twice; an equal
    request that follows one of which nobody was told is its repeat (asked_again.py). `told_later`
    says that the caller has drawn the key for this one call, so that the same holds for it, and
    tells of the refund afterwards (`mark_answered`). `now` is the shop's time, UTC. An acquirer
    that answers late leaves the refund `processing`; a pingback tells of its end.

    Raises: NotFound if the shop has no such payment in this mode; Malformed for an amount that
        can't be given back, or if nothing is left; Conflict if the payment is not paid, is charged
        back or is just being captured, and if the acquirer refuses, with its reason; OverLimit;
        Held; Unsure if nobody can say whether the intent was committed.
    """
    key = request_key or drawn_key()
    unnamed = request_key is None or told_later
    asked = Asked(shop, payment_id, amount, requested_by, key, drawn=unnamed, told_later=told_later, now=now)
    for looked in range(_LOOK_AGAIN):
        may_be_known = request_key is not None or looked
        if may_be_known and (known := await _known(desk.database, shop, key)) is not None:
            return await _same(desk.database, shop, known, payment_id, amount)
        if request_key is not None and await name_refund(desk.database, shop, payment_id, desk.pads, request_key):
            continue
        if unnamed:
            before = await asked_again.find_unanswered(desk.database, shop, payment_id, amount, told_later=told_later)
            if before is not None:
                return replace(await _shown(desk.database, shop, before), again=True)
        await desk.gate.require()
        row = await find_refundable(desk.database, shop, payment_id)
        if row is None:
            raise NotFound(f"there is no payment {payment_id}")
        kind = what_to_do(row, shop, payment_id, amount)
        await refuse_over(desk.database, row, asked, limits)
        begun = await _begin(desk, kind, asked, limits, seen=row.refunded + row.refunding)
        if begun is not None:
            outcome = await carry_out(desk, movement_of(begun), answered=not told_later, now=now)
            if isinstance(outcome, Corrected):
                continue
            if isinstance(outcome, Unsettled) and request_key is None:
                await asked_again.mark_answered(desk.database, shop, begun.id)
            return await _shown_or_begun(desk.database, shop, row, begun)
    raise Unavailable(
        worded(
            "payment %(payment_id)s is being changed by many at once; nothing was begun, try again",
            payment_id=payment_id,
        )
    )


async def _begin(
    desk: Desk, kind: MovementKind, asked: Asked, limits: RefundLimits | None, *, seen: Decimal
) -> MovementRow | None:
    """Commit the intent; None if the payment changed, or the key was used,
    since it was looked at.
    """
    names = asked.names(desk.pads)

    async def write(connection: Connection) -> MovementRow | None:
        if kind is MovementKind.VOID:
            return record_if_any(MovementRow, await movements.queries.begin_void(connection, **names))
        return record_if_any(
            MovementRow,
            await movements.queries.begin_refund(
                connection,
                **names,
                amount=asked.amount,
                seen=seen,
                most_of_payment=limits.of_payment if limits else None,
                most_of_day=limits.of_day if limits else None,
            ),
        )

    async def look(connection: Connection) -> MovementRow | None:
        found = await find_intent(connection, asked.shop, asked.key)
        if found is None or found.payment_id != asked.payment_id or found.kind != kind:
            return None
        return found if asked.amount in (None, found.amount) else None

    try:
        return await surely(desk.database, write, look, unsure=_unsure(asked))
    except asyncpg.UniqueViolationError:
        return None


def _unsure(asked: Asked) -> str:
    named = f'send the same again with the header "Idempotency-Key: {asked.key}" or, within a day, as it is'
    again = named if asked.drawn and not asked.told_later else "ask again with the same key"
    return (
        f"it is not known whether a refund of payment {asked.payment_id} was begun: the database went away over it; "
        f"{again}, and money moves once"
    )


async def _known(database: Database, shop: Shop, request_key: str) -> _Known | None:
    """The movement that was begun under a caller's key."""
    return record_if_any(
        _Known,
        await movements.queries.find_by_request(
            database, merchant_id=shop.merchant_id, live=shop.live, request_key=request_key
        ),
    )


async def _same(database: Database, shop: Shop, known: _Known, payment_id: int, amount: Decimal | None) -> Refund:
    """What became of a request that was made before.

    Raises: Conflict if the key named something else then.
    """
    is_refund = known.kind in (MovementKind.REFUND, MovementKind.VOID) and known.payment_id == payment_id
    if not is_refund or amount not in (None, known.amount):
        raise Conflict("this Idempotency-Key came with another request before; use a new key for each new request")
    # Who is told of it relies on it: a commit that was broken off can be seen, and a failover
    # forgets it.
    await make_durable(database, patience=PATIENCE)
    if known.unanswered_since is not None:
        await asked_again.mark_answered(database, shop, known.id)
    return replace(await _shown(database, shop, known.id), again=True)


async def _shown_or_begun(database: Database, shop: Shop, row: Refundable, begun: MovementRow) -> Refund:
    """A refund as it stands now; if the database is away, it is on its way,
    as far as anybody can say.
    """
    try:
        return await _shown(database, shop, begun.id)
    except AWAY:
        return Refund(
            payment_id=begun.payment_id,
            reference_id=begun.id,
            status=RefundStatus.PROCESSING,
            merchant_order_id=row.merchant_order_id,
            currency=begun.currency,
            amount=begun.amount,
            total=row.refunded,
        )


async def _shown(database: Database, shop: Shop, reference_id: int) -> Refund:
    """A refund as it stands now, whoever recorded its outcome.

    Raises: Conflict if the acquirer refused it, or it failed later; NotFound if it is gone.
    """
    row = record_if_any(
        _Shown,
        await queries.show_refund(database, merchant_id=shop.merchant_id, live=shop.live, id=reference_id),
    )
    if row is None:
        raise NotFound("the test side was started anew, and this refund is gone with it")
    state = row.state
    if state is MovementState.REFUSED:
        raise Conflict(worded("the bank refused the refund: %(refusal)s", refusal=row.refusal))
    if state is MovementState.FAILED:
        raise Conflict(
            worded(
                "the refund was made and came back: %(refusal)s; the customer has not got the money",
                refusal=row.refusal,
            )
        )
    done = state is MovementState.DONE
    total = row.paid if done and row.kind == MovementKind.VOID else row.refunded
    status = RefundStatus.WHOLE if total == row.paid else RefundStatus.PART
    return Refund(
        payment_id=row.payment_id,
        reference_id=row.id,
        status=status if done else RefundStatus.PROCESSING,
        merchant_order_id=row.merchant_order_id,
        currency=row.currency,
        amount=row.amount,
        total=total,
    )


async def refunds_of(database: Database, shop: Shop, payment_id: int) -> list[SeenRefund]:
    """What was given back of a payment, is on its way, or was refused, first to last."""
    rows = queries.refunds_of(database, merchant_id=shop.merchant_id, live=shop.live, payment_id=payment_id)
    return await records_of(SeenRefund, rows)


async def forget_refund_days(database: Database, *, before: datetime) -> None:
    """Drop what people gave back on days that are over."""
    await queries.forget_days(database, before=before)


async def shop_of_payment(database: Database, payment_id: int) -> Shop:
    """The side of the merchant that a payment belongs to, for an operator who knows its id.

    Raises: NotFound.
    """
    shop = record_if_any(Shop, await queries.side_of_payment(database, id=payment_id))
    if shop is None:
        raise NotFound(f"there is no payment {payment_id}")
    return shop
