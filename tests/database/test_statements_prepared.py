"""Every statement is prepared on a real server, and fits the Python that calls it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin

import asyncpg
import pytest
from tests.database.statements import Call, Filling, Name, all_readers, all_statements

from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.database.records import fields_of, is_json, without_none
from paydesk.domain.ledger import checking

KINDS: dict[str, tuple[type, ...]] = {
    "int8": (int,),
    "int4": (int,),
    "int2": (int,),
    "numeric": (Decimal,),
    "float8": (float,),
    "text": (str,),
    "varchar": (str,),
    "name": (str,),
    "jsonb": (str,),
    "json": (str,),
    "bool": (bool,),
    "bytea": (bytes,),
    "timestamptz": (datetime,),
    "date": (date,),
    "interval": (timedelta,),
}
"""What the driver makes of a column of each type."""


@cache
def calls() -> list[Call]:
    return [call for reader in all_readers() for call in reader.calls()]


@cache
def fillings() -> list[Filling]:
    return [filling for reader in all_readers() for filling in reader.fillings()]


def shown(name: Name) -> str:
    return f"{name[0].parent.name}/{name[0].name}: {name[1]}"


@pytest.fixture
async def connection(database: Database) -> AsyncIterator[Any]:
    """A connection on which the tables are there that statements make for those after them."""
    async with database.acquire() as connection, connection.transaction():
        await checking.queries.make_bank_record(connection)
        await checking.queries.make_bank_purchase(connection)
        yield connection


async def prepared(connection: Any, sql: str) -> asyncpg.prepared_stmt.PreparedStatement | str:
    """A statement as the server understands it, or what it has against it."""
    try:
        async with connection.transaction():
            return await connection.prepare(sql)
    except asyncpg.PostgresError as error:
        return str(error)


async def test_the_server_takes_every_statement_with_the_parameters_that_its_head_names(connection: Any) -> None:
    wrong = {}
    for name, statement in all_statements().items():
        ready = await prepared(connection, statement.sql)
        if isinstance(ready, str):
            wrong[shown(name)] = ready
        elif len(ready.get_parameters()) != len(statement.parameters):
            wrong[shown(name)] = f"{len(ready.get_parameters())} parameters"
    assert wrong == {}


def test_every_statement_is_used_somewhere() -> None:
    used = {name for reader in all_readers() for name in reader.mentioned()}
    assert sorted(shown(name) for name in set(all_statements()) - used) == []


def test_every_call_gives_a_statement_the_parameters_that_it_has() -> None:
    statements = all_statements()
    wrong = {}
    for call in calls():
        parameters = set(statements[call.statement].parameters)
        missing = set() if call.is_open else parameters - call.keywords
        if missing or call.keywords - parameters:
            wrong[call.place] = (sorted(missing), sorted(call.keywords - parameters))
    assert wrong == {}


def test_few_calls_are_given_what_can_not_be_read_beside_them() -> None:
    assert len([call for call in calls() if call.is_open]) <= 42
    assert len(calls()) > 300


def test_every_class_is_filled_from_statements_that_are_called_beside_it() -> None:
    assert [filling.place for filling in fillings() if not filling.statements] == []


async def test_the_columns_of_every_statement_are_the_fields_of_the_class_that_it_fills(connection: Any) -> None:
    statements = all_statements()
    wrong = {}
    for filling in fillings():
        fields = fields_of(filling.of)
        for name in filling.statements:
            ready = await connection.prepare(statements[name].sql)
            columns = {column.name: column.type for column in ready.get_attributes()}
            unlike = set(columns) ^ set(fields)
            unlike |= {each for each in set(columns) & set(fields) if not fits(columns[each], fields[each])}
            if unlike:
                wrong[f"{filling.place} {shown(name)}"] = sorted(unlike)
    assert wrong == {}


def fits(column: asyncpg.Type, hint: Any) -> bool:
    """Whether a field takes what the driver makes of a column;
    nothing says whether that may be null.
    """
    kind = without_none(hint)
    if column.name.endswith("[]"):
        return get_origin(kind) in (list, Sequence)
    if get_origin(kind) is Union:
        return any(fits(column, each) for each in get_args(kind))
    if get_origin(kind) is Literal:
        return bool(column.name == "text")
    if is_json(kind):
        return bool(column.name in ("json", "jsonb"))
    known = KINDS.get(column.name)
    return known is not None and isinstance(kind, type) and issubclass(kind, known)


@pytest.mark.parametrize(
    ("column", "hint", "expected"),
    [
        ("int8", int, True),
        ("int8", int | None, True),
        ("int8", str, False),
        ("numeric", float, False),
        ("jsonb", Mapping[str, object], True),
        ("text", Mapping[str, object], False),
    ],
)
def test_a_field_of_another_type_is_seen(column: str, hint: Any, expected: bool) -> None:
    assert fits(asyncpg.Type(0, column, "scalar", "pg_catalog"), hint) is expected


@pytest.fixture
async def untouched(own_database_url: str) -> AsyncIterator[asyncpg.Connection]:
    """A database of which the planner knows nothing that other tests have left."""
    connection = await asyncpg.connect(own_database_url)
    yield connection
    await connection.close()


STANDING = ("waiting_disputes.sql", "standing")

FIELDS = (
    *("merchant_id", "live", "id", "payment_id", "state", "idempotency_key", "acquirer", "capture", "amount"),
    *("currency", "card_id", "client_address", "not_after", "created_at"),
)


def attempt(number: int) -> tuple[object, ...]:
    """A row of payment_attempt, of one of five merchants."""
    key, now = f"key {number}", utc_now()
    return (number % 5, True, number, number, "approved", key, "simulated", True, 1, "USD", number, "", now, now)


BY_RARE_STATE = {
    ("for_api.sql", "in_states"), ("search_for_team.sql", "of_common_card_in_states"),
    ("payments_for_team.sql", "in_each_state"), ("figures.sql", "declines"), ("letting_go.sql", "ask_unneeded"),
}  # fmt: skip
"""Statements that look for payments of few states among all."""


async def test_what_a_dispute_is_of_is_found_through_its_merchant_and_none_is_read_besides(
    untouched: asyncpg.Connection,
) -> None:
    """However many merchants there are: two probes for each, and of the others nothing
    (`never executed`) where each tells its merchant.
    """
    # Of an empty table each index costs the same.
    await untouched.copy_records_to_table("payment_attempt", columns=FIELDS, records=map(attempt, range(2000)))
    await untouched.execute("analyze payment_attempt")
    await untouched.execute("set enable_seqscan = off; set plan_cache_mode = force_generic_plan")
    (statement,) = [one for (file, name), one in all_statements().items() if (file.name, name) == STANDING]
    await untouched.execute(f"prepare asked as {statement.sql}")
    told, plans = "array['a key'], array['dp_1'], array['{}'], array[{}]::text[]", list[list[str]]()
    for given in (told.format("a tag", ""), told.format("", "'a key'")):
        asked = f"explain (analyze, costs off, timing off, summary off) execute asked({given})"
        plans.append([row[0] for row in await untouched.fetch(asked)])
    executed = [[line for line in plan if "on merchant" in line and "never executed" not in line] for plan in plans]
    assert [{"merchant_by_tag" in line for line in lines} for lines in executed] == [{True}, {False}]
    assert any("payment_attempt_by_key" in line for line in plans[0])


async def test_payments_of_few_states_are_found_by_their_index(untouched: asyncpg.Connection) -> None:
    connection = untouched
    await connection.execute("set enable_seqscan = off; set plan_cache_mode = force_generic_plan")
    others = {}
    for (file, name), statement in all_statements().items():
        if (file.name, name) in BY_RARE_STATE:
            await connection.execute(f"prepare asked as {statement.sql}")
            given = ", ".join(["null"] * len(statement.parameters))
            plan = [row[0] for row in await connection.fetch(f"explain execute asked({given})")]
            await connection.execute("deallocate asked")
            others[file.name, name] = [line for line in plan if "payment_of_rare_states" in line]
    assert others.keys() == BY_RARE_STATE
    assert [name for name, lines in others.items() if not lines] == []
    # It is of no use to a statement that names what it leaves out.
    assert [shown(name) for name, one in all_statements().items() if "('captured', 'processing')" in one.sql] == []
