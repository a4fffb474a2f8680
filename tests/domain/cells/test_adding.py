"""What the home cell knows of a cell, and a cell of home."""

from __future__ import annotations

import pytest

from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict
from paydesk.database.pool import connected
from paydesk.domain.cells.adding import add_cell, follow
from paydesk.domain.cells.directory import Cell, Entry, Kind, enter, find_cell, this_cell

CELL = Cell(2, "https://two.pay.example", "http://10.0.0.2:8000")


async def test_a_cell_that_is_added_again_has_its_new_addresses(own_database_url: str) -> None:
    async with connected(own_database_url, most=1) as home:
        moved = Cell(2, "https://two.example", "http://10.0.0.7:8000")
        await add_cell(home, CELL, database_id="two", now=utc_now())
        await add_cell(home, moved, database_id="two", now=utc_now())
        await enter(home, [Entry(Kind.merchant, "5", 5)], 2, now=utc_now())
        assert await find_cell(home, Kind.merchant, "5") == moved


@pytest.mark.parametrize(("number", "database"), [(2, "three"), (3, "two")])
async def test_a_number_is_one_databases_and_a_database_has_one_number(
    own_database_url: str, number: int, database: str
) -> None:
    async with connected(own_database_url, most=1) as home:
        await add_cell(home, CELL, database_id="two", now=utc_now())
        with pytest.raises(Conflict, match="see: paydesk cell list"):
            await add_cell(home, Cell(number, CELL.address, CELL.inside), database_id=database, now=utc_now())


async def test_a_database_has_one_home(own_database_url: str) -> None:
    async with connected(own_database_url, most=1) as database:
        await follow(database, 1)
        await follow(database, 1)
        with pytest.raises(Conflict, match="the cells of another home"):
            await follow(database, 3)
        assert (await this_cell(database)).home == 1
