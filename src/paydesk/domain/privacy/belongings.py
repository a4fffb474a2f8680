"""Whose rows are whose: all that is stored of one customer of a merchant,
by e-mail address or by an order.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from dataclasses import asdict, dataclass, fields
from string import ascii_lowercase, ascii_uppercase
from urllib.parse import quote, quote_plus

from paydesk.core.errors import Malformed
from paydesk.database.records import record_of, records_of
from paydesk.database.statements import Connection, load_statements
from paydesk.domain.merchants.shop import Shop

queries = load_statements(__package__ or "", "belongings.sql")

ERASED = "erased"
"""What stands where a personal value stood."""

_SHORTEST_NAME = 5
"""A shorter name is not looked for in texts: it would be found inside other words."""


@dataclass(frozen=True, slots=True)
class Subject:
    """Whose data is meant: the customer with this address, or whoever paid, or was to pay,
    this order.
    """

    merchant_id: int
    email: str = ""
    order: str = ""

    def __post_init__(self) -> None:
        if bool(self.email) == bool(self.order):
            raise Malformed("name either an e-mail address or an order")
        if self.email and (self.email.strip() != self.email or "@" not in self.email or self.email.lower() == ERASED):
            raise Malformed(f"{self.email!r} is not an e-mail address")

    @property
    def sides(self) -> tuple[Shop, Shop]:
        """A customer may have paid on both."""
        return Shop(self.merchant_id, live=True), Shop(self.merchant_id, live=False)


@dataclass(frozen=True, slots=True)
class Address:
    """An e-mail address that is stored somewhere."""

    email: str


@dataclass(frozen=True, slots=True)
class KnownAddress:
    """An e-mail address in small letters, and the ways in which it was `typed`."""

    email: str
    typed: Sequence[str]


@dataclass(frozen=True, slots=True)
class OneOrder:
    """An order, by the shop's own reference."""

    merchant_order_id: str


@dataclass(frozen=True, slots=True)
class _Name:
    name: str


@dataclass(frozen=True, slots=True)
class Ids:
    """The ids of one person's rows on one side, by table."""

    customers: Sequence[int]
    payments: Sequence[int]
    subscriptions: Sequence[int]
    attempts: Sequence[int]
    changes: Sequence[int]
    checkouts: Sequence[int]
    cards: Sequence[int]
    pingbacks: Sequence[int]
    deliveries: Sequence[int]
    chargebacks: Sequence[int]
    movements: Sequence[int]
    shoppers: Sequence[int]
    instruments: Sequence[int]

    @property
    def rows(self) -> dict[str, set[int]]:
        """The ids by table, in no order."""
        return {each.name: set(getattr(self, each.name)) for each in fields(Ids)}


@dataclass(frozen=True, slots=True)
class Found(Ids):
    """One person's rows on one side, and `patterns` by which `like` finds them in texts of these.

    In rows that may be another's they are found by `wholes`, too, regular expressions: another's
    address may end as theirs does. `like` comes first, since it takes a hundredth of the time.
    """

    shop: Shop
    emails: tuple[str, ...]
    patterns: tuple[str, ...]
    wholes: tuple[str, ...]

    @property
    def side(self) -> dict[str, object]:
        """The side's names, as parameters."""
        return {"merchant_id": self.shop.merchant_id, "live": self.shop.live}

    @property
    def texts(self) -> dict[str, object]:
        """How texts of rows that may be another's are looked through, as parameters."""
        return {"patterns": self.patterns, "wholes": self.wholes}

    def names_a_person(self, text: str) -> bool:
        """Whether a text holds one of the person's values."""
        folded = _folded(text)
        return any(_folded(pattern[1:-1].replace("\\", "")) in folded for pattern in self.patterns)


async def find_person(connection: Connection, subject: Subject) -> list[Found]:
    """What is stored of somebody on the live and the test side.

    Their refused forms and mails are found by texts, so that a side without ids may hold
    something too.
    """
    typed: set[str] = {subject.email} if subject.email else set()
    for shop in subject.sides if subject.order else ():
        rows = queries.emails_of_order(connection, **_side(shop), order_reference=subject.order)
        typed |= {address.email for address in await records_of(Address, rows)}
    small = await records_of(Address, queries.in_small_letters(connection, emails=list(typed)))
    emails = tuple(sorted(address.email for address in small))
    return [await _on_side(connection, shop, subject, typed, emails) for shop in subject.sides]


async def _on_side(
    connection: Connection, shop: Shop, subject: Subject, typed: Set[str], emails: tuple[str, ...]
) -> Found:
    asked = {"emails": list(emails), "order_reference": subject.order or None}
    addresses = tuple(sorted({*emails, *typed}))
    found = {"patterns": list(patterns(addresses)), "wholes": list(_wholes(addresses, *_ADDRESS))}
    ids = record_of(Ids, await queries.rows_of(connection, **_side(shop), **asked, **found))
    names = queries.names_of(
        connection, **_side(shop), customers=ids.customers, cards=ids.cards, checkouts=ids.checkouts
    )
    known = {one.name for one in await records_of(_Name, names)}
    rows = queries.addresses_of(
        connection,
        merchant_id=shop.merchant_id,
        live=shop.live,
        emails=list(emails),
        customers=ids.customers,
        checkouts=ids.checkouts,
        shoppers=ids.shoppers,
    )
    addresses = tuple(sorted({*addresses, *(one.email for one in await records_of(Address, rows))}))
    longer = tuple(sorted(name for name in known if len(name) >= _SHORTEST_NAME and " " in name))
    return Found(
        **asdict(ids),
        shop=shop,
        emails=emails,
        patterns=(*patterns(addresses), *patterns(longer)),
        wholes=(*_wholes(addresses, *_ADDRESS), *_wholes(longer, *_NAME)),
    )


async def orders_of(connection: Connection, found: Found) -> list[str]:
    """The shop's references to a person's orders on one side."""
    rows = queries.orders_of(connection, **found.side, payments=found.payments, checkouts=found.checkouts)
    return [order.merchant_order_id for order in await records_of(OneOrder, rows)]


def patterns(values: Sequence[str]) -> tuple[str, ...]:
    """How `like` finds values in texts in lower case:
    as they are, and as they stand in addresses of pages.
    """
    escaped = (way.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") for way in _ways(values))
    return tuple(f"%{way}%" for way in escaped)


_ESCAPE = r"(?<=%[0-9a-f]{2})(?<!%2b)|(?<=\\[bfnrt])"
"""A sign as it stands in an address of a page or in JSON, which ends with a letter or a digit."""
_ESCAPE_AND_DOTS = r"(?<=(%[2-7][0-9a-f]|\\[bfnrt])[._+-]+)(?<!%2b[._+-]+)"
"""The same with what joins parts of an address, as before an item of a list. Beyond `%7f` it may be
a letter of a name (`%c3%b6.lee@`).
"""
_ADDRESS = (
    rf"((?<![[:alnum:]][._+-]*)|{_ESCAPE}|{_ESCAPE_AND_DOTS})",
    r"(?![[:alnum:]]|-[[:alnum:]-]*\.[[:alnum:]]|\.[[:alnum:]])",
)
_NAME = (rf"((?<![[:alnum:]])|{_ESCAPE})", r"(?![[:alnum:]])")
"""What stands before and after a whole e-mail address or name, for PostgreSQL's `~`."""


def _wholes(values: Sequence[str], before: str, after: str) -> tuple[str, ...]:
    """How `~` finds values in texts in lower case where they are no part of a longer one."""
    return tuple(f"{before}{re.escape(way)}{after}" for way in _ways(values))


def _folded(text: str) -> str:
    """A text in small letters, whatever made them small: Python writes `İ` as two letters."""
    return text.casefold().replace("\u0307", "")


def _ways(values: Sequence[str]) -> list[str]:
    """How values stand in texts in lower case, as they are and in addresses of pages. `lower` of a
    database with the locale C leaves all letters but A to Z as they were written.
    """
    written = {way for value in values for way in (value, value.upper(), value.lower())}
    quoted = {way for value in written for way in (value, quote(value), quote_plus(value), quote(value, safe="@+"))}
    return sorted({way.lower() for way in quoted} | {way.translate(_SMALL) for way in quoted})


_SMALL = str.maketrans(ascii_uppercase, ascii_lowercase)


def _side(shop: Shop) -> dict[str, object]:
    return {"merchant_id": shop.merchant_id, "live": shop.live}
