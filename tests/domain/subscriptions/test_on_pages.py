"""What a customer pays a subscription with on a page of the acquirer's is kept there, and charged
until the subscription ends.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from tests import shopfront
from tests.proving import check
from tests.shopfront import MONTHLY
from tests.till import Till

from paydesk.adapters.acquirers.hosted_pages import PageRequest
from paydesk.adapters.acquirers.interface import OutcomeUnknown
from paydesk.adapters.acquirers.purchases import Purchase
from paydesk.adapters.acquirers.simulator import Bank
from paydesk.adapters.acquirers.simulator.own_pages import Way
from paydesk.adapters.acquirers.simulator.purchase_state import Standing
from paydesk.adapters.acquirers.simulator.record import Kind
from paydesk.adapters.acquirers.wrapping import PassingAcquirer
from paydesk.core.clock import utc_now
from paydesk.core.periods import Period
from paydesk.domain.merchants.customer_links import Link
from paydesk.domain.payments.challenges import settle_challenge
from paydesk.domain.payments.checkouts import find_checkout
from paydesk.domain.payments.results import ConfirmWithBank, Paid, Result
from paydesk.domain.privacy.belongings import Subject
from paydesk.domain.privacy.erasing import erase
from paydesk.domain.subscriptions.lifecycle import Subscription
from paydesk.domain.subscriptions.states import SubscriptionState
from paydesk.domain.subscriptions.subscription_terms import Terms, Trial

Charges = Callable[[], list[Standing]]

VISA, FAILS_LATER, ASKS = "4242424242424242", "4000000000000341", "4000000000003220"
FREE = replace(MONTHLY, trial=Trial(Decimal(0), Period(14, "day")))
CHEAP = replace(MONTHLY, trial=Trial(Decimal(1), Period(14, "day")))


def page_in(result: Result) -> str:
    assert isinstance(result, ConfirmWithBank)
    return result.url.rpartition("/")[2]


async def come_back(subscriber: Till, link: Link) -> Result:
    checkout = await find_checkout(subscriber.desk.database, link, now=utc_now())
    assert checkout.attempt is not None
    return await settle_challenge(subscriber.desk, checkout, checkout.attempt, now=checkout.now)


async def begin(
    subscriber: Till,
    bank: Bank,
    terms: Terms = MONTHLY,
    way: Way = Way.CARD,
    number: str = VISA,
    order: str = "club",
) -> Subscription:
    """A customer subscribes, choosing on the bank's page what they pay with."""
    link = await shopfront.order(subscriber.desk.database, subscriber.shop, order, terms=terms)
    page = page_in(await shopfront.go_on(subscriber.desk, link, agreed="what the page said"))
    bank.pages.pay(page, way, number)
    bank.pages.decide(page, approve=True)
    assert await come_back(subscriber, link) == Paid()
    return await shopfront.subscription_of(subscriber.desk.database, subscriber.shop, order)


async def kept(subscriber: Till) -> dict[str, Any]:
    """What the subscription is charged by, as it is stored."""
    row = await subscriber.desk.database.fetchrow(
        "select d.brand, d.last4, d.wallet, d.acquirer, d.exp_month, d.exp_year, d.number_sealed, d.stored_reference"
        " from subscription s join card d on d.merchant_id = s.merchant_id and d.id = s.card_id"
        " where s.merchant_id = $1",
        subscriber.shop.merchant_id,
    )
    return dict(row)


class Losing(PassingAcquirer):
    """Loses the answers to requests for a page, or to later charges, once the bank has acted."""

    loses = 0

    def __init__(self, honest: Any) -> None:
        super().__init__(honest)
        self.asked: list[PageRequest] = []

    async def open_page(self, wanted: PageRequest) -> Any:
        self.asked.append(wanted)
        return self._tell(await self.honest.open_page(wanted))

    async def charge_stored(self, purchase: Purchase) -> Any:
        return self._tell(await self.honest.charge_stored(purchase))

    def _tell(self, answer: Any) -> Any:
        if not self.loses:
            return answer
        self.loses -= 1
        raise OutcomeUnknown("the answer was lost")


def losing_at(subscriber: Till) -> Losing:
    gated: Any = subscriber.desk.acquirers["simulator"]
    return Losing(gated.honest)


@pytest.mark.parametrize(
    ("way", "shown"),
    [(Way.CARD, ("visa", "4242", "")), (Way.WALLET, ("visa", "4242", "test_wallet")), (Way.BANK, ("bank", "", ""))],
)
async def test_what_was_paid_with_is_kept_and_renews(
    subscriber: Till, bank: Bank, charges: Charges, way: Way, shown: tuple[str, str, str]
) -> None:
    subscription = await begin(subscriber, bank, way=way)
    assert subscription.state is SubscriptionState.ACTIVE
    stored = await kept(subscriber)
    assert (stored["brand"], stored["last4"], stored["wallet"], stored["acquirer"]) == (*shown, "simulator")
    assert stored["stored_reference"]
    assert stored["number_sealed"] is None
    assert bool(stored["exp_year"]) is (way is not Way.BANK)
    for _ in range(2):
        subscription = await subscriber.charge_due(subscription)
    assert [charge.net for charge in charges()] == [Decimal(10)] * 3
    assert [row["state"] for row in await subscriber.payments()] == ["captured"] * 3
    assert len(await subscriber.told()) == 3
    merchant_id = subscriber.shop.merchant_id
    found = await check(subscriber.desk.database, now=utc_now(), merchant_id=merchant_id, record=bank.record)
    assert [finding.rule.statement for finding in found if finding.found] == []


@pytest.mark.parametrize(("terms", "first"), [(FREE, 0), (CHEAP, 1)], ids=["free", "cheap"])
async def test_a_trial_takes_what_it_costs_and_then_the_price(
    subscriber: Till, bank: Bank, charges: Charges, terms: Terms, first: int
) -> None:
    subscription = await begin(subscriber, bank, terms)
    assert subscription.state is SubscriptionState.TRIAL
    assert sum(charge.net for charge in charges()) == first
    subscription = await subscriber.charge_due(subscription)
    assert subscription.state is SubscriptionState.ACTIVE
    assert sum(charge.net for charge in charges()) == first + 10


async def test_what_was_agreed_to_is_recorded_with_the_subscription(subscriber: Till, bank: Bank) -> None:
    await begin(subscriber, bank)
    agreed = await subscriber.desk.database.fetchval(
        "select terms_agreed from subscription where merchant_id = $1", subscriber.shop.merchant_id
    )
    assert agreed == "what the page said"


async def test_a_card_that_asks_its_customer_once_renews_without_them(
    subscriber: Till, bank: Bank, charges: Charges
) -> None:
    subscription = await begin(subscriber, bank, number=ASKS)
    await subscriber.charge_due(subscription)
    assert len(charges()) == 2


async def test_what_fails_later_is_tried_again_and_stops(subscriber: Till, bank: Bank, charges: Charges) -> None:
    subscription = await begin(subscriber, bank, number=FAILS_LATER)
    for failures in (1, 2, 3):
        subscription = await subscriber.charge_due(subscription)
        assert subscription.failures == failures
    subscription = await subscriber.charge_due(subscription)
    assert not subscription.running
    assert len(charges()) == 1


async def test_pressed_twice_leads_to_the_one_page(subscriber: Till, bank: Bank) -> None:
    link = await shopfront.order(subscriber.desk.database, subscriber.shop, "club", terms=MONTHLY)
    pages = {page_in(await shopfront.go_on(subscriber.desk, link)) for _ in range(2)}
    assert len(pages) == 1


async def test_other_terms_for_the_same_order_get_a_page_of_their_own(
    subscriber: Till, bank: Bank, charges: Charges
) -> None:
    database, shop = subscriber.desk.database, subscriber.shop
    first = await shopfront.order(database, shop, "club", terms=MONTHLY)
    yearly = await shopfront.order(database, shop, "club", terms=replace(MONTHLY, period=Period(1, "year")))
    left = page_in(await shopfront.go_on(subscriber.desk, first))
    page = page_in(await shopfront.go_on(subscriber.desk, yearly))
    assert page != left
    bank.pages.pay(left, Way.CARD, VISA)
    bank.pages.pay(page, Way.CARD, VISA)
    assert await come_back(subscriber, yearly) == Paid()
    subscription = await shopfront.subscription_of(database, shop, "club")
    assert subscription.package.terms.period == Period(1, "year")
    assert [charge.net for charge in charges()] == [Decimal(10)]


@pytest.mark.parametrize("terms", [MONTHLY, FREE], ids=["paid", "free"])
async def test_a_lost_answer_is_asked_for_again_with_just_the_same(subscriber: Till, bank: Bank, terms: Terms) -> None:
    losing = losing_at(subscriber)
    losing.loses = 1
    lossy = subscriber.at(losing)
    link = await shopfront.order(lossy.desk.database, lossy.shop, "club", terms=terms)
    await shopfront.go_on(lossy.desk, link)
    await lossy.settle(seconds=10)
    assert losing.asked[0] == losing.asked[1]
    assert losing.asked[0].keep
    (made,) = [line for line in bank.record.operations() if line.kind is Kind.PAGE]
    bank.pages.pay(made.reference, Way.CARD, VISA)
    await lossy.settle(minutes=2)
    assert (await shopfront.subscription_of(lossy.desk.database, lossy.shop, "club")).running


async def test_a_renewal_whose_answer_was_lost_is_charged_once(subscriber: Till, bank: Bank, charges: Charges) -> None:
    subscription = await begin(subscriber, bank)
    losing = losing_at(subscriber)
    losing.loses = 1
    lossy = subscriber.at(losing)
    await lossy.charge_due(subscription)
    await lossy.settle(seconds=10)
    assert [row["state"] for row in await lossy.payments()] == ["captured", "captured"]
    assert len(charges()) == 2


async def test_a_worker_that_dies_after_its_intent_charges_nothing_twice(
    subscriber: Till, bank: Bank, charges: Charges
) -> None:
    subscription = await begin(subscriber, bank)
    assert subscription.date_next is not None
    await subscriber.die_after_claim(subscription.date_next)
    await subscriber.settle(minutes=5)
    now = await subscriber.now(subscription)
    assert now.date_next is not None
    await subscriber.charge(now.date_next)
    assert len(charges()) == 2


async def test_who_never_comes_back_has_subscribed_all_the_same(subscriber: Till, bank: Bank) -> None:
    link = await shopfront.order(subscriber.desk.database, subscriber.shop, "club", terms=FREE)
    bank.pages.pay(page_in(await shopfront.go_on(subscriber.desk, link)), Way.WALLET, "")
    await subscriber.settle(minutes=2)
    assert (await shopfront.subscription_of(subscriber.desk.database, subscriber.shop, "club")).running


async def test_a_page_that_was_left_begins_nothing(subscriber: Till, bank: Bank, charges: Charges) -> None:
    link = await shopfront.order(subscriber.desk.database, subscriber.shop, "club", terms=FREE)
    page = page_in(await shopfront.go_on(subscriber.desk, link))
    assert isinstance(await shopfront.pay(subscriber.desk, link), Paid)
    bank.pages.pay(page, Way.CARD, VISA)
    await subscriber.settle(minutes=2)
    rows = await subscriber.desk.database.fetch(
        "select id from subscription where merchant_id = $1", subscriber.shop.merchant_id
    )
    assert len(rows) == 1
    assert not charges()


async def test_the_reference_is_erased_with_the_customer(subscriber: Till, bank: Bank) -> None:
    await begin(subscriber, bank)
    reference, database = (await kept(subscriber))["stored_reference"], subscriber.desk.database
    await erase(database, Subject(subscriber.shop.merchant_id, email="ada@example.com"), again=True, now=utc_now())
    assert (await kept(subscriber))["stored_reference"] == ""
    for table in ("subscription", "payment_attempt", "card"):
        rows = await database.fetch(f"select * from {table} where merchant_id = $1", subscriber.shop.merchant_id)
        assert reference not in str([dict(row) for row in rows])
