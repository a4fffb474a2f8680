"""Ordered rules choose the account of an order, the same one each time, and say why."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from paydesk.domain.acquirers.routing import Order, Rule, place_of, route
from paydesk.domain.merchants.shop import Shop

ORDER = Order(Shop(7, True), "A-1", "EUR", Decimal(50), "CH", "visa")
ALL = Rule(1, "first", None, "", "", "", None, None, 100)
SERVING = ("second", "first", "usual")


def taken(order: Order, *rules: Rule, serving: tuple[str, ...] = SERVING) -> str:
    last = route(order, rules, serving)[-1]
    assert last.is_taken
    return last.account


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        ({"for_merchant_id": 8}, "for merchant 8"),
        ({"currency": "USD"}, "currency is EUR, not USD"),
        ({"country": "DE"}, "country is CH, not DE"),
        ({"brand": "mastercard"}, "brand is visa, not mastercard"),
        ({"least": Decimal(51)}, "below 51"),
        ({"most": Decimal(49)}, "above 49"),
    ],
)
def test_a_rule_that_does_not_fit_says_why_and_the_next_one_is_tried(wanted: dict[str, Any], why: str) -> None:
    unfit = replace(ALL, account="usual", **wanted)
    steps = route(ORDER, [unfit, ALL], SERVING)
    assert why in steps[0].why
    assert [one.is_taken for one in steps] == [False, True]
    assert steps[1].account == "first"


def test_a_rule_that_fits_in_everything_is_taken() -> None:
    rule = Rule(2, "usual", 7, "EUR", "CH", "visa", Decimal(50), Decimal(50), 100)
    assert taken(ORDER, rule, ALL) == "usual"


def test_where_no_rule_fits_the_first_account_that_serves_takes_it() -> None:
    assert taken(ORDER, replace(ALL, currency="USD")) == "second"


def test_a_rule_for_an_account_that_serves_no_such_payment_is_passed_over() -> None:
    assert taken(ORDER, ALL, serving=("usual",)) == "usual"


def test_nobody_takes_what_no_account_serves() -> None:
    assert not any(one.is_taken for one in route(ORDER, [ALL], ()))


def test_a_share_is_the_same_for_an_order_each_time_and_about_its_part_of_many() -> None:
    rule = replace(ALL, share=30)
    orders = [replace(ORDER, reference=f"A-{number}") for number in range(2000)]
    first = [taken(order, rule) for order in orders]
    assert first == [taken(order, rule) for order in orders]
    assert 520 < Counter(first)["first"] < 680
    assert {place_of(order, "first") for order in orders} == set(range(100))


def test_what_a_card_decides_is_not_decided_before_it_is_known() -> None:
    assert taken(replace(ORDER, brand=""), replace(ALL, brand="visa")) == "second"
