"""The database is put back to before a renewal, and the subscription is paused before that is made
again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from functools import partial

import pytest
from tests import breaking
from tests.domain.operations.books import Books
from tests.shopfront import MONTHLY
from tests.standings import standings
from tests.till import Till

from paydesk.adapters.acquirers.simulator import Bank, remembering
from paydesk.core.periods import Period
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk
from paydesk.domain.subscriptions.balances import find_balance
from paydesk.domain.subscriptions.changing import Changed, cancel_later, pause, resume
from paydesk.domain.subscriptions.changing_plans import Plan, Prorating, change_plan
from paydesk.domain.subscriptions.lifecycle import Subscription
from paydesk.domain.subscriptions.subscription_terms import Terms, Trial

DAY = timedelta(days=1)
TRIAL = replace(MONTHLY, trial=Trial(Decimal(1), Period(14, "day")))


async def forget_renewal(till: Till, begun: Subscription) -> None:
    database, merchant_id = till.database, till.shop.merchant_id
    (renewal,) = [row["id"] for row in await till.payments() if row["renewal"]]
    await breaking.forget(database, merchant_id, "pingback", "ledger_entry", "payment_attempt", payment_id=renewal)
    await breaking.forget(database, merchant_id, "payment", id=renewal)
    names = ("date_next", "next_period", "counter", "paid_number_counter", "date_paid", "date_active")
    before = {name: getattr(begun, name) for name in names}
    await breaking.say(database, "subscription", {"id": begun.id}, state=str(begun.state), **before)


def taken(bank: Bank) -> int:
    return len([one for one in standings(bank.record.operations()).values() if one.captured])


@pytest.mark.parametrize("terms", [MONTHLY, TRIAL], ids=["paid", "trial"])
async def test_a_forgotten_renewal_is_not_made_again_after_a_pause(
    subscriber: Till, bank: Bank, terms: Terms, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pause moves the day, so that the bank has forgotten the key of what was charged before."""
    begun = await subscriber.subscribe(terms)
    assert begun.date_next is not None
    await subscriber.charge(begun.date_next)
    before = taken(bank)
    await forget_renewal(subscriber, begun)
    at = begun.date_next - DAY
    await pause(subscriber.database, subscriber.shop, begun.id, by="api", now=at)
    await resume(subscriber.database, subscriber.shop, begun.id, now=at + 60 * DAY)
    monkeypatch.setattr(remembering, "KEY_LIFETIME", timedelta(0))
    assert (await subscriber.charge_due(begun)).next_period == begun.next_period + 1
    assert taken(bank) == before
    assert await subscriber.problems() == []


@pytest.mark.parametrize("wish", [pause, cancel_later])
async def test_a_forgotten_renewal_that_is_adopted_meanwhile_counts(
    desk: Desk, shop: Shop, wish: Callable[..., Awaitable[Changed]]
) -> None:
    await breaking.paid_elsewhere(desk.database)
    await breaking.no_alarms(desk.database)
    books = Books(desk, shop)
    begun = await books.subscribe()
    assert begun.date_next is not None
    await books.charge(begun.date_next)
    await forget_renewal(books, begun)
    await wish(books.database, books.shop, begun.id, by="api", now=begun.date_start)
    await books.compare(fix=True)
    now = await books.now(begun)
    assert (now.next_period, now.date_next) == (3, None)
    assert await books.problems() == []


async def test_a_forgotten_renewal_that_charged_a_balance_is_adopted_with_it(desk: Desk, shop: Shop) -> None:
    await breaking.paid_elsewhere(desk.database)
    await breaking.no_alarms(desk.database)
    books = Books(desk, shop)
    begun = await books.subscribe()
    assert begun.date_next is not None
    half = begun.date_start + (begun.date_next - begun.date_start) / 2
    dearer = Plan(price=f"{begun.package.terms.price * 2}")
    change = partial(change_plan, at_once=True, prorating=Prorating.NEXT_CHARGE)
    await change(books.database, books.shop, begun.id, dearer, by="api", now=half)
    changed = await books.now(begun)
    prorated = await find_balance(books.database, books.shop, begun.id)
    assert prorated > 0
    await books.charge(begun.date_next)
    left = await find_balance(books.database, books.shop, begun.id)
    await forget_renewal(books, changed)
    await breaking.say(books.database, "subscription", {"id": begun.id}, balance=prorated)
    await books.compare(fix=True)
    assert (await books.now(begun)).next_period == 3
    assert await find_balance(books.database, books.shop, begun.id) == left
    assert await books.problems() == []
