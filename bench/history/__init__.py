"""Each run's ratios by commit, in a file beside this one that is kept with the code: whether a
change made it faster is seen there.
"""

from __future__ import annotations

import csv
import os
import statistics
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass, fields
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path

KEPT = Path(__file__).with_name("ratios.csv")
LOAD = os.getloadavg()[0]
"""How many others asked for a core in the minute before this process began."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """What one run found: `ratio` is against a peer, a floor or an aim of the same run, which
    `measure` names. `load` tells a run beside other work from a quiet one.
    """

    day: str
    commit: str
    bench: str
    measure: str
    ratio: float
    load: float


@dataclass(frozen=True, slots=True)
class OfACommit:
    """What all runs of a commit found of one measure."""

    day: str
    commit: str
    runs: int
    median: float
    lowest: float
    highest: float
    load: float
    """The busiest run's."""


COLUMNS = [field.name for field in fields(Ratio)]


def note(bench: str, ratios: Mapping[str, float], kept: Path = KEPT) -> None:
    """Write down what a run found, as that of the commit that is checked out."""
    day, commit = datetime.now(UTC).date().isoformat(), checked_out()
    known = kept.exists()
    with kept.open("a", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        if not known:
            rows.writerow(COLUMNS)
        for measure, ratio in ratios.items():
            rows.writerow(astuple(Ratio(day, commit, bench, measure, round(ratio, 3), round(LOAD, 1))))


def checked_out() -> str:
    """The commit in short, with a plus where files have changed since; `unknown` without git."""
    try:
        ran = subprocess.run(
            ["git", "describe", "--always", "--abbrev=8", "--dirty=+", "--exclude=*"],
            cwd=KEPT.parent, capture_output=True, text=True, check=True,
        )  # fmt: skip
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return ran.stdout.strip()


def read(kept: Path = KEPT) -> list[Ratio]:
    """What was written down, oldest first; nothing without a file."""
    if not kept.exists():
        return []
    with kept.open(newline="") as file:
        return [
            Ratio(row["day"], row["commit"], row["bench"], row["measure"], float(row["ratio"]), float(row["load"]))
            for row in csv.DictReader(file)
        ]


def by_commit(ratios: Iterable[Ratio]) -> Iterator[tuple[str, str, list[OfACommit]]]:
    """Each bench and measure, and what its commits reached, in the order of their first runs."""
    order: dict[str, int] = {}
    found = list(ratios)
    for one in found:
        order.setdefault(one.commit, len(order))
    found.sort(key=lambda one: (one.bench, one.measure, order[one.commit]))
    for (bench, measure), runs in groupby(found, key=lambda one: (one.bench, one.measure)):
        yield bench, measure, [_of_a_commit(list(of_one)) for _, of_one in groupby(runs, key=lambda one: one.commit)]


def _of_a_commit(runs: list[Ratio]) -> OfACommit:
    reached = [one.ratio for one in runs]
    return OfACommit(
        runs[0].day,
        runs[0].commit,
        len(runs),
        statistics.median(reached),
        min(reached),
        max(reached),
        max(one.load for one in runs),
    )
