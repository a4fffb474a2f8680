"""Customers who pay for one order each, and do what people do when a page does not come:
reload, go back, try again.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import unescape
from typing import Any
from urllib.parse import urljoin

import aiohttp

from paydesk_client import Gateway

APPROVED = "4242424242424242"
DECLINED = "4000000000000002"
NO_FUNDS = "4000000000009995"
SECURE = "4000000000003220"
ANOTHER = "5555555555554444"
LOST_ANSWER = "4000000000009987"
AT_THE_BANKS = "the bank's page"
"""In place of a card: the customer goes on to the bank's own page, and pays there with a wallet."""
LEFT_THERE = "the bank's page, left"
"""The same, but they come back without paying, and try what is next."""
GONE_FROM_THERE = "the bank's page, gone"
"""They pay there with a wallet, but don't come back for now."""
MISTYPED = "the bank's page, left to mend the address"
"""They come back without paying, give another e-mail address, and go on to another page."""
KEPT_OPEN = "the bank's page, left open for another"
"""The same, but they pay on both pages in the end."""
TRANSFER = "the bank's page, by transfer"
FAILING_TRANSFER = "the bank's page, by a transfer that fails"
"""Both take days; whose transfer has failed tries what is next."""
THERE = (AT_THE_BANKS, LEFT_THERE, GONE_FROM_THERE, MISTYPED, KEPT_OPEN, TRANSFER, FAILING_TRANSFER)
_WAYS = {TRANSFER: "transfer", FAILING_TRANSFER: "failing_transfer"}

THANKS = "https://shop.example/thanks"
CLUB = {"recurring_name": "Sock club", "recurring_sku_id": "club", "recurring_period": "1m"}
MOST_STEPS = 25
LOOKS = 4
"""How often the waiting page asks for the result before the customer goes away for a while."""
_PAY = re.compile(r'<form method="post" action="([^"]+/)(?:pay|continue)"')
_THEIRS = re.compile("/simulator/pay/|/c/pay/|/checkout/select-method/")
"""Pages to pay on: the simulated bank's, Stripe's and Mollie's."""
_PAID = (
    "This order is paid",
    "This order was paid",
    "The order was paid on another page",
    "Your subscription is set up",
)
_CHOSEN = re.compile(r'<input type="hidden" name="([^"]+)" value="([^"]+)"')
_SOLD_OUT = "Sold out"
_ON_ITS_WAY = "Your payment is on its way"
_CHECKING = re.compile(r'id="checking"[^>]* data-status="([^"]+)"')
_BUSY = (502, 503, 504)


@dataclass(frozen=True, slots=True)
class Plan:
    """What a customer wants to do: cards, one after the other, what to tell the bank,
    and whether to click twice.

    Who joins the club pays for the first month, and takes the last of the cards for the others;
    the shop may sign a `coupon` for that. Who has a payment `link` chooses on its page instead of
    in the shop.
    """

    cards: tuple[str, ...]
    decisions: tuple[str, ...] = ()
    clicks: int = 1
    joins: bool = False
    coupon: str = ""
    link: str = ""


def plan(chance: random.Random) -> Plan:
    """Mostly cards that work, some that are declined first, some with a challenge;
    some click twice.
    """
    clicks = 2 if chance.random() < 0.15 else 1
    kind = chance.choices(["works", "declined", "secure", "lost"], [70, 10, 14, 6])[0]
    if kind == "declined":
        return Plan((chance.choice([DECLINED, NO_FUNDS]), APPROVED), clicks=clicks)
    if kind == "secure":
        decisions = chance.choice([("approve",), ("approve",), ("reject", "approve"), ("close", "approve")])
        return Plan((SECURE, chance.choice([SECURE, APPROVED])), decisions, clicks)
    return Plan((LOST_ANSWER,) if kind == "lost" else (APPROVED,), clicks=clicks)


class Later(Exception):
    """The customer gives up for now and comes back: no answer, or one that asks to try again."""


@dataclass(slots=True)
class Customer:
    """One order's customer; `wrong` collects answers that nobody should ever get,
    `trail` the last steps taken.
    """

    order: str
    amount: str
    plan: Plan
    gateway: Gateway
    web: aiohttp.ClientSession
    v1: bool = True
    """Whether the shop may use version 1, which live needs https."""
    is_paid: bool = False
    sold_out: bool = False
    """Whether the last visit ended there: somebody else has the last one, or is about to pay it."""
    wrong: list[str] = field(default_factory=list)
    trail: deque[str] = field(default_factory=lambda: deque(maxlen=30))
    visits: int = 0
    _link: str = ""
    _declined: int = 0
    _decided: int = 0
    _left_open: list[str] = field(default_factory=list)

    async def visit(self) -> bool:
        """Go on with the order as far as it goes;
        True once a page or the way back to the shop says that it is paid.
        """
        self.visits += 1
        self.sold_out = False
        try:
            if not self._link:
                self._link = await (self._choose() if self.plan.link else self._order())
            await self.browse(self._link)
        except Later:
            pass
        return self.is_paid

    def come_again_from_the_shop(self) -> None:
        """Forget page and answer: the shop posts the order once more."""
        self._link, self.is_paid = "", False

    async def _order(self) -> str:
        """Post the shop's form, and return the link to the checkout."""
        form = self.gateway.payment_form()
        fields = form.build_parameters(
            {
                "merchant_order_id": self.order,
                "amount": self.amount,
                "currency": "USD",
                "description": "A pair of socks",
                "email": "ada@example.com",
                "success_url": f"{THANKS}?order={self.order}",
                "sign_version": "v1" if self.v1 and int(self.amount[-1]) % 2 == 0 else "v2",
                **(CLUB if self.plan.joins else {}),
                **({"recurring_coupon": self.plan.coupon} if self.plan.coupon else {}),
            }
        )
        status, place, _ = await self._ask("POST", form.action, fields)
        if status != 303:
            raise self._unexpected(form.action, status)
        return place

    async def _choose(self) -> str:
        """Press the button of a payment link's page, and return the link to the checkout."""
        _, _, page = await self._ask("GET", self.plan.link)
        chosen = {name: unescape(value) for name, value in _CHOSEN.findall(page)}
        status, place, _ = await self._ask("POST", self.plan.link, chosen)
        if status != 303:
            raise self._unexpected(self.plan.link, status)
        return place

    async def to_their_page(self, email: str) -> str:
        """Go on to the acquirer's page with an e-mail address, whatever else is open; where it
        leads to. Raises: Later.
        """
        if not self._link:
            self._link = await self._order()
        status, place, page = await self._ask("GET", self._link)
        form = _PAY.search(page)
        if status == 303 or form is None:
            return place if status == 303 else self._link
        fields = {"email": email, **({"agree": "en"} if self.plan.joins else {})}
        status, place, _ = await self._ask("POST", urljoin(self._link, f"{unescape(form[1])}continue"), fields)
        return place if status == 303 else self._link

    async def browse(self, url: str) -> None:
        """Follow links and fill in forms until the order is paid or there is nothing to do
        but wait. Raises: Later.
        """
        for _ in range(MOST_STEPS):
            if url.startswith(THANKS):
                self.is_paid = True
                return
            if _THEIRS.search(url):
                url = await self._pay_there(url)
                continue
            if "/simulator/challenge/" in url:
                url = await self._confirm(url)
                continue
            status, place, page = await self._ask("GET", url)
            if status == 303:
                url = place
            elif _PAY.search(page):
                if status == 402:
                    self._declined += 1
                url = await self._pay(urljoin(url, unescape(_PAY.findall(page)[0])))
            elif any(said in page for said in _PAID):
                self.is_paid = True
                return
            elif status == 200 and (_ON_ITS_WAY in page or _CHECKING.search(page)):
                url = await self._wait(url, page)
            else:
                raise self._unexpected(url, status)
        raise Later

    async def _pay(self, url: str) -> str:
        """Fill in the form of a page and press its button, some people twice;
        returns where the browser is sent.
        """
        card = self.plan.cards[min(self._declined, len(self.plan.cards) - 1)]
        url += "continue" if card in THERE else "pay"
        fields = {
            "email": "adda@example.com" if card in (MISTYPED, KEPT_OPEN) else "ada@example.com",
            "number": card,
            "expiry": "12 / 39",
            "cvc": "123",
            "holder": "Ada Lovelace",
            "country": "GB",
            **({"agree": "en"} if self.plan.joins else {}),
        }
        answers = await asyncio.gather(
            *(self._ask("POST", url, fields) for _ in range(self.plan.clicks)), return_exceptions=True
        )
        # A browser shows the answer to the last click, whatever came of those before.
        last = answers[-1]
        if isinstance(last, BaseException):
            raise last
        status, place, _ = last
        if status == 303:
            return place
        if status == 402:
            self._declined += 1
            return self._link
        raise self._unexpected(url, status)

    async def _pay_there(self, url: str) -> str:
        """Pay on the bank's own page, or leave it; returns the way back."""
        wish = self.plan.cards[min(self._declined, len(self.plan.cards) - 1)]
        if wish in (LEFT_THERE, MISTYPED, KEPT_OPEN):
            self._declined += 1
            self._left_open += [url] if wish == KEPT_OPEN else []
            return self._link
        for left_open in self._left_open:
            await self._ask("POST", left_open, _paying(left_open, wish))
        status, place, _ = await self._ask("POST", url, _paying(url, wish))
        if wish == GONE_FROM_THERE:
            raise Later
        if wish == FAILING_TRANSFER and status == 303:
            self._declined += 1
        if status == 303:
            return place
        if status in (404, 410):
            return self._link
        raise self._unexpected(url, status)

    async def _wait(self, shown: str, page: str) -> str:
        """Wait as the page does, by asking whether there is a result, or for some days;
        returns where the browser goes then.
        """
        asks = _CHECKING.search(page)
        if asks is None:
            raise Later
        url = urljoin(shown, unescape(asks[1]))
        for _ in range(LOOKS):
            status, _, said = await self._ask("GET", url)
            if status != 200:
                raise self._unexpected(url, status)
            if "url" in (answer := json.loads(said)):
                return urljoin(url, str(answer["url"]))
            await asyncio.sleep(0.3)
        raise Later

    async def _confirm(self, url: str) -> str:
        """Tell the bank, on its own page, what the customer thinks of it."""
        decision = self.plan.decisions[min(self._decided, len(self.plan.decisions) - 1)]
        status, place, _ = await self._ask("POST", url, {"decision": decision})
        if status in (303, 409, 410):
            self._decided += 1
            if decision == "close":
                self._declined += 1
        if status == 303:
            return place
        if status in (404, 409, 410):
            return self._link
        raise self._unexpected(url, status)

    async def _ask(self, method: str, url: str, fields: Mapping[str, Any] | None = None) -> tuple[int, str, str]:
        """One request: status, where it leads to, and the page.

        Raises: Later if there is no answer for now.
        """
        try:
            async with self.web.request(method, url, data=fields, allow_redirects=False) as response:
                page = await response.text()
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            self.trail.append(f"{method} {url[-12:]} {type(error).__name__}")
            raise Later from error
        self.trail.append(f"{method} {url[-12:]} {response.status}")
        self.sold_out = response.status == 409 and _SOLD_OUT in page
        if self.sold_out or response.status in _BUSY:
            raise Later
        return response.status, urljoin(url, response.headers.get("Location", "")), page

    def _unexpected(self, url: str, status: int) -> Later:
        self.wrong.append(f"{self.order}: {url.partition('/checkout/')[0]} … {url[-12:]} answered {status}")
        return Later()


def _paying(page: str, wish: str) -> dict[str, str]:
    """What a customer fills in on a page of the bank's, as its bank asks."""
    if "/c/pay/" in page:
        return {"number": APPROVED}
    return {"way": _WAYS.get(wish, "wallet" if "/simulator/" in page else "creditcard")}


class Crowd:
    """Customers of whom only so many are let in; each who can't go on comes back after a while."""

    def __init__(self, customers: list[Customer]) -> None:
        self.customers = customers
        self.let_in = 0
        self.closing = False
        self._next = 0
        self._waiting: list[tuple[float, Customer]] = []

    @property
    def unpaid(self) -> list[Customer]:
        """Who has not seen yet that the order is paid."""
        return [customer for customer in self.customers if not customer.is_paid]

    @property
    def paid(self) -> int:
        """How many have seen that the order is paid."""
        return len(self.customers) - len(self.unpaid)

    async def shop(self, at_once: int) -> None:
        """Serve customers, so many at once, until everybody came at least once
        and `closing` is set.
        """
        async with asyncio.TaskGroup() as tasks:
            for _ in range(at_once):
                tasks.create_task(self._serve())

    async def come_back(self, at_once: int) -> None:
        """Have everybody who has not paid come back once."""
        gate = asyncio.Semaphore(at_once)

        async def visit(customer: Customer) -> None:
            async with gate:
                await customer.visit()

        await asyncio.gather(*(visit(customer) for customer in self.unpaid))

    async def _serve(self) -> None:
        now = asyncio.get_running_loop().time
        while not (self.closing and self._next >= len(self.customers)):
            customer = self._pick(now())
            if customer is None:
                await asyncio.sleep(0.02)
            elif not await customer.visit():
                self._waiting.append((now() + 0.5, customer))
                # Nobody hammers at a closed door: that would only keep it closed for longer.
                await asyncio.sleep(0.4)

    def _pick(self, now: float) -> Customer | None:
        """Whoever waited long enough, else the next new one that may come in."""
        for place, (due, customer) in enumerate(self._waiting):
            if due <= now:
                del self._waiting[place]
                return customer
        if self._next < min(self.let_in, len(self.customers)):
            self._next += 1
            return self.customers[self._next - 1]
        return None
