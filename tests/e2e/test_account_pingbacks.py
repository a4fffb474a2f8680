"""What a merchant's programmer does when pingbacks fail, in a real browser:
see why, mend it, send again; axe too.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from datetime import timedelta
from ipaddress import ip_network

import pytest
from playwright.async_api import Page, expect
from tests.breaking import say
from tests.domain.pingbacks.receiver import Receiver, receiving
from tests.e2e.looks import flaws
from tests.e2e.test_account_getting_in import SignUp, base, complaints, sign_up
from tests.lengths import long
from tests.web.account.selling import Seller

from paydesk.adapters.outbound import OutboundClient
from paydesk.adapters.vault import Vault
from paydesk.core.clock import utc_now
from paydesk.domain.merchants.merchant import change_merchant
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk
from paydesk.domain.pingbacks.sending import PingbackSender
from paydesk.settings import Settings

__all__ = ["base", "complaints", "sign_up"]

pytestmark = pytest.mark.browser


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Pingbacks may reach this machine."""
    return settings.model_copy(update={"outbound_allow": "127.0.0.0/8"})


PATH = "/shop/pingback.php"


@pytest.fixture
async def endpoint() -> AsyncIterator[Receiver]:
    """A merchant's server."""
    async with receiving() as opened:
        yield opened


@pytest.fixture
async def sender(desk: Desk, vault: Vault) -> AsyncIterator[PingbackSender]:
    outbound = OutboundClient([ip_network("127.0.0.0/8")])
    yield PingbackSender(desk.database, vault, outbound)
    await outbound.close()


PAGE = b"<!DOCTYPE html>\n<html><head><title>Whoops</title></head><body>Call to undefined function db()</body></html>"


async def trouble(desk: Desk, page: Page, endpoint: Receiver, sender: PingbackSender) -> tuple[str, int]:
    """A merchant whose server took pingbacks for days and fails since an hour;
    its address, and a failed pingback.
    """
    path = re.sub(r"(/account/\d+).*", r"\1", page.url)
    seller = Seller(desk, Shop(int(path.rsplit("/", 1)[1]), live=False))
    database, merchant_id, now = desk.database, seller.shop.merchant_id, utc_now()
    await database.execute("delete from pingback")
    await change_merchant(database, merchant_id, pingback_url=f"{endpoint.base}{PATH}")

    async def sell(number: int, hours: float, answer: tuple[int, bytes]) -> None:
        endpoint.answers[PATH] = [answer]
        payment_id = await seller.sell(f"2026-10{number}", amount=f"{number}.90", now=now - timedelta(hours=hours))
        await database.execute(
            "update payment set pingback_url = $2 where id = $1", payment_id, f"{endpoint.base}{PATH}"
        )
        await database.execute(
            "update pingback set url = $2 where payment_id = $1", payment_id, f"{endpoint.base}{PATH}"
        )
        await sender.send_due_once(utc_now())

    for number, age in ((11, 30), (12, 20), (13, 9), (14, 5), (15, 3)):
        await sell(number, age, (200, b"ok"))
    for number, hours, answer in ((16, 1.1, (500, PAGE)), (17, 0.9, (200, b"NOK")), (18, 0.5, (500, PAGE))):
        await sell(number, hours, answer)
    failed = await database.fetchval(
        "update pingback set state = 'exhausted', attempts = 11, finished_at = now() where id ="
        " (select min(id) from pingback where merchant_id = $1 and state = 'due') returning id",
        merchant_id,
    )
    await say(database, "pingback_attempt", {"pingback_id": failed}, number=11)
    endpoint.answers[PATH] = [(200, b"ok")]
    return path, int(failed)


@long
async def test_what_failed_is_understood_mended_tried_and_sent_again(
    sign_up: SignUp, desk: Desk, endpoint: Receiver, sender: PingbackSender, complaints: list[str]
) -> None:
    page, _ = await sign_up()
    path, failed = await trouble(desk, page, endpoint, sender)
    await page.goto(f"{path}/pingbacks")
    await expect(page.get_by_role("region", name="Endpoint health")).to_contain_text("Failing since")
    await page.get_by_role("link", name=re.compile(rf", {failed}$")).click()
    await expect(page.locator(".why")).to_contain_text("Look for an error of your program in its log")
    await expect(page.get_by_label("Answer 11")).to_contain_text("undefined function")
    await page.get_by_role("link", name="Pingbacks").first.click()
    await page.get_by_role("link", name="Send a test event").click()
    await expect(page.get_by_label("URL")).to_have_value(f"{endpoint.base}{PATH}")
    await page.get_by_label("Event").select_option("refund")
    await page.get_by_role("button", name="Send now").click()
    await expect(page.get_by_text("Your server answered ok")).to_be_visible()
    await page.goto(f"{path}/pingbacks?state=exhausted")
    await page.get_by_role("link", name="Send all failed again").click()
    await expect(page.get_by_text("Pingbacks that are sent again: 1.")).to_be_visible()
    await page.get_by_role("button", name="Send again").click()
    link = page.get_by_role("link", name=re.compile(rf", {failed}$"))
    row = page.get_by_role("row").filter(has=link)
    await expect(row).to_contain_text("Being sent")
    await sender.send_due_once(utc_now())
    await expect(row).to_contain_text("Acknowledged")
    await expect(page.get_by_role("region", name="Endpoint health")).to_contain_text("6 of 8")
    assert complaints == []


@long
async def test_every_page_can_be_used_by_everybody(
    sign_up: SignUp,
    desk: Desk,
    endpoint: Receiver,
    sender: PingbackSender,
    complaints: list[str],
) -> None:
    page, _ = await sign_up()
    path, failed = await trouble(desk, page, endpoint, sender)
    for name in (
        "pingbacks", "pingbacks?state=exhausted", "pingbacks?event=refund", f"pingbacks/{failed}", "pingbacks/resend",
        "pingbacks/test", "tried",
    ):  # fmt: skip
        if name == "tried":
            endpoint.answers[PATH] = [(200, b"NOK")]
            await page.get_by_role("button", name="Send now").click()
            await expect(page.get_by_text("Your program answered NOK")).to_be_visible()
        else:
            await page.goto(f"{path}/{name}")
        assert await flaws(page) == []
    assert complaints == []
