"""What acquirers keep of typed cards, and of pages that their customers left, is let go of as what
is kept on pages is: once nothing is charged by it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from decimal import Decimal

import pytest
from tests import breaking
from tests.domain.payments.test_letting_go import Keeper, _nothing_waits, go_on, keeper, look, till, waiting
from tests.links import newest_portal
from tests.shopfront import MONTHLY
from tests.shopfront import go_on as to_page
from tests.sweeping import database, database_url
from tests.till import Till

from paydesk.adapters.acquirers.interface import Outcome
from paydesk.adapters.acquirers.purchases import CardDetails, Purchase
from paydesk.adapters.acquirers.simulator import Bank
from paydesk.adapters.acquirers.simulator.own_pages import Way
from paydesk.core.clock import utc_now
from paydesk.core.periods import Period
from paydesk.domain.billing.card_changes import Replaced
from paydesk.domain.billing.for_customer import find_holding
from paydesk.domain.billing.replacing_cards import NewCard, replace_card
from paydesk.domain.payments.letting_go import let_go_due
from paydesk.domain.payments.results import ConfirmWithBank
from paydesk.domain.subscriptions.changing import Changed, cancel_later, pause
from paydesk.domain.subscriptions.ending import cancel
from paydesk.domain.subscriptions.lifecycle import Subscription
from paydesk.domain.subscriptions.subscription_terms import Trial

__all__ = ["_nothing_waits", "database", "database_url", "keeper", "till"]


async def kept_since(till: Till, subscription: Subscription) -> str:
    """What the bank calls a subscription's typed card, for later charges."""
    asked = "select network_reference from subscription where id = $1"
    return str(await till.database.fetchval(asked, subscription.id))


async def type_another(till: Till) -> None:
    """The customer of the shop's one subscription types another card."""
    held = await find_holding(till.database, await newest_portal(till.database, till.shop.merchant_id), now=utc_now())
    card = CardDetails("5555555555554444", 12, 2040, "Ada Lovelace", "123")
    new = NewCard(card, "192.0.2.1", "https://pay.test/back")
    assert isinstance(await replace_card(till.desk, held.subscription, held.change, new, now=utc_now()), Replaced)


async def test_what_is_kept_of_a_typed_card_goes_with_its_subscriptions_end(till: Till, keeper: Keeper) -> None:
    subscription = await till.subscribe()
    kept = await kept_since(till, subscription)
    await look(till)
    assert keeper.told == [], "it is charged by it"
    await cancel(till.database, till.shop, subscription.id, by="customer", now=utc_now())
    for _ in range(2):
        await look(till)
    assert (keeper.told, await waiting(till)) == ([kept], 0)


@pytest.mark.parametrize("wish", [cancel_later, pause])
async def test_what_is_kept_of_a_typed_card_stays_while_it_may_be_charged(
    till: Till, keeper: Keeper, wish: Callable[..., Awaitable[Changed]]
) -> None:
    subscription = await till.subscribe()
    await wish(till.database, till.shop, subscription.id, by="customer", now=utc_now())
    await look(till)
    assert keeper.told == []


async def test_what_is_kept_of_a_typed_card_goes_when_another_is_typed(till: Till, keeper: Keeper) -> None:
    subscription = await till.subscribe()
    old = await kept_since(till, subscription)
    await type_another(till)
    new = await kept_since(till, subscription)
    await let_go_due(till.desk, now=utc_now(), most=1000)
    assert keeper.told == [], "a charge by it may be on its way"
    await look(till)
    assert keeper.told == [old] != [new]
    await cancel(till.database, till.shop, subscription.id, by="customer", now=utc_now())
    await look(till)
    assert sorted(keeper.told) == sorted([old, old, new]), (
        "what was let go of before is told again, which changes nothing"
    )


async def test_a_card_that_is_typed_as_its_subscription_ends_is_let_go_of(
    till: Till, keeper: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    subscription = await till.subscribe()
    honest = keeper.honest

    async def authorize(purchase: Purchase) -> Outcome:
        answer = await honest.authorize(purchase)
        await cancel(till.database, till.shop, subscription.id, by="customer", now=utc_now())
        await look(till)
        return answer

    monkeypatch.setattr(keeper, "authorize", authorize)
    old = await kept_since(till, subscription)
    await type_another(till)
    await look(till)
    asked = "select network_reference from card_change where merchant_id = $1"
    assert set(keeper.told) == {old, await till.database.fetchval(asked, till.shop.merchant_id)}


@pytest.mark.parametrize(
    "trial", [None, Trial(Decimal(0), Period(14, "day"))], ids=["a payment", "nothing but keeping"]
)
async def test_what_a_page_that_was_left_has_kept_is_let_go_of(
    till: Till, keeper: Keeper, bank: Bank, trial: Trial | None
) -> None:
    opened = await to_page(till.desk, await till.order("club-1", terms=replace(MONTHLY, trial=trial)))
    assert isinstance(opened, ConfirmWithBank)
    page = opened.url.rpartition("/")[2]
    bank.pages.pay(page, Way.CARD, "4242424242424242")
    await leave(till)
    kept = (await keeper.find_page(await key_of(till), page)).instrument
    assert kept is not None
    for _ in range(2):
        await till.settle(minutes=5)
        await go_on(till)
    assert await till.attempt_states() == ["voided"]
    assert (keeper.told, await waiting(till)) == ([kept.reference], 0)


async def key_of(till: Till) -> str:
    return str(await till.database.fetchval("select idempotency_key from payment_attempt order by id desc limit 1"))


async def leave(till: Till) -> None:
    """The shop's one payment counts as given up."""
    whose = {"merchant_id": till.shop.merchant_id}
    await breaking.say(till.database, "payment", whose, state="declined")
    await breaking.say(till.database, "payment_attempt", whose, state="abandoned")


async def test_a_late_approval_by_what_is_kept_for_others_lets_go_of_nothing(
    till: Till, keeper: Keeper, bank: Bank
) -> None:
    opened = await to_page(till.desk, await till.order("club-1", terms=MONTHLY))
    assert isinstance(opened, ConfirmWithBank)
    page = opened.url.rpartition("/")[2]
    bank.pages.pay(page, Way.CARD, "4242424242424242")
    await leave(till)
    shown = (await keeper.find_page(await key_of(till), page)).instrument
    assert shown is not None
    whose = {"merchant_id": till.shop.merchant_id}
    await breaking.say(till.database, "card", whose, acquirer="simulator", stored_reference=shown.reference)
    await till.settle(minutes=5)
    await go_on(till)
    assert (await till.attempt_states(), keeper.told) == (["voided"], [])
