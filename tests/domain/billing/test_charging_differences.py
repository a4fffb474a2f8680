"""A plan changes within a period, and the difference is charged at once: once, and exactly."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests import breaking
from tests.banks import ObedientBank, answering, ending_in
from tests.domain.operations.books import Books
from tests.domain.subscriptions.test_changing_plans import DAY, PRO, amounts, due, renewed, to
from tests.domain.subscriptions.test_prorating import THIRTY_DAYS, balance, prorated
from tests.proving import check
from tests.shopfront import MONTHLY
from tests.till import Till

from paydesk.adapters.acquirers.interface import DeclineReason, OutcomeUnknown
from paydesk.core.clock import utc_now
from paydesk.core.errors import Busy, Conflict
from paydesk.core.periods import Period
from paydesk.domain.billing import charging_differences
from paydesk.domain.billing.charged_cards import ChargedCard, find_charged_card
from paydesk.domain.billing.charging_differences import AtOnce, change_and_charge
from paydesk.domain.billing.charging_saved import NotCharged
from paydesk.domain.billing.differences import ChangedAtOnce
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk
from paydesk.domain.subscriptions import balances, changing_plans
from paydesk.domain.subscriptions.changing import cancel_later, pause
from paydesk.domain.subscriptions.changing_plans import Plan
from paydesk.domain.subscriptions.ending import cancel
from paydesk.domain.subscriptions.lifecycle import Subscription

FAILS_LATER = "4000000000000341"
TEN = 10 * DAY


async def charged(
    till: Till, begun: Subscription, plan: Plan = PRO, at: datetime | None = None, **how: Any
) -> ChangedAtOnce:
    wish = AtOnce(begun.id, plan, "api", at or begun.date_start + TEN, **how)
    return await change_and_charge(till.desk, till.shop, wish)


async def wrong(till: Till) -> list[str]:
    """What `paydesk check` finds without the simulated bank as its witness."""
    found = await check(till.database, now=utc_now(), merchant_id=till.shop.merchant_id)
    return [f"{one.rule.statement}: {one.differences}" for one in found if one.found]


def orders(rows: list[Any]) -> list[tuple[str, str, Decimal]]:
    return [(row["merchant_order_id"], row["state"], row["amount"]) for row in rows]


async def test_the_difference_is_charged_now_and_the_next_period_on_its_day(subscriber: Till, charges: Any) -> None:
    begun = await subscriber.subscribe(THIRTY_DAYS)
    seen = await charged(subscriber, begun, preview=True)
    assert (seen.difference.amount, seen.difference.payment_id) == (Decimal("13.33"), None)
    assert seen.changed.proration is not None
    assert (await subscriber.now(begun), amounts(charges)) == (begun, [Decimal(10)])
    done = await charged(subscriber, begun)
    assert (done.difference.amount, done.difference.is_open) == (Decimal("13.33"), False)
    assert done.changed.proration == seen.changed.proration
    now = await subscriber.now(begun)
    assert now == done.changed.subscription
    assert (now.package.terms.price, now.date_next, now.counter) == (Decimal(30), begun.date_next, 1)
    assert await balance(subscriber, begun) == Decimal("0.0033")
    assert amounts(charges) == [Decimal(10), Decimal("13.33")]
    assert orders(await subscriber.payments())[1:] == [("club-1:plan-1", "captured", Decimal("13.33"))]
    assert await subscriber.problems() == []
    await renewed(subscriber, now)
    assert amounts(charges) == [Decimal(10), Decimal("13.33"), Decimal(30)]
    assert await balance(subscriber, begun) == Decimal("0.0033")
    assert await subscriber.problems() == []


EXAMPLES = (Path(__file__).parents[3] / "docs" / "integrate.md").read_text().split("| charged now | next charges |")[1]


@pytest.mark.parametrize("row", EXAMPLES.split("\n\n")[0].splitlines()[2:])
async def test_the_examples_of_the_docs_are_charged_so(subscriber: Till, charges: Any, row: str) -> None:
    begins, length, after, old, new, now, later, left = [cell.strip() for cell in row.strip("|").split("|")]
    period = Period(1, "month") if "month" in length else Period(30, "day")
    at = datetime(2027, *{"1 June": (6, 1), "31 January": (1, 31)}[begins], tzinfo=UTC)
    begun = await subscriber.subscribe(replace(MONTHLY, period=period, price=Decimal(old)), now=at)
    done = await charged(subscriber, begun, Plan(price=new), at + int(after.split()[0]) * DAY)
    assert f"{done.difference.amount:.2f}" == now
    current = await subscriber.now(begun)
    for said in later.split(", "):
        amount, _, day = said.partition(" on ")
        assert not day or f"{due(current):%-d %B}" == day
        current = await renewed(subscriber, current)
        assert (await subscriber.payments())[-1]["amount"] == Decimal(amount)
    assert await balance(subscriber, begun) == Decimal(left)
    assert await subscriber.problems() == []


async def test_its_pingback_is_of_an_order_of_its_own(subscriber: Till) -> None:
    begun = await subscriber.subscribe(THIRTY_DAYS)
    done = await charged(subscriber, begun)
    (told,) = await subscriber.told(done.difference.payment_id)
    assert (told["event"], "subscription" in told) == ("payment", False)
    assert told["payment_order"]["merchant_order_id"] == "club-1:plan-1"
    assert told["payment_order"]["paid_amount"] == Decimal("13.33")


async def test_one_that_is_cancelled_meanwhile_has_ended(
    subscriber: Till, charges: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its card's number goes with it: nobody is told that the card can't be charged any more."""
    begun = await subscriber.subscribe(THIRTY_DAYS)
    named = (subscriber.database, subscriber.shop, begun.id)

    async def find_late(*asked: Any) -> ChargedCard:
        await cancel(*named, by="customer", now=begun.date_start + TEN)
        return await find_charged_card(*asked)

    monkeypatch.setattr(charging_differences, "find_charged_card", find_late)
    with pytest.raises(Conflict, match="has ended"):
        await charged(subscriber, begun)
    assert amounts(charges) == [Decimal(10)]


async def test_what_was_charged_can_be_given_back_and_is_bounded(subscriber: Till) -> None:
    begun = await subscriber.subscribe(THIRTY_DAYS)
    payment_id = (await charged(subscriber, begun)).difference.payment_id
    assert payment_id is not None
    await subscriber.give_back(payment_id, "3.33")
    with pytest.raises(Exception, match=r"10\.00 USD|at most"):
        await subscriber.give_back(payment_id, "10.01")
    with pytest.raises(Conflict, match="given back"):
        await charged(subscriber, begun, Plan(price="40.00"))
    assert await subscriber.problems() == []


async def test_changed_twice_in_a_period_each_difference_has_its_order(subscriber: Till, charges: Any) -> None:
    begun = await subscriber.subscribe(THIRTY_DAYS)
    await charged(subscriber, begun)
    await charged(subscriber, begun, Plan(price="60.00"), begun.date_start + 20 * DAY)
    assert amounts(charges) == [Decimal(10), Decimal("13.33"), Decimal(10)]
    assert [row[0] for row in orders(await subscriber.payments())[1:]] == ["club-1:plan-1", "club-1:plan-2"]
    # A third at each price: 100 / 3, of which 33.33 were charged.
    assert await balance(subscriber, begun) == Decimal("0.0033")
    assert await subscriber.problems() == []


async def test_declined_the_plan_stays_and_the_next_try_has_the_same_order(subscriber: Till, charges: Any) -> None:
    begun = await subscriber.subscribe(THIRTY_DAYS, FAILS_LATER)
    for number in (1, 2):
        with pytest.raises(NotCharged, match=r"declined \(.+\): nothing was taken, and .* keeps its plan"):
            await charged(subscriber, begun)
        assert await subscriber.now(begun) == begun
        assert (await subscriber.attempt_states())[1:] == ["declined"] * number
        assert await subscriber.problems() == []
    assert orders(await subscriber.payments())[1:] == [("club-1:plan-1", "declined", Decimal("13.33"))]
    assert await balance(subscriber, begun) == 0
    # Its renewal is tried by the card that it has: the number was not erased with that charge.
    assert await subscriber.charge(due(begun)) == 1


async def test_a_lost_answer_holds_back_the_renewal_until_it_is_known(subscriber: Till, charges: Any) -> None:
    begun = await subscriber.subscribe(THIRTY_DAYS)
    bank = subscriber.desk.acquirer_for(live=False)

    async def lost(purchase: Any) -> Any:
        await bank.charge_stored(purchase)
        raise OutcomeUnknown("the answer was lost")

    losing = subscriber.at(answering(bank, charge_stored=lost))
    done = await charged(losing, begun, request_key="key-1")
    assert (done.difference.is_open, done.changed.moved) == (True, False)
    assert (await subscriber.now(begun)).package == begun.package
    assert await subscriber.problems() == []
    again = replace(done, difference=replace(done.difference, again=True))
    assert await charged(losing, begun, request_key="key-1") == again
    for wish in (charged(losing, begun), to(subscriber, begun), charged(losing, begun, request_key="key-2")):
        with pytest.raises(Busy, match="being charged"):
            await wish
    assert await subscriber.charge(due(begun)) == 0
    await subscriber.settle_all(minutes=1)
    now = await subscriber.now(begun)
    assert (now.package.terms.price, now.date_next) == (Decimal(30), begun.date_next)
    again = await charged(subscriber, begun, request_key="key-1")
    assert (again.difference.is_open, again.difference.payment_id) == (False, done.difference.payment_id)
    assert amounts(charges) == [Decimal(10), Decimal("13.33")]
    assert await subscriber.problems() == []
    await renewed(subscriber, now)
    assert amounts(charges) == [Decimal(10), Decimal("13.33"), Decimal(30)]
    assert await balance(subscriber, begun) == Decimal("0.0033")
    assert await subscriber.problems() == []


async def test_what_never_reached_the_bank_is_given_up_and_undone_if_it_turns_up(
    subscriber: Till, obedient: ObedientBank
) -> None:
    till = subscriber.at(obedient)
    begun = await till.subscribe(THIRTY_DAYS)
    obedient.lose, obedient.hide = "answer", True
    assert (await charged(till, begun)).difference.is_open
    obedient.lose, obedient.hide = "", False
    await till.settle_all(minutes=3)
    now = await till.now(begun)
    assert now == begun
    assert (await till.attempt_states())[1:] == ["failed"]
    assert await wrong(till) == []
    obedient.hidden.clear()
    for minutes in (5, 10, 70):
        await till.settle_all(minutes=minutes)
    assert (await till.attempt_states())[1:] == ["voided"]
    assert await till.now(begun) == begun
    assert len(obedient.kept) == 1
    assert await wrong(till) == []


async def test_cancelled_while_it_is_charged_it_stays_cancelled_and_the_money_counts(subscriber: Till) -> None:
    begun = await subscriber.subscribe(THIRTY_DAYS)
    bank = subscriber.desk.acquirer_for(live=False)

    async def lost(purchase: Any) -> Any:
        await bank.charge_stored(purchase)
        raise OutcomeUnknown("the answer was lost")

    await charged(subscriber.at(answering(bank, charge_stored=lost)), begun)
    await cancel(subscriber.database, subscriber.shop, begun.id, by="customer", now=begun.date_start + TEN)
    await subscriber.settle_all(minutes=1)
    now = await subscriber.now(begun)
    assert (now.state, now.package.terms.price, now.date_next) == ("Cancelled", Decimal(30), None)
    assert await subscriber.events() == ["payment", "subscription_cancelled", "payment"]
    assert await subscriber.problems() == []


async def test_a_change_that_was_to_come_is_replaced_once_it_is_paid(subscriber: Till) -> None:
    begun = await subscriber.subscribe(THIRTY_DAYS)
    waiting = await cancel_later(subscriber.database, subscriber.shop, begun.id, by="api", now=begun.date_start)
    done = await charged(subscriber, begun)
    assert done.changed.replaced == waiting.subscription.change
    now = await subscriber.now(begun)
    assert (now.change, now.date_next) == (None, begun.date_next)
    assert await subscriber.problems() == []
    await renewed(subscriber, now)
    assert await subscriber.problems() == []


async def test_declined_a_change_that_was_to_come_still_comes(subscriber: Till) -> None:
    begun = await subscriber.subscribe(THIRTY_DAYS, FAILS_LATER)
    waiting = await cancel_later(subscriber.database, subscriber.shop, begun.id, by="api", now=begun.date_start)
    with pytest.raises(NotCharged):
        await charged(subscriber, begun)
    assert await subscriber.now(begun) == waiting.subscription
    assert await subscriber.problems() == []


@pytest.mark.parametrize(
    ("first", "plan", "left"),
    [("10.00", Plan(price="10.60"), "0.4"), ("30.00", Plan(price="5.00"), "-16.6667")],
    ids=["too little", "a credit"],
)
async def test_too_little_and_a_credit_wait_in_the_balance(
    subscriber: Till, charges: Any, first: str, plan: Plan, left: str
) -> None:
    begun = await subscriber.subscribe(replace(THIRTY_DAYS, price=Decimal(first)))
    done = await charged(subscriber, begun, plan)
    assert (done.difference.amount, done.changed.moved) == (Decimal(0), True)
    assert await balance(subscriber, begun) == Decimal(left)
    assert amounts(charges) == [Decimal(first)]
    assert await subscriber.problems() == []


async def test_a_balance_is_charged_with_it(subscriber: Till, charges: Any) -> None:
    begun = await subscriber.subscribe(THIRTY_DAYS)
    await prorated(subscriber, begun, Plan(price="10.60"), begun.date_start + TEN)
    await charged(subscriber, begun)
    assert amounts(charges) == [Decimal(10), Decimal("13.33")]
    assert await balance(subscriber, begun) == Decimal("0.0033")
    assert await subscriber.problems() == []


async def test_one_of_many_at_once_charges(subscriber: Till, charges: Any) -> None:
    begun = await subscriber.subscribe(THIRTY_DAYS)
    answers = await asyncio.gather(*(charged(subscriber, begun) for _ in range(12)), return_exceptions=True)
    assert [one for one in answers if not isinstance(one, ChangedAtOnce | Conflict)] == []
    assert amounts(charges) == [Decimal(10), Decimal("13.33")]
    assert await subscriber.problems() == []


async def test_one_key_charges_once_and_is_of_one_subscription(subscriber: Till, charges: Any) -> None:
    begun = await subscriber.subscribe(THIRTY_DAYS)
    other = await subscriber.subscribe(THIRTY_DAYS, order="club-2")
    answers = await asyncio.gather(*(charged(subscriber, begun, request_key="key-1") for _ in range(8)))
    assert {one.difference.payment_id for one in answers if one.changed.moved} == {answers[0].difference.payment_id}
    with pytest.raises(Conflict, match="another request"):
        await charged(subscriber, other, request_key="key-1")
    assert amounts(charges) == [Decimal(10), Decimal(10), Decimal("13.33")]


async def test_one_key_for_two_subscriptions_at_once_charges_one(
    subscriber: Till, charges: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other hears what it would have heard a moment later, and nothing of it has changed."""
    begun, other = [await subscriber.subscribe(THIRTY_DAYS, order=order) for order in ("club-1", "club-2")]
    begin = charging_differences.queries.begin_difference
    ready = asyncio.Barrier(2)

    async def together(*asked: Any, **named: Any) -> Any:
        await ready.wait()
        return await begin(*asked, **named)

    monkeypatch.setattr(charging_differences.queries, "begin_difference", together)
    wishes = (charged(subscriber, one, request_key="key-1") for one in (begun, other))
    answers = await asyncio.gather(*wishes, return_exceptions=True)
    (refused,) = [one for one in answers if not isinstance(one, ChangedAtOnce)]
    assert isinstance(refused, Conflict)
    assert "came with another request before" in str(refused)
    assert amounts(charges) == [Decimal(10), Decimal(10), Decimal("13.33")]
    loser = other if isinstance(answers[0], ChangedAtOnce) else begun
    kept = await subscriber.now(loser)
    assert (kept.package.terms, kept.date_next, kept.revision) == (loser.package.terms, loser.date_next, loser.revision)
    assert await subscriber.problems() == []
    # Under a key of its own it is changed as any other.
    monkeypatch.setattr(charging_differences.queries, "begin_difference", begin)
    assert (await charged(subscriber, loser, request_key="key-2")).changed.moved


async def test_a_wish_that_comes_again_as_it_is_carried_out_hears_of_the_same_charge(
    subscriber: Till, charges: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The subscription was read as it stood before, and what was paid for as it stands after."""
    begun, look = await subscriber.subscribe(THIRTY_DAYS), balances.find_paid_period
    first = list[ChangedAtOnce]()

    async def meanwhile(*asked: Any) -> Any:
        monkeypatch.setattr(changing_plans, "find_paid_period", look)
        first.append(await charged(subscriber, begun, request_key="key-1"))
        return await look(*asked)

    monkeypatch.setattr(changing_plans, "find_paid_period", meanwhile)
    again = await charged(subscriber, begun, request_key="key-1")
    assert [one.difference.payment_id for one in first] == [again.difference.payment_id]
    assert amounts(charges) == [Decimal(10), Decimal("13.33")]


async def test_a_wish_that_charges_nothing_comes_again_as_it_is_carried_out(
    subscriber: Till, charges: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing tells of its key: it is looked at anew, and is as it is wished already."""
    begun, look = await subscriber.subscribe(THIRTY_DAYS), balances.find_paid_period
    cheaper = Plan(price="5.00")

    async def meanwhile(*asked: Any) -> Any:
        monkeypatch.setattr(changing_plans, "find_paid_period", look)
        await charged(subscriber, begun, cheaper, request_key="key-1")
        return await look(*asked)

    monkeypatch.setattr(changing_plans, "find_paid_period", meanwhile)
    again = await charged(subscriber, begun, cheaper, request_key="key-1")
    assert again.changed.subscription == await subscriber.now(begun)
    assert again.changed.subscription.package.terms.price == 5
    assert (amounts(charges), await subscriber.problems()) == ([Decimal(10)], [])


async def test_a_wish_that_comes_again_as_it_is_begun_hears_of_the_same_charge(
    subscriber: Till, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = await subscriber.subscribe(THIRTY_DAYS)
    bank, look = subscriber.desk.acquirer_for(live=False), charging_differences._again
    looks = list[None]()

    async def lost(_: Any) -> Any:
        raise OutcomeUnknown("the answer was lost")

    async def too_early(*asked: Any) -> Any:
        looks.append(None)
        return None if len(looks) == 1 else await look(*asked)

    till = subscriber.at(answering(bank, charge_stored=lost))
    done = await charged(till, begun, request_key="key-1")
    monkeypatch.setattr(charging_differences, "_again", too_early)
    again = await charged(till, begun, request_key="key-1")
    assert again == replace(done, difference=replace(done.difference, again=True))


@pytest.mark.parametrize("of_revision", [False, True])
async def test_a_wish_that_comes_twice_at_once_hears_of_its_charge_though_that_is_done_by_now(
    subscriber: Till, charges: Any, monkeypatch: pytest.MonkeyPatch, *, of_revision: bool
) -> None:
    begun = await subscriber.subscribe(THIRTY_DAYS)
    wish: dict[str, Any] = {"request_key": "key-1", "revision": begun.revision if of_revision else None}
    look, looks = charging_differences._again, list[None]()

    async def too_early(*asked: Any) -> Any:
        looks.append(None)
        return None if len(looks) == 1 else await look(*asked)

    done = await charged(subscriber, begun, **wish)
    monkeypatch.setattr(charging_differences, "_again", too_early)
    again = await charged(subscriber, begun, **wish)
    assert again == replace(done, difference=replace(done.difference, again=True))
    assert amounts(charges) == [Decimal(10), Decimal("13.33")]
    # Another wish is not taken for it.
    assert not (await charged(subscriber, begun, request_key="key-2")).changed.moved


async def test_what_can_not_be_charged_now_is_refused(subscriber: Till, charges: Any) -> None:
    begun = await subscriber.subscribe(THIRTY_DAYS)
    with pytest.raises(Conflict, match="not paid yet"):
        await charged(subscriber, begun, at=due(begun))
    await pause(subscriber.database, subscriber.shop, begun.id, by="api", now=begun.date_start + DAY)
    with pytest.raises(Conflict, match="is paused"):
        await charged(subscriber, begun)
    assert Decimal("13.33") not in amounts(charges)


async def test_a_failing_subscription_is_refused(subscriber: Till) -> None:
    begun = await subscriber.subscribe(THIRTY_DAYS, FAILS_LATER)
    await subscriber.charge(due(begun))
    with pytest.raises(Conflict, match="not paid yet"):
        await charged(subscriber, begun)


async def test_a_slow_method_is_refused(subscriber: Till) -> None:
    begun = await subscriber.subscribe(THIRTY_DAYS)
    await breaking.say(subscriber.database, "card", {"merchant_id": subscriber.shop.merchant_id}, slow=True)
    with pytest.raises(Conflict, match="direct debit"):
        await charged(subscriber, begun)


async def test_a_request_that_is_refused_is_a_decline(subscriber: Till, obedient: ObedientBank) -> None:
    till = subscriber.at(obedient)
    begun = await till.subscribe(THIRTY_DAYS)
    obedient.refuse = DeclineReason.INSUFFICIENT_FUNDS
    with pytest.raises(NotCharged, match="insufficient_funds"):
        await charged(till, begun, request_key="key-1")
    obedient.refuse = None
    with pytest.raises(NotCharged, match="insufficient_funds"):
        await charged(till, begun, request_key="key-1")
    assert not (await charged(till, begun, request_key="key-2")).difference.is_open
    assert await wrong(till) == []


@pytest.mark.parametrize("said", [{"charged": Decimal("13.34")}, {"amount": Decimal(14)}])
async def test_the_check_finds_a_difference_that_was_not_charged_so(subscriber: Till, said: dict[str, Decimal]) -> None:
    begun = await subscriber.subscribe(THIRTY_DAYS)
    await charged(subscriber, begun)
    await breaking.say(subscriber.database, "subscription_difference", {"subscription_id": begun.id}, **said)
    assert any("subscription_difference" in problem for problem in await subscriber.problems())


async def test_the_check_finds_a_subscription_that_waits_for_no_difference(subscriber: Till) -> None:
    begun = await subscriber.subscribe(THIRTY_DAYS)
    bank = subscriber.desk.acquirer_for(live=False)
    lost = answering(bank, charge_stored=ending_in(OutcomeUnknown("the question was lost")))
    await charged(subscriber.at(lost), begun)
    assert await subscriber.problems() == []
    await breaking.say(subscriber.database, "subscription", {"id": begun.id}, charging_attempt_id=None)
    assert any("subscription_difference" in problem for problem in await subscriber.problems())


async def test_another_order_of_its_name_is_left_alone(subscriber: Till, charges: Any) -> None:
    begun = await subscriber.subscribe(THIRTY_DAYS)
    await subscriber.sell("club-1:plan-1")
    done = await charged(subscriber, begun)
    assert done.difference.amount == Decimal("13.33")
    assert [row[0] for row in orders(await subscriber.payments())] == ["club-1", "club-1:plan-1", "club-1:plan-2"]
    assert await subscriber.problems() == []


async def forget_difference(till: Books, begun: Subscription, payment_id: int) -> None:
    """The database is put back to before the difference was begun."""
    database, merchant_id = till.database, till.shop.merchant_id
    await breaking.forget(database, merchant_id, "subscription_proration", "subscription_difference")
    await breaking.forget(database, merchant_id, "subscription_change")
    await breaking.forget(database, merchant_id, "pingback", "ledger_entry", "payment_attempt", payment_id=payment_id)
    await breaking.forget(database, merchant_id, "payment", id=payment_id)
    version = begun.package.version_id
    before = {"package_version_id": version, "balance": Decimal(0), "revision": begun.revision}
    await breaking.say(database, "subscription", {"id": begun.id}, **before)


async def test_a_forgotten_difference_is_named_and_taken_up_when_it_is_asked_for_again(desk: Desk, shop: Shop) -> None:
    await breaking.paid_elsewhere(desk.database)
    await breaking.no_alarms(desk.database)
    books = Books(desk, shop)
    begun = await books.subscribe(THIRTY_DAYS)
    payment_id = (await charged(books, begun)).difference.payment_id
    assert payment_id is not None
    await forget_difference(books, begun, payment_id)
    await books.compare(fix=True)
    assert (await books.payment(payment_id))["merchant_order_id"] == "club-1:plan-1"
    assert ("plan_forgotten", f"payment {payment_id}") in await books.alarms()
    assert (await books.now(begun)).package.terms.price == 10
    seen = await charged(books, begun, preview=True)
    assert (seen.difference.amount, seen.difference.taken_up) == (Decimal(0), Decimal("13.33"))
    done = await charged(books, begun, at=begun.date_start + 15 * DAY)
    assert done.difference.taken_up == Decimal("13.33")
    assert (await books.now(begun)).package.terms.price == 30
    # Ten were due for the half that was left: what was paid more than that is the customer's.
    assert await balance(books, begun) == Decimal("-3.33")
    assert await books.alarms() == []
    assert len(books.standings()) == 2


async def test_a_forgotten_difference_that_no_list_has_told_of_is_not_charged_again(desk: Desk, shop: Shop) -> None:
    books = Books(desk, shop)
    begun = await books.subscribe(THIRTY_DAYS)
    payment_id = (await charged(books, begun)).difference.payment_id
    assert payment_id is not None
    await forget_difference(books, begun, payment_id)
    done = await charged(books, begun)
    assert (done.difference.amount, done.difference.payment_id) == (Decimal("13.33"), payment_id)
    assert len(books.standings()) == 2
    await forget_difference(books, begun, payment_id)
    held = await charged(books, begun, at=begun.date_start + 15 * DAY)
    assert held.difference.is_open
    assert len(books.standings()) == 2
    assert "order_held" in [kind for kind, _ in await books.alarms()]
