"""Merchants whose move to another cell was left half-way, by a kill or because nobody went on: an
alarm, and a metric.

The alarm is the operator's own, of no merchant: nobody may write anything of who is fenced, and it
does not go along with the move that ends it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from paydesk.core.clock import utc_now
from paydesk.core.wording import noted
from paydesk.database.pool import Database
from paydesk.domain.alarms.kinds import AlarmKind
from paydesk.domain.alarms.raising import Alarm, raise_alarms, settle_all_but
from paydesk.domain.cells.fencing import Fence, left_half_way
from paydesk.domain.operations import metrics

_CLOSED, _ARRIVING, _MOVED = "closed", "arriving", "moved"
_STATES: Final = (_CLOSED, _ARRIVING, _MOVED)


class MoveWatch:
    """Looks whose move stands still; one statement where nothing has changed and nobody's does."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._were: frozenset[int] | None = None

    async def look(self) -> None:
        """Look once: raise the alarms of those found, settle those of all others, also of a process
        before this one. Moves no money.
        """
        now = utc_now()
        found = await left_half_way(self._database, now=now)
        _measure(found)
        await raise_alarms(self._database, [_alarm(one) for one in found], now=now)
        are = frozenset(one.merchant_id for one in found)
        if are != self._were:
            await self._settle(found, now)
            self._were = are

    async def _settle(self, found: Sequence[Fence], now: datetime) -> None:
        subjects, by = [_subject(one) for one in found], noted("the move was ended")
        await settle_all_but(self._database, AlarmKind.half_moved, subjects, by=by, now=now)


def _measure(found: Sequence[Fence]) -> None:
    states = [_state(one) for one in found]
    for state in _STATES:
        metrics.HALF_MOVED.labels(state).set(states.count(state))


def _state(one: Fence) -> str:
    if one.arrives:
        return _ARRIVING
    return _CLOSED if one.moved_at is None else _MOVED


def _alarm(one: Fence) -> Alarm:
    details = {"merchant": one.merchant_id, "from_cell" if one.arrives else "to_cell": one.other_cell}
    return Alarm(AlarmKind.half_moved, _subject(one), _reason(one), None, details)


def _subject(one: Fence) -> str:
    return f"merchant {one.merchant_id}"


def _reason(one: Fence) -> str:
    """How it stands, and what to do."""
    since = f"{one.moved_at or one.since:%Y-%m-%d %H:%M} UTC"
    if one.arrives:
        return noted(
            "it is on the way here from cell %(cell)s since %(since)s, and may be closed there: run the same `paydesk "
            "merchant move` there again, or with --cancel",
            cell=one.other_cell,
            since=since,
        )
    if one.moved_at is None:
        return noted(
            "it is closed here and sells nothing, on the way to cell %(cell)s since %(since)s: run the same `paydesk "
            "merchant move` again, or with --cancel",
            cell=one.other_cell,
            since=since,
        )
    return noted(
        "it has moved to cell %(cell)s at %(since)s, is not deleted here, and may be closed there: run the same "
        "`paydesk merchant move` again",
        cell=one.other_cell,
        since=since,
    )
