"""Of calls that lead one merchant to different cells at once one does, and the others say where it
is; what they leave on the way can be cleared up from where it came to.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.domain.moving.owning import with_secrets
from tests.domain.moving.play import HERE, THERE, Killed, enlist, killing
from tests.domain.moving.putting_back import HOME, Past
from tests.set_back import accounts_serve

from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict, NotFound
from paydesk.domain.cells.directory import cells_of_person, enter
from paydesk.domain.cells.entering import account_to_enter, email_to_enter
from paydesk.domain.cells.fencing import find_fence
from paydesk.domain.cells.half_moved import every_half
from paydesk.domain.moving import accounts, cancelling, moving
from paydesk.domain.moving.cancelling import cancel_move
from paydesk.domain.moving.moving import WAS_THERE, Moved, move_merchant
from paydesk.domain.moving.steps import Move, Step


def elsewhere(past: Past) -> Move:
    """The merchant goes to a third cell."""
    return Move(past.play.here.side, past.home, past.home.database, past.play.merchant.id, HOME, same_simulator=True)


def on_from_there(past: Past) -> Move:
    """It goes on from there to the second cell."""
    return Move(past.home, past.play.there.side, past.home.database, past.play.merchant.id, THERE, same_simulator=True)


def back(past: Past) -> Move:
    """It comes back from there."""
    play = past.play
    return Move(play.there.side, play.here.side, past.home.database, play.merchant.id, HERE, same_simulator=True)


async def stands(past: Past) -> tuple[list[int], int | None, list[int]]:
    """The cells in which the merchant works, the one that the directory leads to, and those in
    which it is fenced.
    """
    whose = past.play.merchant.id
    databases = {HERE: past.play.here.database, THERE: past.play.there.database, HOME: past.home.database}
    fenced = [number for number, one in databases.items() if await find_fence(one, whose) is not None]
    asked = "select count(*) from merchant where id = $1"
    found = [number for number, one in databases.items() if await one.fetchval(asked, whose)]
    return [one for one in found if one not in fenced], await past.led_to(), fenced


def once(monkeypatch: pytest.MonkeyPatch, room: Any, name: str, first: Callable[[], Awaitable[None]]) -> None:
    """Before a function is called once, something else comes to pass."""
    honest = getattr(room, name)

    async def late(*given: Any, **named: Any) -> Any:
        monkeypatch.setattr(room, name, honest)
        await first()
        return await honest(*given, **named)

    monkeypatch.setattr(room, name, late)


@pytest.mark.parametrize("point", ["_bring_before", "_fence_here", "_bring_last", "_decide"])
async def test_a_call_to_another_cell_is_faster(past: Past, monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    """Or comes too late, once it is on its way."""
    ends: list[Moved | BaseException] = []

    async def other_call() -> None:
        ends.extend(await asyncio.gather(move_merchant(elsewhere(past)), return_exceptions=True))

    once(monkeypatch, moving, point, other_call)
    ends.extend(await asyncio.gather(move_merchant(past.going), return_exceptions=True))
    moved = [one for one in ends if isinstance(one, Moved)]
    refused = [str(one) for one in ends if isinstance(one, (Conflict, NotFound))]
    assert (len(moved), len(refused)) == (1, 1), ends
    is_faster = point in ("_bring_before", "_fence_here")
    where = HOME if is_faster else THERE
    assert (await stands(past))[:2] == ([where], where)
    said = f"directory leads to it in cell {HOME}; what came" if is_faster else f"on the way to cell {THERE}"
    assert said in refused[0]
    if is_faster:
        await cancel_move(on_from_there(past))
    assert await stands(past) == ([where], where, [])
    if is_faster:
        await move_merchant(on_from_there(past))
        assert await stands(past) == ([THERE], THERE, [])


async def test_both_get_there_while_nobody_has_fenced_it(past: Past, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second to fence it leaves the fence of the first alone."""
    once(monkeypatch, moving, "_fence_here", lambda: move_until_fenced(past))
    with pytest.raises(Conflict, match=f"another call has just put it on the way to cell {THERE}"):
        await move_merchant(elsewhere(past))
    assert (await stands(past))[2] == [HERE, THERE, HOME]
    await move_merchant(past.going)
    assert (await stands(past))[:2] == ([THERE], THERE)


async def move_until_fenced(past: Past) -> None:
    """A move to the second cell dies once it has closed the merchant."""
    with pytest.raises(Killed):
        await move_merchant(past.going, passed=killing(Step.closed))


@pytest.mark.parametrize("step", [Step.copied, Step.completed])
async def test_what_a_move_that_was_given_up_has_brought_goes_by_a_cancel_from_where_the_merchant_is(
    past: Past, step: Step, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Killed):
        await move_merchant(past.going, passed=killing(step))
    if step is Step.completed:
        # Who cancels it dies, too, once it goes on here.
        monkeypatch.setattr(cancelling, "_empty_there", killed)
        with pytest.raises(Killed):
            await cancel_move(past.going)
        monkeypatch.undo()
    await move_merchant(elsewhere(past))
    assert await stands(past) == ([HOME], HOME, [THERE])
    with pytest.raises(
        NotFound, match=f"in cell {HOME}; what came to cell {THERE} from here is emptied there by: .*--c"
    ):
        await cancel_move(past.going)
    with pytest.raises(Conflict, match=f"to cell {THERE} from cell {HERE}: end that .* with --cancel empties it"):
        await move_merchant(on_from_there(past))
    await cancel_move(on_from_there(past))
    assert await stands(past) == ([HOME], HOME, [])
    await move_merchant(on_from_there(past))
    assert await stands(past) == ([THERE], THERE, [])


async def killed(*_: object) -> None:
    raise Killed


async def test_a_cancel_that_comes_as_the_move_ends_says_that_it_has_moved(
    past: Past, monkeypatch: pytest.MonkeyPatch
) -> None:
    await past.until(Step.closed)
    once(monkeypatch, cancelling, "lift", lambda: past.until(None))
    with pytest.raises(Conflict, match="not here any more: another call has just ended a move of it"):
        await cancel_move(past.going)
    assert await stands(past) == ([THERE], THERE, [])


async def test_a_call_that_comes_to_its_end_late_leads_nobody_back(past: Past, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two end a move, and the merchant has gone on before the slower one leads there."""
    await past.until(Step.moved)

    async def goes_on() -> None:
        await past.until(None)
        await move_merchant(replace(past.going_home, same_simulator=True))

    once(monkeypatch, moving, "open_there", goes_on)
    with pytest.raises(NotFound, match=f"directory leads to it in cell {HOME}"):
        await move_merchant(past.going)
    assert await stands(past) == ([HOME], HOME, [])


async def test_a_call_that_comes_to_its_end_once_another_one_has_ended_it_says_that_it_was_there(
    past: Past, monkeypatch: pytest.MonkeyPatch
) -> None:
    await past.until(Step.moved)
    once(monkeypatch, moving, "open_there", lambda: past.until(None))
    steps = list[Step]()
    assert await move_merchant(past.going, passed=steps.append) == WAS_THERE
    assert steps == [Step.completed], "brought once more, and neither led there nor opened by this call"
    assert await stands(past) == ([THERE], THERE, [])


async def test_the_accounts_of_what_was_left_over_are_where_the_merchant_has_gone(
    past: Past, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not in the cell from which they came to where they are emptied."""
    play = past.play
    monkeypatch.setattr(accounts, "OPENED_AFTER", timedelta(0))
    await with_secrets(play.here, play.merchant.id, "stripe-own")
    await accounts_serve(play.here.database)
    with pytest.raises(Killed):
        await move_merchant(past.going, passed=killing(Step.copied))
    await move_merchant(elsewhere(past))
    await cancel_move(on_from_there(past))
    asked = "select gone_because, moved_to from acquirer_lost where account = 'stripe-own'"
    assert tuple(await play.there.database.fetchrow(asked)) == ("the move of its merchant here was cancelled", HOME)
    assert tuple(await play.here.database.fetchrow(asked)) == (f"it went to cell {HOME}", HOME)


async def test_a_call_that_comes_to_its_end_late_opens_nobody_who_comes_back(
    past: Past, monkeypatch: pytest.MonkeyPatch
) -> None:
    await past.until(Step.moved)

    async def goes_on_and_comes_back() -> None:
        await past.until(None)
        await move_merchant(replace(past.going_home, same_simulator=True))
        with pytest.raises(Killed):
            await move_merchant(on_from_there(past), passed=killing(Step.completed))

    once(monkeypatch, moving, "open_there", goes_on_and_comes_back)
    await asyncio.gather(move_merchant(past.going), return_exceptions=True)
    assert await stands(past) == ([], HOME, [THERE, HOME])
    await move_merchant(on_from_there(past))
    assert await stands(past) == ([THERE], THERE, [])


@pytest.mark.parametrize("comes_again", [False, True])
async def test_a_call_that_comes_to_its_end_late_does_nothing_to_who_has_come_back(
    past: Past, monkeypatch: pytest.MonkeyPatch, comes_again: bool
) -> None:
    """It neither leads to the cell that the merchant has left since, nor opens what comes there
    once more.
    """
    await past.until(Step.moved)

    async def goes_and_comes_back() -> None:
        await past.until(None)
        await move_merchant(back(past))
        if comes_again:
            await past.until(Step.completed)

    once(monkeypatch, moving, "open_there", goes_and_comes_back)
    said, steps = ("is on its way there again" if comes_again else "it is here"), list[Step]()
    with pytest.raises(Conflict, match=f"another call has ended this move .* it has come back since.*{said}"):
        await move_merchant(past.going, passed=steps.append)
    assert steps == [Step.completed], "neither led there nor opened by this call"
    assert await stands(past) == (([], HERE, [HERE, THERE]) if comes_again else ([HERE], HERE, []))
    await move_merchant(past.going)
    assert await stands(past) == ([THERE], THERE, [])


@pytest.mark.parametrize("second", [Step.closed, Step.moved, Step.switched])
async def test_of_two_moves_the_later_one_is_named_that_has_to_be_ended_first(past: Past, second: Step) -> None:
    """By the commands of the cell that was left first, and by `paydesk cell check`."""
    await past.until(Step.opened)
    on = replace(past.going_home, same_simulator=True)
    with pytest.raises(Killed):
        await move_merchant(on, passed=killing(second))
    named = f"paydesk merchant move {past.play.merchant.id} --to {HOME}"
    refused = [past.going, elsewhere(past)] if second is Step.switched else [past.going]
    for move in refused:
        with pytest.raises(Conflict, match=f"first, in cell {THERE}, by: {named}"):
            await move_merchant(move)
    words = f"run in cell {THERE}: {named}"
    mayhap = ", or that with --cancel" if second is Step.closed else ""
    to_do = {one.removeprefix("unless it is moved just now, ") for one in await checked(past)}
    assert to_do == {words + mayhap}
    await move_merchant(on)
    with pytest.raises(Conflict, match=f"left here goes by: {named}"):
        await move_merchant(past.going)
    assert await checked(past) == [f"unless it is moved just now, run in cell {HERE}: {named}"]
    await move_merchant(elsewhere(past))
    assert (await stands(past), await checked(past)) == (([HOME], HOME, []), [])


async def test_a_check_names_the_cancel_that_empties_what_is_left_over(past: Past) -> None:
    with pytest.raises(Killed):
        await move_merchant(past.going, passed=killing(Step.copied))
    await move_merchant(elsewhere(past))
    named = f"paydesk merchant move {past.play.merchant.id} --to {THERE} --cancel"
    assert await checked(past) == [f"unless it is moved just now, run in cell {HOME}: {named}"]
    await cancel_move(on_from_there(past))
    assert await checked(past) == []


async def checked(past: Past) -> list[str]:
    """What a check says is to be done of moves that were left half-way."""
    cells = {HERE: past.play.here.database, THERE: past.play.there.database, HOME: past.home.database}
    halves = await every_half(past.home.database, cells, now=utc_now() + timedelta(hours=1))
    return [to_do for cell in cells for _, to_do in halves.said_of(cell)]


async def test_who_logs_in_in_a_third_cell_goes_on_doing_so(past: Past) -> None:
    """Their only shop where the merchant was goes; the one by which they log in stays."""
    here, vault, email = past.play.here, past.play.here.vault, "ann@shop.example"
    await enlist(here, past.play.merchant.id, email)
    await enter(past.home.database, [email_to_enter(vault, email)], HOME, now=utc_now())
    await enter(past.home.database, [account_to_enter(vault, email, HERE)], HERE, now=utc_now())
    await past.until(None)
    found = await cells_of_person(past.home.database, vault, email)
    assert [one.number for one in found] == [HERE, THERE, HOME]


async def test_nobody_finds_in_the_other_cell_who_goes_on_here(past: Past, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even if all had come, and the move was refused then."""

    async def refuse(*_: object) -> None:
        raise Conflict("a file was made")

    monkeypatch.setattr(moving, "require_in_no_file", refuse)
    with pytest.raises(Conflict, match="a file was made"):
        await move_merchant(past.going)
    for table, of in (("merchant", "id"), ("merchant_key", "merchant_id")):
        asked = f"select count(*) from {table} where {of} = $1"
        assert await past.play.there.database.fetchval(asked, past.play.merchant.id) == 0
    assert await past.play.is_open(past.play.here)
    monkeypatch.undo()
    await move_merchant(past.going)
    assert await stands(past) == ([THERE], THERE, [])


async def test_a_call_that_is_refused_hides_nothing_of_what_another_is_about_to_decide(
    past: Past, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refused_meanwhile() -> None:
        async def refuse() -> None:
            raise Conflict("a file was made")

        once(monkeypatch, moving, "require_in_no_file", refuse)
        with pytest.raises(Conflict, match="a file was made"):
            await move_merchant(past.going)

    once(monkeypatch, moving, "_decide", refused_meanwhile)
    with pytest.raises(Conflict, match="was cancelled, or the other cell came back"):
        await move_merchant(past.going)
    assert (await stands(past))[:2] == ([HERE], HERE)
    await move_merchant(past.going)
    assert await stands(past) == ([THERE], THERE, [])
