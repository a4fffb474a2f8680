from __future__ import annotations

import ast
import re
from pathlib import Path

from paydesk.database.pool import Database
from paydesk.domain import operations
from paydesk.domain.operations.payout_file_states import FileState


async def test_the_database_knows_the_same_states(database: Database) -> None:
    said = await database.fetchval(
        "select pg_get_constraintdef(oid) from pg_constraint"
        " where conrelid = 'payout_file'::regclass and contype = 'c' and pg_get_constraintdef(oid) like '%dropped%'"
    )
    assert set(re.findall(r"'(\w+)'", said)) == set(FileState)


def test_nobody_compares_one_with_a_bare_word() -> None:
    """It would not change with the state, and a type checker sees nothing wrong with it."""
    bare = [
        f"{path.name}: {ast.unparse(node)}"
        for path in Path(*operations.__path__).glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Compare)
        for one in (node.left, *node.comparators)
        if isinstance(one, ast.Constant) and one.value in set(FileState)
    ]
    assert bare == []
