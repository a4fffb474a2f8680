"""Every statement that is given no merchant stands in a list that says why,
since with merchants in several databases it sees those of its own alone.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.database.statements import SOURCE, Statement, all_statements
from tests.database.without_merchant import (
    GIVEN,
    KINDS,
    MARKED,
    PAGE,
    kind_of,
    listed,
    names_merchant,
    summary,
    title,
    without_merchant,
)

from paydesk.database.pool import Database

OF_PEOPLE = {"account_session", "audit_entry", "mail"}
"""Tables whose rows may be a person's and no merchant's."""
OTHER_DATABASE = SOURCE / "adapters" / "acquirers" / "simulator"
"""The simulated bank keeps its own record, which is none of the service's."""
_BEGINS = re.compile(
    r"""\s*(select|insert\ into|update\b.*\bset|delete\ from|merge\ into
    |with\ (recursive\ )?\w+\ as|lock\ table|truncate|copy)\b""",
    re.X | re.S,
)
_ALIAS = re.compile(r"\b(?:from|join|update) merchant (?:as )?(?!set\b|where\b|on\b|cross\b)([a-z]\w*)")
_WORDS = re.compile(r"'[^']*'|\b([a-z_]\w*)")


@pytest.fixture
async def of_merchants(database: Database) -> set[str]:
    """The tables and views whose rows have a merchant, and those of merchants themselves."""
    rows = await database.fetch(
        "select table_name from information_schema.columns"
        " where table_schema = current_schema() and column_name = 'merchant_id'"
    )
    return {row["table_name"] for row in rows} | {"merchant"}


def test_a_statement_that_is_given_no_merchant_is_in_the_list() -> None:
    new = sorted(without_merchant() - set(kind_of()))
    assert new == [], "give it merchant_id, or say in statements_without_merchant.toml why it needs none"


def test_every_statement_of_the_list_is_there() -> None:
    gone = sorted(set(kind_of()) - {title(name) for name in all_statements()})
    assert gone == [], "take it out of statements_without_merchant.toml"


def test_every_statement_of_the_list_is_given_no_merchant() -> None:
    given = {title(name) for name, statement in all_statements().items() if names_merchant(statement)}
    assert sorted(given & set(kind_of())) == [], "take it out of statements_without_merchant.toml"


def test_each_statement_of_the_list_has_one_known_kind_and_a_reason() -> None:
    assert {group.kind for group in listed()} <= set(KINDS)
    assert [group for group in listed() if not group.why.strip() or not group.names] == []
    assert [one for one, times in Counter(one for group in listed() for one in group.titles).items() if times > 1] == []


def words(sql: str) -> set[str]:
    """The names in a statement, those of tables among them, without what it says in quotes."""
    return set(_WORDS.findall(sql))


def test_what_is_no_merchants_business_reads_no_merchants_rows(of_merchants: set[str]) -> None:
    kinds = kind_of()
    wrong = {
        title(name): sorted(touched)
        for name, statement in all_statements().items()
        if kinds.get(title(name)) == "nobody" and (touched := (of_merchants - OF_PEOPLE) & words(statement.written))
    }
    assert wrong == {}


def test_a_parameter_that_is_compared_with_a_merchants_id_is_called_so() -> None:
    wrong = {
        (title(name), parameter)
        for name, statement in all_statements().items()
        for parameter in compared_with_merchants(statement.written)
        if not GIVEN.fullmatch(parameter) and not re.search(rf":{parameter}(::\w+(\[\])?)? is null", statement.written)
    }
    assert wrong == set()


def compared_with_merchants(written: str) -> Iterator[str]:
    """The parameters that are compared with a column `merchant_id`, or a merchant's own `id`."""
    columns = [r"\bmerchant_id", *(rf"\b{alias}\.id" for alias in sorted(set(_ALIAS.findall(written))))]
    for column in columns:
        yield from re.findall(rf"{column}\s*=\s*(?:any\s*\()?:(\w+)", written)


def test_sql_in_python_is_about_no_merchants_rows(of_merchants: set[str]) -> None:
    wrong = {
        f"{path.relative_to(SOURCE)}: {sql}": sorted(touched)
        for path in sorted(SOURCE.rglob("*.py"))
        if not path.is_relative_to(OTHER_DATABASE)
        for sql in sql_in(path)
        if (touched := of_merchants & words(sql))
    }
    assert wrong == {}, "a statement that stands in Python is in no list: put it into a file of statements"


def sql_in(path: Path) -> Iterator[str]:
    """What stands in a module and begins as statements do; what is filled in is left out."""
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Constant(str(text)):
                parts = [text]
            case ast.JoinedStr(values):
                parts = [str(part.value) for part in values if isinstance(part, ast.Constant)]
            case _:
                continue
        if _BEGINS.match("".join(parts)):
            yield " ".join(parts)


def test_the_page_says_what_the_list_comes_to() -> None:
    found = MARKED.search(PAGE.read_text())
    assert found is not None
    assert f"{found[1]}\n{summary()}\n\n{found[2]}" == found[0], (
        "write it anew: .venv/bin/python -m tests.database.without_merchant"
    )


@pytest.mark.parametrize(
    ("written", "parameters", "expected"),
    [
        ("select 1 from payment where merchant_id = :merchant_id", ("merchant_id",), True),
        ("select 1 from payment where merchant_id = any(:merchant_ids)", ("merchant_ids",), True),
        ("select 1 from payment where id = :id", ("id",), False),
        ("select 1 from payment where :merchant_id::bigint is null or m.id = :merchant_id", ("merchant_id",), False),
        ("select 1 from move where :id is null or m.merchant_id = :merchant_id", ("id", "merchant_id"), False),
        ("select 1 from own where for_merchant_id is null or for_merchant_id = :merchant_id", ("merchant_id",), True),
        ("select 1 from payment where merchant_id > :after_merchant_id", ("after_merchant_id",), False),
        ("select 1 from jsonb_populate_recordset(null::subscription, :rows::jsonb)", ("rows",), True),
        ("select 1 from jsonb_to_recordset(:rows::jsonb) as r (merchant_id bigint, id bigint)", ("rows",), True),
        ("select 1 from jsonb_to_recordset(:rows::jsonb) as r (id bigint)", ("rows",), False),
    ],
)
def test_a_merchant_is_given_where_a_parameter_or_its_rows_name_one(
    written: str, parameters: tuple[str, ...], expected: bool
) -> None:
    assert names_merchant(Statement(written, parameters, written)) is expected


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("update merchant m set name = '' where m.id = :id", ["id"]),
        ("select 1 from payment where merchant_id = any(:ids)", ["ids"]),
        ("select 1 from merchant m join payment p on p.merchant_id = m.id and p.id = :id", []),
    ],
)
def test_a_merchant_by_another_name_is_seen(written: str, expected: list[str]) -> None:
    assert list(compared_with_merchants(written)) == expected
