"""A shopper's own page: what they have saved at one shop, and what they agreed to.

The link shows and removes; nobody pays by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from paydesk.database.pool import Database
from paydesk.database.records import record_if_any
from paydesk.database.statements import load_statements
from paydesk.domain.merchants.customer_links import Link, LinkTo, OpenedLink, wrong_link
from paydesk.domain.merchants.imprints import NO_IMPRINT, Imprint, imprint_of
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.shoppers.instruments import SavedInstrument, list_saved
from paydesk.domain.shoppers.sessions import Shopper

queries = load_statements(__package__ or "", "for_customer.sql")


@dataclass(frozen=True, slots=True)
class _Row:
    id: int
    merchant_id: int
    live: bool
    seed: str = field(repr=False)
    merchant_name: str
    time_zone: str
    branded_at: datetime | None
    has_logo: bool
    imprint: list[str] | None
    clock: timedelta
    browsers: int


@dataclass(frozen=True, slots=True)
class SavedAtShop:
    """What a shopper has saved at one side of a shop; `browsers` is in how many they are known,
    `now` the shop's time, `branded_at` when it chose colour and logo.
    """

    shop: Shop
    shopper_id: int
    merchant_name: str
    time_zone: str
    browsers: int
    instruments: Sequence[SavedInstrument]
    now: datetime
    branded_at: datetime | None = None
    has_logo: bool = False
    imprint: Imprint = NO_IMPRINT


async def find_saved(database: Database, link: OpenedLink, *, now: datetime) -> SavedAtShop:
    """What the shopper has saved whom a link names; now is real time.

    Raises: NotFound.
    """
    shop = link.shop
    row = None
    if link.row_id is not None:
        row = record_if_any(
            _Row,
            await queries.find_shopper_page(database, merchant_id=shop.merchant_id, live=shop.live, id=link.row_id),
        )
    if row is None or not link.fits(row.seed):
        raise wrong_link()
    instruments = await list_saved(database, shop, row.id)
    return SavedAtShop(
        shop,
        row.id,
        row.merchant_name,
        row.time_zone,
        row.browsers,
        instruments,
        now + row.clock,
        row.branded_at,
        row.has_logo,
        imprint_of(row.imprint),
    )


def link_of(shopper: Shopper) -> Link:
    """The link to a shopper's own page."""
    return Link(LinkTo.SHOPPER, shopper.shop, shopper.id, shopper.seed)
