"""Payment links as their team makes, changes and counts them."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal

from paydesk.core.errors import Conflict, NotFound
from paydesk.core.money import parse_currency
from paydesk.core.wording import plural
from paydesk.database.pool import Database
from paydesk.database.records import records_of
from paydesk.database.statements import Connection, load_statements
from paydesk.domain.accounts.access_needs import Gate
from paydesk.domain.accounts.audit import Action, record
from paydesk.domain.accounts.roles import Permission
from paydesk.domain.accounts.sessions import Session, require
from paydesk.domain.business.link_offers import Typed, read_offer, read_page
from paydesk.domain.merchants.customer_links import Link
from paydesk.domain.merchants.live_amounts import require_typed_taken
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.fetching_pictures import SIDE, keep_picture
from paydesk.domain.selling.payment_links import Offer, link_to
from paydesk.domain.selling.plans import Plans, find_versions, replaced, stored
from paydesk.domain.subscriptions.packages import MadeVersion
from paydesk.domain.subscriptions.rows import PackageRow, package_of
from paydesk.domain.subscriptions.subscription_terms import Package

queries = load_statements(__package__ or "", "payment_links.sql")

LARGE_SIDE = 480
"""Pixels each way of the picture on a link's own page."""
MOST_LINKS = 1000
"""Of one side of a shop."""
MOST_SHOWN, MOST_VERSIONS_SHOWN = 50, 8
"""Packages to choose from, and versions of each."""


@dataclass(frozen=True, slots=True)
class OwnLink:
    """A link as its team sees it: `sold` counts what was paid, or is being paid just now, and
    `paid` what came of it; `packages` are the versions of its plans.
    """

    shop: Shop
    id: int
    seed: str = field(repr=False)
    offer: Offer
    active: bool
    created_at: datetime
    sold: int
    paid: Decimal
    packages: Mapping[int, Package] = field(default_factory=dict)

    @property
    def link(self) -> Link:
        """By which customers come to it."""
        return link_to(self.shop, self.id, self.seed)


@dataclass(frozen=True, slots=True)
class SellingPage:
    """A page that sells a package, with all its plans."""

    id: int
    title: str
    currency: str
    plans: Plans


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
    return await _own(database, shop, rows)


async def find_own_link(database: Database, shop: Shop, link_id: int) -> OwnLink:
    """One of a shop's links. Raises: NotFound."""
    side = {"merchant_id": shop.merchant_id, "live": shop.live}
    rows = await records_of(_Row, queries.list_links(database, **side, id=link_id, before=None, most=1))
    if not rows:
        raise NotFound(f"there is no payment link {link_id}")
    return (await _own(database, shop, rows))[0]


async def _own(database: Database, shop: Shop, rows: Sequence[_Row]) -> list[OwnLink]:
    versions = {version for row in rows if row.plans is not None for version in row.plans.versions}
    packages = await find_versions(database, shop, versions) if versions else {}
    return [
        OwnLink(shop, row.id, row.seed, row, row.active, row.created_at, row.sold, row.paid, packages) for row in rows
    ]


async def list_sellable(database: Database, shop: Shop, chosen: Sequence[int] = ()) -> list[list[Package]]:
    """The versions that a page may sell, by package: those that were made last, and who is chosen
    already.
    """
    side = {"merchant_id": shop.merchant_id, "live": shop.live}
    rows = queries.list_sellable(
        database, **side, chosen=list(chosen), most=MOST_SHOWN, most_versions=MOST_VERSIONS_SHOWN
    )
    found: dict[int, list[Package]] = {}
    for row in await records_of(PackageRow, rows):
        found.setdefault(row.package_id, []).append(package_of(row))
    return list(found.values())


async def newer_versions(database: Database, link: OwnLink) -> list[Package]:
    """Versions that a link's packages have got since, for the same length of a period as one that
    it sells.
    """
    plans = link.offer.plans
    if plans is None:
        return []
    sellable = await list_sellable(database, link.shop, plans.versions)
    sold = {
        (one.id, one.terms.period): one.version_id for one in link.packages.values() if one.version_id in plans.versions
    }
    newest = {(one.id, one.terms.period): one for versions in sellable for one in reversed(versions)}
    return [one for key, one in newest.items() if key in sold and one.version_id > sold[key]]


async def _read(database: Database, shop: Shop, typed: Typed, currency: str) -> Offer:
    """What was typed, checked; `currency` is that of a link that is there.

    Raises: Malformed, naming the field.
    """
    several = bool(await queries.sells_several(database, merchant_id=shop.merchant_id))
    if typed.sells_packages:
        packages = await find_versions(database, shop, typed.versions)
        page = read_page(typed, packages, currency, several=several)
        for one in packages.values():
            # One of before its price would have been refused is not sold, either.
            for price in (one.terms.price, one.terms.first_amount):
                require_typed_taken(shop, page.currency, packages=price)
        return page
    offer = read_offer(typed, currency or parse_currency(typed.currency), several=several)
    prices = {name: getattr(offer, name) for name in ("price", "monthly_price", "yearly_price")}
    require_typed_taken(shop, offer.currency, **prices)
    return offer


async def make_link(gate: Gate, session: Session, shop: Shop, typed: Typed, *, now: datetime) -> int:
    """Make a link, and return its id; customers may come to it at once.

    Raises: Forbidden; Malformed, naming the field; Conflict if there are too many.
    """
    require(session, Permission.manage_settings)
    offer = await _read(gate.database, shop, typed, "")
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
            plans=stored(offer.plans),
            most=MOST_LINKS,
            now=now,
        )
        if made is None:
            raise Conflict(
                plural(
                    "there is %(count)s payment link already; change one that is not used any more",
                    "there are %(count)s payment links already; change one that is not used any more",
                    count=MOST_LINKS,
                )
            )
        await _note(connection, session, shop, int(made), "made", offer, now=now)
    return int(made)


async def change_link(gate: Gate, session: Session, shop: Shop, link_id: int, typed: Typed, *, now: datetime) -> None:
    """Change what a link offers; who has come to the checkout by it pays what they saw there. Its
    currency stays.

    Raises: Forbidden; NotFound; Malformed, naming the field.
    """
    require(session, Permission.manage_settings)
    before = (await find_own_link(gate.database, shop, link_id)).offer
    typed = replace(typed, sells_packages=before.plans is not None)
    read = await _read(gate.database, shop, typed, before.currency)
    offer = replace(read, picture=before.picture, large_picture=before.large_picture)
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
            plans=stored(offer.plans),
            now=now,
        )
        await _note(connection, session, shop, link_id, "changed", offer, now=now)


async def sell_on_pages(
    connection: Connection, session: Session, shop: Shop, made: MadeVersion, *, now: datetime
) -> int:
    """Sell a version on all pages that sell one of its package now, paid as often and in its
    currency, in the place of that; returns how many there are.

    Raises: Forbidden.
    """
    require(session, Permission.manage_settings)
    pages = await list_pages(connection, shop, made.package_id)
    known = await find_versions(
        connection, shop, [made.version_id, *(one for page in pages for one in page.plans.versions)]
    )
    wanted, changed = known[made.version_id], 0
    for page in pages:
        old = [known[one] for one in page.plans.versions if one in known]
        gone = {
            one.version_id
            for one in old
            if one.id == wanted.id
            and one.terms.period == wanted.terms.period
            and page.currency == wanted.terms.currency
        } - {wanted.version_id}
        if not gone:
            continue
        plans = replaced(page.plans, gone, wanted.version_id)
        await queries.set_plans(
            connection,
            merchant_id=shop.merchant_id,
            live=shop.live,
            id=page.id,
            plans=stored(plans),
            now=now,
        )
        await _record(
            connection, session, shop, page.id, "version", page.title, [f"version {wanted.version_id}"], now=now
        )
        changed += 1
    return changed


async def list_pages(database: Database | Connection, shop: Shop, package_id: int) -> list[SellingPage]:
    """The pages that sell a package, on or off."""
    side = {"merchant_id": shop.merchant_id, "live": shop.live}
    return await records_of(SellingPage, queries.list_pages(database, **side, package_id=package_id))


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
    if offer.plans is not None:
        prices = [f"version {version}" for version in offer.plans.versions]
    await _record(connection, session, shop, link_id, what, offer.title, prices, now=now)


async def _record(
    connection: Connection | Database,
    session: Session,
    shop: Shop,
    link_id: int,
    what: str,
    title: str,
    prices: Sequence[str],
    *,
    now: datetime,
) -> None:
    details: Mapping[str, object] = {
        "side": "live" if shop.live else "test",
        "what": what,
        "title": title,
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
