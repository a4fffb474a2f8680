"""The points at which plays stop, and the bugs that they plant, are where the service comes by:
a statement that is called otherwise today would never stop anybody.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from tests.database.statements import all_statements
from tests.faults.fail_points import BANK, room_of
from tests.faults.planting import BUG_OF

HERE = Path(__file__).parent
POINT = re.compile(r"(?:before|after) ([a-z_]+\.[a-z_]+)")

CALLS = frozenset({"merchant.post", "operations.pay_out", *(f"bank.{call}" for call in BANK)})
STATEMENTS = frozenset(f"{room_of(path)}.{name}" for path, name in all_statements())


def named_points() -> list[str]:
    """What the plays name, each once."""
    texts = [
        node.value
        for path in HERE.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    return sorted({found[1] for text in texts if (found := POINT.fullmatch(text))})


@pytest.mark.parametrize("point", named_points())
def test_a_point_is_a_statement_or_a_call(point: str) -> None:
    assert point in CALLS | STATEMENTS


@pytest.mark.parametrize("point", sorted(BUG_OF))
def test_a_bug_is_planted_into_a_statement(point: str) -> None:
    assert point in STATEMENTS


def test_points_are_found() -> None:
    assert {"bank.authorize", "payments.record_approvals"} <= set(named_points())
