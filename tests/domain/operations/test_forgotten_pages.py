"""A page that our database has forgotten is paid by nobody, or its payment is adopted."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from tests import breaking, shopfront
from tests.banks import answering, ending_in
from tests.domain.operations.books import Books
from tests.domain.operations.conftest import After
from tests.lengths import long
from tests.shopfront import GOOD as VISA

from paydesk.adapters.acquirers.hosted_pages import Page, PageList, PageState
from paydesk.adapters.acquirers.interface import OutcomeUnknown
from paydesk.adapters.acquirers.marks import Mark, PurchaseKind
from paydesk.adapters.acquirers.simulator.own_pages import Shown, Way
from paydesk.adapters.acquirers.simulator.record import Kind
from paydesk.core.clock import utc_now
from paydesk.core.errors import Unavailable
from paydesk.domain.operations.differences import DifferenceKind
from paydesk.domain.operations.history import hold, read
from paydesk.domain.operations.holding import lift_if_whole
from paydesk.domain.payments.results import ConfirmWithBank, Paid
from paydesk.domain.test_clock.resetting import reset_test_side


async def _order(till: Books) -> None:
    await till.order("mug")


async def _go(till: Books) -> None:
    assert isinstance(await shopfront.go_on(till.desk, await till.order("mug")), ConfirmWithBank)


def page_of(till: Books) -> str:
    """The last page that the bank has made."""
    made = [line for line in till.bank.record.operations() if line.kind is Kind.PAGE]
    return made[-1].reference


def pay(till: Books, page: str, way: Way = Way.CARD) -> Shown:
    shown = till.bank.pages.pay(page, way, VISA)
    assert shown is not None
    return shown


def taken(till: Books) -> list[Decimal]:
    """What the bank has taken, and not given back, purchase by purchase."""
    return [one.net for one in till.standings().values() if one.net]


def at(till: Books, **calls: Any) -> Books:
    """The till with a bank of which some calls are answered by others."""
    bank = answering(till.desk.acquirers["simulator"], **calls)
    return replace(till, desk=replace(till.desk, acquirers={"simulator": bank}))


async def test_a_forgotten_page_is_ended_before_anybody_pays_on_it(after: After) -> None:
    async with after(_go, known=_order) as (till, _):
        page = page_of(till)
        found = await till.compare(fix=True)
        assert [(one.what, one.reference) for one in found.ended] == [("page", page)]
        assert "10.00 USD for order mug" in found.ended[0].reason
        assert found.differences == []
        assert pay(till, page).state is PageState.ENDED
        assert taken(till) == []


async def test_what_was_paid_on_one_is_adopted_with_what_it_was_paid_with(after: After) -> None:
    async def paid(till: Books) -> None:
        await _go(till)
        pay(till, page_of(till), Way.WALLET)
        await till.settle(minutes=2)

    async with after(paid, known=_order) as (till, before):
        found = await till.compare(fix=True)
        assert ([one.what for one in found.adopted], found.ended, found.differences) == (["purchase"], [], [])
        now = await till.written()
        assert (now["payments"], now["ledger"], now["told"]) == (before["payments"], before["ledger"], before["told"])
        card = await till.database.fetchrow("select brand, last4, wallet from card")
        assert tuple(card) == ("visa", "4242", "test_wallet")
        assert await till.problems() == []


async def test_one_that_is_paid_while_it_is_ended_is_adopted(after: After) -> None:
    async with after(_go, known=_order) as (till, _):
        honest = till.desk.acquirers["simulator"]

        async def end_page(key: str, reference: str) -> Page:
            pay(till, reference)
            return await honest.end_page(key, reference)

        found = await at(till, end_page=end_page).compare(fix=True)
        assert ([one.what for one in found.adopted], found.ended, found.differences) == (["purchase"], [], [])
        assert taken(till) == [Decimal(10)]
        assert await till.problems() == []


async def test_its_customer_pays_on_another_one(after: After) -> None:
    async with after(_go, known=_order) as (till, _):
        first = page_of(till)
        await till.compare(fix=True)
        link = await till.order("mug")
        assert isinstance(await shopfront.go_on(till.desk, link), ConfirmWithBank)
        assert page_of(till) != first
        assert pay(till, page_of(till)).state is PageState.PAID
        await till.settle(minutes=2)
        assert taken(till) == [Decimal(10)]
        assert await till.problems() == []


async def test_without_adopting_it_is_told_and_no_more(after: After) -> None:
    async with after(_go, known=_order) as (till, _):
        (one,) = (await till.compare()).differences
        assert (one.what, one.kind) == ("page", DifferenceKind.UNKNOWN_HERE)
        assert await till.alarms() == [("not_reconciled", one.subject)]
        assert (await till.compare(fix=True)).differences == []
        assert await till.alarms() == []


async def test_one_whose_customer_is_with_their_bank_is_told_until_it_is_decided(after: After) -> None:
    async def left(till: Books) -> None:
        await _go(till)
        pay(till, page_of(till), Way.BANK)

    async with after(left, known=_order) as (till, _):
        for _ in range(2):
            assert [one.what for one in (await till.compare(fix=True)).differences] == ["page"]
        till.bank.pages.decide(page_of(till), approve=True)
        found = await till.compare(fix=True)
        assert ([one.what for one in found.adopted], found.differences, await till.alarms()) == (["purchase"], [], [])


async def test_one_that_can_not_be_ended_just_now_is_told_and_ended_later(after: After) -> None:
    async with after(_go, known=_order) as (till, _):
        mute = at(till, end_page=ending_in(OutcomeUnknown("no answer")))
        assert [one.what for one in (await mute.compare(fix=True)).differences] == ["page"]
        found = await till.compare(fix=True)
        assert (len(found.ended), found.differences, await till.alarms()) == (1, [], [])


async def test_one_whose_money_is_on_its_way_is_adopted_so_and_holds_nobody_up(after: After) -> None:
    async def transferred(till: Books) -> None:
        slow = await till.offering_slow_methods()
        await _go(slow)
        pay(till, page_of(till), Way.TRANSFER)

    async with after(transferred, known=_order) as (till, _):
        found = await till.compare(fix=True)
        assert ([one.what for one in found.adopted], found.ended, found.differences) == (["purchase"], [], [])
        assert await till.state() == "pending"


@long
async def test_pages_that_our_books_know_are_left_alone(after: After) -> None:
    async with after(_order, known=_go) as (till, _):
        found = await till.compare(fix=True)
        assert (found.ended, found.differences) == ([], [])
        assert pay(till, page_of(till)).state is PageState.PAID


@long
async def test_one_of_an_attempt_that_failed_is_ended(after: After) -> None:
    async with after(_order, known=_go) as (till, _):
        await breaking.say(till.database, "payment_attempt", {}, state="failed", lookup_at=None)
        assert len((await till.compare(fix=True)).ended) == 1
        assert pay(till, page_of(till)).state is PageState.ENDED


@long
@pytest.mark.parametrize("mark", [None, "another deployment"])
async def test_pages_of_others_are_left_alone(after: After, mark: str | None) -> None:
    async with after(_go, known=_order) as (till, _):
        honest = till.desk.acquirers["simulator"]
        of = mark and Mark(mark, 1, "shop", live=False, kind=PurchaseKind.ORDER, order="mug")

        async def list_pages(since: datetime, after: str) -> PageList:
            listed = await honest.list_pages(since, after)
            return replace(listed, pages=tuple(replace(one, mark=of or None) for one in listed.pages))

        found = await at(till, list_pages=list_pages).compare(fix=True)
        assert (found.ended, found.differences) == ([], [])


@long
async def test_a_list_of_pages_that_can_not_be_read_is_an_error(after: After) -> None:
    async with after(_go, known=_order) as (till, _):
        with pytest.raises(Unavailable, match="can't be read"):
            await at(till, list_pages=ending_in(OutcomeUnknown("no answer"))).compare(fix=True)


@long
async def test_a_page_of_an_emptied_test_side_is_nobodys(after: After) -> None:
    async with after(_order, known=_go) as (till, _):
        await reset_test_side(till.database, till.shop.merchant_id)
        found = await till.compare(fix=True)
        assert (found.ended, found.differences) == ([], [])


class TestHold:
    async def test_it_stays_until_the_pages_are_read_and_then_ends(self, after: After) -> None:
        async with after(_go, known=_order) as (till, _):
            now = utc_now()
            began = await read(till.database)
            await hold(
                till.database, epoch=began.beat.epoch, above=0, because="restored", since=now - timedelta(hours=1)
            )
            deaf = at(till, list_pages=ending_in(OutcomeUnknown("no answer")))
            with pytest.raises(Unavailable):
                await lift_if_whole(deaf.desk, await read(till.database))
            mute = at(till, end_page=ending_in(OutcomeUnknown("no answer")))
            assert [one.what for one in await lift_if_whole(mute.desk, await read(till.database))] == ["page"]
            assert (await read(till.database)).held_because
            assert await lift_if_whole(till.desk, await read(till.database)) == []
            assert not (await read(till.database)).held_because
            assert pay(till, page_of(till)).state is PageState.ENDED
            assert await till.pay(await till.order("mug"), VISA) == Paid()
