from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from tests.banks import ObedientBank
from tests.changing import change
from tests.shopfront import MONTHLY
from tests.till import Till

from paydesk.adapters.acquirers.interface import AcquirerRefused
from paydesk.adapters.acquirers.simulator.purchase_state import Standing
from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict, Malformed, NotFound
from paydesk.core.periods import Period
from paydesk.domain.coupons.applying import apply_coupon
from paydesk.domain.coupons.coupons import read_terms
from paydesk.domain.coupons.keeping import make_coupon
from paydesk.domain.subscriptions import moving
from paydesk.domain.subscriptions.changing import cancel_later, carry_out_due, pause, resume, undo
from paydesk.domain.subscriptions.ending import cancel
from paydesk.domain.subscriptions.lifecycle import Subscription
from paydesk.domain.subscriptions.moving import (
    MoveState,
    Stays,
    begin_move,
    carry_on,
    find_move,
    list_moves,
    preview_move,
    take_back,
)
from paydesk.domain.subscriptions.packages import agree_package
from paydesk.domain.subscriptions.subscription_terms import Terms, Trial

Charges = Callable[[], list[Standing]]
DAY = timedelta(days=1)
DEARER = replace(MONTHLY, price=Decimal("12.00"))


async def version(till: Till, terms: Terms = DEARER) -> int:
    return await agree_package(till.database, till.shop, terms, now=utc_now())


async def preview(till: Till, begun: Subscription, to: int, now: datetime | None = None) -> moving.MovePreview:
    at = now or utc_now()
    return await preview_move(till.database, till.shop, begun.package.version_id, to, now=at)


async def begin(till: Till, begun: Subscription, to: int) -> int:
    now = utc_now()
    named = (till.database, till.shop, begun.package.version_id, to)
    return (await begin_move(*named, shop_now=now, now=now)).id


async def carried_on(till: Till, move_id: int, real_now: datetime | None = None) -> int:
    """Batches until the move is over; how many there were."""
    batches = 0
    while await carry_on(
        till.database, real_now=real_now or utc_now(), merchant_id=till.shop.merchant_id, move_id=move_id
    ):
        batches += 1
    return batches


async def members(till: Till, count: int, **asked: Any) -> list[Subscription]:
    return [await till.subscribe(order=f"club-{number}", **asked) for number in range(count)]


async def due_at(till: Till, one: Subscription) -> datetime:
    at = (await till.now(one)).date_next
    assert at is not None
    return at


async def test_each_goes_at_its_own_periods_end_and_is_charged_by_the_other_version(
    subscriber: Till, charges: Charges
) -> None:
    club = await members(subscriber, 3)
    to = await version(subscriber)
    seen = await preview(subscriber, club[0], to)
    ends = [one.date_next for one in club if one.date_next]
    assert (seen.subscriptions, seen.stay, seen.first_at, seen.last_at) == (3, {}, min(ends), max(ends))
    assert (seen.paid_before, seen.paid_after) == (Decimal(30), Decimal(36))
    assert await subscriber.rows("package_move") == []
    move_id = await begin(subscriber, club[0], to)
    assert await carried_on(subscriber, move_id) == 1
    move = await find_move(subscriber.database, subscriber.shop, move_id)
    assert (move.state, move.subscriptions, move.planned, move.waiting, move.done) == (MoveState.MOVED, 3, 3, 3, 0)
    for before in club:
        after = await subscriber.now(before)
        assert after.change is not None
        assert (after.date_next, after.package.terms, after.change.by) == (before.date_next, MONTHLY, "merchant")
    assert await subscriber.problems() == []
    late = max(ends)
    named: dict[str, Any] = {"real_now": utc_now(), "merchant_id": subscriber.shop.merchant_id}
    assert await carry_out_due(subscriber.database, **named, at=late) == 3
    assert await subscriber.charge(late) == 3
    assert sorted(charge.amount for charge in charges()) == [10, 10, 10, 12, 12, 12]
    assert (await find_move(subscriber.database, subscriber.shop, move_id)).done == 3
    assert {(await subscriber.now(one)).package.version_id for one in club} == {to}
    assert await subscriber.problems() == []


async def test_who_stays_is_counted_by_reason_and_left_alone(subscriber: Till, monkeypatch: pytest.MonkeyPatch) -> None:
    goes, ended, paused, ending, failing, limited = await members(subscriber, 6)
    till, now = subscriber, utc_now()
    terms = read_terms({"code": "half", "percent": "50"}, (), valid_from=None, valid_until=None)
    await make_coupon(till.database, till.shop, terms, now=now)
    link = await till.order("club-7", terms=MONTHLY)
    await till.pay(await apply_coupon(till.database, await till.find(link), "half"))
    named = (till.database, till.shop)
    await cancel(*named, ended.id, by="api", now=now)
    await pause(*named, paused.id, by="api", now=now)
    await cancel_later(*named, ending.id, by="customer", now=now)
    assert failing.date_next is not None
    to = await version(till, replace(DEARER, limit=2))
    seen = await preview(till, goes, to)
    expected = {Stays.ENDED: 1, Stays.PAUSED: 1, Stays.CHANGING: 1, Stays.COUPON: 1}
    assert (seen.subscriptions, seen.stay) == (3, expected)
    late = max(one.date_next for one in (goes, failing, limited) if one.date_next) + DAY
    all_due = await preview(till, goes, to, late)
    assert (all_due.subscriptions, all_due.stay[Stays.CHARGING]) == (0, 3)
    move_id = await begin(till, goes, to)
    await carried_on(till, move_id)
    assert (await find_move(*named, move_id)).planned == 3
    for one, by in ((paused, "api"), (ending, "customer")):
        kept = (await till.now(one)).change
        assert kept is not None
        assert kept.by == by
    again = await preview(till, goes, to)
    assert (again.subscriptions, again.stay[Stays.CHANGING]) == (0, 4)
    with pytest.raises(Conflict, match="no subscription to move"):
        await begin(till, goes, to)
    assert await till.problems() == []


async def test_a_failing_one_one_without_payments_left_and_one_in_its_last_period_stay(subscriber: Till) -> None:
    terms = replace(MONTHLY, limit=2)
    failing = await subscriber.subscribe(terms, number="4000000000000341", order="failing")
    last, *_ = await members(subscriber, 2, terms=terms)
    assert last.date_next is not None
    await subscriber.charge(last.date_next + DAY)
    to = await version(subscriber, replace(DEARER, limit=1))
    seen = await preview(subscriber, failing, to)
    assert seen.stay == {Stays.FAILING: 1, Stays.LAST_PERIOD: 2}
    fresh = await subscriber.subscribe(terms, order="fresh")
    assert (await preview(subscriber, fresh, to)).stay[Stays.LIMIT] == 1
    assert (await preview(subscriber, fresh, to)).subscriptions == 0


async def test_one_whose_charge_the_acquirer_refused_stays_and_is_tried_no_sooner(subscriber: Till) -> None:
    bank = ObedientBank()
    club = subscriber.at(bank)
    refused, goes = await members(club, 2)
    due = await due_at(club, refused)
    named = (club.database, club.shop)
    await pause(*named, goes.id, by="api", now=due - DAY)
    bank.why_not = AcquirerRefused("No such PaymentMethod")
    refused = await club.charge_due(refused)
    then, now = await due_at(club, refused), due + timedelta(minutes=10)
    await resume(*named, goes.id, now=now)
    to = await version(club)
    seen = await preview(club, goes, to, now)
    assert (seen.subscriptions, seen.stay) == (1, {Stays.FAILING: 1})
    move_id = (await begin_move(*named, goes.package.version_id, to, shop_now=now, now=now)).id
    await carried_on(club, move_id, now)
    assert (await find_move(*named, move_id)).planned == 1
    await carry_out_due(club.database, real_now=utc_now(), merchant_id=club.shop.merchant_id, at=now)
    kept = await club.now(refused)
    assert (kept.date_next, kept.change, kept.package.terms) == (then, None, MONTHLY)
    assert (await club.now(goes)).change is not None


async def test_pressed_twice_or_at_once_it_moves_once(subscriber: Till) -> None:
    club = await members(subscriber, 4)
    to = await version(subscriber)
    begun = await asyncio.gather(*(begin(subscriber, club[0], to) for _ in range(6)))
    assert len(set(begun)) == 1
    with pytest.raises(Conflict, match="under way"):
        await begin(subscriber, club[0], await version(subscriber, replace(DEARER, price=Decimal(99))))
    await asyncio.gather(*(carried_on(subscriber, begun[0]) for _ in range(4)))
    assert len(await subscriber.rows("subscription_change")) == 4
    move = await find_move(subscriber.database, subscriber.shop, begun[0])
    assert (move.planned, move.state) == (4, MoveState.MOVED)
    assert await list_moves(subscriber.database, subscriber.shop) == [move]
    assert await subscriber.problems() == []


async def test_it_goes_on_where_a_worker_died_and_takes_none_that_came_later(
    subscriber: Till, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(monkeypatch, "paydesk.domain.subscriptions.moving", "BATCH", 2)
    club = await members(subscriber, 5)
    move_id = await begin(subscriber, club[0], await version(subscriber))
    newcomer = await subscriber.subscribe(order="later")
    named: dict[str, Any] = {"real_now": utc_now(), "merchant_id": subscriber.shop.merchant_id, "move_id": move_id}
    await carry_on(subscriber.database, **named)
    half = await find_move(subscriber.database, subscriber.shop, move_id)
    assert (half.state, half.planned) == (MoveState.MOVING, 2)
    original = moving.queries.plan_batch

    async def dies(*args: Any, **more: Any) -> Any:
        raise ConnectionError("the worker is gone")

    monkeypatch.setattr(moving.queries, "plan_batch", dies)
    with pytest.raises(ConnectionError):
        await carry_on(subscriber.database, **named)
    monkeypatch.setattr(moving.queries, "plan_batch", original)
    assert await carried_on(subscriber, move_id) == 2
    assert (await find_move(subscriber.database, subscriber.shop, move_id)).planned == 5
    assert (await subscriber.now(newcomer)).change is None
    assert await subscriber.problems() == []


async def test_what_somebody_does_meanwhile_is_never_written_over(
    subscriber: Till, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between reading a batch and writing it one is cancelled, one is to end, and one renews."""
    till = subscriber
    first, cancelled, ending, renewing, last = await members(till, 5)
    assert renewing.date_next is not None
    move_id = await begin(till, first, await version(till))
    original = moving.queries.plan_batch
    deeds: list[Callable[[], Awaitable[object]]] = [
        lambda: cancel(till.database, till.shop, cancelled.id, by="api", now=utc_now()),
        lambda: cancel_later(till.database, till.shop, ending.id, by="customer", now=utc_now()),
        lambda: till.charge(max(one.date_next for one in (renewing, last) if one.date_next)),
    ]

    async def meanwhile(*args: Any, **more: Any) -> Any:
        if deeds:
            await deeds.pop(0)()
        return await original(*args, **more)

    monkeypatch.setattr(moving.queries, "plan_batch", meanwhile)
    await carried_on(till, move_id, min(one.date_next for one in (first, renewing) if one.date_next) - DAY / 86400)
    assert deeds == []
    ended, going, renewed = [await till.now(one) for one in (cancelled, ending, renewing)]
    assert (ended.state, ended.change) == ("Cancelled", None)
    assert going.change is not None
    assert (going.change.type, going.change.by) == ("cancel", "customer")
    assert (renewed.counter, renewed.package.terms.price) == (2, Decimal(10))
    assert renewed.change is not None
    assert renewed.change.due_at == renewed.paid_until
    assert (await find_move(till.database, till.shop, move_id)).state is MoveState.MOVED
    assert await till.problems() == []


async def test_what_is_still_to_come_is_taken_back_and_nothing_else(
    subscriber: Till, charges: Charges, monkeypatch: pytest.MonkeyPatch
) -> None:
    till = subscriber
    change(monkeypatch, "paydesk.domain.subscriptions.moving", "BATCH", 2)
    club = await members(till, 6)
    done, undone, cancelled, *rest = club
    move_id = await begin(till, done, await version(till))
    await carried_on(till, move_id)
    await undo(till.database, till.shop, undone.id, now=utc_now())
    own = await pause(till.database, till.shop, undone.id, by="customer", now=utc_now())
    await cancel(till.database, till.shop, cancelled.id, by="customer", now=utc_now())
    early = await due_at(till, done)
    due: dict[str, Any] = {"real_now": utc_now(), "merchant_id": till.shop.merchant_id}
    assert await carry_out_due(till.database, **due, at=early) == 1
    assert await take_back(till.database, till.shop, move_id)
    assert not await take_back(till.database, till.shop, move_id)
    await carried_on(till, move_id, early)
    assert not await take_back(till.database, till.shop, move_id)
    move = await find_move(till.database, till.shop, move_id)
    assert (move.state, move.planned, move.waiting, move.done) == (MoveState.TAKEN_BACK, 6, 0, 1)
    for one in rest:
        after = await till.now(one)
        assert (after.change, after.date_next, after.package.terms) == (None, one.date_next, MONTHLY)
    assert (await till.now(undone)).change == own.subscription.change
    assert (await till.now(cancelled)).state == "Cancelled"
    assert (await till.now(done)).package.terms.price == Decimal(12)
    await till.charge(max(one.date_next for one in club if one.date_next))
    assert sorted(charge.amount for charge in charges()) == [10] * 9 + [12]
    assert await till.problems() == []


async def test_taken_back_while_it_is_planned_nothing_more_is_planned(
    subscriber: Till, monkeypatch: pytest.MonkeyPatch
) -> None:
    till = subscriber
    change(monkeypatch, "paydesk.domain.subscriptions.moving", "BATCH", 2)
    club = await members(till, 5)
    move_id = await begin(till, club[0], await version(till))
    named: dict[str, Any] = {"real_now": utc_now(), "merchant_id": till.shop.merchant_id, "move_id": move_id}
    await carry_on(till.database, **named)
    original = moving.queries.plan_batch

    async def meanwhile(*args: Any, **more: Any) -> Any:
        await take_back(till.database, till.shop, move_id)
        return await original(*args, **more)

    monkeypatch.setattr(moving.queries, "plan_batch", meanwhile)
    await carried_on(till, move_id)
    move = await find_move(till.database, till.shop, move_id)
    assert (move.state, move.planned, move.waiting) == (MoveState.TAKEN_BACK, 2, 0)
    assert [(await till.now(one)).change for one in club] == [None] * 5
    monkeypatch.setattr(moving.queries, "plan_batch", original)
    again = await begin(till, club[0], await version(till))
    await carried_on(till, again)
    assert (await find_move(till.database, till.shop, again)).planned == 5
    assert await till.problems() == []


async def test_a_trial_and_another_length_of_periods_go_on_from_what_is_paid(subscriber: Till) -> None:
    trial = replace(MONTHLY, trial=Trial(Decimal(0), Period(14, "day")))
    begun = await subscriber.subscribe(trial)
    yearly = replace(MONTHLY, name="Yearly", price=Decimal(100), period=Period(1, "year"))
    to = await version(subscriber, yearly)
    seen = await preview(subscriber, begun, to)
    assert seen.after == replace(yearly, trial=trial.trial)
    move_id = await begin(subscriber, begun, to)
    await carried_on(subscriber, move_id)
    at = await due_at(subscriber, begun)
    assert at == begun.date_next
    await carry_out_due(subscriber.database, real_now=utc_now(), merchant_id=subscriber.shop.merchant_id, at=at)
    assert await subscriber.charge(at) == 1
    after = await subscriber.now(begun)
    assert (after.counter, after.package.terms) == (1, seen.after)
    assert after.date_next is not None
    assert after.date_next.year == at.year + 1
    assert await subscriber.problems() == []


async def test_versions_of_another_currency_or_shop_or_the_same_are_refused(subscriber: Till) -> None:
    begun = await subscriber.subscribe()
    own = begun.package.version_id
    euros = await version(subscriber, replace(MONTHLY, currency="EUR"))
    with pytest.raises(Malformed, match="keeps its currency"):
        await preview(subscriber, begun, euros)
    with pytest.raises(Malformed, match="choose another"):
        await preview(subscriber, begun, own)
    with pytest.raises(NotFound):
        await preview(subscriber, begun, 10**9)
    with pytest.raises(NotFound):
        await find_move(subscriber.database, subscriber.shop, 10**9)
    live = replace(subscriber.shop, live=not subscriber.shop.live)
    to = await version(subscriber)
    with pytest.raises(NotFound):
        await preview_move(subscriber.database, live, own, to, now=utc_now())
