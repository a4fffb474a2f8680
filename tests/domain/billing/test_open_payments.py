from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from msgspec import structs
from tests.links import newest_portal
from tests.till import Till

from paydesk.core.clock import utc_now
from paydesk.domain.billing.for_customer import Holding, find_holding
from paydesk.domain.billing.open_payments import Standing, standing_of

FAILS_LATER = "4000000000000341"


@pytest.fixture
async def held(subscriber: Till) -> Holding:
    """A subscription whose second payment failed once; the next try is to come."""
    subscription = await subscriber.subscribe(number=FAILS_LATER)
    await subscriber.charge_due(subscription)
    link = await newest_portal(subscriber.database, subscriber.shop.merchant_id)
    return await find_holding(subscriber.database, link, now=utc_now())


def test_what_failed_may_be_paid(held: Holding) -> None:
    assert standing_of(held, 2) is Standing.OPEN


def test_only_the_period_that_failed_is_open(held: Holding) -> None:
    assert standing_of(held, 1) is Standing.PAID
    assert standing_of(held, 3) is Standing.NOTHING


def test_what_is_charged_just_now_is_not_paid_once_more(held: Holding) -> None:
    assert standing_of(replace(held, charging=True), 2) is Standing.CHARGING
    due = held.subscription.date_next
    assert due is not None
    assert standing_of(replace(held, now=due), 2) is Standing.CHARGING
    assert standing_of(replace(held, now=due - timedelta(seconds=1)), 2) is Standing.OPEN


def test_a_shop_that_may_not_charge_is_not_paid(held: Holding) -> None:
    assert standing_of(replace(held, suspended=True), 2) is Standing.SUSPENDED
    assert standing_of(replace(held, suspended=True), 1) is Standing.PAID


def test_what_never_failed_is_not_open(held: Holding) -> None:
    assert (
        standing_of(replace(held, subscription=structs.replace(held.subscription, failures=0)), 2) is Standing.NOTHING
    )
