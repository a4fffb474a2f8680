"""An order that is paid by a slow method is pending until its bank has sent the money: nobody pays
it a second time meanwhile, and its shop hears of it once, when the money is sure.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from prometheus_client import REGISTRY
from tests import breaking, set_back, shopfront
from tests.banks import ending_in
from tests.proving import check

from paydesk.adapters.acquirers.hosted_pages import Page as HostedPage
from paydesk.adapters.acquirers.hosted_pages import PageState
from paydesk.adapters.acquirers.interface import Declined, DeclineReason, Earlier, Voided
from paydesk.adapters.acquirers.simulator import Bank
from paydesk.adapters.acquirers.simulator.own_pages import Way
from paydesk.adapters.acquirers.simulator.purchase_state import Standing
from paydesk.adapters.acquirers.wrapping import PassingAcquirer
from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict
from paydesk.core.paging import Page
from paydesk.domain.payments.challenges import settle_challenge
from paydesk.domain.payments.checkouts import Standing as CheckoutStanding
from paydesk.domain.payments.for_api import PaymentFilter, list_payments
from paydesk.domain.payments.janitor import watch_open_outcomes
from paydesk.domain.payments.results import ConfirmWithBank, Paid, Unsettled
from paydesk.domain.payments.states import PaymentState

Charges = Callable[[], list[Standing]]

VISA = "4242424242424242"
ORDER = ("hosted_page", "payment_attempt", "payment", "customer", "card")
"""Where an order stands that was tried."""


@pytest.fixture
async def slow(till: Any) -> Any:
    """A till whose pages offer slow methods."""
    return await till.offering_slow_methods()


def page_of(result: object) -> str:
    assert isinstance(result, ConfirmWithBank)
    return result.url.rpartition("/")[2]


async def come_back(till: Any, link: Any) -> object:
    checkout = await till.find(link)
    assert checkout.attempt is not None
    return await settle_challenge(till.desk, checkout, checkout.attempt, now=checkout.now)


async def transfer(till: Any, bank: Bank, link: Any, way: Way = Way.TRANSFER) -> str:
    """A customer chooses a transfer and comes back; the page's name."""
    page = page_of(await shopfront.go_on(till.desk, link))
    bank.pages.pay(page, way, "")
    assert await come_back(till, link) == Unsettled()
    assert (await till.state(), (await till.attempt_states())[-1]) == ("pending", "pending")
    return page


async def told(till: Any) -> list[str]:
    rows = await till.desk.database.fetch(
        "select event, payload from pingback where merchant_id = $1 order by id", till.shop.merchant_id
    )
    return [row["event"] for row in rows]


class Later(PassingAcquirer):
    """Changes what the bank says of pages, and of older purchases."""

    tells: Callable[[HostedPage], HostedPage] = staticmethod(lambda page: page)
    of_older: Callable[[Earlier], Earlier] = staticmethod(lambda earlier: earlier)

    async def find_page(self, key: str, reference: str) -> HostedPage:
        return self.tells(await self.honest.find_page(key, reference))

    async def look_back(self, key: str, since: datetime | None = None) -> Earlier | None:
        earlier = await self.honest.look_back(key, since)
        return None if earlier is None else self.of_older(earlier)


def honest(till: Any) -> Any:
    return till.honest


class TestWaiting:
    async def test_the_shop_hears_of_it_once_when_the_money_is_there(
        self, slow: Any, bank: Bank, charges: Charges
    ) -> None:
        link = await slow.order()
        await transfer(slow, bank, link)
        assert await told(slow) == []
        assert not [charge for charge in charges() if charge.net]
        await slow.settle(hours=47)
        assert await slow.state() == "pending"
        await slow.settle(hours=49)
        assert (await slow.state(), await slow.attempt_states()) == ("captured", ["approved"])
        assert await told(slow) == ["payment"]
        assert [charge.net for charge in charges()] == [Decimal(10)]
        await slow.settle(hours=60)
        assert await told(slow) == ["payment"]

    async def test_the_shop_is_told_what_it_was_paid_with(self, slow: Any, bank: Bank) -> None:
        await transfer(slow, bank, await slow.order())
        await slow.settle(hours=49)
        payload = await slow.desk.database.fetchval(
            "select payload from pingback where merchant_id = $1", slow.shop.merchant_id
        )
        assert '"payment_system":4' in payload.replace(" ", "")

    async def test_who_does_not_come_back_is_found_pending(self, slow: Any, bank: Bank) -> None:
        link = await slow.order()
        bank.pages.pay(page_of(await shopfront.go_on(slow.desk, link)), Way.TRANSFER, "")
        await slow.settle(minutes=2)
        assert await slow.state() == "pending"
        assert (await slow.find(link)).standing is CheckoutStanding.PENDING

    async def test_the_order_is_paid_by_nothing_else_meanwhile(self, slow: Any, bank: Bank, charges: Charges) -> None:
        link = await slow.order("A-1")
        await transfer(slow, bank, link)
        other = await slow.order("A-1", amount="12.00")
        for checkout in (link, other):
            with pytest.raises(Conflict):
                await slow.pay(checkout, VISA)
            with pytest.raises(Conflict):
                await shopfront.go_on(slow.desk, checkout)
        assert (await slow.find(other)).standing is CheckoutStanding.PENDING
        assert not [charge for charge in charges() if charge.net]

    async def test_two_who_come_back_at_once_record_it_once(self, slow: Any, bank: Bank) -> None:
        link = await slow.order()
        bank.pages.pay(page_of(await shopfront.go_on(slow.desk, link)), Way.TRANSFER, "")
        assert set(await asyncio.gather(*(come_back(slow, link) for _ in range(5)))) == {Unsettled()}
        assert await slow.attempt_states() == ["pending"]
        await asyncio.gather(*(slow.settle(hours=49) for _ in range(3)))
        assert await told(slow) == ["payment"]

    async def test_a_card_typed_while_the_transfer_was_chosen_is_not_charged(
        self, slow: Any, bank: Bank, charges: Charges
    ) -> None:
        link = await slow.order()
        bank.pages.pay(page_of(await shopfront.go_on(slow.desk, link)), Way.TRANSFER, "")
        assert await slow.pay(link, VISA) == Unsettled()
        assert await slow.state() == "pending"
        assert not [charge for charge in charges() if charge.net]

    async def test_what_was_heard_and_not_written_down_is_heard_again(
        self, slow: Any, bank: Bank, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        link = await slow.order()
        bank.pages.pay(page_of(await shopfront.go_on(slow.desk, link)), Way.TRANSFER, "")
        with monkeypatch.context() as dying:
            dying.setattr("paydesk.domain.payments.results.record_pending", ending_in(ConnectionResetError()))
            with pytest.raises(ConnectionResetError):
                await come_back(slow, link)
        assert await slow.state() == "challenged"
        await slow.settle(minutes=2)
        assert await slow.state() == "pending"

    async def test_the_shop_finds_it_among_its_pending_payments(self, slow: Any, bank: Bank) -> None:
        await transfer(slow, bank, await slow.order("A-1"))
        assert await slow.pay(await slow.order("A-2"), VISA) == Paid()
        wanted = PaymentFilter(states=frozenset({PaymentState.PENDING}))
        found = await list_payments(slow.desk.database, slow.shop, wanted, Page(10))
        assert [one.merchant_order_id for one in found] == ["A-1"]

    async def test_the_books_are_right_while_it_waits_and_say_so_if_it_takes_too_long(
        self, slow: Any, bank: Bank
    ) -> None:
        await transfer(slow, bank, await slow.order())
        merchant_id, now = slow.shop.merchant_id, utc_now()
        for days, broken in ((0, []), (2, []), (4, ["outcomes_known"])):
            found = await check(slow.desk.database, merchant_id=merchant_id, now=now + timedelta(days=days))
            assert [finding.rule.statement for finding in found if finding.found] == broken


class TestMetrics:
    async def test_what_is_on_its_way_is_counted_with_its_age(self, slow: Any, bank: Bank) -> None:
        await set_back.nothing_to_look_up(slow.desk.database)
        await transfer(slow, bank, await slow.order())
        await watch_open_outcomes(slow.desk.database, now=utc_now() + timedelta(hours=30))
        assert self.told("test")[0] == 1
        assert self.told("test")[1] == pytest.approx(30 * 3600, abs=600)
        assert self.told("live") == (0, 0)
        await slow.settle(hours=49)
        await watch_open_outcomes(slow.desk.database, now=utc_now())
        assert self.told("test") == (0, 0)

    @staticmethod
    def told(mode: str) -> tuple[float, float]:
        names = ("paydesk_pending_payments", "paydesk_pending_payment_age_seconds")
        waiting, oldest = (REGISTRY.get_sample_value(name, {"mode": mode}) for name in names)
        assert waiting is not None
        assert oldest is not None
        return waiting, oldest


class TestComingToNothing:
    async def test_the_customer_may_pay_again_and_the_shop_hears_nothing(
        self, slow: Any, bank: Bank, charges: Charges
    ) -> None:
        link = await slow.order()
        await transfer(slow, bank, link, Way.FAILING_TRANSFER)
        await slow.settle(hours=49)
        assert (await slow.state(), await slow.attempt_states()) == ("declined", ["failed"])
        assert await told(slow) == []
        assert await slow.pay(await slow.order(), VISA) == Paid()

    async def test_the_same_order_is_paid_by_card_then(self, slow: Any, bank: Bank, charges: Charges) -> None:
        link = await slow.order("A-1")
        await transfer(slow, bank, link, Way.FAILING_TRANSFER)
        await slow.settle(hours=49)
        assert await slow.pay(await slow.order("A-1", amount="10.50"), VISA) == Paid()
        assert await told(slow) == ["payment"]
        assert [charge.net for charge in charges() if charge.net] == [Decimal("10.50")]

    async def test_money_that_comes_after_all_is_given_back(self, slow: Any, bank: Bank, charges: Charges) -> None:
        later = Later(honest(slow))
        slow = slow.at(later)
        await transfer(slow, bank, await slow.order())
        later.tells = lambda page: replace(page, state=PageState.ENDED)
        await slow.settle(hours=47)
        assert await slow.attempt_states() == ["failed"]
        later.tells = lambda page: page
        await bank_pays(slow)
        await slow.settle(hours=48)
        assert await slow.attempt_states() == ["voided"]
        assert (await slow.state(), await told(slow)) == ("declined", [])
        assert not [charge for charge in charges() if charge.net]


async def bank_pays(till: Any) -> None:
    (attempt,) = await till.attempts()
    await honest(till).pass_time(attempt["idempotency_key"])


class TestGivenUp:
    async def test_a_transfer_on_a_page_that_was_left_is_given_back_once_it_arrives(
        self, slow: Any, bank: Bank, charges: Charges
    ) -> None:
        link = await slow.order()
        page = page_of(await shopfront.go_on(slow.desk, link))
        bank.pages.pay(page, Way.BANK, "")
        assert await slow.pay(link, VISA) == Paid()
        assert await slow.attempt_states() == ["abandoned", "approved"]
        bank.pages.decide(page, approve=False)
        bank.pages.pay(page, Way.TRANSFER, "")
        for hours in (1, 24, 47):
            await slow.settle(hours=hours)
        assert await slow.attempt_states() == ["abandoned", "approved"]
        abandoned, _ = await slow.attempts()
        await honest(slow).pass_time(abandoned["idempotency_key"])
        await slow.settle(hours=49)
        assert await slow.attempt_states() == ["voided", "approved"]
        assert sum(charge.net for charge in charges()) == Decimal(10)
        assert await told(slow) == ["payment"]


class TestWhatIsOffered:
    async def test_no_page_takes_a_transfer_unless_that_is_wanted(self, till: Any, bank: Bank) -> None:
        page = page_of(await shopfront.go_on(till.desk, await till.order()))
        shown = bank.pages.pay(page, Way.TRANSFER, "")
        assert shown is not None
        assert shown.state is PageState.OPEN

    async def test_the_merchant_and_the_operator_both_have_to_want_it(self, till: Any, bank: Bank) -> None:
        async def offers(one: Any) -> bool:
            shown = bank.pages.show(page_of(await shopfront.go_on(one.desk, await one.order())))
            return shown is not None and Way.TRANSFER in shown.ways

        assert not await offers(replace(till, desk=replace(till.desk, slow_methods=True)))
        assert await offers(await till.offering_slow_methods())
        assert not await offers(till)

    async def test_a_page_keeps_what_it_was_asked_for_with(self, slow: Any, till: Any, bank: Bank) -> None:
        link = await slow.order()
        page = page_of(await shopfront.go_on(slow.desk, link))
        bank.pages.pay(page, Way.TRANSFER, "")
        assert await come_back(till, link) == Unsettled()
        assert await till.state() == "pending"


class TestForgotten:
    @pytest.mark.parametrize(
        ("came_to", "state", "events"),
        [("the money", "captured", ["payment"]), ("nothing", "declined", []), ("a decline", "declined", [])],
    )
    async def test_a_pending_purchase_that_the_database_forgot_is_taken_up_by_its_key(
        self, slow: Any, bank: Bank, charges: Charges, came_to: str, state: str, events: list[str]
    ) -> None:
        later = Later(honest(slow))
        slow = slow.at(later)
        way = Way.FAILING_TRANSFER if came_to == "nothing" else Way.TRANSFER
        link = await slow.order("A-1")
        await transfer(slow, bank, link, way)
        await breaking.forget(slow.desk.database, slow.shop.merchant_id, *ORDER)
        assert await shopfront.go_on(slow.desk, link) == Unsettled()
        assert await slow.state() == "pending"
        with pytest.raises(Conflict):
            await slow.pay(link, VISA)
        await bank_pays(slow)
        if came_to == "a decline":
            later.of_older = lambda earlier: replace(earlier, finding=Declined(DeclineReason.INSUFFICIENT_FUNDS))
        await slow.settle(hours=49)
        assert (await slow.state(), await told(slow)) == (state, events)
        assert len([charge for charge in charges() if charge.net]) == len(events) + (came_to == "a decline")

    async def test_what_came_to_nothing_and_is_paid_after_all_is_given_back(
        self, slow: Any, bank: Bank, charges: Charges
    ) -> None:
        later = Later(honest(slow))
        slow = slow.at(later)
        link = await slow.order("A-1")
        await transfer(slow, bank, link)
        await breaking.forget(slow.desk.database, slow.shop.merchant_id, *ORDER)
        assert await shopfront.go_on(slow.desk, link) == Unsettled()
        later.of_older = lambda earlier: replace(earlier, finding=Voided())
        await slow.settle(hours=47)
        assert (await slow.state(), await slow.attempt_states()) == ("declined", ["failed"])
        later.of_older = lambda earlier: earlier
        await slow.settle(hours=48)
        assert await slow.attempt_states() == ["failed"], "the bank is still waited for"
        await bank_pays(slow)
        await slow.settle(hours=50)
        assert await slow.attempt_states() == ["voided"]
        assert (await slow.state(), await told(slow)) == ("declined", [])
        assert not [charge for charge in charges() if charge.net]
