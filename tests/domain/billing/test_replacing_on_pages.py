from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from tests import set_back, shopfront
from tests.banks import answering
from tests.links import newest_portal

from paydesk.adapters.acquirers.hosted_pages import Capabilities, PageRequest
from paydesk.adapters.acquirers.instruments import Instrument, InstrumentKind
from paydesk.adapters.acquirers.interface import AcquirerRefused, Approved, NoSuchPage, OutcomeUnknown
from paydesk.adapters.acquirers.notices import Notice
from paydesk.adapters.acquirers.purchases import Purchase
from paydesk.adapters.acquirers.simulator import Bank
from paydesk.adapters.acquirers.simulator.own_pages import Way
from paydesk.adapters.acquirers.simulator.purchase_state import Standing
from paydesk.adapters.acquirers.simulator.record import Kind
from paydesk.adapters.acquirers.wrapping import PassingAcquirer
from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict, Unavailable
from paydesk.domain.billing.card_changes import Replaced, Result
from paydesk.domain.billing.card_lookups import settle_card_changes
from paydesk.domain.billing.charging import BillingRun
from paydesk.domain.billing.for_customer import Holding, find_holding
from paydesk.domain.billing.replacing_cards import NewCard, replace_card, settle_challenge
from paydesk.domain.billing.replacing_on_pages import PortalCaller, go_to_page
from paydesk.domain.merchants.customer_links import Link, LinkTo
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.hurrying import REST, hurry_named, hurry_noticed, named
from paydesk.domain.payments.results import ConfirmWithBank, Refused, Unsettled
from paydesk.domain.privacy.belongings import Subject
from paydesk.domain.privacy.erasing import erase
from paydesk.domain.subscriptions.ending import cancel

Charges = Callable[[], list[Standing]]

VISA, MASTERCARD, DECLINED = "4242424242424242", "5555555555554444", "4000000000000002"
FAILS_LATER = "4000000000000341"


class Odd(PassingAcquirer):
    """Loses as many answers to requests for a page as it is told to, once it has acted; or takes
    none at all.
    """

    loses = 0
    refuses = False

    def __init__(self, honest: Any) -> None:
        super().__init__(honest)
        self.asked: list[PageRequest] = []

    async def open_page(self, wanted: PageRequest) -> Any:
        self.asked.append(wanted)
        if self.refuses:
            raise AcquirerRefused("no pages today")
        made = await self.honest.open_page(wanted)
        if self.loses:
            self.loses -= 1
            raise OutcomeUnknown("the answer was lost")
        return made


@dataclass(frozen=True, slots=True)
class Holder:
    """A customer with a subscription, in front of their portal."""

    desk: Desk
    shop: Shop
    link: Link
    bank: Bank

    def at(self, acquirer: Any) -> Holder:
        return replace(self, desk=replace(self.desk, acquirers={"simulator": acquirer}))

    @property
    def honest(self) -> Any:
        gated: Any = self.desk.acquirers["simulator"]
        return gated.honest

    async def holding(self) -> Holding:
        return await find_holding(self.desk.database, self.link, now=utc_now())

    async def go_on(self, seen: Holding | None = None, period: int | None = None) -> Result:
        held = seen or await self.holding()
        where = {"shop_name": "A shop", "base": "https://pay.test"}
        caller = PortalCaller("192.0.2.1", period=period)
        return await go_to_page(self.desk, held.subscription, held.change, caller, **where, now=utc_now())

    async def page(self) -> str:
        """Go to the acquirer's page; its reference."""
        result = await self.go_on()
        assert isinstance(result, ConfirmWithBank)
        return result.url.rpartition("/")[2]

    async def come_back(self) -> Result:
        held = await self.holding()
        assert held.change is not None
        return await settle_challenge(self.desk, held.change, now=utc_now())

    async def type_card(self, number: str) -> Result:
        held = await self.holding()
        new = NewCard(shopfront.payer(number).card, "192.0.2.1", "https://pay.test/back")
        return await replace_card(self.desk, held.subscription, held.change, new, now=utc_now())

    async def charge(self) -> int:
        due = (await self.holding()).subscription.date_next
        assert due is not None
        return await BillingRun(self.desk).charge_due(merchant_id=self.shop.merchant_id, at=due)

    async def settle(self, **later: float) -> None:
        await settle_card_changes(self.desk, now=utc_now() + timedelta(**later))

    async def let_go_of(self) -> set[str]:
        """What the bank is to let go of, by its own names."""
        rows = await self.desk.database.fetch(
            "select reference from kept_release where merchant_id = $1", self.shop.merchant_id
        )
        return {row["reference"] for row in rows}

    async def looked_at(self) -> int:
        """How many changes are asked about again."""
        asked = "select count(*) from card_change where merchant_id = $1 and lookup_at is not null"
        return int(await self.desk.database.fetchval(asked, self.shop.merchant_id))

    async def states(self) -> list[tuple[str, str]]:
        rows = await self.desk.database.fetch(
            "select state, decline_reason from card_change where merchant_id = $1 order by id", self.shop.merchant_id
        )
        return [tuple(row) for row in rows]

    async def card(self) -> dict[str, Any]:
        row = await self.desk.database.fetchrow(
            "select d.* from subscription s join card d on d.merchant_id = s.merchant_id and d.id = s.card_id"
            " where s.merchant_id = $1",
            self.shop.merchant_id,
        )
        return dict(row)


@pytest.fixture(autouse=True)
async def _no_other_lookups(desk: Desk) -> None:
    await set_back.no_card_to_look_up(desk.database)


async def subscribed(desk: Desk, shop: Shop, bank: Bank, number: str = VISA) -> Holder:
    await shopfront.subscribe(desk, shop, number=number)
    return Holder(desk, shop, await newest_portal(desk.database, shop.merchant_id), bank)


@pytest.fixture
async def holder(desk: Desk, shop: Shop, bank: Bank) -> Holder:
    """A customer whose card was typed on our page."""
    return await subscribed(desk, shop, bank)


@pytest.mark.parametrize(
    ("way", "shown"), [(Way.CARD, ("mastercard", "4444")), (Way.WALLET, ("visa", "4242")), (Way.BANK, ("bank", ""))]
)
async def test_what_is_chosen_there_takes_the_cards_place(
    holder: Holder, bank: Bank, charges: Charges, way: Way, shown: tuple[str, str]
) -> None:
    page = await holder.page()
    bank.pages.pay(page, way, MASTERCARD)
    bank.pages.decide(page, approve=True)
    assert await holder.come_back() == Replaced()
    card = await holder.card()
    assert (card["brand"], card["last4"], card["acquirer"]) == (*shown, "simulator")
    assert card["stored_reference"]
    assert card["number_sealed"] is None
    assert len(charges()) == 1, "nothing is taken for it"
    assert await holder.charge() == 1
    assert sorted(charge.last4 for charge in charges()) == sorted(["4242", shown[1]])
    numbers = await holder.desk.database.fetch(
        "select id from card where merchant_id = $1 and number_sealed is not null", holder.shop.merchant_id
    )
    assert numbers == [], "the old card's number is erased"


async def test_a_charge_that_failed_is_tried_at_once(desk: Desk, shop: Shop, bank: Bank, charges: Charges) -> None:
    holder = await subscribed(desk, shop, bank, FAILS_LATER)
    await holder.charge()
    assert (await holder.holding()).subscription.failures == 1
    bank.pages.pay(await holder.page(), Way.CARD, VISA)
    assert await holder.come_back() == Replaced()
    subscription = (await holder.holding()).subscription
    assert subscription.date_next is not None
    assert subscription.date_next <= utc_now() + timedelta(days=40)
    assert await holder.charge() == 1
    assert (await holder.holding()).subscription.failures == 0
    assert len(charges()) == 2


async def test_pressed_twice_leads_to_the_one_page(holder: Holder, bank: Bank) -> None:
    assert await holder.page() == await holder.page()
    assert len([line for line in bank.record.operations() if line.kind is Kind.PAGE]) == 1


async def test_two_tabs_at_once_begin_one_change(holder: Holder) -> None:
    seen = await holder.holding()
    await holder.go_on(seen)
    with pytest.raises(Conflict):
        await holder.go_on(seen)
    assert len(await holder.states()) == 1


async def test_who_never_comes_back_has_replaced_it_all_the_same(holder: Holder, bank: Bank) -> None:
    bank.pages.pay(await holder.page(), Way.CARD, MASTERCARD)
    await holder.settle(minutes=2)
    assert await holder.states() == [("approved", "")]
    assert (await holder.card())["last4"] == "4444"


async def test_a_page_that_is_left_changes_nothing(holder: Holder, bank: Bank, charges: Charges) -> None:
    page = await holder.page()
    assert isinstance(await holder.come_back(), ConfirmWithBank)
    await holder.settle(minutes=2)
    assert [state for state, _ in await holder.states()] == ["challenged"]
    await holder.settle(hours=2)
    assert await holder.states() == [("abandoned", "page_left")]
    bank.pages.pay(page, Way.CARD, MASTERCARD)
    assert (await holder.card())["last4"] == "4242"
    assert await holder.charge() == 1
    assert len(charges()) == 2


async def test_a_card_typed_instead_ends_the_page(holder: Holder, bank: Bank) -> None:
    page = await holder.page()
    assert await holder.type_card(MASTERCARD) == Replaced()
    bank.pages.pay(page, Way.WALLET, "")
    await holder.settle(minutes=2)
    assert await holder.states() == [("abandoned", "page_left"), ("approved", "")]
    assert (await holder.card())["last4"] == "4444"


async def test_a_page_that_cant_be_ended_counts_for_nothing_once_a_card_is_typed(holder: Holder, bank: Bank) -> None:
    page = await holder.page()
    bank.pages.pay(page, Way.BANK, "")
    assert await holder.type_card(MASTERCARD) == Replaced()
    bank.pages.decide(page, approve=True)
    await holder.settle(minutes=2)
    assert (await holder.card())["brand"] == "mastercard"


async def test_what_is_chosen_on_a_page_that_was_left_is_let_go_of(holder: Holder, bank: Bank) -> None:
    page = await holder.page()
    bank.pages.pay(page, Way.BANK, "")
    await holder.type_card(MASTERCARD)
    await holder.settle(minutes=2)
    old_card = await holder.let_go_of()
    bank.pages.decide(page, approve=True)
    await holder.settle(minutes=4)
    chosen = bank.pages.find(page).instrument
    assert chosen is not None
    assert await holder.let_go_of() - old_card == {chosen.reference}
    assert await holder.states() == [("abandoned", "page_left"), ("approved", "")]
    assert (await holder.card())["last4"] == "4444"
    await holder.settle(days=2)
    assert await holder.looked_at() == 0, "it is over"


async def test_a_page_that_was_left_is_looked_at_no_longer_than_for_a_week(holder: Holder, bank: Bank) -> None:
    page = await holder.page()
    bank.pages.pay(page, Way.BANK, "")
    await holder.type_card(MASTERCARD)
    old_card = await holder.let_go_of()
    await holder.settle(days=6)
    assert await holder.looked_at() == 1
    await holder.settle(days=8)
    assert (await holder.looked_at(), await holder.let_go_of()) == (0, old_card)


async def test_a_lost_answer_is_asked_for_again_with_just_the_same(holder: Holder, bank: Bank) -> None:
    odd = Odd(holder.honest)
    odd.loses = 1
    lossy = holder.at(odd)
    assert await lossy.go_on() == Unsettled()
    await lossy.settle(seconds=10)
    assert odd.asked[0] == odd.asked[1]
    assert (odd.asked[0].amount, odd.asked[0].keep) == (Decimal(0), True)
    assert odd.asked[0].return_url.startswith("https://pay.test/portal/")
    bank.pages.pay(await lossy.page(), Way.CARD, MASTERCARD)
    assert await lossy.come_back() == Replaced()
    assert len([line for line in bank.record.operations() if line.kind is Kind.PAGE]) == 1


async def test_who_may_only_pay_is_led_back_to_the_page_that_pays(holder: Holder) -> None:
    odd = Odd(holder.honest)
    odd.loses = 1
    lossy = holder.at(odd)
    assert await lossy.go_on(period=2) == Unsettled()
    await lossy.settle(seconds=10)
    assert odd.asked[0] == odd.asked[1]
    token = replace(holder.link, to=LinkTo.PAYING, period=2).token(holder.desk.vault)
    assert odd.asked[0].return_url == f"https://pay.test/portal/pay/2/{token}/result"


async def test_who_may_only_pay_gets_a_page_that_leads_back_to_no_portal(holder: Holder) -> None:
    odd = Odd(holder.honest)
    at = holder.at(odd)
    await at.go_on()
    assert isinstance(await at.go_on(period=2), ConfirmWithBank)
    portal = holder.link.token(holder.desk.vault)
    assert [portal in asked.return_url for asked in odd.asked] == [True, False]
    assert await at.states() == [("abandoned", "page_left"), ("challenged", "")]


async def test_a_page_that_never_came_ends_the_change_and_another_may_begin(holder: Holder, bank: Bank) -> None:
    odd = Odd(holder.honest)
    odd.loses = 9
    lossy = holder.at(odd)
    await lossy.go_on()
    await lossy.settle(seconds=10)
    await lossy.settle(minutes=30)
    assert await lossy.states() == [("failed", "processing_error")]
    bank.pages.pay(await holder.page(), Way.CARD, MASTERCARD)
    assert await holder.come_back() == Replaced()


async def test_a_request_that_is_refused_is_told_and_listed(holder: Holder) -> None:
    odd = Odd(holder.honest)
    odd.refuses = True
    assert await holder.at(odd).go_on() == Refused("request_refused")
    kinds = await holder.desk.database.fetch("select kind from alarm where merchant_id = $1", holder.shop.merchant_id)
    assert [row["kind"] for row in kinds] == ["request_refused"]


async def test_a_subscription_that_ended_meanwhile_keeps_what_it_had(holder: Holder, bank: Bank) -> None:
    page, held = await holder.page(), await holder.holding()
    await cancel(holder.desk.database, holder.shop, held.subscription.id, by="customer", now=held.now)
    bank.pages.pay(page, Way.CARD, MASTERCARD)
    assert await holder.come_back() == Replaced()
    assert (await holder.card())["last4"] == "4242"
    with pytest.raises(Conflict):
        await holder.go_on()


async def test_what_the_acquirer_has_not_kept_takes_no_cards_place(
    holder: Holder, bank: Bank, charges: Charges
) -> None:
    class Forgetful(PassingAcquirer):
        """Says that all is done, and names nothing to charge."""

        async def find_page(self, key: str, reference: str) -> Any:
            said = await self.honest.find_page(key, reference)
            return replace(said, instrument=said.instrument and replace(said.instrument, reference=""))

        async def end_page(self, key: str, reference: str) -> Any:
            return await self.find_page(key, reference)

    forgetful = holder.at(Forgetful(holder.honest))
    bank.pages.pay(await holder.page(), Way.CARD, MASTERCARD)
    assert await forgetful.come_back() == Unsettled()
    await forgetful.settle(minutes=2)
    assert await holder.states() == [("challenged", "")]
    await forgetful.settle(hours=2)
    assert await holder.states() == [("failed", "processing_error")]
    assert (await holder.card())["last4"] == "4242"
    assert await holder.charge() == 1
    assert len(charges()) == 2


async def test_what_is_named_a_moment_later_is_replaced_then(holder: Holder, bank: Bank) -> None:
    class Slow(PassingAcquirer):
        """Names what it has kept when it is asked the second time."""

        asked = 0

        async def find_page(self, key: str, reference: str) -> Any:
            self.asked += 1
            said = await self.honest.find_page(key, reference)
            return said if self.asked > 1 else replace(said, instrument=None)

    slow = holder.at(Slow(holder.honest))
    bank.pages.pay(await holder.page(), Way.CARD, MASTERCARD)
    assert await slow.come_back() == Unsettled()
    await slow.settle(minutes=2)
    assert (await holder.card())["last4"] == "4444"


async def test_a_page_that_its_acquirer_has_lost_lets_another_be_made(holder: Holder, bank: Bank) -> None:
    class Other(PassingAcquirer):
        """Another account than the one where the page was made."""

        async def find_page(self, key: str, reference: str) -> Any:
            raise NoSuchPage("there is no such page")

        async def end_page(self, key: str, reference: str) -> Any:
            raise NoSuchPage("there is no such page")

    other = holder.at(Other(holder.honest))
    await holder.page()
    await other.settle(minutes=65)
    assert [state for state, _ in await holder.states()] == ["challenged"], "it may turn up yet"
    await other.settle(hours=3)
    assert await holder.states() == [("abandoned", "page_left")]
    bank.pages.pay(await holder.page(), Way.CARD, MASTERCARD)
    assert await holder.come_back() == Replaced()


async def test_what_a_later_charge_tells_of_its_method_takes_nothing_from_what_is_kept(
    holder: Holder, bank: Bank, charges: Charges
) -> None:
    class Telling(PassingAcquirer):
        """Says of each charge what was paid with, and names what is kept only when it is kept."""

        async def charge_stored(self, purchase: Purchase) -> Any:
            said = await self.honest.charge_stored(purchase)
            assert isinstance(said, Approved)
            return replace(said, instrument=Instrument(InstrumentKind.BANK))

    telling = holder.at(Telling(holder.honest))
    bank.pages.pay(page := await holder.page(), Way.BANK, "")
    bank.pages.decide(page, approve=True)
    assert await holder.come_back() == Replaced()
    kept = (await holder.card())["stored_reference"]
    for _ in range(2):
        assert await telling.charge() == 1
        assert (await holder.card())["stored_reference"] == kept != ""
    assert len(charges()) == 3


async def test_there_is_no_page_where_nothing_is_kept(holder: Holder) -> None:
    keeps_nothing = PassingAcquirer(holder.honest)
    keeps_nothing.capabilities = Capabilities(pages=True, stored=False)
    with pytest.raises(Unavailable):
        await holder.at(keeps_nothing).go_on()


async def test_nothing_of_it_is_left_of_a_customer_who_is_erased(holder: Holder, bank: Bank) -> None:
    bank.pages.pay(await holder.page(), Way.CARD, MASTERCARD)
    await holder.come_back()
    reference, database = (await holder.card())["stored_reference"], holder.desk.database
    subject = Subject(holder.shop.merchant_id, email="ada@example.com")
    await erase(database, subject, again=True, now=utc_now())
    for table in ("subscription", "card_change", "card"):
        rows = await database.fetch(f"select * from {table} where merchant_id = $1", holder.shop.merchant_id)
        assert reference not in str([dict(row) for row in rows])
        assert "pay.test" not in str([dict(row) for row in rows])


class TestHurry:
    """The acquirer tells that something has happened on the page."""

    async def test_a_hurried_page_is_looked_at_at_once(self, holder: Holder, bank: Bank) -> None:
        page = await holder.page()
        bank.pages.pay(page, Way.CARD, MASTERCARD)
        await holder.settle()
        assert (await holder.states())[-1][0] == "challenged"
        assert await self.told(holder, page)
        await holder.settle(seconds=1)
        assert (await holder.card())["last4"] == "4444"
        assert not await self.told(holder, page), "nobody waits for it any more"

    async def test_one_that_was_just_looked_at_rests_for_a_moment(self, holder: Holder, bank: Bank) -> None:
        page = await holder.page()
        assert await self.told(holder, page)
        await holder.settle()
        bank.pages.pay(page, Way.CARD, MASTERCARD)
        assert await self.told(holder, page)
        await holder.settle(seconds=1)
        assert (await holder.states())[-1][0] == "challenged"
        await holder.settle(seconds=REST.total_seconds() + 1)
        assert (await holder.states())[-1][0] == "approved"

    async def test_what_an_acquirer_has_signed_names_it_by_its_key(self, holder: Holder, bank: Bank) -> None:
        page = await holder.page()
        bank.pages.pay(page, Way.CARD, MASTERCARD)
        asked = json.loads(bank.record.page(page))
        database, merchant = holder.desk.database, asked["mark"]["merchant"]
        assert not await hurry_noticed(database, "another", Notice(asked["key"], merchant), now=utc_now())
        assert not await hurry_noticed(database, "simulator", Notice(asked["key"], "another"), now=utc_now())
        assert await hurry_noticed(database, "simulator", Notice(asked["key"], merchant), now=utc_now())
        await holder.settle(seconds=1)
        assert (await holder.states())[-1][0] == "approved"

    async def test_what_is_hurried_while_it_is_asked_for_is_asked_for_again(self, holder: Holder, bank: Bank) -> None:
        page, honest = await holder.page(), holder.honest
        assert await self.told(holder, page)

        async def find_page(key: str, reference: str) -> Any:
            found = await honest.find_page(key, reference)
            bank.pages.pay(page, Way.CARD, MASTERCARD)
            assert await self.told(holder, page)
            return found

        asking = holder.at(answering(honest, find_page=find_page))
        await asking.settle(seconds=1)
        assert (await holder.states())[-1][0] == "challenged"
        await holder.settle(seconds=REST.total_seconds() + 2)
        assert (await holder.states())[-1][0] == "approved"

    @staticmethod
    async def told(holder: Holder, page: str) -> bool:
        """The bank tells of a page at the address that came with it."""
        address = parse_qs(urlsplit(json.loads(holder.bank.record.page(page))["notify_url"]).query)
        about = named(holder.desk.vault, "simulator", address["of"][0], address["token"][0])
        assert about is not None
        return await hurry_named(holder.desk.database, "simulator", about, now=utc_now())
