"""Saved cards as the merchant's server and its team see them: kind and last four digits."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from paydesk.core.paging import Page
from paydesk.database.pool import Database
from paydesk.database.records import records_of
from paydesk.database.statements import load_statements
from paydesk.domain.merchants.shop import Shop

queries = load_statements(__package__ or "", "for_api.sql")


@dataclass(frozen=True, slots=True)
class SeenInstrument:
    """A saved card, and what its customer allows to be charged without them."""

    id: int
    email: str
    brand: str
    last4: str
    exp_month: int
    exp_year: int
    charge_for: str
    charge_agreed_at: datetime | None
    charge_limit: Decimal | None
    charge_currency: str
    authenticated: bool
    created_at: datetime


async def list_instruments(database: Database, shop: Shop, email: str | None, page: Page) -> list[SeenInstrument]:
    """A page of the cards that customers have saved and not removed, newest first."""
    rows = queries.list_instruments(
        database,
        merchant_id=shop.merchant_id,
        live=shop.live,
        email=email,
        since=page.since,
        until=page.until,
        before_at=page.before.at,
        before_id=page.before.id,
        most=page.most,
    )
    return await records_of(SeenInstrument, rows)
