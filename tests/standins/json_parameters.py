"""Requests and answers compared with the types of Mollie's library, as it is installed: a name that
it doesn't know, a missing one, a value outside of those that it lists or of another type, is wrong.

The library drops unknown names silently, so what is given to it is looked at, not what it sends.
Where a type allows any text beside listed values only the listed ones count.
"""

from __future__ import annotations

import functools
import re
import types
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from enum import Enum
from typing import Any, Literal, NotRequired, Required, Union, get_args, get_origin, get_type_hints
from unittest.mock import patch

from mollie.captures import Captures
from mollie.chargebacks_sdk import ChargebacksSDK
from mollie.customers import Customers
from mollie.mandates import Mandates
from mollie.payments_sdk import PaymentsSDK
from mollie.refunds_sdk import RefundsSDK
from pydantic import BaseModel
from typing_extensions import TypeAliasType

_DOORS = (PaymentsSDK, RefundsSDK, ChargebacksSDK, Captures, Customers, Mandates)


@contextmanager
def checked() -> Iterator[list[str]]:
    """Look at everything that is given to the library meanwhile; what is wrong is in the list."""
    found: list[str] = []
    with ExitStack() as stack:
        for door in _DOORS:
            for name in [name for name in vars(door) if name.endswith("_async")]:
                stack.enter_context(patch.object(door, name, _looked_at(getattr(door, name), found)))
        yield found


def _looked_at(method: Callable[..., Any], found: list[str]) -> Callable[..., Any]:
    hints = get_type_hints(method)

    @functools.wraps(method)
    async def look(self: Any, **given: Any) -> Any:
        for name, value in given.items():
            found.extend(_wrong(value, hints[name], name) if name in hints else [f"{name}: no such parameter"])
        return await method(self, **given)

    return look


def problems(given: dict[str, Any], shape: Any, at: str = "") -> Iterator[str]:
    """What is wrong with an object of a type of the library's, each by its place."""
    hints = get_type_hints(shape, include_extras=True)
    for name, value in given.items():
        if name in hints:
            yield from _wrong(value, _bare(hints[name]), f"{at}{name}")
        else:
            yield f"{at}{name}: no such parameter"
    # Not by `__required_keys__`: it takes annotations that are text for required ones.
    for name in sorted(name for name, hint in hints.items() if get_origin(hint) is not NotRequired):
        if name not in given:
            yield f"{at}{name}: missing"


def as_given(answer: Any) -> Any:
    """An answer by the names that the library's types have: `_links.self` is `links.self_`."""
    if isinstance(answer, list):
        return [as_given(one) for one in answer]
    if not isinstance(answer, dict):
        return answer
    return {_name(name): value if name == "metadata" else as_given(value) for name, value in answer.items()}


def _name(name: str) -> str:
    return "self_" if name == "self" else re.sub(r"(?<!^)(?=[A-Z])", "_", name.lstrip("_")).lower()


def _bare(hint: Any) -> Any:
    return get_args(hint)[0] if get_origin(hint) in (NotRequired, Required) else hint


def _wrong(value: Any, hint: Any, at: str) -> Iterator[str]:
    hint = _plain(hint)
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        yield from _of_none(value, [_plain(member) for member in get_args(hint)], at)
    elif hasattr(hint, "__required_keys__"):
        yield from problems(value, hint, f"{at}.") if isinstance(value, dict) else [f"{at}: is no object"]
    elif origin is list and isinstance(value, list):
        for number, one in enumerate(value):
            yield from _wrong(one, get_args(hint)[0], f"{at}[{number}]")
    elif (listed := _listed(hint)) is not None:
        if value not in listed:
            yield f"{at}: {value!r} is not listed"
    elif hint is not Any and (not isinstance(value, origin or hint) or (value is True and hint is int)):
        yield f"{at}: {value!r} is no {getattr(hint, '__name__', hint)}"


def _of_none(value: Any, members: list[Any], at: str) -> Iterator[str]:
    """What is wrong with a value that is of none of several types, as the likeliest sees it."""
    members = [one for one in members if not (isinstance(one, type) and issubclass(one, BaseModel))]
    if any(_listed(one) is not None for one in members):
        members = [one for one in members if one is not str]
    found = [list(_wrong(value, one, at)) for one in members]
    if all(found):
        fits = (one for one, member in zip(found, members, strict=True) if _is_like(value, member))
        yield from next(fits, found[0])


def _is_like(value: Any, hint: Any) -> bool:
    kind = dict if hasattr(hint, "__required_keys__") else get_origin(hint)
    return isinstance(kind, type) and isinstance(value, kind)


def _listed(hint: Any) -> tuple[Any, ...] | None:
    if get_origin(hint) is Literal:
        return get_args(hint)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return tuple(one.value for one in hint)
    return None


def _plain(hint: Any) -> Any:
    """A type that an alias stands for."""
    while True:
        origin = get_origin(hint)
        if isinstance(hint, TypeAliasType):
            hint = hint.__value__
        elif isinstance(origin, TypeAliasType):
            hint = origin.__value__[get_args(hint)]
        else:
            return hint
