from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from msgspec import structs
from tests import breaking, set_back, shopfront
from tests.banks import HeardBank, answering, ending_in
from tests.links import newest_portal
from tests.shopfront import MONTHLY
from tests.standings import standings
from tests.till import Till

from paydesk.adapters.acquirers.hosted_pages import Capabilities
from paydesk.adapters.acquirers.interface import AcquirerRefused, Outcome
from paydesk.adapters.acquirers.purchases import CardDetails, Purchase
from paydesk.adapters.acquirers.simulator import Bank
from paydesk.adapters.acquirers.simulator.purchase_state import Standing
from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict, Unavailable
from paydesk.database.pool import Database
from paydesk.domain.billing.card_changes import Replaced, Result
from paydesk.domain.billing.card_lookups import run_card_lookups, settle_card_changes
from paydesk.domain.billing.for_customer import Holding, find_holding, past_payments
from paydesk.domain.billing.replacing_cards import NewCard, replace_card, settle_challenge
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.card_guard import Limits
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.results import ConfirmWithBank, Refused, Unsettled
from paydesk.domain.subscriptions.ending import cancel
from paydesk.domain.subscriptions.lifecycle import Subscription
from paydesk.domain.subscriptions.states import CARD_CHANGE_TRANSITIONS, OPEN_CHANGES, CardChangeState
from paydesk.domain.subscriptions.subscription_terms import Terms

Charges = Callable[[], list[Standing]]

VISA, MASTERCARD, DECLINED = "4242424242424242", "5555555555554444", "4000000000000002"
FAILS_LATER, ASKS_CUSTOMER, ANSWER_LOST = "4000000000000341", "4000000000003220", "4000000000009987"


async def holding(holder: Till) -> Holding:
    """The newest subscription as its customer finds it."""
    link = await newest_portal(holder.database, holder.shop.merchant_id)
    return await find_holding(holder.database, link, now=utc_now())


async def now_of(holder: Till) -> Subscription:
    return (await holding(holder)).subscription


async def give(holder: Till, number: str, *, seen: Holding | None = None, address: str = "192.0.2.1") -> Result:
    """The customer types another card; `seen` is what their tab showed, if that is old."""
    held = seen or await holding(holder)
    new = NewCard(CardDetails(number, 12, 2040, "Ada Lovelace", "123"), address, "https://pay.test/back")
    return await replace_card(holder.desk, held.subscription, held.change, new, now=utc_now())


async def last4_charged(holder: Till) -> list[str]:
    """The cards of the renewals, in order."""
    cards = {row["id"]: row["last4"] for row in await holder.rows("card")}
    return [cards[row["card_id"]] for row in await holder.attempts() if row["checkout_id"] is None]


async def change_states(holder: Till) -> list[str]:
    return [row["state"] for row in await holder.rows("card_change")]


async def settle(holder: Till, **later: float) -> int:
    return await settle_card_changes(holder.desk, now=utc_now() + timedelta(**later))


async def subscribe(desk: Desk, shop: Shop, number: str, terms: Terms = MONTHLY) -> Till:
    await shopfront.subscribe(desk, shop, terms, number=number)
    return Till(desk, shop)


@pytest.fixture
async def holder(desk: Desk, shop: Shop) -> Till:
    return await subscribe(desk, shop, VISA)


@pytest.fixture
async def failing(desk: Desk, shop: Shop) -> Till:
    """A customer whose second payment was declined once."""
    holder = await subscribe(desk, shop, FAILS_LATER)
    assert await holder.charge((await now_of(holder)).date_next) == 1
    assert (await now_of(holder)).failures == 1
    return holder


@pytest.fixture(autouse=True)
async def _no_other_lookups(database: Database) -> None:
    """A janitor asks for all merchants, so that what other tests have left would be in the way."""
    await set_back.no_card_to_look_up(database)


@pytest.fixture(autouse=True)
async def _guarded_transitions(database: Database) -> AsyncIterator[None]:
    """Make the database refuse moves of a card change that the table of states.py doesn't know."""
    allowed = ", ".join(
        f"('{was}', '{became}')" for was, reached in CARD_CHANGE_TRANSITIONS.items() for became in sorted(reached)
    )
    await database.execute(
        f"""
        create function guard_card_change() returns trigger language plpgsql as $$
        begin
            if old.state <> new.state and (old.state, new.state) not in ({allowed}) then
                raise exception 'a card change may not go from % to %', old.state, new.state;
            end if;
            return new;
        end $$;
        create trigger guarded before update on card_change for each row execute function guard_card_change();
        """
    )
    yield
    await database.execute("drop trigger guarded on card_change; drop function guard_card_change")


async def test_the_replaced_card_is_the_one_charged_next(holder: Till, charges: Charges) -> None:
    before = await now_of(holder)
    assert await give(holder, MASTERCARD) == Replaced()
    held = await holding(holder)
    assert (held.card.brand, held.card.last4) == ("Mastercard", "4444")
    assert held.subscription == structs.replace(before, revision=before.revision + 1), "nothing else has changed"
    assert await holder.charge(before.date_next) == 1
    assert await last4_charged(holder) == ["4444"]
    assert len(charges()) == 2


async def test_checking_a_card_moves_no_money_and_tells_nobody(holder: Till, bank: Bank) -> None:
    await give(holder, MASTERCARD)
    checks = [one for key, one in standings(bank.record.operations()).items() if key.startswith("card-")]
    assert [(one.amount, one.held, one.captured) for one in checks] == [(Decimal(0),) * 3]
    assert await holder.events() == ["payment"]


async def test_a_declined_card_changes_nothing(holder: Till) -> None:
    before = await holding(holder)
    assert await give(holder, DECLINED) == Refused("declined")
    after = await holding(holder)
    assert (after.subscription, after.card) == (before.subscription, before.card)
    assert await change_states(holder) == ["declined"]


async def test_a_failing_charge_is_due_at_once_and_the_calendar_is_kept(failing: Till) -> None:
    schedule = (await now_of(failing)).schedule
    assert await give(failing, VISA) == Replaced()
    after = await now_of(failing)
    assert after.date_next is not None
    assert abs(after.date_next - utc_now()) < timedelta(minutes=1)
    assert await failing.charge(after.date_next) == 1
    paid = await now_of(failing)
    assert (paid.failures, paid.counter, paid.date_next) == (0, 2, schedule.due(3))
    assert await last4_charged(failing) == ["0341", "4242"]


async def test_a_hard_decline_is_forgotten_with_the_card(failing: Till, database: Database) -> None:
    await breaking.say(database, "card", {"merchant_id": failing.shop.merchant_id}, refused_as="stolen_card")
    await give(failing, VISA)
    assert await failing.charge((await now_of(failing)).date_next) == 1
    assert (await now_of(failing)).counter == 2


async def test_a_test_clock_that_runs_ahead_decides_what_at_once_means(failing: Till, database: Database) -> None:
    await set_back.clock_runs_ahead(database, failing.shop.merchant_id, timedelta(days=40))
    await give(failing, VISA)
    after = await now_of(failing)
    assert after.date_next is not None
    assert abs(after.date_next - utc_now() - timedelta(days=40)) < timedelta(minutes=1)


async def test_3d_secure_replaces_the_card_once_the_customer_confirmed(holder: Till, bank: Bank) -> None:
    asked = await give(holder, ASKS_CUSTOMER)
    assert isinstance(asked, ConfirmWithBank)
    held = await holding(holder)
    assert held.card.last4 == "4242"
    assert held.change is not None
    assert held.change.challenge_url == asked.url
    assert await settle_challenge(holder.desk, held.change, now=utc_now()) == ConfirmWithBank(asked.url)
    bank.decide(asked.url.rpartition("/")[2], "approve")
    assert await settle_challenge(holder.desk, held.change, now=utc_now()) == Replaced()
    assert await settle_challenge(holder.desk, held.change, now=utc_now()) == Unsettled(), "only once"
    assert (await holding(holder)).card.last4 == "3220"


async def test_another_card_ends_an_open_challenge_for_good(holder: Till, bank: Bank) -> None:
    asked = await give(holder, ASKS_CUSTOMER)
    assert isinstance(asked, ConfirmWithBank)
    assert await give(holder, MASTERCARD) == Replaced()
    bank.decide(asked.url.rpartition("/")[2], "approve")
    await settle(holder, hours=2)
    assert (await holding(holder)).card.last4 == "4444"
    assert await change_states(holder) == ["abandoned", "approved"]


@pytest.mark.parametrize("decision", ["approve", "close"])
async def test_the_janitor_settles_a_challenge_nobody_came_back_from(holder: Till, bank: Bank, decision: Any) -> None:
    asked = await give(holder, ASKS_CUSTOMER)
    assert isinstance(asked, ConfirmWithBank)
    bank.decide(asked.url.rpartition("/")[2], decision)
    assert await settle(holder, hours=2) == 1
    expected = ("approved", "3220") if decision == "approve" else ("abandoned", "4242")
    assert ((await change_states(holder))[0], (await holding(holder)).card.last4) == expected
    assert await settle(holder, days=2) == 0


async def test_an_answer_that_was_lost_is_found_by_its_key(failing: Till) -> None:
    assert await give(failing, ANSWER_LOST) == Unsettled()
    assert (await holding(failing)).card.last4 == "0341"
    assert await settle(failing) == 0, "not yet"
    assert await settle(failing, seconds=6) == 1
    held = await holding(failing)
    assert held.card.last4 == "9987"
    assert held.subscription.date_next is not None
    assert held.subscription.date_next < utc_now() + timedelta(minutes=1)


async def test_the_background_look_up_goes_on_after_a_bad_round(holder: Till, monkeypatch: pytest.MonkeyPatch) -> None:
    assert await give(holder, ANSWER_LOST) == Unsettled()
    rounds = 0

    async def later(desk: Desk, *, now: datetime) -> int:
        nonlocal rounds
        rounds += 1
        if rounds == 1:
            raise ConnectionError("the database is away")
        settled = await settle_card_changes(desk, now=now + timedelta(seconds=6))
        stop.set()
        return settled

    stop = asyncio.Event()
    monkeypatch.setattr("paydesk.domain.billing.card_lookups.settle_card_changes", later)
    await run_card_lookups(holder.desk, stop, pause=0.01)
    assert (await holding(holder)).card.last4 == "9987"


async def test_a_check_that_fails_with_the_card_in_its_hand_logs_no_number(
    holder: Till, capsys: pytest.CaptureFixture[str]
) -> None:
    async def fail(purchase: Purchase) -> Outcome:
        raise RuntimeError(f"can't read the answer to {purchase}")

    clumsy = answering(holder.desk.acquirers["simulator"], authorize=fail)
    assert await give(holder.at(clumsy), MASTERCARD) == Unsettled()
    logged = capsys.readouterr()
    assert "the call to the acquirer failed" in logged.out + logged.err
    assert MASTERCARD not in logged.out + logged.err


async def test_a_check_that_the_acquirer_refuses_as_a_request_is_told_at_once(holder: Till) -> None:
    refusal = AcquirerRefused("this account may not keep cards")
    choosy = answering(holder.desk.acquirers["simulator"], authorize=ending_in(refusal))
    assert await give(holder.at(choosy), MASTERCARD) == Refused("request_refused")
    assert await change_states(holder) == ["declined"]
    assert await give(holder, MASTERCARD) == Replaced()


async def test_no_number_is_taken_for_an_acquirer_that_takes_cards_on_its_own_page_alone(holder: Till) -> None:
    elsewhere = answering(holder.desk.acquirers["simulator"])
    elsewhere.capabilities = Capabilities(cards=False, pages=True)
    with pytest.raises(Unavailable, match="own page"):
        await give(holder.at(elsewhere), MASTERCARD)
    assert await change_states(holder) == []


async def test_a_check_that_never_arrived_ends_only_once_it_no_longer_can(holder: Till) -> None:
    deaf = answering(holder.desk.acquirers["simulator"], authorize=ending_in(RuntimeError("the line is dead")))
    assert await give(holder.at(deaf), MASTERCARD) == Unsettled()
    assert await settle(holder, seconds=10) == 1
    assert await change_states(holder) == ["processing"]
    with pytest.raises(Conflict):
        await give(holder, MASTERCARD)
    assert await settle(holder, seconds=100) == 1
    assert await change_states(holder) == ["failed"]
    assert await give(holder, MASTERCARD) == Replaced()


async def test_two_tabs_replace_the_card_one_after_the_other_or_not_at_all(holder: Till) -> None:
    seen = await holding(holder)
    results = await asyncio.gather(
        *(give(holder, number, seen=seen) for number in (MASTERCARD, DECLINED, MASTERCARD)), return_exceptions=True
    )
    assert sum(isinstance(result, Replaced | Refused) for result in results) >= 1
    assert all(isinstance(result, Replaced | Refused | Conflict) for result in results)
    assert not OPEN_CHANGES & {CardChangeState(state) for state in await change_states(holder)}


async def test_a_cancel_during_the_check_wins_and_nothing_is_charged(failing: Till, charges: Charges) -> None:
    gate = HeardBank(failing.desk.acquirers["simulator"], held=True)
    giving = asyncio.create_task(give(failing.at(gate), VISA))
    await gate.asked.wait()
    await cancel(failing.desk.database, failing.shop, (await now_of(failing)).id, by="customer", now=utc_now())
    gate.let_go.set()
    assert await giving == Replaced()
    held = await holding(failing)
    assert (held.subscription.state, held.subscription.date_next, held.card.last4) == ("Cancelled", None, "0341")
    assert await failing.charge(utc_now() + timedelta(days=400)) == 0
    assert await failing.events() == ["payment", "subscription_cancelled"]
    assert len(charges()) == 1
    with pytest.raises(Conflict):
        await give(failing, VISA)


@pytest.mark.parametrize(("number", "paid"), [(VISA, True), (FAILS_LATER, False)])
async def test_a_charge_in_flight_counts_whatever_card_is_given_meanwhile(
    desk: Desk, shop: Shop, number: str, paid: bool
) -> None:
    holder = await subscribe(desk, shop, number)
    due = (await now_of(holder)).date_next
    gate = HeardBank(desk.acquirers["simulator"], held=True)
    charging = asyncio.create_task(holder.at(gate).charge(due))
    await gate.asked.wait()
    assert await give(holder, MASTERCARD) == Replaced()
    gate.let_go.set()
    assert await charging == 1
    after = await now_of(holder)
    assert (after.counter, after.failures) == (2 if paid else 1, 0)
    assert after.date_next == (after.schedule.due(3) if paid else due)
    if not paid:
        assert await holder.charge(due) == 1
        assert await last4_charged(holder) == ["0341", "4444"]
        assert (await now_of(holder)).counter == 2


async def test_a_subscription_stops_testing_cards_after_some_attempts(holder: Till) -> None:
    limited = replace(holder, desk=replace(holder.desk, test_limits=Limits(attempts_per_checkout=2)))
    assert await give(limited, DECLINED) == Refused("declined")
    assert await give(limited, DECLINED) == Refused("declined")
    assert await give(limited, VISA) == Refused("too_many_attempts")


async def test_a_client_address_stops_testing_cards_after_some_declines(holder: Till) -> None:
    limited = replace(holder, desk=replace(holder.desk, test_limits=Limits(declines_per_hour=1)))
    assert await give(limited, DECLINED) == Refused("declined")
    assert await give(limited, VISA) == Refused("too_many_attempts")
    assert await give(limited, VISA, address="192.0.2.9") == Replaced()


async def test_past_payments_come_newest_first_and_in_pages(holder: Till) -> None:
    for _ in range(4):
        await holder.charge((await now_of(holder)).date_next)
    subscription = await now_of(holder)
    first = await past_payments(holder.desk.database, subscription, most=3)
    assert [payment.period for payment in first.shown] == [5, 4, 3]
    second = await past_payments(holder.desk.database, subscription, before=first.older, most=3)
    assert ([payment.period for payment in second.shown], second.older) == ([2, 1], None)


async def test_what_was_paid_runs_until_the_next_period_begins(holder: Till) -> None:
    held = await holding(holder)
    assert held.paid_until == held.subscription.date_next
    await cancel(holder.desk.database, holder.shop, held.subscription.id, by="customer", now=utc_now())
    assert (await holding(holder)).paid_until == held.paid_until


async def test_checks_of_one_card_are_counted_even_if_the_bank_approves_them(holder: Till) -> None:
    limited = replace(
        holder, desk=replace(holder.desk, test_limits=Limits(attempts_per_checkout=100, checks_per_card=2))
    )
    for host in (1, 2):
        assert await give(limited, VISA, address=f"192.0.2.{host}") == Replaced()
        await limited.desk.finish()
    assert await give(limited, VISA, address="192.0.2.3") == Refused("too_many_attempts")
    assert await give(limited, MASTERCARD, address="192.0.2.3") == Replaced()


async def test_changes_that_the_customer_does_not_confirm_count_as_declines(holder: Till, database: Database) -> None:
    for _ in range(3):
        assert isinstance(await give(holder, ASKS_CUSTOMER), ConfirmWithBank)
    await holder.desk.finish()
    figures = await database.fetchrow(
        "select sum(tries) as tries, sum(declines) as declines from card_guard_minute where merchant_id = $1",
        holder.shop.merchant_id,
    )
    assert figures is not None
    assert figures["declines"] == 2, "each but the last, which may still be confirmed"
    # The last one is left for good: an hour later nobody has refused anything.
    await settle(holder, hours=1, minutes=1)
    await holder.desk.finish()
    assert (await change_states(holder))[-1] == "abandoned"
    declines = "select sum(declines) from card_guard_minute where merchant_id = $1"
    assert await database.fetchval(declines, holder.shop.merchant_id) == 2
