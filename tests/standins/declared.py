"""Answers compared with the types of Stripe's library, as it is installed: a field that it doesn't
declare is nothing that Stripe answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stripe._error_object import ErrorObject
from stripe._object_classes import get_object_class
from stripe._stripe_object import StripeObject

_LISTS = {"list": {"object", "data", "has_more", "url"}, "search_result": {"object", "data", "has_more", "url"}}


def undeclared(said: Any, shape: Any = None, at: str = "") -> Iterator[str]:
    """The fields of an answer that its type does not declare, each by its place."""
    if isinstance(said, list):
        for number, one in enumerate(said):
            yield from undeclared(one, shape, f"{at}[{number}]")
    if not isinstance(said, dict):
        return
    if set(said) == {"error"}:
        yield from undeclared(said["error"], ErrorObject, f"{at}error")
        return
    kind = said.get("object")
    own = get_object_class("V1", kind) if isinstance(kind, str) and kind not in _LISTS else shape
    declared = _LISTS.get(kind) if isinstance(kind, str) else None
    if declared is None and (own is None or own is StripeObject):
        return  # Such as metadata: its names are ours.
    for name, value in said.items():
        if name not in (declared or _declared(own)):
            yield f"{at}.{name}: not declared"
        yield from undeclared(value, getattr(own, "_inner_class_types", {}).get(name), f"{at}.{name}")


def _declared(shape: Any) -> set[str]:
    return {name for one in shape.__mro__ for name in vars(one).get("__annotations__", {})}
