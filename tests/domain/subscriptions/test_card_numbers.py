"""A card number is kept while a subscription will be charged by it, and erased by the statement
that ends the need.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests import shopfront
from tests.banks import HeardBank, ObedientBank, answering
from tests.links import newest_portal
from tests.shopfront import GOOD as APPROVED
from tests.shopfront import MONTHLY
from tests.till import Till

from paydesk.adapters.acquirers.interface import Challenged, DeclineReason, Finding, Outcome, Voided
from paydesk.adapters.acquirers.purchases import CardDetails, Purchase
from paydesk.core.clock import utc_now
from paydesk.domain.billing.card_changes import CardChange, Replaced
from paydesk.domain.billing.card_lookups import settle_card_changes
from paydesk.domain.billing.for_customer import find_holding
from paydesk.domain.billing.replacing_cards import NewCard, replace_card
from paydesk.domain.merchants.customer_links import Link
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.challenges import settle_challenge
from paydesk.domain.payments.checkouts import find_checkout
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.janitor import settle_due
from paydesk.domain.payments.results import Paid, Refused, Unsettled
from paydesk.domain.subscriptions.ending import cancel, expire_due
from paydesk.domain.subscriptions.lifecycle import Subscription
from paydesk.domain.subscriptions.subscription_terms import Terms

TWICE = replace(MONTHLY, limit=2)
ONCE = replace(MONTHLY, limit=1)


def challenging(club: Till) -> Till:
    """The same with a bank that asks to see each customer, who never comes back."""
    bank = ObedientBank()

    async def ask(purchase: Purchase) -> Outcome:
        bank.decided[purchase.key] = Challenged(purchase.key, "https://bank.example/")
        return bank.decided[purchase.key]

    async def end(_of_key: str) -> Finding:
        return Voided()

    return club.at(answering(bank, authorize=ask, end_challenge=end))


@pytest.fixture
def bank_of_club() -> ObedientBank:
    return ObedientBank()


@pytest.fixture
def club(desk: Desk, shop: Shop, bank_of_club: ObedientBank) -> Till:
    return Till(desk, shop).at(bank_of_club)


async def buy(club: Till, terms: Terms | None, *, again: Any = None) -> tuple[Link, Any]:
    """A customer pays for a thing, or for a subscription;
    the checkout's link and what came of it.
    """
    link = await shopfront.order(club.desk.database, club.shop, terms=terms, amount="10.00")
    return link, await shopfront.pay(club.desk, link)


async def give_card(club: Till, subscription: Subscription, change: CardChange | None = None) -> Any:
    new = NewCard(CardDetails(APPROVED, 12, 2040, "Ada Lovelace", "123"), "192.0.2.1", "https://pay.test/back")
    return await replace_card(club.desk, await club.now(subscription), change, new, now=utc_now())


async def kept(club: Till) -> tuple[int, int]:
    """How many card numbers of the shop are there, of how many cards."""
    row = await club.desk.database.fetchrow(
        "select count(number_sealed) as numbers, count(*) as cards from card where merchant_id = $1",
        club.shop.merchant_id,
    )
    assert not await club.desk.database.fetchval(
        "select count(*) from card where merchant_id = $1 and (last4, bin) <> ('4242', '424242')", club.shop.merchant_id
    ), "what shows which card it was stays"
    return row["numbers"], row["cards"]


async def test_what_is_paid_once_needs_no_number(club: Till) -> None:
    assert (await buy(club, None))[1] == Paid()
    assert await kept(club) == (0, 1)


async def test_not_even_an_unknown_outcome_needs_the_number_of_what_is_paid_once(
    club: Till, bank_of_club: ObedientBank
) -> None:
    bank_of_club.lose = "answer"
    assert (await buy(club, None))[1] == Unsettled()
    assert await kept(club) == (0, 1)


async def test_a_running_subscription_keeps_one_number(club: Till) -> None:
    subscription = await club.subscribe()
    await club.charge_due(subscription)
    assert await kept(club) == (1, 1)


async def test_a_declined_first_payment_erases_its_number(club: Till, bank_of_club: ObedientBank) -> None:
    bank_of_club.refuse = DeclineReason.INSUFFICIENT_FUNDS
    token, result = await buy(club, MONTHLY)
    assert result == Refused("insufficient_funds")
    assert await kept(club) == (0, 1)
    bank_of_club.refuse = None
    assert await shopfront.pay(club.desk, token) == Paid()
    assert await kept(club) == (1, 2)


async def test_a_question_that_never_arrived_erases_its_number(club: Till, bank_of_club: ObedientBank) -> None:
    bank_of_club.lose = "question"
    assert (await buy(club, MONTHLY))[1] == Unsettled()
    assert await kept(club) == (1, 1), "it may still have been approved"
    await settle_due(club.desk, now=utc_now() + timedelta(minutes=3))
    assert await kept(club) == (0, 1)


async def test_an_answer_that_is_found_later_keeps_the_number(club: Till, bank_of_club: ObedientBank) -> None:
    bank_of_club.lose = "answer"
    await buy(club, MONTHLY)
    await settle_due(club.desk, now=utc_now() + timedelta(minutes=3))
    assert await kept(club) == (1, 1)


async def test_a_challenge_that_is_left_erases_its_number(club: Till) -> None:
    club = challenging(club)
    token, _ = await buy(club, MONTHLY)
    assert await kept(club) == (1, 1)
    checkout = await find_checkout(club.desk.database, token, now=utc_now())
    assert checkout.attempt is not None
    await settle_challenge(club.desk, checkout, checkout.attempt, now=utc_now())
    assert await kept(club) == (1, 1), "still open"
    await settle_due(club.desk, now=utc_now() + timedelta(hours=2))
    assert await kept(club) == (0, 1)


async def test_a_cancelled_subscription_erases_its_number(club: Till) -> None:
    subscription = await club.subscribe()
    await cancel(club.desk.database, club.shop, subscription.id, by="api", now=utc_now())
    assert await kept(club) == (0, 1)


async def test_a_charge_in_flight_when_it_is_cancelled_stands_without_the_number(
    club: Till, bank_of_club: ObedientBank
) -> None:
    subscription = await club.subscribe()
    bank_of_club.lose = "answer"
    due = (await club.now(subscription)).date_next
    assert due is not None
    await club.charge(due)
    await cancel(club.desk.database, club.shop, subscription.id, by="customer", now=due)
    assert await kept(club) == (0, 1)
    await club.settle_all(minutes=3)
    assert (await club.now(subscription)).counter == 2
    assert len(bank_of_club.kept) == 2


async def test_one_that_stops_after_its_retries_erases_its_number(club: Till, bank_of_club: ObedientBank) -> None:
    subscription = await club.subscribe()
    bank_of_club.refuse = DeclineReason.INSUFFICIENT_FUNDS
    for failures in range(1, 4):
        assert (await club.charge_due(subscription)).failures == failures
        assert await kept(club) == (1, 1), "it is tried again"
    assert (await club.charge_due(subscription)).date_stopped is not None
    assert await kept(club) == (0, 1)


async def test_a_card_that_was_refused_for_good_loses_its_number_at_once(
    club: Till, bank_of_club: ObedientBank
) -> None:
    subscription = await club.subscribe()
    bank_of_club.refuse = DeclineReason.STOLEN_CARD
    await club.charge_due(subscription)
    assert await kept(club) == (0, 1)
    for _ in range(3):
        await club.charge_due(subscription)
    assert len(bank_of_club.asked) == 2, "it is not put to the network again"
    reasons = await club.desk.database.fetch(
        "select distinct decline_reason from payment_attempt where merchant_id = $1 and state = 'declined'",
        club.shop.merchant_id,
    )
    assert [row["decline_reason"] for row in reasons] == ["stolen_card"]


async def test_the_last_payment_that_was_agreed_erases_the_number(club: Till) -> None:
    subscription = await club.subscribe(TWICE)
    assert await kept(club) == (1, 1)
    after = await club.charge_due(subscription)
    assert (after.date_next, after.running) == (None, True)
    assert await kept(club) == (0, 1)
    await expire_due(club.desk.database, real_now=utc_now(), merchant_id=club.shop.merchant_id, at=after.date_end)
    assert not (await club.now(subscription)).running


async def test_a_subscription_of_one_payment_keeps_no_number(club: Till) -> None:
    await club.subscribe(ONCE)
    assert await kept(club) == (0, 1)


async def test_a_replaced_card_loses_its_number(club: Till) -> None:
    subscription = await club.subscribe()
    assert await give_card(club, subscription) == Replaced()
    assert await kept(club) == (1, 2)
    number = "select number_sealed is not null from card c join subscription s on s.card_id = c.id where s.id = $1"
    assert await club.desk.database.fetchval(number, subscription.id), "the new one's is there"
    assert (await club.charge_due(subscription)).counter == 2


@pytest.mark.parametrize("terms", [ONCE, MONTHLY], ids=["nothing left to charge", "ended meanwhile"])
async def test_a_new_card_that_nothing_will_charge_keeps_no_number(
    club: Till, bank_of_club: ObedientBank, terms: Terms
) -> None:
    subscription = await club.subscribe(terms)
    if terms is MONTHLY:

        async def end_meanwhile(purchase: Purchase) -> Outcome:
            await cancel(club.desk.database, club.shop, subscription.id, by="api", now=utc_now())
            return await bank_of_club.authorize(purchase)

        await give_card(club.at(answering(bank_of_club, authorize=end_meanwhile)), subscription)
    else:
        assert await give_card(club, subscription) == Replaced()
    assert await kept(club) == (0, 2)


async def test_a_new_card_that_the_bank_refuses_loses_its_number(club: Till, bank_of_club: ObedientBank) -> None:
    subscription = await club.subscribe()
    bank_of_club.refuse = DeclineReason.INSUFFICIENT_FUNDS
    assert await give_card(club, subscription) == Refused("insufficient_funds")
    assert await kept(club) == (1, 2)


async def test_a_new_card_whose_customer_never_comes_back_loses_its_number(club: Till) -> None:
    subscription = await club.subscribe()
    await give_card(challenging(club), subscription)
    assert await kept(club) == (2, 2)
    await settle_card_changes(challenging(club).desk, now=utc_now() + timedelta(hours=2))
    assert await kept(club) == (1, 2)
    link = await newest_portal(club.desk.database, club.shop.merchant_id)
    holding = await find_holding(club.desk.database, link, now=utc_now())
    assert holding.change is not None
    assert holding.change.state == "abandoned"


async def test_an_acquirer_that_keeps_cards_is_sent_no_number_to_renew(club: Till) -> None:
    bank = HeardBank(ObedientBank(keeps_cards=True))
    club = club.at(bank)
    subscription = await club.subscribe()
    assert await kept(club) == (0, 1)
    assert (await club.charge_due(subscription)).counter == 2
    assert [one.card.number for one in bank.purchases if one.network_reference] == [""]
    await give_card(club, subscription)
    assert await kept(club) == (0, 2)
    assert (await club.charge_due(subscription)).counter == 3
