"""Cards that shoppers have saved: what they agreed to, showing and removing them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
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
    """A saved card as it may be shown: never more than its last four digits.

    `kept_at` is the acquirer that keeps it, empty where its number is kept here. Its last month is
    0 where an acquirer does not tell.
    """

    id: int
    shopper_id: int
    keep_wording: str
    keep_agreed_at: datetime | None
    charge_wordings: Sequence[str]
    charges_agreed_at: Sequence[datetime]
    brand: str
    last4: str
    exp_month: int
    exp_year: int
    kept_at: str = ""

    @property
    def charges(self) -> list[tuple[str, datetime]]:
        """What the shop may charge it for without its customer, in the words that they agreed to,
        and when; the newest first.
        """
        return list(zip(self.charge_wordings, self.charges_agreed_at, strict=True))

    def is_good(self, now: datetime) -> bool:
        """Whether its last month is not over."""
        return not self.exp_year or (self.exp_year, self.exp_month) >= (now.year, now.month)


@dataclass(frozen=True, slots=True)
class PayableInstrument:
    """A saved card whose own shopper pays with it: its number, sealed, or what the `acquirer`
    keeps it under.
    """

    id: int
    card_id: int
    number_sealed: bytes | None = field(repr=False)
    vault_key_id: str
    brand: str
    last4: str
    exp_month: int
    exp_year: int
    holder: str
    country: str
    acquirer: str
    stored_reference: str = field(repr=False)

    @property
    def sealed(self) -> Sealed | None:
        """Its number, if that is kept here."""
        return None if self.number_sealed is None else Sealed(self.vault_key_id, self.number_sealed)


@dataclass(frozen=True, slots=True)
class _AgreedAt:
    shopper_id: int
    keep_wording: str
    charge_wording: str


async def save_instrument(
    connection: Connection,
    shop: Shop,
    agreed: Agreed,
    *,
    card_id: int,
    attempt_id: int,
    acquirer: str,
    on_page: bool = False,
    now: datetime,
) -> bool:
    """Save the card of an attempt, within the transaction that commits its intent; false if the
    shopper was erased meanwhile. Moves no money.

    With `on_page` the customer has yet to type it, on a page of the acquirer's, which keeps it.
    """
    later = agreed.later if agreed.charge else None
    saved = await queries.save_instrument(
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
        authenticated=False if on_page else None,
        now=now,
    )
    return saved is not None


async def agreed_at(database: Database, shop: Shop, attempt_id: int) -> tuple[int, str, str] | None:
    """Which shopper agreed at an attempt to keep its card, and to what; None if nobody did."""
    row = await queries.agreed_at(database, merchant_id=shop.merchant_id, live=shop.live, attempt_id=attempt_id)
    found = record_if_any(_AgreedAt, row)
    return (found.shopper_id, found.keep_wording, found.charge_wording) if found else None


async def hold_saved(connection: Connection, shop: Shop, instrument_id: int) -> bool:
    """Whether a card is saved still; nobody removes it before the caller's transaction is over."""
    held = await queries.hold_saved(connection, merchant_id=shop.merchant_id, live=shop.live, id=instrument_id)
    return held is not None


async def list_saved(database: Database, shop: Shop, shopper_id: int) -> list[SavedInstrument]:
    """The cards that a shopper has saved at a shop."""
    rows = queries.saved_by(database, merchant_id=shop.merchant_id, live=shop.live, shopper_id=shopper_id)
    return await records_of(SavedInstrument, rows)


async def find_to_pay_with(
    database: Database, shopper: Shopper, instrument_id: int, *, now: datetime
) -> PayableInstrument:
    """A shopper's own card, which they agreed to find again; now is the shop's time.

    Raises: NotFound.
    """
    shop = shopper.shop
    found = record_if_any(
        PayableInstrument,
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
