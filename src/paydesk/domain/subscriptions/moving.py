"""Moving what runs from one version of a package to another: each at its own period's end, as a
change of plan that can be taken back until then.

A move is wished in one statement, and planned in batches by workers, each batch in one statement
with how far the move is: stopped at any point, it goes on from there. Moves no money.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from enum import StrEnum

import msgspec
import structlog

from paydesk.core.clock import utc_now
from paydesk.core.errors import Busy, Conflict, Malformed, NotFound
from paydesk.core.paging import LARGEST_ID
from paydesk.core.wording import worded
from paydesk.database.pool import Database
from paydesk.database.records import record_if_any, records_of
from paydesk.database.statements import Connection, load_statements
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.subscriptions.lifecycle import Subscription, changing_plan, kept
from paydesk.domain.subscriptions.packages import make_version
from paydesk.domain.subscriptions.retry_times import longest_pause
from paydesk.domain.subscriptions.rows import PackageRow, SubscriptionRow, package_of, subscription_of
from paydesk.domain.subscriptions.subscription_terms import Package, Terms
from paydesk.loops.repeating import repeat

queries = load_statements(__package__ or "", "moving.sql")
log = structlog.get_logger()

BATCH = 500
"""Subscriptions that one statement looks through and changes, so that none waits long."""

PAUSE = 2.0
"""Seconds between looks when no move is under way."""


class MoveState(StrEnum):
    """Where a move stands."""

    MOVING = "moving"
    """Changes are being planned."""
    MOVED = "moved"
    """All are planned, and come by themselves."""
    TAKING_BACK = "taking_back"
    TAKEN_BACK = "taken_back"
    """What was still to come does not come."""


class Stays(StrEnum):
    """Why a subscription is not moved; `why_it_stays` of the schema says it of each."""

    ENDED = "ended"
    COUPON = "coupon"
    """It has what its coupon made of the version, until that is used up."""
    CHARGING = "charging"
    """Its charge is due, or at the bank."""
    PAUSED = "paused"
    CHANGING = "changing"
    """It is to change already, or to end with its period."""
    FAILING = "failing"
    """Its charge failed, or the acquirer refused it, and is tried again."""
    LAST_PERIOD = "last_period"
    """It is not charged again, or kept open for its customer."""
    LIMIT = "limit"
    """It has had as many payments as the other version has in all."""
    TOO_SLOW = "too_slow"
    """It is paid by what takes days, and the periods would be too short for that."""


@dataclass(frozen=True, slots=True)
class MovePreview:
    """What would come of a move: how many go, between when (UTC), and how many stay, by reason."""

    before: Package
    after: Terms
    subscriptions: int
    first_at: datetime | None
    last_at: datetime | None
    stay: Mapping[Stays, int]

    @property
    def paid_before(self) -> Decimal:
        """What those that go pay together in a period now."""
        return self.before.terms.price * self.subscriptions

    @property
    def paid_after(self) -> Decimal:
        """What they pay together in a period then."""
        return self.after.price * self.subscriptions


@dataclass(frozen=True, slots=True)
class Begun:
    """A move that was wished; not `fresh` if just that was under way already."""

    id: int
    fresh: bool


@dataclass(frozen=True, slots=True)
class PackageMove:
    """A move: how many there were to `subscriptions`, how many changes are `planned`; of these some
    are `waiting` and some `done`, others were undone or ended.
    """

    id: int
    package_id: int
    from_version_id: int
    to_version_id: int
    state: MoveState
    subscriptions: int
    planned: int
    waiting: int
    done: int
    created_at: datetime
    finished_at: datetime | None


@dataclass(frozen=True, slots=True)
class _Count:
    stays: str | None
    subscriptions: int
    first_at: datetime | None
    last_at: datetime | None


@dataclass(frozen=True, slots=True)
class _Begun:
    id: int
    to_version_id: int
    fresh: bool


@dataclass(frozen=True, slots=True)
class _Move:
    """A move under way, with its side's time."""

    merchant_id: int
    live: bool
    id: int
    state: MoveState
    from_version_id: int
    to_version_id: int
    until_id: int
    after_id: int
    taken_back_after: int
    shop_now: datetime


async def preview_move(database: Connection, shop: Shop, from_id: int, to_id: int, *, now: datetime) -> MovePreview:
    """What would come of moving what is on a version to another one. `now` is the shop's time, UTC.

    Raises: NotFound; Malformed if the versions are in different currencies, or the same.
    """
    before, wanted = await _version(database, shop, from_id), await _version(database, shop, to_id)
    after = _terms(before.terms, wanted.terms)
    counts = await records_of(
        _Count,
        queries.preview_move(
            database,
            merchant_id=shop.merchant_id,
            live=shop.live,
            from_version_id=from_id,
            payment_limit=after.limit,
            may_be_slow=after.may_be_slow,
            at=now,
            tried_by=now + longest_pause(),
        ),
    )
    going = next((count for count in counts if count.stays is None), _Count(None, 0, None, None))
    stay = {Stays(count.stays): count.subscriptions for count in counts if count.stays is not None}
    return MovePreview(before, after, going.subscriptions, going.first_at, going.last_at, stay)


async def begin_move(
    connection: Connection, shop: Shop, from_id: int, to_id: int, *, shop_now: datetime, now: datetime
) -> Begun:
    """Wish a move; workers plan it. Wished twice, it is the same one. Moves no money.

    Raises: NotFound; Malformed as the preview; Conflict if there is nothing to move, or another
        move is under way from that version.
    """
    seen = await preview_move(connection, shop, from_id, to_id, now=shop_now)
    made = await make_version(connection, shop, seen.after, now=shop_now)
    begun = None
    for _ in range(2):
        # Who waited for another one to be wished sees it the second time.
        if begun is not None:
            break
        row = await queries.begin_move(
            connection,
            merchant_id=shop.merchant_id,
            live=shop.live,
            from_version_id=from_id,
            to_version_id=made.version_id,
            subscriptions=seen.subscriptions,
            now=now,
        )
        begun = record_if_any(_Begun, row)
    if begun is None:
        raise Busy(worded("another move from this version was under way a moment ago; try again"))
    if begun.to_version_id != made.version_id:
        raise Conflict(worded("move %(id)s from this version is under way; wait until it is over", id=begun.id))
    if begun.fresh and not seen.subscriptions:
        raise Conflict(worded("there is no subscription to move"))
    return Begun(begun.id, begun.fresh)


async def take_back(connection: Connection, shop: Shop, move_id: int) -> bool:
    """Have what a move has planned, and what is still to come of it, not come; workers see to it.
    False if that was asked before. Moves no money.

    Raises: NotFound.
    """
    move = await find_move(connection, shop, move_id)
    if move.state in {MoveState.TAKING_BACK, MoveState.TAKEN_BACK}:
        return False
    side = {"merchant_id": shop.merchant_id, "live": shop.live}
    return await queries.begin_taking_back(connection, **side, id=move_id) is not None


async def find_move(database: Connection, shop: Shop, move_id: int) -> PackageMove:
    """A move, and what has come of it. Raises: NotFound."""
    side = {"merchant_id": shop.merchant_id, "live": shop.live}
    for move in await records_of(
        PackageMove, queries.list_moves(database, **side, package_id=None, id=move_id, most=1)
    ):
        return move
    raise NotFound(f"there is no move {move_id}")


async def list_moves(
    database: Database, shop: Shop, package_id: int | None = None, *, most: int = 5
) -> list[PackageMove]:
    """The moves from a package's versions, or of all, newest first."""
    side = {"merchant_id": shop.merchant_id, "live": shop.live}
    return await records_of(
        PackageMove, queries.list_moves(database, **side, package_id=package_id, id=None, most=most)
    )


async def carry_on(
    database: Database, *, real_now: datetime, merchant_id: int | None = None, move_id: int | None = None
) -> int:
    """See to the next batch of every move under way, or of one; how many were under way.
    Moves no money.
    """
    rows = queries.moves_under_way(database, real_now=real_now, merchant_id=merchant_id, id=move_id)
    moves = await records_of(_Move, rows)
    for move in moves:
        act = _plan if move.state is MoveState.MOVING else _take_back
        await act(database, move, real_now)
    return len(moves)


async def run_moves(database: Database, stop: asyncio.Event) -> None:
    """Carry moves on until told to stop."""

    async def turn() -> bool:
        return await carry_on(database, real_now=utc_now()) > 0

    await repeat("moves of subscriptions", turn, stop, rest=PAUSE, due=True)


async def _plan(database: Database, move: _Move, real_now: datetime) -> None:
    """Plan the changes of the next batch."""
    package = await _version(database, Shop(move.merchant_id, move.live), move.to_version_id)
    until = await queries.end_of_batch(
        database, merchant_id=move.merchant_id, after=move.after_id, until=move.until_id, most=BATCH
    )
    until = move.until_id if until is None else int(until)
    rows = queries.to_move(
        database,
        merchant_id=move.merchant_id,
        live=move.live,
        from_version_id=move.from_version_id,
        payment_limit=package.terms.limit,
        may_be_slow=package.terms.may_be_slow,
        at=move.shop_now,
        tried_by=move.shop_now + longest_pause(),
        after=move.after_id,
        until=until,
    )
    planned = [_on(subscription_of(row), package, move.shop_now) for row in await records_of(SubscriptionRow, rows)]
    await queries.plan_batch(
        database,
        merchant_id=move.merchant_id,
        live=move.live,
        id=move.id,
        after=move.after_id,
        until=until,
        subscriptions=_json([one for one in planned if one is not None], "due_at"),
        now=move.shop_now,
        real_now=real_now,
    )


def _on(current: Subscription, package: Package, now: datetime) -> Subscription | None:
    """It with the change planned; None if no calendar reaches so far."""
    try:
        return changing_plan(current, package, by="merchant", at=now)
    except (OverflowError, ValueError) as error:
        log.warning("a subscription can't be moved", subscription_id=current.id, why=str(error))
        return None


async def _take_back(database: Database, move: _Move, real_now: datetime) -> None:
    """Have the next batch of what was planned go on as it was."""
    rows = queries.to_take_back(
        database,
        merchant_id=move.merchant_id,
        live=move.live,
        id=move.id,
        after=move.taken_back_after,
        at=move.shop_now,
        most=BATCH,
    )
    found = [subscription_of(row) for row in await records_of(SubscriptionRow, rows)]
    await queries.take_back_batch(
        database,
        merchant_id=move.merchant_id,
        live=move.live,
        id=move.id,
        after=move.taken_back_after,
        until=found[-1].id if found else LARGEST_ID,
        last=len(found) < BATCH,
        subscriptions=_json([kept(one) for one in found], "date_next"),
        now=move.shop_now,
        real_now=real_now,
    )


def _json(versions: Sequence[Subscription], date_name: str) -> str:
    """Versions as far as a move writes them: neither changes anything but when it is charged."""
    rows = [{"id": one.id, "revision": one.revision, date_name: one.date_next} for one in versions]
    return msgspec.json.encode(rows).decode()


async def _version(database: Connection, shop: Shop, version_id: int) -> Package:
    row = await queries.find_version_terms(database, merchant_id=shop.merchant_id, live=shop.live, id=version_id)
    found = record_if_any(PackageRow, row)
    if found is None:
        raise NotFound(f"there is no version {version_id} of a package")
    return package_of(found)


def _terms(before: Terms, wanted: Terms) -> Terms:
    """What is moved to: the other version with the trial that those that run have had.

    Raises: Malformed.
    """
    if wanted.currency != before.currency:
        raise Malformed(
            worded(
                "the other version is in %(currency)s, this one in %(before)s; a subscription keeps its currency",
                currency=wanted.currency,
                before=before.currency,
            ),
            "to",
        )
    after = replace(wanted, trial=before.trial)
    if after == before:
        raise Malformed(worded("this is the version that they are on; choose another one"), "to")
    return after
