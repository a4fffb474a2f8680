"""Paying by one press beside the erasure of who pays."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any, TypeVar

import pytest
from tests import set_back
from tests.lengths import at_length, longer
from tests.proving import check
from tests.shopfront import become_known, order, save_card, saves_cards
from tests.standings import standings
from tests.sweeping import database, database_url

from paydesk.adapters.acquirers.simulator import Bank
from paydesk.adapters.acquirers.simulator.own_pages import Way
from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict, NotFound
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.checkouts import find_checkout
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.hosting import Guest, go_to_page
from paydesk.domain.payments.janitor import settle_due
from paydesk.domain.payments.results import ConfirmWithBank, Paid, Result
from paydesk.domain.payments.saved_cards import pay_with_saved
from paydesk.domain.privacy.belongings import Subject
from paydesk.domain.privacy.erasing import Erasure, erase
from paydesk.domain.shoppers.instruments import Agreed, find_to_pay_with
from paydesk.domain.shoppers.sessions import Shopper

__all__ = ["database", "database_url"]

T = TypeVar("T")
Save = Callable[[Desk, Bank, Shopper], Awaitable[int]]


async def typed(desk: Desk, bank: Bank, shopper: Shopper) -> int:
    """Saves a card whose number is here."""
    return await save_card(desk, bank, shopper, later=None)


async def on_page(desk: Desk, bank: Bank, shopper: Shopper) -> int:
    """Saves a card that the bank keeps, from whose page it was typed."""
    await saves_cards(desk.database, shopper.shop)
    link = await order(desk.database, shopper.shop)
    checkout = await find_checkout(desk.database, link, now=utc_now())
    guest = Guest(shopper.email, "192.0.2.1", saving=Agreed(shopper.id, "keep it", "", None))
    opened = await go_to_page(desk, checkout, guest, base="https://pay.test", now=checkout.now)
    assert isinstance(opened, ConfirmWithBank)
    bank.pages.pay(opened.url.rpartition("/")[2], Way.CARD, "4242424242424242")
    await settle_due(desk, now=utc_now() + timedelta(days=365))
    asked = "select max(id) from saved_instrument where merchant_id = $1"
    return int(await desk.database.fetchval(asked, shopper.shop.merchant_id))


@dataclass
class Visit:
    """A customer who comes back with a card that they saved."""

    desk: Desk
    shopper: Shopper
    card: int
    order: str
    bank: Bank
    before: int

    async def press(self) -> Result:
        """Pay by one press. Raises: as `pay_with_saved`."""
        link = await order(self.desk.database, self.shopper.shop, self.order)
        checkout = await find_checkout(self.desk.database, link, now=utc_now())
        where = {"client_address": "192.0.2.1", "language": "en", "return_url": "https://pay.test/back"}
        return await pay_with_saved(self.desk, checkout, self.shopper, self.card, **where, now=checkout.now)

    async def be_erased(self) -> Erasure:
        """All of theirs. Raises: Conflict while something is open."""
        return await erase(
            self.desk.database, Subject(self.shopper.shop.merchant_id, self.shopper.email), now=utc_now()
        )

    async def known_as(self) -> list[str]:
        """The addresses that stand with the order's payment; none if it was not begun."""
        asked = """
            select u.email from payment p join customer u on u.merchant_id = p.merchant_id and u.id = p.customer_id
             where p.merchant_id = $1 and p.merchant_order_id = $2
        """
        rows = await self.desk.database.fetch(asked, self.shopper.shop.merchant_id, self.order)
        return [row["email"] for row in rows]

    def taken(self) -> list[Decimal]:
        """What the bank took since they came back."""
        return taken(self.bank)[self.before :]


def taken(bank: Bank) -> list[Decimal]:
    return [one.net for one in standings(bank.record.operations()).values() if one.net]


@pytest.fixture
async def visit(desk: Desk, shop: Shop, bank: Bank) -> Callable[[Save, str], Awaitable[Visit]]:
    async def come_back(save: Save, name: str) -> Visit:
        await set_back.no_codes_counted(desk.database)
        shopper = await become_known(desk, shop, f"{name}@example.com")
        card = await save(desk, bank, shopper)
        await set_back.acknowledged(desk.database, {"merchant_id": shop.merchant_id})
        return Visit(desk, shopper, card, f"again-{name}", bank, len(taken(bank)))

    return come_back


SAVES = [pytest.param(typed, id="typed here"), pytest.param(on_page, id="kept by the bank")]


@pytest.mark.parametrize("save", SAVES)
async def test_who_is_erased_between_the_look_at_their_card_and_the_charge_is_not_charged(
    visit: Callable[[Save, str], Awaitable[Visit]], bank: Bank, save: Save, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada = await visit(save, "ada")

    async def look_and_be_erased(*asked: Any, **named: Any) -> Any:
        found = await find_to_pay_with(*asked, **named)
        await ada.be_erased()
        return found

    monkeypatch.setattr("paydesk.domain.payments.saved_cards.find_to_pay_with", look_and_be_erased)
    with pytest.raises(Conflict, match="removed meanwhile"):
        await ada.press()
    assert (ada.taken(), await ada.known_as()) == ([], [])


async def later(pause: float, do: Callable[[], Awaitable[T]], *, once: asyncio.Event | None, over: asyncio.Event) -> T:
    """Do something after some seconds, or once something else is over, and say when it is."""
    await (once.wait() if once is not None else asyncio.sleep(max(pause, 0)))
    try:
        return await do()
    finally:
        over.set()


@longer
@pytest.mark.parametrize("save", SAVES)
async def test_whoever_is_faster_nobody_is_charged_after_they_were_erased_and_no_payment_is_lost(
    visit: Callable[[Save, str], Awaitable[Visit]], desk: Desk, shop: Shop, bank: Bank, save: Save
) -> None:
    ends = set[str]()
    for number in range(at_length(100, 8)):
        ada = await visit(save, f"ada{number}")
        # First and last each is done before the other begins; in between they are ever closer.
        ahead, pressing, erasing = (number % 8 - 3.5) * 0.002, asyncio.Event(), asyncio.Event()
        pressed, erased = await asyncio.gather(
            later(-ahead, ada.press, once=erasing if number % 8 == 0 else None, over=pressing),
            later(ahead, ada.be_erased, once=pressing if number % 8 == 7 else None, over=erasing),
            return_exceptions=True,
        )
        charged = [Decimal(10)] if pressed == Paid() else []
        assert isinstance(pressed, Paid | Conflict | NotFound), pressed
        assert ada.taken() == charged
        if isinstance(erased, Erasure):
            assert await ada.known_as() in ([], ["erased"]), "what was begun before it was erased with them"
        else:
            assert isinstance(erased, Conflict), erased
            assert await ada.known_as() == [ada.shopper.email]
        ends.add(f"{'paid' if charged else 'refused'}, {type(erased).__name__}")
    assert ends >= {"refused, Erasure", "paid, Conflict"}
    found = await check(desk.database, now=utc_now(), merchant_id=shop.merchant_id, record=bank.record)
    assert [one.rule.statement for one in found if one.found and one.rule.statement != "pingbacks_follow"] == []
