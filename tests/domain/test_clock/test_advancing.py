from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from ipaddress import ip_network
from itertools import pairwise
from typing import Any

import pytest
from tests import breaking, set_back, shopfront
from tests.domain.pingbacks.receiver import Receiver, receiving
from tests.lengths import long
from tests.shopfront import find_subscription
from tests.till import Till

from paydesk.adapters.acquirers.simulator.own_pages import Way
from paydesk.adapters.acquirers.simulator.purchase_state import Standing
from paydesk.adapters.outbound import OutboundClient
from paydesk.adapters.vault import Vault
from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict, Malformed, NotFound
from paydesk.core.periods import Period
from paydesk.database.pool import Database
from paydesk.domain.billing.charging import run_billing
from paydesk.domain.merchants.merchant import Merchant, change_merchant
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.merchants.test_clock import held_clock, read_clock
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.results import ConfirmWithBank, Paid
from paydesk.domain.pingbacks.sending import PingbackSender
from paydesk.domain.subscriptions.lifecycle import Subscription
from paydesk.domain.subscriptions.subscription_terms import Terms, Trial
from paydesk.domain.test_clock import resetting
from paydesk.domain.test_clock.advancing import Progress, Summary, What, advance
from paydesk.domain.test_clock.resetting import reset_test_side
from paydesk.domain.test_clock.stopping import Stopped

MONTHLY = Terms("Coffee club", "club", "USD", Decimal("10.00"), Period(1, "month"), None, 0)
ALWAYS_DECLINED_LATER = "4000000000000341"
ANSWER_LOST = "4000000000009987"

Advance = Callable[..., Awaitable[Summary]]
Subscribe = Callable[..., Awaitable[Subscription]]


def billing(summary: Summary) -> Summary:
    """The summary without the way of the money afterwards:
    when it settled, and when its reserve was released.
    """
    later = (What.SETTLED, What.RELEASED)
    return replace(
        summary,
        events=tuple(event for event in summary.events if event.what not in later),
        counts={what: times for what, times in summary.counts.items() if what not in later},
    )


@pytest.fixture
async def ears() -> AsyncIterator[Receiver]:
    async with receiving() as made:
        yield made


@pytest.fixture
async def make_sender(database: Database, vault: Vault) -> AsyncIterator[Callable[[], PingbackSender]]:
    client = OutboundClient([ip_network("127.0.0.0/8")], timeout=15.0)
    yield lambda: PingbackSender(database, vault, client)
    await client.close()


@pytest.fixture
def run(desk: Desk, make_sender: Callable[[], PingbackSender], shop: Shop) -> Advance:
    """Advances the shop's clock, or another merchant's."""

    async def advanced(
        length: int, unit: Any = "month", merchant_id: int = shop.merchant_id, **options: Any
    ) -> Summary:
        return await advance(desk, make_sender(), merchant_id, Period(length, unit), **options)

    return advanced


@pytest.fixture
def subscribe(desk: Desk, shop: Shop) -> Subscribe:
    """Takes out a subscription at the shop's present time, or at one given."""

    async def taken_out(
        terms: Terms = MONTHLY,
        *,
        order: str = "club-1",
        card: str = "4242424242424242",
        of: Shop = shop,
        url: str | None = None,
        at: datetime | None = None,
        outcome: type = Paid,
    ) -> Subscription:
        wish: dict[str, Any] = {"terms": terms, "pingback_url": url, "sign_version": "v1"}
        link = await shopfront.order(desk.database, of, order, now=at, **wish)
        assert isinstance(await shopfront.pay(desk, link, card, now=at), outcome)
        return await shopfront.subscription_of(desk.database, of, order)

    return taken_out


Now = Callable[[Subscription], Awaitable[Subscription]]


@pytest.fixture
def now(desk: Desk, shop: Shop) -> Now:
    return lambda subscription: find_subscription(desk.database, shop, subscription.id)


async def test_two_years_of_a_monthly_subscription_take_seconds(
    subscribe: Subscribe, run: Advance, now: Now, ears: Receiver, charges: Callable[[], list[Standing]]
) -> None:
    subscription = await subscribe(url=ears.url)
    began = time.monotonic()
    summary = await run(24)
    print(f"24 months took {time.monotonic() - began:.2f} s")
    assert billing(summary).counts == {What.PAYMENT: 24, What.PINGBACK_ACKNOWLEDGED: 25}
    assert (summary.unsettled, summary.pingbacks_in_hand) == ((), 0)
    assert (await now(subscription)).paid_number_counter == 25
    assert len(charges()) == 25
    assert len(ears.received) == 25


async def test_each_renewal_happens_at_the_very_moment_it_falls_due(
    subscribe: Subscribe, run: Advance, database: Database, shop: Shop
) -> None:
    subscription = await subscribe()
    summary = await run(3)
    due = [subscription.schedule.due(number) for number in (2, 3, 4)]
    assert [event.at for event in billing(summary).events] == due
    paid = await database.fetch("select paid_at from payment where merchant_id = $1 and renewal", shop.merchant_id)
    assert sorted(row["paid_at"] for row in paid) == due
    clock = await read_clock(database, shop.merchant_id, real_now=utc_now())
    assert summary.now <= clock.now
    assert due[-1] is not None
    assert due[-1] <= summary.now


async def test_several_subscriptions_are_charged_in_the_order_of_time(subscribe: Subscribe, run: Advance) -> None:
    weekly = await subscribe(replace(MONTHLY, period=Period(1, "week"), sku_id="week"), order="week")
    monthly = await subscribe(order="month")
    trial = await subscribe(replace(MONTHLY, trial=Trial(Decimal(0), Period(10, "day")), sku_id="trial"), order="trial")
    summary = await run(32, "day")
    assert [event.at for event in summary.events] == sorted(event.at for event in summary.events)
    told = [event.subscription_id for event in summary.events if event.what is What.PAYMENT]
    by_day = sorted(
        [(7 * week, weekly.id) for week in range(1, 5)]
        + [(10, trial.id), ((monthly.date_next - monthly.date_start).days if monthly.date_next else 0, monthly.id)]
    )
    assert told == [subscription_id for _, subscription_id in by_day]


async def test_retries_come_after_six_hours_and_then_it_stops(
    subscribe: Subscribe, run: Advance, now: Now, ears: Receiver
) -> None:
    subscription = await subscribe(card=ALWAYS_DECLINED_LATER, url=ears.url)
    summary = await run(2)
    at = subscription.date_next
    assert at is not None
    told = [(event.what, event.at) for event in billing(summary).events if not event.what.startswith("pingback")]
    assert told == [
        *((What.DECLINED, at + timedelta(hours=6 * retry)) for retry in range(4)),
        (What.STOPPED, at + timedelta(hours=18)),
    ]
    after = await now(subscription)
    assert (after.state, after.date_stopped) == ("Cancelled", at + timedelta(hours=18))
    assert b"subscription_stopped" in ears.received[-1].body


async def test_a_retry_that_is_not_yet_due_is_left_for_the_next_advance(
    subscribe: Subscribe, run: Advance, database: Database
) -> None:
    subscription = await subscribe(replace(MONTHLY, period=Period(1, "day")), card=ALWAYS_DECLINED_LATER)
    assert billing(await run(1, "day")).counts == {What.DECLINED: 1}
    assert billing(await run(1, "day")).counts == {What.DECLINED: 3, What.STOPPED: 1}
    assert subscription.failures == 0


async def test_a_limit_ends_in_an_expiry_at_the_end_of_the_last_period(
    subscribe: Subscribe, run: Advance, now: Now
) -> None:
    subscription = await subscribe(replace(MONTHLY, limit=2))
    summary = await run(6)
    assert [event.what for event in billing(summary).events] == [What.PAYMENT, What.EXPIRED]
    after = await now(subscription)
    assert (after.state, after.date_expired) == ("Expired", subscription.schedule.end())


async def test_a_silent_merchant_is_told_every_thirty_minutes_until_it_is_given_up(
    subscribe: Subscribe, run: Advance, ears: Receiver, database: Database, shop: Shop
) -> None:
    ears.answers["/pingback"] = [(200, b"NOK")]
    await subscribe(url=ears.url)
    summary = await run(1, "day")
    assert billing(summary).counts == {What.PINGBACK_FAILED: 11}
    for before, after in pairwise(event.at for event in summary.events):
        assert timedelta(minutes=30) <= after - before < timedelta(minutes=31)
    state = await database.fetchval("select state from pingback where merchant_id = $1", shop.merchant_id)
    assert state == "exhausted"


async def test_a_lost_answer_is_found_out_before_the_clock_goes_on(
    subscribe: Subscribe, run: Advance, desk: Desk, shop: Shop, now: Now, charges: Callable[[], list[Standing]]
) -> None:
    subscription = await subscribe()
    other = await subscribe(order="club-2")
    await give_card(desk, shop, subscription, ANSWER_LOST)
    summary = await run(3)
    assert summary.counts[What.PAYMENT] == 6
    assert summary.unsettled == ()
    assert (await now(subscription)).paid_number_counter == 4
    assert (await now(other)).paid_number_counter == 4
    assert len(charges()) == 8


async def give_card(desk: Desk, shop: Shop, subscription: Subscription, number: str) -> None:
    """Seal another number into the subscription's card."""
    card_id = await desk.database.fetchval("select card_id from subscription where id = $1", subscription.id)
    sealed = desk.vault.seal(number.encode(), purpose="card number", merchant_id=shop.merchant_id, row_id=card_id)
    await breaking.say(desk.database, "card", {"id": card_id}, number_sealed=sealed.blob)


@long
async def test_what_stays_unknown_is_in_the_summary_and_holds_up_nobody_else(
    subscribe: Subscribe, run: Advance, desk: Desk, shop: Shop, now: Now
) -> None:
    subscription, other = await subscribe(), await subscribe(order="club-2")
    await give_card(desk, shop, subscription, ANSWER_LOST)
    summary = await run(2, patience=0.0)
    assert summary.unsettled == (subscription.id,)
    assert (await now(other)).paid_number_counter == 3
    assert (await run(1, "day")).counts[What.PAYMENT] == 2, "the late one and the one that was due after it"


async def test_an_interrupted_advance_can_be_repeated(
    subscribe: Subscribe, run: Advance, now: Now, charges: Callable[[], list[Standing]]
) -> None:
    subscription = await subscribe()

    def interrupt(progress: Progress) -> None:
        if subscription.date_next is not None and progress.at > subscription.date_next + timedelta(days=100):
            raise RuntimeError("interrupted")

    with pytest.raises(RuntimeError, match="interrupted"):
        await run(12, report=interrupt)
    halfway = await now(subscription)
    assert halfway.paid_number_counter == 6
    await run(3)
    assert (await now(subscription)).paid_number_counter == 9
    assert len(charges()) == 9


async def test_of_two_advances_at_once_the_second_is_refused(
    subscribe: Subscribe, run: Advance, database: Database, shop: Shop
) -> None:
    await subscribe()
    async with held_clock(database, shop.merchant_id):
        assert (await read_clock(database, shop.merchant_id, real_now=utc_now())).moving
        with pytest.raises(Conflict, match="being moved"):
            await run(1)
        with pytest.raises(Conflict, match="being moved"):
            await reset_test_side(database, shop.merchant_id)
    assert billing(await run(1)).counts == {What.PAYMENT: 1}


async def test_a_dead_holder_s_clock_is_free_once_its_lease_has_run_out(
    run: Advance, database: Database, shop: Shop
) -> None:
    await breaking.say(
        database,
        "merchant",
        {"id": shop.merchant_id},
        clock_holder="dead",
        clock_held_until=utc_now() - timedelta(seconds=1),
    )
    await run(1, "day")


async def test_workers_at_work_double_nothing(
    subscribe: Subscribe, run: Advance, desk: Desk, shop: Shop, now: Now, charges: Callable[[], list[Standing]]
) -> None:
    subscription = await subscribe()
    stop = asyncio.Event()
    working = asyncio.create_task(run_billing(desk, stop, pause=0.0))
    summary = await run(12)
    stop.set()
    await working
    assert summary.counts[What.PAYMENT] == 12
    assert (await now(subscription)).paid_number_counter == 13
    # The worker charges whoever is due, also what other tests have left: only this shop's
    # charges count.
    rows = await desk.database.fetch(
        "select idempotency_key from payment_attempt where merchant_id = $1", shop.merchant_id
    )
    ours = {row["idempotency_key"] for row in rows}
    assert len([charge for charge in charges() if charge.key in ours]) == 13


async def test_other_merchants_and_live_data_have_their_own_time(
    subscribe: Subscribe, run: Advance, other_shop: Shop, shop: Shop, database: Database, desk: Desk
) -> None:
    await subscribe()
    other = await subscribe(of=other_shop, order="other")
    live = await subscribe(order="live")
    await breaking.say(database, "subscription", {"id": live.id}, live=True)
    summary = await run(2)
    assert billing(summary).counts == {What.PAYMENT: 2}
    assert (await find_subscription(database, other_shop, other.id)).paid_number_counter == 1
    kept = await database.fetchrow("select * from subscription where id = $1", live.id)
    assert (kept["paid_number_counter"], kept["date_next"]) == (1, live.date_next)
    assert (await read_clock(database, other_shop.merchant_id, real_now=utc_now())).ahead == timedelta(0)
    await breaking.say(database, "subscription", {"id": live.id}, live=False)


async def test_a_leap_day_is_kept(subscribe: Subscribe, run: Advance, database: Database, shop: Shop) -> None:
    real = utc_now()
    leap_day = datetime(real.year + 4 - real.year % 4, 2, 29, 12, tzinfo=UTC)
    await set_back.clock_runs_ahead(database, shop.merchant_id, leap_day - utc_now())
    await subscribe(replace(MONTHLY, period=Period(1, "year")), at=leap_day)
    summary = await run(4, "year")
    assert [(event.at.month, event.at.day) for event in billing(summary).events] == [(2, 28), (2, 28), (2, 28), (2, 29)]


async def test_an_idle_system_sends_new_pingbacks_at_once_after_an_advance(
    subscribe: Subscribe, run: Advance, ears: Receiver, make_sender: Callable[[], PingbackSender]
) -> None:
    await run(6)
    await subscribe(url=ears.url)
    assert ears.received == []
    await make_sender().send_due_once(utc_now())
    assert len(ears.received) == 1


async def test_a_summary_shows_the_first_events_and_counts_all(subscribe: Subscribe, run: Advance) -> None:
    await subscribe()
    summary = await run(12, most_events=3)
    assert len(summary.events) == 3
    assert billing(summary).counts == {What.PAYMENT: 12}


async def test_a_clock_can_not_run_away(run: Advance, database: Database, shop: Shop) -> None:
    await set_back.clock_runs_ahead(database, shop.merchant_id, timedelta(days=17500))
    with pytest.raises(Malformed, match="50 years"):
        await run(10, "year")
    with pytest.raises(NotFound):
        await run(1, merchant_id=10**15)


async def test_a_reset_deletes_all_test_data_and_nothing_else(
    subscribe: Subscribe,
    run: Advance,
    ears: Receiver,
    database: Database,
    shop: Shop,
    other_shop: Shop,
    merchant: Merchant,
) -> None:
    await change_merchant(database, merchant.id, pingback_url=ears.url)
    await subscribe()
    other = await subscribe(of=other_shop, order="other")
    await database.execute(
        "insert into customer (merchant_id, live, email, first_name, last_name, username, country, created_at)"
        " values ($1, true, '', '', '', '', '', now())",
        shop.merchant_id,
    )
    await database.execute(
        "insert into rejected_form (merchant_id, live, at, status, reason, fields)"
        " values ($1, false, now(), 400, '', '{}'), ($1, true, now(), 400, '', '{}')",
        shop.merchant_id,
    )
    await run(3)
    deleted = await reset_test_side(database, shop.merchant_id)
    assert (deleted["subscriptions"], deleted["payments"], deleted["pingback_attempts"]) == (1, 4, 4)
    tables = await database.fetch(
        """
        select c.relname as name
          from pg_class c
          join pg_attribute a on a.attrelid = c.oid and a.attname = 'live'
          join pg_attribute m on m.attrelid = c.oid and m.attname = 'merchant_id'
         where c.relkind in ('r', 'p') and not c.relispartition and c.relnamespace = 'public'::regnamespace
        """
    )
    for table in tables:
        left = await database.fetchval(
            f"select count(*) from {table['name']} where merchant_id = $1 and not live", shop.merchant_id
        )
        assert left == 0, table["name"]
    assert await database.fetchval("select count(*) from customer where merchant_id = $1", shop.merchant_id) == 1
    assert await database.fetchval("select count(*) from rejected_form where merchant_id = $1", shop.merchant_id) == 1
    assert (await find_subscription(database, other_shop, other.id)).state == "Active"
    clock = await read_clock(database, shop.merchant_id, real_now=utc_now())
    assert (clock.ahead, clock.moving) == (timedelta(0), False)
    again = await reset_test_side(database, shop.merchant_id)
    assert set(again.values()) == {0}


async def test_a_reset_takes_what_was_written_meanwhile_to_rows_that_are_gone(
    subscribe: Subscribe, database: Database, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    await subscribe()
    late = await database.fetchrow("select * from ledger_entry where merchant_id = $1 limit 1", shop.merchant_id)
    delete = resetting._delete

    async def and_somebody_writes(database: Database, kind: str, merchant_id: int) -> int:
        number = await delete(database, kind, merchant_id)
        if kind == "payments" and number:
            places = ", ".join(f"${place}" for place in range(1, len(late) + 1))
            await database.execute(f"insert into ledger_entry values ({places})", *late.values())
        return number

    monkeypatch.setattr(resetting, "_delete", and_somebody_writes)
    await reset_test_side(database, shop.merchant_id)
    left = "select count(*) from ledger_entry where merchant_id = $1"
    assert await database.fetchval(left, shop.merchant_id) == 0


async def test_a_call_that_has_had_its_time_stops_where_the_next_goes_on(
    database: Database, shop: Shop, run: Advance, subscribe: Subscribe
) -> None:
    await subscribe()
    with pytest.raises(Stopped, match="advance it by the rest") as stopped:
        await run(3, most_seconds=0)
    clock = await read_clock(database, shop.merchant_id, real_now=utc_now())
    assert stopped.value.started_at < stopped.value.now <= clock.now < stopped.value.started_at + timedelta(days=80)
    assert not clock.moving, "the next call may go on"
    with pytest.raises(Stopped) as again:
        await run(3, most_seconds=0)
    assert again.value.started_at >= stopped.value.now
    summary = await run(3)
    assert summary.started_at >= again.value.now
    assert summary.counts[What.PAYMENT] >= 2


async def test_a_call_with_nothing_left_to_do_is_not_stopped(run: Advance) -> None:
    assert (await run(3, most_seconds=0)).counts == {}


class TestSlowMethods:
    @pytest.mark.parametrize(
        ("way", "ends_as", "events"),
        [(Way.TRANSFER, "captured", ["payment"]), (Way.FAILING_TRANSFER, "declined", [])],
    )
    async def test_a_transfer_takes_two_days_of_the_test_clock(
        self, desk: Desk, shop: Shop, run: Advance, ears: Receiver, way: Way, ends_as: str, events: list[str]
    ) -> None:
        await run(10, "day")
        till = await Till(desk, shop).offering_slow_methods()
        led = await shopfront.go_on(till.desk, await till.order("A-1", pingback_url=ears.url))
        assert isinstance(led, ConfirmWithBank)
        till.bank.pages.pay(led.url.rpartition("/")[2], way, "")
        await till.settle(minutes=2)
        begun = (await read_clock(desk.database, shop.merchant_id, real_now=utc_now())).now
        what = What.ARRIVED if events else What.NOT_ARRIVED
        for days, state, told in ((1, "pending", []), (2, ends_as, events), (30, ends_as, events)):
            summary = await run(days, "day")
            assert (what in summary.counts) is (days == 2)
            (payment,) = await till.payments()
            assert payment["state"] == state
            assert [json.loads(call.body)["event"] for call in ears.received] == told
        if events:
            assert abs(payment["paid_at"] - begun - timedelta(days=2)) < timedelta(minutes=5)
        assert await till.problems() == []
