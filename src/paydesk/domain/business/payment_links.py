"""Payment links as their team makes, changes and counts them."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal

from paydesk.core.errors import Conflict, Malformed, NotFound
from paydesk.core.money import parse_currency, parse_typed
from paydesk.core.urls import check_url, is_systems_own
from paydesk.database.pool import Database
from paydesk.database.records import records_of
from paydesk.database.statements import load_statements
from paydesk.domain.accounts.access_needs import Gate
from paydesk.domain.accounts.audit import Action, record
from paydesk.domain.accounts.roles import Permission
from paydesk.domain.accounts.sessions import Session, require
from paydesk.domain.merchants.customer_links import Link
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.fetching_pictures import SIDE, keep_picture
from paydesk.domain.payments.requests import LONGEST
from paydesk.domain.selling.payment_links import Offer, link_to

queries = load_statements(__package__ or "", "payment_links.sql")

LARGE_SIDE = 480
"""Pixels each way of the picture on a link's own page."""
LONGEST_TITLE, LONGEST_DESCRIPTION = 255, 2000
MOST_AT_ONCE = 1000
MOST_SALES = 1_000_000
MOST_LINKS = 1000
"""Of one side of a shop."""
_JOINERS = str.maketrans("", "", "\u200c\u200d")


@dataclass(frozen=True, slots=True)
class Typed:
    """What somebody typed to make or change a link."""

    title: str = ""
    description: str = ""
    currency: str = ""
    price: str = ""
    monthly_price: str = ""
    yearly_price: str = ""
    most_quantity: str = "1"
    most_sales: str = ""
    success_url: str = ""
    coupons: bool = True
    picture: bytes = field(default=b"", repr=False)
    remove_picture: bool = False


FIELDS = tuple(name for name in Typed.__slots__ if name not in {"coupons", "remove_picture"})


@dataclass(frozen=True, slots=True)
class OwnLink:
    """A link as its team sees it: `sold` counts what was paid, or is being paid just now, and
    `paid` what came of it.
    """

    shop: Shop
    id: int
    seed: str = field(repr=False)
    offer: Offer
    active: bool
    created_at: datetime
    sold: int
    paid: Decimal

    @property
    def link(self) -> Link:
        """By which customers come to it."""
        return link_to(self.shop, self.id, self.seed)


@dataclass(frozen=True, slots=True)
class _Row(Offer):
    id: int
    seed: str
    active: bool
    created_at: datetime
    sold: int
    paid: Decimal


async def list_payment_links(database: Database, shop: Shop, *, before: int, most: int) -> list[OwnLink]:
    """A shop's links, newest first, from below an id."""
    side = {"merchant_id": shop.merchant_id, "live": shop.live}
    rows = await records_of(_Row, queries.list_links(database, **side, id=None, before=before, most=most))
    return [_own(shop, row) for row in rows]


async def find_own_link(database: Database, shop: Shop, link_id: int) -> OwnLink:
    """One of a shop's links. Raises: NotFound."""
    side = {"merchant_id": shop.merchant_id, "live": shop.live}
    rows = await records_of(_Row, queries.list_links(database, **side, id=link_id, before=None, most=1))
    if not rows:
        raise NotFound(f"there is no payment link {link_id}")
    return _own(shop, rows[0])


def _own(shop: Shop, row: _Row) -> OwnLink:
    return OwnLink(shop, row.id, row.seed, row, row.active, row.created_at, row.sold, row.paid)


async def make_link(gate: Gate, session: Session, shop: Shop, typed: Typed, *, now: datetime) -> int:
    """Make a link, and return its id; customers may come to it at once.

    Raises: Forbidden; Malformed, naming the field; Conflict if there are too many.
    """
    require(session, Permission.manage_settings)
    offer = read_offer(typed, parse_currency(typed.currency))
    async with gate.database.acquire() as connection, connection.transaction():
        offer = await _with_picture(connection, shop, offer, typed, now=now)
        made = await queries.make_link(
            connection,
            merchant_id=shop.merchant_id,
            live=shop.live,
            seed=secrets.token_hex(16),
            title=offer.title,
            description=offer.description,
            picture=offer.picture,
            large_picture=offer.large_picture,
            currency=offer.currency,
            price=offer.price,
            monthly_price=offer.monthly_price,
            yearly_price=offer.yearly_price,
            most_quantity=offer.most_quantity,
            most_sales=offer.most_sales,
            success_url=offer.success_url,
            coupons=offer.coupons,
            most=MOST_LINKS,
            now=now,
        )
        if made is None:
            raise Conflict(f"there are {MOST_LINKS} payment links already; change one that is not used any more")
        await _note(connection, session, shop, int(made), "made", offer, now=now)
    return int(made)


async def change_link(gate: Gate, session: Session, shop: Shop, link_id: int, typed: Typed, *, now: datetime) -> None:
    """Change what a link offers; who has come to the checkout by it pays what they saw there. Its
    currency stays.

    Raises: Forbidden; NotFound; Malformed, naming the field.
    """
    require(session, Permission.manage_settings)
    before = (await find_own_link(gate.database, shop, link_id)).offer
    offer = replace(read_offer(typed, before.currency), picture=before.picture, large_picture=before.large_picture)
    async with gate.database.acquire() as connection, connection.transaction():
        offer = await _with_picture(connection, shop, offer, typed, now=now)
        await queries.change_link(
            connection,
            merchant_id=shop.merchant_id,
            live=shop.live,
            id=link_id,
            title=offer.title,
            description=offer.description,
            picture=offer.picture,
            large_picture=offer.large_picture,
            price=offer.price,
            monthly_price=offer.monthly_price,
            yearly_price=offer.yearly_price,
            most_quantity=offer.most_quantity,
            most_sales=offer.most_sales,
            success_url=offer.success_url,
            coupons=offer.coupons,
            now=now,
        )
        await _note(connection, session, shop, link_id, "changed", offer, now=now)


async def switch_link(gate: Gate, session: Session, shop: Shop, link_id: int, *, on: bool, now: datetime) -> None:
    """Sell by a link, or nothing any more; who has come to the checkout by it may still pay there.

    Raises: Forbidden; NotFound.
    """
    require(session, Permission.manage_settings)
    offer = (await find_own_link(gate.database, shop, link_id)).offer
    async with gate.database.acquire() as connection, connection.transaction():
        side = {"merchant_id": shop.merchant_id, "live": shop.live, "now": now}
        await queries.switch_link(connection, **side, id=link_id, active=on)
        await _note(connection, session, shop, link_id, "on" if on else "off", offer, now=now)


def read_offer(typed: Typed, currency: str) -> Offer:
    """What was typed, checked; without a picture.

    Raises: Malformed, naming the field.
    """
    prices = {
        name: _price(text, currency, name) if text else None
        for name, text in (
            ("price", typed.price),
            ("monthly_price", typed.monthly_price),
            ("yearly_price", typed.yearly_price),
        )
    }
    given = [name for name, price in prices.items() if price is not None]
    if not given:
        raise Malformed("a price is missing: once, or by month or year", "price")
    if "price" in given and len(given) > 1:
        raise Malformed("it is either paid once, or by month or year; make another link for the other", "price")
    quantity = _number(typed.most_quantity or "1", "most_quantity", MOST_AT_ONCE)
    if quantity > 1 and "price" not in given:
        raise Malformed("a subscription is bought one at a time", "most_quantity")
    return Offer(
        title=_line(typed.title),
        description=_lines(typed.description),
        picture="",
        large_picture="",
        currency=currency,
        most_quantity=quantity,
        most_sales=_number(typed.most_sales, "most_sales", MOST_SALES) if typed.most_sales else None,
        success_url=_success_url(typed.success_url),
        coupons=typed.coupons,
        **prices,
    )


def _price(text: str, currency: str, name: str) -> Decimal:
    try:
        return parse_typed(text, currency, "the price")
    except Malformed as error:
        raise Malformed(error.message, name) from error


def _number(text: str, name: str, most: int) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > len(str(most)) or not 1 <= int(text) <= most:
        raise Malformed(f"this must be a whole number from 1 to {most}", name)
    return int(text)


def _line(text: str) -> str:
    """A title that can't change how the words around it read."""
    line = " ".join(text.split())
    if not line:
        raise Malformed("the title is missing", "title")
    if len(line) > LONGEST_TITLE or not line.translate(_JOINERS).isprintable():
        raise Malformed(f"the title must be at most {LONGEST_TITLE} characters of plain text", "title")
    return line


def _lines(text: str) -> str:
    said = "\n".join(text.splitlines()).strip()
    if len(said) > LONGEST_DESCRIPTION or not said.replace("\n", "").translate(_JOINERS).isprintable():
        raise Malformed(
            f"the description must be at most {LONGEST_DESCRIPTION} characters of plain text", "description"
        )
    return said


def _success_url(text: str) -> str:
    if not text:
        return ""
    if len(text) > (most := LONGEST.get("success_url", 0)):
        raise Malformed(f"the address has more than {most} characters", "success_url")
    try:
        scheme = check_url(text, "the address")
    except Malformed as error:
        raise Malformed(error.message, "success_url") from error
    if is_systems_own(scheme):
        raise Malformed("the address must begin with https, or your app's own scheme", "success_url")
    return text


async def _with_picture(connection: Database, shop: Shop, offer: Offer, typed: Typed, *, now: datetime) -> Offer:
    """The offer with the picture that was sent, or without one if it is to go."""
    if not typed.picture:
        return replace(offer, picture="", large_picture="") if typed.remove_picture else offer
    small = await keep_picture(connection, shop, typed.picture, side=SIDE, now=now)
    large = await keep_picture(connection, shop, typed.picture, side=LARGE_SIDE, now=now)
    return replace(offer, picture=small, large_picture=large)


async def _note(
    connection: Database, session: Session, shop: Shop, link_id: int, what: str, offer: Offer, *, now: datetime
) -> None:
    """Write it into the audit log."""
    prices: Sequence[str] = [f"{rhythm} {price:f} {offer.currency}" for rhythm, price in offer.prices.items()]
    details: Mapping[str, object] = {
        "side": "live" if shop.live else "test",
        "what": what,
        "title": offer.title,
        "price": ", ".join(prices),
    }
    await record(
        connection,
        session.actor,
        Action.settings_changed,
        now=now,
        merchant_id=shop.merchant_id,
        subject=f"payment link {link_id}",
        details=details,
    )


def most_left(link: OwnLink) -> int | None:
    """How many may still be sold; None for any number."""
    most = link.offer.most_sales
    return None if most is None else max(0, most - link.sold)
