"""What became of the payments at one account in a time, how quickly it answered, and what routing
did: for whoever runs the deployment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal

from paydesk.database.pool import Database
from paydesk.database.records import records_of
from paydesk.database.statements import load_statements
from paydesk.domain.acquirers.health import STEPS

queries = load_statements(__package__ or "", "acquirer_figures.sql")

_APPROVED = frozenset({"approved", "voiding", "voided"})
_OPEN = frozenset({"processing", "challenged", "pending"})


@dataclass(frozen=True, slots=True)
class Figures:
    """An account's figures of a time; `declined`, by reason, is what took nothing, and `volume`, by
    currency and in main units, what was approved and not undone.

    `p50` and `p95` are milliseconds within which half, and 95 of a hundred, of the answers came
    that customers waited for, None without any; `unknown` and `unreached` had none. `chosen` is by
    what orders came here; `taken_over` are those that another account had begun nothing of, and
    `left` those of this one that went on to another.
    """

    account: str
    attempts: int
    approved: int
    open: int
    declined: Mapping[str, int]
    volume: Mapping[str, Decimal]
    asked: int
    unknown: int
    unreached: int
    p50: int | None
    p95: int | None
    chosen: Mapping[str, int] = field(default_factory=dict)
    taken_over: Mapping[str, int] = field(default_factory=dict)
    left: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Outcome:
    currency: str
    state: str
    decline_reason: str
    count: int
    approved: Decimal


@dataclass(frozen=True, slots=True)
class _Count:
    what: str
    count: int


async def account_figures(database: Database, account: str, *, since: datetime, until: datetime) -> Figures:
    """An account's figures of a time (real, UTC); what is older than three hours is counted by full
    hours where it tells of answers and of routing.
    """
    outcomes = await records_of(_Outcome, queries.outcomes(database, account=account, since=since, until=until))
    counted = await records_of(_Count, queries.counts(database, account=account, since=since, until=until))
    counts = {one.what: one.count for one in counted}
    declined: Counter[str] = Counter()
    volume: dict[str, Decimal] = {}
    for one in outcomes:
        if one.state not in _APPROVED | _OPEN:
            declined[one.decline_reason or one.state] += one.count
        if one.approved:
            volume[one.currency] = volume.get(one.currency, Decimal(0)) + one.approved
    return Figures(
        account,
        attempts=sum(one.count for one in outcomes),
        approved=sum(one.count for one in outcomes if one.state in _APPROVED),
        open=sum(one.count for one in outcomes if one.state in _OPEN),
        declined=dict(declined.most_common()),
        volume=volume,
        asked=counts.get("asked", 0),
        unknown=counts.get("unknown", 0),
        unreached=counts.get("unreached", 0),
        p50=_within(counts, 50),
        p95=_within(counts, 95),
        chosen=_of(counts, "by "),
        taken_over=_of(counts, "from "),
        left=_of(counts, "left for "),
    )


def _of(counts: Mapping[str, int], begins: str) -> dict[str, int]:
    return {what.removeprefix(begins): count for what, count in counts.items() if what.startswith(begins)}


def _within(counts: Mapping[str, int], share: int) -> int | None:
    """The milliseconds within which so many of a hundred answers came, as the end of their step;
    None if there was no answer, or these took longer than the last step.
    """
    steps = [(step, counts.get(f"ms <= {step}", 0)) for step in STEPS]
    all_answers = sum(count for _, count in steps) + counts.get("ms > all", 0)
    seen = 0
    for step, count in steps:
        seen += count
        if all_answers and seen * 100 >= all_answers * share:
            return step
    return None
