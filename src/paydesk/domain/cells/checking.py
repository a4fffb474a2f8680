"""Checking cells: what their databases, the directory and its copies say of each other,
and mending it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from paydesk.adapters.vault import Vault
from paydesk.database.pool import Database
from paydesk.domain.cells.adding import database_id
from paydesk.domain.cells.comparing import (
    UNDER_WAY,
    Compared,
    compare,
    enter_accounts,
    enter_own,
    kinds_that_differ,
    take_out,
)
from paydesk.domain.cells.directory import this_cell
from paydesk.domain.cells.half_moved import Halves, every_half
from paydesk.domain.cells.in_both import InBoth, in_both
from paydesk.domain.cells.joining import MOST_NAMED, named
from paydesk.domain.cells.listing import list_cells
from paydesk.domain.cells.ranges import go_on_above, range_forgotten
from paydesk.domain.cells.replicating import (
    Slot,
    name_for,
    publish,
    replicating_role,
    require_may_subscribe,
    slots,
    subscribe,
    subscription,
    wait_for_copy,
)

MEND = "paydesk cell check --mend"
_ELSEWHERE = (
    "find out which cell is right; a merchant's copy goes by paydesk merchant move ID --to CELL --remove-copy, and "
    "nothing mends this by itself"
)
_IN_BOTH = (
    "one of both databases came back from before it had moved to the other: in that cell stop its sales (paydesk "
    "merchant suspend {merchant}), look what only its copy knows (paydesk merchant move {merchant} --to CELL "
    "--remove-copy --dry-run) and remove it (the same without --dry-run), in cell {led_to} with --home-came-back"
)


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is not as it should be in a cell, and what to do about it."""

    cell: int
    what: str
    to_do: str


async def check_cells(
    home: Database, others: Mapping[int, Database], vault: Vault, *, away: Collection[int] = (), now: datetime
) -> list[Finding]:
    """Compare all cells with the home cell's directory; `others` are the databases of those that
    can be asked, `away` the numbers of those that don't answer. Changes nothing. `now` is UTC.
    """
    number = (await this_cell(home)).number
    kept = await slots(home)
    cells = {**others, number: home}
    halves = await every_half(home, cells, now=now)
    found = []
    for cell in await list_cells(home):
        if cell.number == number:
            found += await _of_own(number, await compare(home, home, vault, number, now=now), cells)
            found += await _of_ids(home, home, number, now)
            found += _of_halves(halves, number)
        elif cell.number in away:
            words = "its database can't be reached: it was not compared"
            found.append(Finding(cell.number, words, "see there, or check its address in PAYDESK_CELL_DATABASES"))
        else:
            found += await _check_other(home, cells, vault, cell.number, kept, halves, now)
    return found


async def _check_other(
    home: Database,
    cells: Mapping[int, Database],
    vault: Vault,
    number: int,
    kept: Mapping[str, Slot],
    halves: Halves,
    now: datetime,
) -> list[Finding]:
    slot, other = kept.get(name_for(number)), cells.get(number)
    if other is None:
        unseen = Finding(number, "its database was not asked", "give its address in PAYDESK_CELL_DATABASES")
        return [*_of_slot(number, slot), unseen]
    found = await _of_own(number, await compare(home, other, vault, number, now=now), cells)
    found += await _of_ids(home, other, number, now)
    found += _of_halves(halves, number)
    known = await subscription(other, number)
    if known is None or not known.enabled:
        words = "its subscription is gone" if known is None else "its subscription is switched off"
        return [*found, Finding(number, words, MEND)]
    if broken := [one for one in _of_slot(number, slot) if one.to_do == MEND]:
        return [*found, *broken]
    if kinds := await kinds_that_differ(home, other):
        words = f"its copy says otherwise than home: {', '.join(kinds)}"
        return [*found, Finding(number, words, f"see its PostgreSQL's log, then {MEND}")]
    return found


async def _of_ids(home: Database, cell: Database, number: int, now: datetime) -> list[Finding]:
    """Whether a cell gives out lower ids than some of its merchants have, since it was restored."""
    lost = await range_forgotten(home, cell, number, before=now - UNDER_WAY)
    if lost is None:
        return []
    words = f"it was given the ids from {lost} × 10¹³ on, and gives out lower ones: its database came back from before"
    return [Finding(number, words, MEND)]


def _of_halves(halves: Halves, number: int) -> list[Finding]:
    """Whose move was left half-way: nobody sells there until it is ended."""
    return [Finding(number, what, to_do) for what, to_do in halves.said_of(number)]


def _of_slot(number: int, slot: Slot | None) -> list[Finding]:
    """What is wrong with what home keeps for a cell: nothing, or one thing."""
    if slot is None:
        return [Finding(number, "home's server has no slot for it (it was lost in a failover)", MEND)]
    if slot.lost:
        return [Finding(number, "what it had not read was thrown away (max_slot_wal_keep_size)", MEND)]
    if not slot.active:
        return [Finding(number, "it does not read home's changes", "see its PostgreSQL's log")]
    return []


async def _of_own(number: int, compared: Compared, cells: Mapping[int, Database]) -> list[Finding]:
    """What of a cell's own the directory says otherwise; merchants first who are in two cells."""
    both = await in_both(number, compared.elsewhere, cells)
    found = [Finding(number, _said(one), _IN_BOTH.format(merchant=one.merchant_id, led_to=one.led_to)) for one in both]
    doubled = {one.merchant_id for one in both}
    elsewhere = [one for one in compared.elsewhere if one.own.entry.merchant_id not in doubled]
    if compared.missing:
        named_ones = ", ".join(one.called for one in compared.missing[:MOST_NAMED])
        words = f"{len(compared.missing)} not in the directory, or as another merchant's: {named_ones}"
        found.append(Finding(number, words, MEND))
    if elsewhere:
        words = f"it has what the directory says is elsewhere: {named(elsewhere)}"
        found.append(Finding(number, words, _ELSEWHERE))
    if compared.accounts:
        words = f"it has accounts of people whom the directory knows elsewhere alone: {named(compared.accounts)}"
        found.append(Finding(number, words, MEND))
    if compared.spare:
        words = f"{len(compared.spare)} in the directory that it has not: " + ", ".join(
            f"{one.kind} {one.name[:20]}" for one in compared.spare[:MOST_NAMED]
        )
        found.append(Finding(number, words, MEND))
    return found


def _said(one: InBoth) -> str:
    here, there = ["closed" if closed else "open" for closed in (one.is_closed_here, one.is_closed_there)]
    return (
        f"merchant {one.merchant_id} is in two cells: {here} here, and {there} in cell {one.led_to}, to which the "
        "directory leads"
    )


async def mend_cells(
    home: Database, others: Mapping[int, Database], vault: Vault, *, home_address: str, now: datetime
) -> None:
    """Set right all that can be; what is elsewhere stays. `home_address` is where cells' servers
    reach this one's.

    Raises: SetupError if a role may not do that, or home's server does not write what that takes;
        what was mended before stays.
    """
    number = (await this_cell(home)).number
    databases = {**others, number: home}
    known = [(cell, databases[cell.number]) for cell in await list_cells(home) if cell.number in databases]
    took_out = [await enter_missing(home, database, vault, cell.number, now=now) for cell, database in known]
    for cell, database in known:
        if any(took_out):
            # It may be what another cell has, which could not be entered before.
            await enter_missing(home, database, vault, cell.number, now=now)
        if (lost := await range_forgotten(home, database, cell.number, before=now - UNDER_WAY)) is not None:
            # Ids of that range may be in use: elsewhere, or in rows that were saved.
            await go_on_above(home, database, cell.number, lost, now=now)
        if database is not home and await _is_broken(home, database, cell.number):
            # It may have been lost in a failover, too.
            await publish(home)
            await require_may_subscribe(database)
            async with replicating_role(home_address, await database_id(home)) as role:
                await subscribe(database, role, cell.number, home_number=number, home_address=home_address, anew=True)
            await wait_for_copy(database, cell.number)


async def enter_missing(home: Database, cell: Database, vault: Vault, number: int, *, now: datetime) -> int:
    """Make the directory say of a cell's own what the cell has; what another has stays there, but
    for people, who may have an account in both. How many entries were taken out.
    """
    compared = await compare(home, cell, vault, number, now=now)
    if compared.missing:
        await enter_own(home, cell, vault, number, now=now)
    if compared.accounts:
        await enter_accounts(home, compared.accounts, number, now=now)
    return await take_out(home, compared.spare, number, now=now) if compared.spare else 0


async def _is_broken(home: Database, cell: Database, number: int) -> bool:
    """Whether a cell's copy has to be made anew."""
    slot, known = (await slots(home)).get(name_for(number)), await subscription(cell, number)
    if slot is None or slot.lost or known is None or not known.enabled:
        return True
    return bool(await kinds_that_differ(home, cell))
