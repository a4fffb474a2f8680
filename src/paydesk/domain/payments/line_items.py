"""Line items: what an order is made of, as its shop says, so that the customer sees each."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

import msgspec

from paydesk.adapters.outbound import parse_endpoint
from paydesk.core.card_numbers import masked
from paydesk.core.errors import Malformed
from paydesk.core.money import parse_exact, plain_number
from paydesk.core.storable import refuse_card_number

FIELD = "line_items"
FIELDS = ("name", "unit_price", "quantity", "picture_url")
MOST_ITEMS = 50
MOST_PICTURES = 10
"""Of one checkout, each fetched once."""
LARGEST_QUANTITY = 1_000_000
LONGEST_NAME = 255
LONGEST_URL = 2048
_JOINERS = str.maketrans("", "", "\u200c\u200d")
"""Invisible, but part of words in some scripts, and of emoji."""


@dataclass(frozen=True, slots=True)
class LineItem:
    """One line of an order: so many of something, at so much each, in the order's currency.

    `picture` names a stored one, empty if there is none.
    """

    name: str
    unit_price: Decimal
    quantity: int
    picture: str = ""

    @property
    def price(self) -> Decimal:
        """What all of them cost."""
        return self.unit_price * self.quantity


@dataclass(frozen=True, slots=True)
class AskedItem:
    """A line as the shop sent it, with the address of its picture, empty if it has none."""

    item: LineItem
    picture_url: str


@dataclass(frozen=True, slots=True)
class LineItems:
    """All lines of a checkout, as its row has them."""

    items: tuple[LineItem, ...]


def read_line_items(given: object, amount: Decimal, currency: str) -> tuple[AskedItem, ...]:
    """The lines that a shop sends with an order of this amount; none if it sends none.

    Raises: Malformed, naming the line and the field, and if they cost another amount in all.
    """
    if given is None:
        return ()
    if not isinstance(given, list) or not given:
        raise Malformed(f"{FIELD} must be a list of at least one item", FIELD)
    if len(given) > MOST_ITEMS:
        raise Malformed(f"{FIELD} has {len(given)} items, at most {MOST_ITEMS} are accepted", FIELD)
    asked = tuple(_read_item(one, f"{FIELD}[{place}]", currency) for place, one in enumerate(given))
    pictures = len({one.picture_url for one in asked if one.picture_url})
    if pictures > MOST_PICTURES:
        raise Malformed(f"{FIELD} has {pictures} different pictures, at most {MOST_PICTURES} are accepted", FIELD)
    total = sum((one.item.price for one in asked), Decimal(0))
    if total != amount:
        said = f"{FIELD} cost {plain_number(total):f} {currency} in all, but amount is {plain_number(amount):f}"
        raise Malformed(f"{said}; they must be equal", FIELD, "amount")
    return asked


def read_signed_items(text: str, amount: Decimal, currency: str) -> tuple[AskedItem, ...]:
    """The lines that a form brings as one JSON text; none if that is empty.

    Raises: Malformed, as `read_line_items`, and for a text that is no JSON list.
    """
    if not text.strip():
        return ()
    try:
        given = json.loads(text, object_pairs_hook=_unrepeated, parse_constant=_no_number)
        json.dumps(given, ensure_ascii=False).encode()  # Half a character can't be kept, nor told.
    except (ValueError, RecursionError) as error:
        raise Malformed(f"{FIELD} is no JSON: {error}", FIELD) from error
    return read_line_items(given if given is not None else [], amount, currency)


def _unrepeated(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Of a price that stands there twice nobody can say which is meant."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise Malformed(f"{FIELD} names a field of an item twice; send it once", FIELD)
    return found


def _no_number(text: str) -> object:
    raise ValueError(f"{text} is no number")


def stored(items: Sequence[LineItem]) -> str | None:
    """The lines as a checkout's row has them; None for none."""
    return msgspec.json.encode(LineItems(tuple(items))).decode() if items else None


def _read_item(given: object, field: str, currency: str) -> AskedItem:
    if not isinstance(given, Mapping):
        raise Malformed(f"{field} must be an object with {', '.join(FIELDS)}", FIELD)
    unknown = [str(name) for name in given if name not in FIELDS]
    if unknown:
        raise Malformed(f'{field} has no field "{unknown[0][:40]}", only {", ".join(FIELDS)}', FIELD)
    price = _text(given, "unit_price", field)
    item = LineItem(
        name=_name(_text(given, "name", field), field),
        unit_price=parse_exact(price, currency, f"{field}.unit_price", like='"10.00"'),
        quantity=_quantity(given.get("quantity", 1), field),
    )
    return AskedItem(item, _picture_url(given.get("picture_url"), field))


def _text(given: Mapping[object, object], name: str, field: str) -> str:
    value = given.get(name)
    if not isinstance(value, str) or not value.strip():
        raise Malformed(f"{field}.{name} is missing, or is no text", FIELD)
    return value


def _name(text: str, field: str) -> str:
    """A name that can't change how the words around it read: no breaks, nothing that turns the
    direction.
    """
    line = " ".join(text.split())
    if not line.translate(_JOINERS).isprintable():
        raise Malformed(f"{field}.name contains a control character; send plain text", FIELD)
    if len(line) > LONGEST_NAME:
        raise Malformed(f"{field}.name has {len(line)} characters, at most {LONGEST_NAME} are accepted", FIELD)
    return masked(line)


def _quantity(value: object, field: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= LARGEST_QUANTITY:
        raise Malformed(f"{field}.quantity must be a whole number from 1 to {LARGEST_QUANTITY}", FIELD)
    return value


def _picture_url(value: object, field: str) -> str:
    """An address that may be called at all; where it leads to shows when it is."""
    if value is None:
        return ""
    if not isinstance(value, str) or len(value) > LONGEST_URL or not value.isprintable():
        raise Malformed(f"{field}.picture_url must be an address of at most {LONGEST_URL} characters", FIELD)
    refuse_card_number(value, f"{field}.picture_url")
    try:
        parse_endpoint(value)
    except ValueError as error:
        raise Malformed(f"{field}.picture_url is {error}", FIELD) from error
    return value
