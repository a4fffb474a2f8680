"""What an operator reads of all merchants' chargebacks: pages of them, and one with its evidence.
Moves no money.
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
from paydesk.domain.chargebacks.states import ChargebackState, EvidenceState

queries = load_statements(__package__ or "", "chargebacks_for_operator.sql")


@dataclass(frozen=True, slots=True)
class MerchantsChargeback:
    """A chargeback with its merchant; `evidence` is what the merchant told the bank, empty before,
    `evidence_state` whether the bank has it, `respond_by` until when it takes it. Times are UTC.

    Amounts are in `currency`, the payment's, but `disputed_amount`, which is `amount` in the
    chargeback's own.
    """

    id: int
    merchant_id: int
    merchant_name: str
    live: bool
    payment_id: int
    state: ChargebackState
    acquirer: str
    amount: Decimal
    currency: str
    taken: Decimal
    returned: Decimal
    disputed_amount: Decimal
    disputed_currency: str
    fee: Decimal
    reason: str
    evidence: str
    evidence_state: EvidenceState
    respond_by: datetime | None
    opened_at: datetime
    closed_at: datetime | None
    evidence_at: datetime | None


async def list_all_chargebacks(
    database: Database, page: Page, *, live: bool, state: ChargebackState | None = None
) -> list[MerchantsChargeback]:
    """A page of all merchants' chargebacks, newest first, of one state if asked."""
    if state is None:
        rows = queries.chargebacks_of_all(database, live=live, **page.parameters())
    else:
        rows = queries.chargebacks_in_state(database, live=live, state=str(state), **page.parameters())
    return await records_of(MerchantsChargeback, rows)


async def find_chargeback_for_operator(database: Database, merchant_id: int, chargeback_id: int) -> MerchantsChargeback:
    """One chargeback of a merchant. Raises: NotFound."""
    row = await queries.chargeback_of(database, merchant_id=merchant_id, id=chargeback_id)
    found = record_if_any(MerchantsChargeback, row)
    if found is None:
        raise NotFound(f"merchant {merchant_id} has no chargeback {chargeback_id}")
    return found


async def chargebacks_without_evidence(database: Database, *, most: int) -> int:
    """How many open live chargebacks nobody has given evidence for, counted up to `most`."""
    return int(await queries.chargebacks_without_evidence(database, live=True, most=most))
