from decimal import Decimal

import pytest

from paydesk.adapters.acquirers.interface import AcquirerRefused
from paydesk.adapters.acquirers.stripe.amounts import main_units, minor_units, plain


@pytest.mark.parametrize(
    ("amount", "currency", "units"),
    [
        ("10.00", "USD", 1000),
        ("0.5", "EUR", 50),
        ("500", "JPY", 500),
        ("1234", "KRW", 1234),
        ("5.120", "KWD", 5120),
        ("500", "MGA", 500),
        ("12", "ISK", 1200),
        ("12", "UGX", 1200),
        ("10.45", "HUF", 1045),
        ("0", "USD", 0),
    ],
)
def test_an_amount_is_counted_as_stripe_counts_it_and_back(amount: str, currency: str, units: int) -> None:
    assert minor_units(Decimal(amount), currency) == units
    assert main_units(units, currency.lower()) == Decimal(amount)


@pytest.mark.parametrize(
    ("amount", "currency"),
    [("1.001", "USD"), ("1.5", "JPY"), ("5.123", "KWD"), ("1.5", "ISK"), ("0.01", "UGX"), ("1.5", "MGA")],
)
def test_what_stripe_can_not_count_is_refused(amount: str, currency: str) -> None:
    with pytest.raises(AcquirerRefused, match="too many decimals"):
        minor_units(Decimal(amount), currency)


@pytest.mark.parametrize("amount", ["-1", "NaN", "Infinity", "-0.01"])
def test_what_is_no_sum_of_money_is_refused(amount: str) -> None:
    with pytest.raises(AcquirerRefused, match="not a sum of money"):
        minor_units(Decimal(amount), "USD")


def test_amounts_for_people_have_no_trailing_zeros_and_no_exponent() -> None:
    assert [plain(1050, "USD"), plain(1000, "USD"), plain(0, "USD"), plain(500, "JPY")] == ["10.5", "10", "0", "500"]
