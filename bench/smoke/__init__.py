"""What every bench has in common: `--smoke` with numbers of its own,
and where its result is kept.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import history

RESULTS = Path(__file__).parents[1] / "results"


def read(
    parser: argparse.ArgumentParser, arguments: Sequence[str] | None = None, **small: object
) -> argparse.Namespace:
    """Read the command line; with --smoke an option that is not given has its small number."""
    numbers = " ".join(f"--{name.replace('_', '-')} {_shown(value)}" for name, value in small.items())
    parser.add_argument(
        "--smoke", action="store_true", help=f"whether it still runs, from end to end: {numbers}; measures nothing"
    )
    if parser.parse_args(arguments).smoke:
        parser.set_defaults(**small)
    return parser.parse_args(arguments)


def keep(name: str, result: object, ratios: Mapping[str, float], *, smoke: bool) -> None:
    """Write a result as JSON, and its ratios into the history; that of a smoke is no measurement,
    and is kept apart.
    """
    folder = RESULTS / "smoke" if smoke else RESULTS
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(result, indent=2) + "\n")
    if not smoke:
        history.note(name, ratios)


def _shown(value: object) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)
