"""A delivery confirmation, read strictly (interface.md §8.6):
it stops at the first thing that is wrong.

Shops and their plugins write "N/A" for what they don't know; that, an empty text and null count as
absent. Fields that are not known are ignored. Moves no money.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from typing import TypeVar, cast

import msgspec

from paydesk.core.card_numbers import masked
from paydesk.core.errors import Malformed
from paydesk.core.paging import EARLIEST, LATEST, read_id
from paydesk.core.urls import check_url
from paydesk.core.wording import plural, worded
from paydesk.domain.deliveries.carriers import tracking_link
from paydesk.domain.deliveries.delivery_status import DeliveryStatus, GoodsType
from paydesk_client.parameters import Parameters, Value, is_nested, text

LONGEST_ADDRESS_PART = 255

LONGEST: Mapping[str, int] = {
    "merchant_reference_id": 255,
    "merchant_order_id": 255,
    "product_description": 4096,
    "details": 4096,
    "reason": 4096,
    "carrier_tracking_id": 255,
    "carrier_type": 100,
    "carrier_tracking_url": 2048,
    "attachments": 2048,
    "shipping_address": LONGEST_ADDRESS_PART,
}
"""The most characters that a field (or a part of it) may have."""

ADDRESS_FIELDS = ("country_code", "city", "zip", "state", "street", "phone", "first_name", "last_name", "email")

KNOWN_FIELDS = LONGEST.keys() | {
    "payment_order_id", "status", "type", "refundable", "notify_user", "estimated_delivery_datetime", "amount",
    "quantity", "public_key", "sign_version", "hash",
}  # fmt: skip
"""What a confirmation may say, and how it is signed."""

MOST_ATTACHMENTS = 50

_UNKNOWN = frozenset({"", "n/a"})
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_CONTROL_BUT_LINES = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_YES, _NO = frozenset({"1", "true", "yes"}), frozenset({"0", "false", "no"})
_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}([ T][0-9:.]{4,15} ?(Z|[+-]\d{2}:?\d{2})?)?", re.ASCII)
_ZONE = re.compile(r" (?=[+-]\d{2}:?\d{2}$)")

_Word = TypeVar("_Word", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class NamedOrder:
    """Which order, by the payment's id, the shop's own reference, or both;
    `amount` and `quantity` if all is said.
    """

    payment_id: int | None
    reference: str | None
    amount: Decimal | None
    quantity: Decimal | None


@dataclass(frozen=True, slots=True)
class Delivery:
    """What a shop says of an order's goods; texts are empty and the rest is None
    where it says nothing.

    An `order_shipped` has carrier, tracking id and tracking link. `attachments` are texts or
    mappings of texts.
    """

    status: DeliveryStatus
    type: GoodsType
    carrier: str
    tracking_id: str
    tracking_url: str
    refundable: bool | None
    notify_user: bool | None
    product_description: str
    details: str
    reason: str
    estimated_at: datetime | None
    attachments: tuple[str | dict[str, str], ...]
    shipping_address: dict[str, str] | None

    def digest(self) -> bytes:
        """What is the same for the same confirmation, however it was written."""
        return hashlib.sha256(msgspec.json.encode(asdict(self), order="sorted")).digest()


def read_order(fields: Parameters) -> NamedOrder:
    """Which order a confirmation is about.

    Raises: Malformed, naming the field.
    """
    references = {_line(fields, name) for name in ("merchant_reference_id", "merchant_order_id")} - {""}
    if len(references) > 1:
        raise Malformed("merchant_reference_id and merchant_order_id differ; send one of them", "merchant_reference_id")
    payment_id = _payment_id(_word(fields, "payment_order_id"))
    if payment_id is None and not references:
        raise Malformed(
            "payment_order_id is missing; send the payment_order.id of the pingback, or your merchant_reference_id",
            "payment_order_id",
        )
    return NamedOrder(
        payment_id,
        references.pop() if references else None,
        amount=_number(fields, "amount"),
        quantity=_number(fields, "quantity"),
    )


def read_delivery(fields: Parameters) -> Delivery:
    """What a confirmation says.

    Raises: Malformed for the first field that is missing or wrong; for `order_shipped` also
    tracking data that is missing.
    """
    status = _known(fields, "status", DeliveryStatus)
    carrier, tracking_id = (masked(_line(fields, name)) for name in ("carrier_type", "carrier_tracking_id"))
    tracking_url = masked(_web_address(fields, "carrier_tracking_url")) or tracking_link(carrier, tracking_id)
    if status is DeliveryStatus.ORDER_SHIPPED:
        _require_tracking(carrier, tracking_id, tracking_url)
    return Delivery(
        status=status,
        type=_known(fields, "type", GoodsType, GoodsType.PHYSICAL),
        carrier=carrier,
        tracking_id=tracking_id,
        tracking_url=tracking_url if tracking_id or _word(fields, "carrier_tracking_url") else "",
        refundable=_yes_or_no(fields, "refundable"),
        notify_user=_yes_or_no(fields, "notify_user"),
        product_description=_lines(fields, "product_description"),
        details=_lines(fields, "details"),
        reason=_lines(fields, "reason"),
        estimated_at=_moment(fields, "estimated_delivery_datetime"),
        attachments=_attachments(fields.get("attachments")),
        shipping_address=_address(fields.get("shipping_address")),
    )


_RIGHT: Mapping[str, str] = {
    "status": DeliveryStatus.ORDER_PLACED,
    "carrier_type": "DHL",
    "carrier_tracking_id": "1",
    "carrier_tracking_url": "https://parcels.example/1",
}
"""What could stand in a field, where that must be something; any other may be left out."""


def all_wrong(fields: Parameters) -> list[Malformed]:
    """Everything that is wrong with a confirmation, first to last, one thing a field: for somebody
    who fills in a form. Each time the field that is wrong is read as though it were right.
    """
    found: dict[str, Malformed] = {}
    rest = dict(fields)
    for _ in KNOWN_FIELDS:
        try:
            read_delivery(rest)
        except Malformed as error:
            name = error.fields[0]
            found[name] = error
            rest[name] = _RIGHT.get(name, "")
        else:
            break
    return list(found.values())


def ignored_names(fields: Parameters) -> set[str]:
    """The names of fields, and of parts of the address, that mean nothing here."""
    address = fields.get("shipping_address")
    parts = address.keys() - set(ADDRESS_FIELDS) if isinstance(address, Mapping) else set()
    return (fields.keys() - KNOWN_FIELDS) | {f"shipping_address[{part}]" for part in parts}


def _require_tracking(carrier: str, tracking_id: str, tracking_url: str) -> None:
    if not tracking_id:
        raise Malformed(
            worded("carrier_tracking_id is missing: order_shipped needs the parcel's number"), "carrier_tracking_id"
        )
    if not carrier:
        raise Malformed(
            worded('carrier_type is missing: order_shipped needs the carrier\'s name, like "DHL"'), "carrier_type"
        )
    if not tracking_url:
        raise Malformed(
            worded(
                'carrier_tracking_url is missing, and for the carrier "%(carrier)s" it can\'t be derived '
                "from the tracking id; send the address where the parcel can be followed",
                carrier=carrier[:40],
            ),
            "carrier_tracking_url",
        )


def _single(value: Value, name: str) -> str:
    """A value as text, "" if it is absent or unknown."""
    if is_nested(value):
        raise Malformed(f"{name} must be a single value, not a list", name)
    written = text(cast("str | bool | int | Decimal | None", value)).strip()
    if _SURROGATE.search(written):
        raise Malformed(f"{name} is not valid Unicode", name)
    return "" if written.lower() in _UNKNOWN else written


def _word(fields: Parameters, name: str) -> str:
    return _single(fields.get(name), name)


def _line(fields: Parameters, name: str) -> str:
    line = _word(fields, name)
    _check(line, name, LONGEST[name], _CONTROL)
    return line


def _lines(fields: Parameters, name: str) -> str:
    lines = _word(fields, name)
    _check(lines, name, LONGEST[name], _CONTROL_BUT_LINES)
    return masked(lines)


def _check(written: str, name: str, longest: int, forbidden: re.Pattern[str]) -> None:
    if forbidden.search(written):
        raise Malformed(worded("%(field)s contains a control character; send plain text", field=name), name)
    if len(written) > longest:
        raise Malformed(
            plural(
                "%(field)s has %(count)s character, at most %(most)s are accepted",
                "%(field)s has %(count)s characters, at most %(most)s are accepted",
                field=name,
                count=len(written),
                most=longest,
            ),
            name,
        )


def _payment_id(written: str) -> int | None:
    if not written:
        return None
    if (payment_id := read_id(written)) is None:
        raise Malformed(
            f'payment_order_id "{_shown(written)}" is no id; send the payment_order.id of the pingback',
            "payment_order_id",
        )
    return payment_id


def _number(fields: Parameters, name: str) -> Decimal | None:
    written = _word(fields, name)
    if not written:
        return None
    try:
        number = Decimal(written) if len(written) <= 40 else None
    except InvalidOperation:
        number = None
    if number is None or not number.is_finite() or not 0 < number < Decimal(10) ** 15:
        raise Malformed(f'{name} "{_shown(written)}" is not a number above 0', name)
    return number


def _known(fields: Parameters, name: str, words: type[_Word], default: _Word | None = None) -> _Word:
    written = _word(fields, name)
    if not written and default is not None:
        return default
    try:
        return words(written.lower())
    except ValueError:
        said = f'{name} "{_shown(written)}" is unknown' if written else f"{name} is missing"
        raise Malformed(f"{said}; expected {', '.join(words)}", name) from None


def _yes_or_no(fields: Parameters, name: str) -> bool | None:
    written = _word(fields, name).lower()
    if not written:
        return None
    if written not in _YES | _NO:
        raise Malformed(f'{name} "{_shown(written)}" is neither true nor false', name)
    return written in _YES


def _web_address(fields: Parameters, name: str) -> str:
    url = _line(fields, name)
    if not url:
        return ""
    if check_url(url, name) not in ("http", "https"):
        raise Malformed(worded("%(field)s must be an absolute http or https URL", field=name), name)
    if "@" in url.split("/", 3)[2]:
        raise Malformed(worded("%(field)s must not carry a user name or password", field=name), name)
    return url


def _moment(fields: Parameters, name: str) -> datetime | None:
    """A moment as clients write it, `2020-02-14 11:41:14 +0530`, or ISO 8601;
    without a zone it is UTC.
    """
    written = _word(fields, name)
    if not written:
        return None
    try:
        read = datetime.fromisoformat(_ZONE.sub("", written)) if _MOMENT.fullmatch(written) else None
        moment = read and (read if read.tzinfo else read.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        moment = None
    if moment is None or not EARLIEST <= moment <= LATEST:
        raise Malformed(
            f'{name} "{_shown(written)}" is no moment; write it like "2020-02-14 11:41:14 +0530"',
            name,
        )
    return moment


def _attachments(value: Value) -> tuple[str | dict[str, str], ...]:
    """A list of texts or of mappings of texts; a lone text is a list of one."""
    if not is_nested(value):
        alone = _attachment(value)
        return (alone,) if alone else ()
    if isinstance(value, Mapping):
        value = list(value.values())
    assert isinstance(value, list)
    if len(value) > MOST_ATTACHMENTS:
        raise Malformed(f"attachments has {len(value)} items, at most {MOST_ATTACHMENTS} are accepted", "attachments")
    return tuple(one for one in map(_attachment, value) if one)


def _attachment(value: Value) -> str | dict[str, str]:
    if isinstance(value, Mapping):
        named = {_part(name, "attachments"): _part(inner, "attachments") for name, inner in value.items()}
        return {name: inner for name, inner in named.items() if inner}
    return _part(value, "attachments")


def _address(value: Value) -> dict[str, str] | None:
    """The known parts of an address that are given; None if there are none."""
    if not isinstance(value, Mapping):
        if value if is_nested(value) else _single(value, "shipping_address"):
            raise Malformed(f"shipping_address must have parts: {', '.join(ADDRESS_FIELDS)}", "shipping_address")
        return None
    parts = {name: _part(value.get(name), "shipping_address", name) for name in ADDRESS_FIELDS}
    return {name: part for name, part in parts.items() if part} or None


def _part(value: Value, name: str, inner: str = "") -> str:
    shown = f"{name}[{inner}]" if inner else name
    part = _single(value, shown)
    _check(part, shown, LONGEST[name], _CONTROL_BUT_LINES)
    return masked(part)


def _shown(written: str) -> str:
    return _CONTROL.sub("?", written[:40])
