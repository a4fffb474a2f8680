"""Of several calls that move one merchant at once, each says what is true of it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest
from tests.domain.moving.copies import comes_back, is_gone
from tests.domain.moving.play import THERE, Killed, Play, clean, going, killing
from tests.domain.moving.putting_back import Past

from paydesk.core.errors import Conflict
from paydesk.domain.moving import moving, removing
from paydesk.domain.moving.moving import WAS_THERE, Moved, move_merchant
from paydesk.domain.moving.removing import remove_copy
from paydesk.domain.moving.requirements import require_same_steps
from paydesk.domain.moving.steps import Move, Step


async def test_whoever_loses_hears_that_it_has_moved(joined: Play) -> None:
    play = joined
    calls = [move_merchant(going(play)) for _ in range(4)]
    ends: list[Moved | BaseException] = await asyncio.gather(*calls, return_exceptions=True)
    others = [str(one) for one in ends if not isinstance(one, Moved)]
    assert [one for one in others if "another call has just moved" not in one] == []
    assert len(others) < len(ends)
    assert await move_merchant(going(play)) == WAS_THERE
    assert (await play.is_open(play.here), await play.is_open(play.there)) == (False, True)
    assert (await clean(play.here), await clean(play.there)) == ([], [])


@pytest.mark.parametrize("point", ["_bring_before", "_fence_here", "_bring_last", "_decide"])
async def test_another_call_is_faster(joined: Play, monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    play, honest = joined, getattr(moving, point)

    async def late(*given: Any) -> Any:
        monkeypatch.setattr(moving, point, honest)
        await move_merchant(going(play))
        return await honest(*given)

    monkeypatch.setattr(moving, point, late)
    assert await move_merchant(going(play)) == WAS_THERE
    assert (await play.is_open(play.here), await play.is_open(play.there)) == (False, True)


async def test_another_call_has_moved_it_and_is_not_through(joined: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    play, honest = joined, moving._decide

    async def late(move: Move, *given: Any) -> None:
        monkeypatch.setattr(moving, "_decide", honest)
        with pytest.raises(Killed):
            await move_merchant(move, passed=killing(Step.opened))
        await honest(move, *given)

    monkeypatch.setattr(moving, "_decide", late)
    with pytest.raises(Conflict, match=f"another call has just moved merchant .* to cell {THERE}.*same command again"):
        await move_merchant(going(play))
    assert await play.is_open(play.there)
    assert (await move_merchant(going(play))).was_there is False
    assert await move_merchant(going(play)) == WAS_THERE


async def test_of_two_removals_the_second_says_that_another_is_at_it(
    past: Past, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So does a move that comes meanwhile; who comes later hears that nothing is left."""
    await comes_back(past)
    others: list[Callable[[], Awaitable[object]]] = [
        partial(remove_copy, past.going, lose="any"),
        partial(move_merchant, past.going),
    ]
    said = []

    async def late(*given: Any) -> None:
        for other in others:
            with pytest.raises(Conflict) as refused:
                await other()
            said.append(str(refused.value))
        await require_same_steps(*given)

    monkeypatch.setattr(removing, "require_same_steps", late)
    await remove_copy(past.going)
    assert (await is_gone(past), await past.open_in()) == (True, [THERE])
    at_it = "deleting what is here of it,? at this moment, so that this one has done nothing"
    assert [bool(re.search(at_it, one)) for one in said] == [True, True], said
    with pytest.raises(Conflict, match=r"it is in cell 2 alone, and no copy of it is left to remove"):
        await remove_copy(past.going)


async def test_no_copy_is_removed_while_somebody_moves_the_merchant(
    joined: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    play, honest = joined, moving._decide

    async def late(*given: Any) -> None:
        with pytest.raises(Conflict, match="another call is moving it, or deleting what is here of it, at"):
            await remove_copy(going(play))
        await honest(*given)

    monkeypatch.setattr(moving, "_decide", late)
    await move_merchant(going(play))
    assert await play.is_open(play.there)
