"""What is shipped and paid on an acquirer's own page: its money is held there, for as long as what
was paid with holds it, and is captured, given back and let go of as any other.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from tests import set_back, shopfront

from paydesk.adapters.acquirers.hosted_pages import Page, PageRequest, PageState
from paydesk.adapters.acquirers.interface import Finding, MovementFinding, OutcomeUnknown, UnderWay
from paydesk.adapters.acquirers.simulator.holding import WALLET_HOLD_PERIOD
from paydesk.adapters.acquirers.simulator.own_pages import Way
from paydesk.adapters.acquirers.simulator.record import Kind
from paydesk.adapters.acquirers.wrapping import PassingAcquirer
from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict, Unavailable
from paydesk.domain.payments.challenges import settle_challenge
from paydesk.domain.payments.refunding import RefundStatus
from paydesk.domain.payments.results import ConfirmWithBank, Paid
from paydesk.domain.payments.time_to_ship import TIME_TO_SHIP

VISA = "4242424242424242"
DAY = timedelta(days=1)


async def lead(warehouse: Any, link: Any) -> str:
    """A customer goes on to the acquirer's page; its reference."""
    result = await shopfront.go_on(warehouse.desk, link)
    assert isinstance(result, ConfirmWithBank)
    return result.url.rpartition("/")[2]


async def back(warehouse: Any, link: Any) -> object:
    checkout = await warehouse.find(link)
    return await settle_challenge(warehouse.desk, checkout, checkout.attempt, now=checkout.now)


async def hold(warehouse: Any, reference: str = "A-1", way: Way = Way.CARD) -> int:
    """A customer has paid on the page; the payment's id."""
    link = await warehouse.order(reference)
    warehouse.bank.pages.pay(await lead(warehouse, link), way, VISA)
    assert await back(warehouse, link) == Paid()
    return await shopfront.payment_of(warehouse.database, warehouse.shop, reference)


async def mails(warehouse: Any) -> list[tuple[str, bool]]:
    """What the merchant was told of orders: each mail's kind, and whether one ships sooner."""
    rows = await warehouse.rows("mail")
    return [(row["kind"], "sooner" in json.loads(row["facts"])) for row in rows]


class TestHolding:
    async def test_the_money_is_held_until_the_shipment_takes_it(self, warehouse: Any) -> None:
        payment_id = await hold(warehouse)
        assert (await warehouse.state(payment_id), await warehouse.rows("ledger_entry")) == ("authorized", [])
        assert await warehouse.events() == ["payment"]
        await warehouse.confirm(payment_id)
        assert (await warehouse.state(payment_id), warehouse.standing().net) == ("captured", Decimal(10))
        await warehouse.give_back(payment_id, "4.00")
        assert warehouse.standing().net == 6
        assert await warehouse.problems() == []

    async def test_a_bank_that_would_take_it_at_once_is_not_offered(self, warehouse: Any) -> None:
        page = await lead(warehouse, await warehouse.order())
        shown = warehouse.bank.pages.pay(page, Way.BANK, "")
        assert (shown.state, shown.asks, shown.ways) == (PageState.OPEN, False, (Way.CARD, Way.WALLET))

    async def test_whoever_never_comes_back_has_it_held_all_the_same(self, warehouse: Any) -> None:
        warehouse.bank.pages.pay(await lead(warehouse, await warehouse.order()), Way.WALLET, "")
        await warehouse.settle(minutes=2)
        row = (await warehouse.payments())[0]
        assert row["state"] == "authorized"
        assert row["ship_by"] < row["paid_at"] + WALLET_HOLD_PERIOD + timedelta(minutes=1)

    async def test_a_lost_answer_is_asked_for_with_just_the_same(self, warehouse: Any) -> None:
        losing = Losing(warehouse.desk.acquirers["simulator"])
        till = warehouse.at(losing)
        link = await till.order()
        await shopfront.go_on(till.desk, link)
        await till.settle(seconds=10)
        assert [asked.capture for asked in losing.asked] == [False, False]
        assert losing.asked[0] == losing.asked[1]
        warehouse.bank.pages.pay(await lead(till, link), Way.CARD, VISA)
        assert await back(till, link) == Paid()
        assert await warehouse.state() == "authorized"

    async def test_a_shop_that_ships_since_gets_another_page(self, warehouse: Any) -> None:
        await shopfront.ships(warehouse.database, warehouse.shop, shipped=False)
        link = await warehouse.order()
        first = await lead(warehouse, link)
        await shopfront.ships(warehouse.database, warehouse.shop)
        second = await lead(warehouse, link)
        assert warehouse.bank.pages.pay(first, Way.CARD, VISA).state is PageState.ENDED
        warehouse.bank.pages.pay(second, Way.CARD, VISA)
        assert await back(warehouse, link) == Paid()
        assert await warehouse.state() == "authorized"

    async def test_an_acquirer_that_holds_for_too_short_a_time_is_not_asked(self, warehouse: Any) -> None:
        short = PassingAcquirer(warehouse.desk.acquirers["simulator"])
        short.hold_period = timedelta(days=6)
        till = warehouse.at(short)
        with pytest.raises(Unavailable, match="holds money for 6 days"):
            await shopfront.go_on(till.desk, await till.order())
        assert await warehouse.attempts() == []

    async def test_what_is_held_twice_is_let_go_of_once(self, warehouse: Any) -> None:
        """The order is paid by card while its page can't be ended, and then there too."""
        link = await warehouse.order()
        stubborn = warehouse.at(Stubborn(warehouse.desk.acquirers["simulator"]))
        page = await lead(stubborn, link)
        assert await stubborn.pay(link) == Paid()
        warehouse.bank.pages.pay(page, Way.WALLET, "")
        await warehouse.settle(seconds=10)
        assert await warehouse.attempt_states() == ["voided", "approved"]
        assert sorted(one.held for one in warehouse.standings().values()) == [0, 10]


class Losing(PassingAcquirer):
    """Loses its first answer to a request for a page, once it has acted."""

    def __init__(self, honest: Any) -> None:
        super().__init__(honest)
        self.asked: list[PageRequest] = []

    async def open_page(self, wanted: PageRequest) -> Page:
        self.asked.append(wanted)
        made = await self.honest.open_page(wanted)
        if len(self.asked) == 1:
            raise OutcomeUnknown("the answer was lost")
        return made


class Stubborn(PassingAcquirer):
    """Ends no page."""

    async def end_page(self, key: str, reference: str) -> Page:
        return await self.honest.find_page(key, reference)


class Telling(PassingAcquirer):
    """Tells of another end of holds than the bank."""

    def __init__(self, honest: Any, until: datetime | None) -> None:
        super().__init__(honest)
        self.until = until

    async def find_page(self, key: str, reference: str) -> Page:
        return replace(await self.honest.find_page(key, reference), hold_until=self.until)


class TestShippingSooner:
    async def test_a_card_holds_for_the_whole_week_and_nobody_is_told(self, warehouse: Any) -> None:
        row = await warehouse.payment(await hold(warehouse))
        assert abs(row["ship_by"] - row["paid_at"] - TIME_TO_SHIP) < timedelta(hours=1)
        assert await warehouse.act(hours=1) == 0
        assert await mails(warehouse) == []

    async def test_a_shorter_hold_moves_the_day_and_the_merchant_is_told_at_once(self, warehouse: Any) -> None:
        payment_id = await hold(warehouse, way=Way.WALLET)
        row = await warehouse.payment(payment_id)
        assert abs(row["ship_by"] - row["paid_at"] - WALLET_HOLD_PERIOD) < timedelta(minutes=1)
        assert [await warehouse.act(), await warehouse.act(days=3, hours=23)] == [1, 0]
        assert await mails(warehouse) == [("void_reminder", True)]
        assert await warehouse.act(days=4, hours=1) == 1
        assert await mails(warehouse) == [("void_reminder", True), ("void_reminder", False)]
        assert await warehouse.act(days=5) == 1
        assert await warehouse.state(payment_id) == "voided"
        assert await warehouse.problems() == []

    async def test_many_workers_tell_it_once(self, warehouse: Any) -> None:
        await hold(warehouse, way=Way.WALLET)
        assert sum(await asyncio.gather(*(warehouse.act() for _ in range(6)))) == 1
        assert await mails(warehouse) == [("void_reminder", True)]

    async def test_the_day_goes_by_the_shops_own_clock(self, warehouse: Any) -> None:
        await set_back.clock_runs_ahead(warehouse.database, warehouse.shop.merchant_id, 30 * DAY)
        row = await warehouse.payment(await hold(warehouse, way=Way.WALLET))
        assert row["paid_at"] > utc_now() + 29 * DAY
        assert abs(row["ship_by"] - row["paid_at"] - WALLET_HOLD_PERIOD) < timedelta(minutes=1)

    @pytest.mark.parametrize(
        ("lasts", "days"),
        [(None, 7), (30 * DAY, 7), (DAY / 2, 0.5), (-DAY, 0)],
        ids=["untold", "long", "short", "over"],
    )
    async def test_the_day_is_the_acquirers_end_but_no_later_than_a_week(
        self, warehouse: Any, lasts: timedelta | None, days: float
    ) -> None:
        telling = Telling(warehouse.desk.acquirers["simulator"], None if lasts is None else utc_now() + lasts)
        row = await warehouse.payment(await hold(warehouse.at(telling)))
        assert abs(row["ship_by"] - row["paid_at"] - days * DAY) < timedelta(minutes=1)
        assert await warehouse.problems() == []

    async def test_what_is_held_for_hours_is_told_once(self, warehouse: Any) -> None:
        telling = Telling(warehouse.desk.acquirers["simulator"], utc_now() + DAY / 2)
        await hold(warehouse.at(telling))
        assert [await warehouse.act(), await warehouse.act(hours=1)] == [1, 0]
        assert await mails(warehouse) == [("void_reminder", False)]


class Slow(PassingAcquirer):
    """Takes note of voids, and makes them once it is `done`; `asked` are their keys."""

    def __init__(self, honest: Any) -> None:
        super().__init__(honest)
        self.asked: list[str] = []
        self.done = False

    async def void(self, key: str, of_key: str) -> Any:
        self.asked.append(key)
        return UnderWay()

    async def undo(self, key: str, of_key: str) -> Finding | UnderWay:
        self.asked.append(key)
        return await self.honest.undo(key, of_key) if self.done else UnderWay()

    async def find_movement(self, key: str, of_key: str, reference: str) -> MovementFinding:
        if key not in self.asked:
            return await self.honest.find_movement(key, of_key, reference)
        if self.done:
            await self.honest.void(key, of_key)
            return await self.honest.find_movement(key, of_key, reference)
        return UnderWay()


class TestLettingGoLater:
    @pytest.fixture
    def slow(self, warehouse: Any) -> Slow:
        return Slow(warehouse.desk.acquirers["simulator"])

    async def test_a_void_that_was_only_asked_for_is_processing_until_it_is_shown(
        self, warehouse: Any, slow: Slow
    ) -> None:
        till = warehouse.at(slow)
        payment_id = await hold(till)
        await till.act(days=7)
        await till.act(days=7)
        (movement,) = await till.rows("movement")
        assert (movement["state"], await till.state(payment_id)) == ("processing", "authorized")
        for _ in range(3):
            await till.finish(hours=2)
        assert (len(slow.asked), await till.events()) == (1, ["payment"]), "nothing is sent again, nothing is told"
        slow.done = True
        await till.finish(hours=4)
        assert (await till.state(payment_id), await till.events()) == ("voided", ["payment", "refund"])
        assert await till.at_the_bank(payment_id) == [Kind.PAGE, Kind.APPROVE, Kind.VOID]

    async def test_what_is_being_let_go_of_is_not_shipped(self, warehouse: Any, slow: Slow) -> None:
        till = warehouse.at(slow)
        payment_id = await hold(till)
        await till.act(days=7)
        with pytest.raises(Conflict, match="is being voided"):
            await till.confirm(payment_id)

    async def test_one_that_the_merchant_gave_back_is_told_as_under_way_and_asked_for_once(
        self, warehouse: Any, slow: Slow
    ) -> None:
        till = warehouse.at(slow)
        payment_id = await hold(till)
        told = [await till.give_back(payment_id, key="K-1") for _ in range(2)]
        assert [one.status for one in told] == [RefundStatus.PROCESSING] * 2
        assert (len(slow.asked), len(await till.rows("movement"))) == (1, 1)
        slow.done = True
        await till.finish(hours=1)
        assert await till.state(payment_id) == "voided"

    async def test_a_second_hold_that_is_let_go_of_later_raises_no_alarm(self, warehouse: Any, slow: Slow) -> None:
        link = await warehouse.order()
        stubborn = warehouse.at(Stubborn(warehouse.desk.acquirers["simulator"]))
        page = await lead(stubborn, link)
        assert await stubborn.pay(link) == Paid()
        warehouse.bank.pages.pay(page, Way.WALLET, "")
        till = warehouse.at(slow)
        await till.settle(seconds=10)
        assert await till.attempt_states() == ["voiding", "approved"]
        slow.done = True
        await till.settle(minutes=10)
        assert await till.attempt_states() == ["voided", "approved"]
        assert await till.rows("alarm") == []
