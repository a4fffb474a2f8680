"""Setting the operator's own books right where they differ from what an acquirer has: by a posting
of its own, once for each finding, and its opposite. Moves no money.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from paydesk.core.errors import Conflict, NotFound
from paydesk.core.money import plain_number
from paydesk.database.records import record_if_any
from paydesk.database.statements import Connection, load_statements
from paydesk.domain.proceeds.findings import FindingKind, subject_of

queries = load_statements(__package__ or "", "correcting.sql")


@dataclass(frozen=True, slots=True)
class Corrected:
    """A finding for which `corrected` was posted, in `corrected_currency`, as what the acquirer
    owes more; of a correction that was taken back it is the opposite.
    """

    acquirer: str
    kind: FindingKind
    subject: str
    payout: str | None
    merchant_id: int | None
    payment_id: int | None
    reason: str
    corrected: Decimal
    corrected_currency: str
    settled_at: datetime | None

    @property
    def named(self) -> str:
        """What it is called in the operator's list of alarms."""
        return subject_of(self.kind, self.subject, self.acquirer)


@dataclass(frozen=True, slots=True)
class _Standing:
    settled_at: datetime | None
    corrected: Decimal
    corrected_currency: str


async def correct(
    connection: Connection, finding_id: int, amount: Decimal, *, against: str, by: str, why: str, now: datetime
) -> Corrected:
    """Post what the acquirer owes more (negative: less), `against` another account of the
    operator's own books. The finding is accepted by that, in somebody's words.

    Raises: NotFound if there is no such finding; Conflict if it is over, or is corrected already.
    """
    row = await queries.correct(connection, id=finding_id, amount=amount, account=against, by=by, why=why, now=now)
    done = record_if_any(Corrected, row)
    if done is None:
        raise await _why_not(connection, finding_id)
    return done


async def take_back(connection: Connection, finding_id: int, *, now: datetime) -> Corrected:
    """Post the opposite of what a finding was corrected by; it is accepted no more.

    Raises: NotFound if no such finding is corrected.
    """
    done = record_if_any(Corrected, await queries.take_back_correction(connection, id=finding_id, now=now))
    if done is None:
        raise NotFound(f"finding {finding_id} is not corrected")
    return done


async def _why_not(connection: Connection, finding_id: int) -> NotFound | Conflict:
    """Why a finding is not corrected."""
    standing = record_if_any(_Standing, await queries.finding_named(connection, id=finding_id))
    if standing is None:
        return NotFound(f"there is no finding {finding_id}")
    if standing.corrected:
        by = f"{plain_number(standing.corrected):f} {standing.corrected_currency}"
        return Conflict(f"finding {finding_id} is corrected by {by} already: take that back first")
    if standing.settled_at is not None:
        return Conflict(f"finding {finding_id} is over: both agree again")
    return Conflict(f"the currency of what finding {finding_id} is about is not known")
