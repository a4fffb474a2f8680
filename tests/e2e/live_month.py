"""Live money at a few merchants, made quickly and always alike, for what an operator looks at: two
months of orders, each paid or declined on the page of an acquirer's stand-in, at its own time.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from tests import set_back, shopfront
from tests.breaking import say
from tests.conftest import accept_waiting, submit_profile
from tests.e2e.month import CUSTOMERS
from tests.e2e.running import Running, run_paydesk
from tests.standins.account import Account
from tests.standins.account import running as standin

from paydesk.adapters.acquirers.simulator import SimulatedAcquirer
from paydesk.core.clock import utc_now
from paydesk.database.embedded import server_for
from paydesk.database.pool import connected
from paydesk.domain.business.profiles import seal_iban
from paydesk.domain.chargebacks.reading_acquirers import read_disputes
from paydesk.domain.ledger.settling import settle_due
from paydesk.domain.merchants.merchant import create_merchant, go_live, shop_of
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.challenges import settle_challenge
from paydesk.domain.payments.checkouts import find_checkout
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.results import ConfirmWithBank, Paid
from paydesk.equipment import live_acquirer, payment_desk, test_acquirer, vault_of
from paydesk.settings import load_settings


@dataclass(frozen=True)
class Trader:
    """A merchant who has been live for some `days`, and sells so much on each."""

    name: str
    country: str
    iban: str
    days: int
    each_day: tuple[int, ...]
    prices: tuple[int, ...]
    declined: tuple[int, ...] = (9,)
    """Which of each ten customers' cards are declined."""
    refunded: int = 12
    """Of how many payments one is given back in part."""


TRADERS = (
    Trader("Harbour Bicycles", "NL", "NL91ABNA0417164300", 58, (1, 1, 2), (89, 140, 240)),
    Trader("Moss & Maple", "DE", "DE89370400440532013000", 58, (0, 1, 1), (29, 48, 120)),
    Trader("Lantern Books", "FR", "FR1420041010050500013M02606", 24, (1, 1, 2), (12, 25, 38)),
    Trader("Nightjar Tickets", "BE", "BE68539007547034", 9, (2, 3), (30, 60), declined=(1, 3, 6, 8), refunded=5),
)
DISPUTED = "Moss & Maple"
"""Whose newest payment but one is charged back in part."""
PERIOD = timedelta(days=30)
"""What a report of the console is about, whole days of UTC with today's."""


@dataclass(frozen=True)
class Sale:
    """What somebody bought, or tried to."""

    seller: str
    amount: Decimal
    at: datetime
    page: str
    """Its name at the acquirer; empty if the card was declined."""


@dataclass(frozen=True)
class Sales:
    """All that was sold, or one merchant's."""

    sales: tuple[Sale, ...]

    def of(self, seller: str) -> Sales:
        """What one merchant sold."""
        return Sales(tuple(one for one in self.sales if one.seller == seller))

    @property
    def lately(self) -> list[Sale]:
        """What the console counts."""
        first = utc_now().date() - PERIOD + timedelta(days=1)
        return [one for one in self.sales if one.at.date() >= first]

    @property
    def paid(self) -> int:
        """How many payments the console says have succeeded."""
        return sum(bool(one.page) for one in self.lately)

    @property
    def declined(self) -> int:
        """How many failed, likewise."""
        return len(self.lately) - self.paid

    @property
    def volume(self) -> str:
        """What they came to, as the console writes it."""
        return f"€{sum(one.amount for one in self.lately if one.page):,.2f}"


def settings_at(mollie: Account) -> dict[str, Any]:
    """The settings of a deployment whose live payments are taken at a stand-in."""
    return {
        "live_acquirer": "mollie",
        "mollie_key": "test_standin",
        "mollie_api_base": mollie.base_url,
        "idempotency_secret": "i" * 40,
        "allow_async": "1",
    }


@contextmanager
def run_live(folder: Path) -> Iterator[tuple[Running, Account]]:
    """`paydesk run` with an acquirer for live payments, which is a stand-in, until the end of
    the block.
    """
    with standin("tests.standins.mollie") as mollie, run_paydesk(folder, **settings_at(mollie)) as running:
        yield running, mollie


@asynccontextmanager
async def _desk(running: Running, mollie: Account) -> AsyncIterator[Desk]:
    """What the running service takes payments with."""
    settings = load_settings(data_dir=running.data, **settings_at(mollie))
    async with server_for(running.data) as server, connected(server.url, most=6) as database:
        theirs, ours = live_acquirer(settings), test_acquirer(settings)
        assert theirs is not None
        yield payment_desk(settings, database, vault_of(settings), ours, theirs)
        await theirs.close()
        assert isinstance(ours, SimulatedAcquirer)
        ours.bank.record.close()


async def earn(running: Running, mollie: Account, *, disputed: bool = True) -> Sales:
    """Have all merchants sell for as long as they are live; at the end money is available to each,
    some was given back, and a payment is disputed, unless all is to be clear.
    """
    async with _desk(running, mollie) as desk:
        shelves = [await _Shelf.open(desk, mollie, one) for one in TRADERS]
        sold = Sales(sum(await asyncio.gather(*(one.sell_all() for one in shelves)), ()))
        mollie.do("let_pass", 0)
        while await settle_due(desk.database, real_now=utc_now()):
            pass
        if disputed:
            paid = [one for one in sold.of(DISPUTED).sales if one.page]
            mollie.do("charge_back", paid[-2].page, "19.00")
            await _hear_of_the_dispute(desk)
        await desk.finish()
    return sold


async def _hear_of_the_dispute(desk: Desk) -> None:
    """The service may just have read what there was to hear, and rests, or reads it now."""
    await set_back.banks_tell_again(desk.database)
    for _ in range(300):
        await read_disputes(desk, now=utc_now())
        if await desk.database.fetchval("select count(*) from chargeback where live"):
            return
        await asyncio.sleep(0.1)
    raise AssertionError("the acquirer tells of no dispute")


@dataclass(frozen=True)
class _Shelf:
    """A merchant's live side, where customers buy."""

    desk: Desk
    mollie: Account
    trader: Trader
    shop: Shop
    chance: random.Random

    @classmethod
    async def open(cls, desk: Desk, mollie: Account, trader: Trader) -> _Shelf:
        """The merchant opened an account, filled in its profile, and went live."""
        began, slug = utc_now() - timedelta(days=trader.days), trader.name.split()[0].lower()
        made = await create_merchant(
            desk.database, desk.vault, name=trader.name, email=f"owner@{slug}.example", now=began - timedelta(days=4)
        )
        iban = seal_iban(desk.vault, made.id, trader.iban)
        await submit_profile(desk.database, made.id)
        await say(
            desk.database,
            "business_profile",
            {"merchant_id": made.id},
            legal_name=f"{trader.name} Ltd",
            account_holder=f"{trader.name} Ltd",
            country=trader.country,
            iban_sealed=iban.blob,
            vault_key_id=iban.key_id,
            iban_last4=trader.iban[-4:],
        )
        await accept_waiting(desk.database, made.id, now=began - timedelta(days=3))
        await go_live(desk.database, made.id, now=began)
        shop = shop_of(made, live=True)
        await shopfront.choose_mails(desk.database, shop, customer_mails=False, test_mails=False)
        return cls(desk, mollie, trader, shop, random.Random(trader.name))

    async def sell_all(self) -> tuple[Sale, ...]:
        """Day by day, more from week to week."""
        sold, paid = list[Sale](), 0
        for day in range(self.trader.days, -1, -1):
            for number in range(self.chance.choice(self.trader.each_day) or (day == 0)):
                at = utc_now() - timedelta(days=day, minutes=90 - 20 * number)
                sold.append(await self._sell(at, declined=len(sold) % 10 in self.trader.declined))
                paid += bool(sold[-1].page)
                if sold[-1].page and paid % self.trader.refunded == 0:
                    await self._give_back(at + timedelta(minutes=10))
        return tuple(sold)

    async def _sell(self, at: datetime, *, declined: bool) -> Sale:
        """Somebody orders, and pays by a good card or another one on the acquirer's page."""
        grown = 2 - Decimal((utc_now() - at).days) / 60
        amount = (self.chance.choice(self.trader.prices) * grown).quantize(Decimal("0.01"))
        name, country = self.chance.choice(CUSTOMERS)
        email, address = f"{name.split()[0].lower()}@example.com", f"203.0.113.{self.chance.randrange(256)}"
        more: dict[str, Any] = {"currency": "EUR", "pingback_url": "", "country": country}
        link = await shopfront.order(self.desk.database, self.shop, amount=amount, now=at, **more)
        led = await shopfront.go_on(self.desk, link, email=email, address=address, now=at)
        assert isinstance(led, ConfirmWithBank), led
        page = led.url.rpartition("/")[2]
        told = {"status": "failed", "failureReason": "insufficient_funds"} if declined else {}
        assert await asyncio.to_thread(self.mollie.do, "pay", page, **told)
        checkout = await find_checkout(self.desk.database, link, now=at)
        assert checkout.attempt is not None
        result = await settle_challenge(self.desk, checkout, checkout.attempt, now=at)
        assert (result == Paid()) is not declined, result
        return Sale(self.trader.name, amount, at, "" if declined else page)

    async def _give_back(self, at: datetime) -> None:
        newest = await self.desk.database.fetchval(
            "select max(id) from payment where merchant_id = $1 and state = 'captured'", self.shop.merchant_id
        )
        await shopfront.give_back(self.desk, self.shop, newest, "10.00", now=at)
