"""SQL statements live in `queries.sql` files beside the Python that calls them, and are loaded by name."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import aiosql


@cache
def load_statements(package: str, file: str = "queries.sql") -> Any:
    """Load a package's statements: each `-- name:` of the file becomes an async method.

    A method takes the database first and the statement's parameters by keyword. `^` after the name returns one record
    or None, `$` one value, `!` a status, nothing an async iterator of records.
    """
    return aiosql.from_path(Path(str(files(package).joinpath(file))), "asyncpg", mandatory_parameters=True)
