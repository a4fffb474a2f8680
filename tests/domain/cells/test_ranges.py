"""A cell goes on in a higher range of ids while it works, and no id is given out twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
from tests.breaking import say
from tests.conftest import migrated_database

from paydesk.adapters.vault import Vault
from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict
from paydesk.database.pool import Database, connected
from paydesk.domain.cells import ranges
from paydesk.domain.cells.adding import add_cell
from paydesk.domain.cells.checking import check_cells, mend_cells
from paydesk.domain.cells.directory import Cell, Entry, Kind, enter
from paydesk.domain.cells.listing import list_cells
from paydesk.domain.cells.numbers import CELLS, IDS_OF_A_CELL, has_ids_like_cards
from paydesk.domain.cells.ranges import FIRST_GIVEN, Ranges, go_on_above, range_given, ranges_of

CELL, OTHER = 1, 2
DRAWN = """
select sequencename as name, increment_by as step, max_value as most,
       nextval(format('%I.%I', schemaname, sequencename)::regclass) as next
  from pg_sequences
 where schemaname = 'public'
"""


@pytest.fixture
async def database(server_url: str) -> AsyncIterator[Database]:
    """A cell that is home, and knows of another one."""
    async with migrated_database(server_url, cell=CELL) as url, connected(url, most=4) as pool:
        for number in (CELL, OTHER):
            await add_cell(pool, Cell(number, "https://pay.test", "http://in"), database_id=str(number), now=utc_now())
        yield pool


async def go_on(database: Database, above: int = OTHER) -> int:
    return await go_on_above(database, database, CELL, above, now=utc_now())


async def test_all_ids_go_on_in_a_range_that_nobody_has(database: Database) -> None:
    before = {one["name"]: one["next"] for one in await database.fetch(DRAWN)}
    number = await go_on(database)
    assert number >= FIRST_GIVEN
    for one in await database.fetch(DRAWN):
        assert (one["next"] // IDS_OF_A_CELL, one["most"] // IDS_OF_A_CELL) == (number, number), one["name"]
        assert one["next"] % one["step"] == before[one["name"]] % one["step"], one["name"]
    assert (await ranges_of(database), await range_given(database)) == (Ranges(number, number), number)
    assert [(one.number, one.ids) for one in await list_cells(database)] == [(CELL, number), (OTHER, OTHER)]


async def test_what_a_later_step_makes_draws_from_there(database: Database) -> None:
    number = await go_on(database)
    await database.execute("create sequence later_id_seq increment by 10 start with 8")
    await database.execute("select place_ids()")
    assert await database.fetchval("select nextval('later_id_seq')") == number * IDS_OF_A_CELL + 8
    await database.execute("select place_ids()")
    assert await database.fetchval("select nextval('later_id_seq')") == number * IDS_OF_A_CELL + 18


async def test_each_range_is_given_once_and_above_all_before(database: Database) -> None:
    first = await go_on(database)
    second = await go_on_above(database, database, CELL, first, now=utc_now())
    third = await go_on(database)
    assert first < second < third
    assert not any(has_ids_like_cards(one) for one in (first, second, third))


async def test_who_draws_meanwhile_gets_each_id_once(database: Database) -> None:
    """Whoever puts the sequences, once or at the same moment."""
    drawn: list[int] = []
    done = asyncio.Event()

    async def draw() -> None:
        while not done.is_set():
            drawn.append(await database.fetchval("select nextval('payment_id_seq')"))

    drawing = asyncio.create_task(draw())
    numbers = await asyncio.gather(go_on(database), go_on(database))
    seen = len(drawn)
    # What is asked for just now may have been drawn before.
    while len(drawn) < seen + 2:
        assert not drawing.done()
        await asyncio.sleep(0)
    done.set()
    await drawing
    assert len(drawn) == len(set(drawn))
    assert drawn == sorted(drawn)
    assert drawn[-1] // IDS_OF_A_CELL == max(numbers)


async def test_one_that_somebody_else_puts_at_the_same_moment_is_not_put_again(database: Database) -> None:
    """Ids that were drawn in between would be given out twice."""
    first, last = 3 * IDS_OF_A_CELL + 8, 4 * IDS_OF_A_CELL - 10
    async with database.acquire() as connection, connection.transaction():
        await ranges.queries.hold_places(connection)
        putting = asyncio.create_task(ranges._put(database, ranges._Place("public.payment_id_seq", first, last)))
        await asyncio.sleep(0.1)
        await connection.execute(f"alter sequence payment_id_seq maxvalue {last} start {first} restart")
        assert await connection.fetchval("select nextval('payment_id_seq')") == first
    await putting
    assert await database.fetchval("select nextval('payment_id_seq')") == first + 10


async def test_who_has_drawn_and_not_committed_is_waited_for(database: Database) -> None:
    async with database.acquire() as connection:
        writing = connection.transaction()
        await writing.start()
        drawn = await connection.fetchval("select nextval('payment_id_seq')")
        going = asyncio.create_task(go_on(database))
        await asyncio.wait({going}, timeout=0.6)
        assert not going.done()
        assert await connection.fetchval("select nextval('payment_id_seq')") == drawn + 10
        await writing.commit()
    await going
    assert (await ranges_of(database)).lowest == await range_given(database)


async def test_one_that_was_cut_off_is_known_by_both_its_ranges(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    put, places = ranges._put, iter(range(5))

    async def die(where: Database, place: ranges._Place) -> None:
        if next(places, None) is None:
            raise ConnectionError
        await put(where, place)

    monkeypatch.setattr(ranges, "_put", die)
    with pytest.raises(ConnectionError):
        await go_on(database)
    assert (await ranges_of(database)).lowest == CELL
    assert (await ranges_of(database)).highest == await range_given(database) == FIRST_GIVEN
    monkeypatch.undo()
    assert await go_on(database) > FIRST_GIVEN, "ids of the one before may be in use"
    assert (await ranges_of(database)).lowest == (await ranges_of(database)).highest


async def test_a_number_that_another_cell_takes_at_the_same_moment_is_left_to_it(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = ranges._free

    def taken_meanwhile(taken: list[ranges._Taken], above: int) -> int:
        return FIRST_GIVEN if not any(one.is_given for one in taken) else free(taken, above)

    monkeypatch.setattr(ranges, "_free", taken_meanwhile)
    await enter(database, [Entry(Kind.ids, str(FIRST_GIVEN))], OTHER, now=utc_now())
    assert await go_on(database) > FIRST_GIVEN


async def test_one_that_was_restored_from_before_gives_out_higher_ids_again(database: Database, vault: Vault) -> None:
    an_hour_ago = utc_now() - timedelta(hours=1)
    await enter(database, [Entry(Kind.ids, str(FIRST_GIVEN + 5))], CELL, now=an_hour_ago)

    async def found() -> list[str]:
        return [one.what for one in await check_cells(database, {}, vault, now=utc_now()) if one.cell == CELL]

    assert any("gives out lower ones" in one for one in await found())
    await mend_cells(database, {}, vault, home_address="", now=utc_now())
    assert await found() == []
    drawn = await database.fetchval("select nextval('payment_id_seq')")
    assert drawn // IDS_OF_A_CELL == FIRST_GIVEN + 6, "those of the range that it has forgotten may be in use"


async def test_one_that_is_about_to_be_taken_is_not_missed(database: Database, vault: Vault) -> None:
    await enter(database, [Entry(Kind.ids, str(FIRST_GIVEN))], CELL, now=utc_now())
    found = await check_cells(database, {}, vault, now=utc_now())
    assert [one.what for one in found if one.cell == CELL] == []


async def test_no_cell_is_added_under_a_number_whose_ids_are_given_out(database: Database) -> None:
    number = await go_on(database)
    with pytest.raises(Conflict, match="another cell was given the ids of that number"):
        await add_cell(database, Cell(number, "https://x.test", "http://in"), database_id="x", now=utc_now())
    assert len(await list_cells(database)) == 2


async def test_a_number_of_a_cell_is_given_to_nobody(database: Database) -> None:
    for number in (FIRST_GIVEN, FIRST_GIVEN + 1):
        cell = Cell(number, "https://pay.test", "http://in")
        await add_cell(database, cell, database_id=str(number), now=utc_now())
    assert await go_on(database) == FIRST_GIVEN + 2


async def test_a_number_that_is_just_becoming_a_cells_is_given_to_nobody(database: Database) -> None:
    async with database.acquire() as connection:
        adding = connection.transaction()
        await adding.start()
        cell = Cell(FIRST_GIVEN, "https://pay.test", "http://in")
        await add_cell(connection, cell, database_id="x", now=utc_now())
        going = asyncio.create_task(go_on(database))
        await asyncio.wait({going}, timeout=0.3)
        await adding.commit()
    assert await going == FIRST_GIVEN + 1


async def test_a_number_that_is_just_given_out_becomes_no_cells(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    entering, entered = asyncio.Event(), asyncio.Event()

    async def enter_late(*args: Any, **options: Any) -> None:
        entering.set()
        await entered.wait()
        await enter(*args, **options)

    monkeypatch.setattr(ranges, "enter", enter_late)
    going = asyncio.create_task(go_on(database))
    await entering.wait()
    async with database.acquire() as connection, connection.transaction():
        cell = Cell(FIRST_GIVEN, "https://pay.test", "http://in")
        adding = asyncio.create_task(add_cell(connection, cell, database_id="x", now=utc_now()))
        await asyncio.wait({adding}, timeout=0.3)
        entered.set()
        with pytest.raises(Conflict, match="another cell was given the ids of that number"):
            await adding
    assert await going == FIRST_GIVEN


async def test_above_the_highest_there_is_none(database: Database) -> None:
    with pytest.raises(Conflict, match="there is no range above that"):
        await go_on(database, CELLS - 1)
    assert await range_given(database) is None


async def test_the_last_number_may_be_skipped_and_others_found(database: Database) -> None:
    await enter(database, [Entry(Kind.ids, str(CELLS - 1))], OTHER, now=utc_now())
    assert await go_on(database) == FIRST_GIVEN


async def test_one_that_is_there_keeps_its_range_when_it_is_asked_of_a_lower_one(database: Database) -> None:
    number = await go_on(database)
    await say(database, "deployment", {}, ids=number + 1)
    await ranges.queries.begin_range(database, number=number)
    assert await range_given(database) == number + 1
