"""A suspended merchant takes no live money and is paid out none,
and nothing that was under way is lost.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from decimal import Decimal

import pytest
from tests import set_back
from tests.banks import HeardBank, answering, ending_in, live_bank_of
from tests.domain.ledger.paying_out import record_payout
from tests.proving import check
from tests.shopfront import go_on
from tests.till import Till

from paydesk.adapters.acquirers.hosted_pages import Page as BankPage
from paydesk.adapters.acquirers.hosted_pages import PageRequest, PageState
from paydesk.adapters.acquirers.interface import Acquirer, OutcomeUnknown
from paydesk.adapters.acquirers.simulator import Bank, SimulatedAcquirer
from paydesk.adapters.acquirers.simulator.own_pages import Way
from paydesk.adapters.acquirers.simulator.record import Kind
from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict
from paydesk.core.paging import Page
from paydesk.domain.accounts.audit import COMMAND_LINE
from paydesk.domain.ledger.payouts import Payout, list_payouts
from paydesk.domain.ledger.settling import settle_due
from paydesk.domain.merchants.customer_links import Link
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.operations.merchants import resume_merchant, suspend_merchant
from paydesk.domain.payments.checkouts import Standing
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.results import ConfirmWithBank, Paid, Refused, Result, Unsettled

APPROVED = "4242424242424242"


@pytest.fixture
async def live_bank(bank: Bank) -> AsyncIterator[SimulatedAcquirer]:
    live_bank = live_bank_of(bank)
    yield live_bank
    await live_bank.close()


@pytest.fixture
def live_till(desk: Desk, shop: Shop, live_bank: SimulatedAcquirer) -> Till:
    """The merchant's live side."""
    acquirers = {**desk.acquirers, live_bank.name: live_bank}
    return Till(replace(desk, acquirers=acquirers, live_acquirer=live_bank.name), replace(shop, live=True))


def at_live(till: Till, bank: Acquirer) -> Till:
    """The live side with another bank behind it."""
    return replace(till, desk=replace(till.desk, acquirers={**till.desk.acquirers, bank.name: bank}))


async def suspend(till: Till) -> None:
    await suspend_merchant(till.desk.database, COMMAND_LINE, till.shop.merchant_id, reason="Fraud", now=utc_now())


async def resume(till: Till) -> None:
    await resume_merchant(till.desk.database, COMMAND_LINE, till.shop.merchant_id, now=utc_now())


async def broken_rules(till: Till) -> list[str]:
    """What `paydesk check` finds at the merchant."""
    found = await check(till.desk.database, now=utc_now(), merchant_id=till.shop.merchant_id)
    return [finding.rule.statement for finding in found if finding.found]


async def test_an_open_checkout_closes_until_the_suspension_is_lifted(live_till: Till, till: Till) -> None:
    token, test_token = await live_till.order(), await till.order()
    await suspend(live_till)
    assert (await live_till.find(token)).standing is Standing.SUSPENDED
    with pytest.raises(Conflict, match="suspended"):
        await live_till.pay(token, APPROVED)
    assert await live_till.attempts() == []
    assert await till.pay(test_token, APPROVED) == Paid(), "tests go on"
    await resume(live_till)
    assert await live_till.pay(token, APPROVED) == Paid()


async def test_a_charge_that_the_bank_has_when_its_shop_is_suspended_is_recorded(
    live_till: Till, live_bank: SimulatedAcquirer
) -> None:
    held, token = HeardBank(live_bank, held=True), await live_till.order()
    paying = asyncio.create_task(at_live(live_till, held).pay(token, APPROVED))
    await held.asked.wait()
    await suspend(live_till)
    held.let_go.set()
    assert await paying == Paid()
    assert (await live_till.find(token)).standing is Standing.PAID
    assert await broken_rules(live_till) == []


# One card pays at once so often that its guard may speak first.
NOT_BEGUN = (Refused("suspended"), Refused("too_many_attempts"))


async def test_suspending_amid_payments_loses_none_and_begins_none_afterwards(
    live_till: Till, live_bank: SimulatedAcquirer
) -> None:
    held = HeardBank(live_bank, held=True)
    held.let_go.set()
    live_till = at_live(live_till, held)
    tokens = [await live_till.order() for _ in range(60)]

    async def pay_after(token: Link, moments: int) -> Result | Conflict:
        for _ in range(moments):
            await asyncio.sleep(0)
        try:
            return await live_till.pay(token, APPROVED)
        except Conflict as error:
            return error

    answers = asyncio.gather(*(pay_after(token, 40 * number) for number, token in enumerate(tokens)))
    await held.asked.wait()
    await suspend(live_till)
    begun = len(await live_till.attempts())
    outcomes = Counter(
        "paid" if one == Paid() else "refused" if one in NOT_BEGUN or isinstance(one, Conflict) else str(one)
        for one in await answers
    )
    assert outcomes["paid"] + outcomes["refused"] == len(tokens), outcomes
    assert outcomes["paid"] > 0
    assert await live_till.attempt_states() == ["approved"] * outcomes["paid"]
    assert begun >= outcomes["paid"], "none is begun once the suspension is written"
    assert await broken_rules(live_till) == []


async def test_a_suspended_merchant_is_paid_out_nothing_until_that_is_lifted(live_till: Till) -> None:
    database, shop = live_till.desk.database, live_till.shop
    assert await live_till.pay(await live_till.order(), APPROVED) == Paid()
    due = {"funds_due_at": utc_now(), "funds_look_at": utc_now()}
    await set_back.times(database, "payment", {"merchant_id": shop.merchant_id}, **due)
    await settle_due(database, real_now=utc_now())

    async def pay_out() -> Payout:
        return await record_payout(
            database, shop, Decimal(5), "USD", reference="TRF-1", recorded_by="operator", now=utc_now()
        )

    await suspend(live_till)
    with pytest.raises(Conflict, match="suspended"):
        await pay_out()
    assert await list_payouts(database, shop, Page(10)) == []
    await resume(live_till)
    assert (await pay_out()).amount == 5


class TestPages:
    async def test_open_pages_are_ended_at_the_acquirer(self, live_till: Till, bank: Bank) -> None:
        page = await _page(live_till, await live_till.order())
        await suspend(live_till)
        await live_till.settle(seconds=1)
        assert await live_till.attempt_states() == ["abandoned"]
        assert _paid(bank, page) is PageState.ENDED

    async def test_what_was_paid_before_counts_as_what_is_under_way(self, live_till: Till, bank: Bank) -> None:
        page = await _page(live_till, await live_till.order())
        await suspend(live_till)
        assert _paid(bank, page) is PageState.PAID
        await live_till.settle(seconds=1)
        assert await live_till.state() == "captured"

    async def test_it_is_tried_again_until_the_acquirer_has_done_it(self, live_till: Till, bank: Bank) -> None:
        page = await _page(live_till, await live_till.order())
        await suspend(live_till)
        mute = answering(live_till.desk.acquirers["live bank"], end_page=ending_in(OutcomeUnknown("no answer")))
        await at_live(live_till, mute).settle(seconds=1)
        assert await live_till.attempt_states() == ["challenged"]
        await live_till.settle(minutes=1, seconds=2)
        assert await live_till.attempt_states() == ["abandoned"]
        assert _paid(bank, page) is PageState.ENDED

    async def test_a_page_whose_answer_was_lost_is_ended_too(self, live_till: Till, bank: Bank) -> None:
        honest = live_till.desk.acquirers["live bank"]

        async def lost(wanted: PageRequest) -> BankPage:
            await honest.open_page(wanted)
            raise OutcomeUnknown("the answer was lost")

        link = await live_till.order()
        assert await go_on(at_live(live_till, answering(honest, open_page=lost)).desk, link) == Unsettled()
        await suspend(live_till)
        await live_till.settle(seconds=1)
        assert await live_till.attempt_states() == ["failed"]
        (page,) = [line.reference for line in bank.record.operations() if line.kind is Kind.PAGE]
        assert _paid(bank, page) is PageState.ENDED

    async def test_nobody_is_led_to_one_meanwhile_and_tests_go_on(
        self, live_till: Till, till: Till, bank: Bank
    ) -> None:
        link = await live_till.order()
        page = await _page(live_till, link)
        of_tests = await _page(till, await till.order())
        await suspend(live_till)
        assert await go_on(live_till.desk, link) == Refused("suspended")
        assert _paid(bank, page) is PageState.ENDED
        await live_till.settle(seconds=1)
        assert _paid(bank, of_tests) is PageState.PAID


async def _page(till: Till, link: Link) -> str:
    result = await go_on(till.desk, link)
    assert isinstance(result, ConfirmWithBank)
    return result.url.rpartition("/")[2]


def _paid(bank: Bank, page: str) -> PageState:
    """How a page stands after somebody tried to pay on it."""
    shown = bank.pages.pay(page, Way.CARD, APPROVED)
    assert shown is not None
    return shown.state
