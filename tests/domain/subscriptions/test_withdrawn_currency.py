"""Money in a currency that has left ISO 4217 since goes on:
renewals, their pingbacks, refunds and the statement.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest
from tests.shopfront import MONTHLY
from tests.till import Till

from paydesk.core.clock import utc_now
from paydesk.core.currencies import is_current
from paydesk.database.pool import Database
from paydesk.domain.ledger.balances import balances
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.refunding import RefundStatus, refund

LEVA = replace(MONTHLY, currency="BGN", price=Decimal("9.90"))


@pytest.fixture
def club(desk: Desk, shop: Shop) -> Till:
    return Till(desk, shop)


async def test_a_subscription_goes_on_as_long_as_the_acquirer_takes_it(club: Till, database: Database) -> None:
    assert not is_current("BGN")
    subscription = await club.subscribe(LEVA)
    renewed = await club.charge_due(subscription)
    assert (renewed.counter, renewed.paid_number_counter) == (2, 2)
    payload = json.loads(
        await database.fetchval(
            "select payload from pingback where merchant_id = $1 order by id desc limit 1", club.shop.merchant_id
        )
    )
    assert payload["subscription"]["price"] == "9.90"


async def test_a_payment_is_refunded_to_the_digit(club: Till, desk: Desk, database: Database) -> None:
    await club.subscribe(LEVA)
    payment_id = await database.fetchval("select id from payment where merchant_id = $1", club.shop.merchant_id)
    now = utc_now() + timedelta(minutes=1)
    done = await refund(desk, club.shop, payment_id, Decimal("4.95"), requested_by="api", now=now)
    assert done.status is RefundStatus.PART
    [balance] = await balances(database, club.shop)
    assert balance.currency == "BGN"
