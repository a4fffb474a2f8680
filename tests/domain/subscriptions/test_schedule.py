from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st
from tests.shopfront import MONTHLY

from paydesk.core.periods import Period
from paydesk.domain.subscriptions.retry_times import retry_at
from paydesk.domain.subscriptions.schedule import Schedule
from paydesk.domain.subscriptions.subscription_terms import Terms, Trial

JANUARY = datetime(2027, 1, 31, 12, tzinfo=UTC)
lengths = st.builds(Period, st.integers(1, 12), st.sampled_from(("day", "week", "month", "year")))
trials = st.none() | st.builds(Trial, st.just(Decimal(1)), lengths)
terms = st.builds(replace, st.just(MONTHLY), period=lengths, trial=trials, limit=st.integers(0, 24))
moments = st.datetimes(datetime(2020, 1, 1), datetime(2060, 1, 1)).map(lambda at: at.replace(tzinfo=UTC))
zones = st.sampled_from(("UTC", "Europe/Berlin", "America/New_York"))


def test_without_a_trial_the_first_payment_is_for_the_first_period() -> None:
    schedule = Schedule.starting(MONTHLY, JANUARY, "UTC")
    assert (schedule.anchor, schedule.first_renewal) == (JANUARY, 2)
    assert schedule.due(2) == datetime(2027, 2, 28, 12, tzinfo=UTC)
    assert schedule.due(3) == datetime(2027, 3, 31, 12, tzinfo=UTC)


def test_after_a_trial_the_first_period_begins() -> None:
    schedule = Schedule.starting(replace(MONTHLY, trial=Trial(Decimal(0), Period(14, "day"))), JANUARY, "UTC")
    assert schedule.first_renewal == 1
    assert schedule.due(1) == schedule.anchor == JANUARY + timedelta(days=14)


def test_a_limit_ends_the_dates_and_the_last_period_runs_out() -> None:
    schedule = Schedule.starting(replace(MONTHLY, limit=2), JANUARY, "UTC")
    assert schedule.due(2) is not None
    assert schedule.due(3) is None
    assert schedule.end() == datetime(2027, 3, 31, 12, tzinfo=UTC)


def test_a_charge_is_tried_again_six_hours_later_three_times() -> None:
    again = [retry_at(JANUARY, failures) for failures in (1, 2, 3, 4)]
    assert again == [JANUARY + timedelta(hours=6)] * 3 + [None]


@given(terms, moments, zones)
def test_dates_are_in_order_and_as_many_as_agreed(agreed: Terms, at: datetime, zone: str) -> None:
    schedule = Schedule.starting(agreed, at, zone)
    dates = [schedule.due(number) for number in range(schedule.first_renewal, 26)]
    given_dates = [date for date in dates if date is not None]
    assert dates == given_dates + [None] * (len(dates) - len(given_dates))
    assert given_dates == sorted(set(given_dates))
    assert all(date > at for date in given_dates)
    end = schedule.end()
    assert (end is None) == (agreed.limit == 0)
    if end is not None:
        paid_at_once = 0 if agreed.trial else 1
        assert len(given_dates) == agreed.limit - paid_at_once
        assert end > (given_dates[-1] if given_dates else at)
