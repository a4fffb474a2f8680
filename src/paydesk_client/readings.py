"""Which parameters a signature protects: those whose signed string can't be read as anything else
(interface.md §3.5).

The version 1 string is percent-encoded, so plain names are enough. The version 2 string has no
escaping and names no parents. Of all that could have been written as the same string at most one is
accepted here, at whatever door:

- names of the doors' own fields never stand behind a `;` in a value, so they are where every
  reading begins a field;
- any other name behind a `;` counts if it would stand in its sorted place between two such fields;
- only `attachments` (a list) and `shipping_address` are nested, and only where their parts could
  not stand beside them;
- whole numbers name nothing but a list's items.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, cast

from paydesk_client.parameters import Parameters, Value, is_nested, is_plain_name, items, leaves, text

CHECKOUT_FIELDS: Final = frozenset(
    (
        *("api_key", "merchant_order_id", "amount", "currency", "description", "email", "success_url", "pingback_url"),
        *("hash", "sign_version", "recurring_name", "recurring_sku_id", "recurring_period", "recurring_trial_amount"),
        *("recurring_trial_period", "recurring_duration"),
    )
)
"""The fields of a checkout request (interface.md §2.2, §2.3)."""

PREFILL_FIELDS: Final = frozenset(
    ("first_name", "last_name", "city", "zip", "country", "country_code", "payment_flow", "module_source")
)
"""What clients send with a form besides (interface.md §2.6)."""

DELIVERY_FIELDS: Final = frozenset(
    (
        *("public_key", "sign_version", "hash", "payment_order_id", "merchant_reference_id", "merchant_order_id"),
        *("type", "status", "refundable", "notify_user", "product_description", "details", "reason", "amount"),
        *("estimated_delivery_datetime", "carrier_tracking_id", "carrier_type", "carrier_tracking_url", "quantity"),
        *("attachments", "shipping_address"),
    )
)
"""The fields of a delivery confirmation (interface.md §8.6)."""

ADDRESS_PARTS: Final = ("country_code", "city", "zip", "state", "street", "phone", "first_name", "last_name", "email")
"""The parts of `shipping_address` (interface.md §8.6)."""

SIGNED_FIELDS: Final = CHECKOUT_FIELDS | PREFILL_FIELDS | DELIVERY_FIELDS | frozenset(ADDRESS_PARTS)
"""The names that any door which takes a `hash` knows."""

_ANCHORS = SIGNED_FIELDS - frozenset(ADDRESS_PARTS)
"""Names that stand on the outermost level wherever they stand:
what is between two of them is sorted between them."""

_NUMBER = re.compile(r"[0-9]+")
_ADDRESS, _ATTACHMENTS = "shipping_address", "attachments"
_WAYS_OUT = "rename it or sign with v1"

_Sorting: TypeAlias = Callable[[str], str]
_SORTINGS: Final[Sequence[_Sorting]] = (str, str.lower)
"""Clients sort names by their bytes or by their lower-case form."""


@dataclass(frozen=True, slots=True)
class _Field:
    """A field of the outermost level that is not empty: `texts` are its own and its parts',
    `parts` their names.
    """

    name: str
    texts: tuple[str, ...]
    parts: tuple[str, ...] = ()


def find_ambiguity(parameters: Parameters) -> str | None:
    """Say why version 2 can't protect these parameters, since another request has the same string;
    None if it can.

    The empty fields that a client may have left out are no part of it: they say nothing.
    Raises: MalformedForm for a name that can't be signed or nesting too deep; TypeError for a value
        without text.
    """
    for problem in (_nested_problem, _numbered_problem, _hidden_problem, _parts_problem):
        found = problem(parameters)
        if found is not None:
            return found
    return None


def find_mixed_doors(parameters: Parameters) -> str | None:
    """Say that the parameters could be meant for two doors, in either version;
    None if it is plain for which one.
    """
    if "api_key" in parameters and "public_key" in parameters:
        return "api_key belongs to a checkout form and public_key to a delivery; send one of them"
    return None


def _fields(parameters: Parameters) -> list[_Field]:
    """The fields of the outermost level that say something, by name."""
    found = []
    for name, value in items({name: value for name, value in parameters.items() if name != "hash"}):
        if is_nested(value):
            inner = [one for one in leaves({name: value}) if _v2_text(one.value)]
            if inner:
                parts = tuple(sorted(one.path[1] for one in inner))
                found.append(_Field(name, tuple(_v2_text(one.value) for one in inner), parts))
        elif written := _v2_text(cast("str | bool | int | None", value)):
            found.append(_Field(name, (written,)))
    return found


def _v2_text(value: object) -> str:
    return "" if value is False else text(cast("str | bool | int | None", value))


def _nested_problem(parameters: Parameters) -> str | None:
    """Nested is only what a delivery nests: a list of texts, and an address with its parts."""
    for one in leaves({name: value for name, value in parameters.items() if name != "hash"}):
        outer, inner = one.path[0], one.path[1:]
        shown = f'"{one.bracket_name}"'
        if not inner:
            continue
        if len(inner) > 1 or not _may_hold(outer, inner[0], parameters.get(outer)):
            known = inner[-1] in SIGNED_FIELDS
            why = f'has the name of the field "{inner[-1]}"' if known else "is nested, which version 2 does not sign"
            return f"{shown} {why}; {_WAYS_OUT}"
        if outer == _ADDRESS and inner[0] in CHECKOUT_FIELDS and "api_key" in parameters:
            return f'{shown} has the name of the field "{inner[0]}"; {_WAYS_OUT}'
    return None


def _may_hold(outer: str, part: str, value: Value) -> bool:
    if outer == _ADDRESS:
        return part in ADDRESS_PARTS
    if outer != _ATTACHMENTS or not is_nested(value):
        return False
    nested = cast("Mapping[str, Value] | Sequence[Value]", value)
    return [name for name, _ in items(nested)] == [str(position) for position in range(len(nested))]


def _numbered_problem(parameters: Parameters) -> str | None:
    for name in parameters:
        if _NUMBER.fullmatch(name):
            return f'the name "{name[:40]}" is a number, which only an item of a list has; {_WAYS_OUT}'
    return None


def _hidden_problem(parameters: Parameters) -> str | None:
    """A value that holds `;name=` may be a field's end and another field."""
    fields = _fields(parameters)
    gaps = [_gaps(fields, sorting) for sorting in _SORTINGS]
    for position, field in enumerate(fields):
        around = [(sorting, of[position]) for sorting, of in zip(_SORTINGS, gaps, strict=True)]
        for written in field.texts:
            for name in _names_behind_semicolons(written):
                if (
                    name in SIGNED_FIELDS
                    or field.parts
                    or _NUMBER.fullmatch(name)
                    or any(
                        low <= sorting(name) and (high is None or sorting(name) <= high)
                        for sorting, (low, high) in around
                    )
                ):
                    return f'"{field.name}" contains ";{name[:40]}="; take that out or sign with v1'
    return None


def _names_behind_semicolons(written: str) -> Iterator[str]:
    for piece in written.split(";")[1:]:
        name, equals, _ = piece.partition("=")
        if equals and is_plain_name(name):
            yield name


def _gaps(fields: list[_Field], sorting: _Sorting) -> dict[int, tuple[str, str | None]]:
    """Between which two known fields each one stands once they are sorted, by its position; None:
    nothing follows.
    """
    ordered = sorted(range(len(fields)), key=lambda position: sorting(fields[position].name))
    anchored = [sorting(one.name) if one.name in _ANCHORS and not one.parts else None for one in fields]
    gaps: dict[int, tuple[str, str | None]] = {}
    low = ""
    for place, position in enumerate(ordered):
        low = anchored[position] or low
        later = (anchored[other] for other in ordered[place + 1 :])
        gaps[position] = (low, next((name for name in later if name is not None), None))
    return gaps


def _parts_problem(parameters: Parameters) -> str | None:
    """The parts of an address stand where no sorted form could have them beside it."""
    fields = _fields(parameters)
    address = next((field for field in fields if field.name == _ADDRESS and field.parts), None)
    if address is None:
        return None
    first, last = address.parts[0], address.parts[-1]
    names = [field.name for field in fields]
    for sorting in _SORTINGS:
        ordered = sorted(names, key=sorting)
        place = ordered.index(_ADDRESS)
        follows = place == 0 or sorting(ordered[place - 1]) <= first
        precedes = place == len(ordered) - 1 or last <= sorting(ordered[place + 1])
        if (follows and (first < _ADDRESS or precedes)) or (precedes and last > _ADDRESS):
            return f'"{_ADDRESS}" could be read as fields of its own; {_WAYS_OUT}'
    return None
