"""How many clicks and typed fields the tasks of every day take, from the page where one begins.

The table in `docs/architecture.md` says the same numbers: a page that gets longer to use is seen.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from playwright.async_api import Browser, BrowserContext, Page, expect
from tests.e2e.month import live_through
from tests.e2e.running import PATIENCE_MS, Running, run_paydesk
from tests.e2e.screenshots import log_in
from tests.lengths import long

pytestmark = [pytest.mark.browser, long]

DOCS = Path(__file__).parents[2] / "docs" / "architecture.md"
ROW = re.compile(r"^\| ([^|]+) \| (\d+) \| (\d+) \|$", re.MULTILINE)
"""A row of the table: the task, clicks, fields."""
WRITTEN = {
    task: (int(clicks), int(fields))
    for task, clicks, fields in ROW.findall(DOCS.read_text().partition("## Clicks")[2].partition("\n## ")[0])
}


@dataclass
class Hand:
    """Does what a hand does, and counts it: a click is a button, a link, a box or a choice."""

    page: Page
    running: Running
    clicks: int = 0
    fields: int = 0

    async def click(self, role: str, name: str | re.Pattern[str]) -> None:
        """Press the first of what is called so, if it is in sight."""
        await self.page.get_by_role(role, name=name).locator("visible=true").first.click()  # type: ignore[arg-type]
        self.clicks += 1

    async def open(self, where: int = 0, *, saying: str = "") -> None:
        """Press a row of a list, the first unless it is said which."""
        rows = self.page.locator("main tr", has_text=re.compile(saying)).locator(".whole-row")
        await rows.nth(where).click()
        self.clicks += 1

    async def tick(self, label: str | re.Pattern[str]) -> None:
        await self.page.get_by_label(label).locator("visible=true").first.check()
        self.clicks += 1

    async def choose(self, label: str, value: str) -> None:
        await self.page.get_by_label(label).locator("visible=true").first.select_option(value)
        self.clicks += 1

    async def type(self, label: str, text: str) -> None:
        await self.page.get_by_label(label).locator("visible=true").first.fill(text)
        self.fields += 1

    async def sees(self, text: str | re.Pattern[str]) -> None:
        """What was wanted is there."""
        await expect(self.page.get_by_text(text).locator("visible=true").first).to_be_visible()

    async def type_card(self) -> None:
        typed = (
            ("E-mail", "ada@example.com"),
            ("Card number", "4242424242424242"),
            ("Expiry date", "12/39"),
            ("Security code", "123"),
            ("Name on card", "Ada Lovelace"),
        )
        for label, text in typed:
            await self.type(label, text)
        await self.choose("Country", "GB")


async def save_a_card(hand: Hand) -> None:
    """What was done at an earlier visit."""
    page = hand.page
    await hand.click("button", "Buy House espresso")
    await hand.click("button", "Continue to payment")
    await hand.click("link", "Save your card, or use a saved one")
    await hand.type("E-mail", "ada@example.com")
    await hand.click("button", "Send the code")
    await page.get_by_label("Code of 6 digits").wait_for()
    await hand.type("Code of 6 digits", await mailed_code(hand.running))
    await hand.click("button", "Go on")
    await hand.sees("You are known as ada@example.com.")
    await hand.type_card()
    await hand.tick("Save this card for my next visit")
    await hand.click("button", "Pay 10.00 USD")
    await hand.sees("Genuine")


async def mailed_code(running: Running) -> str:
    """The code in the mailbox of this machine, once it has come."""
    async with httpx.AsyncClient(base_url=running.address) as web:
        for _ in range(600):
            for mail in re.findall(r'href="(/mailbox/\d+)"', (await web.get("/mailbox")).text):
                found = re.search(r"\b\d{6}\b", re.sub("<[^>]+>", " ", (await web.get(f"{mail}/html")).text))
                if found and "code" in (await web.get(f"{mail}/html")).text.lower():
                    return found[0]
            await asyncio.sleep(0.1)
    raise AssertionError("no code came")


async def buy(hand: Hand) -> None:
    await hand.click("button", "Buy House espresso")
    await hand.click("button", "Continue to payment")
    await hand.type_card()
    await hand.click("button", "Pay 10.00 USD")
    await hand.sees("Genuine")


async def buy_on_return(hand: Hand) -> None:
    await hand.click("button", "Buy House espresso")
    await hand.click("button", "Continue to payment")
    await hand.click("button", re.compile("Visa •••• 4242 – Pay"))
    await hand.sees("Genuine")


async def subscribe(hand: Hand) -> None:
    await hand.click("button", "Subscribe to Coffee club")
    await hand.click("button", "Continue to payment")
    await hand.type_card()
    await hand.tick(re.compile("I agree|I authorize|monthly", re.IGNORECASE))
    await hand.click("button", re.compile("Pay 5.00 USD"))
    await hand.sees("Genuine")


async def cancel(hand: Hand) -> None:
    await hand.click("link", re.compile("orders", re.IGNORECASE))
    await hand.click("link", re.compile("Coffee club"))
    await hand.click("link", "Change the card or cancel")
    await hand.click("link", "Cancel the subscription")
    await hand.click("button", re.compile("Cancel"))
    await hand.sees(re.compile("cancelled"))


async def sign_up_to_key(hand: Hand) -> None:
    await hand.click("link", re.compile("Open an account"))
    await hand.type("Name of your shop", "Corner Shop")
    await hand.type("Your name", "Ada Lovelace")
    await hand.type("E-mail address", "ada@corner.example")
    await hand.type("Password", "correct horse battery staple")
    await hand.click("button", "Open the account")
    await hand.sees("Private key")


async def refund(hand: Hand) -> None:
    await hand.click("link", "Payments")
    await hand.type("Search", "ada@example.com")
    await hand.click("button", "Apply")
    await hand.click("link", re.compile("10.00 USD|€24.90"))
    await hand.click("button", re.compile("Refund all"))
    await hand.click("button", re.compile("Refund"))
    await hand.sees(re.compile("given back"))


async def answer_a_dispute(hand: Hand) -> None:
    await hand.click("link", re.compile("dispute to answer"))
    await hand.click("link", re.compile("10.00 USD"))
    await hand.click("button", "Send to the bank")
    await hand.sees("The bank has it")


async def ship(hand: Hand) -> None:
    await hand.click("link", re.compile("to ship"))
    await hand.click("link", re.compile("^Confirm order"))
    await hand.type("Carrier", "DHL")
    await hand.type("Tracking id", "00340434161094021501")
    await hand.click("button", "Confirm")
    await hand.sees("The shipment is confirmed")


async def resend(hand: Hand) -> None:
    await hand.click("link", "Pingbacks")
    await hand.open()
    await hand.click("button", "Send again")
    await hand.sees(re.compile("sent again|is sent"))


async def move_the_clock(hand: Hand) -> None:
    await hand.click("link", "Developers")
    await hand.click("link", "Test clock")
    await hand.click("button", "31 days")
    await hand.sees(re.compile("now|moved"))


async def read_recurring_revenue(hand: Hand) -> None:
    await hand.click("link", "Subscriptions")
    await hand.click("link", "Revenue")
    await hand.sees("Movements of the whole period")


async def change_a_plan(hand: Hand) -> None:
    await hand.click("link", "Subscriptions")
    await hand.open(saying="Active|In trial|Trial")
    await hand.click("link", "Change its plan")
    await hand.type("Price", "15.00")
    await hand.click("button", "See what comes of it")
    await hand.click("button", re.compile("Change"))
    await hand.sees(re.compile("15.00"))


async def pause(hand: Hand) -> None:
    await hand.click("link", "Subscriptions")
    await hand.open(-1, saying="Active|In trial|Trial")
    await hand.click("link", "Pause it")
    await hand.click("button", re.compile("Pause"))
    await hand.sees(re.compile("paused"))


async def make_a_coupon(hand: Hand) -> None:
    await hand.click("link", "Coupons")
    await hand.click("link", "New coupon")
    await hand.type("Code", "SPRING")
    await hand.type("Percent", "20")
    await hand.click("button", "Make the coupon")
    await hand.sees("SPRING")


async def make_a_payment_link(hand: Hand) -> None:
    await hand.click("link", "Payment links")
    await hand.click("link", "New payment link")
    await hand.type("Title", "A mug")
    await hand.type("Currency", "USD")
    await hand.type("Price, paid once", "4.00")
    await hand.click("button", "Make the link")
    await hand.sees("A mug")


async def invite(hand: Hand) -> None:
    await hand.click("link", "Settings")
    await hand.click("link", "Team")
    await hand.type("E-mail address", "grace@corner.example")
    await hand.click("button", "Send the invitation")
    await hand.sees("grace@corner.example")


async def see_why_a_form_was_refused(hand: Hand) -> None:
    await hand.click("link", "Developers")
    await hand.click("link", "Refused forms")
    await hand.sees(re.compile("hash"))


TASKS: dict[str, tuple[str, Callable[[Hand], Awaitable[None]]]] = {
    "buy": ("guest", buy),
    "buy on return, with a card that is saved": ("customer", buy_on_return),
    "subscribe": ("guest", subscribe),
    "cancel a subscription": ("guest", cancel),
    "from sign-up to a private key": ("newcomer", sign_up_to_key),
    "find and refund a payment": ("team", refund),
    "answer a dispute with what is known": ("team", answer_a_dispute),
    "ship an order": ("shippers", ship),
    "send a pingback again": ("team", resend),
    "move the test clock by a month": ("team", move_the_clock),
    "read recurring revenue": ("team", read_recurring_revenue),
    "change a subscription's plan": ("team", change_a_plan),
    "pause a subscription": ("team", pause),
    "make a coupon": ("team", make_a_coupon),
    "make a payment link": ("team", make_a_payment_link),
    "invite a teammate": ("team", invite),
    "see why a form was refused": ("team", see_why_a_form_was_refused),
}


@dataclass(frozen=True)
class Desks:
    """Where tasks begin, and who sits there."""

    running: Running
    starts: dict[str, tuple[BrowserContext, str]]

    async def sit_down(self, who: str) -> Hand:
        context, start = self.starts[who]
        page = await context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        await page.goto(start)
        return Hand(page, self.running)


@pytest.fixture(scope="module")
async def desks(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Desks]:
    """A shop where there is something to do, and somebody who has bought there before."""
    with run_paydesk(tmp_path_factory.mktemp("tasks")) as running:
        await asyncio.to_thread(_prepare, running)
        contexts = {who: await browser.new_context(locale="en-US") for who in ("customer", "guest", "newcomer", "team")}
        account = await log_in(await contexts["team"].new_page(), running)
        shipping = running.command("merchant", "list")[1]["id"]
        starts = {
            "customer": (contexts["customer"], running.shop),
            "guest": (contexts["guest"], running.shop),
            "newcomer": (contexts["newcomer"], running.address),
            "team": (contexts["team"], f"{account}/overview"),
            "shippers": (contexts["team"], f"{running.address}/account/{shipping}/overview"),
        }
        opened = Desks(running, starts)
        await save_a_card(await opened.sit_down("customer"))
        yield opened
        for context in contexts.values():
            await context.close()


def _prepare(running: Running) -> None:
    with live_through(running, days=6) as shop:
        running.command("merchant", "set", str(running.command("merchant", "list")[0]["id"]), "--saves-cards")
        form = {
            "api_key": running.public_key,
            "amount": "10",
            "currency": "USD",
            "merchant_order_id": "1",
            "hash": "0" * 64,
        }
        assert shop.web.post(f"{running.address}/payment/form", data=form).status_code >= 400


@pytest.mark.parametrize("task", TASKS)
async def test_a_task_takes_as_many_clicks_and_fields_as_the_docs_say(desks: Desks, task: str) -> None:
    who, do = TASKS[task]
    hand = await desks.sit_down(who)
    await do(hand)
    await hand.page.close()
    assert (hand.clicks, hand.fields) == WRITTEN[task]


def test_the_docs_list_each_of_the_tasks() -> None:
    assert list(WRITTEN) == list(TASKS)
    assert len(TASKS) >= 16
