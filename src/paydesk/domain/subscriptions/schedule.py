"""When a subscription is charged: pure calendar arithmetic, counted from one anchor.

Period 0 is the trial, if there is one; period 1 begins at the anchor. The charge for a period is
due when it begins, so without a trial the checkout's own payment is the charge for period 1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from paydesk.core.periods import occurrence
from paydesk.domain.subscriptions.subscription_terms import Terms

RETRY_AFTER = timedelta(hours=6)
MOST_RETRIES = 3
"""Source: interface.md §7.2."""

REFUSED_PAUSES = (timedelta(hours=1), timedelta(hours=6), timedelta(days=1), timedelta(days=2), timedelta(days=4))
"""Pauses after charges that the acquirer refused as requests:
mostly ours to mend, so there is a week to do it."""

UNREACHED_PAUSES = (timedelta(0), timedelta(minutes=5), timedelta(hours=1))
"""Pauses after charges that never reached the bank: at once after the first, then ever later;
the last one stays."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """A subscription's calendar: `anchor` (UTC) is when period 1 begins,
    by the wall clock of `time_zone`.

    Periods are numbered by their payments; by `skipped` of them, which were never charged, the
    calendar has moved on.
    """

    terms: Terms
    anchor: datetime
    time_zone: str
    skipped: int = 0

    @classmethod
    def starting(cls, terms: Terms, at: datetime, time_zone: str) -> Schedule:
        """The calendar of a subscription that is taken out at a moment."""
        anchor = at if terms.trial is None else occurrence(at, terms.trial.period, 1, time_zone)
        return cls(terms, anchor, time_zone)

    @property
    def first_renewal(self) -> int:
        """The number of the first period that is charged later, without the customer."""
        return 1 if self.terms.trial is not None else 2

    def due(self, number: int) -> datetime | None:
        """When the charge for a period is due, or None if the agreed number of payments is over
        before it.
        """
        if self.terms.limit and number > self.terms.limit:
            return None
        return occurrence(self.anchor, self.terms.period, number - 1 + self.skipped, self.time_zone)

    def end(self) -> datetime | None:
        """When the last paid period is over, or None for a subscription without a limit."""
        if not self.terms.limit:
            return None
        return occurrence(self.anchor, self.terms.period, self.terms.limit + self.skipped, self.time_zone)

    def moved_on(self, number: int, *, at: datetime, charge_until: datetime | None) -> Schedule:
        """The calendar after the charge for the period before `number`:
        what fell due by `at` is skipped.

        All that fell due until `charge_until` is charged, if an operator wanted that.
        """
        moved = self
        while (due := moved.due(number)) is not None and due <= at and not (charge_until and due <= charge_until):
            moved = replace(moved, skipped=moved.skipped + 1)
        return moved


def retry_at(failed_at: datetime, failures: int) -> datetime | None:
    """When a failed charge is tried again, or None once its retries are used up;
    `failures` counts this one too.
    """
    return failed_at + RETRY_AFTER if failures <= MOST_RETRIES else None


def longest_pause() -> timedelta:
    """The longest time from a charge that took nothing to the next try."""
    return max(RETRY_AFTER, *REFUSED_PAUSES, *UNREACHED_PAUSES)


def refused_retry_at(refused_at: datetime, refusals: int) -> datetime | None:
    """When a charge that was refused as a request is tried again, or None at the end;
    `refusals` counts it too.
    """
    return refused_at + REFUSED_PAUSES[refusals - 1] if refusals <= len(REFUSED_PAUSES) else None


def unreached_retry_at(found_at: datetime, before: int) -> datetime:
    """When a charge that never reached the bank is tried again;
    `before` counts those of its period before it.
    """
    return found_at + UNREACHED_PAUSES[min(before, len(UNREACHED_PAUSES) - 1)]
