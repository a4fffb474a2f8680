"""Dunning plans: when a charge that failed is tried again, if its account wants it otherwise than
usual. A plan is kept with the charge from its first failure on, so a new one disturbs no schedule.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from paydesk.adapters.acquirers.interface import DeclineReason
from paydesk.core.errors import Malformed
from paydesk.core.periods import zone_named
from paydesk.core.wording import plural, worded
from paydesk.domain.merchants.dunning_end import DunningEnd
from paydesk.domain.subscriptions.retry_times import MOST_RETRIES, RETRY_AFTER

MOST_TRIES = 10
LONGEST_DELAY = 720
"""Hours."""
LONGEST_PLAN = 1440
"""Hours: so long may the delays of a plan be together."""

PAYDAYS = (1, 5, 10, 15, 20, 25)
"""Days of a month on which, or before which, wages come."""
MORNING = 9
"""The hour of a payday at which is tried, by the subscription's calendar."""

LONGEST_WAIT = timedelta(hours=LONGEST_PLAN, days=7)
"""The longest time from a failure to the next try by any plan, a payday's wait included."""

_USELESS = frozenset({DeclineReason.STOLEN_CARD, DeclineReason.CLOSED_ACCOUNT, DeclineReason.EXPIRED_CARD})
"""Declines after which only another card helps."""


@dataclass(frozen=True, slots=True)
class Dunning:
    """A plan at work, from the account's wish to the last try, and what is then.

    `left` are the hours to each try that is still to come after the next one, of `tries` in all;
    `due_at` is when the next one is planned (UTC), `failures` how often the charge has failed.
    """

    left: tuple[int, ...]
    tries: int
    by_reason: bool = False
    failures: int = 0
    due_at: datetime | None = None
    end: DunningEnd = DunningEnd.CANCEL

    def after(self, reason: str, *, at: datetime, time_zone: str) -> Dunning | None:
        """What is left after another failure, or None at the plan's end.

        A try before the planned one was the customer's, with another card: it takes no planned try
        away. Where only another card helps, the next try is that at the plan's end.
        """
        counted = replace(self, failures=self.failures + 1)
        if self.due_at is not None and at < self.due_at:
            return counted
        if not self.left:
            return None
        if self.by_reason and reason in _USELESS:
            return replace(counted, left=(), due_at=at + timedelta(hours=sum(self.left)))
        due = at + timedelta(hours=self.left[0])
        if self.by_reason and reason == DeclineReason.INSUFFICIENT_FUNDS:
            due = payday_from(due, time_zone)
        return replace(counted, left=self.left[1:], due_at=due)


def dunning_of(hours: Sequence[int] | None, *, by_reason: bool, end: DunningEnd = DunningEnd.CANCEL) -> Dunning | None:
    """An account's plan before the first failure; None for the usual one."""
    if hours is None and not by_reason and end is DunningEnd.CANCEL:
        return None
    delays = tuple(hours) if hours is not None else usual_delays()
    return Dunning(delays, len(delays), by_reason, end=end)


def usual_delays() -> tuple[int, ...]:
    """The hours to each try of a charge without a plan (interface.md §7.2)."""
    return (int(RETRY_AFTER / timedelta(hours=1)),) * MOST_RETRIES


def usual_left(failures: int, due_at: datetime | None) -> Dunning | None:
    """What is left of the usual tries after so many failures, as a plan: so that a try of the
    customer's own takes none of them away. None if nothing has failed, or no try is planned.
    """
    if due_at is None or not 1 <= failures <= MOST_RETRIES:
        return None
    delays = usual_delays()
    return Dunning(delays[failures:], len(delays), failures=failures, due_at=due_at)


def payday_from(at: datetime, time_zone: str) -> datetime:
    """The first morning of a payday from a moment on (UTC), by a calendar."""
    local = at.astimezone(zone_named(time_zone))
    day = local.replace(hour=MORNING, minute=0, second=0, microsecond=0, fold=0)
    while day.day not in PAYDAYS or day < local:
        day += timedelta(days=1)
    return day.astimezone(at.tzinfo)


def parse_delays(text: str, field: str) -> tuple[int, ...] | None:
    """Delays as they are typed: `6, 6, 6` or `1d 3d`; None if nothing is.

    Raises: Malformed, naming the field.
    """
    words = text.replace(",", " ").split()
    if not words:
        return None
    if len(words) > MOST_TRIES:
        raise Malformed(
            plural(
                "%(field)s: %(count)s delay, %(most_tries)s at most are allowed",
                "%(field)s: %(count)s delays, %(most_tries)s at most are allowed",
                field=field,
                count=len(words),
                most_tries=MOST_TRIES,
            ),
            field,
        )
    hours = tuple(_hours(word, field) for word in words)
    if sum(hours) > LONGEST_PLAN:
        raise Malformed(
            plural(
                "%(field)s are %(count)s hour in all, %(longest_plan)s at most are allowed",
                "%(field)s are %(count)s hours in all, %(longest_plan)s at most are allowed",
                field=field,
                count=sum(hours),
                longest_plan=LONGEST_PLAN,
            ),
            field,
        )
    return hours


def _hours(word: str, field: str) -> int:
    found = re.fullmatch(r"([0-9]{1,3})([hd]?)", word)
    hours = int(found[1]) * (24 if found[2] == "d" else 1) if found else 0
    if not 1 <= hours <= LONGEST_DELAY:
        raise Malformed(
            worded(
                '%(field)s: "%(word)s" is no delay; write hours, from 1 to %(longest_delay)s, or days, as in 3d',
                field=field,
                word=word[:20],
                longest_delay=LONGEST_DELAY,
            ),
            field,
        )
    return hours
