"""A customer changes the plan, how many, pauses, resumes and takes things back, in a real browser,
with and without JavaScript, on a desktop and a phone.
"""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from playwright.async_api import Page, expect
from tests.e2e.looks import Look, violations
from tests.e2e.test_portal import FAILS_LATER, OpenPage, Portal, Subscribed, base, subscribed
from tests.lengths import long, one_of

from paydesk.adapters.acquirers.interface import OutcomeUnknown
from paydesk.adapters.acquirers.simulator import SimulatedAcquirer
from paydesk.core.clock import utc_now
from paydesk.domain.merchants.customer_ways import PortalCancels, PortalPlans
from paydesk.domain.merchants.merchant import change_merchant
from paydesk.domain.payments.janitor import settle_due
from paydesk.domain.subscriptions.packages import agree_package, find_version, offer
from paydesk.domain.subscriptions.subscription_terms import RecurringFields, Terms, read_terms

pytestmark = pytest.mark.browser

__all__ = ["base", "subscribed"]

DESKTOP, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 780}
LOOKS = [(True, DESKTOP, "light"), (False, PHONE, "dark"), (True, PHONE, "dark"), (False, DESKTOP, "light")]
EVERY_LOOK = one_of(2, LOOKS)


def plan(name: str, price: str, period: str = "1m") -> Terms:
    terms = read_terms(RecurringFields(name, name.lower(), period), Decimal(price), "USD")
    assert terms is not None
    return terms


async def open_shop(portal: Portal) -> None:
    """The merchant lets customers do all there is, and offers two plans."""
    await change_merchant(
        portal.desk.database,
        portal.shop.merchant_id,
        portal_cancels=PortalCancels.BOTH,
        portal_pauses=True,
        portal_plans=PortalPlans.BOTH,
        portal_quantities=True,
    )
    for terms in (plan("Pro", "30.00"), plan("Yearly", "100.00", "1y")):
        await agree_package(portal.desk.database, portal.shop, terms, now=utc_now())
        version = await find_version(portal.desk.database, portal.shop, terms)
        assert version is not None
        await offer(portal.desk.database, portal.shop, version.id, version.version_id, offered=True)


async def charged(portal: Portal) -> list[Decimal]:
    rows = await portal.desk.database.fetch(
        "select amount from payment where merchant_id = $1 and paid_at is not null and amount > 0 order by id",
        portal.shop.merchant_id,
    )
    return [row["amount"] for row in rows]


@pytest.fixture
async def offering(subscribed: Subscribed) -> Any:
    async def begin(number: str = "4242424242424242") -> Portal:
        portal = await subscribed(number)
        await open_shop(portal)
        return portal

    return begin


async def opened(open_page: OpenPage, portal: Portal, script: bool, screen: Any, scheme: str) -> Page:
    return await open_page(portal.url, java_script_enabled=script, viewport=screen, color_scheme=scheme)


async def choose(page: Page, label: str, when: str) -> None:
    await page.get_by_role("link", name="Change the plan").click()
    await page.get_by_label("Plan", exact=True).select_option(label=label)
    await page.get_by_label("From when").select_option(when)
    await page.get_by_role("button", name="Continue").click()


@pytest.mark.parametrize(("script", "screen", "scheme"), EVERY_LOOK)
async def test_a_dearer_plan_is_seen_first_and_then_paid_once(
    open_page: OpenPage, offering: Any, script: bool, screen: Any, scheme: str
) -> None:
    portal = await offering()
    page = await opened(open_page, portal, script, screen, scheme)
    await choose(page, "Pro, 30.00\xa0USD every month until you cancel", "now")
    await expect(page.get_by_text("You pay now what the new plan costs more until")).to_be_visible()
    assert await charged(portal) == [Decimal(10)]
    button = page.get_by_role("button", name="Change the plan and pay")
    amount = Decimal((await button.inner_text()).split("pay ")[1].split()[0])
    await button.dblclick(no_wait_after=True)
    await expect(page.get_by_role("status")).to_contain_text("Your plan has changed.")
    await expect(page.get_by_role("heading", level=1)).to_contain_text("Pro")
    assert await charged(portal) == [Decimal(10), amount]


@pytest.mark.parametrize(("script", "screen", "scheme"), EVERY_LOOK)
async def test_a_plan_for_later_is_taken_back(
    open_page: OpenPage, offering: Any, script: bool, screen: Any, scheme: str
) -> None:
    portal = await offering()
    page = await opened(open_page, portal, script, screen, scheme)
    await choose(page, "Yearly, 100.00\xa0USD every year until you cancel", "later")
    await expect(page.get_by_text("100.00\xa0USD on")).to_be_visible()
    await page.get_by_role("button", name="Change the plan").click()
    await expect(page.get_by_role("status")).to_contain_text("on it is: Yearly")
    await page.get_by_role("button", name="Keep the present plan").click()
    await expect(page.get_by_text("on it is: Yearly")).to_have_count(0)
    assert await charged(portal) == [Decimal(10)]


@pytest.mark.parametrize(("script", "screen", "scheme"), EVERY_LOOK)
async def test_it_is_paused_resumed_ended_and_kept(
    open_page: OpenPage, offering: Any, script: bool, screen: Any, scheme: str
) -> None:
    portal = await offering()
    page = await opened(open_page, portal, script, screen, scheme)
    await page.get_by_role("link", name="Pause the subscription").click()
    await page.get_by_label("For how long").select_option("2")
    await page.get_by_role("button", name="Pause the subscription").click()
    await expect(page.get_by_role("status")).to_contain_text("This subscription is paused until")
    await page.get_by_role("button", name="Resume the subscription").click()
    await expect(page.get_by_role("status")).to_have_count(0)
    await page.get_by_role("link", name="Cancel the subscription").click()
    await page.get_by_role("button", name="Let it end on").click()
    await expect(page.get_by_role("status")).to_contain_text("This subscription ends on")
    await page.get_by_role("button", name="Keep the subscription").click()
    await expect(page.get_by_role("status")).to_have_count(0)
    assert await portal.state() == "Active"


async def test_how_many_is_changed_and_a_wrong_number_is_said_at_its_field(look: Look, offering: Any) -> None:
    portal = await offering()
    page = await look(portal.url)
    await page.get_by_role("link", name="Change the plan").click()
    await page.get_by_label("How many").fill("0")
    await page.get_by_role("button", name="Continue").click()
    field = page.get_by_label("How many")
    await expect(field).to_be_focused()
    await expect(field).to_have_accessible_description("Give a whole number from 1 to 10000.")
    await field.fill("3")
    await page.get_by_role("button", name="Continue").click()
    await expect(page.get_by_text("3 × 10.00\xa0USD = 30.00\xa0USD every month")).to_be_visible()
    await page.get_by_role("button", name="Change the plan and pay").click()
    await expect(page.get_by_role("status")).to_contain_text("Your plan has changed.")
    assert sum(await charged(portal)) in (Decimal(30), Decimal("29.99"))


async def test_who_waits_for_the_bank_is_told_as_soon_as_it_answers(
    open_page: OpenPage, offering: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    portal = await offering()
    page = await opened(open_page, portal, True, PHONE, "light")
    charge = SimulatedAcquirer.charge_stored

    async def lost(acquirer: Any, purchase: Any) -> None:
        await charge(acquirer, purchase)
        raise OutcomeUnknown("the answer was lost")

    with monkeypatch.context() as bank:
        bank.setattr(SimulatedAcquirer, "charge_stored", lost)
        await choose(page, "Pro, 30.00\xa0USD every month until you cancel", "now")
        await page.get_by_role("button", name="Change the plan and pay").click()
        await expect(page.get_by_role("status")).to_contain_text("Your bank has not answered yet.")
    while await settle_due(portal.desk, now=utc_now() + timedelta(minutes=3)):
        pass
    await expect(page.get_by_role("status")).to_contain_text("Your plan has changed.")
    assert "looked" not in page.url, "nothing was loaded on the off chance"


STATES = ("plan", "preview", "later", "declined", "wrong", "changed")


async def show(page: Page, state: str) -> None:
    """Bring the pages of a change into one of their states."""
    await page.get_by_role("link", name="Change the plan").click()
    if state == "plan":
        return
    if state == "wrong":
        await page.get_by_label("How many").fill("x")
    else:
        await page.get_by_label("Plan", exact=True).select_option(index=1)
        await page.get_by_label("From when").select_option("later" if state == "later" else "now")
    await page.get_by_role("button", name="Continue").click()
    if state in ("declined", "changed"):
        await page.locator("button[name=agreed]").click()
    await page.wait_for_load_state()


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=long)])
@pytest.mark.parametrize("state", one_of(3, STATES))
async def test_axe_reports_nothing_and_nothing_scrolls_sideways_at_320_pixels(
    look: Look, offering: Any, state: str, scheme: str
) -> None:
    portal = await offering(FAILS_LATER if state == "declined" else "4242424242424242")
    page = await look(portal.url, viewport={"width": 320, "height": 640}, color_scheme=scheme)
    await show(page, state)
    assert await violations(page) == []
    assert await page.evaluate("document.documentElement.scrollWidth") <= 320
