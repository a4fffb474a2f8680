"""Merchants whose move was left half-way, as all cells together tell of them, and the command that
ends it now: of two moves of one merchant the later one has to be ended first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from paydesk.database.pool import Database
from paydesk.domain.cells.directory import Kind, find_cell
from paydesk.domain.cells.fencing import Fence, fences, left_half_way

_CANCEL, _MAY_CANCEL = " --cancel", ", or that with --cancel"


@dataclass(frozen=True, slots=True)
class Halves:
    """Each cell's fences of those whose move stands still (`left`), and of all; and the cells that
    the directory leads to them.
    """

    left: Mapping[int, list[Fence]]
    every: Mapping[int, Mapping[int, Fence]]
    led_to: Mapping[int, int]

    def said_of(self, cell: int) -> list[tuple[str, str]]:
        """What was left half-way in a cell, and what to do about it, in words."""
        return [(_said(one), self._to_do(cell, one)) for one in self.left.get(cell, ())]

    def _to_do(self, cell: int, one: Fence) -> str:
        source, target, cancels = self._step(cell, one, frozenset())
        return (
            f"unless it is moved just now, run in cell {source}: paydesk merchant move {one.merchant_id} "
            f"--to {target}{cancels}"
        )

    def _step(self, cell: int, one: Fence, before: frozenset[int]) -> tuple[int, int, str]:
        """In which cell a command goes on now, to which it leads, and whether it may be cancelled;
        `before` are the cells that were looked at.
        """
        led_to = self.led_to.get(one.merchant_id, cell)
        if one.arrives:
            left = self._fence(one.other_cell, one.merchant_id)
            if left is None and led_to not in (cell, one.other_cell):
                return led_to, cell, _CANCEL
            return one.other_cell, cell, _MAY_CANCEL if left is None or left.moved_at is None else ""
        if one.moved_at is None:
            return cell, one.other_cell, _MAY_CANCEL
        looked_at = before | {cell}
        for reached in (one.other_cell, led_to):
            later = None if reached in looked_at else self._fence(reached, one.merchant_id)
            if later is not None and not (later.arrives and later.other_cell == cell):
                return self._step(reached, later, looked_at)
        return cell, one.other_cell if led_to == cell else led_to, ""

    def _fence(self, cell: int, merchant_id: int) -> Fence | None:
        return self.every.get(cell, {}).get(merchant_id)


async def every_half(home: Database, cells: Mapping[int, Database], *, now: datetime) -> Halves:
    """All that was left half-way in these cells. `home` is the home cell's database, `now` UTC."""
    left = {number: await left_half_way(cell, now=now) for number, cell in cells.items()}
    every = {number: {one.merchant_id: one for one in await fences(cell)} for number, cell in cells.items()}
    led_to = {}
    for merchant_id in {one.merchant_id for found in left.values() for one in found}:
        led = await find_cell(home, Kind.merchant, str(merchant_id))
        if led is not None:
            led_to[merchant_id] = led.number
    return Halves(left, every, led_to)


def _said(one: Fence) -> str:
    return f"merchant {one.merchant_id} {_how(one)} since {one.since:%Y-%m-%d %H:%M} UTC"


def _how(one: Fence) -> str:
    if one.arrives:
        return f"is on the way here from cell {one.other_cell}"
    if one.moved_at is not None:
        return f"has moved to cell {one.other_cell} and is not deleted here"
    return f"is closed, on the way to cell {one.other_cell},"
