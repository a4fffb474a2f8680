from __future__ import annotations

from decimal import Decimal

import pytest
from iso4217 import Currency

from paydesk.core.currencies import DIGITS, WITHDRAWN, is_current, is_withdrawn, minor_digits
from paydesk.core.errors import Malformed
from paydesk.core.money import fits, parse_amount, parse_currency, parse_known_currency, written

GONE = sorted(code for codes in WITHDRAWN.values() for code in codes.split())


def test_our_list_is_the_locked_one_and_what_has_left_it() -> None:
    current = {one.code: one.exponent for one in Currency if one.exponent is not None}
    assert {code: DIGITS.get(code) for code in current} == current, "a new one belongs into currencies.py"
    assert sorted(set(DIGITS) - set(current)) == GONE, "one that left the list belongs among the withdrawn ones"


@pytest.mark.parametrize("code", GONE)
def test_a_withdrawn_currency_keeps_its_digits_for_what_was_paid_in_it(code: str) -> None:
    assert is_withdrawn(code)
    assert minor_digits(code) == (0 if code == "BYR" else 2)
    assert parse_known_currency(code) == code
    assert fits(Decimal("4.00"), code)
    assert parse_amount("4", code) == Decimal(4)


@pytest.mark.parametrize("code", GONE)
def test_nothing_new_is_paid_in_a_withdrawn_currency(code: str) -> None:
    with pytest.raises(Malformed, match=f'"{code}" is no currency any more') as refused:
        parse_currency(code)
    assert refused.value.fields == ("currency",)


@pytest.mark.parametrize("code", ["XAU", "XXX", "XYZ", "usd", "", "BITCOIN"])
def test_what_nobody_ever_paid_with_is_no_currency_at_all(code: str) -> None:
    assert not is_current(code)
    assert not is_withdrawn(code)
    for parse in (parse_currency, parse_known_currency):
        with pytest.raises(Malformed, match="is not an ISO 4217 currency code"):
            parse(code)


def test_an_amount_in_a_withdrawn_currency_is_shown_as_ever() -> None:
    assert written(Decimal("9.9000"), "BGN") == "9.90"
