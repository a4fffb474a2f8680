"""A live payment on Stripe's own page, as a customer goes it: shop, our page, theirs, and back;
against `paydesk run`, with the stand-in for Stripe in a process of its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, expect
from tests.conftest import accept_waiting, submit_profile
from tests.e2e.running import OpenPage, Running, run_paydesk
from tests.e2e.test_journey import expect_thanks, to_the_page
from tests.e2e.test_subscription_journey import (
    ask_trials_for_cards,
    to_replace,
    to_the_portal,
    to_their_page_for_later,
)
from tests.lengths import long
from tests.processes import free_port

from paydesk.commands.connecting import database_address
from paydesk.core.clock import utc_now
from paydesk.database.pool import connected
from paydesk.domain.merchants.merchant import go_live
from paydesk.settings import load_settings
from paydesk.web.texts import LANGUAGES

pytestmark = [pytest.mark.browser, long]

SECRET = "whsec_of_the_journey"
VISA, MASTERCARD, DECLINED = "4242424242424242", "5555555555554444", "4000000000000002"
THEIRS = "**/c/pay/cs_test_*"


@dataclass
class Stripe:
    """The stand-in: where it is, and what it prints."""

    address: str
    process: subprocess.Popen[str]

    def said(self) -> dict[str, int]:
        """The next line that it prints."""
        assert self.process.stdout is not None
        line: dict[str, int] = json.loads(self.process.stdout.readline())
        return line

    def expire(self, session: str) -> None:
        """The session's time is over, or its account's owner has ended it."""
        asked = urllib.request.Request(f"{self.address}/v1/checkout/sessions/{session}/expire", method="POST")
        with urllib.request.urlopen(asked) as answer:
            assert json.load(answer)["status"] == "expired"

    def pays_debit(self, session: str) -> None:
        """The bank pays the debit of a session, or, without one, the newest that is on its way."""
        asked = urllib.request.Request(f"{self.address}/debits/{session or 'newest'}", method="POST")
        with urllib.request.urlopen(asked) as answer:
            assert answer.status == 200

    def wrong(self) -> list[str]:
        """What was sent to it and is not as Stripe's library would have it."""
        with urllib.request.urlopen(f"{self.address}/wrong") as answer:
            found: list[str] = json.load(answer)
        return found


@contextmanager
def stripe_telling(port: int) -> Iterator[Stripe]:
    """The stand-in, which sends its events to a Paydesk on a port."""
    own = free_port()
    tells = f"http://127.0.0.1:{port}/acquirers/stripe/notify"
    words = ["--port", str(own), "--tells", tells, "--secret", SECRET]
    command = [sys.executable, "-m", "tests.standins.stripe_page", *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        stripe = Stripe(f"http://127.0.0.1:{own}", process)
        assert stripe.said() == {"serving": own}
        yield stripe
    finally:
        process.kill()
        process.wait()


@pytest.fixture
async def live(tmp_path: Path) -> AsyncIterator[tuple[Running, Stripe]]:
    """A Paydesk whose sample shop is live, and Stripe."""
    async with at_stripe(tmp_path) as both:
        yield both


@asynccontextmanager
async def at_stripe(tmp_path: Path, **more: str) -> AsyncIterator[tuple[Running, Stripe]]:
    """The same for the length of a block, with more settings."""
    port = free_port()
    with stripe_telling(port) as stripe:
        settings = {
            "live_acquirer": "stripe",
            "stripe_secret_key": "sk_test_standin",
            "stripe_api_base": stripe.address,
            "stripe_checkout": "1",
            "stripe_webhook_secret": SECRET,
            "idempotency_secret": "i" * 40,
            "allow_async": "1",
            **more,
        }
        with run_paydesk(tmp_path, port=port, **settings) as running:
            merchant_id = int((tmp_path / "data" / "demo" / "merchant").read_text())
            async with (
                database_address(load_settings(data_dir=tmp_path / "data")) as url,
                connected(url, most=2) as database,
            ):
                await submit_profile(database, merchant_id)
                await accept_waiting(database, merchant_id)
                await go_live(database, merchant_id, now=utc_now())
            yield running, stripe
        assert stripe.wrong() == []


async def to_stripes_page(page: Page, stripe: Stripe) -> None:
    """Go on from our page to Stripe's."""
    await page.get_by_label("E-mail").fill("ada@example.com")
    await page.get_by_role("button", name="Continue to payment").click()
    await page.wait_for_url(f"{stripe.address}/c/pay/**")


async def pay(page: Page, number: str, **clicking: Any) -> None:
    await page.get_by_label("Card number").fill(number)
    await page.get_by_role("button", name="Pay").click(**clicking)


async def test_a_purchase_goes_by_stripes_page_to_a_verified_pingback_whether_its_customer_comes_back_or_not(
    open_page: OpenPage, live: tuple[Running, Stripe]
) -> None:
    running, stripe = live
    page = await to_the_page(open_page, running, version="v2")
    await to_stripes_page(page, stripe)
    await pay(page, DECLINED)
    await expect(page.get_by_role("alert")).to_contain_text("declined")
    await pay(page, VISA)
    await expect_thanks(page, running)
    await expect(page.locator("body")).to_contain_text('"event": "payment"')
    assert stripe.said() == {"told": 200}

    gone = await to_the_page(open_page, running, version="v2")
    checkout = gone.url
    await to_stripes_page(gone, stripe)
    await gone.route("**/result", lambda route: route.abort())
    await pay(gone, VISA, no_wait_after=True)
    assert stripe.said() == {"told": 200}
    later = await open_page(checkout)
    for _ in range(100):
        if "This order is paid" in await later.content():
            break
        await later.wait_for_timeout(200)
        await later.goto(checkout)
    await expect(later.locator("body")).to_contain_text("This order is paid")


async def test_leaving_going_back_and_a_second_tab_lead_to_the_one_page_that_is_paid_once(
    open_page: OpenPage, live: tuple[Running, Stripe]
) -> None:
    running, stripe = live
    page = await to_the_page(open_page, running, version="v2", java_script_enabled=False)
    checkout = page.url
    await to_stripes_page(page, stripe)
    address = page.url
    await page.get_by_role("link", name="Back").click()
    await expect(page.get_by_role("alert")).to_contain_text("You have not paid yet")
    await to_stripes_page(page, stripe)
    assert page.url == address
    await page.go_back()
    await page.wait_for_url(f"{running.address}/checkout/**")
    await to_stripes_page(page, stripe)
    second = await open_page(checkout)
    await to_stripes_page(second, stripe)
    assert (page.url, second.url) == (address, address)
    await pay(page, VISA)
    await expect_thanks(page, running)
    await pay(second, VISA)
    await expect(second.get_by_role("heading")).to_have_text("This page has expired")
    await second.goto(checkout)
    await expect(second.locator("body")).to_contain_text("This order is paid")


@pytest.mark.parametrize(
    ("article", "button", "javascript"), [("Coffee club", "Pay", True), ("Tea letter", "Save", False)]
)
async def test_a_subscription_begins_on_their_page_and_is_charged_to_another_card_later(
    open_page: OpenPage, live: tuple[Running, Stripe], article: str, button: str, javascript: bool
) -> None:
    running, _ = live
    ask_trials_for_cards(running)
    page = await to_their_page_for_later(open_page, running, article, THEIRS, java_script_enabled=javascript)
    await page.get_by_label("Card number").fill(VISA)
    await page.get_by_role("button", name=button).click()
    await to_the_portal(page, running)
    await expect(page.locator("body")).to_contain_text("Visa •••• 4242")
    await to_replace(page, THEIRS)
    await page.get_by_label("Card number").fill(MASTERCARD)
    await page.get_by_role("button", name="Save").click()
    await page.wait_for_url("**/portal/*/card/result")
    await expect(page.locator("body")).to_contain_text("charges Mastercard •••• 4444")


async def test_a_page_that_has_expired_there_is_followed_by_another_one(
    open_page: OpenPage, live: tuple[Running, Stripe]
) -> None:
    running, stripe = live
    page = await to_the_page(open_page, running, version="v2")
    checkout = page.url
    await to_stripes_page(page, stripe)
    expired = page.url
    stripe.expire(expired.rpartition("/")[2])
    await pay(page, VISA)
    await expect(page.get_by_role("heading")).to_have_text("This page has expired")
    await page.goto(checkout)
    await to_stripes_page(page, stripe)
    assert page.url != expired
    await pay(page, VISA)
    await expect_thanks(page, running)


async def test_in_every_language_on_a_phone_their_page_is_reached_and_paid_on(
    open_page: OpenPage, live: tuple[Running, Stripe]
) -> None:
    running, stripe = live
    for language in LANGUAGES:
        phone = {"viewport": {"width": 375, "height": 740}, "has_touch": True, "is_mobile": True}
        page = await to_the_page(open_page, running, version="v2", locale=language, **phone)
        await expect(page.locator("html")).to_have_attribute("lang", language)
        await page.locator("#email, #page-email").first.fill("ada@example.com")
        await page.locator("form[action$='/continue'] button").click()
        await page.wait_for_url(f"{stripe.address}/c/pay/**")
        await pay(page, VISA)
        await expect_thanks(page, running)
        await page.context.close()
