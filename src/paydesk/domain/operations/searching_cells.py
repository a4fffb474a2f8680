"""Which other cells may have what an operator looks for: where a merchant, a person or a key is,
says the directory; an id says where it was born.
"""

from __future__ import annotations

from collections.abc import Sequence

from paydesk.adapters.vault import Vault
from paydesk.core.paging import read_id
from paydesk.database.pool import Database
from paydesk.domain.cells.directory import (
    Cell,
    Kind,
    cell_by_number,
    cells_of_person,
    find_cell,
    name_of,
    this_cell,
)
from paydesk.domain.cells.numbers import IDS_OF_A_CELL


async def cells_of_text(database: Database, vault: Vault, text: str, *, is_here: bool) -> list[Cell]:
    """The other cells that may have it; `is_here` is whether this one has something of that name,
    so that an id's birth says nothing more.
    """
    own = (await this_cell(database)).number
    return [one for one in await _named(database, vault, text, is_here=is_here) if one.number != own]


async def _named(database: Database, vault: Vault, text: str, *, is_here: bool) -> Sequence[Cell]:
    if "@" in text:
        return await cells_of_person(database, vault, text)
    number = read_id(text.removeprefix("#"))
    if number is None:
        found = await find_cell(database, Kind.public_key, name_of(vault, Kind.public_key, text)) if text else None
    else:
        found = await find_cell(database, Kind.merchant, name_of(vault, Kind.merchant, str(number)))
        if found is None and not is_here:
            found = await cell_by_number(database, number // IDS_OF_A_CELL)
    return [] if found is None else [found]
