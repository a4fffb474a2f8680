"""The proof of the books that `paydesk check` gives, whole, for tests to look into."""

from __future__ import annotations

from datetime import datetime

from paydesk.adapters.acquirers.simulator import Record
from paydesk.database.pool import Database
from paydesk.domain.ledger.checking import CheckScope, RuleResult, findings


async def check(
    database: Database,
    *,
    now: datetime,
    merchant_id: int | None = None,
    record: Record | None = None,
    most: int = 20,
    retention_months: int = 13,
) -> list[RuleResult]:
    """Apply all rules to all merchants or one; a finding for each, in order."""
    scope = CheckScope(now, merchant_id, record, most, retention_months)
    return [finding async for finding in findings(database, scope)]
