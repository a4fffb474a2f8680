"""A chargeback that is not won ends the subscription behind it,
at whatever stage it is first heard of.
"""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from tests import set_back
from tests.banks import ObedientBank
from tests.domain.chargebacks.telling import TellingBank
from tests.till import Till

from paydesk.adapters.acquirers.disputes import Dispute, DisputeStatus
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.chargebacks import reading_acquirers
from paydesk.domain.chargebacks.reading_acquirers import read_disputes
from paydesk.domain.subscriptions.states import SubscriptionState

OPEN, WON, LOST, INQUIRY = DisputeStatus.OPEN, DisputeStatus.WON, DisputeStatus.LOST, DisputeStatus.INQUIRY


@pytest.mark.parametrize(
    ("steps", "ends"),
    [
        ([OPEN], True),
        ([OPEN, LOST], True),
        ([LOST], True),
        ([INQUIRY, LOST], True),
        ([OPEN, WON], False),
        ([WON], False),
        ([INQUIRY], False),
    ],
)
async def test_a_subscription_ends_for_a_chargeback_that_is_not_won(
    subscriber: Till, database: Database, steps: list[DisputeStatus], ends: bool
) -> None:
    await set_back.banks_tell_again(database)
    bank = TellingBank(ObedientBank())
    club = subscriber.at(bank)
    subscription = await club.subscribe()
    key = await database.fetchval(
        "select idempotency_key from payment_attempt where payment_id = $1", subscription.init_payment_id
    )
    bank.pages = [[Dispute("dp", key, Decimal(10), "USD", "fraudulent", step, utc_now()) for step in steps]]
    await read_disputes(club.desk, now=utc_now())
    now = await club.now(subscription)
    assert (now.state is SubscriptionState.CANCELLED, now.date_next is None) == (ends, ends)


async def test_a_partly_won_chargeback_ends_it_too(subscriber: Till, database: Database) -> None:
    await set_back.banks_tell_again(database)
    bank = TellingBank(ObedientBank())
    club = subscriber.at(bank)
    subscription = await club.subscribe()
    key = await database.fetchval(
        "select idempotency_key from payment_attempt where payment_id = $1", subscription.init_payment_id
    )
    moved: dict[str, Any] = {"taken": Decimal(10), "returned": Decimal(4)}
    bank.pages = [[Dispute("dp", key, Decimal(10), "USD", "fraudulent", LOST, utc_now(), **moved)]]
    await read_disputes(club.desk, now=utc_now())
    assert (await club.now(subscription)).state is SubscriptionState.CANCELLED


async def test_one_that_can_not_be_ended_stops_no_reading_and_is_ended_later(
    subscriber: Till, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    await set_back.banks_tell_again(database)
    bank = TellingBank(ObedientBank())
    club = subscriber.at(bank)
    subscription = await club.subscribe()
    key = await database.fetchval(
        "select idempotency_key from payment_attempt where payment_id = $1", subscription.init_payment_id
    )
    bank.pages = [[Dispute("dp", key, Decimal(10), "USD", "fraudulent", OPEN, utc_now())]]
    tried = []

    async def breaks(*_: Any, **__: Any) -> None:
        tried.append(1)
        raise ValueError("nobody can work it out")

    with monkeypatch.context() as patch:
        patch.setattr(reading_acquirers, "cancel", breaks)
        for _ in range(3):
            await read_disputes(club.desk, now=utc_now())
    assert len(tried) == 1, "what is set aside is left alone for an hour"
    alarms = "select subject from alarm where merchant_id = $1 and kind = 'set_aside' and settled_at is null"
    assert len(await database.fetch(alarms, subscriber.shop.merchant_id)) == 1
    await read_disputes(club.desk, now=utc_now() + timedelta(hours=2))
    assert (await club.now(subscription)).state is SubscriptionState.CANCELLED
