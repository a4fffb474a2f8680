from __future__ import annotations

from decimal import Decimal

import pytest

from paydesk.core.errors import Malformed
from paydesk.core.periods import Period
from paydesk.domain.subscriptions.subscription_terms import RecurringFields, Terms, Trial, read_terms

FORM = {"recurring_name": "Coffee club", "recurring_sku_id": "club", "recurring_period": "1m"}
PRICE = Decimal("10.00")


def read(currency: str = "USD", **fields: str) -> Terms:
    terms = read_terms(RecurringFields(**{**FORM, **fields}), PRICE, currency)
    assert terms is not None
    return terms


@pytest.mark.parametrize("fields", [{}, {"recurring_duration": "0"}, {"recurring_name": "", "recurring_period": ""}])
def test_a_form_without_recurring_fields_is_for_one_payment(fields: dict[str, str]) -> None:
    assert read_terms(RecurringFields(**fields), PRICE, "USD") is None


def test_the_amount_is_the_price_of_each_period() -> None:
    assert read() == Terms("Coffee club", "club", "USD", PRICE, Period(1, "month"), None, 0)
    assert read().first_amount == PRICE


@pytest.mark.parametrize("amount", ["", "0", "0.00"])
def test_a_trial_without_a_price_is_free(amount: str) -> None:
    terms = read(recurring_trial_period="14d", recurring_trial_amount=amount)
    assert terms.trial == Trial(Decimal(0), Period(14, "day"))
    assert terms.first_amount == 0


def test_a_trial_may_cost_more_than_the_price() -> None:
    assert read(recurring_trial_period="1m", recurring_trial_amount="30").first_amount == 30


@pytest.mark.parametrize(("duration", "limit"), [("", 0), ("0", 0), ("12", 12), ("1y", 12), ("6m", 6), ("3660", 3660)])
def test_a_duration_is_a_number_of_payments(duration: str, limit: int) -> None:
    assert read(recurring_duration=duration).limit == limit


@pytest.mark.parametrize(
    ("fields", "culprit"),
    [
        ({"recurring_name": ""}, "recurring_name"),
        ({"recurring_name": "  "}, "recurring_name"),
        ({"recurring_name": "a\x00b"}, "recurring_name"),
        ({"recurring_name": "n" * 256}, "recurring_name"),
        ({"recurring_sku_id": ""}, "recurring_sku_id"),
        ({"recurring_sku_id": "s" * 256}, "recurring_sku_id"),
        ({"recurring_period": ""}, "recurring_period"),
        ({"recurring_period": "0m"}, "recurring_period"),
        ({"recurring_period": "1h"}, "recurring_period"),
        ({"recurring_period": "11y"}, "recurring_period"),
        ({"recurring_trial_amount": "1.00"}, "recurring_trial_period"),
        ({"recurring_trial_period": "0d"}, "recurring_trial_period"),
        ({"recurring_trial_period": "x"}, "recurring_trial_period"),
        ({"recurring_trial_period": "1m", "recurring_trial_amount": "-1"}, "recurring_trial_amount"),
        ({"recurring_trial_period": "1m", "recurring_trial_amount": "1e3"}, "recurring_trial_amount"),
        ({"recurring_trial_period": "1m", "recurring_trial_amount": "1.001"}, "recurring_trial_amount"),
        ({"recurring_trial_period": "1m", "recurring_trial_amount": "9" * 14}, "recurring_trial_amount"),
        ({"recurring_duration": "-1"}, "recurring_duration"),
        ({"recurring_duration": "1.5"}, "recurring_duration"),
        ({"recurring_duration": "3661"}, "recurring_duration"),
        ({"recurring_duration": "30d"}, "recurring_duration"),
        ({"recurring_duration": "forever"}, "recurring_duration"),
        ({"recurring_duration": "0m"}, "recurring_duration"),
        ({"recurring_period": "5m", "recurring_duration": "1y"}, "recurring_duration"),
    ],
)
def test_what_is_malformed_or_contradictory_is_named(fields: dict[str, str], culprit: str) -> None:
    with pytest.raises(Malformed) as refused:
        read(**fields)
    assert refused.value.fields == (culprit,)
    assert culprit in refused.value.message


def test_the_currency_decides_the_digits_of_a_trial_amount() -> None:
    with pytest.raises(Malformed):
        read("JPY", recurring_trial_period="1m", recurring_trial_amount="1.5")
    assert read("BHD", recurring_trial_period="1m", recurring_trial_amount="1.005").first_amount == Decimal("1.005")


@pytest.mark.parametrize("given", ["recurring_sku_id", "recurring_trial_period", "recurring_duration"])
def test_one_recurring_field_asks_for_all_that_are_required(given: str) -> None:
    with pytest.raises(Malformed) as refused:
        read_terms(RecurringFields(**{given: "1m"}), PRICE, "USD")
    assert refused.value.fields[0] in {"recurring_name", "recurring_period"}
