"""Cards that shoppers have saved: what they agreed to, showing and removing them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from paydesk.adapters.vault import Sealed
from paydesk.core.errors import NotFound
from paydesk.database.pool import Database
from paydesk.database.records import record_if_any, records_of
from paydesk.database.statements import Connection, load_statements
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.shoppers.sessions import Shopper

queries = load_statements(__package__ or "", "instruments.sql")

UNUSED = timedelta(days=400)
"""A card that nobody has paid with for longer is forgotten."""

MOST_FORGOTTEN = 1000


@dataclass(frozen=True, slots=True)
class LaterCharges:
    """What a shop asks to be allowed: charges without the customer, for what, and the most of
    them within 30 days, in main units of `currency`.
    """

    purpose: str
    limit: Decimal
    currency: str


@dataclass(frozen=True, slots=True)
class Agreed:
    """What a shopper agreed to when they paid, in the words that they read; each is empty if they
    did not.
    """

    shopper_id: int
    keep: str = ""
    charge: str = ""
    later: LaterCharges | None = None


@dataclass(frozen=True, slots=True)
class SavedInstrument:
    """A saved card as it may be shown: never more than its last four digits."""

    id: int
    shopper_id: int
    keep_wording: str
    keep_agreed_at: datetime | None
    charge_wordings: Sequence[str]
    charges_agreed_at: Sequence[datetime]
    used_at: datetime
    brand: str
    last4: str
    exp_month: int
    exp_year: int

    @property
    def charges(self) -> list[tuple[str, datetime]]:
        """What the shop may charge it for without its customer, in the words that they agreed to,
        and when; the newest first.
        """
        return list(zip(self.charge_wordings, self.charges_agreed_at, strict=True))

    def is_good(self, now: datetime) -> bool:
        """Whether its last month is not over."""
        return (self.exp_year, self.exp_month) >= (now.year, now.month)


@dataclass(frozen=True, slots=True)
class SealedInstrument:
    """A saved card whose own shopper pays with it."""

    id: int
    card_id: int
    number_sealed: bytes
    vault_key_id: str
    exp_month: int
    exp_year: int
    holder: str
    country: str

    @property
    def sealed(self) -> Sealed:
        """Its number."""
        return Sealed(self.vault_key_id, self.number_sealed)


async def save_instrument(
    connection: Connection, shop: Shop, agreed: Agreed, *, card_id: int, attempt_id: int, acquirer: str, now: datetime
) -> None:
    """Save the card of an attempt, within the transaction that commits its intent.
    Moves no money.
    """
    later = agreed.later if agreed.charge else None
    await queries.save_instrument(
        connection,
        merchant_id=shop.merchant_id,
        live=shop.live,
        shopper_id=agreed.shopper_id,
        card_id=card_id,
        attempt_id=attempt_id,
        acquirer=acquirer,
        keep_wording=agreed.keep,
        charge_wording=agreed.charge if later else "",
        charge_for=later.purpose if later else "",
        charge_limit=later.limit if later else None,
        charge_currency=later.currency if later else "",
        now=now,
    )


async def list_saved(database: Database, shop: Shop, shopper_id: int) -> list[SavedInstrument]:
    """The cards that a shopper has saved at a shop."""
    rows = queries.saved_by(database, merchant_id=shop.merchant_id, live=shop.live, shopper_id=shopper_id)
    return await records_of(SavedInstrument, rows)


async def find_to_pay_with(
    database: Database, shopper: Shopper, instrument_id: int, *, now: datetime
) -> SealedInstrument:
    """A shopper's own card, which they agreed to find again; now is the shop's time.

    Raises: NotFound.
    """
    shop = shopper.shop
    found = record_if_any(
        SealedInstrument,
        await queries.to_pay_with(
            database,
            merchant_id=shop.merchant_id,
            live=shop.live,
            shopper_id=shopper.id,
            id=instrument_id,
            now=now,
        ),
    )
    if found is None:
        raise NotFound("there is no such saved card")
    return found


async def mark_used(database: Database, shop: Shop, instrument_id: int, *, now: datetime) -> None:
    """Keep it the longer."""
    await queries.mark_used(database, merchant_id=shop.merchant_id, live=shop.live, id=instrument_id, now=now)


async def remove(database: Database, shop: Shop, shopper_id: int, instrument_id: int, *, now: datetime) -> bool:
    """Forget a shopper's card and erase its number; whether there was one. Moves no money.

    What is being paid with it goes on: its number is not needed for that.
    """
    removed = await queries.remove(
        database, merchant_id=shop.merchant_id, live=shop.live, shopper_id=shopper_id, id=instrument_id, now=now
    )
    return bool(removed)


async def remove_unneeded(database: Database, *, now: datetime) -> int:
    """Forget cards whose purpose is over; how many. Now is real time."""
    return int(await queries.remove_unneeded(database, unused_since=now - UNUSED, now=now, most=MOST_FORGOTTEN))


async def take_back(database: Database, shop: Shop, shopper_id: int, instrument_id: int, *, now: datetime) -> bool:
    """The shop may not charge a shopper's card without them any more; whether it might.
    Moves no money.
    """
    revoked = await queries.take_back(
        database, merchant_id=shop.merchant_id, live=shop.live, shopper_id=shopper_id, id=instrument_id, now=now
    )
    return bool(revoked)
