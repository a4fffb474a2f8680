"""Searching over all merchants, by whatever an operator has at hand: one box, what is found grouped
by its kind. Moves no money, shows no secret.

Who looks for a customer, by an address or a card's last digits, or is shown what customers did, is
written into the audit log, without the words: it can't be changed when a customer is erased.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from paydesk.core.paging import read_id
from paydesk.database.pool import Database
from paydesk.database.records import records_of
from paydesk.database.statements import load_statements
from paydesk.domain.accounts.audit import Action, Actor, record
from paydesk.domain.chargebacks.states import ChargebackState
from paydesk.domain.operations.merchants import ListedMerchant, search_merchants
from paydesk.domain.payments.states import PaymentState
from paydesk.domain.pingbacks.states import PingbackState
from paydesk.domain.subscriptions.states import SubscriptionState

queries = load_statements(__package__ or "", "searching.sql")

MOST = 10
"""How many of a kind are shown: who finds more knows too little to look for."""

_NEWEST_ALARMS = 1000
_LAST4 = 4
_LIKE = str.maketrans({"\\": r"\\", "%": r"\%", "_": r"\_"})


@dataclass(frozen=True, slots=True)
class FoundPayment:
    """A payment, with what may be shown of its card."""

    merchant_id: int
    merchant_name: str
    live: bool
    id: int
    merchant_order_id: str
    state: PaymentState
    amount: Decimal
    currency: str
    created_at: datetime
    brand: str
    last4: str


@dataclass(frozen=True, slots=True)
class FoundSubscription:
    """A subscription, with its package and that one's price."""

    merchant_id: int
    merchant_name: str
    live: bool
    id: int
    merchant_order_id: str
    state: SubscriptionState
    package: str
    amount: Decimal
    currency: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class FoundCheckout:
    """A checkout, with the payment of its order, if anybody tried."""

    merchant_id: int
    merchant_name: str
    live: bool
    id: int
    merchant_order_id: str
    amount: Decimal
    currency: str
    created_at: datetime
    expires_at: datetime
    payment_id: int | None
    payment_state: PaymentState | None


@dataclass(frozen=True, slots=True)
class FoundPayout:
    """A payout to a merchant."""

    merchant_id: int
    merchant_name: str
    live: bool
    id: int
    reference: str
    amount: Decimal
    currency: str
    at: datetime


@dataclass(frozen=True, slots=True)
class FoundChargeback:
    """A chargeback, in its payment's currency."""

    merchant_id: int
    merchant_name: str
    live: bool
    id: int
    payment_id: int
    state: ChargebackState
    amount: Decimal
    currency: str
    opened_at: datetime


@dataclass(frozen=True, slots=True)
class FoundPingback:
    """A pingback, and what it tells of."""

    merchant_id: int
    merchant_name: str
    live: bool
    id: int
    event: str
    state: PingbackState
    payment_id: int | None
    subscription_id: int | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class FoundAlarm:
    """An alarm; `merchant_id` is 0 where none is concerned, `kind` may be of another release."""

    merchant_id: int
    merchant_name: str
    live: bool
    id: int
    kind: str
    subject: str
    raised_at: datetime
    settled_at: datetime | None


@dataclass(frozen=True, slots=True)
class FoundPerson:
    """Somebody who logs in, with the first merchants in whose teams they are."""

    id: int
    name: str
    email: str
    operator: bool
    merchant_ids: Sequence[int]
    merchant_names: Sequence[str]


@dataclass(frozen=True, slots=True)
class Found:
    """All that a text may mean, the newest of each kind first."""

    merchants: Sequence[ListedMerchant] = ()
    payments: Sequence[FoundPayment] = ()
    subscriptions: Sequence[FoundSubscription] = ()
    checkouts: Sequence[FoundCheckout] = ()
    payouts: Sequence[FoundPayout] = ()
    chargebacks: Sequence[FoundChargeback] = ()
    pingbacks: Sequence[FoundPingback] = ()
    alarms: Sequence[FoundAlarm] = ()
    people: Sequence[FoundPerson] = ()

    @property
    def counts(self) -> dict[str, int]:
        """How many there are of each kind of which something was found."""
        return {kind: len(getattr(self, kind)) for kind in self.__slots__ if getattr(self, kind)}


def id_in(text: str) -> int | None:
    """The id that a text writes out, if it is one."""
    return read_id(text.removeprefix("#"))


async def search_everything(database: Database, actor: Actor, text: str, *, now: datetime) -> Found:
    """What a text names at any merchant, on both sides; nothing for an empty one.

    `now` is real time, for the audit log.
    """
    if not text:
        return Found()
    number, email, last4 = id_in(text), text if "@" in text else None, _last4(text)
    found = Found(
        merchants=await search_merchants(database, text, None, before_id=None, most=MOST),
        payments=await records_of(
            FoundPayment, queries.payments(database, text=text, most=MOST, email=email, last4=last4, number=number)
        ),
        subscriptions=await records_of(
            FoundSubscription, queries.subscriptions(database, text=text, most=MOST, email=email, number=number)
        ),
        checkouts=await records_of(FoundCheckout, queries.checkouts(database, text=text, most=MOST, number=number)),
        payouts=await records_of(FoundPayout, queries.payouts(database, text=text, most=MOST, number=number)),
        chargebacks=await records_of(
            FoundChargeback, queries.chargebacks(database, text=text, most=MOST, number=number)
        ),
        pingbacks=[] if number is None else await _pingbacks(database, number),
        alarms=await records_of(
            FoundAlarm, queries.alarms(database, text=text, most=MOST, number=number, newest=_NEWEST_ALARMS)
        ),
        people=await records_of(FoundPerson, queries.people(database, prefix=f"{text.translate(_LIKE)}%", most=MOST)),
    )
    await _note(database, actor, found, by_address=email is not None, by_card=last4 is not None, now=now)
    return found


async def _pingbacks(database: Database, number: int) -> list[FoundPingback]:
    return await records_of(FoundPingback, queries.pingbacks(database, number=number, most=MOST))


async def _note(
    database: Database, actor: Actor, found: Found, *, by_address: bool, by_card: bool, now: datetime
) -> None:
    """Write down that customers were looked for, or that what they did was shown."""
    shown = {kind: number for kind, number in found.counts.items() if kind in ("payments", "subscriptions")}
    if not (by_address or by_card or shown):
        return
    subject = "an e-mail address" if by_address else "a card's last digits" if by_card else "a number or reference"
    async with database.acquire() as connection, connection.transaction():
        await record(connection, actor, Action.searched, now=now, subject=subject, details=shown)


def _last4(text: str) -> str | None:
    """The last digits of a card that a text may be."""
    return text if len(text) == _LAST4 and text.isascii() and text.isdigit() else None
