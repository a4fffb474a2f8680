"""When a subscription is charged: pure calendar arithmetic, counted from one anchor.

Period 0 is the trial, if there is one; period 1 begins at the anchor. The charge for a period is
due when it begins, so without a trial the checkout's own payment is the charge for period 1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from paydesk.core.periods import occurrence
from paydesk.domain.subscriptions.subscription_terms import Terms


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

    def moved_on(self, number: int, *, at: datetime, charge_until: datetime | None) -> tuple[Schedule, datetime | None]:
        """The calendar after the charge for the period before `number`, and when that is due by it:
        what fell due by `at` is skipped.

        All that fell due until `charge_until` is charged, if an operator wanted that.
        """
        moved = self
        while (due := moved.due(number)) is not None and due <= at and not (charge_until and due <= charge_until):
            moved = replace(moved, skipped=moved.skipped + 1)
        return moved, due

    def beginning(self, number: int, at: datetime) -> Schedule:
        """The calendar on which a period begins at a moment (UTC), or at the first one after it
        that clocks show once.

        Months are of different lengths, so its anchor may have to lie some periods further back:
        31 March is a month after no day of February, and two months after 31 January.
        """
        for late in range(_MOST_LATE):
            moment = at + late * _HALF_HOUR
            for further in range(_FURTHEST_BACK):
                count = number - 1 + self.skipped + further
                anchor = occurrence(moment, self.terms.period, -count, self.time_zone)
                if occurrence(anchor, self.terms.period, count, self.time_zone) == moment:
                    return replace(self, anchor=anchor, skipped=self.skipped + further)
        raise AssertionError("each day of a year comes back within eight years")


_FURTHEST_BACK = 97
"""29 February comes back after 48 months, or after 96 where a century has none."""
_HALF_HOUR = timedelta(minutes=30)
_MOST_LATE = 49
