"""A customer saves a card, pays with one press at the next visit, and takes it back: in a real
browser, by the keyboard too, and for every eye and screen.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from playwright.async_api import Page, expect
from pydantic import SecretStr
from starlette.types import ASGIApp, Receive, Scope, Send
from tests import set_back
from tests.conftest import accept_waiting, submit_profile
from tests.e2e.looks import flaws
from tests.lengths import long, one_of
from tests.shopfront import LATER, mailed_code, order, saves_cards
from tests.standins import stripe_page
from tests.standins.stripe_checkout import StripeCheckout

from paydesk.adapters.acquirers.simulator import Bank
from paydesk.app import create_app
from paydesk.core.clock import utc_now
from paydesk.domain.merchants.merchant import Merchant, go_live, shop_of
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk
from paydesk.settings import Settings

pytestmark = pytest.mark.browser

OpenPage = Callable[..., Coroutine[Any, Any, Page]]
Serve = Callable[[ASGIApp], AbstractAsyncContextManager[str]]
ASKS = {"later_charges": LATER.purpose, "later_charges_limit": "50.00"}


@pytest.fixture
async def base(serve: Serve, settings: Settings, bank: Bank) -> AsyncIterator[str]:
    """The web application at an address of its own, whose bank sends customers back there."""
    async with application(serve, settings) as address:
        yield address


@asynccontextmanager
async def application(serve: Serve, settings: Settings) -> AsyncIterator[str]:
    running: dict[str, Any] = {}

    async def delegate(scope: Scope, receive: Receive, send: Send) -> None:
        await running["app"]({**scope, "state": dict(running["state"])}, receive, send)

    async with serve(delegate) as address:
        app = create_app(settings.model_copy(update={"base_url": address}))
        async with app.router.lifespan_context(app) as state:
            running.update(app=app, state=state)
            yield address


async def checkout(base: str, desk: Desk, shop: Shop, reference: str) -> str:
    """The address of a checkout whose shop asks to charge later, too."""
    link = await order(
        desk.database, shop, reference, form={"nonce": reference, **ASKS}, success_url="", pingback_url=None
    )
    return f"{base}/checkout/{link.token(desk.vault)}"


async def become_known(page: Page, desk: Desk, shop: Shop) -> list[str]:
    """Prove an address, by the keyboard; what is wrong with the pages on the way."""
    await page.get_by_role("link", name="Save your card, or use a saved one").click()
    found = await flaws(page)
    await page.get_by_label("E-mail").fill("ada@example.com")
    await page.keyboard.press("Enter")
    await expect(page.get_by_label("Code of 6 digits")).to_be_focused()
    found += await flaws(page)
    await page.get_by_label("Code of 6 digits").fill(await mailed_code(desk.database, desk.vault, shop))
    await page.keyboard.press("Enter")
    await expect(page.locator("body")).to_contain_text("You are known as ada@example.com.")
    return found


async def type_card(page: Page) -> None:
    await page.locator("#email").fill("ada@example.com")
    await page.get_by_label("Card number").fill("4242424242424242")
    await page.get_by_label("Expiry date").fill("12 / 40")
    await page.get_by_label("Security code").fill("123")
    await page.get_by_label("Name on card").fill("Ada Lovelace")
    await page.get_by_label("Country").select_option("GB")


@long
@pytest.mark.parametrize("script", one_of(2, [True, False]), ids=["with JavaScript", "without"])
async def test_a_card_is_saved_pays_at_the_next_visit_and_is_removed(
    open_page: OpenPage, base: str, desk: Desk, shop: Shop, script: bool
) -> None:
    await set_back.no_codes_counted(desk.database)
    await saves_cards(desk.database, shop)
    page = await open_page(await checkout(base, desk, shop, "first"), java_script_enabled=script)
    found = await become_known(page, desk, shop) if script else []
    if not script:
        await page.goto(f"{page.url}/known")
        await page.get_by_label("E-mail").fill("ada@example.com")
        await page.get_by_role("button", name="Send the code").click()
        await page.get_by_label("Code of 6 digits").fill(await mailed_code(desk.database, desk.vault, shop))
        await page.get_by_role("button", name="Go on").click()
    await type_card(page)
    await page.get_by_label("Save this card for my next visit").check()
    if script:
        found += await flaws(page)
    await page.get_by_role("button", name="Pay 10.00", exact=False).last.click()
    await expect(page.locator("h1")).to_have_text("Thank you for your payment")
    await page.goto(await checkout(base, desk, shop, "second"))
    if script:
        found += await flaws(page)
    await page.get_by_role("button", name="Visa •••• 4242 – Pay").click()
    await expect(page.locator("h1")).to_have_text("Thank you for your payment")
    await page.goto(await checkout(base, desk, shop, "third"))
    await page.get_by_role("link", name="What is saved, and what you agreed to").click()
    await expect(page.locator("body")).to_contain_text("Save this card for my next visit")
    if script:
        found += await flaws(page)
    await page.get_by_role("button", name="Remove Visa •••• 4242").click()
    await expect(page.locator("body")).to_contain_text("No card is saved here any more.")
    assert found == []


@long
async def test_a_card_typed_on_the_banks_page_pays_with_one_press_once_its_bank_has_asked(
    open_page: OpenPage, base: str, desk: Desk, shop: Shop
) -> None:
    await set_back.no_codes_counted(desk.database)
    await saves_cards(desk.database, shop)
    page = await open_page(await checkout(base, desk, shop, "first"))
    found = await become_known(page, desk, shop)
    await page.locator("#page-email").fill("ada@example.com")
    await page.locator("#page-save").check()
    await page.locator("#page-charge").check()
    found += await flaws(page)
    await page.get_by_role("button", name="Continue to payment").click()
    await page.wait_for_url("**/simulator/**")
    await page.get_by_label("Card number").fill("4000000000003220")
    await page.get_by_role("button", name="Pay by card").click()
    await page.get_by_role("button", name="Approve payment").click()
    await expect(page.locator("h1")).to_have_text("Thank you for your payment")
    await page.goto(await checkout(base, desk, shop, "second"))
    found += await flaws(page)
    await page.get_by_role("button", name="Visa •••• 3220 – Pay").click()
    await page.wait_for_url("**/simulator/**")
    await page.get_by_role("button", name="Approve payment").click()
    await expect(page.locator("h1")).to_have_text("Thank you for your payment")
    await page.goto(await checkout(base, desk, shop, "third"))
    await page.get_by_role("link", name="What is saved, and what you agreed to").click()
    await expect(page.locator("body")).to_contain_text("may charge the card that I pay with later without me")
    await page.get_by_role("button", name="Remove Visa •••• 3220").click()
    await expect(page.locator("body")).to_contain_text("No card is saved here any more.")
    assert found == []


@pytest.fixture
async def stripe() -> AsyncIterator[StripeCheckout]:
    """The stand-in for Stripe, with its pages."""
    standin = StripeCheckout(utc_now)
    runner = web.AppRunner(stripe_page.application(stripe_page.Pages(standin, "", "")), shutdown_timeout=0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    standin.base_url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield standin
    await runner.cleanup()
    assert standin.wrong == []


@long
async def test_a_card_typed_on_stripes_page_pays_with_one_press_once_its_bank_has_asked(
    open_page: OpenPage, serve: Serve, settings: Settings, desk: Desk, merchant: Merchant, stripe: StripeCheckout
) -> None:
    await set_back.no_codes_counted(desk.database)
    shop = shop_of(merchant, live=True)
    await submit_profile(desk.database, merchant.id)
    await accept_waiting(desk.database, merchant.id)
    await go_live(desk.database, merchant.id, now=utc_now())
    await saves_cards(desk.database, shop)
    at_stripe: dict[str, Any] = {
        "live_acquirer": "stripe",
        "stripe_secret_key": SecretStr("sk_test_standin"),
        "stripe_api_base": stripe.base_url,
        "stripe_checkout": True,
        "idempotency_secret": SecretStr("i" * 40),
    }
    async with application(serve, settings.model_copy(update=at_stripe)) as base:
        page = await open_page(await checkout(base, desk, shop, "first"))
        found = await become_known(page, desk, shop)
        await page.locator("#page-email").fill("ada@example.com")
        await page.locator("#page-save").check()
        found += await flaws(page)
        await page.get_by_role("button", name="Continue to payment").click()
        await page.get_by_label("Card number").fill("4242424242424242")
        await page.get_by_role("button", name="Pay").click()
        await expect(page.locator("h1")).to_have_text("Thank you for your payment")
        stripe.asking.update(stripe.methods)
        await page.goto(await checkout(base, desk, shop, "second"))
        found += await flaws(page)
        await page.get_by_role("button", name="Visa •••• 4242 – Pay").click()
        await page.get_by_role("button", name="It is me").click()
        await expect(page.locator("h1")).to_have_text("Thank you for your payment")
    assert [one["amount_received"] for one in stripe.intents.values()] == [1000, 1000]
    assert stripe.off_session == set()
    assert found == []
