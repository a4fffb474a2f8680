"""Outcomes that come when an attempt has ended another way:
a second charge is undone, a contradiction is an alarm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from paydesk.core.clock import utc_now
from paydesk.core.wording import noted
from paydesk.database.pool import Database
from paydesk.database.records import records_of
from paydesk.database.statements import load_statements
from paydesk.domain.alarms.kinds import AlarmKind
from paydesk.domain.alarms.raising import Alarm, raise_alarms
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.states import AttemptState

queries = load_statements(__package__ or "")


@dataclass(frozen=True, slots=True)
class _Recorded:
    """An attempt as it is recorded."""

    id: int
    state: AttemptState


async def look_at_late_approvals(database: Database, attempts: Sequence[tuple[Shop, int]]) -> None:
    """Attempts of which a bank has just said that it approved them,
    and that could not be recorded so. Moves no money.

    The janitor looks at once at those that were given up, and undoes them. One that the bank had
    declined before is an alarm: its customer may have paid since, in another way.
    """
    if not attempts:
        return
    await queries.hurry_lookups(database, **_names(attempts), now=utc_now())
    said = noted(
        "the bank says that it approved it, and it is recorded as declined: look at the bank whether it took money"
    )
    await _report(database, attempts, AttemptState.DECLINED, said)


async def look_at_late_declines(database: Database, attempts: Sequence[tuple[Shop, int]]) -> None:
    """Attempts of which a bank has just said that it declined them,
    and that could not be recorded so.
    """
    said = noted(
        "the bank says that it declined it, and it is recorded as approved: look at the bank whether it took money"
    )
    await _report(database, attempts, AttemptState.APPROVED, said)


async def _report(database: Database, attempts: Sequence[tuple[Shop, int]], against: AttemptState, said: str) -> None:
    """Raise an alarm for each attempt that is recorded as the opposite of what the bank says.
    Moves no money.
    """
    if not attempts:
        return
    states = await attempt_states(database, attempts)
    alarms = [
        Alarm(AlarmKind.contradiction, f"attempt {attempt_id}", said, shop)
        for shop, attempt_id in attempts
        if states.get(attempt_id) is against
    ]
    await raise_alarms(database, alarms, now=utc_now())


async def attempt_states(database: Database, attempts: Sequence[tuple[Shop, int]]) -> dict[int, AttemptState]:
    """How attempts are recorded, by id."""
    recorded = await records_of(_Recorded, queries.attempt_states(database, **_names(attempts)))
    return {attempt.id: attempt.state for attempt in recorded}


def _names(attempts: Sequence[tuple[Shop, int]]) -> dict[str, list[int] | list[bool]]:
    """Attempts as statements take them."""
    return {
        "merchant_ids": [shop.merchant_id for shop, _ in attempts],
        "lives": [shop.live for shop, _ in attempts],
        "attempt_ids": [attempt_id for _, attempt_id in attempts],
    }
