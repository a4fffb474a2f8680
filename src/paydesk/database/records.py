"""A row becomes an object where it is read: a frozen class whose fields are the statement's
columns, by name.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import is_dataclass
from enum import Enum
from functools import cache
from inspect import signature
from operator import itemgetter
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

Row = Mapping[str, object]
"""What the driver hands over: values by column."""

_Record = TypeVar("_Record")


class Mismatch(TypeError):
    """A statement's columns don't fill the fields of a class."""

    def __init__(self, of: Callable[..., object], columns: tuple[str, ...]) -> None:
        unfit = [f"{name} ({columns.count(name)} times)" for name in fields_of(of) if columns.count(name) != 1]
        super().__init__(f"a row with {', '.join(columns)} does not fill {of}: it has {', '.join(unfit)}")


def record_of(of: Callable[..., _Record], row: Row) -> _Record:
    """The object of a row; an enum's value becomes its member, and JSON what its field says.

    A column that a later schema adds to a view is left alone; today's columns are compared by
    a test.

    Raises: Mismatch if a field has no column, or two.
    """
    build: Callable[[Row], _Record] = _builder(of, tuple(row.keys()))
    return build(row)


def record_if_any(of: Callable[..., _Record], row: Row | None) -> _Record | None:
    """The object of the row of a statement that may have found none."""
    return None if row is None else record_of(of, row)


async def records_of(of: Callable[..., _Record], rows: AsyncIterator[Row]) -> list[_Record]:
    """The objects of all rows of a statement, in its order."""
    read = [row async for row in rows]
    if not read:
        return []
    # All rows of one statement have the same columns.
    build: Callable[[Row], _Record] = _builder(of, tuple(read[0].keys()))
    return [build(row) for row in read]


def fields_of(of: Callable[..., object]) -> dict[str, object]:
    """The fields that a row has to fill, with their types,
    in the order in which the class takes them.
    """
    hints = get_type_hints(of)
    return {name: hints[name] for name in signature(of).parameters}


def without_none(hint: object) -> object:
    """The type of a field that may be null, else the type itself."""
    if get_origin(hint) not in (Union, UnionType):
        return hint
    kinds = [kind for kind in get_args(hint) if kind is not NoneType]
    return kinds[0] if len(kinds) == 1 else Union[tuple(kinds)]  # noqa: UP007 (made of a list)


@cache
def _builder(of: Callable[..., Any], columns: tuple[str, ...]) -> Callable[[Row], Any]:
    """What makes objects of one class from rows with these columns:
    worked out once, as rows come in thousands.
    """
    fields = fields_of(of)
    if any(columns.count(name) != 1 for name in fields):
        raise Mismatch(of, columns)
    if len(fields) == 1:
        (only,) = fields
        values: Callable[[Row], tuple[object, ...]] = lambda row: (row[only],)  # noqa: E731 (itemgetter gives no tuple)
    else:
        # By place: to find each column by its name costs as much as the rest.
        taken_from = itemgetter(*(columns.index(name) for name in fields))
        values = lambda row: taken_from(tuple(row.values()))  # noqa: E731 (as above)
    readers = [(place, read) for place, hint in enumerate(fields.values()) if (read := _reader(hint)) is not None]
    if not readers:
        return lambda row: of(*values(row))

    def build(row: Row) -> object:
        taken = list(values(row))
        for place, read in readers:
            if taken[place] is not None:
                taken[place] = read(taken[place])
        return of(*taken)

    return build


def is_json(kind: object) -> bool:
    """Whether a field of this type is filled from JSON: names with values, or a dataclass."""
    return get_origin(kind) is Mapping or is_dataclass(kind)


def _reader(hint: Any) -> Callable[[Any], Any] | None:
    """What makes a field's value of a column's, None if it is taken as it is."""
    kind = without_none(hint)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind
    return msgspec.json.Decoder(kind, strict=False).decode if is_json(kind) else None
