"""A pass brings to the other cell what a merchant's rows are here at one moment, or nothing:
all of them at first, then what has changed since the pass before.

The merchant goes on meanwhile, here, and is not to be found there: its name comes with the last
pass, when nobody writes any more. What a pass has brought was compared with what is here; what it
has not brought was compared by one before, and nobody has written it since on either side.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias

import asyncpg

from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict, PaydeskError, Unavailable
from paydesk.database.durability import ConfirmedConnection, make_durable
from paydesk.database.pool import AWAY
from paydesk.database.records import record_of
from paydesk.domain.cells.directory import this_cell
from paydesk.domain.cells.fencing import Arrival, arrival, note_copied, write_of_closed_alone
from paydesk.domain.moving.accounts import bring_accounts, let_read
from paydesk.domain.moving.changes import Brought, bring_changes
from paydesk.domain.moving.copying import (
    Pair,
    Side,
    Table,
    copy_whole,
    empty,
    names_of_accounts,
    queries,
    tables_of,
    without_triggers,
)
from paydesk.domain.moving.tables import NAMES
from paydesk.domain.moving.team import bring_team
from paydesk.domain.proceeds.matching import tell_again
from paydesk.domain.sealing.resealing import hand_over

_PATIENCE = 60.0
"""Seconds that a standby may take to have what a snapshot sees."""


class Pass(StrEnum):
    """What is brought: all (`whole`), what has changed since the pass before (`changes`), or that,
    when nobody writes any more, with the merchant's name (`last`).
    """

    whole = "whole"
    changes = "changes"
    last = "last"


Watch: TypeAlias = Callable[[Pass], AbstractContextManager[Callable[[], None]]]
"""What hears of each table of a pass, by calls of what it gives for the pass's length."""


def unwatched(_: Pass) -> AbstractContextManager[Callable[[], None]]:
    """Nobody hears of it."""
    return nullcontext(lambda: None)


class CalledBack(Conflict):
    """Somebody has cancelled the move meanwhile, or what had come is not there any more; the
    merchant is where it was.
    """

    def __init__(self, merchant_id: int) -> None:
        super().__init__(
            f"the move of merchant {merchant_id} was cancelled, or the other cell came back from before it began: the "
            "merchant goes on here; the same command begins anew"
        )


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a pass sees: of which server, timeline and database, and the oldest transaction not all
    of which it may see; and whether it `follows` the pass before, so that changes can be told.
    """

    place: str
    below: str
    lsn: str
    follows: bool


@dataclass(frozen=True, slots=True)
class Copied:
    """What a pass came to: rows in all, those that it brought, values that were sealed anew, and
    the place in the source's log (LSN) that its snapshot was taken at.
    """

    rows: int
    changed: int
    sealed: int
    lsn: str


async def bring(
    source: Side, target: Side, merchant_id: int, *, last: bool = False, watch: Watch = unwatched
) -> Copied:
    """Bring the merchant's rows as they are now, those alone that have changed if there is a copy.
    Moves no money.

    Nobody may write them there; here nobody may if it is the last pass. One at a time.
    Raises: SetupError if a value can't be opened; Conflict if what came is not what was there, or
        somebody there has what may be there once; CalledBack; Unavailable if a database goes away.
    """
    try:
        return await _bring(source, target, merchant_id, last, watch)
    except (*AWAY, asyncpg.UniqueViolationError, ExceptionGroup) as error:
        if said := in_words(error):
            raise said from error
        raise


def in_words(error: Exception) -> PaydeskError | None:
    """What a pass has failed for, None if that is no state of things; tasks of it may have failed
    together.
    """
    together = ExceptionGroup("", [error])
    if taken := together.subgroup(asyncpg.UniqueViolationError):
        return _is_taken(taken)
    if together.split(AWAY)[1]:
        return None
    return Unavailable("a database went away meanwhile; run the same command again")


def _is_taken(error: Exception) -> Conflict:
    """Somebody there has something that the merchant has here, and only one may have."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    assert isinstance(error, asyncpg.UniqueViolationError)
    return Conflict(
        "meanwhile the other cell has got something that the merchant has here, and that may be there only once "
        f"({error.table_name}: {error.constraint_name}); the merchant goes on here: run the same command again, which "
        "says what is in the way"
    )


async def _bring(source: Side, target: Side, merchant_id: int, last: bool, watch: Watch) -> Copied:
    tables, from_cell = await tables_of(source.database, target.database), (await this_cell(source.database)).number
    async with (
        source.database.acquire() as here,
        target.database.acquire() as there,
        here.transaction(isolation="repeatable_read", readonly=True),
        there.transaction(),
    ):
        for each in (here, there):
            await each.execute("set local idle_in_transaction_session_timeout = 0")
        await without_triggers(there)
        await write_of_closed_alone(there)
        came = await arrival(there, merchant_id, from_cell)
        if came is None:
            raise CalledBack(merchant_id)
        snapshot = await _snapshot(source, here, came)
        named = {name for each in (here, there) for name in await names_of_accounts(each, merchant_id)}
        pair = Pair(here, there, merchant_id, sorted(named))
        sealed = await bring_accounts(source.vault, target.vault, pair)
        brought = await _bring_tables(pair, tables, came if snapshot.follows else None, last, watch)
        sealed += await hand_over(there, source.vault, target.vault, merchant_id)
        people = []
        if last:
            people = await bring_team(source.vault, target.vault, pair)
            await _sum_up(there, merchant_id)
            if named:
                await let_read(there, merchant_id)
                await tell_again(there, pair.accounts, now=utc_now())
        await note_copied(there, merchant_id, snapshot.place, snapshot.below, people)
    return Copied(sum(one.rows for one in brought), sum(one.changed for one in brought), sealed, snapshot.lsn)


async def _snapshot(source: Side, here: ConfirmedConnection, came: Arrival) -> Snapshot:
    """What is seen from here on. It is never forgotten: else numbers of transactions that it sees
    would be given to others, whose rows would be taken for known.
    """
    asked = {"copied_of": came.copied_of, "copied_below": came.copied_below}
    snapshot = record_of(Snapshot, await queries.snapshot(here, **asked))
    async with source.database.acquire() as beside:
        await make_durable(beside, patience=_PATIENCE)
    return snapshot


async def _bring_tables(
    pair: Pair, tables: list[Table], known: Arrival | None, last: bool, watch: Watch
) -> list[Brought]:
    """Bring each table, whole if no copy is `known`."""
    if known is None:
        await queries.keep_keys(pair.there, merchant_id=pair.merchant_id)
        await empty(pair.there, pair.merchant_id)
    brought = []
    with watch(Pass.last if last else Pass.changes if known else Pass.whole) as report:
        for table in tables:
            if table.table not in NAMES:
                brought.append(await _bring_table(pair, table, known))
            elif last:
                brought.append(await _bring_name(pair, table))
            report()
    return brought


async def _bring_table(pair: Pair, table: Table, known: Arrival | None) -> Brought:
    if not pair.has(table.table):
        return Brought(0, 0)
    if known is not None and known.copied_below is not None:
        return await bring_changes(pair, table, known.copied_below)
    rows = await copy_whole(pair, table)
    return Brought(rows, rows)


async def _bring_name(pair: Pair, table: Table) -> Brought:
    await pair.there.execute(f"delete from {table.table} where {table.theirs}", pair.owner(table.table))  # noqa: S608
    rows = await copy_whole(pair, table)
    return Brought(rows, rows)


async def _sum_up(there: ConfirmedConnection, merchant_id: int) -> None:
    """Kept sums reach as far as this cell has summed."""
    asked: dict[str, Any] = {"merchant_id": merchant_id}
    await queries.forget_sums(there, **asked)
    await queries.sum_balances(there, **asked)
    await queries.sum_sales(there, **asked)
