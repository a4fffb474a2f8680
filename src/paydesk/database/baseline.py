"""The schema as one text: what a new database gets in one go, in the place of all steps up
to a number.

`baseline_0165/` holds it, a file per noun, each table whole with what belongs to it. It never
changes: later steps do. A database that was brought to that number step by step is recognised by
its catalog, which must be the baseline's.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TypeAlias

import asyncpg

from paydesk.core.errors import SetupError
from paydesk.database.records import records_of
from paydesk.database.statements import load_statements

NUMBER = 165
"""The last step that the baseline stands for."""

NAME = f"{NUMBER:04}_baseline"

OLDEST_CODE = 150
"""The newest step that the oldest code knows which runs on the baseline,
as the last of those steps said."""

LAST_WITH_STEPS = "aa2581eb0a522ad4d4030e310c0ae98f69e37b3f"
"""The commit whose code has the steps up to this one, for databases that lack some of them."""

NOUNS = (
    *("merchants", "accounts", "customers", "subscriptions", "payments", "card_guard", "deliveries", "chargebacks"),
    *("ledger", "pingbacks", "mail", "alarms", "operations", "deployment"),
)
"""The files of `baseline_0165/` in their order: none needs what comes after it."""

_BESIDE = "paydesk_baseline"
"""The schema in which the baseline is made to be looked at, and undone again."""

_NAMED = 6
"""How many of the differences are named."""

_SHORT = 240
"""How many characters two definitions may have together that are named."""

_THERE = "select relnamespace::regnamespace::text from pg_class where oid = 'schema_migration'::regclass"

_OF_OTHERS = {"index", "table", "view", "sequence", "function"}
"""What an operator may have made in addition; a column, a check,
a trigger or a unique index could end our writes."""

_queries = load_statements("paydesk.database", "catalog.sql")


@dataclass(frozen=True, slots=True)
class Thing:
    """One thing that a schema is made of: a table, and each column, check and index of it,
    for instance.
    """

    kind: str
    of: str
    name: str
    definition: str

    @property
    def key(self) -> tuple[str, str, str]:
        """What names it."""
        return self.kind, self.of, self.name

    def __str__(self) -> str:
        """What an operator reads."""
        return f"{self.kind} {self.name}" if self.of == self.name else f"{self.kind} {self.of}.{self.name}"


_Catalog: TypeAlias = dict[tuple[str, str, str], Thing]


@cache
def baseline_sql() -> str:
    """The baseline, as a step: what makes it, after the line that says which code runs on it."""
    texts = [files("paydesk.database").joinpath("baseline_0165", f"{noun}.sql").read_text() for noun in NOUNS]
    return "\n".join([f"-- oldest code: {OLDEST_CODE}", *texts])


def refuse_older(newest: int) -> None:
    """Raise SetupError for a database that lacks steps for which the baseline stands."""
    raise SetupError(
        f"the database's schema is at step {newest}, this code begins at step {NUMBER}; run paydesk migrate of commit "
        f"{LAST_WITH_STEPS[:12]} first, which has the steps in between, and then this one's. Nothing was changed"
    )


async def require_same(connection: asyncpg.Connection) -> None:
    """Make sure that what the steps have made is what the baseline makes.
    In a transaction; changes nothing.

    Both are read from the same server, since each version prints a catalog in words of its own.

    Raises: SetupError, naming what differs and what to do.
    """
    there = await connection.fetchval(_THERE)
    differing = differences(await _read(connection, there), await _made_beside(connection))
    if differing:
        more = f", and {len(differing) - _NAMED} more" if len(differing) > _NAMED else ""
        raise SetupError(
            f"the database's schema is at step {NUMBER}, but not as the steps up to it make it: "
            f"{'; '.join(differing[:_NAMED])}{more}. Put this right, as paydesk/database/baseline_0165 has it, and run "
            "paydesk migrate again. Nothing was changed"
        )


def differences(found: _Catalog, wanted: _Catalog) -> list[str]:
    """How one catalog differs from the one that is wanted;
    what somebody else made beside our tables is let be.
    """
    ours = {thing.of for thing in wanted.values()}
    lacking = [f"{thing} is missing" for key, thing in wanted.items() if key not in found]
    other = [
        f"{thing} {_contrasted(found[key].definition, thing.definition)}"
        for key, thing in wanted.items()
        if key in found and found[key] != thing
    ]
    added = [
        f"{thing} is not Paydesk's"
        for key, thing in found.items()
        if key not in wanted and thing.kind not in _OF_OTHERS and thing.of in ours
    ]
    return lacking + other + added


def _contrasted(found: str, wanted: str) -> str:
    """Two definitions, unless they are too long to be read side by side, as a function's are."""
    is_short = len(found) + len(wanted) < _SHORT and "\n" not in found + wanted
    return f'is "{found}" and not "{wanted}"' if is_short else "is another one"


async def _made_beside(connection: asyncpg.Connection) -> _Catalog:
    """The catalog of the baseline, made in a schema of its own and undone again:
    no table of ours is touched.

    Raises: SetupError if the role may not make one.
    """
    beside = connection.transaction()
    await beside.start()
    try:
        await connection.execute(f"create schema {_BESIDE}; set local search_path = {_BESIDE}; {baseline_sql()}")
        return await _read(connection, _BESIDE)
    except asyncpg.InsufficientPrivilegeError as error:
        raise SetupError(
            "to compare the database's schema, paydesk migrate makes another one beside it for a moment, which its "
            f"role may not do ({error}): let it own the database, or grant it create on it"
        ) from error
    finally:
        await beside.rollback()


async def _read(connection: asyncpg.Connection, schema: str) -> _Catalog:
    """The catalog of one schema, as the server prints it for who looks at this schema alone."""
    looking = connection.transaction()
    await looking.start()
    try:
        await connection.execute(f"set local search_path = {schema}")
        return {thing.key: thing for thing in await records_of(Thing, _queries.catalog_of(connection, schema=schema))}
    finally:
        await looking.rollback()
