from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from tests import breaking, shopfront
from tests.banks import answering, ending_in
from tests.lengths import at_length, longer

from paydesk.adapters.acquirers.hosted_pages import LONGEST_LIFE, Capabilities, Page, PageRequest, PageState
from paydesk.adapters.acquirers.interface import AcquirerRefused, NoSuchPage, NothingHeld, OutcomeUnknown
from paydesk.adapters.acquirers.simulator import Bank
from paydesk.adapters.acquirers.simulator.own_pages import Way
from paydesk.adapters.acquirers.simulator.purchase_state import Standing
from paydesk.adapters.acquirers.simulator.record import Kind
from paydesk.adapters.acquirers.wrapping import PassingAcquirer
from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict, Gone, NotFound, Unavailable
from paydesk.domain.payments.challenges import settle_challenge
from paydesk.domain.payments.checkouts import Standing as CheckoutStanding
from paydesk.domain.payments.hurrying import REST, Notified, hurry_named
from paydesk.domain.payments.janitor import settle_due
from paydesk.domain.payments.older_pages import give_back_older
from paydesk.domain.payments.refunding import refund
from paydesk.domain.payments.results import ConfirmWithBank, Paid, Refused, Unsettled
from paydesk.domain.privacy.belongings import Subject
from paydesk.domain.privacy.erasing import erase

Charges = Callable[[], list[Standing]]

VISA = "4242424242424242"


class Odd(PassingAcquirer):
    """Loses as many answers to requests for a page as it is told to, once it has acted,
    and changes what it says of one.
    """

    loses = 0
    tells: Callable[[Page], Page] = staticmethod(lambda page: page)

    def __init__(self, honest: Any) -> None:
        super().__init__(honest)
        self.asked: list[PageRequest] = []

    async def open_page(self, wanted: PageRequest) -> Page:
        self.asked.append(wanted)
        made = await self.honest.open_page(wanted)
        if self.loses:
            self.loses -= 1
            raise OutcomeUnknown("the answer was lost")
        return self.tells(made)

    async def find_page(self, key: str, reference: str) -> Page:
        return self.tells(await self.honest.find_page(key, reference))


class Unsure(Odd):
    """Makes a page, loses the answer once, and then says nothing for good of it while `unsure`."""

    unsure = ""

    async def open_page(self, wanted: PageRequest) -> Page:
        page = await super().open_page(wanted)
        if self.unsure == "away":
            raise OutcomeUnknown("no answer")
        return replace(page, state=PageState.PENDING) if self.unsure == "pending" else page

    async def end_page(self, key: str, reference: str) -> Page:
        if self.unsure:
            raise OutcomeUnknown("no answer")
        return await self.honest.end_page(key, reference)


def vague(honest: Any, says: str) -> Any:
    """A bank that says nothing for good about any page."""

    async def find_page(key: str, reference: str) -> Page:
        if says == "nothing":
            raise OutcomeUnknown("no answer")
        state = PageState.PENDING if says == "not sure yet" else PageState.OPEN
        page: Page = await honest.find_page(key, reference)
        return replace(page, state=state)

    return answering(honest, find_page=find_page, end_page=find_page)


def honest(till: Any) -> Any:
    return till.honest


def reference_of(result: object) -> str:
    assert isinstance(result, ConfirmWithBank)
    return result.url.rpartition("/")[2]


async def come_back(till: Any, link: Any) -> object:
    checkout = await till.find(link)
    assert checkout.attempt is not None
    return await settle_challenge(till.desk, checkout, checkout.attempt, now=checkout.now)


async def pingbacks(till: Any) -> list[str]:
    rows = await till.desk.database.fetch(
        "select event from pingback where merchant_id = $1 order by id", till.shop.merchant_id
    )
    return [row["event"] for row in rows]


async def card(till: Any) -> tuple[str, str, str]:
    row = await till.desk.database.fetchrow(
        "select brand, last4, wallet from card where merchant_id = $1 order by id desc limit 1", till.shop.merchant_id
    )
    return tuple(row)


async def alarms(till: Any) -> list[str]:
    rows = await till.desk.database.fetch(
        "select kind from alarm where merchant_id = $1 and settled_at is null", till.shop.merchant_id
    )
    return [row["kind"] for row in rows]


class TestPayingThere:
    @pytest.mark.parametrize(
        ("way", "shown"),
        [
            (Way.CARD, ("visa", "4242", "")),
            (Way.WALLET, ("visa", "4242", "test_wallet")),
            (Way.BANK, ("bank", "", "")),
        ],
    )
    async def test_the_order_is_paid_once_the_customer_is_back(
        self, till: Any, bank: Bank, charges: Charges, way: Way, shown: tuple[str, str, str]
    ) -> None:
        link = await till.order()
        page = reference_of(await shopfront.go_on(till.desk, link))
        assert (await till.state(), await till.attempt_states()) == ("challenged", ["challenged"])
        bank.pages.pay(page, way, VISA)
        bank.pages.decide(page, approve=True)
        assert await come_back(till, link) == Paid()
        assert (await till.state(), await till.attempt_states()) == ("captured", ["approved"])
        assert [charge.net for charge in charges()] == [Decimal(10)]
        assert await pingbacks(till) == ["payment"]
        assert await card(till) == shown

    async def test_who_never_comes_back_has_paid_all_the_same(self, till: Any, bank: Bank) -> None:
        page = reference_of(await shopfront.go_on(till.desk, await till.order()))
        bank.pages.pay(page, Way.CARD, VISA)
        await till.settle(minutes=2)
        assert await till.state() == "captured"
        assert await pingbacks(till) == ["payment"]

    async def test_a_card_that_is_declined_there_leaves_the_page_open(self, till: Any, bank: Bank) -> None:
        link = await till.order()
        page = reference_of(await shopfront.go_on(till.desk, link))
        bank.pages.pay(page, Way.CARD, "4000000000000002")
        assert reference_of(await come_back(till, link)) == page
        bank.pages.pay(page, Way.CARD, VISA)
        assert await come_back(till, link) == Paid()

    async def test_a_paid_page_is_refunded_as_any_payment(self, till: Any, bank: Bank, charges: Charges) -> None:
        link = await till.order("A-1")
        bank.pages.pay(reference_of(await shopfront.go_on(till.desk, link)), Way.CARD, VISA)
        await come_back(till, link)
        payment_id = await shopfront.payment_of(till.desk.database, till.shop, "A-1")
        await refund(till.desk, till.shop, payment_id, None, requested_by="api", now=utc_now())
        assert not charges()


class TestWhatIsAsked:
    async def test_a_lost_answer_is_asked_for_again_with_just_the_same(self, till: Any, bank: Bank) -> None:
        odd = Odd(honest(till))
        odd.loses = 1
        till, link = till.at(odd), await till.order()
        assert await shopfront.go_on(till.desk, link) == Unsettled()
        assert (await till.find(link)).standing is CheckoutStanding.PROCESSING
        await till.settle(seconds=10)
        assert odd.asked[0] == odd.asked[1]
        assert len([line for line in bank.record.operations() if line.kind is Kind.PAGE]) == 1
        assert (await till.find(link)).standing is CheckoutStanding.CHALLENGED
        assert isinstance(await shopfront.go_on(till.desk, link), ConfirmWithBank)

    async def test_a_page_that_never_came_ends_the_attempt_and_the_next_one_pays(self, till: Any, bank: Bank) -> None:
        odd = Odd(honest(till))
        odd.loses = 5
        till, link = till.at(odd), await till.order()
        assert await shopfront.go_on(till.desk, link) == Unsettled()
        await till.settle(minutes=5)
        assert await till.attempt_states() == ["processing"]
        await till.settle(minutes=25)
        assert await till.attempt_states() == ["processing"]
        odd.loses = 0
        await till.settle(minutes=30)
        assert await till.attempt_states() == ["failed"]
        page = reference_of(await shopfront.go_on(till.desk, link))
        bank.pages.pay(page, Way.CARD, VISA)
        assert await come_back(till, link) == Paid()

    async def test_a_page_that_the_database_forgot_is_ended_before_another_is_made(
        self, till: Any, bank: Bank, charges: Charges
    ) -> None:
        odd = Odd(honest(till))
        odd.loses = 1
        till, link = till.at(odd), await till.order()
        assert await shopfront.go_on(till.desk, link) == Unsettled()
        (forgotten,) = [line.reference for line in bank.record.operations() if line.kind is Kind.PAGE]
        await till.settle(minutes=5)
        assert await till.attempt_states() == ["failed"]
        bank.pages.pay(forgotten, Way.CARD, VISA)
        bank.pages.pay(reference_of(await shopfront.go_on(till.desk, link)), Way.CARD, VISA)
        assert await come_back(till, link) == Paid()
        assert [charge.net for charge in charges()] == [Decimal(10)]

    @pytest.mark.parametrize("unsure", ["away", "pending", "ending times out"])
    async def test_a_forgotten_page_is_asked_for_until_its_acquirer_can_say(
        self, till: Any, bank: Bank, charges: Charges, unsure: str
    ) -> None:
        odd = Unsure(honest(till))
        odd.loses = 1
        till, link = till.at(odd), await till.order()
        assert await shopfront.go_on(till.desk, link) == Unsettled()
        (forgotten,) = [line.reference for line in bank.record.operations() if line.kind is Kind.PAGE]
        odd.unsure = unsure
        await till.settle(minutes=2)
        await till.settle(minutes=25)
        assert await till.attempt_states() == ["processing"]
        bank.pages.pay(forgotten, Way.CARD, VISA)
        odd.unsure = ""
        await till.settle(minutes=30)
        assert await till.state() == "captured"
        assert [charge.net for charge in charges()] == [Decimal(10)]

    async def test_a_request_that_is_refused_is_told_and_listed(self, till: Any) -> None:
        till, link = (
            till.at(answering(honest(till), open_page=ending_in(AcquirerRefused("no such currency here")))),
            await till.order(),
        )
        assert await shopfront.go_on(till.desk, link) == Refused("request_refused")
        assert await alarms(till) == ["request_refused"]

    async def test_the_page_ends_with_the_checkout_within_what_acquirers_take(self, till: Any) -> None:
        odd = Odd(honest(till))
        till, link = till.at(odd), await till.order()
        begun = utc_now()
        await shopfront.go_on(till.desk, link)
        (asked,) = odd.asked
        assert abs(asked.expires_at - begun - LONGEST_LIFE) < timedelta(minutes=1)

    @pytest.mark.parametrize(
        "wrong",
        [{"amount": Decimal(9)}, {"currency": "EUR"}, {"key": "another order's"}],
        ids=lambda one: next(iter(one)),
    )
    async def test_an_answer_about_something_else_is_an_alarm_and_nothing_more(
        self, till: Any, bank: Bank, wrong: dict[str, Any]
    ) -> None:
        odd = Odd(honest(till))
        till, link = till.at(odd), await till.order()
        page = reference_of(await shopfront.go_on(till.desk, link))
        bank.pages.pay(page, Way.CARD, VISA)
        odd.tells = lambda said: replace(said, **wrong)
        assert await come_back(till, link) == Unsettled()
        assert (await till.state(), await pingbacks(till), await alarms(till)) == ("challenged", [], ["contradiction"])

    async def test_money_that_is_not_sure_yet_is_waited_for(self, till: Any, bank: Bank) -> None:
        odd = Odd(honest(till))
        till, link = till.at(odd), await till.order()
        page = reference_of(await shopfront.go_on(till.desk, link))
        odd.tells = lambda said: replace(said, state=PageState.PENDING)
        assert await come_back(till, link) == Unsettled()
        assert await shopfront.go_on(till.desk, link) == Unsettled()
        assert await till.attempt_states() == ["challenged"]
        bank.pages.pay(page, Way.CARD, VISA)
        odd.tells = lambda said: said
        await till.settle(hours=1)
        assert await pingbacks(till) == ["payment"]


class TestTwoPages:
    async def test_the_same_order_leads_to_the_same_page(self, till: Any) -> None:
        link = await till.order()
        first = await shopfront.go_on(till.desk, link)
        assert await shopfront.go_on(till.desk, link) == first
        assert len(await till.attempts()) == 1

    async def test_an_address_that_was_mended_is_the_one_that_counts(
        self, till: Any, bank: Bank, charges: Charges
    ) -> None:
        odd = Odd(honest(till))
        till, link = till.at(odd), await till.order()
        first = reference_of(await shopfront.go_on(till.desk, link, email="ada@exmaple.com"))
        second = reference_of(await shopfront.go_on(till.desk, link, email="ada@example.com"))
        shown = bank.pages.pay(first, Way.CARD, VISA)
        assert shown is not None
        assert shown.state is PageState.ENDED
        bank.pages.pay(second, Way.CARD, VISA)
        assert await come_back(till, link) == Paid()
        assert [asked.email for asked in odd.asked] == ["ada@exmaple.com", "ada@example.com"]
        assert len(charges()) == 1

    async def test_another_amount_ends_the_first_page_and_makes_another(self, till: Any, bank: Bank) -> None:
        first = reference_of(await shopfront.go_on(till.desk, await till.order("A-1")))
        second = reference_of(await shopfront.go_on(till.desk, await till.order("A-1", amount="12.00")))
        assert second != first
        shown = bank.pages.pay(first, Way.CARD, VISA)
        assert shown is not None
        assert shown.state is PageState.ENDED
        assert await till.attempt_states() == ["abandoned", "challenged"]

    async def test_paying_by_card_ends_the_page(self, till: Any, bank: Bank, charges: Charges) -> None:
        link = await till.order()
        page = reference_of(await shopfront.go_on(till.desk, link))
        assert await till.pay(link, VISA) == Paid()
        bank.pages.pay(page, Way.CARD, VISA)
        assert sum(charge.net for charge in charges()) == Decimal(10)

    async def test_a_page_that_was_paid_meanwhile_is_what_counts(self, till: Any, bank: Bank, charges: Charges) -> None:
        link = await till.order()
        page = reference_of(await shopfront.go_on(till.desk, link))
        bank.pages.pay(page, Way.CARD, VISA)
        assert await till.pay(link, VISA) == Paid()
        assert [charge.net for charge in charges()] == [Decimal(10)]

    @pytest.mark.parametrize("by", ["the customer's return", "the janitor"])
    async def test_what_is_paid_on_a_page_that_could_not_be_ended_is_given_back(
        self, till: Any, bank: Bank, charges: Charges, by: str
    ) -> None:
        link = await till.order()
        page = reference_of(await shopfront.go_on(till.desk, link))
        bank.pages.pay(page, Way.BANK, "")
        assert await till.pay(link, VISA) == Paid()
        assert await till.attempt_states() == ["abandoned", "approved"]
        bank.pages.decide(page, approve=True)
        assert sum(charge.net for charge in charges()) == Decimal(20)
        if by == "the janitor":
            await till.settle(seconds=10)
        else:
            assert await give_back_older(till.desk, await till.find(link), real_now=utc_now())
        assert [charge.net for charge in charges()] == [Decimal(10)]
        assert await till.attempt_states() == ["voided", "approved"]
        assert await pingbacks(till) == ["payment"]
        assert (await till.find(link)).given_back

    @pytest.mark.parametrize("learnt", ["nothing", "not sure yet", "still open"])
    async def test_it_is_looked_at_until_the_acquirer_says_that_nobody_pays_there(
        self, till: Any, bank: Bank, charges: Charges, learnt: str
    ) -> None:
        says_nothing = vague(honest(till), learnt)
        link = await till.order()
        page = reference_of(await shopfront.go_on(till.desk, link))
        bank.pages.pay(page, Way.BANK, "")
        assert await till.pay(link, VISA) == Paid()
        bank.pages.decide(page, approve=True)
        await till.at(says_nothing).settle(hours=24, minutes=5)
        assert await till.attempt_states() == ["abandoned", "approved"]
        await till.settle(hours=25)
        assert await till.attempt_states() == ["voided", "approved"]
        assert [charge.net for charge in charges()] == [Decimal(10)]

    async def test_an_undoing_of_which_the_acquirer_knows_nothing_is_not_done(
        self, till: Any, bank: Bank, charges: Charges
    ) -> None:
        link = await till.order()
        page = reference_of(await shopfront.go_on(till.desk, link))
        bank.pages.pay(page, Way.BANK, "")
        assert await till.pay(link, VISA) == Paid()
        bank.pages.decide(page, approve=True)

        async def forget(*_: str) -> NothingHeld:
            return NothingHeld()

        await till.at(answering(honest(till), undo=forget)).settle(seconds=10)
        assert (await till.attempt_states(), await alarms(till)) == (["voiding", "approved"], ["contradiction"])
        await till.settle(minutes=10)
        assert await till.attempt_states() == ["voided", "approved"]
        assert [charge.net for charge in charges()] == [Decimal(10)]

    async def test_both_paid_at_the_same_moment_take_the_money_once(
        self, till: Any, bank: Bank, charges: Charges
    ) -> None:
        link = await till.order()
        page = reference_of(await shopfront.go_on(till.desk, link))
        bank.pages.pay(page, Way.BANK, "")
        await asyncio.gather(
            till.pay(link, VISA), asyncio.to_thread(bank.pages.decide, page, approve=True), return_exceptions=True
        )
        await till.settle(seconds=10)
        assert sum(charge.net for charge in charges()) == Decimal(10)
        assert await pingbacks(till) == ["payment"]


async def wait_for_both(till: Any, bank: Bank, link: Any) -> tuple[str, str]:
    """A customer who is with their bank on two pages of one order, of which one is given up."""
    first = reference_of(await shopfront.go_on(till.desk, link, email="ada@exmaple.com"))
    bank.pages.pay(first, Way.BANK, "")
    second = reference_of(await shopfront.go_on(till.desk, link))
    bank.pages.pay(second, Way.BANK, "")
    return first, second


async def end_while_paying(till: Any, bank: Bank, link: Any) -> tuple[str, str]:
    """A customer who pays on a page while another window of theirs goes on to another one."""
    first = reference_of(await shopfront.go_on(till.desk, link, email="ada@exmaple.com"))
    _, led = await asyncio.gather(
        asyncio.to_thread(bank.pages.pay, first, Way.CARD, VISA),
        shopfront.go_on(till.desk, link),
        return_exceptions=True,
    )
    return first, reference_of(led) if isinstance(led, ConfirmWithBank) else first


@longer
async def test_two_pages_of_an_order_that_are_paid_at_the_same_moment_take_the_money_once(
    till: Any, bank: Bank, charges: Charges
) -> None:
    rounds = at_length(200, 10)
    for number in range(rounds):
        link = await till.order(f"race-{number}")
        first, second = await (wait_for_both if number % 2 else end_while_paying)(till, bank, link)
        pays = [asyncio.to_thread(bank.pages.pay, second, Way.CARD, VISA)]
        pays += [asyncio.to_thread(bank.pages.decide, page, approve=True) for page in (first, second)]
        await asyncio.gather(
            *pays,
            come_back(till, link),
            give_back_older(till.desk, await till.find(link), real_now=utc_now()),
            return_exceptions=True,
        )
        # Pages are left alone for some seconds once they were looked at.
        await till.settle_all(minutes=2)
    await till.settle_all(hours=1)
    assert [charge.net for charge in charges()] == [Decimal(10)] * rounds
    assert [row["state"] for row in await till.payments()] == ["captured"] * rounds
    assert await till.events() == ["payment"] * rounds
    assert (await till.attempt_states()).count("voided") >= rounds // 2, "the second of two is given back"
    assert await till.problems() == []


class TestEnding:
    async def test_an_open_page_keeps_its_checkout_open(self, till: Any) -> None:
        link = await till.order()
        await shopfront.go_on(till.desk, link)
        late = await till.find(link, now=utc_now() + timedelta(hours=25))
        assert late.standing is CheckoutStanding.CHALLENGED

    async def test_an_hour_without_the_customer_does_not_end_it(self, till: Any) -> None:
        await shopfront.go_on(till.desk, await till.order())
        await till.settle(hours=2)
        assert await till.attempt_states() == ["challenged"]

    async def test_its_own_end_does(self, till: Any, bank: Bank) -> None:
        link = await till.order()
        page = reference_of(await shopfront.go_on(till.desk, link))
        await till.settle(hours=25)
        assert await till.attempt_states() == ["abandoned"]
        shown = bank.pages.pay(page, Way.CARD, VISA)
        assert shown is not None
        assert shown.state is PageState.ENDED
        (row,) = await till.attempts()
        assert row["decline_reason"] == "page_left"

    async def test_a_page_that_has_ended_is_not_asked_for_again(self, till: Any) -> None:
        link = await till.order()
        await shopfront.go_on(till.desk, link)
        await till.pay(link, VISA)
        await till.settle(seconds=10)
        assert [row["lookup_at"] for row in await till.attempts()] == [None, None]


class TestWhatGoesThere:
    async def test_no_subscription_does_where_nothing_is_kept(self, till: Any) -> None:
        keeps_nothing = PassingAcquirer(honest(till))
        keeps_nothing.capabilities = Capabilities(pages=True, stored=False)
        till = till.at(keeps_nothing)
        with pytest.raises(Unavailable, match="keeps nothing"):
            await shopfront.go_on(till.desk, await till.order(terms=shopfront.MONTHLY))


async def test_what_was_erased_is_not_asked_for_again(till: Any) -> None:
    odd = Odd(honest(till))
    odd.loses = 1
    till = till.at(odd)
    await shopfront.go_on(till.desk, await till.order())
    await breaking.say(till.desk.database, "hosted_page", {"merchant_id": till.shop.merchant_id}, asked="")
    await till.settle(seconds=10)
    assert len(odd.asked) == 1
    await till.settle(minutes=5)
    assert await till.attempt_states() == ["failed"]


class TestLostThere:
    """A page that its acquirer does not know any more."""

    async def test_it_is_waited_for_until_its_end_and_then_counts_as_not_paid_with_an_alarm(self, till: Any) -> None:
        link = await till.order()
        await shopfront.go_on(till.desk, link)
        lost = till.at(answering(honest(till), find_page=gone, end_page=gone))
        assert await come_back(lost, link) == Unsettled()
        await lost.settle(hours=23)
        await lost.settle(hours=24)
        assert (await till.attempt_states(), await alarms(till)) == (["challenged"], [])
        await lost.settle(hours=25, minutes=1)
        assert (await till.attempt_states(), await alarms(till)) == (["abandoned"], ["contradiction"])

    async def test_what_was_paid_under_its_key_counts(self, till: Any, bank: Bank, charges: Charges) -> None:
        page = reference_of(await shopfront.go_on(till.desk, await till.order()))
        bank.pages.pay(page, Way.CARD, VISA)
        await till.at(answering(honest(till), find_page=gone, end_page=gone)).settle(hours=24, minutes=20)
        assert (await till.state(), await alarms(till)) == ("captured", [])
        assert [charge.net for charge in charges()] == [Decimal(10)]
        assert await pingbacks(till) == ["payment"]

    async def test_another_sum_under_its_key_waits_for_an_operator(self, till: Any, bank: Bank) -> None:
        page = reference_of(await shopfront.go_on(till.desk, await till.order()))
        bank.pages.pay(page, Way.CARD, VISA)
        inner = honest(till)

        async def look_back(key: str) -> Any:
            return replace(await inner.look_back(key), amount=Decimal(9))

        lost = till.at(answering(inner, find_page=gone, end_page=gone, look_back=look_back))
        await lost.settle(hours=24, minutes=20)
        assert (await till.attempt_states(), await alarms(till)) == (["challenged"], ["order_held"])

    async def test_one_that_was_given_up_is_asked_for_no_more(self, till: Any, bank: Bank) -> None:
        link = await till.order()
        bank.pages.pay(reference_of(await shopfront.go_on(till.desk, link)), Way.BANK, "")
        assert await till.pay(link, VISA) == Paid()
        lost = till.at(answering(honest(till), find_page=gone, end_page=gone))
        await lost.settle(hours=24, minutes=20)
        assert await till.attempt_states() == ["abandoned", "approved"]
        assert (await till.attempts())[0]["lookup_at"] is None


async def gone(*_: str) -> Page:
    raise NoSuchPage("no such page")


class TestHurry:
    async def test_a_hurried_page_is_looked_at_at_once(self, till: Any, bank: Bank) -> None:
        page = reference_of(await shopfront.go_on(till.desk, await till.order()))
        bank.pages.pay(page, Way.CARD, VISA)
        assert await till.settle() == 0
        assert await hurry(till)
        assert await till.settle(seconds=1) == 1
        assert await till.state() == "captured"
        assert not await hurry(till), "nothing is waited for any more"

    async def test_one_that_was_just_looked_at_rests_for_a_moment(self, till: Any) -> None:
        await shopfront.go_on(till.desk, await till.order())
        before = utc_now() + timedelta(minutes=2)
        await till.settle(minutes=2)
        after = utc_now() + timedelta(minutes=2)
        assert await hurry(till, now=after)
        (row,) = await till.attempts()
        assert before <= row["lookup_at"] - REST <= after, "once it has rested since it was looked at"

    async def test_what_is_hurried_while_it_is_asked_for_is_asked_for_again(self, till: Any, bank: Bank) -> None:
        page = reference_of(await shopfront.go_on(till.desk, await till.order()))
        inner = honest(till)

        async def find_page(key: str, reference: str) -> Page:
            said: Page = await inner.find_page(key, reference)
            bank.pages.pay(page, Way.CARD, VISA)
            assert await hurry(till, now=utc_now() + timedelta(minutes=2))
            return said

        await till.at(answering(inner, find_page=find_page)).settle(minutes=2)
        assert await till.state() == "challenged"
        await till.settle(minutes=2, seconds=10)
        assert await till.state() == "captured"

    async def test_money_that_is_on_its_way_is_looked_at_once_its_acquirer_says_so(self, till: Any, bank: Bank) -> None:
        till = await till.offering_slow_methods()
        link = await till.order()
        page = reference_of(await shopfront.go_on(till.desk, link))
        bank.pages.pay(page, Way.TRANSFER, "")
        assert await come_back(till, link) == Unsettled()
        assert await till.state() == "pending"
        assert await till.settle() == 0
        assert await hurry(till)
        assert await till.settle(seconds=6) == 1

    async def test_another_acquirers_word_counts_for_nothing(self, till: Any) -> None:
        await shopfront.go_on(till.desk, await till.order())
        assert not await hurry(till, account="another")

    async def test_a_page_of_a_day_is_looked_at_some_forty_times(self, till: Any) -> None:
        await shopfront.go_on(till.desk, await till.order())
        now, looks = utc_now(), 0
        (row,) = await till.attempts()
        while row["state"] == "challenged":
            now = row["lookup_at"]
            looks += await settle_due(till.desk, now=now)
            (row,) = await till.attempts()
        assert 30 < looks < 45


async def hurry(till: Any, account: str = "simulator", now: datetime | None = None) -> bool:
    (row,) = await till.attempts()
    return await hurry_named(till.desk.database, account, Notified(till.shop, row["id"]), now=now or utc_now())


class TestWhoIsToPayNoMore:
    async def test_the_customer_of_an_erased_page_is_led_nowhere_and_it_is_ended(self, till: Any, bank: Bank) -> None:
        link = await till.order()
        page = reference_of(await shopfront.go_on(till.desk, link))
        subject = Subject(till.shop.merchant_id, email="ada@example.com")
        with pytest.raises(Conflict, match="page of the acquirer's"):
            await erase(till.desk.database, subject, now=utc_now())
        await till.settle(seconds=1)
        assert await till.attempt_states() == ["abandoned"]
        await erase(till.desk.database, subject, now=utc_now())
        shown = bank.pages.pay(page, Way.CARD, VISA)
        assert shown is not None
        assert shown.state is PageState.ENDED

    async def test_an_erasure_that_is_repeated_leaves_no_page_to_be_led_to(self, till: Any, bank: Bank) -> None:
        link = await till.order()
        page = reference_of(await shopfront.go_on(till.desk, link))
        await erase(
            till.desk.database, Subject(till.shop.merchant_id, email="ada@example.com"), again=True, now=utc_now()
        )
        (row,) = await till.attempts()
        assert row["challenge_url"] == ""
        with contextlib.suppress(NotFound, Gone):
            assert not isinstance(await shopfront.go_on(till.desk, link), ConfirmWithBank)
        await till.settle(seconds=1)
        shown = bank.pages.pay(page, Way.CARD, VISA)
        assert shown is not None
        assert shown.state is PageState.ENDED

    async def test_while_the_bank_has_the_customer_it_is_tried_again_each_minute(self, till: Any, bank: Bank) -> None:
        page = reference_of(await shopfront.go_on(till.desk, await till.order()))
        bank.pages.pay(page, Way.BANK, "")
        with pytest.raises(Conflict):
            await erase(till.desk.database, Subject(till.shop.merchant_id, email="ada@example.com"), now=utc_now())
        await till.settle(seconds=1)
        assert await till.attempt_states() == ["challenged"]
        bank.pages.decide(page, approve=False)
        await till.settle(minutes=1, seconds=2)
        assert await till.attempt_states() == ["abandoned"]
