"""A move is given up: the merchant goes on where it is, and nothing of it is left in the other
cell.
"""

from __future__ import annotations

from paydesk.core.errors import Conflict
from paydesk.domain.cells.fencing import arrival, find_fence, let_rest, lift, open_up, write_of_closed_alone
from paydesk.domain.moving.accounts import OWN_IDS, leave_accounts
from paydesk.domain.moving.copying import drop_name, empty, queries
from paydesk.domain.moving.requirements import Cells, require_cells
from paydesk.domain.moving.steps import Move
from paydesk.domain.moving.tables import GUARDED
from paydesk.domain.moving.witnesses import already_there, look, require_may_be_cancelled


async def cancel_move(move: Move) -> None:
    """Let a merchant go on where it is, and leave nothing of it in the other cell, from wherever
    that came.

    It goes on first; whoever moves it at the same moment is told.
    Raises: Conflict if it has moved already, or is on no way there; SetupError.
    """
    cells = await require_cells(move.source, move.target, move.to)
    seen = await look(move.source, move.target, move.home, move.merchant_id, cells)
    require_may_be_cancelled(seen)
    await _let_go_on(move, cells)
    if seen.there is not None and seen.there.arrives:
        await _empty_there(move, cells, seen.there.other_cell)
    if not await queries.is_there(move.source.database, merchant_id=move.merchant_id):
        raise Conflict(
            f"merchant {move.merchant_id} is not here any more: another call has just ended a move of it; the same "
            "command again says where it is"
        )


async def hide_there(move: Move, cells: Cells) -> None:
    """Nobody finds who goes on here in the other cell, though all had come.

    The rest of the copy stays for a later call. Nothing is done once it has moved, by another call.
    """
    async with move.target.database.acquire() as there, there.transaction():
        await write_of_closed_alone(there)
        came = await arrival(there, move.merchant_id, cells.here)
        here = await find_fence(move.source.database, move.merchant_id)
        if came is not None and (here is None or here.moved_at is None):
            await drop_name(there, move.merchant_id)


async def _let_go_on(move: Move, cells: Cells) -> None:
    """Open the merchant here. Raises: Conflict if it has moved.

    Who moves it may fence it once more after that, and is told then before it is decided.
    """
    await lift(move.source.database, move.merchant_id, tables=GUARDED, other_cell=cells.there)
    here = await find_fence(move.source.database, move.merchant_id)
    if here is not None and here.moved_at is not None:
        raise already_there(move.merchant_id, here.other_cell)


async def _empty_there(move: Move, cells: Cells, from_cell: int) -> None:
    """Nobody decides that it has moved while this deletes what came (see `moving._decide`)."""
    async with move.target.database.acquire() as there, there.transaction():
        await write_of_closed_alone(there)
        came = await arrival(there, move.merchant_id, from_cell)
        if came is not None:
            await _let_go_on(move, cells)
            await empty(there, move.merchant_id, keeping=OWN_IDS)
            await leave_accounts(there, move.merchant_id, cell=cells.here, has_come=False)
            await queries.drop_people(there, ids=list(came.people), merchant_id=move.merchant_id)
            await open_up(there, move.merchant_id, other_cell=from_cell)
    await let_rest(move.target.database, GUARDED)
