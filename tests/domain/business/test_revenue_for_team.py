from datetime import date, timedelta
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from paydesk.domain.business.revenue_for_team import FigureRow, Kind, whole

FIRST = date(2028, 2, 1)
DAYS = [FIRST + timedelta(days=number) for number in range(6)]
SIGNED = {Kind.NEW: 1, Kind.CONVERTED: 1, Kind.EXPANSION: 1, Kind.REACTIVATION: 1, Kind.CONTRACTION: -1, Kind.CHURN: -1}

moved = st.builds(
    lambda day, kind, amount, movements: FigureRow("EUR", day, kind, SIGNED[kind] * amount, movements),
    st.sampled_from([None, *DAYS]),
    st.sampled_from(list(SIGNED)),
    st.decimals(Decimal("0.0001"), Decimal(5000), places=4),
    st.integers(1, 9),
)


@given(rows=st.lists(moved, max_size=30, unique_by=lambda row: (row.day, row.kind)), ends=st.tuples(
    st.integers(0, 5), st.integers(0, 5)
))  # fmt: skip
def test_the_movements_of_any_range_are_the_difference_between_its_ends(
    rows: list[FigureRow], ends: tuple[int, int]
) -> None:
    found = whole("EUR", rows, DAYS)
    first, last = sorted(ends)
    part = found.by_day[first : last + 1]
    kinds = [kind for kind in Kind if kind is not Kind.CONVERTED]
    sums = sum((one.of(kind).amount for one in part for kind in kinds), Decimal(0))
    assert part[0].before + sums == part[-1].after
    assert all(one.after == after.before for one, after in zip(found.by_day, found.by_day[1:], strict=False))
    assert found.total.before + sum((found.total.of(kind).amount for kind in kinds), Decimal(0)) == found.total.after
    assert found.total.after == found.by_day[-1].after == round(sum((row.amount for row in rows), Decimal(0)), 2)
    assert all(one.amount == round(one.amount, 2) for day in found.by_day for one in day.by_kind.values())


def test_rates_are_shares_of_what_there_was_at_the_beginning() -> None:
    rows = [
        FigureRow("EUR", None, Kind.NEW, Decimal(400), 8),
        FigureRow("EUR", DAYS[1], Kind.CHURN, Decimal(-40), 2),
        FigureRow("EUR", DAYS[2], Kind.TRIAL, Decimal(0), 4),
        FigureRow("EUR", DAYS[3], Kind.CONVERTED, Decimal(10), 1),
        FigureRow("EUR", DAYS[3], Kind.TRIAL_LOST, Decimal(0), 3),
    ]
    found = whole("EUR", rows, DAYS)
    assert (found.customer_churn, found.revenue_churn) == (Decimal("0.25"), Decimal("0.1"))
    assert (found.trial_conversion, found.counted_before, found.counted) == (Decimal("0.25"), 8, 7)
    assert whole("EUR", [], DAYS).customer_churn is None
