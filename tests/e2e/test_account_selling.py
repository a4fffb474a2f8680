"""What a merchant does all day, in a real browser: payments, refunds, subscriptions, deliveries;
axe on each page.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest
from playwright.async_api import Page, expect
from tests.e2e.looks import flaws
from tests.e2e.test_account_getting_in import SignUp, base, complaints, sign_up
from tests.lengths import long
from tests.shopfront import ships
from tests.web.account.selling import POOR, Seller

from paydesk.core.clock import utc_now
from paydesk.core.periods import Period
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk
from paydesk.domain.subscriptions.subscription_terms import Terms, Trial

__all__ = ["base", "complaints", "sign_up"]

pytestmark = pytest.mark.browser

CLUB = Terms(
    "Coffee club", "club", "USD", Decimal("24.00"), Period(1, "month"), Trial(Decimal(1), Period(14, "day")), 0
)


async def sell_all_kinds(desk: Desk, page: Page) -> tuple[str, dict[str, int]]:
    """The merchant's address, and payments of all kinds by their orders."""
    path = re.sub(r"(/account/\d+).*", r"\1", page.url)
    seller, now = Seller(desk, Shop(int(path.rsplit("/", 1)[1]), live=False)), utc_now()
    ids = {}
    await seller.sell(
        "2026-1041", number=POOR, amount="129.90", email="grace@example.com", now=now - timedelta(hours=3)
    )
    ids["tale"] = await seller.sell("2026-1041", amount="129.90", now=now - timedelta(hours=2))
    ids["poor"] = await seller.sell("2026-1042", number=POOR, amount="18.50", email="alan@example.com")
    ids["first"] = await seller.sell("2026-1043", amount="1.00", terms=CLUB, email="barbara@example.com")
    await seller.sell("2026-1045", amount="36.00", terms=replace(CLUB, price=Decimal(36), trial=None))
    await ships(seller.database, seller.shop)
    ids["held"] = await seller.sell(
        "2026-1044", amount="64.00", number="5555555555554444", now=now - timedelta(days=6.5)
    )
    await seller.sell("2026-1046", amount="12.00", now=now - timedelta(days=2))
    for name, column, table in (
        ("subscription", "id", "subscription"),
        ("package", "id", "subscription_package"),
    ):
        ids[name] = await seller.database.fetchval(
            f"select min({column}) from {table} where merchant_id = $1", seller.shop.merchant_id
        )
    return path, ids


@long
async def test_a_part_is_given_back_and_a_parcel_confirmed(sign_up: SignUp, desk: Desk, complaints: list[str]) -> None:
    page, _ = await sign_up()
    path, ids = await sell_all_kinds(desk, page)
    await page.goto(f"{path}/payments")
    await page.get_by_label("Search").fill("grace@example.com")
    await page.get_by_role("button", name="Apply").click()
    await page.get_by_role("link", name="2026-1041").click()
    await page.get_by_label("Amount in USD").fill("29.90")
    await page.get_by_role("button", name="Refund this part").click()
    await page.get_by_role("button", name="Refund 29.90 USD").click()
    await expect(page.get_by_text("29.90 USD is given back to the customer.")).to_be_visible()
    await expect(page.get_by_role("region", name="Timeline")).to_contain_text("by Ada Lovelace")
    await page.get_by_role("link", name="Deliveries").first.click()
    await page.get_by_role("link", name="Confirm order 2026-1044").click()
    await page.get_by_label("Carrier").fill("DHL")
    await page.get_by_label("Tracking id").fill("00340434161094021501")
    await page.get_by_role("button", name="Confirm").click()
    await expect(page.get_by_text("The shipment is confirmed, and the money is yours.")).to_be_visible()
    await page.goto(f"{path}/subscriptions/{ids['subscription']}")
    await page.get_by_role("link", name="Cancel it").click()
    await page.get_by_role("button", name="Cancel the subscription").click()
    await expect(page.get_by_text("The subscription is cancelled; your server is told.")).to_be_visible()
    assert complaints == []


@long
async def test_every_page_can_be_used_by_everybody(sign_up: SignUp, desk: Desk, complaints: list[str]) -> None:
    page, _ = await sign_up()
    path, ids = await sell_all_kinds(desk, page)
    await page.goto(f"{path}/payments/{ids['tale']}")
    await page.get_by_label("Amount in USD").fill("29.90")
    await page.get_by_role("button", name="Refund this part").click()
    await expect(page.get_by_role("button", name="Refund 29.90 USD")).to_be_visible()
    assert await flaws(page) == []
    await page.get_by_role("button", name="Refund 29.90 USD").click()
    for name in (
        "payments", "payments?q=nobody", f"payments/{ids['tale']}", f"payments/{ids['poor']}",
        f"payments/{ids['held']}", "subscriptions", f"subscriptions/{ids['subscription']}",
        f"subscriptions/{ids['subscription']}/cancel", f"subscriptions/{ids['subscription']}/pause",
        f"subscriptions/{ids['subscription']}/change",
        f"subscriptions/{ids['subscription']}/end", "subscriptions/packages",
        f"subscriptions/packages/{ids['package']}", "deliveries", "deliveries/confirmed", f"deliveries/{ids['held']}",
    ):  # fmt: skip
        await page.goto(f"{path}/{name}")
        assert await flaws(page) == []
    assert complaints == []
