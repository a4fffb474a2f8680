from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paydesk.core.errors import Malformed
from paydesk.core.money import (
    LARGEST,
    FeePlan,
    Funds,
    Reversal,
    Split,
    fits,
    minor_digits,
    parse_amount,
    parse_currency,
    parse_exact,
    parse_typed,
    refuse_thousands,
    split_payment,
    split_reversal,
    written,
)

AMOUNTS = st.decimals(min_value=0, max_value=LARGEST, places=4)
PAID = st.decimals(min_value=Decimal("0.0001"), max_value=LARGEST, places=4) | st.decimals(
    min_value=Decimal("0.0001"), max_value=5, places=4
)
RATES = st.decimals(min_value=0, max_value=Decimal("0.999999"), places=6)
PLANS = st.builds(FeePlan, RATES, st.decimals(min_value=0, max_value=10_000, places=4), RATES)


@pytest.mark.parametrize(
    ("currency", "digits"), [("USD", 2), ("EUR", 2), ("JPY", 0), ("KRW", 0), ("BHD", 3), ("KWD", 3), ("CLF", 4)]
)
def test_currencies_have_their_iso_4217_digits(currency: str, digits: int) -> None:
    assert minor_digits(currency) == digits
    assert parse_currency(currency) == currency
    finest = Decimal(1).scaleb(-digits)
    assert parse_amount(f"{finest:f}", currency) == finest
    with pytest.raises(Malformed, match=f"{currency} allows {digits}"):
        parse_amount(f"1.{'0' * digits}1", currency)


@pytest.mark.parametrize(
    ("text", "currency", "amount"),
    [
        ("500.00", "JPY", "500"),
        ("500.000000000000000000", "JPY", "500"),
        ("10.000", "USD", "10.00"),
        ("10.100", "USD", "10.10"),
        ("1.2340", "BHD", "1.234"),
        ("999999999999.000000", "JPY", "999999999999"),
    ],
)
def test_zeros_that_the_currency_has_no_digits_for_are_exact(text: str, currency: str, amount: str) -> None:
    assert parse_amount(text, currency) == Decimal(amount)
    assert parse_exact(text, currency, "price", like="10") == Decimal(amount)
    assert fits(Decimal(text), currency)


@pytest.mark.parametrize(
    ("text", "currency"),
    [("500.50", "JPY"), ("500.01", "JPY"), ("10.0010", "USD"), ("999999999999999.000000000000000001", "USD")],
)
def test_a_part_that_nobody_can_pay_is_no_amount(text: str, currency: str) -> None:
    with pytest.raises(Malformed, match=rf'"{text}" has \d+ decimals, {currency} allows'):
        parse_amount(text, currency)
    assert not fits(Decimal(text), currency)


@pytest.mark.parametrize(
    ("text", "currency", "amount"),
    [("4,50", "USD", "4.50"), ("4.50", "USD", "4.50"), ("500.00", "JPY", "500"), ("1,001", "BHD", "1.001")],
)
def test_people_type_a_dot_or_a_comma(text: str, currency: str, amount: str) -> None:
    assert parse_typed(text, currency) == Decimal(amount)


@pytest.mark.parametrize(("text", "currency"), [("1,000", "USD"), ("5.000", "JPY"), ("5,000", "JPY"), ("1.500", "EUR")])
def test_what_may_mean_thousands_is_asked_back(text: str, currency: str) -> None:
    with pytest.raises(Malformed, match=f'"{text}" may mean thousands'):
        parse_typed(text, currency)


@pytest.mark.parametrize("text", ["0.000", "0,000", "0.500", ".500"])
def test_nothing_and_parts_of_one_mean_no_thousands(text: str) -> None:
    refuse_thousands(text, "USD", "trial_price")


@pytest.mark.parametrize("text", ["", "usd", "US", "USDD", "840", "XXX", "XAU", "DEM", "€", "U D", "USD\n"])
def test_what_nobody_pays_with_is_no_currency(text: str) -> None:
    with pytest.raises(Malformed) as refused:
        parse_currency(text)
    assert refused.value.fields == ("currency",)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "-1",
        "+1",
        "1e3",
        "1E3",
        ".5",
        "5.",
        "1,000",
        "1 000",
        "0x10",
        "NaN",
        "inf",
        "١٢",
        "1\n",
        "\x001",
        "1.2.3",
    ],
)
def test_what_is_no_plain_number_is_no_amount(text: str) -> None:
    with pytest.raises(Malformed, match="plain decimal") as refused:
        parse_amount(text, "USD")
    assert refused.value.fields == ("amount",)


@pytest.mark.parametrize("text", ["0", "0.00", "000"])
def test_nothing_is_no_amount(text: str) -> None:
    with pytest.raises(Malformed, match="greater than 0"):
        parse_amount(text, "USD")


def test_an_amount_beyond_the_column_is_refused() -> None:
    assert parse_amount("999999999999.99", "USD") == Decimal("999999999999.99")
    with pytest.raises(Malformed, match="larger than"):
        parse_amount("1000000000000", "USD")


@given(st.text(max_size=30))
def test_any_text_is_a_positive_amount_or_malformed(text: str) -> None:
    try:
        amount = parse_amount(text, "USD")
    except Malformed:
        return
    assert 0 < amount <= LARGEST
    assert amount == amount.quantize(Decimal("0.01"))


def test_the_real_sample_comes_out_to_the_digit() -> None:
    plan = FeePlan(rate=Decimal("0.03"), fixed=Decimal("0.27"), reserve_rate=Decimal("0.05"))
    assert split_payment(Decimal("0.01"), plan) == Split(
        paid=Decimal("0.01"), net=Decimal("-0.2608"), reserve=Decimal("0.0005"), fees=Decimal("0.2703")
    )


def test_the_usual_plan_takes_3_percent_and_30_cents_and_keeps_5_percent_back() -> None:
    assert split_payment(Decimal("10.00"), FeePlan()) == Split(
        paid=Decimal("10.00"), net=Decimal("8.9"), reserve=Decimal("0.5"), fees=Decimal("0.6")
    )


@pytest.mark.parametrize(("paid", "fees"), [("0.005", "0.0002"), ("0.015", "0.0004"), ("0.0125", "0.0004")])
def test_halves_go_to_the_even_digit(paid: str, fees: str) -> None:
    plan = FeePlan(rate=Decimal("0.03"), fixed=Decimal(0), reserve_rate=Decimal(0))
    assert split_payment(Decimal(paid), plan).fees == Decimal(fees)


@given(AMOUNTS, PLANS)
def test_paid_is_always_net_and_reserve_and_fees_of_four_decimals(paid: Decimal, plan: FeePlan) -> None:
    split = split_payment(paid, plan)
    assert split.paid == paid == split.net + split.reserve + split.fees
    assert split.reserve >= 0
    assert split.fees >= 0
    for amount in (split.net, split.reserve, split.fees):
        assert amount == amount.quantize(Decimal("0.0001"))


def test_nothing_is_due_on_a_payment_of_nothing() -> None:
    assert split_payment(Decimal(0), FeePlan()) == Split(Decimal(0), Decimal(0), Decimal(0), Decimal(0))


def funds_after(funds: Funds, amount: Decimal, taken: Reversal, *, returned: bool) -> Funds:
    """Where the money is once an amount was given back."""
    return replace(
        funds,
        given_back=funds.given_back + amount,
        pending_taken=funds.pending_taken + taken.pending,
        reserve_taken=funds.reserve_taken + taken.reserve,
        fees_taken=funds.fees_taken + taken.fees,
        fees_returned_of=(funds.fees_returned_of or Decimal(0)) + (amount if returned else 0),
    )


class TestGivingBack:
    @given(PAID, PLANS, st.data(), st.booleans(), st.booleans(), st.booleans())
    def test_the_parts_sum_to_the_amount_and_none_is_negative(
        self, paid: Decimal, plan: FeePlan, data: st.DataObject, returned: bool, settled: bool, released: bool
    ) -> None:
        amount = data.draw(st.decimals(Decimal("0.0001"), paid, places=4))
        funds = Funds(split_payment(paid, plan), settled=settled, released=released)
        parts = split_reversal(funds, amount, fees_returned=returned)
        assert parts.pending + parts.available + parts.reserve + parts.fees == amount
        assert min(parts.pending, parts.available, parts.reserve, parts.fees) >= 0
        assert parts.reserve <= funds.split.reserve
        assert parts.fees <= funds.split.fees
        assert not (settled and parts.pending)
        assert not (released and parts.reserve)
        assert returned or not parts.fees
        for part in (parts.pending, parts.available, parts.reserve, parts.fees):
            assert part == part.quantize(Decimal("0.0001"))

    @given(PAID, PLANS, st.data(), st.booleans())
    def test_many_parts_take_exactly_what_the_whole_takes(
        self, paid: Decimal, plan: FeePlan, data: st.DataObject, returned: bool
    ) -> None:
        start = Funds(split_payment(paid, plan))
        cents = int(paid * 10000)
        cuts = data.draw(st.lists(st.integers(1, cents), max_size=12))
        funds = start
        for cut in sorted({*cuts, cents}):
            amount = Decimal(cut) / 10000 - funds.given_back
            taken = split_reversal(funds, amount, fees_returned=returned)
            funds = funds_after(funds, amount, taken, returned=returned)
        whole = funds_after(start, paid, split_reversal(start, paid, fees_returned=returned), returned=returned)
        assert funds == whole
        assert funds.reserve_taken == start.split.reserve

    def test_fees_are_kept_unless_the_plan_returns_them(self) -> None:
        funds = Funds(split_payment(Decimal("10.00"), FeePlan()))
        assert split_reversal(funds, Decimal("10.00"), fees_returned=False) == Reversal(
            pending=Decimal("8.9"), available=Decimal("0.6"), reserve=Decimal("0.5"), fees=Decimal(0)
        )
        assert split_reversal(funds, Decimal("10.00"), fees_returned=True) == Reversal(
            pending=Decimal("8.9"), available=Decimal(0), reserve=Decimal("0.5"), fees=Decimal("0.6")
        )

    @given(st.lists(st.tuples(st.integers(1, 10_000), st.booleans()), min_size=1, max_size=8))
    def test_returning_fees_holds_from_then_on_and_for_those_parts_alone(self, parts: list[tuple[int, bool]]) -> None:
        paid, plan = Decimal(10), FeePlan()
        start = Funds(split_payment(paid, plan))
        funds, returned_of = start, Decimal(0)
        for units, returned in parts:
            amount = min(Decimal(units) / 1000, paid - funds.given_back)
            if not amount:
                break
            taken = split_reversal(funds, amount, fees_returned=returned)
            assert returned or not taken.fees
            funds = funds_after(funds, amount, taken, returned=returned)
            returned_of += amount if returned else 0
        alone = split_reversal(start, returned_of, fees_returned=True).fees if returned_of else Decimal(0)
        assert funds.fees_taken == alone

    @pytest.mark.parametrize("known", [Decimal(0), None])
    def test_what_was_given_back_before_keeps_its_fees(self, known: Decimal | None) -> None:
        split = split_payment(Decimal(100), FeePlan())
        first = split_reversal(Funds(split), Decimal(50), fees_returned=False)
        after = Funds(split, Decimal(50), first.pending, first.reserve, first.fees, fees_returned_of=known)
        assert split_reversal(after, Decimal(50), fees_returned=True).fees == split.fees / 2

    def test_a_part_takes_its_share(self) -> None:
        funds = Funds(split_payment(Decimal("10.00"), FeePlan()))
        assert split_reversal(funds, Decimal("2.50"), fees_returned=True) == Reversal(
            pending=Decimal("2.225"), available=Decimal(0), reserve=Decimal("0.125"), fees=Decimal("0.15")
        )

    def test_what_is_settled_comes_out_of_available_money(self) -> None:
        funds = Funds(split_payment(Decimal("10.00"), FeePlan()), settled=True, released=True)
        assert split_reversal(funds, Decimal("4"), fees_returned=False) == Reversal(
            Decimal(0), Decimal("4"), Decimal(0), Decimal(0)
        )


@pytest.mark.parametrize(
    ("amount", "currency", "text"),
    [
        ("10.0000", "USD", "10.00"),
        ("0.7453", "USD", "0.7453"),
        ("1200.0000", "JPY", "1200"),
        ("-4.5", "KWD", "-4.500"),
        ("0", "EUR", "0.00"),
    ],
)
def test_an_amount_is_written_with_its_currencys_decimals(amount: str, currency: str, text: str) -> None:
    assert written(Decimal(amount), currency) == text
