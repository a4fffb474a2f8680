"""Packages in a real browser: made, given another version, and what runs moved there and back."""

from __future__ import annotations

import re
from dataclasses import replace
from decimal import Decimal

import pytest
from playwright.async_api import expect
from tests import breaking
from tests.e2e.looks import flaws
from tests.e2e.test_account_getting_in import SignUp, base, complaints, sign_up
from tests.lengths import longer
from tests.web.account.selling import Seller

from paydesk.core.clock import utc_now
from paydesk.core.periods import Period
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk
from paydesk.domain.subscriptions.moving import carry_on
from paydesk.domain.subscriptions.packages import make_version
from paydesk.domain.subscriptions.subscription_terms import Terms

__all__ = ["base", "complaints", "sign_up"]

pytestmark = pytest.mark.browser

CLUB = Terms("Coffee club", "club", "USD", Decimal("24.00"), Period(1, "month"), None, 0)


@longer
async def test_a_version_is_made_and_what_runs_is_moved_there_and_back(
    sign_up: SignUp, desk: Desk, complaints: list[str]
) -> None:
    page, _ = await sign_up()
    path = re.sub(r"(/account/\d+).*", r"\1", page.url)
    seller = Seller(desk, Shop(int(path.rsplit("/", 1)[1]), live=False))
    for number in range(3):
        await seller.sell(f"S-{number}", terms=CLUB, amount="24.00")
    await seller.sell("S-4", terms=replace(CLUB, sku_id="tea", name="Tea club"), amount="24.00")

    await page.goto(f"{path}/subscriptions/packages")
    assert await flaws(page) == []
    await page.get_by_role("link", name="New package").click()
    await page.get_by_label("Price of a period").fill("12,50")
    assert await flaws(page) == []
    for label, text in (("Name", "Cake club"), ("SKU", "cake"), ("Currency", "usd")):
        await page.get_by_label(label, exact=False).first.fill(text)
    await page.get_by_role("button", name="Make the package").click()
    await expect(page.get_by_text("The package is made.")).to_be_visible()
    await page.get_by_role("link", name="Packages").last.click()
    await page.get_by_role("link", name="Coffee club").click()
    await page.get_by_role("link", name="New version").click()
    await page.get_by_label("Price of a period").fill("29")
    await page.get_by_role("button", name="Make the version").click()
    await expect(page.get_by_text("What runs stays on the version that it is on.")).to_be_visible()
    assert await flaws(page) == []
    await page.get_by_role("link", name="Move subscriptions").click()
    await page.get_by_role("button", name="See what comes of it").click()
    await expect(page.get_by_text("3 subscriptions go.")).to_be_visible()
    assert await flaws(page) == []
    await page.get_by_role("button", name="Move them").click()
    await expect(page.get_by_role("heading", name=re.compile(r"^Move \d+$"))).to_be_visible()
    assert await flaws(page) == []
    while await carry_on(seller.database, real_now=utc_now(), merchant_id=seller.shop.merchant_id,
                         move_id=int(page.url.rpartition("/")[2])):  # fmt: skip
        pass
    await expect(page.get_by_text("All planned")).to_be_visible()
    assert await flaws(page) == []
    await page.get_by_role("button", name="Take back what is still to come").click()
    await expect(page.get_by_text("Being taken back")).to_be_visible()
    assert complaints == []


TORN = """
() => {
  const seen = (one) => one.getBoundingClientRect();
  const avatar = document.querySelector(".switcher .avatar"), inside = seen(document.querySelector(".rows"));
  return [
    ...(avatar.offsetWidth && seen(avatar).width < seen(avatar).height - 1 ? ["avatar"] : []),
    ...[...document.querySelectorAll(".copy:not([hidden])")].filter((one) =>
      seen(one).right > Math.min(inside.right, seen(one.closest("td")).right) + 1).map(() => "copy"),
    ...(seen(document.querySelector(".toggle span")).height > 30 && innerWidth > 360 ? ["mode"] : []),
  ];
}
"""
"""What of the frame and of the list is squeezed or cut off."""


async def test_long_names_squeeze_and_hide_nothing(sign_up: SignUp, desk: Desk) -> None:
    page, _ = await sign_up()
    path = re.sub(r"(/account/\d+).*", r"\1", page.url)
    shop = Shop(int(path.rsplit("/", 1)[1]), live=False)
    await breaking.say(desk.database, "merchant", {"id": shop.merchant_id}, name="Wunderbar" * 13)
    long = replace(CLUB, name="Wunderbar" * 20, sku_id="sku-" + "s" * 90, price=Decimal("12345678.90"))
    await make_version(desk.database, shop, long, now=utc_now())
    for width in (1280, 390, 320):
        await page.set_viewport_size({"width": width, "height": 800})
        await page.goto(f"{path}/subscriptions/packages")
        await expect(page.locator(".copy").first).to_be_visible()
        assert (width, await page.evaluate(TORN)) == (width, [])
