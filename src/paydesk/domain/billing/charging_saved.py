"""Charging a saved card without its customer, as they agreed: for what, and at most how much."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal

import asyncpg
import structlog

from paydesk.adapters.acquirers.interface import (
    Acquirer,
)
from paydesk.adapters.acquirers.purchases import CardDetails, Purchase
from paydesk.adapters.vault import Sealed
from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict, Forbidden, NotFound, PaydeskError, Unavailable, Unsure
from paydesk.core.money import plain_number
from paydesk.database.pool import AWAY, Database
from paydesk.database.records import record_if_any
from paydesk.database.statements import Connection, load_statements
from paydesk.domain.billing.calling import Begun, begun_since, call_and_record
from paydesk.domain.merchants.live_amounts import require_taken
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import FIRST_LOOK, KEY_LIFETIME, Desk
from paydesk.domain.payments.marking import BegunAttempt, order_mark
from paydesk.domain.payments.states import UNSETTLED, AttemptState
from paydesk.domain.payments.stored_cards import CARD_NUMBER

queries = load_statements(__package__ or "", "charging_saved.sql")
log = structlog.get_logger()

LIMITED = timedelta(days=30)
"""Within which no more is charged than was agreed to."""


class NotCharged(PaydeskError):
    """The bank declined; nothing was taken, and nothing will be for this request."""

    status = 402


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a shop wants to charge, and by which of its customers' saved cards; `amount` is in main
    units of `currency`.
    """

    instrument_id: int
    merchant_order_id: str
    amount: Decimal
    currency: str
    description: str


@dataclass(frozen=True, slots=True)
class Charged:
    """A charge that was made, or (`is_open`) of which the bank has not told yet."""

    payment_id: int
    wanted: Wanted
    is_open: bool


@dataclass(frozen=True, slots=True)
class _Chargeable:
    """A saved card, and what decides whether it may be charged."""

    id: int
    acquirer: str
    removed_at: datetime | None
    charge_wording: str
    charge_revoked_at: datetime | None
    charge_limit: Decimal | None
    charge_currency: str
    created_at: datetime
    attempt_state: AttemptState
    network_reference: str
    authenticated: bool
    card_id: int
    number_sealed: bytes | None = field(repr=False)
    vault_key_id: str
    exp_month: int
    exp_year: int
    holder: str
    stored_reference: str = field(repr=False)
    suspended: bool
    charged: Decimal
    refused_for_good: bool
    charged_back: bool


@dataclass(frozen=True, slots=True)
class _Known:
    """The charge under a caller's key."""

    payment_id: int
    instrument_id: int
    merchant_order_id: str
    amount: Decimal
    currency: str
    description: str
    state: AttemptState
    decline_reason: str


async def charge_saved(desk: Desk, shop: Shop, wanted: Wanted, *, request_key: str, now: datetime) -> Charged:
    """Charge a saved card without its customer. Moves money.

    `request_key` is the caller's own name for this charge: one key moves money once, whoever sends
    it again gets what became of it. `now` is the shop's time, UTC. An acquirer that answers late
    leaves the charge open; a pingback tells of it if it was made.

    Raises: NotFound if the shop has no such card; Forbidden if its customer has not agreed to this,
        was not authenticated by their bank when they did, or charged one back; NotCharged if the
        bank declined; Conflict if the limit is used up, the order is paid or being paid, the key
        came with another charge, or acquirers don't take so many decimals; Held; Unsure.
    """
    known = await _known(desk.database, shop, request_key)
    if known is not None:
        return _same(known, wanted)
    require_taken(shop, wanted.currency, wanted.amount)
    await desk.gate.require()
    try:
        begun = await _begin(desk, shop, wanted, request_key, now=now)
    except asyncpg.UniqueViolationError:
        begun = None
    except AWAY as error:
        raise Unsure(
            f"it is not known whether the charge of order {wanted.merchant_order_id} was begun: the database went away "
            "over it; ask again with the same key, and money moves once"
        ) from error
    if begun is None:
        return await _shown(desk.database, shop, wanted, request_key)
    await call_and_record(desk, shop, begun, now=now)
    try:
        return await _shown(desk.database, shop, wanted, request_key)
    except AWAY:
        return Charged(begun.report.payment_id, wanted, is_open=True)


async def _begin(desk: Desk, shop: Shop, wanted: Wanted, request_key: str, *, now: datetime) -> Begun | None:
    """Commit the intent, if the customer agreed to just this; None if the key was used meanwhile.
    Moves no money.

    Raises: NotFound, Forbidden, Conflict.
    """
    real_now = utc_now()
    not_after = real_now + KEY_LIFETIME
    async with desk.database.acquire() as connection, connection.transaction():
        for lock in (queries.lock_shopper, queries.lock_instrument):
            await lock(connection, merchant_id=shop.merchant_id, live=shop.live, id=wanted.instrument_id)
        if await _known(connection, shop, request_key) is not None:
            return None
        card = record_if_any(
            _Chargeable,
            await queries.find_chargeable(
                connection,
                merchant_id=shop.merchant_id,
                live=shop.live,
                id=wanted.instrument_id,
                merchant_order_id=wanted.merchant_order_id,
                since=now - LIMITED,
            ),
        )
        acquirer = _require_allowed(desk, card, wanted, now=now)
        assert card is not None
        begun = record_if_any(
            BegunAttempt,
            await queries.begin_charge(
                connection,
                merchant_id=shop.merchant_id,
                live=shop.live,
                instrument_id=wanted.instrument_id,
                merchant_order_id=wanted.merchant_order_id,
                amount=wanted.amount,
                currency=wanted.currency,
                description=wanted.description,
                request_key=request_key,
                pads=desk.pads,
                not_after=not_after,
                lookup_at=real_now + FIRST_LOOK,
                now=now,
            ),
        )
        if begun is None and await _take_up(connection, shop, wanted, request_key):
            return None
    if begun is None:
        raise Conflict(
            f"order {wanted.merchant_order_id} is paid, or is being paid; a charge needs an order of its own"
        )
    purchase = Purchase(
        key=begun.idempotency_key,
        amount=begun.amount,
        currency=begun.currency,
        card=_opened(desk, shop, card),
        capture=True,
        not_after=not_after,
        network_reference=card.network_reference,
        stored_reference=card.stored_reference,
        mark=order_mark(begun, None),
    )
    return begun_since(card.created_at, desk, shop, begun, acquirer, purchase, now=now, real_now=real_now)


async def _take_up(connection: Connection, shop: Shop, wanted: Wanted, request_key: str) -> bool:
    """Whether an order was paid by just this charge, which our database had forgotten; its request
    is written down again. Moves no money.
    """
    found = await queries.take_up_charge(
        connection,
        merchant_id=shop.merchant_id,
        live=shop.live,
        instrument_id=wanted.instrument_id,
        merchant_order_id=wanted.merchant_order_id,
        amount=wanted.amount,
        currency=wanted.currency,
        description=wanted.description,
        request_key=request_key,
    )
    if found is not None:
        log.warning("a forgotten charge is taken up", instrument_id=wanted.instrument_id)
    return found is not None


def _require_allowed(desk: Desk, card: _Chargeable | None, wanted: Wanted, *, now: datetime) -> Acquirer:
    """The acquirer that charges the card, if its customer agreed to just this.

    Raises: NotFound, Forbidden, Conflict, Unavailable, each saying why.
    """
    if card is None or card.removed_at is not None or card.attempt_state is not AttemptState.APPROVED:
        raise NotFound(f"there is no saved card {wanted.instrument_id}, or it was removed")
    _require_agreed(card, wanted)
    if card.suspended:
        raise Conflict("this shop takes no payments at the moment")
    if card.exp_year and (card.exp_year, card.exp_month) < (now.year, now.month):
        raise Conflict("the saved card has expired")
    if card.refused_for_good:
        raise Conflict("the bank has refused this card for good")
    acquirer = desk.acquirers.get(card.acquirer)
    is_kept = card.number_sealed is not None or card.stored_reference or (acquirer and acquirer.keeps_cards)
    if acquirer is None or not is_kept:
        raise Unavailable(f"what keeps this card, {card.acquirer}, is not set up any more")
    return acquirer


def _require_agreed(card: _Chargeable, wanted: Wanted) -> None:
    """Make sure that a card's customer agreed to such a charge, and their bank saw them do it.

    Raises: Forbidden, Conflict, each saying why.
    """
    if not card.charge_wording or card.charge_revoked_at is not None or card.charge_limit is None:
        raise Forbidden("its customer has not agreed that you charge this card without them, or has taken that back")
    if card.charged_back:
        raise Forbidden("its customer has charged back a payment by this card; have them agree anew at a checkout")
    if not card.authenticated:
        raise Forbidden("its customer was not authenticated by their bank when they agreed; have them pay once more")
    if wanted.currency != card.charge_currency:
        raise Forbidden(f"its customer has agreed to charges in {card.charge_currency}, not in {wanted.currency}")
    if card.charged + wanted.amount > card.charge_limit:
        left = max(card.charge_limit - card.charged, Decimal(0))
        raise Conflict(
            f"its customer has agreed to at most {plain_number(card.charge_limit)} {card.charge_currency} within "
            f"{LIMITED.days} days, of which {plain_number(left)} are left"
        )


def _opened(desk: Desk, shop: Shop, card: _Chargeable) -> CardDetails:
    """The card as it is charged; its number stays in memory only for the call."""
    if card.number_sealed is None:
        return CardDetails("", card.exp_month, card.exp_year, card.holder)
    sealed = Sealed(card.vault_key_id, card.number_sealed)
    number = desk.vault.open(sealed, purpose=CARD_NUMBER, merchant_id=shop.merchant_id, row_id=card.card_id).decode()
    return CardDetails(number, card.exp_month, card.exp_year, card.holder)


async def _shown(database: Database, shop: Shop, wanted: Wanted, request_key: str) -> Charged:
    """How a charge stands that was begun under a caller's key.

    Raises: as `_same`.
    """
    known = await _known(database, shop, request_key)
    if known is None:
        raise NotFound("the test side was started anew, and this charge is gone with it")
    return _same(known, wanted)


async def _known(database: Connection, shop: Shop, request_key: str) -> _Known | None:
    """The charge that was begun under a caller's key."""
    return record_if_any(
        _Known,
        await queries.find_charge(database, merchant_id=shop.merchant_id, live=shop.live, request_key=request_key),
    )


def _same(known: _Known, wanted: Wanted) -> Charged:
    """What became of a charge that was made before.

    Raises: Conflict if the key named something else then; NotCharged if it took nothing.
    """
    before = Wanted(known.instrument_id, known.merchant_order_id, known.amount, known.currency, known.description)
    if before != wanted:
        raise Conflict("this Idempotency-Key came with another request before; use a new key for each new request")
    if known.state in UNSETTLED:
        return Charged(known.payment_id, wanted, is_open=True)
    if known.state is AttemptState.APPROVED:
        return Charged(known.payment_id, wanted, is_open=False)
    raise NotCharged(f"the charge was declined: {known.decline_reason}; nothing was taken")
