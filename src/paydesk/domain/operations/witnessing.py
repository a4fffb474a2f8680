"""What `paydesk check --live` proves besides: our books agree with the acquirers' own lists,
as far back as they go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime

from paydesk.domain.acquirers.accounts import not_here
from paydesk.domain.ledger.checking import BrokenRow, Rule, RuleResult
from paydesk.domain.operations import differences
from paydesk.domain.operations.differences import DifferenceKind
from paydesk.domain.operations.reconciling import reconcile
from paydesk.domain.payments.desk import Desk

LIST_RULES: Mapping[DifferenceKind, Rule] = {
    DifferenceKind.UNKNOWN_HERE: Rule("listed_money_known", "what an acquirer's list says of us is in our books"),
    DifferenceKind.DIFFERS: Rule("listed_money_agrees", "what is in both has the same amounts and stands alike"),
    DifferenceKind.UNKNOWN_THERE: Rule(
        "approved_money_listed", "what is approved in our books is known to its acquirer"
    ),
}
"""Compare the acquirers' own lists with what Paydesk believes."""


async def compare_lists(
    desk: Desk, *, since: datetime, now: datetime, merchant_id: int | None, most: int, told: Callable[[], None]
) -> list[RuleResult]:
    """Apply the rules of the lists to all acquirers, and to all merchants or one.
    Changes nothing, moves no money.

    `since` and `now` are real times, UTC; `most` limits the differences kept per rule; `told` is
    called after a page.

    Raises: Unavailable if a list can't be read, one of AWAY.
    """
    found: list[differences.Difference] = []
    elsewhere = await not_here(desk.database)
    for name in [one for one in desk.acquirers if one not in elsewhere]:
        compared = await reconcile(desk, name, since=since, now=now, told=told, tells=False)
        found += [one for one in compared.differences if merchant_id in (None, one.merchant_id)]
    return [_finding(rule, [one for one in found if one.kind is kind], most) for kind, rule in LIST_RULES.items()]


def _finding(rule: Rule, found: list[differences.Difference], most: int) -> RuleResult:
    kept = [
        BrokenRow(f"{one.what} at {one.acquirer}", one.merchant_id, one.reference or one.key, one.reason)
        for one in found[:most]
    ]
    return RuleResult(rule, len(found), tuple(kept))
