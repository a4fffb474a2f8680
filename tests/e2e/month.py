"""A month at the sample shop, made quickly and always alike: what customers bought, day by day on
the test side's clock, for pictures that show more than an empty desk.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html import unescape
from typing import Any

import httpx
from tests.e2e.running import Running

DAYS = 30
CUSTOMERS = (
    ("Ada Lovelace", "GB"),
    ("Mary Somerville", "GB"),
    ("Emmy Noether", "DE"),
    ("Sophie Germain", "FR"),
    ("Maria Agnesi", "IT"),
    ("Katherine Johnson", "US"),
    ("Grace Hopper", "US"),
    ("Hedy Lamarr", "AT"),
    ("Lise Meitner", "AT"),
    ("Marie Curie", "PL"),
    ("Chien-Shiung Wu", "US"),
    ("Rosalind Franklin", "GB"),
)
CARDS = ("4242424242424242", "5555555555554444", "378282246310005")
GOOD = CARDS[0]
DECLINED, BROKE, DISPUTED = "4000000000000002", "4000000000009995", "4000000000000259"
_FIELD = re.compile(r'<input type="hidden" name="([^"]+)" value="([^"]*)"')
_FORM = re.compile(r'<form[^>]* action="([^"]+)"')


@dataclass(frozen=True)
class Customer:
    """Somebody with a card."""

    name: str
    country: str
    card: str

    @property
    def email(self) -> str:
        return f"{self.name.split()[0].lower()}@example.com"


@dataclass(frozen=True)
class Shop:
    """The sample shop, its customers' browsers, and what chance decides."""

    running: Running
    web: httpx.Client
    chance: random.Random

    def customer(self, card: str = "") -> Customer:
        name, country = self.chance.choice(CUSTOMERS)
        return Customer(name, country, card or self.chance.choice(CARDS))

    def order(self, article: str) -> tuple[str, str]:
        """The reference of an order that somebody makes, and the address of its checkout."""
        page = self.web.post(f"{self.running.shop}/buy", data={"article": article}, follow_redirects=True)
        form = _FORM.search(page.text)
        assert form is not None, page.text
        fields = {name: unescape(value) for name, value in _FIELD.findall(page.text)}
        sent = self.web.post(unescape(form[1]), data=fields)
        assert sent.status_code == 303, sent.text
        return page.url.params["order"], httpx.URL(self.running.address).join(sent.headers["location"]).path

    def buy(self, article: str, who: Customer) -> str:
        """The reference of an order that is paid, or was tried to be."""
        reference, checkout = self.order(article)
        typed = {
            "email": who.email,
            "holder": who.name,
            "country": who.country,
            "number": who.card,
            "expiry": "12/39",
            "cvc": "1234" if who.card.startswith("3") else "123",
            "agree": "en",
        }
        self.web.post(f"{self.running.address}{checkout}/pay", data=typed)
        return reference

    def get(self, address: str) -> str:
        """A page that is for everybody."""
        return self.web.get(address, follow_redirects=True).text

    def call(self, path: str, body: object = None) -> Any:
        """What the API answers: to a POST with a body, else to a GET."""
        headers = {"X-ApiKey": self.running.private_key}
        method = "GET" if body is None else "POST"
        answer = self.web.request(method, f"{self.running.address}{path}", json=body, headers=headers)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def pass_a_day(self) -> None:
        self.call("/api/v1/test_clock", {"advance": "1d"})

    def newest_payment(self) -> str:
        """The id of the newest payment that succeeded."""
        paid = self.call("/api/v1/payments?status=successful&limit=1")["data"][0]
        return str(paid["payment_order"]["id"])

    def refund(self, amount: str) -> None:
        """Give a part of the newest payment back."""
        self.call(f"/payment/{self.newest_payment()}/refund", {"amount": amount})

    def await_quiet(self) -> None:
        """Wait until every pingback is acknowledged and the dispute has come."""
        for _ in range(600):
            waiting = self.call("/api/v1/pingbacks?status=due&limit=1")["data"]
            disputes = self.call("/api/v1/chargebacks?limit=1")["data"]
            if disputes and not waiting:
                return
            time.sleep(0.1)
        raise AssertionError("pingbacks are still on their way, or no dispute came")


@contextmanager
def live_through(running: Running, *, days: int = DAYS) -> Iterator[Shop]:
    """A month, at the end of which everything has happened that a shop sees: sales in four
    currencies, subscriptions that were renewed, declines, refunds, a parcel and a dispute.
    """
    with httpx.Client(timeout=60) as web:
        shop = Shop(running, web, random.Random(30))
        for day in range(days):
            _live_a_day(shop, day)
            shop.pass_a_day()
        shipping = sorted(one["id"] for one in running.command("merchant", "list"))[1]
        running.command("clock", "advance", str(shipping), f"{days}d")
        _live_today(shop)
        shop.await_quiet()
        yield shop


def _live_a_day(shop: Shop, day: int) -> None:
    for _ in range(shop.chance.choice((1, 2, 2, 3, 4)) + day // 12):
        shop.buy("coffee", shop.customer())
    if day % 3 == 0:
        shop.buy("mug", shop.customer())
    if day % 4 == 1:
        shop.buy("club", shop.customer())
    if day % 7 == 3:
        shop.refund("4.00")
    if day % 9 == 2:
        shop.buy("tea", shop.customer())
    if day % 10 == 5:
        shop.buy("letter", shop.customer())
    if day % 5 == 4:
        shop.buy("coffee", shop.customer(BROKE if day % 2 else DECLINED))


def _live_today(shop: Shop) -> None:
    for article in ("mug", "coffee", "grinder", "grinder", "coffee"):
        shop.buy(article, Customer("Ada Lovelace", "GB", GOOD))
    shop.buy("coffee", Customer("Hedy Lamarr", "AT", DECLINED))
    shop.buy("coffee", Customer("Grace Hopper", "US", DISPUTED))
