"""Tests share how things come to pass: their own statements that write into tables only get fewer.

What a customer, a merchant, an operator or a bank does is done by the domain
(`tests/shopfront.py`); time that has passed and what others have left has a name in
`tests/set_back.py`, and what is broken on purpose in `tests/breaking.py`.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

TESTS = Path(__file__).parent

MOST = 186
"""Calls in all of the tests, those that have a name included."""
_SENDS = ("execute", "executemany", "fetch", "fetchrow", "fetchval")
_WRITES = re.compile(r"\b(insert\s+into|update\s+\S+(\s+\w+)?\s+set|delete\s+from|truncate)\b", re.IGNORECASE)


def writes(source: str) -> int:
    """How often a file sends a database a statement of its own that writes."""
    if not _WRITES.search(source):
        return 0
    return sum(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in _SENDS
        and bool(node.args)
        and isinstance(node.args[0], ast.Constant | ast.JoinedStr)
        and bool(_WRITES.search(ast.unparse(node.args[0])))
        for node in ast.walk(ast.parse(source))
    )


def test_no_more_statements_write() -> None:
    assert sum(writes(path.read_text()) for path in TESTS.rglob("*.py")) <= MOST


def test_a_statement_that_writes_is_seen() -> None:
    source = """
await database.execute("update payment set state = 'voided'")
await database.fetchval(f"insert into {table} (id) values ($1) returning id", 1)
await database.fetch("select state from payment where update_of = 'nothing'")
"""
    assert writes(source) == 2
