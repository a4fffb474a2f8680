"""Rows become objects."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

import msgspec
import pytest

from paydesk.database.pool import Database
from paydesk.database.records import Mismatch, Row, record_if_any, record_of, records_of


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True, slots=True)
class Ball:
    id: int
    colour: Colour
    stripes: Colour | None


class Bat(msgspec.Struct, frozen=True):
    id: int
    colour: Colour
    stripes: Colour | None


@dataclass(frozen=True, slots=True)
class Single:
    id: int


@dataclass(frozen=True, slots=True)
class Note:
    details: Mapping[str, object]
    single: Single


SQL = "select null as stripes, 7::bigint as id, 'red' as colour"


@pytest.mark.parametrize("of", [Ball, Bat])
async def test_columns_in_any_order_fill_the_fields_of_their_names(database: Database, of: type[Ball]) -> None:
    assert record_of(of, await database.fetchrow(SQL)) == of(7, Colour.RED, None)


@pytest.mark.parametrize("of", [Ball, Bat])
async def test_the_value_of_an_enum_becomes_its_member(database: Database, of: type[Ball]) -> None:
    assert record_of(of, await database.fetchrow(SQL)).colour is Colour.RED


async def test_a_value_that_the_enum_does_not_know_is_refused(database: Database) -> None:
    with pytest.raises(ValueError, match="green"):
        record_of(Ball, await database.fetchrow("select null as stripes, 7 as id, 'green' as colour"))


async def test_json_becomes_what_its_field_says(database: Database) -> None:
    row = await database.fetchrow("""select '{"ball": 7}'::jsonb as details, '{"id": 7}'::jsonb as single""")
    assert record_of(Note, row) == Note({"ball": 7}, Single(7))


async def test_a_column_that_is_missing_is_named(database: Database) -> None:
    row = await database.fetchrow("select 7 as id, 'red' as color, null as stripes")
    with pytest.raises(Mismatch, match=r"id, color, stripes does not fill .*Ball.*: it has colour \(0 times\)"):
        record_of(Ball, row)


async def test_a_column_that_a_later_schema_has_is_left_alone(database: Database) -> None:
    assert record_of(Single, await database.fetchrow("select 7 as id, 'later' as added")) == Single(7)


async def test_a_column_that_comes_twice_is_refused(database: Database) -> None:
    with pytest.raises(Mismatch):
        record_of(Single, await database.fetchrow("select 7 as id, 8 as id"))


async def test_a_class_of_one_field_is_filled(database: Database) -> None:
    assert record_of(Single, await database.fetchrow("select 7 as id")) == Single(7)


async def test_no_row_is_no_record(database: Database) -> None:
    assert record_if_any(Single, await database.fetchrow("select 7 as id where false")) is None


async def test_all_rows_become_records_in_their_order(database: Database) -> None:
    async def rows() -> AsyncIterator[Row]:
        for row in await database.fetch("select id from generate_series(1, 3) id"):
            yield row

    assert await records_of(Single, rows()) == [Single(1), Single(2), Single(3)]
