"""One payment with everything that ever happened to it, as its merchant looks at it.
Moves no money.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from paydesk.core.errors import NotFound
from paydesk.database.pool import Database
from paydesk.database.records import record_if_any, records_of
from paydesk.database.statements import load_statements
from paydesk.domain.chargebacks.states import ChargebackState
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.for_api import PaymentRow, SeenCard, SeenPayment, payment_of
from paydesk.domain.payments.refundable import REFUNDABLE
from paydesk.domain.payments.states import AttemptState, MovementKind, MovementState, PaymentState
from paydesk.domain.pingbacks.states import PingbackState

queries = load_statements(__package__ or "", "payments_for_team.sql")

MOST = 500
"""Attempts, movements, chargebacks and pingbacks that are read of one payment, of each kind."""


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """Where a payment's money is by the ledger, in its currency;
    a refund may make `available` negative.
    """

    pending: Decimal = Decimal(0)
    available: Decimal = Decimal(0)
    reserve: Decimal = Decimal(0)
    fees: Decimal = Decimal(0)


@dataclass(frozen=True, slots=True)
class PaymentForTeam:
    """A payment with its details; times are UTC, None when unset.

    `refunding` is on its way back; `moving` is the capture or void in progress; `settles_at` and
    `reserve_due_at` say when net and reserve become available, None before the capture.
    """

    seen: SeenPayment
    description: str
    holder: str
    exp_month: int
    exp_year: int
    wallet: str
    captured_at: datetime | None
    ship_by: datetime | None
    settled_at: datetime | None
    reserve_released_at: datetime | None
    settles_at: datetime | None
    reserve_due_at: datetime | None
    refunding: Decimal
    charged_back: Decimal
    fees_returned: bool
    moving: MovementKind | None
    money: Whereabouts

    @property
    def refundable(self) -> Decimal:
        """What can be given back now, in main units; 0 if nothing can."""
        state = self.seen.state
        if state not in REFUNDABLE and (state is not PaymentState.AUTHORIZED or self.moving is not None):
            return Decimal(0)
        gone = self.seen.refunded + self.refunding + max(self.charged_back, Decimal(0))
        return max(self.seen.amount - gone, Decimal(0))

    @property
    def waiting(self) -> bool:
        """Whether the acquirer's word on something is still awaited."""
        return self.seen.state is PaymentState.PROCESSING or self.moving is not None or self.refunding > 0


@dataclass(frozen=True, slots=True)
class SeenTry:
    """An attempt to pay; `challenged` if the bank asked for 3-D Secure,
    `capture` if the money is taken at once.

    `hosted` if its customer was led to a page of the acquirer's.
    """

    id: int
    state: AttemptState
    amount: Decimal
    currency: str
    decline_reason: str
    capture: bool
    challenged: bool
    client_address: str
    created_at: datetime
    finished_at: datetime | None
    brand: str
    last4: str
    wallet: str
    hosted: bool

    @property
    def card(self) -> SeenCard:
        """The card that it was made with."""
        return SeenCard(self.brand, self.last4)


@dataclass(frozen=True, slots=True)
class SeenMovement:
    """A capture, void or refund; `person` is the name of the member who asked for it,
    empty for everybody else.
    """

    id: int
    kind: MovementKind
    state: MovementState
    amount: Decimal
    currency: str
    requested_by: str
    refusal: str
    created_at: datetime
    finished_at: datetime | None
    failed_at: datetime | None
    person: str


@dataclass(frozen=True, slots=True)
class SeenChargeback:
    """A chargeback of a payment; `fee` is what it cost the merchant besides.

    Amounts are in `currency`, the payment's, but `disputed_amount`, which is `amount` in the
    chargeback's own.
    """

    id: int
    state: ChargebackState
    amount: Decimal
    currency: str
    taken: Decimal
    returned: Decimal
    disputed_amount: Decimal
    disputed_currency: str
    fee: Decimal
    reason: str
    evidence_at: datetime | None
    opened_at: datetime
    closed_at: datetime | None


@dataclass(frozen=True, slots=True)
class ToldPingback:
    """A pingback about a payment: what it tells and how far it came;
    `due_at` is when it is tried next.
    """

    id: int
    event: str
    state: PingbackState
    attempts: int
    due_at: datetime
    created_at: datetime
    finished_at: datetime | None


@dataclass(frozen=True, slots=True)
class PaymentHistory:
    """What happened to a payment, each kind first to last."""

    tries: list[SeenTry]
    movements: list[SeenMovement]
    chargebacks: list[SeenChargeback]
    tellings: list[ToldPingback]


class _Payment(PaymentRow, frozen=True):
    exp_month: int
    exp_year: int
    wallet: str
    holder: str
    description: str
    captured_at: datetime | None
    ship_by: datetime | None
    settled_at: datetime | None
    reserve_released_at: datetime | None
    refunding: Decimal
    charged_back: Decimal
    moving: MovementKind | None
    fees_returned: bool
    settles_at: datetime | None
    reserve_due_at: datetime | None


@dataclass(frozen=True, slots=True)
class _Bought:
    id: int
    what: str


@dataclass(frozen=True, slots=True)
class _InState:
    state: PaymentState
    number: int


@dataclass(frozen=True, slots=True)
class _Balance:
    account: str
    amount: Decimal


async def what_was_bought(database: Database, shop: Shop, payments: Sequence[SeenPayment]) -> dict[int, str]:
    """What payments were for, by their ids; empty where nothing says it."""
    ids = [payment.id for payment in payments]
    rows = queries.bought(database, merchant_id=shop.merchant_id, live=shop.live, payment_ids=ids)
    return {row.id: row.what for row in await records_of(_Bought, rows)}


async def count_payments(
    database: Database, shop: Shop, states: Iterable[PaymentState], most: int
) -> dict[PaymentState, int]:
    """How many payments are in states other than captured and processing; past `most` each is
    not counted on.
    """
    rows = queries.in_each_state(
        database, merchant_id=shop.merchant_id, live=shop.live, states=sorted(states), most=most
    )
    return {row.state: row.number for row in await records_of(_InState, rows)}


async def find_payment_for_team(database: Database, shop: Shop, payment_id: int) -> PaymentForTeam:
    """A payment with what was bought and where its money is.

    Raises: NotFound if the shop has no such payment in this mode.
    """
    asked = {"merchant_id": shop.merchant_id, "live": shop.live}
    row = record_if_any(_Payment, await queries.find_payment(database, **asked, id=payment_id))
    if row is None:
        raise NotFound(f"there is no payment {payment_id}")
    balances = await records_of(_Balance, queries.balances_of(database, **asked, payment_id=payment_id))
    return PaymentForTeam(
        seen=payment_of(row),
        description=row.description,
        holder=row.holder,
        exp_month=row.exp_month,
        exp_year=row.exp_year,
        wallet=row.wallet,
        captured_at=row.captured_at,
        ship_by=row.ship_by,
        settled_at=row.settled_at,
        reserve_released_at=row.reserve_released_at,
        settles_at=row.settles_at,
        reserve_due_at=row.reserve_due_at,
        refunding=row.refunding,
        charged_back=row.charged_back,
        fees_returned=row.fees_returned,
        moving=row.moving,
        money=Whereabouts(**{one.account: one.amount for one in balances if _is_merchants(one.account)}),
    )


def _is_merchants(account: str) -> bool:
    """Whether an account of the ledger is about the merchant: not what the acquirer owes."""
    return account in Whereabouts.__slots__


async def history_of(database: Database, shop: Shop, payment_id: int) -> PaymentHistory:
    """Attempts, movements, chargebacks and pingbacks of a payment;
    nothing if there is no such payment.
    """
    asked = {"merchant_id": shop.merchant_id, "live": shop.live, "payment_id": payment_id, "most": MOST}
    return PaymentHistory(
        await records_of(SeenTry, queries.tries_of(database, **asked)),
        await records_of(SeenMovement, queries.movements_of(database, **asked)),
        await records_of(SeenChargeback, queries.chargebacks_of(database, **asked)),
        await records_of(ToldPingback, queries.tellings_of(database, **asked)),
    )
