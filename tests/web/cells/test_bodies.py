"""How much of a body is read for another cell: a stranger's no further than doors read it."""

from __future__ import annotations

import pytest
from tests.shopfront import open_page
from tests.web.cells.two_cells import HOME, SECOND, Cells, form_of

from paydesk.web.cells.passing_on import LARGEST_PLAIN

FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.mark.parametrize("key", ["", "made up"])
async def test_a_strangers_is_read_no_further_whatever_header_it_has(cells: Cells, key: str) -> None:
    """Each that is read rests in memory until it is passed on, and anybody may send many."""
    await cells.know(HOME, SECOND)
    path = await open_page(cells.web[SECOND], form_of(cells.merchants[SECOND]))
    headers = {**FORM, "X-ApiKey": key} if key else FORM
    refused = await cells.web[HOME].post(f"{path}/pay", content=b"a" * (LARGEST_PLAIN + 1), headers=headers)
    assert (refused.status_code, cells.served[SECOND].arrived) == (413, [])


async def test_what_a_private_key_brings_arrives_whole(cells: Cells) -> None:
    await cells.know(HOME, SECOND)
    headers = {"X-ApiKey": cells.merchants[SECOND].private_key, "Content-Type": "application/json"}
    await cells.web[HOME].post("/api/v1/checkouts", content=b" " * (LARGEST_PLAIN + 1), headers=headers)
    (arrived,) = cells.served[SECOND].arrived
    assert arrived.header("content-length") == str(LARGEST_PLAIN + 1)
