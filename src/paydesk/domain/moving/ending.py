"""What is left to do once a merchant is the other cell's: everybody is led there, it is opened, and
what is left here is deleted. Each can be done again.
"""

from __future__ import annotations

from datetime import UTC, datetime

from paydesk.core.errors import Conflict
from paydesk.database.pool import Database
from paydesk.database.statements import Connection
from paydesk.domain.cells.directory import (
    Kind,
    TakenElsewhere,
    enter,
    name_of,
    switch_merchant,
    switch_people,
    this_cell,
)
from paydesk.domain.cells.entering import account_to_enter, email_to_enter, keys_to_enter
from paydesk.domain.cells.fencing import arrival, forget, hold_moved, let_rest, open_up, write_of_closed_alone
from paydesk.domain.moving.accounts import OWN_IDS, leave_accounts
from paydesk.domain.moving.copying import empty, queries, without_triggers
from paydesk.domain.moving.only_here import Comparing, only_here
from paydesk.domain.moving.steps import Move, Passed, Step
from paydesk.domain.moving.tables import GUARDED


async def require_known_there(move: Move, compares: Comparing) -> None:
    """Make sure that the other cell, which works with who has moved, knows all that is left here:
    it may have come back from when the merchant was there once before. Raises: Conflict.
    """
    with compares() as report:
        found = await only_here(move.source, move.target, move.merchant_id, report=report)
    if found:
        raise Conflict(
            f"merchant {move.merchant_id} has moved to cell {move.to}, which does not know what is here: "
            f"{'; '.join(str(one) for one in found)}. If its database came back from before, put it back to a later "
            "time, and run the same command again; nothing is deleted here until then. If it has taken these rows away "
            "since, the same command with --remove-copy ends the move"
        )


async def open_there(move: Move, passed: Passed) -> tuple[int, datetime] | None:
    """Lead everybody to the other cell, and open the merchant there. How many entries of the
    directory were changed, and when it was open.

    Nothing is done (None) if another call has ended the move: the merchant may have come back
    since, and be on its way there once more.
    """
    here, led = (await this_cell(move.source.database)).number, None
    # First what comes there, then what went here, as who decides holds both.
    async with move.target.database.acquire() as there, there.transaction():
        comes = await arrival(there, move.merchant_id, here) is not None
        async with move.source.database.acquire() as source, source.transaction():
            if await hold_moved(source, move.merchant_id) or (comes and await _is_left_there(move, there)):
                led = 0 if move.home is None else await lead_there(move, move.home)
                passed(Step.switched)
                await open_up(there, move.merchant_id, other_cell=here)
    opened = datetime.now(UTC)
    await let_rest(move.target.database, GUARDED)
    if led is None:
        return None
    passed(Step.opened)
    return led, opened


async def _is_left_there(move: Move, there: Connection) -> bool:
    """Whether nothing is here of who has come there whole, not even that it went."""
    is_here = await queries.is_there(move.source.database, merchant_id=move.merchant_id)
    return not is_here and bool(await queries.is_there(there, merchant_id=move.merchant_id))


async def lead_there(move: Move, home: Database | Connection) -> int:
    """Lead everybody to the other cell; how many entries of the directory were changed."""
    now, here = datetime.now(UTC), (await this_cell(move.source.database)).number
    led = await switch_merchant(home, move.merchant_id, left=here, to=move.to, now=now)
    names = [
        name_of(move.source.vault, Kind.email, email)
        async for (email,) in queries.only_there(move.source.database, merchant_id=move.merchant_id)
    ]
    led += await switch_people(home, names, left=here, to=move.to, now=now)
    await _enter_accounts(move, home, here, now)
    return led


async def _enter_accounts(move: Move, home: Database | Connection, here: int, now: datetime) -> None:
    """Have the directory know that everybody of the team has an account in both cells."""
    emails = [email async for _, email, *_ in queries.team(move.source.database, merchant_id=move.merchant_id)]
    for cell in (here, move.to):
        lines = [account_to_enter(move.source.vault, email, cell) for email in emails]
        await enter(home, lines, cell, now=now)


async def enter_what_is_there(move: Move, home: Database | Connection) -> None:
    """Have a directory that came back from before know what is new of the merchant in the other
    cell: keys, and people of its team.
    """
    vault, now = move.target.vault, datetime.now(UTC)
    keys = [
        line
        async for public, lookup in queries.keys_of(move.target.database, merchant_id=move.merchant_id)
        for line in keys_to_enter(vault, move.merchant_id, public=public, private_lookup=lookup)
    ]
    await enter(home, keys, move.to, now=now)
    emails = [email async for _, email, *_ in queries.team(move.target.database, merchant_id=move.merchant_id)]
    lines = {email_to_enter(vault, email): account_to_enter(vault, email, move.to) for email in emails}
    try:
        await enter(home, list(lines), move.to, now=now)
    except TakenElsewhere as error:
        # They log in elsewhere, and have an account there, too.
        await enter(home, [lines[one] for one in error.entries], move.to, now=now)


async def forget_here(move: Move) -> None:
    """Delete what is left here of who has moved, so that what still comes here finds nothing and is
    passed on; only the keys stay by which acquirers were asked from here.
    """
    async with move.source.database.acquire() as connection, connection.transaction():
        if not await hold_moved(connection, move.merchant_id):
            # Another call has deleted it, and the merchant may have come back.
            return
        await without_triggers(connection)
        await write_of_closed_alone(connection)
        await queries.remember_keys(connection, merchant_id=move.merchant_id)
        await queries.end_sessions(connection, merchant_id=move.merchant_id)
        await empty(connection, move.merchant_id, keeping=("forgotten_attempt", *OWN_IDS))
        await leave_accounts(connection, move.merchant_id, cell=move.to)
    await forget(move.source.database, move.merchant_id, tables=GUARDED)
