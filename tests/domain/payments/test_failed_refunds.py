"""Refunds that the customer's bank sends back after they were made."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from tests import breaking, set_back
from tests.adapters.acquirers.simulator.lying import Lies, LyingAcquirer
from tests.banks import answering, ending_in
from tests.sweeping import database, database_url
from tests.till import Till

from paydesk.adapters.acquirers.disputes import FailedRefund, FailedRefundPage
from paydesk.adapters.acquirers.interface import OutcomeUnknown
from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict
from paydesk.database.pool import Database
from paydesk.domain.acquirers.leases import Within
from paydesk.domain.merchants.merchant import change_merchant
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments import failed_refunds
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.failed_refunds import read_failed_refunds
from paydesk.domain.payments.movements import finish_movements
from paydesk.domain.payments.refunding import Refund, refunds_of

__all__ = ["database", "database_url"]

TEN, FOUR, ZERO = Decimal(10), Decimal(4), Decimal(0)
WHY = "expired_or_canceled_card"


async def send_back(order: Till, given: Refund) -> None:
    """The customer's bank does not take a refund."""
    (row,) = [one for one in await order.rows("movement") if one["id"] == given.reference_id]
    made = order.bank.record.decided(row["idempotency_key"])
    assert made is not None
    order.bank.fail_refund(made.reference, WHY)


async def read(order: Till, **later: float) -> int:
    return await read_failed_refunds(order.desk, now=utc_now() + timedelta(**later))


async def standing(order: Till) -> tuple[str, Decimal, Decimal]:
    row = await order.payment()
    return row["state"], row["refunded"], row["refunding"]


@pytest.fixture
async def order(desk: Desk, shop: Shop, database: Database, buy: Callable[[], Awaitable[int]]) -> Till:
    """A paid order, and a bank that may send its refunds back."""
    await set_back.banks_tell_of_refunds_again(database)
    await breaking.no_alarms(database)
    return Till(desk, shop, await buy())


async def test_it_is_booked_back_and_told_once(order: Till) -> None:
    given = await order.give(FOUR)
    await send_back(order, given)
    assert [await read(order) for _ in range(3)] == [1, 0, 0]
    assert await standing(order) == ("captured", ZERO, ZERO)
    (told,) = (one for one in await order.told() if one["event"] == "refund_failed")
    said = told["payment_order"]
    assert said["status"] == "successful"
    assert (said["refund_amount"], said["total_refunded_amount"], said["reason"]) == (FOUR, 0, WHY)
    assert said["reference_id"] == given.reference_id
    (line,) = await refunds_of(order.desk.database, order.shop, order.payment_id)
    assert (line.state, line.amount) == ("failed", FOUR)
    assert await order.problems() == []


async def test_its_posting_gives_the_merchant_what_came_back(order: Till) -> None:
    await send_back(order, await order.give(FOUR))
    await read(order)
    rows = await order.desk.database.fetch(
        "select account, amount from ledger_entry where merchant_id = $1 and kind = 'refund_failure'",
        order.shop.merchant_id,
    )
    assert {row["account"]: row["amount"] for row in rows} == {"acquirer": FOUR, "available": -FOUR}


async def test_fees_that_it_had_returned_are_due_again(order: Till) -> None:
    database, merchant_id = order.desk.database, order.shop.merchant_id

    await change_merchant(database, merchant_id, fees_returned=True)
    before = await order.accounts()
    first, second = await order.give(Decimal("3.33")), await order.give()
    assert "fees" not in await order.accounts()
    for given in (first, second):
        await send_back(order, given)
        assert await read(order) == 1
        assert await order.problems() == []
    assert (await order.accounts())["fees"] == before["fees"]
    assert (await order.payment())["fees_taken"] == 0
    await order.give()
    assert "fees" not in await order.accounts()
    assert (await order.payment())["fees_taken"] == -before["fees"]
    assert await order.problems() == []


async def test_of_a_whole_refund_in_parts_the_others_stay(order: Till) -> None:
    first, second = await order.give(FOUR), await order.give()
    assert (await standing(order))[0] == "refunded"
    await send_back(order, first)
    assert await read(order) == 1
    assert await standing(order) == ("partially_refunded", TEN - FOUR, ZERO)
    assert (await order.told())[-1]["payment_order"]["status"] == "reversal_refunded_partially"
    await send_back(order, second)
    assert await read(order) == 1
    assert await standing(order) == ("captured", ZERO, ZERO)
    assert await order.problems() == []


async def test_it_can_be_given_back_again_under_another_key(order: Till) -> None:
    await send_back(order, await order.give(key="one"))
    await read(order)
    with pytest.raises(Conflict, match="came back"):
        await order.give(key="one")
    again = await order.give(key="two")
    assert (again.total, (await standing(order))[0]) == (TEN, "refunded")
    assert await order.problems() == []


async def test_a_refund_that_failed_before_it_was_recorded_is_refused(order: Till) -> None:
    lost = LyingAcquirer(order.desk.acquirers["simulator"], Lies(lose_answers=1.0))
    given = await order.at(lost).give(FOUR)
    assert given.status == "processing"
    await send_back(order, given)
    assert await read(order) == 1
    assert await standing(order) == ("captured", ZERO, ZERO)
    await finish_movements(order.desk, now=utc_now() + timedelta(minutes=2))
    assert await standing(order) == ("captured", ZERO, ZERO)
    assert [one["event"] for one in await order.told()] == ["payment"]
    assert await order.problems() == []


async def test_of_a_refund_that_failed_the_janitor_finds_that_it_is_refused(order: Till) -> None:
    lost = LyingAcquirer(order.desk.acquirers["simulator"], Lies(lose_answers=1.0))
    given = await order.at(lost).give(FOUR)
    await send_back(order, given)
    await finish_movements(order.desk, now=utc_now() + timedelta(minutes=2))
    assert await standing(order) == ("captured", ZERO, ZERO)
    assert await read(order) == 0


async def test_an_account_that_muted_it_is_not_told(order: Till) -> None:
    await change_merchant(order.desk.database, order.shop.merchant_id, muted=["refund_failed"])
    await send_back(order, await order.give(FOUR))
    assert await read(order) == 1
    assert [one["event"] for one in await order.told()] == ["payment", "partial_refund"]
    assert await order.problems() == []


async def test_one_that_nobody_knows_is_an_alarm_and_stops_no_other(order: Till) -> None:
    purchase = await order.desk.database.fetchrow(
        "select * from payment_attempt where merchant_id = $1", order.shop.merchant_id
    )
    assert purchase is not None
    by_hand = order.bank.refund("by hand", purchase["acquirer_reference"], Decimal(1), "USD")
    order.bank.fail_refund(by_hand, "unknown")
    await send_back(order, await order.give(FOUR))
    assert await read(order) == 1
    assert await order.alarms() == [("refund_unknown", by_hand)]
    assert (await standing(order))[0] == "captured"
    assert await read(order, hours=3) == 0
    assert await order.alarms() == [("refund_unknown", by_hand)]


async def test_one_that_was_forgotten_is_booked_back_once_its_refund_is_in_the_books_again(order: Till) -> None:
    given = await order.give(FOUR)
    await send_back(order, given)
    (row,) = [one for one in await order.rows("movement") if one["id"] == given.reference_id]
    forgotten = {"merchant_id": order.shop.merchant_id, "id": given.reference_id}
    await breaking.say(order.database, "movement", forgotten, idempotency_key="forgotten")
    assert await read(order) == 0
    assert await order.alarms() == [("refund_unknown", row["acquirer_reference"])]
    await breaking.say(order.database, "movement", forgotten, idempotency_key=row["idempotency_key"])
    assert await read(order, hours=1) == 1
    assert await order.alarms() == []
    assert await standing(order) == ("captured", ZERO, ZERO)
    assert await order.problems() == []


async def test_an_acquirer_that_can_t_be_read_for_hours_is_an_alarm_until_it_can(order: Till) -> None:
    assert await read(order) == 0
    silent = answering(order.desk.acquirers["simulator"], failed_refunds=ending_in(OutcomeUnknown("nobody answers")))
    away = order.at(silent)
    await read(away, hours=5)
    assert await order.alarms() == []
    await read(away, hours=7)
    assert await order.alarms() == [("refunds_unread", "simulator")]
    assert await read(order, hours=8) == 0
    assert await order.alarms() == []


async def test_an_acquirer_that_is_away_at_the_first_try_is_no_alarm_before_hours_have_passed(order: Till) -> None:
    silent = answering(order.desk.acquirers["simulator"], failed_refunds=ending_in(OutcomeUnknown("nobody answers")))
    away = order.at(silent)
    await read(away)
    await read(away, hours=5)
    assert await order.alarms() == []
    await read(away, hours=7)
    assert await order.alarms() == [("refunds_unread", "simulator")]


async def test_one_that_can_not_be_recorded_is_kept_and_stops_no_other(
    order: Till, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = await order.give(FOUR)
    record, broken = failed_refunds.record_failed, True

    async def breaks(within: Within, acquirer: str, failed: FailedRefund, **named: Any) -> Any:
        if broken and failed.amount == FOUR:
            raise ValueError("nobody can work it out")
        return await record(within, acquirer, failed, **named)

    monkeypatch.setattr(failed_refunds, "record_failed", breaks)
    await send_back(order, given)
    assert await read(order) == 0
    await send_back(order, await order.give(Decimal(1)))
    assert await read(order) == 1, "the one behind it is booked"
    ((kind, _),) = await order.alarms()
    assert kind == "set_aside"
    broken = False
    assert await read(order) == 1, "it is told again"
    assert await standing(order) == ("captured", ZERO, ZERO)
    assert await read(order) == 0
    assert await order.problems() == []


async def test_an_answer_that_makes_no_sense_keeps_nobody_from_the_other_acquirers(order: Till) -> None:
    honest = order.desk.acquirers["simulator"]
    both = {"senseless": answering(honest, failed_refunds=ending_in(KeyError("status"))), "simulator": honest}
    two = replace(order, desk=replace(order.desk, acquirers=both))
    await send_back(order, await order.give(FOUR))
    assert await read(two) == 1
    await read(two, hours=7)
    assert await order.alarms() == [("refunds_unread", "senseless")]


LEASED = "select leased_until from failed_refund_reading where acquirer = 'simulator'"


async def test_whoever_reads_many_pages_stays_the_one_who_reads(order: Till) -> None:
    await send_back(order, await order.give(FOUR))
    honest, held = order.desk.acquirers["simulator"], []

    async def page(after: str) -> FailedRefundPage:
        held.append(await order.database.fetchval(LEASED))
        return await honest.failed_refunds(after)

    assert await read(order.at(answering(honest, failed_refunds=page))) == 1
    first, second = held
    assert first < second


async def test_whoever_waits_long_for_one_page_stays_the_one_who_reads(
    order: Till, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a list of a year's refunds, which is read to its end for one page of those that failed."""
    await send_back(order, await order.give(FOUR))
    monkeypatch.setattr(failed_refunds, "LEASE", timedelta(seconds=3))
    honest = order.desk.acquirers["simulator"]

    async def long(after: str) -> FailedRefundPage:
        if not after:
            await order.database.execute(f"select pg_sleep_until(({LEASED}) + '100 ms')")
        assert await read(order) == 0, "another worker leaves it to them"
        return await honest.failed_refunds(after)

    assert await read(order.at(answering(honest, failed_refunds=long))) == 1
    assert await standing(order) == ("captured", ZERO, ZERO)


async def test_whoever_was_too_slow_stops_and_leaves_it_to_the_next(order: Till) -> None:
    await send_back(order, await order.give(FOUR))
    honest, theirs = order.desk.acquirers["simulator"], utc_now() + timedelta(minutes=5)

    async def late(after: str) -> FailedRefundPage:
        await breaking.say(order.database, "failed_refund_reading", {"acquirer": "simulator"}, leased_until=theirs)
        return await honest.failed_refunds(after)

    assert await read(order.at(answering(honest, failed_refunds=late)), hours=7) == 0
    assert (await standing(order))[0] == "partially_refunded"
    assert await order.database.fetchval(LEASED) == theirs
    assert await order.alarms() == []


async def test_whoever_dies_between_two_pages_is_taken_over_after_their_lease(order: Till) -> None:
    await send_back(order, await order.give(FOUR))
    honest, reached = order.desk.acquirers["simulator"], asyncio.Event()

    async def page(after: str) -> FailedRefundPage:
        if after:
            reached.set()
            await asyncio.Event().wait()
        return await honest.failed_refunds(after)

    dying = asyncio.ensure_future(read(order.at(answering(honest, failed_refunds=page))))
    await asyncio.wait_for(reached.wait(), 30)
    await send_back(order, await order.give(Decimal(3)))
    assert await read(order) == 0, "its lease is not over"
    over = utc_now() - timedelta(minutes=5)
    await breaking.say(order.database, "failed_refund_reading", {"acquirer": "simulator"}, leased_until=over)
    assert sorted(await asyncio.gather(read(order), read(order))) == [0, 1], "the first page is booked once"
    stands = "select * from failed_refund_reading where acquirer = 'simulator'"
    before = dict(await order.database.fetchrow(stands))
    dying.cancel()
    await asyncio.wait([dying])
    assert dict(await order.database.fetchrow(stands)) == before
    assert await standing(order) == ("captured", ZERO, ZERO)
