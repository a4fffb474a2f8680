"""A synchronous standby that is lost is told of once and settled by itself,
and shuts the gate where that is wanted.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from tests import breaking
from tests.sweeping import database, database_url

from paydesk.core.errors import Held
from paydesk.database.pool import Database
from paydesk.database.standbys import Standbys
from paydesk.domain.operations import second_server
from paydesk.domain.operations.second_server import StandbyWatch
from paydesk.domain.payments.hold_gate import MoneyGate, Standing

__all__ = ["database", "database_url"]

THERE = Standbys(commits_wait=True, standbys=1, synchronous=1, hidden=0, role="paydesk", warns=True)
LOST = Standbys(commits_wait=True, standbys=0, synchronous=0, hidden=0, role="paydesk", warns=True)


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The database's standbys, as the watch finds them."""
    servers = SimpleNamespace(found=THERE)

    async def look(_database: Any) -> Standbys:
        found: Standbys = servers.found
        return found

    monkeypatch.setattr(second_server, "watch_standbys", look)
    return servers


@pytest.fixture(autouse=True)
async def _no_alarm(database: Database) -> None:
    await breaking.no_alarms(database, "standby_lost")


async def alarms(database: Database) -> list[tuple[str, int, bool]]:
    """Each alarm's reason, how often it was raised, and whether it is open."""
    rows = await database.fetch("select reason, times, settled_at from alarm where kind = 'standby_lost' order by id")
    return [(row["reason"], row["times"], row["settled_at"] is None) for row in rows]


async def test_a_lost_standby_is_one_alarm_that_settles_itself(database: Database, servers: SimpleNamespace) -> None:
    watch = StandbyWatch(database, tells=True)
    await watch.look()
    assert await alarms(database) == []
    servers.found = LOST
    for _ in range(3):
        await watch.look()
    [(reason, times, is_open)] = await alarms(database)
    assert "the database has no standby. Customers go on paying" in reason
    assert (times, is_open) == (1, True)
    servers.found = THERE
    await watch.look()
    assert [is_open for *_, is_open in await alarms(database)] == [False]


async def test_a_process_that_begins_settles_what_one_before_it_raised(
    database: Database, servers: SimpleNamespace
) -> None:
    servers.found = LOST
    await StandbyWatch(database, tells=True).look()
    servers.found = THERE
    await StandbyWatch(database, tells=True).look()
    assert [is_open for *_, is_open in await alarms(database)] == [False]


async def test_what_could_not_be_said_is_said_the_next_time(
    database: Database, servers: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hang(*_: Any, **__: Any) -> None:
        raise TimeoutError

    servers.found = LOST
    watch, gate = StandbyWatch(database, gate=(passed := MoneyGate()), tells=True), passed
    with monkeypatch.context() as hanging:
        hanging.setattr(second_server, "raise_alarms", hang)
        with pytest.raises(TimeoutError):
            await watch.look()
    assert not gate.is_open, "the gate does not wait for the alarm"
    await watch.look()
    [(reason, *_)] = await alarms(database)
    assert "No payment is begun" in reason


async def test_the_gate_is_shut_while_no_standby_is_there_and_says_why(
    database: Database, servers: SimpleNamespace
) -> None:
    gate = MoneyGate()
    watch = StandbyWatch(database, gate=gate)
    with pytest.raises(Held, match="not known yet whether"):
        await gate.require()
    await watch.look()
    await gate.require()
    servers.found = LOST
    await watch.look()
    with pytest.raises(Held, match="the database has no standby") as said:
        await gate.require()
    assert said.value.retry_after > 0
    assert "the database has no standby" in gate.held()
    servers.found = THERE
    await watch.look()
    await gate.require()
    assert gate.held() == ""


async def test_what_else_holds_payments_still_does_when_the_standby_is_back(
    database: Database, servers: SimpleNamespace
) -> None:
    gate = MoneyGate(Standing.LOOKING)
    watch = StandbyWatch(database, gate=gate)
    await watch.look()
    assert not gate.is_open
    gate.say(Standing.OPEN)
    assert gate.is_open
