from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from paydesk.core.errors import Malformed
from paydesk.core.periods import Period, Unit, occurrence, parse_period, whole_number_of

UNITS: tuple[Unit, ...] = ("day", "week", "month", "year")
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu")
periods = st.builds(Period, st.integers(1, 24), st.sampled_from(UNITS))
moments = st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1)).map(lambda at: at.replace(tzinfo=UTC))
zones = st.sampled_from(ZONES)


def local(zone: str, *when: int) -> datetime:
    return datetime(*when, tzinfo=ZoneInfo(zone))  # type: ignore[misc, arg-type]


@pytest.mark.parametrize(
    ("text", "period"),
    [("1d", Period(1, "day")), ("2w", Period(2, "week")), ("6m", Period(6, "month")), ("10y", Period(10, "year")),
     ("3653d", Period(3653, "day")), ("120m", Period(120, "month"))],
)  # fmt: skip
def test_a_period_is_a_number_and_a_unit(text: str, period: Period) -> None:
    assert parse_period(text, "recurring_period") == period


@pytest.mark.parametrize(
    "text",
    ["", "m", "1", "0d", "-1m", "1.5m", "1 m", "1M", "1h", "11y", "121m", "522w", "3654d", "12345d", "١m", "1m\n"],
)
def test_any_other_period_is_refused_by_its_field(text: str) -> None:
    with pytest.raises(Malformed) as refused:
        parse_period(text, "recurring_trial_period")
    assert refused.value.fields == ("recurring_trial_period",)
    assert "recurring_trial_period" in str(refused.value)


def test_the_31st_comes_back_after_short_months() -> None:
    anchor = datetime(2027, 1, 31, 9, tzinfo=UTC)
    days = [occurrence(anchor, Period(1, "month"), number).date().isoformat() for number in range(5)]
    assert days == ["2027-01-31", "2027-02-28", "2027-03-31", "2027-04-30", "2027-05-31"]


def test_a_leap_day_comes_back_every_four_years() -> None:
    anchor = datetime(2028, 2, 29, tzinfo=UTC)
    days = [occurrence(anchor, Period(1, "year"), number).date().isoformat() for number in range(5)]
    assert days == ["2028-02-29", "2029-02-28", "2030-02-28", "2031-02-28", "2032-02-29"]
    assert occurrence(anchor, Period(12, "month"), 4) == datetime(2032, 2, 29, tzinfo=UTC)
    assert occurrence(anchor, Period(1, "day"), 1) == datetime(2028, 3, 1, tzinfo=UTC)


def test_a_year_end_is_counted_over() -> None:
    anchor = datetime(2026, 12, 31, 23, 59, 59, tzinfo=UTC)
    assert occurrence(anchor, Period(1, "day"), 1) == datetime(2027, 1, 1, 23, 59, 59, tzinfo=UTC)
    assert occurrence(anchor, Period(2, "month"), 1) == datetime(2027, 2, 28, 23, 59, 59, tzinfo=UTC)
    assert occurrence(anchor, Period(1, "week"), 53) == datetime(2028, 1, 6, 23, 59, 59, tzinfo=UTC)


def test_the_local_day_decides_which_month_end_it_is() -> None:
    anchor = local("Pacific/Auckland", 2027, 1, 31, 6).astimezone(UTC)  # still the 30th in UTC
    assert occurrence(anchor, Period(1, "month"), 2, "Pacific/Auckland") == local("Pacific/Auckland", 2027, 3, 31, 6)


@pytest.mark.parametrize(("month", "day"), [(3, 28), (10, 31)])
def test_the_wall_clock_keeps_its_hour_over_a_change_of_summer_time(month: int, day: int) -> None:
    anchor = local("Europe/Berlin", 2027, month, day - 1, 12)
    after = occurrence(anchor.astimezone(UTC), Period(1, "day"), 1, "Europe/Berlin")
    assert after == local("Europe/Berlin", 2027, month, day, 12)
    assert after - anchor.astimezone(UTC) == timedelta(hours=23 if month == 3 else 25)


def test_a_time_that_summer_time_skips_moves_behind_the_gap() -> None:
    anchor = local("Europe/Berlin", 2027, 3, 27, 2, 30).astimezone(UTC)
    assert occurrence(anchor, Period(1, "day"), 1, "Europe/Berlin") == local("Europe/Berlin", 2027, 3, 28, 3, 30)
    assert occurrence(anchor, Period(1, "day"), 2, "Europe/Berlin") == local("Europe/Berlin", 2027, 3, 29, 2, 30)


def test_a_time_that_comes_twice_is_the_first_one() -> None:
    anchor = local("Europe/Berlin", 2027, 10, 30, 2, 30).astimezone(UTC)
    assert occurrence(anchor, Period(1, "day"), 1, "Europe/Berlin") == datetime(2027, 10, 31, 0, 30, tzinfo=UTC)


@given(moments, periods, zones)
@example(datetime(2027, 10, 31, 1, 30, tzinfo=UTC), Period(1, "month"), "Europe/Berlin")
def test_none_of_them_later_is_the_anchor_itself_also_where_its_hour_comes_twice(
    anchor: datetime, period: Period, zone: str
) -> None:
    assert occurrence(anchor, period, 0, zone) == anchor


@given(moments, periods, st.integers(0, 60), zones)
def test_occurrences_never_stand_still_or_go_back(anchor: datetime, period: Period, number: int, zone: str) -> None:
    assert occurrence(anchor, period, number, zone) < occurrence(anchor, period, number + 1, zone)


@given(moments, periods, st.integers(0, 60), zones)
def test_an_occurrence_is_at_most_a_month_end_and_a_gap_away_from_its_wall_clock(
    anchor: datetime, period: Period, number: int, zone: str
) -> None:
    before = anchor.astimezone(ZoneInfo(zone))
    after = occurrence(anchor, period, number, zone).astimezone(ZoneInfo(zone))
    if period.in_months is not None:
        months = period.in_months * number
        assert (after.year * 12 + after.month) - (before.year * 12 + before.month) in {
            months,
            months + (after.day == 1),
        }
        assert after.day <= before.day or after.day == before.day + 1
    moved = abs((after.replace(tzinfo=None) - before.replace(tzinfo=None)).seconds)
    assert min(moved, 86400 - moved) <= 3600


@given(st.sampled_from(UNITS), st.sampled_from(UNITS), st.integers(1, 60), st.integers(1, 60))
def test_whole_numbers_of_periods_add_up_to_the_duration(whole: Unit, part: Unit, length: int, step: int) -> None:
    duration, period = Period(length, whole), Period(step, part)
    number = whole_number_of(period, duration)
    if number is not None:
        anchor = datetime(2027, 3, 1, tzinfo=UTC)
        assert occurrence(anchor, period, number) == occurrence(anchor, duration, 1)


def test_days_never_make_up_months() -> None:
    assert whole_number_of(Period(1, "month"), Period(30, "day")) is None
    assert whole_number_of(Period(7, "day"), Period(2, "week")) == 2
    assert whole_number_of(Period(3, "month"), Period(1, "year")) == 4
    assert whole_number_of(Period(5, "month"), Period(1, "year")) is None
