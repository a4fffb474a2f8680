"""What the bank remembers and our database forgot is written down as it was, once,
and nothing else is.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from tests import breaking
from tests.banks import answering, ending_in
from tests.domain.operations.forgetting import MASTERCARD, VISA, Desks, Forgetful
from tests.shopfront import MONTHLY, buy, ship, ships, subscribe
from tests.till import Till

from paydesk.adapters.acquirers.interface import OutcomeUnknown
from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict, NotFound, Unavailable
from paydesk.core.paging import Page
from paydesk.domain.accounts.audit import COMMAND_LINE, Action, list_entries
from paydesk.domain.operations import adopting
from paydesk.domain.operations.giving_back import finish_given_back, give_back
from paydesk.domain.operations.history import hold, read
from paydesk.domain.operations.holding import accept
from paydesk.domain.payments.idempotency_keys import pads_of
from paydesk.domain.payments.paying import Paid

DECLINED = "4000000000000002"


async def _order(till: Desks) -> None:
    await till.order("mug")


async def _ships(till: Desks) -> None:
    await ships(till.database, till.shop)
    await till.order("mug")


async def _pay(till: Desks) -> None:
    await buy(till.desk, till.shop, "mug")


async def _pay_at_the_second_try(till: Desks) -> None:
    await till.pay(await till.order("mug"), DECLINED)
    await _pay(till)


async def _decline(till: Desks) -> None:
    await till.pay(await till.order("mug"), DECLINED)


async def _subscribe(till: Desks) -> None:
    await subscribe(till.desk, till.shop)


async def _ask_for_club(till: Desks) -> None:
    await till.order("club-1", terms=MONTHLY)


async def _join(till: Desks) -> None:
    await buy(till.desk, till.shop, "club-1", terms=MONTHLY)


async def _renew(till: Desks, times: int = 1) -> None:
    club = Till(till.desk, till.shop)
    found = await till.database.fetchval("select id from subscription")
    for _ in range(times):
        due = await till.database.fetchval("select date_next from subscription where id = $1", found)
        assert await club.charge(due) == 1


async def _renew_three(till: Desks) -> None:
    await _renew(till, 3)


async def _pay_and_give_back(till: Desks) -> None:
    await _pay(till)
    await till.give_back(await till.payment("mug"), "4.00")


async def _pay_and_give_all_back(till: Desks) -> None:
    await _pay(till)
    for part in ("4.00", "6.00"):
        await till.give_back(await till.payment("mug"), part)


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
async def test_what_was_forgotten_is_written_down_as_it_was(forgetful: Forgetful, known: Any, forgotten: Any) -> None:
    async with forgetful.after(forgotten, known=known) as (till, before):
        await till.draw_ids()
        found = await till.reconcile()
        assert (found.differences, len(found.adopted) > 0) == ([], True)
        now = await till.books()
        assert now.rows == before.rows
        assert now.told == before.told
        assert await till.broken() == []
        again = await till.reconcile()
        assert (again.adopted, again.differences) == ([], [])
        assert (await till.books()) == now


async def _pay_ships_and_leaves(till: Desks) -> None:
    """Two orders are held, one is shipped and one is let go of."""
    payments = [row["id"] for row in await till.database.fetch("select id from payment order by merchant_order_id")]
    await ship(till.desk, till.shop, payments[0])
    await till.give_back(payments[1], "10.00")


async def _hold_two(till: Desks) -> None:
    await ships(till.database, till.shop)
    for order in ("kept", "left"):
        await buy(till.desk, till.shop, order)


async def test_a_capture_and_a_void_that_were_forgotten_are_recorded(forgetful: Forgetful) -> None:
    async with forgetful.after(_pay_ships_and_leaves, known=_hold_two) as (till, before):
        found = await till.reconcile()
        assert [one.reason.split(" of 10.00")[0] for one in found.adopted] == ["the capture", "the void"]
        now = await till.books()
        for name in ("payments", "ledger"):
            assert now.rows[name] == before.rows[name]
        assert now.told == before.told
        assert (found.differences, await till.broken()) == ([], [])


async def _give_back_once_more(till: Desks) -> None:
    await till.give_back(await till.payment("mug"), "3.00", "K1")


async def test_a_caller_who_comes_again_finds_the_refund_that_was_forgotten(forgetful: Forgetful) -> None:
    async with forgetful.after(_give_back_once_more, known=_pay_and_give_back) as (till, before):
        payment_id = await till.payment("mug")
        elsewhere = till.bank.record.decided(before.rows["attempts"][0]["idempotency_key"])
        assert elsewhere is not None
        till.bank.refund("made in the bank's own pages", elsewhere.reference, Decimal(1), "USD")
        found = await till.reconcile()
        assert (len(found.adopted), found.differences) == (2, [])
        assert (await till.give_back(payment_id, "3.00", "K1")).again
        assert (await till.give_back(payment_id, "2.00")).total == Decimal(10)
        assert till.taken() == [(Decimal(10), Decimal(10))]
        assert await till.broken() == []


async def test_what_can_not_be_adopted_is_named_and_left_alone(forgetful: Forgetful) -> None:
    async def known(till: Desks) -> None:
        await till.order("twice")
        await till.order("taken")

    async def forgotten(till: Desks) -> None:
        for order in ("twice", "taken"):
            assert await till.pay(await till.order(order), VISA) == Paid()
        await buy(till.desk, till.shop, "club-1", terms=MONTHLY)

    async with forgetful.after(forgotten, known=known) as (till, before):
        ids = {row["merchant_order_id"]: row["id"] for row in before.rows["payments"]}
        elsewhere = replace(till, desk=replace(till.desk, pads=pads_of(b"another secret")))
        assert await elsewhere.pay(await till.order("twice"), MASTERCARD) == Paid()
        await breaking.say(till.database, "payment", {}, id=ids["taken"])
        await breaking.say(till.database, "payment_attempt", {}, payment_id=ids["taken"])
        await breaking.say(till.database, "pingback", {}, payment_id=ids["taken"])
        books = await till.books()
        found = await till.reconcile()
        reasons = {one.reason.partition(": ")[2] for one in found.differences}
        assert (reasons, found.adopted) == ({adopting.PAID_TWICE, adopting.ID_TAKEN, adopting.NO_TERMS}, [])
        assert await till.books() == books
        forged = await elsewhere.reconcile()
        assert {one.reason.partition(": ")[2] for one in forged.differences} == {adopting.FORGED}
        assert len(till.taken()) == 4, "nothing is given back by itself"


async def test_two_who_adopt_at_once_write_it_once(forgetful: Forgetful) -> None:
    async def known(till: Desks) -> None:
        await _order(till)
        await _subscribe(till)

    async def forgotten(till: Desks) -> None:
        await _pay_and_give_back(till)
        await _renew(till)

    async with forgetful.after(forgotten, known=known) as (till, before):
        found = await asyncio.gather(*(till.reconcile() for _ in range(4)))
        assert sum(len(one.adopted) for one in found) == 3
        await till.reconcile()
        assert (await till.books()).rows == before.rows
        assert await till.broken() == []


async def test_ids_that_were_told_before_are_given_to_nobody_else(forgetful: Forgetful) -> None:
    async with forgetful.after(_join, known=_ask_for_club) as (till, before):
        await till.reconcile()
        assert await till.pay(await till.order("other", terms=MONTHLY, amount=MONTHLY.price), VISA) == Paid()
        now = await till.books()
        for name in ("payments", "subscriptions"):
            assert [row["id"] for row in now.rows[name]] == sorted({row["id"] for row in now.rows[name]})
            assert now.rows[name][0]["id"] == before.rows[name][0]["id"]


async def test_without_fix_nothing_is_written(forgetful: Forgetful) -> None:
    async with forgetful.after(_pay) as (till, _):
        found = await till.reconcile(fix=False)
        assert (len(found.differences), found.adopted) == (1, [])
        assert (await till.books()).rows["payments"] == []


async def test_what_was_paid_twice_is_given_back_if_an_operator_says_so(forgetful: Forgetful) -> None:
    async with forgetful.after(_pay, known=_order) as (till, before):
        (forgotten,) = [row["idempotency_key"] for row in before.rows["attempts"]]
        elsewhere = replace(till, desk=replace(till.desk, pads=pads_of(b"another secret")))
        assert await elsewhere.pay(await till.order("mug"), MASTERCARD) == Paid()
        (left,) = (await till.reconcile()).differences
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
        found = await till.reconcile()
        assert (found.differences, found.adopted, await till.broken()) == ([], [], [])
        paid = await till.database.fetchval("select idempotency_key from payment_attempt")
        with pytest.raises(Conflict, match="is in our books"):
            await give_back(till.desk, "simulator", paid, actor=COMMAND_LINE, now=utc_now())
        with pytest.raises(NotFound):
            await give_back(till.desk, "simulator", "nobody's", actor=COMMAND_LINE, now=utc_now())


async def test_what_was_paid_twice_is_given_back_by_itself_if_a_setting_says_so(forgetful: Forgetful) -> None:
    async def known(till: Desks) -> None:
        for order in ("mug", "other"):
            await till.order(order)

    async def forgotten(till: Desks) -> None:
        for order in ("mug", "other"):
            assert await till.pay(await till.order(order), VISA) == Paid()

    async with forgetful.after(forgotten, known=known) as (till, _):
        elsewhere = replace(till, desk=replace(till.desk, pads=pads_of(b"another secret")))
        assert await elsewhere.pay(await till.order("mug"), MASTERCARD) == Paid()
        willing = replace(till, desk=replace(till.desk, gives_back_paid_twice=True))
        epoch = (await read(till.database)).beat.epoch
        await hold(till.database, epoch=epoch, above=epoch, because="restored", since=None)
        left = (await willing.reconcile()).differences
        assert [adopting.PAID_TWICE in one.reason for one in left] == [True], "nothing goes back while it is held"
        assert till.taken() == [(Decimal(10), Decimal(0))] * 3
        await accept(till.database, COMMAND_LINE, "it was paid twice", now=utc_now())
        first, second = await willing.reconcile(), await willing.reconcile()
        assert (first.adopted, second.differences) == ([], [])
        assert till.taken() == [(Decimal(10), Decimal(0))] * 2


async def test_what_is_being_given_back_is_not_adopted(forgetful: Forgetful) -> None:
    async with forgetful.after(_pay) as (till, before):
        (forgotten,) = [row["idempotency_key"] for row in before.rows["attempts"]]
        deaf = till.at(answering(till.desk.acquirers["simulator"], undo=ending_in(OutcomeUnknown("no answer"))))
        with pytest.raises(Unavailable, match="it is not known"):
            await give_back(deaf.desk, "simulator", forgotten, actor=COMMAND_LINE, now=utc_now())
        assert (await till.reconcile()).adopted == []
        await finish_given_back(till.desk, "simulator", now=utc_now())
        assert till.taken() == []
        assert (await till.reconcile()).differences == []


async def test_what_can_not_be_adopted_and_was_given_back_is_over(forgetful: Forgetful) -> None:
    async def forgotten(till: Desks) -> None:
        await _join(till)
        await till.give_back(await till.payment("club-1"), "10.00")

    async with forgetful.after(forgotten) as (till, _):
        assert {one.what for one in (await till.reconcile(fix=False)).differences} == {"purchase", "refund"}
        found = await till.reconcile()
        assert (found.differences, found.adopted) == ([], [])
