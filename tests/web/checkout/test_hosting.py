"""A customer goes on to the acquirer's own page, pays there or not, and comes back."""

from __future__ import annotations

import html
import json
from collections.abc import Awaitable, Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import httpx
import pytest
from tests import set_back
from tests.shopfront import open_page, press_pay
from tests.standings import standings

from paydesk.adapters.acquirers.hosted_pages import Capabilities
from paydesk.adapters.acquirers.simulator import Bank, SimulatedAcquirer
from paydesk.adapters.acquirers.simulator.own_pages import Pages, Way
from paydesk.adapters.acquirers.simulator.purchase_state import Standing
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.merchants.merchant import Merchant, change_merchant
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.janitor import settle_due

SignedForm = Callable[..., dict[str, Any]]
OpenWeb = Callable[..., Awaitable[httpx.AsyncClient]]
Charges = Callable[[], list[Standing]]

VISA = "4242424242424242"
SHOP = "https://shop.example/thanks?order=1"


def leads_to(answer: httpx.Response) -> str:
    assert answer.status_code == 303, html.unescape(answer.text)
    return answer.headers["location"]


async def press_continue(web: httpx.AsyncClient, path: str, email: str = "ada@example.com") -> httpx.Response:
    return await web.post(f"{path}/continue", data={"email": email})


def page_in(address: str) -> str:
    return address.rpartition("/")[2]


async def test_the_page_leads_to_the_banks_and_back_to_the_shop(
    web: httpx.AsyncClient, signed_form: SignedForm, bank: Bank, charges: Charges
) -> None:
    path = await open_page(web, signed_form())
    first = await web.get(path)
    assert f'action="{path}/continue"' in first.text
    assert "Other ways to pay" in first.text
    address = leads_to(await press_continue(web, path))
    origin = address.partition("/simulator")[0]
    assert origin in first.headers["content-security-policy"]
    bank.pages.pay(page_in(address), Way.WALLET, "")
    assert leads_to(await web.get(f"{path}/result")) == SHOP
    assert [charge.net for charge in charges()] == [Decimal(10)]


async def test_a_subscription_is_agreed_to_before_the_page_and_begins_there(
    web: httpx.AsyncClient, signed_form: SignedForm, bank: Bank, database: Database, merchant: Merchant
) -> None:
    trial = {"recurring_trial_period": "14d"}
    form = signed_form(recurring_name="Club", recurring_sku_id="club", recurring_period="1m", **trial)
    path = await open_page(web, form)
    page = html.unescape((await web.get(path)).text).replace("\u00a0", " ")
    consent = (
        "I agree that Corner Shop charges what I pay with for “Club”: Free for 14 days, then 10.00 USD every month"
    )
    assert consent in page
    assert "Nothing is charged" in page
    refused = await press_continue(web, path)
    assert refused.status_code == 400
    assert 'href="#page-agree"' in refused.text
    answer = await web.post(f"{path}/continue", data={"email": "ada@example.com", "agree": "en"})
    bank.pages.pay(page_in(leads_to(answer)), Way.CARD, VISA)
    assert leads_to(await web.get(f"{path}/result")) == SHOP
    state, agreed = await database.fetchrow(
        "select state, terms_agreed from subscription where merchant_id = $1", merchant.id
    )
    assert (state, agreed.replace("\u00a0", " ")) == ("Trial", f"{consent} until you cancel.")


async def test_the_pingback_says_what_was_paid_with(
    web: httpx.AsyncClient, signed_form: SignedForm, bank: Bank, database: Database, merchant: Merchant
) -> None:
    path = await open_page(web, signed_form())
    page = page_in(leads_to(await press_continue(web, path)))
    bank.pages.pay(page, Way.BANK, "")
    bank.pages.decide(page, approve=True)
    await web.get(f"{path}/result")
    payload = await database.fetchval("select payload from pingback where merchant_id = $1", merchant.id)
    assert '"payment_system":2' in payload


async def test_who_comes_back_without_paying_reads_so_and_finds_the_same_page(
    web: httpx.AsyncClient, signed_form: SignedForm
) -> None:
    path = await open_page(web, signed_form())
    address = leads_to(await press_continue(web, path))
    for back in (path, f"{path}/result"):
        answer = await web.get(back)
        assert answer.status_code == 200
        assert "You have not paid yet" in html.unescape(answer.text)
    assert leads_to(await press_continue(web, path)) == address


async def test_a_wrong_address_is_asked_for_again(web: httpx.AsyncClient, signed_form: SignedForm) -> None:
    path = await open_page(web, signed_form())
    answer = await press_continue(web, path, "no address")
    assert answer.status_code == 400
    assert "Enter an e-mail address like" in html.unescape(answer.text)
    assert 'id="page-email-error" hidden' not in answer.text


async def test_reloading_the_way_there_leads_back_to_the_page(web: httpx.AsyncClient, signed_form: SignedForm) -> None:
    path = await open_page(web, signed_form())
    assert leads_to(await web.get(f"{path}/continue")) == path


async def test_a_second_payment_is_given_back_and_the_page_says_so(
    web: httpx.AsyncClient, signed_form: SignedForm, bank: Bank, charges: Charges
) -> None:
    path = await open_page(web, signed_form())
    page = page_in(leads_to(await press_continue(web, path)))
    bank.pages.pay(page, Way.BANK, "")
    assert leads_to(await press_pay(web, path, VISA)) == SHOP
    bank.pages.decide(page, approve=True)
    answer = await web.get(f"{path}/result")
    assert "That payment is given back in full" in html.unescape(answer.text)
    assert [charge.net for charge in charges()] == [Decimal(10)]


async def test_the_waiting_page_is_not_led_to_a_page_that_the_customer_came_back_from(
    web: httpx.AsyncClient, signed_form: SignedForm
) -> None:
    path = await open_page(web, signed_form())
    address = leads_to(await press_continue(web, path))
    assert (await web.get(f"{path}/status")).json() == {"state": "done", "url": address}
    assert (await web.get(f"{path}/status?waits")).json() == {"state": "processing"}


class TestAnotherCheckoutOfTheOrder:
    """The shop's form came twice: perhaps a second tab, perhaps another person."""

    async def test_the_same_address_leads_to_the_same_page(
        self, web: httpx.AsyncClient, signed_form: SignedForm
    ) -> None:
        path, other = await self.two(web, signed_form)
        assert leads_to(await press_continue(web, path)) == leads_to(await press_continue(web, other))

    async def test_another_address_gets_a_page_of_its_own_and_the_first_is_ended(
        self, web: httpx.AsyncClient, signed_form: SignedForm, bank: Bank
    ) -> None:
        path, other = await self.two(web, signed_form)
        first = page_in(leads_to(await press_continue(web, path)))
        second = page_in(leads_to(await press_continue(web, other, "bob@example.com")))
        assert [bank.pages.find(page).state for page in (first, second)] == ["ended", "open"]
        assert json.loads(bank.record.page(second))["email"] == "bob@example.com"

    async def test_who_only_looks_is_never_led_to_the_page_of_the_first(
        self, web: httpx.AsyncClient, signed_form: SignedForm
    ) -> None:
        path, other = await self.two(web, signed_form)
        address = leads_to(await press_continue(web, path))
        assert (await web.get(f"{path}/status")).json()["url"] == address
        for place in ("", "/status", "/status?soon", "/status?waits", "/result"):
            answer = await web.get(f"{other}{place}")
            assert page_in(address) not in answer.text + str(answer.headers)
            assert "ada@example.com" not in answer.text

    @staticmethod
    async def two(web: httpx.AsyncClient, signed_form: SignedForm) -> tuple[str, str]:
        """Two checkouts of one order."""
        path = await open_page(web, signed_form(merchant_order_id="A-1"))
        other = await open_page(web, signed_form(merchant_order_id="A-1", description="Once more"))
        assert path != other
        return path, other


async def test_a_page_whose_time_is_over_lets_the_customer_try_again(
    web: httpx.AsyncClient, signed_form: SignedForm, desk: Desk
) -> None:
    path = await open_page(web, signed_form())
    first = leads_to(await press_continue(web, path))
    await settle_due(desk, now=utc_now() + timedelta(hours=25))
    answer = await web.get(f"{path}/result")
    assert answer.status_code == 402
    assert "You have not paid yet" in html.unescape(answer.text)
    assert leads_to(await press_continue(web, path)) != first


async def test_once_its_checkout_has_expired_a_page_can_be_gone_on_with_and_no_card_is_asked_for(
    web: httpx.AsyncClient,
    signed_form: SignedForm,
    bank: Bank,
    charges: Charges,
    database: Database,
    merchant: Merchant,
) -> None:
    path = await open_page(web, signed_form())
    address = leads_to(await press_continue(web, path))
    await set_back.times(database, "checkout", {"merchant_id": merchant.id}, expires_at=utc_now())
    assert leads_to(await press_pay(web, path, VISA)) == path, "a form that stood open still"
    shown = await web.get(path)
    assert shown.status_code == 200
    assert f'action="{path}/continue"' in shown.text
    assert f'action="{path}/pay"' not in shown.text
    assert "You have not paid yet" in shown.text
    assert "another way" not in shown.text
    assert leads_to(await press_continue(web, path)) == address
    bank.pages.pay(page_in(address), Way.CARD, VISA)
    assert leads_to(await web.get(f"{path}/result")) == SHOP
    assert [charge.net for charge in charges()] == [Decimal(10)]


async def test_an_expired_checkout_of_the_order_leaves_the_page_that_another_one_leads_to(
    web: httpx.AsyncClient,
    signed_form: SignedForm,
    bank: Bank,
    charges: Charges,
    database: Database,
    merchant: Merchant,
    desk: Desk,
) -> None:
    form = signed_form()
    old = await open_page(web, form)
    await set_back.times(database, "checkout", {"merchant_id": merchant.id}, expires_at=utc_now())
    path = await open_page(web, signed_form(**form | {"description": "Again"}))
    address = leads_to(await press_continue(web, path))
    assert leads_to(await press_continue(web, old, "grace@example.com")) == f"{old}/result", "a form that stood open"
    for page in (old, f"{old}/result"):
        shown = await web.get(page, follow_redirects=True)
        assert "We are checking with your bank" in shown.text
        assert "<form" not in shown.text
    bank.pages.pay(page_in(address), Way.CARD, VISA)
    await settle_due(desk, now=utc_now() + timedelta(minutes=16))
    assert [charge.net for charge in charges()] == [Decimal(10)]
    assert (await web.get(old)).status_code == 409, "paid at the other one"


async def test_an_expired_checkout_whose_page_cant_be_led_to_any_more_waits_for_it(
    web: httpx.AsyncClient,
    open_web: OpenWeb,
    signed_form: SignedForm,
    database: Database,
    merchant: Merchant,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = await open_page(web, signed_form())
    await press_continue(web, path)
    await set_back.times(database, "checkout", {"merchant_id": merchant.id}, expires_at=utc_now())
    monkeypatch.setattr(SimulatedAcquirer, "capabilities", Capabilities(cards=True, pages=False, stored=False))
    shown = await (await open_web()).get(path, follow_redirects=True)
    assert "We are checking with your bank" in shown.text
    assert "Continue to payment" not in shown.text


async def test_the_banks_page_holds_the_money_of_shipped_goods(
    web: httpx.AsyncClient,
    signed_form: SignedForm,
    database: Database,
    merchant: Merchant,
    bank: Bank,
    charges: Charges,
) -> None:
    await change_merchant(database, merchant.id, shipped_goods=True)
    path = await open_page(web, signed_form())
    assert f'action="{path}/continue"' in (await web.get(path)).text
    address = leads_to(await press_continue(web, path))
    bank.pages.pay(page_in(address), Way.CARD, VISA)
    assert leads_to(await web.get(f"{path}/result")) == SHOP
    assert charges() == []
    assert [one.held for one in standings(bank.record.operations()).values()] == [Decimal(10)]


@pytest.fixture
def _short_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bank holds no money for as long as an order may wait to be shipped."""
    monkeypatch.setattr(SimulatedAcquirer, "hold_period", timedelta(days=6))


class TestWhatIsNotOffered:
    @pytest.mark.usefixtures("_short_hold")
    async def test_shipped_goods_whose_money_is_held_too_short_have_the_card_alone(
        self, web: httpx.AsyncClient, signed_form: SignedForm, database: Database, merchant: Merchant
    ) -> None:
        await change_merchant(database, merchant.id, shipped_goods=True)
        path = await open_page(web, signed_form())
        assert "/continue" not in (await web.get(path)).text


class TestWhereOnlyAPageIs:
    @pytest.fixture(autouse=True)
    def _no_cards(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(SimulatedAcquirer, "capabilities", Capabilities(cards=False, pages=True, stored=False))

    async def test_no_card_is_asked_for(self, web: httpx.AsyncClient, signed_form: SignedForm, bank: Bank) -> None:
        path = await open_page(web, signed_form())
        page = (await web.get(path)).text
        assert 'autocomplete="cc-number"' not in page
        assert leads_to(await press_pay(web, path, VISA)) == path
        bank.pages.pay(page_in(leads_to(await press_continue(web, path))), Way.CARD, VISA)
        assert leads_to(await web.get(f"{path}/result")) == SHOP

    @pytest.mark.usefixtures("_short_hold")
    async def test_what_no_page_takes_is_said_to_the_customer(
        self,
        web: httpx.AsyncClient,
        signed_form: SignedForm,
        database: Database,
        merchant: Merchant,
        charges: Charges,
    ) -> None:
        path = await open_page(web, signed_form())
        await change_merchant(database, merchant.id, shipped_goods=True)
        for answer in (await web.get(path), await press_continue(web, path)):
            assert answer.status_code == 409
            assert "can’t be paid here" in html.unescape(answer.text)
        assert not charges()


async def test_who_presses_reload_costs_the_acquirer_one_question_in_a_while(
    web: httpx.AsyncClient, signed_form: SignedForm, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = await open_page(web, signed_form())
    await press_continue(web, path)
    asked, honest = [0], Pages.find

    def find(self: Pages, reference: str) -> Any:
        asked[0] += 1
        return honest(self, reference)

    monkeypatch.setattr(Pages, "find", find)
    first, second = await web.get(f"{path}/result"), await web.get(f"{path}/result")
    assert asked == [1]
    assert f'action="{path}/continue"' in first.text
    assert f"{path}/status?soon" in html.unescape(second.text)
    assert (await web.get(f"{path}/status?soon")).json() == {"state": "processing"}
    monkeypatch.setattr("paydesk.web.checkout.routes.REST", timedelta(0))
    monkeypatch.setattr("paydesk.domain.payments.hurrying.REST", timedelta(0))
    assert (await web.get(f"{path}/status?soon")).json() == {"state": "done", "url": f"{path}/result"}
    assert f'action="{path}/continue"' in (await web.get(f"{path}/result")).text


async def test_a_page_that_the_janitor_wrote_down_first_is_led_to_all_the_same(
    web: httpx.AsyncClient, signed_form: SignedForm, desk: Desk, bank: Bank, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = await open_page(web, signed_form())
    honest = SimulatedAcquirer.open_page
    is_first = [True]

    async def open_page_late(self: SimulatedAcquirer, wanted: Any) -> Any:
        page = await honest(self, wanted)
        if is_first.pop() if is_first else False:
            await settle_due(desk, now=utc_now() + timedelta(seconds=10))
        return page

    monkeypatch.setattr(SimulatedAcquirer, "open_page", open_page_late)
    assert "/simulator/pay/" in leads_to(await press_continue(web, path))


class TestSlowMethods:
    @pytest.fixture
    async def web(self, open_web: OpenWeb, database: Database, merchant: Merchant) -> httpx.AsyncClient:
        """A browser where they are offered."""
        await change_merchant(database, merchant.id, slow_methods=True)
        return await open_web(slow_methods=True)

    async def test_the_customer_reads_that_the_money_is_on_its_way_until_it_is_there(
        self, web: httpx.AsyncClient, signed_form: SignedForm, desk: Desk, bank: Bank
    ) -> None:
        path = await open_page(web, signed_form(merchant_order_id="A-1"))
        other = await open_page(web, signed_form(merchant_order_id="A-1", description="Once more"))
        assert other != path
        bank.pages.pay(page_in(leads_to(await press_continue(web, path))), Way.TRANSFER, "")
        for address in (f"{path}/result", path, other):
            page = await web.get(address)
            assert page.status_code == 200
            assert "Your bank may take some days" in html.unescape(page.text)
            assert "is expected by" in page.text
            assert "<form" not in page.text
        for again in (await press_pay(web, path, VISA), await press_continue(web, path), await press_pay(web, other)):
            assert leads_to(again).endswith("/result")
        await settle_due(desk, now=utc_now() + timedelta(hours=49))
        assert leads_to(await web.get(f"{path}/result")) == SHOP

    async def test_the_customer_may_pay_again_what_came_to_nothing(
        self, web: httpx.AsyncClient, signed_form: SignedForm, desk: Desk, bank: Bank, charges: Charges
    ) -> None:
        path = await open_page(web, signed_form())
        bank.pages.pay(page_in(leads_to(await press_continue(web, path))), Way.FAILING_TRANSFER, "")
        assert "Your bank may take some days" in (await web.get(f"{path}/result")).text
        await settle_due(desk, now=utc_now() + timedelta(hours=49))
        page = await web.get(f"{path}/result")
        assert page.status_code == 402
        assert "Your bank did not send the money" in page.text
        assert leads_to(await press_pay(web, path, VISA)) == SHOP
        assert [charge.net for charge in charges() if charge.net] == [Decimal(10)]
