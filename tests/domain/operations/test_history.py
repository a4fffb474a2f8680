"""A database that forgot something is noticed by the first connection to it,
and nothing that moves money is begun.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from tests import breaking, set_back
from tests.conftest import migrated_database
from tests.lengths import long

from paydesk.core.errors import Held
from paydesk.database.pool import Database, connected
from paydesk.domain.operations import history as module
from paydesk.domain.operations.history import (
    Beat,
    History,
    HistoryVerdict,
    Memory,
    Reading,
    compare,
    hold,
    queries,
    read,
)
from paydesk.domain.operations.restoring import GAP
from paydesk.domain.payments.hold_gate import Standing

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
HERE, PROMOTED, ELSEWHERE = "71/00000002", "71/00000003", "72/00000001"

MEMORY = Memory("tag", Beat(2, 500), HERE)
READING = Reading(
    deployment="tag",
    beat=Beat(2, 500),
    place=HERE,
    arrived=HERE,
    whole=HERE,
    beaten_at=NOON,
    judged_at=None,
    held_at=None,
    held_because="",
    held_since=None,
)


@pytest.mark.parametrize(
    ("changed", "verdict"),
    [
        ({}, HistoryVerdict.SAME),
        ({"beat": Beat(2, 501)}, HistoryVerdict.SAME),
        ({"beat": Beat(3, 1)}, HistoryVerdict.SAME),
        ({"beat": Beat(2, 499)}, HistoryVerdict.WENT_BACK),
        ({"beat": Beat(1, 900)}, HistoryVerdict.WENT_BACK),
        ({"place": PROMOTED}, HistoryVerdict.ELSEWHERE),
        ({"place": PROMOTED, "whole": PROMOTED}, HistoryVerdict.SAME),
        ({"place": PROMOTED, "beat": Beat(2, 499)}, HistoryVerdict.WENT_BACK),
        ({"place": "71/00000001", "whole": "71/00000001"}, HistoryVerdict.WENT_BACK),
        ({"place": ELSEWHERE}, HistoryVerdict.UNKNOWN),
        ({"place": ELSEWHERE, "whole": ELSEWHERE}, HistoryVerdict.UNKNOWN),
        ({"place": ELSEWHERE, "beat": Beat(2, 499)}, HistoryVerdict.WENT_BACK),
        ({"deployment": "another", "beat": Beat(1, 1)}, HistoryVerdict.UNKNOWN),
    ],
)
def test_numbers_servers_and_timelines_say_whether_history_went_back(
    changed: dict[str, object], verdict: HistoryVerdict
) -> None:
    assert compare(MEMORY, replace(READING, **changed)) is verdict  # type: ignore[arg-type]


def test_who_remembers_nothing_knows_nothing() -> None:
    assert compare(None, READING) is HistoryVerdict.UNKNOWN


@pytest.mark.parametrize(
    ("changed", "since"),
    [
        ({}, NOON - timedelta(minutes=10)),
        ({"held_since": NOON - timedelta(days=7)}, NOON - timedelta(days=7, minutes=10)),
        ({"judged_at": NOON - timedelta(minutes=2)}, NOON - timedelta(minutes=2)),
        ({"judged_at": NOON - timedelta(days=2)}, NOON - timedelta(minutes=10)),
    ],
)
def test_lists_are_read_back_to_before_the_last_beat(changed: dict[str, object], since: datetime) -> None:
    assert replace(READING, **changed).look_since == since  # type: ignore[arg-type]


@pytest.fixture(scope="module")
async def own_url(server_url: str) -> AsyncIterator[str]:
    """A database that these tests have to themselves."""
    async with migrated_database(server_url) as url:
        yield url


@pytest.fixture
async def own(own_url: str) -> AsyncIterator[Database]:
    """That database in its first epoch, as one on which all was there when it was last looked."""
    async with connected(own_url, most=4) as pool:
        await set_back.history_begins_here(pool)
        yield pool


async def remembering(database: Database, ahead: int = 0) -> History:
    """A process that saw so many beats more than the database knows of."""
    memory = (await read(database)).memory
    return History(replace(memory, beat=Beat(memory.beat.epoch, memory.beat.number + ahead)))


async def test_a_beat_is_committed_once_however_many_beat(own: Database) -> None:
    for _ in range(3):
        await queries.beat(own, rest=timedelta(seconds=60))
    assert (await read(own)).beat.number == 500
    await asyncio.gather(*(queries.beat(own, rest=timedelta(0)) for _ in range(3)))
    assert 501 <= (await read(own)).beat.number <= 503
    # The database's clock was set back: beats go on.
    await own.execute("update history set beaten_at = clock_timestamp() + interval '1 hour', number = 500")
    await queries.beat(own, rest=timedelta(seconds=60))
    assert (await read(own)).beat.number == 501


async def test_nobody_beats_on_a_server_on_which_nobody_has_looked(own: Database) -> None:
    await breaking.say(own, "history", {}, whole="another/00000001")
    await queries.beat(own, rest=timedelta(0))
    assert (await read(own)).beat.number == 500


async def test_a_process_that_remembers_as_much_as_the_database_works_at_once(own_url: str, own: Database) -> None:
    process = await remembering(own)
    async with connected(own_url, most=1, meet=process.meet) as pool:
        assert process.gate.is_open
        assert await pool.fetchval("select epoch from deployment") == 1
    await process.gate.require()


async def test_what_is_remembered_of_a_machine_that_was_put_back_whole_is_not_trusted(own: Database) -> None:
    await own.execute("update history set beaten_at = clock_timestamp() - interval '1 hour'")
    history = await remembering(own)
    await history.ask(own)
    assert history.gate.standing is Standing.LOOKING
    await history.refresh(own)
    assert history.gate.standing is Standing.LOOKING, "until somebody has looked"
    history.looked_through(await read(own))
    await history.refresh(own)
    assert history.gate.is_open, "and one that runs goes on, however long the database was away"


async def test_a_lower_beat_holds_before_the_connection_works_and_ids_never_come_twice(
    own_url: str, own: Database
) -> None:
    last = await own.fetchval("select nextval('payment_id_seq')")
    process = await remembering(own, ahead=1)
    async with connected(own_url, most=1, meet=process.meet) as pool:
        assert process.gate.standing is Standing.HELD
        assert await pool.fetchval("select nextval('payment_id_seq')") > last + GAP
        assert await pool.fetchval("select epoch from deployment") == 2
    with pytest.raises(Held, match="payments are held: the database has forgotten") as refused:
        await process.gate.require()
    assert (refused.value.status, refused.value.retry_after) == (503, 60)
    assert await own.fetchval("select count(*) from alarm where kind = 'held' and settled_at is null") == 1
    other = History()
    await other.refresh(own)
    assert other.gate.standing is Standing.HELD, "the hold stands in the database: all processes see it"


async def test_of_processes_that_see_it_at_once_one_begins_the_epoch(own_url: str, own: Database) -> None:
    processes = [await remembering(own, ahead=number) for number in range(1, 6)]

    async def connect(process: History) -> None:
        async with connected(own_url, most=1, meet=process.meet) as pool:
            assert await pool.fetchval("select epoch from deployment") == 2

    await asyncio.gather(*map(connect, processes))
    assert [process.gate.standing for process in processes] == [Standing.HELD] * 5
    assert await own.fetchval("select epoch from deployment") == 2
    (alarm,) = await own.fetch("select times from alarm where kind = 'held'")
    assert alarm["times"] == 1


async def test_an_epoch_that_is_lost_too_is_not_begun_a_second_time(own_url: str, own: Database) -> None:
    process = History(replace((await read(own)).memory, beat=Beat(7, 3)))
    async with connected(own_url, most=1, meet=process.meet):
        assert await own.fetchval("select epoch from deployment") == 8


@long
async def test_on_another_server_ids_leap_before_anything_else_and_money_waits_for_a_look(
    own_url: str, own: Database
) -> None:
    process = await remembering(own)
    last = await own.fetchval("select nextval('payment_id_seq')")
    before = "another/00000001"
    await breaking.say(own, "history", {}, arrived=before, whole=before)
    async with connected(own_url, least=3, most=3, meet=process.meet) as pool:
        after = await pool.fetchval("select nextval('payment_id_seq')")
        assert module.GAP_OF_ARRIVAL < after - last <= 10 * module.GAP_OF_ARRIVAL + 10, "not by each connection"
        assert process.gate.standing is Standing.LOOKING
        with pytest.raises(Held, match="try again") as refused:
            await process.gate.require()
        assert refused.value.retry_after == 3


async def test_a_new_database_begins_with_its_first_ids(own_url: str, own: Database) -> None:
    last = await own.fetchval("select nextval('payment_id_seq')")
    await breaking.say(own, "history", {}, arrived="", whole="")
    async with connected(own_url, most=1, meet=History().meet) as pool:
        assert await pool.fetchval("select nextval('payment_id_seq')") - last < 100


async def test_answers_that_overtake_each_other_are_no_step_back(
    own: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    process, has_read, goes_on = await remembering(own), asyncio.Event(), asyncio.Event()

    async def read_slowly(database: Database) -> Reading:
        reading = await read(database)
        has_read.set()
        await goes_on.wait()
        return reading

    monkeypatch.setattr(module, "read", read_slowly)
    earlier = asyncio.create_task(process.refresh(own))
    await has_read.wait()
    monkeypatch.setattr(module, "read", read)
    await queries.beat(own, rest=timedelta(0))
    await process.refresh(own)
    goes_on.set()
    await earlier
    assert (process.gate.is_open, process.memory and process.memory.beat) == (True, Beat(1, 501))
    assert (await read(own)).beat.epoch == 1


async def test_a_hold_that_is_lifted_opens_every_gate(own: Database) -> None:
    process = await remembering(own)
    await hold(own, epoch=1, above=1, because="restored", since=NOON)
    await process.refresh(own)
    assert process.gate.held() == "restored"
    await queries.lift(own, accepted_until=None, epoch=None, place=None)
    await process.refresh(own)
    assert process.gate.is_open
