"""Subscriptions that bend, as customers and merchants see them."""

from __future__ import annotations

import re

from playwright.async_api import Page, expect
from tests.e2e.month import GOOD
from tests.e2e.walking import PHONE, Walk, press, sees, step


async def to_active(page: Page, walk: Walk, below: str = "") -> None:
    found = await walk.first("/api/v1/subscriptions?status=Active&limit=1")
    await page.goto(f"{walk.account}/subscriptions/{found['id']}{below}")


@step("owner")
async def change_of_plan(page: Page, walk: Walk) -> None:
    await to_active(page, walk, "/change")


@step("owner")
async def change_now_with_the_difference(page: Page, walk: Walk) -> None:
    await to_active(page, walk, "/change")
    await page.get_by_label("Price").fill("36.00")
    await page.get_by_label("From when").select_option("charge")
    await press(page, "See what comes of it")
    await sees(page, "is charged now")


@step("owner")
async def change_of_quantity(page: Page, walk: Walk) -> None:
    await to_active(page, walk, "/change")
    await page.get_by_label("How many").fill("3")
    await page.get_by_label("From when").select_option("next")
    await press(page, "See what comes of it")
    await sees(page, "settle")


@step("owner")
async def change_is_open(page: Page, walk: Walk) -> None:
    await to_active(page, walk, "/change")
    await page.get_by_label("Price").fill("15.00")
    await press(page, "See what comes of it")
    await press(page, "Change the plan")
    await sees(page, "15.00")


@step("owner")
async def pause(page: Page, walk: Walk) -> None:
    await to_active(page, walk, "/pause")


@step("owner")
async def dunning(page: Page, walk: Walk) -> None:
    await page.goto(f"{walk.account}/subscriptions/dunning")


@step("owner", PHONE)
async def dunning_on_a_phone(page: Page, walk: Walk) -> None:
    await page.goto(f"{walk.account}/subscriptions/dunning")


@step("owner")
async def recurring_revenue(page: Page, walk: Walk) -> None:
    await page.goto(f"{walk.account}/subscriptions/revenue")
    await expect(page.locator(".plot canvas").first).to_be_visible()


@step("owner")
async def packages(page: Page, walk: Walk) -> None:
    await page.goto(f"{walk.account}/subscriptions/packages")
    await page.locator("main .whole-row").last.click()
    await page.wait_for_url(re.compile(r"packages/\d+"))


@step("owner")
async def moving_all_of_a_package(page: Page, walk: Walk) -> None:
    await page.goto(f"{walk.account}/subscriptions/packages")
    await page.locator("main .whole-row").last.click()
    await page.wait_for_url(re.compile(r"packages/\d+"))
    await page.goto(f"{page.url}/move")


@step("owner")
async def settings_of_the_shop(page: Page, walk: Walk) -> None:
    await page.goto(f"{walk.account}/settings/shop")


@step()
async def membership_of_the_sample_shop(page: Page, walk: Walk) -> None:
    reference = await walk.ask(walk.shop.buy, "club", walk.shop.customer(GOOD))
    await page.goto(f"{walk.running.shop}/thanks?order={reference}")
    await expect(page.get_by_text("Genuine", exact=True).first).to_be_visible()
    await page.goto(f"{walk.running.shop}/membership?order={reference}")
    await sees(page, "Coffee club")
