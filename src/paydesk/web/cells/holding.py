"""The cells that have what an id names, as these say when they are asked: an id tells where it was
born, and its merchant may have moved since.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Final

from msgspec import Meta

from paydesk.core.paging import LARGEST_ID
from paydesk.domain.cells.directory import Cell
from paydesk.web.cells.asking import Asking
from paydesk.web.cells.calling import CellAway

HOLDING: Final = "/cells/holding"
"""Where a cell is asked whether it has what an id names."""


@dataclass(frozen=True, slots=True)
class AskedId:
    """An id of anything that an operator may look for."""

    number: Annotated[int, Meta(ge=1, le=LARGEST_ID)]


@dataclass(frozen=True, slots=True)
class Holds:
    """Whether a cell has something of that id."""

    is_here: bool


async def cells_with(
    asking: Asking, cells: Sequence[Cell], number: int, *, born_in: int | None, own: int, now: datetime
) -> list[Cell]:
    """Those of these cells that have what an id names; all are asked at once. Of one that does not
    answer nobody knows: it counts if the id was born there (`born_in`) and no other has it.
    """

    async def has(cell: Cell) -> bool | None:
        try:
            return (await asking.ask(cell, HOLDING, AskedId(number), Holds, own=own, now=now)).is_here
        except CellAway:
            return None

    said = list(zip(cells, await asyncio.gather(*(has(cell) for cell in cells)), strict=True))
    return [cell for cell, is_here in said if is_here] or [
        cell for cell, is_here in said if is_here is None and cell.number == born_in
    ]
