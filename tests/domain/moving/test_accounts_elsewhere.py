"""An account that has gone to another cell with its merchant is that cell's alone: nobody adds it
again where it was, and what an operator is to do about it stands there.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest
from tests.domain.moving.owning import THEIRS, Owning
from tests.domain.moving.play import Cell, Killed, back, going, killing

from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict
from paydesk.database.statements import Connection
from paydesk.domain.accounts.audit import COMMAND_LINE
from paydesk.domain.acquirers.accounts import queries as account_queries
from paydesk.domain.alarms.kinds import AlarmKind
from paydesk.domain.alarms.raising import Alarm, raise_alarms
from paydesk.domain.cells.fencing import lift
from paydesk.domain.moving.cancelling import cancel_move
from paydesk.domain.moving.moving import move_merchant
from paydesk.domain.moving.steps import Step
from paydesk.domain.moving.tables import GUARDED
from paydesk.domain.operations.own_accounts import require_new
from paydesk.domain.operations.proceeds import accept_finding
from paydesk.domain.proceeds.findings import Finding, FindingKind
from paydesk.domain.proceeds.for_operator import list_findings
from paydesk.domain.proceeds.matching import keep_findings

ADDRESS = f"http://{THEIRS}.test"


async def test_it_is_not_added_where_it_was_by_name_or_key(own: Owning) -> None:
    play = own.play
    await move_merchant(going(play))
    for name in (THEIRS, "another"):
        with pytest.raises(Conflict, match=f'"{THEIRS}" is in cell 2, with its merchant'):
            await own.add(play.here, name, address=ADDRESS)
    await move_merchant(back(play))
    await own.look()
    with pytest.raises(Conflict, match="there already"):
        await own.add(play.here, "another", address=ADDRESS)
    with pytest.raises(Conflict, match=f'"{THEIRS}" is in cell 1, with its merchant'):
        await own.add(play.there, "another", address=ADDRESS)


async def test_it_is_not_added_where_it_was_by_what_its_acquirer_calls_it(own: Owning) -> None:
    play = own.play
    await account_queries.keep_own_id(play.here.database, account=THEIRS, own_id="acct_theirs")
    await move_merchant(going(play))
    with pytest.raises(Conflict, match=f'"{THEIRS}" is in cell 2, with its merchant'):
        await require_new(play.here.desk, "another", "simulator", "acct_theirs", b"another key")
    await require_new(play.here.desk, "another", "simulator", "acct_another", b"another key")


async def test_where_it_was_it_is_not_added_after_a_return_that_was_cancelled(own: Owning) -> None:
    play = own.play
    await move_merchant(going(play))
    with pytest.raises(Killed):
        await move_merchant(back(play), passed=killing(Step.copied))
    await cancel_move(back(play))
    with pytest.raises(Conflict, match=f'"{THEIRS}" is in cell 2, with its merchant'):
        await own.add(play.here, THEIRS, address=ADDRESS)


async def told(cell: Cell) -> list[tuple[str, str]]:
    """The alarms that are open, and of no merchant."""
    asked = "select kind, subject from alarm where settled_at is null and merchant_id = 0 order by 1, 2"
    return [(row["kind"], row["subject"]) for row in await cell.database.fetch(asked)]


async def differ(cell: Cell, *keys: str, over: Sequence[str] = ()) -> None:
    """Payments that an account's balance lacks were found; those that are `over` have come."""

    @asynccontextmanager
    async def within() -> AsyncIterator[Connection]:
        async with cell.database.acquire() as connection, connection.transaction():
            yield connection

    found = [Finding(FindingKind.NOT_TOLD, key, "5.00 USD are not in the balance") for key in keys]
    await keep_findings(within, THEIRS, found, over, frozenset({FindingKind.NOT_TOLD}), now=utc_now())


async def test_what_differs_at_it_is_told_where_it_is(own: Owning) -> None:
    play = own.play
    await differ(play.here, "missing", "taken")
    taken = next(one.id for one in await list_findings(play.here.database) if one.subject == "taken")
    await accept_finding(play.here.database, COMMAND_LINE, taken, "it is so", now=utc_now())
    await move_merchant(going(play))
    subject = f"not_told missing at {THEIRS}"
    assert (await told(play.here), await told(play.there)) == ([], [("proceeds_differ", subject)])
    await move_merchant(back(play))
    assert (await told(play.here), await told(play.there)) == ([("proceeds_differ", subject)], [])


async def test_what_agreed_again_before_it_came_is_not_told_there(own: Owning) -> None:
    play = own.play
    await differ(play.here, "missing")
    with pytest.raises(Killed):
        await move_merchant(going(play), passed=killing(Step.completed))
    assert await lift(play.here.database, play.merchant.id, tables=GUARDED)
    await differ(play.here, over=["missing"])
    await move_merchant(going(play))
    assert (await told(play.here), await told(play.there)) == ([], [])


async def test_a_cancelled_move_leaves_its_alarms_here(own: Owning) -> None:
    play = own.play
    await differ(play.here, "missing")
    before = await told(play.here)
    with pytest.raises(Killed):
        await move_merchant(going(play), passed=killing(Step.completed))
    await cancel_move(going(play))
    assert (await told(play.here), await told(play.there)) == (before, [])


async def test_alarms_about_something_else_of_that_name_stay(own: Owning) -> None:
    play = own.play
    raised = [Alarm(kind, THEIRS, "it is so") for kind in (AlarmKind.policy_violated, AlarmKind.refunds_unread)]
    await raise_alarms(play.here.database, raised, now=utc_now())
    await move_merchant(going(play))
    assert await told(play.here) == [("policy_violated", THEIRS)]
