from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from unittest.mock import Mock

import asyncpg
import pytest

from paydesk.core.errors import Unsure
from paydesk.database import surely as module
from paydesk.database.pool import Database
from paydesk.database.surely import drawn_key, surely
from paydesk.domain.merchants.idempotent_calls import check_request_key

GONE = asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation")
Step = Callable[[Any], Awaitable[str | None]]


def steps(*answers: str | Exception | None) -> tuple[Step, list[int]]:
    """Something done with a connection: what it answers or raises time after time,
    and how often it was done.
    """
    done: list[int] = []

    async def step(connection: Any) -> str | None:
        assert await connection.fetchval("select 1") == 1
        done.append(1)
        answer = answers[len(done) - 1]
        if isinstance(answer, Exception):
            raise answer
        return answer

    return step, done


async def test_a_write_that_is_answered_is_done_once_and_not_looked_for(database: Database) -> None:
    (write, written), (look, looked) = steps("row"), steps()
    assert await surely(database, write, look, unsure="?") == "row"
    assert (len(written), len(looked)) == (1, 0)


async def test_what_was_written_before_the_answer_was_lost_is_found(database: Database) -> None:
    (write, written), (look, looked) = steps(GONE), steps("row")
    assert await surely(database, write, look, unsure="?") == "row"
    assert (len(written), len(looked)) == (1, 1)


async def test_what_is_not_there_is_written_again(database: Database) -> None:
    (write, written), (look, looked) = steps(GONE, TimeoutError(), "row"), steps(None, GONE, None)
    assert await surely(database, write, look, unsure="?") == "row"
    assert (len(written), len(looked)) == (3, 3)


async def test_a_database_that_stays_away_leaves_us_unsure(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE", 0)
    (write, written), (look, looked) = steps(GONE), steps()
    with pytest.raises(Unsure, match="look first"):
        await surely(database, write, look, unsure="look first")
    assert (len(written), len(looked)) == (1, 0)


async def test_a_write_that_was_refused_is_an_error_and_not_done_again(database: Database) -> None:
    (write, written), (look, _) = steps(asyncpg.UniqueViolationError("twice")), steps()
    with pytest.raises(asyncpg.UniqueViolationError):
        await surely(database, write, look, unsure="?")
    assert len(written) == 1


async def test_where_nothing_could_be_sent_the_database_is_simply_away() -> None:
    away: Any = Mock(acquire=Mock(side_effect=ConnectionRefusedError))
    (write, written), (look, _) = steps(), steps()
    with pytest.raises(ConnectionRefusedError):
        await surely(away, write, look, unsure="?")
    assert not written


def test_a_drawn_key_is_nobody_elses() -> None:
    assert drawn_key() != drawn_key()
    assert len(drawn_key()) > 32, "too long to be guessed"


def test_a_caller_may_send_the_key_that_was_drawn() -> None:
    key = drawn_key()
    assert check_request_key(key) == key
