"""Giving back a purchase that an acquirer has and our books don't, such as one of an order
that was paid again since.

Never by itself: an operator asks for it, or a setting does for what was paid twice. Intent,
call, outcome.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

import structlog

from paydesk.adapters.acquirers.interface import AcquirerRefused, Approved, OutcomeUnknown, UnderWay, Voided
from paydesk.adapters.acquirers.marks import Mark
from paydesk.core.errors import Conflict, Malformed, NotFound, Unavailable
from paydesk.core.wording import noted
from paydesk.database.records import record_if_any, records_of
from paydesk.database.statements import Connection, load_statements
from paydesk.domain.accounts.audit import Action, Actor, record
from paydesk.domain.acquirers.accounts import tags_of
from paydesk.domain.acquirers.leases import Reader, Unleased
from paydesk.domain.alarms.kinds import AlarmKind
from paydesk.domain.alarms.raising import settle_alarms
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.lookups import LEASE
from paydesk.domain.payments.undoing import GivenUp, Undone, subject_of, undo

queries = load_statements(__package__ or "", "giving_back.sql")
log = structlog.get_logger()

MOST = 100
"""How many whose answer was lost are asked for again at once."""


@dataclass(frozen=True, slots=True)
class GivenBack:
    """A purchase all of which went back; `amount` is what was asked for,
    in main units of `currency`.
    """

    acquirer: str
    key: str
    reference: str
    merchant_order_id: str
    amount: Decimal
    currency: str


async def find_stray(desk: Desk, acquirer: str, key: str) -> GivenBack:
    """A purchase of ours that took or holds money, as its acquirer has it. Moves no money.

    Raises: NotFound if the acquirer has none under the key, or one that is none of this deployment;
        Conflict if it took nothing; Unavailable if it can't be asked.
    """
    stray, _ = await _look_back(desk, acquirer, key)
    return stray


async def _look_back(desk: Desk, acquirer: str, key: str) -> tuple[GivenBack, Mark]:
    """The purchase as its acquirer has it, and whose it is.

    Raises: as `find_stray`.
    """
    try:
        found = await desk.acquirers[acquirer].look_back(key)
    except (AcquirerRefused, OutcomeUnknown) as error:
        raise Unavailable(f"{acquirer} can't be asked: {error}") from error
    mark = found.mark if found is not None else None
    if found is None or mark is None or mark.deployment not in await tags_of(desk.database, acquirer):
        raise NotFound(f"{acquirer} has no purchase of this deployment under the key {key[:80]}")
    if not isinstance(found.finding, Approved):
        raise Conflict(f"{acquirer} holds nothing under the key {key[:80]}: there is nothing to give back")
    reference = found.finding.reference
    return GivenBack(acquirer, key, reference, mark.order, found.amount, found.currency), mark


async def give_back(
    desk: Desk, acquirer: str, key: str, *, actor: Actor | None, now: datetime, reader: Reader | None = None
) -> GivenBack:
    """Give all of a purchase back that is not in our books, or let go of what it holds.
    Moves money.

    Asked again it changes nothing more. `actor` is who wants it, which the audit log says; None: a
    setting does, and `reader`, who found it, only while they read that acquirer's list. `now` is
    real time, UTC.

    Raises: as `find_stray`; Conflict if our books have it (refund its payment), or the acquirer
        refuses; Unavailable if nobody knows what came of it: it is finished by the workers, or by
        asking again; ReadByAnother.
    """
    stray, mark = await _look_back(desk, acquirer, key)
    requested_by = actor.client_address if actor is not None else "setting"
    reader = reader or Unleased(desk.database)
    async with reader.holding() as connection:
        await queries.keep_from_adopting(connection)
        begun = await queries.begin(
            connection,
            acquirer=acquirer,
            idempotency_key=key,
            reference=stray.reference,
            merchant_order_id=stray.merchant_order_id,
            amount=stray.amount,
            currency=stray.currency,
            requested_by=requested_by,
            now=now,
        )
        if begun is not None and actor is not None:
            await _write_down(connection, actor, stray, mark, now=now)
    if begun is None:
        raise Conflict(f"the purchase under {key[:80]} is in our books, or was given back: refund its payment instead")
    refusal = await _carry_out(desk, acquirer, key, reader, now=now)
    if refusal is None:
        raise Unavailable(f"{acquirer} does not say yet that it has given it back; the workers find out, or ask again")
    if refusal:
        raise Conflict(f"{acquirer} refused to give it back: {refusal}")
    log.warning("a purchase that our books don't have was given back", key=key, requested_by=requested_by)
    return stray


async def _write_down(connection: Connection, actor: Actor, stray: GivenBack, mark: Mark, *, now: datetime) -> None:
    """Write into the audit log who gives it back; at its merchant, unless that is gone."""
    merchant_id = await queries.merchant_of_tag(connection, tag=mark.merchant)
    details = {
        "acquirer": stray.acquirer,
        "order": stray.merchant_order_id,
        "amount": str(stray.amount),
        "currency": stray.currency,
    }
    await record(
        connection,
        actor,
        Action.purchase_given_back,
        now=now,
        shop=Shop(merchant_id, mark.live) if merchant_id is not None else None,
        subject=noted("purchase %(key)s", key=stray.key),
        details=details,
    )


@dataclass(frozen=True, slots=True)
class _Voiding:
    """An attempt that was given up, and whose approval is being undone."""

    merchant_id: int
    live: bool
    attempt_id: int
    idempotency_key: str
    acquirer: str


async def settle_given_back(
    desk: Desk, acquirer: str, key: str, words: str, *, actor: Actor, now: datetime
) -> GivenBack | None:
    """Say that a charge which must not be, and which its acquirer will not give back, is settled:
    its customer has the money in another way, as `words` tell. May move money (back).

    The acquirer is asked once more first: None if it has given it back after all, so that the
    customer must not have it a second time. `now` is real time, UTC.

    Raises: Malformed without words; NotFound if nothing is being undone under the key; Unavailable
        if the acquirer may yet give it back.
    """
    if not words.strip():
        raise Malformed("say how its customer has the money: the words stand in the log", "settled")
    found = record_if_any(
        _Voiding, await queries.claim_voiding(desk.database, acquirer=acquirer, idempotency_key=key, lease=LEASE)
    )
    if found is None:
        none = f"nothing is being undone under the key {key[:80]} at {acquirer}"
        raise NotFound(f"{none}, or a worker asks for it just now: then try again in a minute")
    shop = Shop(found.merchant_id, found.live)
    came = await undo(desk, GivenUp(shop, found.attempt_id, found.idempotency_key, found.acquirer), None, now=now)
    if came is Undone.OPEN:
        raise Unavailable(f"{acquirer} does not refuse it: it may yet be given back there; try again later")
    settled = None if came is Undone.DONE else await _settled(desk, found, words.strip(), actor, now=now)
    by = noted("it is given back") if settled is None else noted("settled: %(words)s", words=words.strip())
    subjects = [subject_of(found.attempt_id)]
    await settle_alarms(desk.database, AlarmKind.contradiction, subjects, shop=shop, by=by, now=now)
    return settled


async def _settled(desk: Desk, found: _Voiding, words: str, actor: Actor, *, now: datetime) -> GivenBack | None:
    """Write it down; None if somebody else has ended it meanwhile."""
    shop = Shop(found.merchant_id, found.live)
    async with desk.database.acquire() as connection, connection.transaction():
        row = await queries.settle_voiding(
            connection,
            merchant_id=shop.merchant_id,
            live=shop.live,
            attempt_id=found.attempt_id,
            because=words,
            requested_by=actor.client_address,
            now=now,
        )
        settled = record_if_any(GivenBack, row)
        if settled is not None:
            details = {
                "acquirer": settled.acquirer,
                "order": settled.merchant_order_id,
                "amount": str(settled.amount),
                "currency": settled.currency,
                "because": words,
            }
            subject = noted("purchase %(key)s", key=settled.key)
            await record(
                connection, actor, Action.purchase_given_back, now=now, shop=shop, subject=subject, details=details
            )
    return settled


@dataclass(frozen=True, slots=True)
class _Unfinished:
    """A purchase whose giving back was begun."""

    idempotency_key: str


async def finish_given_back(desk: Desk, acquirer: str, reader: Reader, *, now: datetime) -> None:
    """Finish what was begun and whose answer was lost; the same key gives back once.
    Moves money. Raises: ReadByAnother.
    """
    unfinished = queries.unfinished(desk.database, acquirer=acquirer, most=MOST)
    for one in await records_of(_Unfinished, unfinished):
        await reader.keep()
        await _carry_out(desk, acquirer, one.idempotency_key, reader, now=now)


async def _carry_out(desk: Desk, acquirer: str, key: str, reader: Reader, *, now: datetime) -> str | None:
    """Ask the acquirer and write down its answer: why it refused, empty if it was done,
    None if nobody knows. Raises: ReadByAnother.

    Who took too long for that leaves it as begun: whoever reads by then asks again, by the same
    key.
    """
    try:
        finding = await desk.acquirers[acquirer].undo(f"{key}:void", key)
    except OutcomeUnknown as error:
        log.warning("outcome unknown", key=key, why=str(error))
        return None
    except AcquirerRefused as error:
        refusal = str(error) or "refused"
    else:
        if isinstance(finding, UnderWay):
            return None
        refusal = "" if isinstance(finding, Voided) else f"it says {type(finding).__name__}"
    state = "refused" if refusal else "done"
    names = {"acquirer": acquirer, "idempotency_key": key}
    async with reader.holding() as connection:
        await queries.finish(connection, **names, state=state, refusal=refusal, now=now)
    return refusal
