from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from tests import breaking, set_back
from tests.banks import HeardBank, ObedientBank
from tests.proving import check
from tests.shopfront import MONTHLY
from tests.sweeping import database, database_url
from tests.till import Till

from paydesk.adapters.acquirers.interface import DeclineReason
from paydesk.adapters.vault import Vault, generate_key_setting, generate_secret
from paydesk.core.clock import utc_now
from paydesk.core.periods import Period
from paydesk.database.pool import Database
from paydesk.domain.billing import charging
from paydesk.domain.billing.charging import BillingRun, run_billing
from paydesk.domain.billing.pacing import Pace
from paydesk.domain.merchants.merchant import create_merchant, shop_of
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.janitor import settle_due
from paydesk.domain.subscriptions.ending import cancel
from paydesk.domain.subscriptions.lifecycle import Subscription

__all__ = ["database", "database_url"]

DAILY = replace(MONTHLY, period=Period(1, "day"))


@pytest.fixture
def club(subscriber: Till, obedient: ObedientBank) -> Till:
    """Customers at the bank that obeys."""
    return subscriber.at(obedient)


@pytest.fixture
async def clean(club: Till) -> Callable[[], Awaitable[None]]:
    """The books of the merchant are in order."""

    async def assert_clean() -> None:
        found = await check(club.desk.database, now=utc_now(), merchant_id=club.shop.merchant_id)
        assert [one.detail for finding in found for one in finding.differences] == []

    return assert_clean


async def due_now(subscription: Subscription, database: Database, **ago: float) -> None:
    """Let it be due in real time: a worker without a merchant or a time given finds it."""
    await set_back.renewal_due(database, subscription.id, utc_now() - timedelta(**ago))


@pytest.fixture
async def nobody_else(database: Database) -> None:
    """What other tests left behind is not due."""
    await set_back.no_renewal_due(database)


async def test_the_charge_names_the_first_payment_to_the_network(club: Till, obedient: ObedientBank) -> None:
    heard = HeardBank(ObedientBank())
    listening = club.at(heard)
    subscription = await listening.subscribe()
    await listening.charge_due(subscription)
    first, renewal = heard.purchases
    assert renewal.network_reference == f"net-{first.key}"
    assert renewal.card.cvc is None
    assert (renewal.amount, renewal.capture) == (Decimal(10), True)


async def test_after_three_days_down_one_period_is_charged_and_the_calendar_moves_on(
    club: Till, obedient: ObedientBank, clean: Callable[[], Awaitable[None]]
) -> None:
    subscription = await club.subscribe(DAILY)
    assert subscription.date_next is not None
    back_up = subscription.date_next + timedelta(days=2, hours=1)
    charged = [await club.charge(back_up) for _ in range(5)]
    assert charged == [1, 0, 0, 0, 0]
    assert [row["period_number"] for row in await club.payments()] == [1, 2]
    references = [one["payment_order"]["merchant_order_id"] for one in await club.told()]
    assert references == ["club-1", "club-1:2"]
    assert (await club.now(subscription)).date_next == subscription.date_next + timedelta(days=3)
    await clean()


async def test_the_oldest_is_charged_first(club: Till) -> None:
    late = await club.subscribe(order="late")
    early = await club.subscribe(DAILY, order="early")
    assert late.date_next is not None
    one_at_a_time = BillingRun(club.desk, Pace(batch=1))
    await one_at_a_time.charge_due(merchant_id=club.shop.merchant_id, at=late.date_next)
    assert (await club.now(early)).counter == 2
    assert (await club.now(late)).counter == 1


async def plan_of_a_claim(database: Database) -> list[dict[str, Any]]:
    """How a session claims renewals, whatever is due: all nodes of its plan."""
    values = ["array[1]", "array[false]", "array[now()]", "null", "500", "500", r"'\x00'", "now()", "now()"]
    async with database.acquire() as connection, connection.transaction():
        # With the arguments at hand it would be planned for them; a session plans it for all.
        await connection.execute(f"prepare claim as {charging.queries.begin_renewals.sql}")
        plan = await connection.fetchval(f"explain (format json) execute claim({', '.join(values)})")
        await connection.execute("deallocate claim")

    def nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
        yield node
        for below in node.get("Plans", ()):
            yield from nodes(below)

    return list(nodes(json.loads(plan)[0]["Plan"]))


async def test_what_is_claimed_is_not_compared_each_with_each(database: Database) -> None:
    nodes = await plan_of_a_claim(database)
    # For the payments to be written, to find which of them is whose, and for what is told of them.
    assert [node.get("CTE Name") for node in nodes].count("due") == 3
    assert {node["Node Type"] for node in nodes if node.get("Join Type") == "Full"} <= {"Hash Join", "Merge Join"}
    assert "Full" in {node.get("Join Type") for node in nodes}


async def test_many_runs_at_once_charge_each_once(
    club: Till, obedient: ObedientBank, clean: Callable[[], Awaitable[None]]
) -> None:
    subscriptions = [await club.subscribe(order=f"club-{number}") for number in range(12)]
    at = max(one.date_next for one in subscriptions if one.date_next)
    runs = [BillingRun(club.desk, Pace(batch=5)) for _ in range(6)]
    charged = await asyncio.gather(*(run.charge_due(merchant_id=club.shop.merchant_id, at=at) for run in runs))
    assert sum(charged) + await club.charge(at) == 12
    assert len(obedient.kept) == 24
    await clean()


async def test_a_lost_answer_is_no_failure_and_never_charged_again(
    club: Till, obedient: ObedientBank, clean: Callable[[], Awaitable[None]]
) -> None:
    subscription = await club.subscribe()
    obedient.lose = "answer"
    waiting = await club.charge_due(subscription)
    assert (waiting.counter, waiting.failures) == (1, 0)
    assert subscription.date_next is not None
    assert await club.charge(subscription.date_next + timedelta(days=300)) == 0
    await clean()
    await club.settle_all(minutes=1)
    assert (await club.now(subscription)).counter == 2
    assert len(obedient.kept) == 2
    await clean()


@pytest.mark.parametrize("dies", [True, False])
async def test_a_charge_that_never_left_is_due_again_once_that_is_sure(
    club: Till, obedient: ObedientBank, clean: Callable[[], Awaitable[None]], dies: bool
) -> None:
    subscription = await club.subscribe()
    assert subscription.date_next is not None
    if dies:
        await club.die_after_claim(subscription.date_next)
    else:
        obedient.lose = "question"
        await club.charge(subscription.date_next)
        obedient.lose = ""
    await club.settle_all(seconds=30)
    assert await club.charge(subscription.date_next) == 0
    await club.settle_all(minutes=3)
    current = await club.now(subscription)
    assert (current.failures, current.counter) == (0, 1)
    await club.charge_due(subscription)
    assert (await club.now(subscription)).counter == 2
    assert len(obedient.kept) == 2
    assert len(await club.payments()) == 2
    await clean()


async def test_an_approval_that_turns_up_after_it_was_given_up_is_voided(
    club: Till, obedient: ObedientBank, clean: Callable[[], Awaitable[None]]
) -> None:
    subscription = await club.subscribe()
    obedient.lose, obedient.hide = "answer", True
    await club.charge_due(subscription)
    obedient.lose, obedient.hide = "", False
    await club.settle_all(minutes=3)
    await club.charge_due(subscription)
    obedient.hidden.clear()
    await club.settle_all(hours=2)
    assert len(obedient.voided) == 1
    assert len(obedient.kept) == 2
    assert (await club.now(subscription)).paid_number_counter == 2
    await clean()


async def test_a_charge_that_reached_the_bank_too_late_is_no_failure(club: Till, obedient: ObedientBank) -> None:
    subscription = await club.subscribe()
    obedient.refuse = DeclineReason.TOO_LATE
    current = await club.charge_due(subscription)
    assert (current.failures, current.date_next) == (0, subscription.date_next)


async def test_a_charge_that_never_reaches_the_bank_is_tried_ever_later(club: Till) -> None:
    subscription = await club.subscribe()
    due = subscription.date_next
    assert due is not None
    pauses = []
    for _ in range(4):
        await club.die_after_claim(due)
        found = utc_now() + timedelta(minutes=5)
        await settle_due(club.desk, now=found)
        after = await club.now(subscription)
        assert after.date_next is not None
        assert after.failures == 0
        pauses.append(after.date_next - found)
        due = max(due, after.date_next)
    assert pauses == [timedelta(minutes=minutes) for minutes in (0, 5, 60, 60)]


@pytest.mark.parametrize("reason", [DeclineReason.STOLEN_CARD, DeclineReason.CLOSED_ACCOUNT])
async def test_a_hard_decline_is_not_put_to_the_network_again(
    club: Till, obedient: ObedientBank, clean: Callable[[], Awaitable[None]], reason: DeclineReason
) -> None:
    subscription = await club.subscribe()
    obedient.refuse = reason
    failures = [(await club.charge_due(subscription)).failures for _ in range(4)]
    assert failures == [1, 2, 3, 4]
    assert len(obedient.asked) == 2
    assert (await club.now(subscription)).date_stopped is not None
    await clean()


async def test_a_replaced_card_is_put_to_the_network_after_a_hard_decline(
    club: Till, obedient: ObedientBank, clean: Callable[[], Awaitable[None]]
) -> None:
    subscription = await club.subscribe()
    obedient.refuse = DeclineReason.STOLEN_CARD
    await club.charge_due(subscription)
    obedient.refuse = None
    await set_back.card_replaced(club.desk, subscription)
    after = await club.charge_due(subscription)
    assert (after.failures, after.counter) == (0, 2)
    await clean()


async def test_an_erased_card_fails_without_the_network(club: Till, obedient: ObedientBank) -> None:
    subscription = await club.subscribe()
    await breaking.say(
        club.desk.database, "card", {"merchant_id": club.shop.merchant_id}, number_sealed=None, erased_at=utc_now()
    )
    assert (await club.charge_due(subscription)).failures == 1
    assert len(obedient.asked) == 1


async def test_a_card_that_cannot_be_read_holds_up_nobody_else(
    club: Till, obedient: ObedientBank, clean: Callable[[], Awaitable[None]]
) -> None:
    broken = await club.subscribe(order="broken")
    fine = await club.subscribe(order="fine")
    other_vault = Vault.from_settings(generate_key_setting(), generate_secret())
    sealed = other_vault.seal(b"4242", purpose="card number", merchant_id=1, row_id=1)
    await club.desk.database.execute(
        "update card set number_sealed = $2, vault_key_id = $3 where merchant_id = $1 and id ="
        " (select card_id from subscription where id = $4)",
        club.shop.merchant_id, sealed.blob, sealed.key_id, broken.id,
    )  # fmt: skip
    assert fine.date_next is not None
    await club.charge(fine.date_next)
    assert ((await club.now(broken)).counter, (await club.now(fine)).counter) == (1, 2)
    await club.settle_all(minutes=3)
    assert (await club.now(broken)).failures == 0
    await clean()


async def test_a_charge_in_flight_stands_when_it_is_cancelled_and_nothing_follows(
    club: Till, obedient: ObedientBank, clean: Callable[[], Awaitable[None]]
) -> None:
    subscription = await club.subscribe()
    assert subscription.date_next is not None
    held = HeardBank(obedient, held=True)
    charging = asyncio.create_task(club.at(held).charge(subscription.date_next))
    await held.asked.wait()
    ended = await cancel(club.desk.database, club.shop, subscription.id, by="customer", now=subscription.date_next)
    assert ended.state == "Cancelled"
    held.let_go.set()
    await charging
    after = await club.now(subscription)
    assert (after.state, after.paid_number_counter, after.date_next) == ("Cancelled", 2, None)
    assert await club.charge(subscription.date_next + timedelta(days=400)) == 0
    assert [one["event"] for one in await club.told()] == ["payment", "subscription_cancelled", "payment"]
    await clean()


@pytest.mark.usefixtures("nobody_else")
async def test_a_big_merchant_takes_no_turn_from_a_small_one(
    club: Till, vault: Vault, other_shop: Shop, database: Database
) -> None:
    for number in range(6):
        await due_now(await club.subscribe(order=f"club-{number}"), database, hours=5)
    small = Till(club.desk, other_shop)
    only = await small.subscribe()
    await due_now(only, database, hours=1)
    run = BillingRun(club.desk, Pace(batch=4))
    assert await run.charge_due() == 3
    assert (await small.now(only)).counter == 2
    assert await run.charge_due() == 4


@pytest.mark.usefixtures("nobody_else")
async def test_merchants_beyond_one_look_get_their_turn(club: Till, vault: Vault, database: Database) -> None:
    last = None
    for number in range(5):
        merchant = await create_merchant(database, vault, name=f"Club {number}", email="c@shop.example", now=utc_now())
        last = Till(club.desk, shop_of(merchant, live=False))
        subscription = await last.subscribe()
    assert last is not None
    await due_now(subscription, database, hours=1)
    run = BillingRun(club.desk, Pace(sides=2))
    charged = await run.charge_due()
    while not run.round_complete:
        charged += await run.charge_due()
    assert charged == 1
    assert (await last.now(subscription)).counter == 2


@pytest.mark.usefixtures("nobody_else")
async def test_a_test_clock_moves_one_merchants_dates_and_no_others(
    club: Till, obedient: ObedientBank, other_shop: Shop, database: Database, clean: Callable[[], Awaitable[None]]
) -> None:
    ahead, other = await club.subscribe(), await Till(club.desk, other_shop).subscribe()
    await set_back.clock_runs_ahead(database, club.shop.merchant_id, timedelta(days=32))
    await BillingRun(club.desk).charge_due()
    after = await club.now(ahead)
    assert (after.counter, (await Till(club.desk, other_shop).now(other)).counter) == (2, 1)
    assert after.date_paid is not None
    assert after.date_paid > utc_now() + timedelta(days=31)
    obedient.lose = "answer"
    await set_back.clock_runs_ahead(database, club.shop.merchant_id, timedelta(days=64))
    await BillingRun(club.desk).charge_due()
    await club.settle_all(minutes=1)
    settled = await club.now(ahead)
    assert settled.counter == 3
    assert settled.date_paid is not None
    assert settled.date_paid > utc_now() + timedelta(days=63)
    await clean()


@pytest.mark.usefixtures("nobody_else")
async def test_the_worker_charges_until_it_is_told_to_stop(club: Till, database: Database) -> None:
    subscriptions = [await club.subscribe(order=f"club-{number}") for number in range(5)]
    for subscription in subscriptions:
        await due_now(subscription, database, hours=1)
    stop = asyncio.Event()
    running = asyncio.create_task(run_billing(club.desk, stop, Pace(batch=2, in_flight=2), pause=0.02))
    while [(await club.now(one)).counter for one in subscriptions] != [2] * 5:
        assert not running.done()
        await asyncio.sleep(0.01)
    stop.set()
    await running


async def test_a_renewals_pingback_is_what_plugins_look_for(club: Till) -> None:
    subscription = await club.subscribe()
    await club.charge_due(subscription)
    first, renewal = await club.told()
    assert renewal["event"] == "payment"
    assert "with_risk_check" not in renewal
    assert "payment_system" not in renewal["payment_order"]
    assert renewal["subscription"]["recurring_id"] == first["payment_order"]["id"] == subscription.init_payment_id
    assert renewal["subscription"]["init_merchant_order_id"] == "club-1"
    assert renewal["payment_order"]["merchant_order_id"] == "club-1:2"
    assert (renewal["subscription"]["status"], renewal["subscription"]["paid_number_counter"]) == ("Active", 2)
    assert json.dumps(renewal, default=str).count("club-1:2") == 1


def test_a_desk_is_shared_by_any_number_of_runs(desk: Desk) -> None:
    assert BillingRun(desk).round_complete
    assert Pace(batch=500, in_flight=1000).lanes == 5


async def test_an_approval_is_voided_however_far_the_test_clock_was_moved_since(
    club: Till, obedient: ObedientBank, clean: Callable[[], Awaitable[None]]
) -> None:
    subscription = await club.subscribe()
    obedient.lose, obedient.hide = "answer", True
    await club.charge_due(subscription)
    obedient.lose, obedient.hide = "", False
    await club.settle_all(minutes=3)
    await set_back.clock_runs_ahead(club.desk.database, club.shop.merchant_id, timedelta(days=90))
    await club.settle_all(minutes=70)
    obedient.hidden.clear()
    await club.settle_all(minutes=140)
    assert len(obedient.voided) == 1
    assert len(obedient.kept) == 1
    await clean()
