"""What a chart of a page shows, as `charts.js` draws it; a table of the same numbers is there."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal


@dataclass(frozen=True, slots=True)
class Line:
    """One row of values, a value a step: `said` is each in words, `tone` what it is coloured as
    (`now`, `before`, `gain` or `loss`), `shape` how it is drawn (`area`, `line` or `bars`).
    """

    name: str
    tone: str
    shape: str
    values: Sequence[Decimal | int]
    said: Sequence[str]


@dataclass(frozen=True, slots=True)
class Plot:
    """A chart: `steps` are named in full where one is looked at, and by their `ticks` below the
    chart.
    """

    name: str
    steps: Sequence[str]
    ticks: Sequence[str]
    lines: Sequence[Line]

    @property
    def told(self) -> str:
        """All of it for the script, in an attribute; numbers are rounded only to be drawn."""
        return json.dumps(
            {
                "name": self.name,
                "steps": self.steps,
                "ticks": self.ticks,
                "lines": [
                    {
                        "name": one.name,
                        "tone": one.tone,
                        "shape": one.shape,
                        "values": [float(value) for value in one.values],
                        "said": one.said,
                    }
                    for one in self.lines
                ],
            },
            ensure_ascii=False,
        )


def spark(values: Sequence[Decimal | int]) -> str:
    """A line so small that it needs no words, for the script."""
    line = {"name": "", "tone": "now", "shape": "area", "values": [float(one) for one in values], "said": []}
    return json.dumps({"name": "", "steps": [], "ticks": [], "lines": [line]})
