"""What acquirers keep for customers who are erased, or who remove an instrument, they let go of."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from tests import breaking, set_back
from tests.links import newest_portal
from tests.shopfront import MONTHLY, become_known, save_card, subscription_of
from tests.shopfront import go_on as to_page
from tests.sweeping import database, database_url
from tests.till import Till

from paydesk.adapters.acquirers.interface import Acquirer, AcquirerRefused, OutcomeUnknown
from paydesk.adapters.acquirers.simulator import Bank
from paydesk.adapters.acquirers.simulator.own_pages import Pages, Way
from paydesk.adapters.acquirers.wrapping import PassingAcquirer
from paydesk.core.clock import utc_now
from paydesk.core.errors import NotFound
from paydesk.domain.billing.for_customer import find_holding
from paydesk.domain.billing.replacing_cards import settle_challenge
from paydesk.domain.billing.replacing_on_pages import PortalCaller, go_to_page
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments import outcomes
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.letting_go import ALARMING, ask_unneeded, let_go_due
from paydesk.domain.payments.results import ConfirmWithBank
from paydesk.domain.privacy.belongings import Subject
from paydesk.domain.privacy.erasing import erase
from paydesk.domain.shoppers.instruments import remove, take_back
from paydesk.domain.subscriptions.changing import Changed, cancel_later, pause
from paydesk.domain.subscriptions.ending import cancel
from paydesk.domain.subscriptions.lifecycle import Subscription

__all__ = ["database", "database_url"]


class Keeper(PassingAcquirer):
    """A bank that keeps what was paid with, and says `answers` in turn when it is to let go."""

    def __init__(self, honest: Acquirer) -> None:
        super().__init__(honest)
        self.told: list[str] = []
        self.answers: list[Exception] = []

    async def release_kept(self, reference: str) -> None:
        self.told.append(reference)
        if self.answers:
            raise self.answers.pop(0)


@pytest.fixture(autouse=True)
async def _nothing_waits(desk: Desk) -> None:
    """Of what other tests left."""
    await breaking.nothing_kept(desk.database)


@pytest.fixture
def keeper(desk: Desk) -> Keeper:
    return Keeper(desk.acquirers["simulator"])


@pytest.fixture
def till(desk: Desk, shop: Shop, keeper: Keeper) -> Till:
    return Till(replace(desk, acquirers={"simulator": keeper}), shop)


async def waiting(till: Till) -> int:
    """How many of this test's own shop wait."""
    asked = "select count(*) from kept_release where merchant_id = $1"
    return int(await till.database.fetchval(asked, till.shop.merchant_id))


async def go_on(till: Till) -> None:
    """The janitor's next round, when its time has come."""
    await set_back.times(till.database, "kept_release", {}, due_at=utc_now() - timedelta(hours=1))
    await let_go_due(till.desk, now=utc_now(), most=1000)


async def erased(till: Till) -> str:
    """A customer with a subscription is erased; what the bank keeps of their card."""
    subscription = await till.subscribe()
    kept: str = await till.database.fetchval(
        "select network_reference from subscription where id = $1", subscription.id
    )
    email = await till.database.fetchval("select email from customer order by id desc limit 1")
    await breaking.say(till.database, "pingback", {}, state="acknowledged")
    await erase(till.database, Subject(till.shop.merchant_id, email=email), end=True, again=True, now=utc_now())
    return kept


async def test_what_is_kept_of_an_erased_customer_is_let_go_of_once(till: Till, keeper: Keeper) -> None:
    kept = await erased(till)
    assert await waiting(till) == 1
    assert keeper.told == []
    await let_go_due(till.desk, now=utc_now(), most=1000)
    assert (keeper.told, await waiting(till)) == ([kept], 0)
    await let_go_due(till.desk, now=utc_now(), most=1000)
    assert keeper.told == [kept]


async def test_an_erasure_that_is_repeated_after_a_restore_tells_again(till: Till, keeper: Keeper) -> None:
    kept = await erased(till)
    await go_on(till)
    await breaking.say(till.database, "subscription", {}, network_reference=kept)
    await breaking.say(till.database, "customer", {}, email="ada@example.com")
    subject = Subject(till.shop.merchant_id, email="ada@example.com")
    await erase(till.database, subject, end=True, again=True, now=utc_now())
    await go_on(till)
    assert keeper.told == [kept, kept]


async def test_a_lost_answer_is_asked_for_again_until_there_is_one(till: Till, keeper: Keeper) -> None:
    kept = await erased(till)
    keeper.answers = [OutcomeUnknown("lost"), OutcomeUnknown("lost")]
    await let_go_due(till.desk, now=utc_now(), most=1000)
    await let_go_due(till.desk, now=utc_now(), most=1000)
    assert (keeper.told, await waiting(till)) == ([kept], 1), "not before its time"
    await go_on(till)
    await go_on(till)
    assert (len(keeper.told), await waiting(till)) == (3, 0)


async def test_who_was_killed_in_between_is_followed_by_another(till: Till, keeper: Keeper) -> None:
    await erased(till)
    keeper.answers = [RuntimeError("as if it were killed")]
    await let_go_due(till.desk, now=utc_now(), most=1000)
    soon: datetime = utc_now() + timedelta(hours=1)
    await set_back.times(till.database, "kept_release", {}, leased_until=soon)
    await go_on(till)
    assert len(keeper.told) == 1, "its lease is its own"
    await set_back.times(till.database, "kept_release", {}, leased_until=utc_now() - timedelta(minutes=1))
    await go_on(till)
    assert (len(keeper.told), await waiting(till)) == (2, 0)


async def test_an_acquirer_that_will_not_is_an_alarm_until_it_has(till: Till, keeper: Keeper) -> None:
    kept = await erased(till)
    keeper.answers = [AcquirerRefused("the key may not")] * ALARMING
    for _ in range(ALARMING):
        await go_on(till)
    alarm = "select subject, reason from alarm where kind = 'still_kept' and settled_at is null"
    assert [tuple(one) for one in await till.database.fetch(alarm)] == [(f"{kept} at simulator", "the key may not")]
    await go_on(till)
    assert await waiting(till) == 0
    assert await till.database.fetch(alarm) == []


async def test_an_account_that_is_not_open_is_waited_for(till: Till, keeper: Keeper) -> None:
    await erased(till)
    await let_go_due(replace(till.desk, acquirers={}), now=utc_now(), most=1000)
    assert (keeper.told, await waiting(till)) == ([], 1)


async def test_a_copy_for_staging_tells_nobody_of_live_customers(till: Till, keeper: Keeper) -> None:
    await erased(till)
    await breaking.say(till.database, "kept_release", {}, live=True)
    await breaking.say(till.database, "deployment", {}, copied_at=utc_now())
    await go_on(till)
    await breaking.say(till.database, "deployment", {}, copied_at=None)
    assert (keeper.told, await waiting(till)) == ([], 1)


async def saved(till: Till, bank: Bank) -> tuple[int, int, str]:
    """A shopper, a card that they saved, and what the bank keeps of it."""
    shopper = await become_known(till.desk, till.shop)
    card = await save_card(till.desk, bank, shopper)
    asked = "select a.network_reference from saved_instrument s join payment_attempt a on a.id = s.attempt_id"
    return shopper.id, card, str(await till.database.fetchval(f"{asked} where s.id = $1", card))


async def test_what_a_customer_removes_is_let_go_of(till: Till, keeper: Keeper, bank: Bank) -> None:
    shopper, card, kept = await saved(till, bank)
    assert await remove(till.database, till.shop, shopper, card, now=utc_now())
    assert not await remove(till.database, till.shop, shopper, card, now=utc_now())
    await go_on(till)
    assert (keeper.told, await waiting(till)) == ([kept], 0)


async def test_what_is_still_wanted_for_the_next_visit_stays_kept(till: Till, keeper: Keeper, bank: Bank) -> None:
    shopper, card, _ = await saved(till, bank)
    assert await take_back(till.database, till.shop, shopper, card, now=utc_now())
    assert await waiting(till) == 0


async def test_what_a_subscription_runs_by_stays_kept(till: Till, keeper: Keeper, bank: Bank) -> None:
    shopper, card, kept = await saved(till, bank)
    subscription = await till.subscribe()
    await breaking.say(till.database, "subscription", {"id": subscription.id}, network_reference=kept)
    await remove(till.database, till.shop, shopper, card, now=utc_now())
    assert await waiting(till) == 0


@pytest.mark.parametrize("wish", [cancel_later, pause])
async def test_what_a_subscription_may_yet_run_by_stays_kept(
    till: Till, keeper: Keeper, bank: Bank, wish: Callable[..., Awaitable[Changed]]
) -> None:
    shopper, card, kept = await saved(till, bank)
    subscription = await till.subscribe()
    await breaking.say(till.database, "subscription", {"id": subscription.id}, network_reference=kept)
    await wish(till.database, till.shop, subscription.id, by="customer", now=utc_now())
    await remove(till.database, till.shop, shopper, card, now=utc_now())
    assert await waiting(till) == 0


async def test_nothing_is_asked_where_nobody_was_erased(till: Till) -> None:
    with pytest.raises(NotFound):
        await erase(till.database, Subject(till.shop.merchant_id, email="nobody@example.com"), now=utc_now())
    assert await waiting(till) == 0


async def subscribed_on_page(till: Till, bank: Bank) -> tuple[Subscription, str]:
    """A subscription that began on the bank's own page, and what the bank keeps for it."""
    link = await till.order("club-1", terms=MONTHLY)
    opened = await to_page(till.desk, link)
    assert isinstance(opened, ConfirmWithBank)
    bank.pages.pay(opened.url.rpartition("/")[2], Way.CARD, "4242424242424242")
    await till.settle(minutes=5)
    subscription = await subscription_of(till.database, till.shop, "club-1")
    return subscription, await kept_for(till)


async def kept_for(till: Till) -> str:
    """What the bank keeps for the shop's one subscription."""
    asked = "select c.stored_reference from subscription s join card c on c.id = s.card_id where s.merchant_id = $1"
    return str(await till.database.fetchval(asked, till.shop.merchant_id))


async def look(till: Till) -> None:
    """The hourly look for what nobody needs, and the janitor's next round."""
    await ask_unneeded(till.database, now=utc_now())
    await go_on(till)


async def test_what_a_subscription_was_kept_for_goes_with_its_end(till: Till, keeper: Keeper, bank: Bank) -> None:
    subscription, kept = await subscribed_on_page(till, bank)
    await look(till)
    assert keeper.told == [], "it is charged by it"
    await cancel(till.database, till.shop, subscription.id, by="customer", now=utc_now())
    for _ in range(2):
        await look(till)
    assert (keeper.told, await waiting(till)) == ([kept], 0)


@pytest.mark.parametrize("wish", [cancel_later, pause])
async def test_what_a_subscription_may_yet_be_charged_by_is_not_let_go_of(
    till: Till, keeper: Keeper, bank: Bank, wish: Callable[..., Awaitable[Changed]]
) -> None:
    subscription, _ = await subscribed_on_page(till, bank)
    await wish(till.database, till.shop, subscription.id, by="customer", now=utc_now())
    await look(till)
    assert keeper.told == []


async def test_what_was_replaced_is_let_go_of_and_the_new_one_stays(till: Till, keeper: Keeper, bank: Bank) -> None:
    _, old = await subscribed_on_page(till, bank)
    link = await newest_portal(till.database, till.shop.merchant_id)
    held = await find_holding(till.database, link, now=utc_now())
    where = {"shop_name": "A shop", "base": "https://pay.test"}
    caller = PortalCaller("192.0.2.1")
    opened = await go_to_page(till.desk, held.subscription, held.change, caller, **where, now=utc_now())
    assert isinstance(opened, ConfirmWithBank)
    await look(till)
    assert keeper.told == [], "nothing is replaced yet"
    bank.pages.pay(opened.url.rpartition("/")[2], Way.CARD, "5555555555554444")
    change = (await find_holding(till.database, link, now=utc_now())).change
    assert change is not None
    await settle_challenge(till.desk, change, now=utc_now())
    assert await kept_for(till) != old
    await look(till)
    assert keeper.told == [old]


async def test_what_an_approval_that_waits_will_begin_with_is_not_let_go_of(
    till: Till, keeper: Keeper, bank: Bank, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object, **__: object) -> object:
        raise ValueError("this one can't be recorded")

    opened = await to_page(till.desk, await till.order("club-1", terms=MONTHLY))
    assert isinstance(opened, ConfirmWithBank)
    bank.pages.pay(opened.url.rpartition("/")[2], Way.CARD, "4242424242424242")
    with monkeypatch.context() as broke:
        broke.setattr(outcomes, "_record_approvals", broken)
        await till.settle(minutes=5)
    asked = "select count(*) from card where merchant_id = $1 and stored_reference <> ''"
    assert await till.database.fetchval(asked, till.shop.merchant_id) == 1
    await look(till)
    assert keeper.told == []


async def alarmed(till: Till) -> int:
    """How many of the shop's attempts kept nothing that should have."""
    asked = "select count(*) from alarm where kind = 'nothing_kept' and merchant_id = $1"
    return int(await till.database.fetchval(asked, till.shop.merchant_id))


async def test_a_page_that_should_have_kept_something_and_kept_nothing_is_an_alarm(
    till: Till, bank: Bank, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Pages, "_asks_to_keep", lambda *_: False)
    await subscribed_on_page(till, bank)
    assert await alarmed(till) == 1


async def test_what_is_paid_once_keeps_nothing_and_is_no_alarm(till: Till, bank: Bank) -> None:
    opened = await to_page(till.desk, await till.order())
    assert isinstance(opened, ConfirmWithBank)
    bank.pages.pay(opened.url.rpartition("/")[2], Way.CARD, "4242424242424242")
    await till.settle(minutes=5)
    assert await alarmed(till) == 0
