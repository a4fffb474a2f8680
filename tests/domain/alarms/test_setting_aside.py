"""One bad row stops nobody."""

from __future__ import annotations

from collections.abc import Sequence
from unittest.mock import AsyncMock

import asyncpg
import pytest
from tests.lengths import long

from paydesk.database.pool import Database
from paydesk.domain.alarms.setting_aside import reason_of, set_aside, side_by_side, together
from paydesk.domain.merchants.shop import Shop


def recording(*bad: int, to: list[int] | None = None) -> AsyncMock:
    """Records numbers, but not bad ones."""
    recorded = [] if to is None else to

    async def record(numbers: Sequence[int]) -> list[int]:
        if met := set(bad) & set(numbers):
            raise ValueError(f"{min(met)} is bad")
        recorded.extend(numbers)
        return [number * 10 for number in numbers]

    return AsyncMock(side_effect=record)


async def test_a_good_batch_is_one_call() -> None:
    record = recording()
    worked = await together(range(100), record)
    assert (record.call_count, worked.results, worked.failed) == (1, [number * 10 for number in range(100)], [])


async def test_nothing_is_no_call() -> None:
    record = recording()
    assert (await together([], record)).results == []
    record.assert_not_called()


@pytest.mark.parametrize("bad", [[0], [499], [250], [3, 4], [1, 100, 499]])
async def test_bad_rows_are_found_and_the_rest_is_recorded_once(bad: list[int]) -> None:
    recorded: list[int] = []
    record = recording(*bad, to=recorded)
    worked = await together(range(500), record)
    assert [(item, str(error)) for item, error in worked.failed] == [(one, f"{one} is bad") for one in bad]
    assert sorted(recorded) == [number for number in range(500) if number not in bad]
    assert record.call_count <= 20 * len(bad), "halves, not each by itself"


async def test_a_database_that_is_away_says_nothing_of_any_row() -> None:
    async def away(_: Sequence[int]) -> list[int]:
        raise asyncpg.CannotConnectNowError("the database system is starting up")

    with pytest.raises(asyncpg.CannotConnectNowError):
        await together(range(4), away)


async def test_who_met_at_the_same_rows_goes_once_more() -> None:
    tries: list[int] = []

    async def meet_once(numbers: Sequence[int]) -> list[int]:
        tries.append(len(numbers))
        if len(tries) == 1:
            raise asyncpg.DeadlockDetectedError("deadlock detected")
        return list(numbers)

    assert (await together([1, 2], meet_once)).results == [1, 2]
    assert tries == [2, 2]


async def test_one_by_one_a_bad_one_stops_no_other() -> None:
    async def record_one(number: int) -> int:
        return int((await record([number]))[0])

    record = recording(2)
    worked = await side_by_side([1, 2, 3], record_one)
    assert worked.results == [10, 30]
    assert [item for item, _ in worked.failed] == [2]


@long
async def test_what_was_set_aside_waits_in_the_operators_list(database: Database, shop: Shop) -> None:
    worked = await together([1, 2, 3], recording(2))
    aside = await set_aside(database, worked, lambda number: (shop, f"thing {number}"), doing="it can't be counted")
    assert aside == [2]
    row = await database.fetchrow("select subject, reason from alarm where merchant_id = $1", shop.merchant_id)
    assert tuple(row) == ("thing 2", "it can't be counted: ValueError: 2 is bad")


def test_a_reason_holds_no_values_of_the_row() -> None:
    error = asyncpg.CheckViolationError("new row violates a check")
    error.detail = "Failing row contains (ada@people.example)."
    assert reason_of(error) == "CheckViolationError: new row violates a check"
