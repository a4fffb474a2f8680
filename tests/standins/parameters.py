"""Requests compared with the parameter types of the official library, as it is installed: a name
that it doesn't know, a missing one, or a value outside of those that it lists, is wrong.

The library itself sends whatever it is given. Where a type allows any text beside listed values
(`Literal[…] | str`) only the listed ones count: the text is for values to come.
"""

from __future__ import annotations

import re
import types
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NotRequired, Required, Union, get_args, get_origin, get_type_hints

from stripe._request_options import RequestOptions

_PART = re.compile(r"\[([^\]]*)\]")


def nested(pairs: list[tuple[str, str]]) -> dict[str, Any]:
    """The fields of a form as the library has flattened them: `a[0][b]`."""
    root: dict[str, Any] = {}
    for name, value in pairs:
        head = name.partition("[")[0]
        place, last = root, head
        for part in _PART.findall(name):
            place = place.setdefault(last, {})
            last = part
        place[last] = value
    return root


def problems(asked: dict[str, Any], shape: Any, at: str = "") -> Iterator[str]:
    """What is wrong with a request, each by its place."""
    hints = get_type_hints(shape, localns={"StripeContext": object, "Mapping": Mapping}, include_extras=True)
    for name, value in asked.items():
        if name not in hints or name in RequestOptions.__annotations__:
            yield f"{at}{name}: no such parameter"
        else:
            yield from _wrong(value, _bare(hints[name]), f"{at}{name}")
    for name in shape.__required_keys__ - asked.keys():
        yield f"{at}{name}: missing"


def _bare(hint: Any) -> Any:
    return get_args(hint)[0] if get_origin(hint) in (NotRequired, Required) else hint


def _wrong(value: Any, hint: Any, at: str) -> Iterator[str]:
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        yield from _of_none(value, get_args(hint), at)
    elif hasattr(hint, "__required_keys__"):
        yield from problems(value, hint, f"{at}.") if isinstance(value, dict) else [f"{at}: is no object"]
    elif origin is list:
        for number, one in enumerate(value.values() if isinstance(value, dict) else [value]):
            yield from _wrong(one, get_args(hint)[0], f"{at}[{number}]")
    elif origin is Literal:
        if value not in get_args(hint):
            yield f"{at}: {value!r} is not listed"
    elif origin is dict:
        if not isinstance(value, dict):
            yield f"{at}: is no object"
    elif not _is_simple(value, hint):
        yield f"{at}: {value!r} is no {getattr(hint, '__name__', hint)}"


def _of_none(value: Any, members: tuple[Any, ...], at: str) -> Iterator[str]:
    """What is wrong with a value that is of none of several types, as the first of them sees it."""
    if any(get_origin(member) is Literal for member in members):
        members = tuple(member for member in members if member is not str)
    if all(list(_wrong(value, member, at)) for member in members):
        yield from _wrong(value, members[0], at)


def _is_simple(value: Any, hint: Any) -> bool:
    if not isinstance(value, str):
        return False
    if hint is int:
        return value.lstrip("-").isdigit()
    if hint is bool:
        return value in ("true", "false")
    return True
