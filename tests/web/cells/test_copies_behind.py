"""A cell whose copy of the directory is behind leads to one that has the merchant no more: home is
asked, and the cell that has it by now answers. Nor is anybody unknown for home's being behind.
"""

from __future__ import annotations

import pytest
from tests import breaking
from tests.shopfront import open_page
from tests.web.cells.two_cells import HOME, SECOND, Cells, form_of

from paydesk.core.clock import utc_now
from paydesk.domain.cells.adding import add_cell
from paydesk.domain.cells.directory import Cell
from paydesk.domain.moving.copying import empty
from paydesk.web.cells.passing_on import NOT_HERE

PAYMENTS, THIRD = "/api/v1/payments", 9


def key_of(cells: Cells, number: int) -> dict[str, str]:
    """The header by which the merchant of a cell calls."""
    return {"X-ApiKey": cells.merchants[number].private_key}


async def behind(cells: Cells) -> None:
    """The second cell's copy leads to a third one, which has handed the merchant over to home
    since; the third is the second one itself, which has as little of the merchant.
    """
    await cells.know(HOME, SECOND)
    third = Cell(THIRD, "http://pay9.test", cells.inside[SECOND])
    for number in (HOME, SECOND):
        await add_cell(cells.databases[number], third, database_id="database of 9", now=utc_now())
    await breaking.say(cells.databases[SECOND], "directory", {"cell": HOME}, cell=THIRD)


async def test_home_is_asked_and_the_cell_that_has_it_answers(cells: Cells) -> None:
    await behind(cells)
    call = await cells.web[SECOND].get(PAYMENTS, headers=key_of(cells, HOME))
    assert (call.status_code, call.json()["success"], NOT_HERE in call.headers) == (200, True, False)
    form = await cells.web[SECOND].post("/payment/form", data=form_of(cells.merchants[HOME]))
    assert (form.status_code, form.headers["location"][:10]) == (303, "/checkout/")
    assert await cells.databases[HOME].fetchval("select count(*) from checkout") == 1
    assert (len(cells.served[SECOND].arrived), len(cells.served[HOME].arrived)) == (2, 2)


async def test_nobody_is_asked_twice(cells: Cells) -> None:
    await behind(cells)
    await breaking.say(cells.databases[HOME], "directory", {"cell": HOME}, cell=THIRD)
    call = await cells.web[SECOND].get(PAYMENTS, headers=key_of(cells, HOME))
    assert (call.status_code, call.headers["retry-after"]) == (503, "3")
    assert (len(cells.served[SECOND].arrived), len(cells.served[HOME].arrived)) == (1, 0)


@pytest.mark.parametrize("left", [HOME, SECOND])
async def test_a_directory_that_came_back_from_before_a_move_makes_nobody_unknown(cells: Cells, left: int) -> None:
    """As after a failover of home, until `paydesk cell check --mend` has led everybody again."""
    await cells.know(HOME, SECOND)
    moved, other = cells.merchants[left], HOME + SECOND - left
    path = await open_page(cells.web[left], form_of(moved))
    async with cells.databases[left].acquire() as connection, connection.transaction():
        await empty(connection, moved.id)
    for web in (cells.web[left], cells.web[other]):
        answers = [
            await web.get(PAYMENTS, headers=key_of(cells, left)),
            await web.post("/payment/form", data=form_of(moved)),
            await web.get(path),
        ]
        assert [(one.status_code, one.headers["retry-after"]) for one in answers] == [(503, "3")] * 3


async def test_what_is_wrong_at_a_merchant_who_is_here_is_said_though_the_copy_does_not_know_them(cells: Cells) -> None:
    """As of who was just made, or while the copy is broken."""
    await cells.know(HOME)
    web, merchant = cells.web[SECOND], cells.merchants[SECOND]
    answers = [await web.get(f"/brand/{merchant.id}/none.png"), await web.get(f"/picture/none/{merchant.id}/none.png")]
    assert [one.status_code for one in answers] == [404, 404]
