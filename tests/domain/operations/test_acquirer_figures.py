"""What became of the payments at one account, how quickly it answered, and what routing did."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

from tests.banks import ending_in
from tests.domain.acquirers.test_choosing import DECLINED, Accounts, accounts, database, database_url
from tests.domain.acquirers.test_health import spoil

from paydesk.adapters.acquirers.interface import NothingBegun, OutcomeUnknown
from paydesk.core.clock import utc_now
from paydesk.domain.operations.acquirer_figures import Figures, account_figures

__all__ = ["accounts", "database", "database_url"]


async def figures(accounts: Accounts, account: str, *, ago: int = 0) -> Figures:
    """An account's figures of an hour, by all that was counted."""
    await accounts.till.desk.health.look(accounts.till.database)
    until = utc_now() + timedelta(minutes=1) - timedelta(hours=ago)
    return await account_figures(accounts.till.database, account, since=until - timedelta(hours=1), until=until)


async def test_what_was_paid_and_declined_is_counted_by_reason_and_currency(accounts: Accounts) -> None:
    await accounts.add("second")
    await accounts.till.buy("dollars")
    await accounts.till.buy("francs", currency="CHF")
    await accounts.till.buy("no", DECLINED)
    found = await figures(accounts, "second")
    assert (found.attempts, found.approved, found.declined) == (3, 2, {"declined": 1})
    assert found.volume == {"USD": Decimal(10), "CHF": Decimal(10)}
    assert (found.asked, found.unknown, found.unreached) == (3, 0, 0)
    assert found.p50 is not None
    assert found.p95 is not None
    assert found.chosen == {"no rule": 3}
    assert (await figures(accounts, "simulator")).attempts == 0
    assert (await figures(accounts, "second", ago=2)).attempts == 0


async def test_who_failed_over_to_whom_is_told_at_both(accounts: Accounts) -> None:
    await accounts.add("second")
    spoil(accounts, "second", authorize=ending_in(NothingBegun("refused")))
    await accounts.till.buy("goes-on")
    spoil(accounts, "second", authorize=ending_in(OutcomeUnknown("lost")))
    await accounts.till.buy("stays")
    left, took = await figures(accounts, "second"), await figures(accounts, "simulator")
    assert (left.left, left.unreached, left.unknown, left.open) == ({"simulator": 1}, 1, 1, 1)
    assert left.declined == {"not_reached": 1}
    assert (took.taken_over, took.approved) == ({"second": 1}, 1)
