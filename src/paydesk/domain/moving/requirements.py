"""Whether a merchant can go to another cell: everything that would be wrong there is said before
anything is done.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from paydesk.core.errors import Conflict, NotFound, SetupError
from paydesk.database.migrating import known_migrations
from paydesk.database.records import record_of, records_of
from paydesk.domain.cells.fencing import find_fence
from paydesk.domain.moving.accounts import own_accounts, reasons_of_accounts
from paydesk.domain.moving.copying import Side, queries, without_triggers
from paydesk.domain.moving.team import addresses_in_use, unproven_addresses

PROBE = "the cells of one deployment"


@dataclass(frozen=True, slots=True)
class _Deployment:
    cell: int
    is_a_copy: bool


@dataclass(frozen=True, slots=True)
class _Account:
    name: str
    own_id: str
    is_asked: bool


@dataclass(frozen=True, slots=True)
class Cells:
    """The numbers of the cell that a merchant leaves, and of the one that it goes to, and the steps
    of the schema that both have.
    """

    here: int
    there: int
    steps: frozenset[int]


async def require_cells(source: Side, target: Side, to: int) -> Cells:
    """Make sure that a move goes from one cell of a deployment to cell `to` of it.

    Raises: SetupError, Conflict.
    """
    here, there = [record_of(_Deployment, await queries.deployment(one.database)) for one in (source, target)]
    if here.cell == there.cell:
        raise SetupError("both are one cell: the file given with --to-env is to name the other cell's")
    if there.cell != to:
        raise SetupError(f"the database of --to-env is cell {there.cell}, not {to}")
    if here.is_a_copy or there.is_a_copy:
        raise Conflict("a copy for staging takes part in no move")
    if source.vault.fingerprint(PROBE, purpose=PROBE) != target.vault.fingerprint(PROBE, purpose=PROBE):
        raise SetupError("PAYDESK_SECRET_KEY of both cells is not the same: keys, links and log-ins would not be found")
    steps = await _steps(source)
    if steps != await _steps(target):
        raise SetupError("the schemas of both cells are not the same: run `paydesk migrate` in both with one version")
    for one in (source, target):
        async with one.database.acquire() as connection, connection.transaction():
            await without_triggers(connection)
    return Cells(here.cell, there.cell, steps)


async def require_same_steps(source: Side, target: Side, cells: Cells) -> None:
    """Make sure that no schema has changed since the move began: what a step did to rows that came
    before is not known there. Raises: Conflict.
    """
    for one in (source, target):
        if await _steps(one) != cells.steps:
            raise Conflict("the schema of a cell was brought up to date meanwhile: move the merchant again")


async def _steps(side: Side) -> frozenset[int]:
    """Those that a cell's schema has, without what may be there in one cell and gone in another."""
    waiting = {step.number for step in known_migrations() if step.waits}
    return frozenset(await queries.steps(side.database)) - waiting


async def require_movable(
    source: Side, target: Side, merchant_id: int, *, same_simulator: bool, serves_live: bool
) -> None:
    """Make sure that everything of the merchant can go. Raises: NotFound, Conflict with all
    reasons.
    """
    if not await queries.is_there(source.database, merchant_id=merchant_id):
        raise NotFound(f"there is no merchant {merchant_id}")
    reasons = [
        *await _in_the_way_there(target, merchant_id),
        *await _of_accounts(source, target, merchant_id, serves_live=serves_live),
        *[
            f"the other cell has {email} as the address of somebody else, who is to take their present one there first"
            for email in await addresses_in_use(source.database, target.database, merchant_id)
        ],
        *[
            f"{email} has an account in each cell, and nobody has shown in either that the address is theirs: whose it "
            "is confirms it in one of them first, by its link or by choosing a new password"
            for email in await unproven_addresses(source.database, target.database, merchant_id)
        ],
        *await _of_what_is_open(source, merchant_id, same_simulator=same_simulator),
    ]
    _refuse_for(merchant_id, reasons)


async def require_not_there(target: Side, merchant_id: int) -> None:
    """Make sure that the other cell does not have the merchant already, whatever the fence here
    says, which may have been put back to a time before. Raises: Conflict.
    """
    _refuse_for(merchant_id, await _in_the_way_there(target, merchant_id))


def _refuse_for(merchant_id: int, reasons: Sequence[str]) -> None:
    if reasons:
        raise Conflict(f"merchant {merchant_id} can't move: {'; '.join(reasons)}")


async def _in_the_way_there(target: Side, merchant_id: int) -> list[str]:
    standing = await find_fence(target.database, merchant_id)
    if standing is None and await queries.is_there(target.database, merchant_id=merchant_id):
        return ["the other cell has a merchant of that id"]
    if standing is not None and not standing.arrives:
        return [f"the other cell has handed it over to cell {standing.other_cell}"]
    return []


async def _of_accounts(source: Side, target: Side, merchant_id: int, *, serves_live: bool) -> list[str]:
    """Its own accounts go along; another one is the same if both cells know whose it is, by the
    acquirer's own word.
    """
    own = await own_accounts(source.database, merchant_id)
    reasons = await reasons_of_accounts(source, target, merchant_id, own, serves_live=serves_live)
    along = {one.name for one in own}
    found = await records_of(_Account, queries.live_accounts(source.database, merchant_id=merchant_id))
    used = [one for one in found if one.name not in along]
    known = await _known(target, [one.name for one in used])
    alike = [one for one in used if one.own_id and one.name in known and known[one.name].own_id == one.own_id]
    given_up = [one.name for one in alike if one.is_asked and not known[one.name].is_asked]
    if given_up:
        reasons.append(
            f"its live payments were taken by accounts that the other cell has given up ({', '.join(given_up)}): "
            "nobody there could refund them or charge its subscriptions; enable them there (paydesk acquirer enable "
            "NAME), or add them anew where they are not listed any more"
        )
    foreign = [one.name for one in used if one not in alike]
    if foreign:
        reasons.append(
            f"its live payments were taken by accounts that the other cell does not have ({', '.join(foreign)}): "
            "nobody could refund them or charge its subscriptions there"
        )
    return reasons


async def _known(target: Side, names: Sequence[str]) -> dict[str, _Account]:
    found = await records_of(_Account, queries.known_accounts(target.database, names=list(names)))
    return {one.name: one for one in found}


async def _of_what_is_open(source: Side, merchant_id: int, *, same_simulator: bool) -> list[str]:
    reasons = await in_files(source, merchant_id)
    if not same_simulator and await queries.open_test_outcomes(source.database, merchant_id=merchant_id):
        reasons.append(
            "outcomes of test payments are open, which only this cell's simulated bank knows: try again when they are "
            "known, or give both cells one PAYDESK_SIMULATOR_URL"
        )
    return reasons


async def require_in_no_file(source: Side, merchant_id: int) -> None:
    """Make sure that no file for the bank was made after all that was asked for before the fence:
    the other cell would pay the same once more. Raises: Conflict.
    """
    _refuse_for(merchant_id, await in_files(source, merchant_id))


async def in_files(source: Side, merchant_id: int) -> list[str]:
    """Why nothing of the merchant may be deleted here, in words: payouts may be on their way."""
    lines = await queries.open_payout_files(source.database, merchant_id=merchant_id)
    said = f"{lines} payouts of it stand in a file that the bank has not done: finish or drop that file"
    return [said] if lines else []
