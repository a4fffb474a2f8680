"""SQL statements live in `queries.sql` files beside the Python that calls them,
and are loaded by name.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Protocol

import aiosql
from aiosql.adapters.asyncpg import AsyncPGAdapter


class Connection(Protocol):
    """What statements are run on: a connection within a transaction of the caller's, or the pool,
    for one at a time.
    """

    async def execute(self, query: str, *arguments: object, timeout: float | None = None) -> str:
        """Run statements, and return the status of the last."""

    async def executemany(self, command: str, args: Iterable[object], *, timeout: float | None = None) -> None:
        """Run one statement for many sets of arguments."""

    async def fetch(self, query: str, *arguments: object, timeout: float | None = None) -> list[object]:
        """All rows."""

    async def fetchrow(self, query: str, *arguments: object, timeout: float | None = None) -> object:
        """The first row, or None."""

    async def fetchval(self, query: str, *arguments: object, column: int = 0, timeout: float | None = None) -> object:
        """One value of the first row, or None."""


class Statements:
    """The statements of one file, which is read when the first of them is needed:
    a command needs few files.
    """

    def __init__(self, path: Path) -> None:
        """Read nothing yet."""
        self._path = path

    def __getattr__(self, name: str) -> Any:
        """The statement of this name, kept for the next time."""
        statement = getattr(_read(self._path), name)
        setattr(self, name, statement)
        return statement


class _Adapter(AsyncPGAdapter):
    """Runs a statement on what it is given: a connection and the pool take the same calls,
    so nothing has to find out each time which of the two that is.
    """

    def maybe_order_params(self, query_name: str, parameters: Mapping[str, object]) -> list[object]:
        """The parameters, which all come by keyword, in the statement's order."""
        return [parameters[name] for name in self.var_sorted[query_name]]

    async def select(
        self, conn: Connection, query_name: str, sql: str, parameters: Mapping[str, object], _record_class: None = None
    ) -> AsyncIterator[object]:
        """All rows; no connection is held while they are read."""
        for row in await conn.fetch(sql, *self.maybe_order_params(query_name, parameters)):
            yield row

    async def select_one(
        self, conn: Connection, query_name: str, sql: str, parameters: Mapping[str, object], _record_class: None = None
    ) -> object:
        """The first row, or None."""
        return await conn.fetchrow(sql, *self.maybe_order_params(query_name, parameters))

    async def select_value(
        self, conn: Connection, query_name: str, sql: str, parameters: Mapping[str, object]
    ) -> object:
        """One value of the first row, or None."""
        return await conn.fetchval(sql, *self.maybe_order_params(query_name, parameters))

    async def insert_update_delete(
        self, conn: Connection, query_name: str, sql: str, parameters: Mapping[str, object]
    ) -> str:
        """The status."""
        return await conn.execute(sql, *self.maybe_order_params(query_name, parameters))


@cache
def load_statements(package: str, file: str = "queries.sql") -> Statements:
    """Load a package's statements: each `-- name:` of the file becomes an async method.

    A method takes the database first and the statement's parameters by keyword. `^` after the name
    returns one record or None, `$` one value, `!` a status, nothing an async iterator of records.
    """
    path = Path(str(files(package).joinpath(file)))
    if not path.is_file():
        raise FileNotFoundError(path)
    return Statements(path)


@cache
def _read(path: Path) -> object:
    adapter: Any = _Adapter
    return aiosql.from_path(path, adapter, mandatory_parameters=True)
