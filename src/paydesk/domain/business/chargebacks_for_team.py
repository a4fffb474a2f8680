"""Chargebacks as a merchant's team answers them: pages of them, and what is known already that may
be told to the bank. Moves no money.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from paydesk.core.errors import NotFound
from paydesk.core.paging import Page
from paydesk.database.pool import Database
from paydesk.database.records import record_if_any, records_of
from paydesk.database.statements import load_statements
from paydesk.domain.business.payments_for_team import PaymentForTeam, SeenTry, find_payment_for_team, history_of
from paydesk.domain.chargebacks.states import ChargebackState, EvidenceState
from paydesk.domain.deliveries.timeline import SeenDelivery, read_timeline
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.states import AttemptState

queries = load_statements(__package__ or "", "chargebacks_for_team.sql")

_MOST_EARLIER = 5


@dataclass(frozen=True, slots=True)
class ChargebackForTeam:
    """A chargeback with where the answer to it stands; times are UTC, and `respond_by` is real."""

    id: int
    payment_id: int
    state: ChargebackState
    amount: Decimal
    currency: str
    taken: Decimal
    returned: Decimal
    reason: str
    evidence: str
    evidence_at: datetime | None
    evidence_state: EvidenceState
    respond_by: datetime | None
    opened_at: datetime
    closed_at: datetime | None
    acquirer: str
    merchant_order_id: str

    @property
    def is_answered(self) -> bool:
        """Whether the bank has evidence, as far as is known."""
        if self.evidence_state is EvidenceState.NONE:
            return self.evidence_at is not None
        return self.evidence_state is EvidenceState.SENT


@dataclass(frozen=True, slots=True)
class Agreed:
    """What the customer of a subscription agreed to, and when (UTC)."""

    terms_agreed: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class EarlierPayment:
    """What the customer had paid before (UTC) and has not disputed, and from which address."""

    id: int
    merchant_order_id: str
    amount: Decimal
    currency: str
    paid_at: datetime
    client_address: str


@dataclass(frozen=True, slots=True)
class KnownFacts:
    """What is known of a disputed payment, and what its customer paid before.

    `paid_by` is the attempt that paid it, `agreed` what was agreed to; times are UTC.
    """

    payment: PaymentForTeam
    paid_by: SeenTry | None
    deliveries: list[SeenDelivery]
    agreed: Agreed | None
    receipt_at: datetime | None
    earlier: list[EarlierPayment]


async def list_chargebacks(database: Database, shop: Shop, page: Page, *, is_open: bool) -> list[ChargebackForTeam]:
    """A page of the shop's chargebacks, newest first, or of those alone that are not decided."""
    asked = {"merchant_id": shop.merchant_id, "live": shop.live, "is_open": is_open, **page.parameters()}
    return await records_of(ChargebackForTeam, queries.list_chargebacks(database, **asked))


async def find_chargeback_for_team(database: Database, shop: Shop, chargeback_id: int) -> ChargebackForTeam:
    """The shop's chargeback with this id. Raises: NotFound."""
    asked = {"merchant_id": shop.merchant_id, "live": shop.live, "id": chargeback_id}
    found = record_if_any(ChargebackForTeam, await queries.find_chargeback(database, **asked))
    if found is None:
        raise NotFound(f"there is no chargeback {chargeback_id}")
    return found


async def known_facts(database: Database, shop: Shop, payment_id: int) -> KnownFacts:
    """What is known of a payment. Raises: NotFound."""
    payment = await find_payment_for_team(database, shop, payment_id)
    history = await history_of(database, shop, payment_id)
    asked = {"merchant_id": shop.merchant_id, "live": shop.live, "payment_id": payment_id}
    sent_at = await queries.receipt_sent(database, merchant_id=shop.merchant_id, once=f"receipt {payment_id}")
    return KnownFacts(
        payment,
        next((one for one in reversed(history.tries) if one.state is AttemptState.APPROVED), None),
        await read_timeline(database, shop, payment_id),
        record_if_any(Agreed, await queries.agreed_to(database, **asked)),
        # A mail is sent in real time, and the test clock of who has paid may be ahead of it.
        sent_at and max(sent_at, payment.seen.paid_at or sent_at),
        await records_of(EarlierPayment, queries.earlier_payments(database, **asked, most=_MOST_EARLIER)),
    )
