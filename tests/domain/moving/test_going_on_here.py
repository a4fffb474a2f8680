"""Whatever a move fails for once its merchant is fenced, the merchant goes on where it is."""

from __future__ import annotations

from typing import Any

import pytest
from tests.breaking import forget_own_ids, refusing, say
from tests.domain.moving.owning import THEIRS, Owning
from tests.domain.moving.play import Killed, Play, going, killing
from tests.till import Till

from paydesk.core.errors import Conflict, SetupError, Unavailable
from paydesk.database.migrating import Migration, known_migrations, migrate
from paydesk.domain.acquirers.accounts import queries as account_queries
from paydesk.domain.cells.fencing import close, fence, lift
from paydesk.domain.moving import accounts, moving, requirements
from paydesk.domain.moving.cancelling import cancel_move
from paydesk.domain.moving.moving import move_merchant
from paydesk.domain.moving.passes import CalledBack, bring
from paydesk.domain.moving.steps import Move, Step
from paydesk.domain.moving.tables import GUARDED
from paydesk.domain.payments.results import Paid


@pytest.mark.parametrize("step", [Step.fenced, Step.closed, Step.completed])
async def test_a_reason_that_is_found_when_a_killed_move_goes_on(own: Owning, step: Step) -> None:
    play = own.play
    with pytest.raises(Killed):
        await move_merchant(going(play), passed=killing(step))
    await own.rule(play.here, THEIRS, None)
    with pytest.raises(Conflict, match="rules that are not its own"):
        await move_merchant(going(play))
    assert await play.is_open(play.here)
    assert await own.till(play.here).buy("goes-on") == Paid()


async def test_an_account_that_the_other_cell_has_learnt_to_be_another_one(
    own: Owning, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both cells ask the acquirer whose the account is when the merchant has just been fenced."""
    play = own.play
    await own.add(play.there, "shared")
    for cell in (play.here, play.there):
        await forget_own_ids(cell.database)
    require = accounts.require_that_they_serve

    async def learn(*given: Any) -> None:
        await require(*given)
        for cell, name in ((play.here, THEIRS), (play.there, "shared")):
            await account_queries.keep_own_id(cell.database, account=name, own_id="acct_1")

    monkeypatch.setattr(moving, "require_that_they_serve", learn)
    with pytest.raises(Conflict, match=r"only once \(acquirer_own_id: .*run the same command again"):
        await move_merchant(going(play))
    assert await play.is_open(play.here)
    with pytest.raises(Conflict, match='asks the account "theirs" as "shared" already'):
        await move_merchant(going(play))


async def test_the_other_database_goes_away_in_the_last_pass(play: Play) -> None:
    async with refusing(play.there.database, "merchant", "pg_terminate_backend(pg_backend_pid())"):
        with pytest.raises(Unavailable, match="run the same command again"):
            await move_merchant(play.move)
    assert await play.is_open(play.here)
    assert await Till(play.here.desk, play.shop).buy("goes-on") == Paid()
    await move_merchant(play.move)
    assert await play.is_open(play.there)


async def test_a_schema_that_was_brought_up_to_date_meanwhile(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    require, step = requirements.require_same_steps, Migration(9000, "9000_step", "select 1")

    async def late(*given: Any) -> None:
        for cell in (play.here, play.there):
            await migrate(cell.database, steps=[step])
        await require(*given)

    monkeypatch.setattr(moving, "require_same_steps", late)
    with pytest.raises(Conflict, match="brought up to date meanwhile: move the merchant again"):
        await move_merchant(play.move)
    assert await play.is_open(play.here)
    monkeypatch.undo()
    await move_merchant(play.move)
    assert await play.is_open(play.there)


async def test_a_schema_that_was_brought_up_to_date_while_who_has_moved_comes_again(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has moved, and is open in neither cell until what a step did is known in both."""
    with pytest.raises(Killed):
        await move_merchant(play.move, passed=killing(Step.moved))
    step = Migration(9000, "9000_step", "select 1")

    async def bring_late(*given: Any, **more: Any) -> Any:
        brought = await bring(*given, **more)
        for cell in (play.here, play.there):
            await migrate(cell.database, steps=[step])
        return brought

    monkeypatch.setattr(moving, "bring", bring_late)
    with pytest.raises(Conflict, match="brought up to date meanwhile: move the merchant again"):
        await move_merchant(play.move)
    assert (await play.is_open(play.here), await play.is_open(play.there)) == (False, False)
    monkeypatch.undo()
    await move_merchant(play.move)
    assert (await play.is_open(play.here), await play.is_open(play.there)) == (False, True)


async def test_what_only_older_code_needs_may_be_in_one_cell_alone(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    step = Migration(9000, "9000_step", "-- once no older code runs\nselect 1")
    await migrate(play.there.database, steps=[step], alone=True)
    with pytest.raises(SetupError, match="schemas of both cells are not the same"):
        await move_merchant(play.move)
    monkeypatch.setattr(requirements, "known_migrations", lambda: (*known_migrations(), step))
    await move_merchant(play.move)
    assert await play.is_open(play.there)


async def test_who_is_open_in_the_other_cell_stays_closed_here(play: Play) -> None:
    """The database here was put back to a time before the merchant had moved."""
    with pytest.raises(Killed):
        await move_merchant(play.move, passed=killing(Step.opened))
    await say(play.here.database, "merchant_fence", {}, moved_at=None)
    with pytest.raises(Conflict, match=r"is in both cells.*stays closed here"):
        await move_merchant(play.move)
    assert (await play.is_open(play.here), await play.is_open(play.there)) == (False, True)


async def test_it_has_not_moved_by_a_pass_after_which_it_went_on(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another call had it go on after this one's last pass, and has fenced it again."""
    decide, database = moving._decide, play.here.database

    async def decide_late(move: Move, *given: Any) -> None:
        await lift(database, move.merchant_id, tables=GUARDED)
        assert await Till(play.here.desk, play.shop).buy("meanwhile") == Paid()
        await fence(database, move.merchant_id, other_cell=move.to, tables=GUARDED)
        await close(database, move.merchant_id, patience=60)
        await decide(move, *given)

    monkeypatch.setattr(moving, "_decide", decide_late)
    with pytest.raises(CalledBack):
        await move_merchant(play.move)
    monkeypatch.undo()
    await cancel_move(play.move)
    assert await play.is_open(play.here)
