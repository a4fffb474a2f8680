"""A subscription by direct debit, each of which takes days, as a customer goes it: the page of
their bank, the wait, the beginning, and renewals on their way; against `paydesk run` itself.
"""

from __future__ import annotations

import math
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, expect
from tests import set_back
from tests.e2e.looks import flaws
from tests.e2e.running import OpenPage, Running, load_until
from tests.e2e.test_live_journey import THEIRS as AT_MOLLIE
from tests.e2e.test_live_journey import at_mollie, mollie
from tests.e2e.test_stripe_journey import THEIRS as AT_STRIPE
from tests.e2e.test_stripe_journey import at_stripe, pay
from tests.e2e.test_subscription_journey import (
    advance,
    ask_trials_for_cards,
    to_replace,
    to_the_portal,
    to_their_page_for_later,
)
from tests.lengths import long
from tests.standins.account import Account

from paydesk.commands.connecting import database_address
from paydesk.database.pool import Database, connected
from paydesk.settings import load_settings

pytestmark = [pytest.mark.browser, long]

__all__ = ["mollie"]

AT_THE_BANK = "**/simulator/pay/**"
PHONE = {"viewport": {"width": 375, "height": 740}, "has_touch": True, "is_mobile": True}
SLOW = {"slow_methods": "1", "slow_renewals": "1"}


async def press(page: Page, name: str) -> None:
    await page.get_by_role("button", name=name, exact=True).click()


async def expect_on_its_way(page: Page) -> None:
    """Our page says that the money comes later, and offers no other way to pay."""
    await page.wait_for_url("**/result")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Your payment is on its way")
    await expect(page.get_by_role("button")).to_have_count(0)


async def expect_renewal_on_its_way(portal: Page) -> None:
    """The customer's page says by when their bank has sent it."""
    said = portal.get_by_role("status").filter(has_text="is on its way")

    async def is_said() -> bool:
        return await said.count() > 0

    await portal.reload()
    await load_until(portal, is_said)
    await expect(said).to_contain_text("Your bank may take some days to send it, until")


async def expect_renewed(portal: Page) -> None:
    """Their page lists what was paid, twice by now, and nothing is on its way any more."""
    paid = portal.get_by_role("row").filter(has_text=re.compile(r"\bpaid\b"))

    async def are_two() -> bool:
        return await paid.count() == 2

    await portal.reload()
    await load_until(portal, are_two)
    await expect(portal.get_by_role("status").filter(has_text="is on its way")).to_have_count(0)


def days_to_the_charge(running: Running, now: str) -> str:
    """How long the newest subscription waits for its next charge, in full days."""
    listed: list[dict[str, Any]] = running.command("subscription", "list")
    due = max(listed, key=lambda one: int(one["id"]))["date_next"]
    return f"{math.ceil((due - datetime.fromisoformat(now).timestamp()) / 86400)}d"


@pytest.mark.parametrize("options", [{}, {"java_script_enabled": False, **PHONE}], ids=["desktop", "phone, no script"])
async def test_it_begins_once_the_money_is_there_and_renews_by_debit(
    open_page: OpenPage, running: Running, options: dict[str, Any]
) -> None:
    """Some 15 seconds each."""
    page = await to_their_page_for_later(open_page, running, "Coffee club", AT_THE_BANK, **options)
    await press(page, "Pay by direct debit (two days, each time)")
    await expect_on_its_way(page)
    scripted = not options
    found = await flaws(page) if scripted else []
    now = advance(running, "3d")["now"]
    await page.reload()
    await to_the_portal(page, running)
    await expect(page.locator("main")).to_contain_text("Bank account")
    advance(running, days_to_the_charge(running, now))
    await expect_renewal_on_its_way(page)
    found += await flaws(page) if scripted else []
    await expect(page.get_by_role("cell", name="on its way")).to_have_count(1)
    advance(running, "3d")
    await page.reload()
    await expect_renewed(page)
    assert found == []


async def test_one_that_fails_later_is_mended_on_the_customers_page(open_page: OpenPage, running: Running) -> None:
    """A free trial begins at once, its first debit comes to nothing, and another way to pay is
    found. Some 15 seconds.
    """
    ask_trials_for_cards(running)
    page = await to_their_page_for_later(open_page, running, "Tea letter", AT_THE_BANK)
    await press(page, "Keep direct debit that fails later (two days, each time)")
    await to_the_portal(page, running)
    now = advance(running, "1d")["now"]
    advance(running, days_to_the_charge(running, now))
    await expect_renewal_on_its_way(page)
    advance(running, "2d")  # and not so far that the next try is on its way
    await page.reload()
    await expect(page.get_by_role("status").filter(has_text="is on its way")).to_have_count(0)
    await expect(page.locator("main")).to_contain_text("Payment failed")
    await to_replace(page, AT_THE_BANK)
    await page.get_by_label("Card number").fill("5555555555554444")
    await page.get_by_role("button", name=re.compile("this card|by card")).click()
    await page.wait_for_url("**/portal/*/card/result")
    await expect(page.locator("body")).to_contain_text("Mastercard •••• 4444")


@asynccontextmanager
async def books(folder: Path) -> AsyncIterator[Database]:
    """The database of a Paydesk whose data is in a folder."""
    async with (
        database_address(load_settings(data_dir=folder / "data")) as address,
        connected(address, most=2) as database,
    ):
        yield database


async def let_renew(database: Database) -> None:
    """The only subscription is due."""
    await set_back.renewal_due(database, await database.fetchval("select max(id) from subscription"))


async def let_look(database: Database) -> None:
    """What is on its way is asked for now, not in an hour."""
    await set_back.times(database, "payment_attempt", {"state": "pending"}, lookup_at=datetime.now(UTC))


async def test_a_debit_at_stripe_is_on_its_way_at_the_checkout_and_at_the_renewal(
    open_page: OpenPage, tmp_path: Path
) -> None:
    """Some 40 seconds."""
    async with at_stripe(tmp_path, **SLOW) as (running, stripe), books(tmp_path) as database:
        page = await to_their_page_for_later(open_page, running, "Coffee club", AT_STRIPE)
        session = page.url.rpartition("/")[2]
        await pay(page, "DE89370400440532013000")
        await expect_on_its_way(page)
        assert stripe.said() == {"told": 200}
        stripe.pays_debit(session)
        assert stripe.said() == {"told": 200}

        async def is_thanked() -> bool:
            return "/thanks" in page.url

        await load_until(page, is_thanked)
        await to_the_portal(page, running)
        await let_renew(database)
        await expect_renewal_on_its_way(page)
        stripe.pays_debit("")
        await let_look(database)
        await expect_renewed(page)


async def test_who_pays_mollie_from_their_bank_is_debited_later(
    open_page: OpenPage, tmp_path: Path, mollie: Account
) -> None:
    """iDEAL pays the first time at once, and lets the account be debited. Some 30 seconds."""
    async with at_mollie(tmp_path, mollie, **SLOW) as running, books(tmp_path) as database:
        page = await to_their_page_for_later(open_page, running, "Coffee club", AT_MOLLIE)
        await press(page, "Pay with iDEAL")
        await to_the_portal(page, running)
        await let_renew(database)
        await expect_renewal_on_its_way(page)
        (debit,) = [name for name, one in mollie.see()["payments"].items() if one["status"] == "pending"]
        mollie.do("settle", debit, "paid")
        await let_look(database)
        await expect_renewed(page)
