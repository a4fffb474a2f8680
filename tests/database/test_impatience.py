"""Who asks a database that hangs waits as long as they said, whatever is left of the question."""

from __future__ import annotations

import asyncio

import pytest

from paydesk.database.impatience import answered_within


class Hanging:
    """A question without an answer, whose connection takes its time to be given back."""

    def __init__(self) -> None:
        self.may_end = asyncio.Event()
        self.has_ended = asyncio.Event()

    async def ask(self) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await self.may_end.wait()
            self.has_ended.set()


async def test_an_answer_in_time_is_given_as_it_is() -> None:
    async def answer() -> int:
        return 8

    async def fail() -> None:
        raise LookupError

    assert await answered_within(60, answer()) == 8
    with pytest.raises(LookupError):
        await answered_within(60, fail())


async def test_who_waited_long_enough_does_not_wait_for_the_connections_return() -> None:
    hanging = Hanging()
    with pytest.raises(TimeoutError):
        await answered_within(0.01, hanging.ask())
    assert not hanging.has_ended.is_set()
    hanging.may_end.set()
    await hanging.has_ended.wait()


async def test_who_has_gone_leaves_no_question_behind() -> None:
    hanging = Hanging()
    asking = asyncio.create_task(answered_within(60, hanging.ask()))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    hanging.may_end.set()
    await hanging.has_ended.wait()
