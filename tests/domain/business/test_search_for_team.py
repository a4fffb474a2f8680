"""Payments are found by whose they are and by the card, whatever code wrote them."""

from __future__ import annotations

import pytest
from tests import set_back
from tests.till import Till

from paydesk.core.paging import Page
from paydesk.domain.business.search_for_team import PaymentSearch, search_payments
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.for_api import PaymentFilter, list_payments
from paydesk.domain.pingbacks.for_api import PingbackFilter, list_pingbacks

GOOD, DECLINED = "4242424242424242", "4000000000000002"


@pytest.fixture
def till(desk: Desk, shop: Shop) -> Till:
    return Till(desk, shop)


async def found(till: Till, text: str) -> list[int]:
    """The ids of all payments that a text finds."""
    return [one.id for one in await search_payments(till.database, till.shop, PaymentSearch(text), Page(10))]


async def test_a_payment_is_found_by_its_customer_and_its_card(till: Till) -> None:
    of_ada = await till.sell("A-1", email="Ada@example.com")
    of_bob = await till.sell("B-1", email="bob@example.com")
    assert await found(till, "ada@example.com") == [of_ada]
    assert await found(till, "bob@example.com") == [of_bob]
    assert await found(till, "4242") == [of_bob, of_ada]


@pytest.mark.parametrize("email", ["İrem@example.com", "ΝΙΚΟΣ@example.com"])
async def test_a_customer_is_found_by_the_address_that_they_typed(till: Till, email: str) -> None:
    """Python makes other letters of it than PostgreSQL."""
    made = await till.sell("A-1", email=email)
    assert await found(till, email) == [made]
    listed = await list_payments(till.database, till.shop, PaymentFilter(email=email), Page(10))
    told = await list_pingbacks(till.database, till.shop, PingbackFilter(email=email), Page(10))
    assert ([one.id for one in listed], [one.payment_id for one in told]) == ([made], [made])


async def test_a_second_try_s_customer_and_card_are_the_payment_s(till: Till) -> None:
    link = await till.order("A-1")
    await till.pay(link, DECLINED, email="ada@example.com")
    (declined,) = await found(till, "ada@example.com")
    assert await found(till, "0002") == [declined]
    await till.pay(link, GOOD, email="ada@home.example")
    assert await found(till, "ada@home.example") == await found(till, "4242") == [declined]
    assert await found(till, "ada@example.com") == await found(till, "0002") == []


async def test_what_code_of_before_wrote_is_found_as_well(till: Till) -> None:
    of_before = await till.sell("A-1")
    await set_back.written_by_code_before(till.database, till.shop.merchant_id)
    of_now = await till.sell("A-2")
    assert await found(till, "ada@example.com") == await found(till, "4242") == [of_now, of_before]


async def test_a_payment_that_code_of_before_tries_again_is_found_by_its_new_customer_and_card(till: Till) -> None:
    tried = await till.sell("A-1", email="ada@example.com")
    other = await till.sell("A-2", email="bob@example.com")
    await set_back.tried_again_by_code_before(till.database, till.shop.merchant_id, tried, people_of=other)
    assert await found(till, "bob@example.com") == await found(till, "4242") == [other, tried]
    assert await found(till, "ada@example.com") == []
