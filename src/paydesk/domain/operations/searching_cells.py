"""Which other cells have what an operator looks for: where a merchant, a person or a key is, says
the directory; of an id it knows where that was born, and whose merchant may have moved since.
"""

from __future__ import annotations

from collections.abc import Sequence

from paydesk.adapters.vault import Vault
from paydesk.database.pool import Database
from paydesk.database.statements import Connection
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
from paydesk.domain.operations.searching import id_in, queries


async def cells_of_text(database: Database, vault: Vault, text: str) -> list[Cell]:
    """The other cells that have it, by the directory."""
    own = (await this_cell(database)).number
    return [one for one in await _named(database, vault, text) if one.number != own]


async def _named(database: Database, vault: Vault, text: str) -> Sequence[Cell]:
    if "@" in text:
        return await cells_of_person(database, vault, text)
    number = id_in(text)
    if number is not None:
        found = await find_cell(database, Kind.merchant, name_of(vault, Kind.merchant, str(number)))
    else:
        found = await find_cell(database, Kind.public_key, name_of(vault, Kind.public_key, text)) if text else None
    return [] if found is None else [found]


async def birth_of(database: Database, number: int) -> int | None:
    """The number of the cell that gave out an id; None if no cell gives out such."""
    ids = number // IDS_OF_A_CELL
    found = await find_cell(database, Kind.ids, str(ids)) or await cell_by_number(database, ids)
    return None if found is None else found.number


async def has_id(database: Database | Connection, number: int) -> bool:
    """Whether something of this cell has an id that an operator may look for."""
    return bool(await queries.has_id(database, number=number))
