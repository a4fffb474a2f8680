"""The customer's portal in a real browser, with and without JavaScript,
for every eye and every screen.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from typing import Any

import pytest
from playwright.async_api import Page, expect
from starlette.types import ASGIApp, Receive, Scope, Send
from tests import breaking, set_back
from tests.e2e.looks import Look, violations
from tests.lengths import long, one_of
from tests.links import newest_portal
from tests.shopfront import pay

from paydesk.adapters.acquirers.simulator import Bank
from paydesk.app import create_app
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.billing.card_lookups import settle_card_changes
from paydesk.domain.billing.charging import BillingRun
from paydesk.domain.merchants.customer_links import LinkTo
from paydesk.domain.merchants.merchant import Merchant
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.receiving import Reception, receive_form
from paydesk.domain.payments.results import Paid
from paydesk.settings import Settings
from paydesk_client.signature import encode_form

pytestmark = pytest.mark.browser

OpenPage = Callable[..., Coroutine[Any, Any, Page]]
Serve = Callable[[ASGIApp], AbstractAsyncContextManager[str]]

MASTERCARD, DECLINED, ASKS_CUSTOMER = "5555555555554444", "4000000000000002", "4000000000003220"
ANSWER_LOST, FAILS_LATER = "4000000000009987", "4000000000000341"


@dataclass(frozen=True, slots=True)
class Portal:
    """A subscription's portal at its address, the link that pays its second period, and what
    happens behind them.
    """

    url: str
    desk: Desk
    shop: Shop
    paying: str

    async def charge(self) -> None:
        due = await self.desk.database.fetchval(
            "select date_next from subscription where merchant_id = $1", self.shop.merchant_id
        )
        assert await BillingRun(self.desk).charge_due(merchant_id=self.shop.merchant_id, at=due) == 1

    async def state(self) -> str:
        return str(
            await self.desk.database.fetchval(
                "select state from subscription where merchant_id = $1", self.shop.merchant_id
            )
        )


@pytest.fixture
async def base(serve: Serve, settings: Settings, bank: Bank) -> AsyncIterator[str]:
    """The web application at an address of its own, whose bank sends customers back there."""
    running: dict[str, Any] = {}

    async def delegate(scope: Scope, receive: Receive, send: Send) -> None:
        await running["app"]({**scope, "state": dict(running["state"])}, receive, send)

    async with serve(delegate) as address:
        app = create_app(settings.model_copy(update={"base_url": address}))
        async with app.router.lifespan_context(app) as state:
            running.update(app=app, state=state)
            yield address


@pytest.fixture
def subscribed(
    base: str, desk: Desk, shop: Shop, database: Database, signed_form: Callable[..., dict[str, Any]], vault: Any
) -> Callable[..., Coroutine[Any, Any, Portal]]:
    """A customer who has a monthly subscription, paid with the given card."""

    async def buy(number: str = "4242424242424242", **fields: Any) -> Portal:
        recurring = {"recurring_name": "Coffee club", "recurring_sku_id": "club", "recurring_period": "1m"}
        received = await receive_form(
            Reception(database, vault, 1000, desk.serving),
            encode_form(signed_form(**{**recurring, **fields})).encode(),
            client_address="192.0.2.1",
            sandbox=False,
            now=utc_now(),
        )
        assert await pay(desk, received.link, number) == Paid()
        link = await newest_portal(database, shop.merchant_id)
        pays = replace(link, to=LinkTo.PAYING, period=2)
        return Portal(f"{base}/portal/{link.token(vault)}", desk, shop, f"{base}/portal/pay/2/{pays.token(vault)}")

    return buy


Subscribed = Callable[..., Coroutine[Any, Any, Portal]]


async def give(page: Page, number: str, button: str = "Replace the card") -> None:
    await page.get_by_label("Card number").fill(number)
    await page.get_by_label("Expiry date").fill("12 / 40")
    await page.get_by_label("Security code").fill("123")
    await page.get_by_label("Name on card").fill("Grace Hopper")
    await page.get_by_role("button", name=button).click()


@pytest.mark.parametrize("script", one_of(2, [True, False]))
async def test_a_customer_cancels_in_two_steps(open_page: OpenPage, subscribed: Subscribed, script: bool) -> None:
    portal = await subscribed()
    page = await open_page(portal.url, java_script_enabled=script)
    await page.get_by_role("link", name="Cancel the subscription").click()
    await page.get_by_role("link", name="Keep the subscription").click()
    assert await portal.state() == "Active"
    await page.get_by_role("link", name="Cancel the subscription").click()
    await page.get_by_role("button", name="Cancel the subscription").click()
    await expect(page.get_by_role("status")).to_contain_text("Nothing more is charged.")
    await expect(page.get_by_role("status")).to_contain_text("What you have paid runs until")
    assert page.url == portal.url
    assert await portal.state() == "Cancelled"


@pytest.mark.parametrize("script", one_of(2, [False, True]))
async def test_a_customer_replaces_the_card_after_a_decline(
    open_page: OpenPage, subscribed: Subscribed, script: bool
) -> None:
    portal = await subscribed()
    page = await open_page(portal.url, java_script_enabled=script)
    await page.get_by_role("link", name="Replace the card").click()
    if script:
        await give(page, "4242424242424241")
        await expect(page.get_by_label("Card number")).to_have_value("4242 4242 4242 4241")
        await expect(page.get_by_label("Card number")).to_be_focused()
    await give(page, DECLINED)
    await expect(page.get_by_role("alert")).to_contain_text("declined")
    await expect(page.get_by_label("Card number")).to_have_value("")
    await expect(page.get_by_label("Name on card")).to_have_value("Grace Hopper")
    await give(page, MASTERCARD)
    await expect(page.get_by_role("heading", name="Your card is replaced")).to_be_visible()
    await page.get_by_role("link", name="Back to your subscription").click()
    await expect(page.locator("body")).to_contain_text("Mastercard •••• 4444")


@long
async def test_3d_secure_is_confirmed_at_the_bank(open_page: OpenPage, subscribed: Subscribed) -> None:
    portal = await subscribed()
    page = await open_page(f"{portal.url}/card")
    await give(page, ASKS_CUSTOMER)
    await page.wait_for_url("**/simulator/**")
    await page.get_by_role("button", name="Approve payment").click()
    await expect(page.get_by_role("heading", name="Your card is replaced")).to_be_visible()
    await expect(page.locator("body")).to_contain_text("Visa •••• 3220")


@long
async def test_a_failing_charge_is_mended_by_another_card(open_page: OpenPage, subscribed: Subscribed) -> None:
    portal = await subscribed(FAILS_LATER)
    await portal.charge()
    page = await open_page(portal.url)
    await expect(page.get_by_role("status")).to_contain_text("The last charge failed.")
    await page.get_by_role("link", name="Replace the card").click()
    await give(page, MASTERCARD)
    await expect(page.locator("main")).to_contain_text("is tried with the new card at once")
    await portal.charge()
    await page.goto(portal.url)
    await expect(page.get_by_role("status")).to_have_count(0)
    await expect(page.locator("tbody tr").first).to_contain_text("paid")


@long
@pytest.mark.parametrize("script", [True, False])
async def test_what_is_open_is_paid_by_the_link_of_its_mail(
    open_page: OpenPage, subscribed: Subscribed, script: bool
) -> None:
    portal = await subscribed(FAILS_LATER)
    await portal.charge()
    page = await open_page(portal.paying, java_script_enabled=script)
    await give(page, ASKS_CUSTOMER, "Pay ")
    await page.wait_for_url("**/simulator/**")
    await page.get_by_role("button", name="Approve payment").click()
    await expect(page.locator("main")).to_contain_text("do not pay a second time")
    await portal.charge()
    await expect(page.get_by_role("heading", name="This payment is made")).to_be_visible()
    await page.goto(portal.paying)
    await expect(page.get_by_role("button")).to_have_count(0)


@long
async def test_the_waiting_page_goes_on_by_itself(open_page: OpenPage, subscribed: Subscribed) -> None:
    portal = await subscribed()
    page = await open_page(f"{portal.url}/card")
    await give(page, ANSWER_LOST)
    await expect(page.get_by_role("heading", name="We are checking with your bank")).to_be_visible()
    database = portal.desk.database
    await database.execute("update card_change set lookup_at = $1 where lookup_at is not null", utc_now())
    await settle_card_changes(portal.desk, now=utc_now())
    await expect(page.get_by_role("heading", name="Your card is replaced")).to_be_visible()


async def test_the_keyboard_alone_cancels(open_page: OpenPage, subscribed: Subscribed) -> None:
    portal = await subscribed()
    page = await open_page(f"{portal.url}/cancel")
    for _ in range(10):
        await page.keyboard.press("Tab")
        focused = await page.evaluate("document.activeElement.textContent.trim()")
        if focused == "Cancel the subscription":
            break
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("status")).to_contain_text("Nothing more is charged.")


STATES = (
    "active",
    "failing",
    "cancel",
    "card",
    "card-errors",
    "declined",
    "replaced",
    "checking",
    "cancelled",
    "none",
    "paying",
)


async def show(look: Look, portal: Portal, state: str, **options: Any) -> Page:
    """Bring the portal into one of its states and open the page that shows it."""
    below = {"active": "", "failing": "", "cancel": "/cancel", "cancelled": "/cancel", "none": "0"}.get(state, "/card")
    page = await look(portal.paying if state == "paying" else portal.url + below, **options)
    if state in ("card-errors", "declined", "replaced", "checking"):
        numbers = {"card-errors": "1", "declined": DECLINED, "replaced": MASTERCARD, "checking": ANSWER_LOST}
        await page.locator("#number").fill(numbers[state])
        await page.locator("#expiry").fill("12 / 40")
        await page.locator("#cvc").fill("123")
        await page.locator("#holder").fill("Grace Hopper")
        await page.locator("form:has(#number) button").click()
    if state == "cancelled":
        await page.locator("button").click()
    await page.wait_for_load_state()
    if await page.locator("summary").count():
        await page.locator("summary").click()
    return page


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=long)])
@pytest.mark.parametrize("state", one_of(6, STATES))
async def test_axe_reports_nothing_and_nothing_foreign_is_fetched(
    look: Look, subscribed: Subscribed, base: str, state: str, scheme: str
) -> None:
    portal = await subscribed(FAILS_LATER)
    if state in ("failing", "paying"):
        await portal.charge()
    page = await show(look, portal, state, color_scheme=scheme)
    fetched = await page.evaluate("performance.getEntriesByType('resource').map(one => one.name)")
    assert all(one.startswith((base, "data:")) for one in fetched)
    assert await violations(page) == []


@pytest.mark.parametrize("state", one_of(8, STATES))
async def test_nothing_scrolls_sideways_at_320_pixels_and_targets_are_large_enough(
    look: Look, subscribed: Subscribed, merchant: Merchant, database: Database, state: str
) -> None:
    word = "Donaudampfschifffahrtsgesellschaft" * 4
    await set_back.called(database, merchant.id, word)
    portal = await subscribed(recurring_name=word, recurring_trial_period="30d", recurring_trial_amount="99999999.00")
    if state in ("failing", "paying"):
        await breaking.say(database, "subscription", {"merchant_id": merchant.id}, failures=1)
    page = await show(look, portal, state, viewport={"width": 320, "height": 640}, locale="de-DE")
    assert await page.evaluate("document.documentElement.scrollWidth") <= 320
    sizes = await page.locator("a, button, input:not([type=hidden]), summary").evaluate_all(
        "all => all.map(one => [one.outerHTML.slice(0, 80), one.getBoundingClientRect().height])"
    )
    assert [size for size in sizes if size[1] < 24] == []
