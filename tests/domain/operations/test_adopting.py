"""What the bank remembers and our database forgot is written down as it was, once,
and nothing else is.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from tests import breaking
from tests.banks import answering, ending_in
from tests.domain.operations.books import Books
from tests.domain.operations.conftest import After
from tests.shopfront import GOOD as VISA
from tests.shopfront import MONTHLY, buy, go_on, ship, ships, subscribe

from paydesk.adapters.acquirers.interface import OutcomeUnknown
from paydesk.adapters.acquirers.simulator.holding import WALLET_HOLD_PERIOD
from paydesk.adapters.acquirers.simulator.own_pages import Way
from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict, NotFound, Unavailable
from paydesk.core.paging import Page
from paydesk.domain.accounts.audit import COMMAND_LINE, Action, list_entries
from paydesk.domain.acquirers.leases import Unleased
from paydesk.domain.operations import reasons_not_to_adopt as why_not
from paydesk.domain.operations.giving_back import finish_given_back, give_back
from paydesk.domain.operations.history import hold, read
from paydesk.domain.operations.holding import accept
from paydesk.domain.payments.idempotency_keys import pads_of
from paydesk.domain.payments.results import ConfirmWithBank, Paid

DECLINED, MASTERCARD = "4000000000000002", "5555555555554444"


async def _order(till: Books) -> None:
    await till.order("mug")


async def _ships(till: Books) -> None:
    await ships(till.database, till.shop)
    await till.order("mug")


async def _pay(till: Books) -> None:
    await buy(till.desk, till.shop, "mug")


async def _pay_at_the_second_try(till: Books) -> None:
    await till.pay(await till.order("mug"), DECLINED)
    await _pay(till)


async def _decline(till: Books) -> None:
    await till.pay(await till.order("mug"), DECLINED)


async def _subscribe(till: Books) -> None:
    await subscribe(till.desk, till.shop)


async def _ask_for_club(till: Books) -> None:
    await till.order("club-1", terms=MONTHLY)


async def _join(till: Books) -> None:
    await buy(till.desk, till.shop, "club-1", terms=MONTHLY)


async def _renew(till: Books, times: int = 1) -> None:
    found = await till.database.fetchval("select id from subscription")
    for _ in range(times):
        due = await till.database.fetchval("select date_next from subscription where id = $1", found)
        assert await till.charge(due) == 1


async def _renew_three(till: Books) -> None:
    await _renew(till, 3)


async def _pay_and_give_back(till: Books) -> None:
    await _pay(till)
    await till.give_back(await till.named("mug"), "4.00")


async def _pay_and_give_all_back(till: Books) -> None:
    await _pay(till)
    for part in ("4.00", "6.00"):
        await till.give_back(await till.named("mug"), part)


@pytest.mark.parametrize(
    ("known", "forgotten"),
    [
        (_order, _pay),
        (None, _pay),
        (_ships, _pay),
        (_decline, _pay),
        (_order, _pay_at_the_second_try),
        (_ask_for_club, _join),
        (_subscribe, _renew),
        (_subscribe, _renew_three),
        (_order, _pay_and_give_back),
        (_order, _pay_and_give_all_back),
        (None, _pay_and_give_all_back),
    ],
)
async def test_what_was_forgotten_is_written_down_as_it_was(after: After, known: Any, forgotten: Any) -> None:
    async with after(forgotten, known=known) as (till, before):
        await till.draw_ids()
        found = await till.compare(fix=True)
        assert (found.differences, len(found.adopted) > 0) == ([], True)
        now = await till.written()
        assert now == before
        assert await till.problems() == []
        again = await till.compare(fix=True)
        assert (again.adopted, again.differences) == ([], [])
        assert (await till.written()) == now


async def _pay_ships_and_leaves(till: Books) -> None:
    """Two orders are held, one is shipped and one is let go of."""
    payments = [row["id"] for row in await till.database.fetch("select id from payment order by merchant_order_id")]
    await ship(till.desk, till.shop, payments[0])
    await till.give_back(payments[1], "10.00")


async def _hold_two(till: Books) -> None:
    await ships(till.database, till.shop)
    for order in ("kept", "left"):
        await buy(till.desk, till.shop, order)


async def test_a_capture_and_a_void_that_were_forgotten_are_recorded(after: After) -> None:
    async with after(_pay_ships_and_leaves, known=_hold_two) as (till, before):
        found = await till.compare(fix=True)
        assert [one.reason.split(" of 10.00")[0] for one in found.adopted] == ["the capture", "the void"]
        now = await till.written()
        for name in ("payments", "ledger"):
            assert now[name] == before[name]
        assert now["told"] == before["told"]
        assert (found.differences, await till.problems()) == ([], [])


async def _hold_on_a_page(till: Books) -> None:
    led = await go_on(till.desk, await till.order("mug"))
    assert isinstance(led, ConfirmWithBank)
    till.bank.pages.pay(led.url.rpartition("/")[2], Way.WALLET, "")
    await till.settle(minutes=2)


async def test_a_forgotten_hold_is_to_be_shipped_before_it_ends(after: After) -> None:
    async with after(_hold_on_a_page, known=_ships) as (till, before):
        await till.draw_ids()
        await till.compare(fix=True)
        now = await till.written()
        assert (now["payments"], now["told"]) == (before["payments"], before["told"])
        (paid,) = await till.payments()
        assert abs(paid["ship_by"] - paid["paid_at"] - WALLET_HOLD_PERIOD) < timedelta(minutes=3)
        assert await till.problems() == []


async def _give_back_once_more(till: Books) -> None:
    await till.give_back(await till.named("mug"), "3.00", "K1")


async def test_a_caller_who_comes_again_finds_the_refund_that_was_forgotten(after: After) -> None:
    async with after(_give_back_once_more, known=_pay_and_give_back) as (till, before):
        payment_id = await till.named("mug")
        elsewhere = till.bank.record.decided(before["attempts"][0]["idempotency_key"])
        assert elsewhere is not None
        till.bank.refund("made in the bank's own pages", elsewhere.reference, Decimal(1), "USD")
        found = await till.compare(fix=True)
        assert (len(found.adopted), found.differences) == (2, [])
        assert (await till.give_back(payment_id, "3.00", "K1")).again
        assert (await till.give_back(payment_id, "2.00")).total == Decimal(10)
        assert till.taken() == [(Decimal(10), Decimal(10))]
        assert await till.problems() == []


async def test_what_can_not_be_adopted_is_named_and_left_alone(after: After) -> None:
    async def known(till: Books) -> None:
        await till.order("twice")
        await till.order("taken")

    async def forgotten(till: Books) -> None:
        for order in ("twice", "taken"):
            assert await till.pay(await till.order(order), VISA) == Paid()
        await buy(till.desk, till.shop, "club-1", terms=MONTHLY)

    async with after(forgotten, known=known) as (till, before):
        ids = {row["merchant_order_id"]: row["id"] for row in before["payments"]}
        elsewhere = replace(till, desk=replace(till.desk, pads=pads_of(b"another secret")))
        assert await elsewhere.pay(await till.order("twice"), MASTERCARD) == Paid()
        await breaking.say(till.database, "payment", {}, id=ids["taken"])
        await breaking.say(till.database, "payment_attempt", {}, payment_id=ids["taken"])
        await breaking.say(till.database, "pingback", {}, payment_id=ids["taken"])
        books = await till.written()
        found = await till.compare(fix=True)
        reasons = {one.reason.partition(": ")[2] for one in found.differences}
        assert (reasons, found.adopted) == (
            {why_not.PAID_TWICE, why_not.ID_TAKEN, why_not.NO_TERMS},
            [],
        )
        assert await till.written() == books
        forged = await elsewhere.compare(fix=True)
        assert {one.reason.partition(": ")[2] for one in forged.differences} == {why_not.FORGED}
        assert len(till.taken()) == 4, "nothing is given back by itself"


async def test_two_who_adopt_at_once_write_it_once(after: After) -> None:
    async def known(till: Books) -> None:
        await _order(till)
        await _subscribe(till)

    async def forgotten(till: Books) -> None:
        await _pay_and_give_back(till)
        await _renew(till)

    async with after(forgotten, known=known) as (till, before):
        found = await asyncio.gather(*(till.compare(fix=True) for _ in range(4)))
        assert sum(len(one.adopted) for one in found) == 3
        await till.compare(fix=True)
        assert (await till.written()) | {"told": []} == before | {"told": []}
        assert await till.problems() == []


async def test_ids_that_were_told_before_are_given_to_nobody_else(after: After) -> None:
    async with after(_join, known=_ask_for_club) as (till, before):
        await till.compare(fix=True)
        assert await till.pay(await till.order("other", terms=MONTHLY, amount=MONTHLY.price), VISA) == Paid()
        now = await till.written()
        for name in ("payments", "subscriptions"):
            assert [row["id"] for row in now[name]] == sorted({row["id"] for row in now[name]})
            assert now[name][0]["id"] == before[name][0]["id"]


async def test_without_fix_nothing_is_written(after: After) -> None:
    async with after(_pay) as (till, _):
        found = await till.compare()
        assert (len(found.differences), found.adopted) == (1, [])
        assert (await till.written())["payments"] == []


async def test_what_was_paid_twice_is_given_back_if_an_operator_says_so(after: After) -> None:
    async with after(_pay, known=_order) as (till, before):
        (forgotten,) = [row["idempotency_key"] for row in before["attempts"]]
        elsewhere = replace(till, desk=replace(till.desk, pads=pads_of(b"another secret")))
        assert await elsewhere.pay(await till.order("mug"), MASTERCARD) == Paid()
        (left,) = (await till.compare(fix=True)).differences
        assert left.key == forgotten
        assert till.taken() == [(Decimal(10), Decimal(0))] * 2
        for _ in range(2):
            with suppress(Conflict):
                given = await give_back(till.desk, "simulator", forgotten, actor=COMMAND_LINE, now=utc_now())
        assert (given.merchant_order_id, given.amount) == ("mug", Decimal(10))
        assert till.taken() == [(Decimal(10), Decimal(0))]
        (line,) = await list_entries(till.database, till.shop.merchant_id, Page(5), action=Action.purchase_given_back)
        assert (line.subject, line.operator, line.details["order"]) == (f"purchase {forgotten}", True, "mug")
        assert line.details.get("test", False) is not till.shop.live
        found = await till.compare(fix=True)
        assert (found.differences, found.adopted, await till.problems()) == ([], [], [])
        paid = await till.database.fetchval("select idempotency_key from payment_attempt")
        with pytest.raises(Conflict, match="is in our books"):
            await give_back(till.desk, "simulator", paid, actor=COMMAND_LINE, now=utc_now())
        with pytest.raises(NotFound):
            await give_back(till.desk, "simulator", "nobody's", actor=COMMAND_LINE, now=utc_now())


async def test_what_was_paid_twice_is_given_back_by_itself_if_a_setting_says_so(after: After) -> None:
    async def known(till: Books) -> None:
        for order in ("mug", "other"):
            await till.order(order)

    async def forgotten(till: Books) -> None:
        for order in ("mug", "other"):
            assert await till.pay(await till.order(order), VISA) == Paid()

    async with after(forgotten, known=known) as (till, _):
        elsewhere = replace(till, desk=replace(till.desk, pads=pads_of(b"another secret")))
        assert await elsewhere.pay(await till.order("mug"), MASTERCARD) == Paid()
        willing = replace(till, desk=replace(till.desk, gives_back_paid_twice=True))
        epoch = (await read(till.database)).beat.epoch
        await hold(till.database, epoch=epoch, above=epoch, because="restored", since=None)
        left = (await willing.compare(fix=True)).differences
        assert [why_not.PAID_TWICE in one.reason for one in left] == [True], "nothing goes back while it is held"
        assert till.taken() == [(Decimal(10), Decimal(0))] * 3
        await accept(till.database, COMMAND_LINE, "it was paid twice", is_live=False, now=utc_now())
        first, second = await willing.compare(fix=True), await willing.compare(fix=True)
        assert (first.adopted, second.differences) == ([], [])
        assert till.taken() == [(Decimal(10), Decimal(0))] * 2


async def test_what_is_being_given_back_is_not_adopted(after: After) -> None:
    async with after(_pay) as (till, before):
        (forgotten,) = [row["idempotency_key"] for row in before["attempts"]]
        deaf = till.at(answering(till.desk.acquirers["simulator"], undo=ending_in(OutcomeUnknown("no answer"))))
        with pytest.raises(Unavailable, match="does not say yet that it has given it back"):
            await give_back(deaf.desk, "simulator", forgotten, actor=COMMAND_LINE, now=utc_now())
        assert (await till.compare(fix=True)).adopted == []
        await finish_given_back(till.desk, "simulator", Unleased(till.desk.database), now=utc_now())
        assert till.taken() == []
        assert (await till.compare(fix=True)).differences == []


async def test_what_can_not_be_adopted_and_was_given_back_is_over(after: After) -> None:
    async def forgotten(till: Books) -> None:
        await _join(till)
        await till.give_back(await till.named("club-1"), "10.00")

    async with after(forgotten) as (till, _):
        assert {one.what for one in (await till.compare()).differences} == {"purchase", "refund"}
        found = await till.compare(fix=True)
        assert (found.differences, found.adopted) == ([], [])


async def _transfer(till: Books) -> None:
    slow = await till.offering_slow_methods()
    led = await go_on(slow.desk, await till.order("mug"))
    assert isinstance(led, ConfirmWithBank)
    till.bank.pages.pay(led.url.rpartition("/")[2], Way.TRANSFER, "")
    await till.settle(minutes=2)


@pytest.mark.parametrize("known", [_order, None])
async def test_a_transfer_that_is_on_its_way_is_adopted_as_pending_and_paid_once_it_arrives(
    after: After, known: Any
) -> None:
    async with after(_transfer, known=known) as (till, before):
        assert await till.states() == []
        await till.compare(fix=True)
        (payment,) = await till.payments()
        assert (payment["state"], payment["id"]) == ("pending", before["payments"][0]["id"])
        assert await till.differences() == []
        assert await till.problems() == []
        await till.settle(days=20)
        assert await till.states() == ["captured"]
        assert [event for event, *_ in (await till.written())["told"]] == ["payment"]
        assert till.taken() == [(Decimal(10), Decimal(0))]
