"""Rows are read as objects: how often a value is read by a column's name only shrinks."""

from __future__ import annotations

import ast
from pathlib import Path

import paydesk

SOURCE = Path(paydesk.__file__).parent

MOST = 32
"""Subscripts by a name in all of the service, edges such as JSON and metrics included."""
_OF_ASGI = ("scope", "message", "request.scope")
ON_THE_MONEY_PATH = ("payments", "billing", "chargebacks", "pingbacks", "subscriptions")
MOST_ON_THE_MONEY_PATH = 0


def untyped(path: Path) -> int:
    """How often a module reads `something["name"]`, but for what ASGI hands on, which is no row."""
    return sum(
        isinstance(node, ast.Subscript)
        and isinstance(node.ctx, ast.Load)
        and ast.unparse(node.value) not in _OF_ASGI
        and isinstance(node.slice, ast.Constant)
        and isinstance(node.slice.value, str)
        for node in ast.walk(ast.parse(path.read_text()))
    )


def test_no_more_values_are_read_by_name() -> None:
    assert sum(map(untyped, SOURCE.rglob("*.py"))) <= MOST


def test_the_money_path_reads_objects() -> None:
    rooms = [SOURCE / "domain" / room for room in ON_THE_MONEY_PATH]
    assert sum(untyped(path) for room in rooms for path in room.rglob("*.py")) <= MOST_ON_THE_MONEY_PATH


def test_what_is_read_by_name_is_seen(tmp_path: Path) -> None:
    module = tmp_path / "reading.py"
    module.write_text('row["a"] = row["b"]["c"] + row[0]\n')
    assert untyped(module) == 2
