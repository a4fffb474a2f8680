"""A customer agrees that the card is kept which they type on the acquirer's page, pays with it by
one press at the next visit, and the shop charges it as they agreed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import httpx
import pytest
from tests import set_back
from tests.domain.billing.charges import charge, power
from tests.shopfront import LATER, open_page, press_pay, saves_cards
from tests.web.checkout.coming_back import ADA, come_known, said
from tests.web.checkout.test_hosting import page_in

from paydesk.adapters.acquirers.simulator import Bank, SimulatedAcquirer
from paydesk.adapters.acquirers.simulator.own_pages import Way
from paydesk.adapters.acquirers.simulator.purchase_state import Standing
from paydesk.adapters.vault import Vault
from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict, Forbidden
from paydesk.database.pool import Database
from paydesk.domain.billing.charging_saved import NotCharged
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments import saved_cards
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.letting_go import let_go_due
from paydesk.domain.shoppers.instruments import find_to_pay_with, remove, remove_unneeded
from paydesk.domain.shoppers.sessions import Shopper

SignedForm = Callable[..., dict[str, Any]]
Charges = Callable[[], list[Standing]]

GOOD, ASKS, FAILS_LATER = "4242424242424242", "4000000000003220", "4000000000000341"
LATER_FIELDS = {"later_charges": LATER.purpose, "later_charges_limit": "50.00"}


@pytest.fixture(autouse=True)
async def _saving(database: Database, shop: Shop) -> None:
    await saves_cards(database, shop)
    await set_back.no_codes_counted(database)


@pytest.fixture
async def known(web: httpx.AsyncClient, signed_form: SignedForm, database: Database, vault: Vault, shop: Shop) -> str:
    """The checkout of a shop that asks to charge later, too; its customer is known."""
    path = await open_page(web, signed_form(**LATER_FIELDS))
    await come_known(web, path, database, vault, shop)
    return path


async def go_on(web: httpx.AsyncClient, path: str, **ticked: str) -> str:
    """The bank's page to which the customer is led."""
    answer = await web.post(f"{path}/continue", data={"email": ADA, **ticked})
    assert answer.status_code == 303, answer.text
    return page_in(answer.headers["location"])


async def pay(
    web: httpx.AsyncClient,
    bank: Bank,
    path: str,
    *,
    way: Way = Way.CARD,
    number: str = GOOD,
    **ticked: str,
) -> None:
    """Go to the bank's page, pay there, and come back."""
    page = await go_on(web, path, **ticked)
    shown = bank.pages.pay(page, way, number)
    if shown is not None and shown.asks:
        bank.pages.decide(page, approve=True)
    await web.get(f"{path}/result")


def cards_on(page: httpx.Response) -> list[str]:
    return re.findall(r'pay-saved">\s*<button class="main" name="card" value="(\d+)"', page.text)


async def saved(database: Database, shop: Shop) -> Any:
    return await database.fetchrow(
        "select s.*, c.number_sealed, c.stored_reference, c.last4 from saved_instrument s"
        "  join card c on c.merchant_id = s.merchant_id and c.id = s.card_id where s.merchant_id = $1",
        shop.merchant_id,
    )


async def test_both_boxes_are_offered_and_neither_is_ticked(web: httpx.AsyncClient, known: str) -> None:
    page = await web.get(known)
    for box in ("page-save", "page-charge"):
        assert f'id="{box}"' in page.text
        assert not re.search(rf'id="{box}"[^>]*checked', page.text)
    assert "Save the card that I pay with for my next visit" in said(page)


async def test_a_guest_who_forges_the_ticks_keeps_nothing(
    web: httpx.AsyncClient, signed_form: SignedForm, bank: Bank, database: Database, shop: Shop
) -> None:
    path = await open_page(web, signed_form(**LATER_FIELDS))
    assert "page-save" not in (await web.get(path)).text
    await pay(web, bank, path, save="en", charge="en")
    assert await saved(database, shop) is None
    kept = "select count(*) from card where merchant_id = $1 and stored_reference <> ''"
    assert await database.fetchval(kept, shop.merchant_id) == 0


async def test_nothing_is_kept_without_a_tick(
    web: httpx.AsyncClient, known: str, bank: Bank, database: Database, shop: Shop
) -> None:
    await pay(web, bank, known)
    assert await saved(database, shop) is None


async def test_the_card_of_the_page_pays_the_next_order_with_one_press(
    web: httpx.AsyncClient,
    signed_form: SignedForm,
    known: str,
    bank: Bank,
    database: Database,
    shop: Shop,
    charges: Charges,
) -> None:
    await pay(web, bank, known, save="en")
    kept = await saved(database, shop)
    assert (kept["number_sealed"], kept["last4"], kept["charge_wording"]) == (None, "4242", "")
    assert "Save the card that I pay with" in kept["keep_wording"]
    again = await open_page(web, signed_form(merchant_order_id="second", amount="7.00"))
    page = await web.get(again)
    assert "••••\u00a04242" in said(page)
    (card,) = cards_on(page)
    for _ in range(3):
        assert (await web.post(f"{again}/pay-saved", data={"card": card})).status_code == 303
    assert [one.captured for one in charges()] == [Decimal(10), Decimal(7)]


async def test_an_expired_checkout_whose_customer_is_on_the_page_is_paid_by_no_card_that_it_kept(
    web: httpx.AsyncClient,
    signed_form: SignedForm,
    known: str,
    bank: Bank,
    database: Database,
    shop: Shop,
    charges: Charges,
) -> None:
    await pay(web, bank, known, save="en")
    again = await open_page(web, signed_form(merchant_order_id="second", amount="7.00"))
    (card,) = cards_on(await web.get(again))
    page = await go_on(web, again)
    await set_back.times(database, "checkout", {"merchant_id": shop.merchant_id}, expires_at=utc_now())
    shown = await web.get(again)
    assert f'action="{again}/continue"' in shown.text
    assert cards_on(shown) == []
    pressed = await web.post(f"{again}/pay-saved", data={"card": card})
    assert pressed.headers["location"] == f"{again}/result", "a form that stood open still"
    bank.pages.pay(page, Way.CARD, GOOD)
    await web.get(f"{again}/result")
    assert [one.captured for one in charges()] == [Decimal(10), Decimal(7)]


async def test_one_press_is_never_a_charge_without_the_customer(
    web: httpx.AsyncClient,
    signed_form: SignedForm,
    known: str,
    bank: Bank,
    charges: Charges,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await pay(web, bank, known, number=ASKS, save="en", charge="en")

    async def charged(*_: object) -> object:
        raise AssertionError("the customer is there")

    monkeypatch.setattr(SimulatedAcquirer, "charge_stored", charged)
    again = await open_page(web, signed_form(merchant_order_id="second"))
    (card,) = cards_on(await web.get(again))
    asked = (await web.post(f"{again}/pay-saved", data={"card": card})).headers["location"]
    assert "/simulator/challenge" in asked, "a code by mail is no authentication of the bank's"
    assert len(charges()) == 1
    bank.decide(page_in(asked), "approve")
    await web.get(f"{again}/result")
    assert [one.captured for one in charges()] == [Decimal(10), Decimal(10)]


async def test_the_shop_charges_what_was_agreed_to_on_the_page(
    web: httpx.AsyncClient, known: str, bank: Bank, desk: Desk, database: Database, shop: Shop, charges: Charges
) -> None:
    await pay(web, bank, known, charge="en")
    kept = await saved(database, shop)
    assert (kept["authenticated"], kept["keep_wording"]) == (True, "")
    assert not (await charge(desk, shop, power(kept["id"]))).is_open
    assert [one.captured for one in charges()][1:] == [Decimal(20)]
    with pytest.raises(Conflict, match="at most 50"):
        await charge(desk, shop, power(kept["id"], "power-2", "30.01"), "key-2")


async def test_without_the_banks_authentication_it_is_refused(
    web: httpx.AsyncClient, known: str, bank: Bank, desk: Desk, database: Database, shop: Shop
) -> None:
    await pay(web, bank, known, way=Way.WALLET, charge="en")
    kept = await saved(database, shop)
    assert kept["stored_reference"]
    with pytest.raises(Forbidden, match="not authenticated by their bank"):
        await charge(desk, shop, power(kept["id"]))


async def test_without_the_second_consent_it_is_refused(
    web: httpx.AsyncClient, known: str, bank: Bank, desk: Desk, database: Database, shop: Shop
) -> None:
    await pay(web, bank, known, number=ASKS, save="en")
    kept = await saved(database, shop)
    with pytest.raises(Forbidden, match="has not agreed"):
        await charge(desk, shop, power(kept["id"]))


async def test_a_declined_charge_is_told(
    web: httpx.AsyncClient, known: str, bank: Bank, desk: Desk, database: Database, shop: Shop
) -> None:
    await pay(web, bank, known, number=FAILS_LATER, charge="en")
    kept = await saved(database, shop)
    with pytest.raises(NotCharged, match="declined"):
        await charge(desk, shop, power(kept["id"]))


async def test_who_pays_from_their_bank_has_kept_nothing(
    web: httpx.AsyncClient, signed_form: SignedForm, known: str, bank: Bank, database: Database, shop: Shop
) -> None:
    await pay(web, bank, known, way=Way.BANK, save="en")
    again = await open_page(web, signed_form(merchant_order_id="second"))
    assert cards_on(await web.get(again)) == []
    await remove_unneeded(database, now=utc_now())
    assert (await saved(database, shop))["removed_at"] is not None


async def test_an_open_page_stays_to_be_saved(
    web: httpx.AsyncClient, known: str, bank: Bank, database: Database, shop: Shop
) -> None:
    page = await go_on(web, known, save="en")
    await remove_unneeded(database, now=utc_now())
    bank.pages.pay(page, Way.CARD, GOOD)
    await web.get(f"{known}/result")
    assert (await saved(database, shop))["removed_at"] is None


async def test_another_tick_makes_another_page(web: httpx.AsyncClient, known: str, bank: Bank) -> None:
    first = await go_on(web, known, save="en")
    assert await go_on(web, known, save="en") == first
    without = await go_on(web, known)
    assert without != first
    shown = bank.pages.show(first)
    assert shown is not None
    assert shown.state == "ended"


async def test_what_is_removed_is_let_go_of_by_its_acquirer(
    web: httpx.AsyncClient,
    signed_form: SignedForm,
    known: str,
    bank: Bank,
    desk: Desk,
    database: Database,
    shop: Shop,
) -> None:
    await pay(web, bank, known, save="en")
    reference = (await saved(database, shop))["stored_reference"]
    assert bank.record.kept(reference)
    again = await open_page(web, signed_form(merchant_order_id="second"))
    (card,) = cards_on(await web.get(again))
    await web.post(f"{again}/remove-card", data={"card": card})
    assert cards_on(await web.get(again)) == []
    while await let_go_due(desk, now=utc_now() + timedelta(minutes=1)):
        pass
    assert bank.record.kept(reference) == ""
    gone = await web.post(f"{again}/pay-saved", data={"card": card})
    assert gone.headers["location"] == again


async def test_a_mistake_in_the_form_keeps_the_tick_of_its_own_box_alone(web: httpx.AsyncClient, known: str) -> None:
    page = await web.post(f"{known}/continue", data={"email": "", "save": "en"})
    assert re.search(r'id="page-save"[^>]*checked', page.text)
    assert not re.search(r'id="save"[^>]*checked', page.text)


async def test_a_card_typed_on_our_page_is_beside_it(
    web: httpx.AsyncClient, signed_form: SignedForm, known: str, bank: Bank
) -> None:
    await pay(web, bank, known, save="en")
    again = await open_page(web, signed_form(merchant_order_id="second"))
    await press_pay(web, again, "5555555555554444", save="en")
    third = await open_page(web, signed_form(merchant_order_id="third"))
    assert len(cards_on(await web.get(third))) == 2


async def test_what_is_removed_as_it_is_pressed_pays_nothing(
    web: httpx.AsyncClient,
    signed_form: SignedForm,
    known: str,
    bank: Bank,
    database: Database,
    shop: Shop,
    charges: Charges,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await pay(web, bank, known, save="en")
    again = await open_page(web, signed_form(merchant_order_id="second"))
    (card,) = cards_on(await web.get(again))
    honest = find_to_pay_with

    async def then_removed(of: Database, shopper: Shopper, instrument_id: int, *, now: datetime) -> object:
        found = await honest(of, shopper, instrument_id, now=now)
        assert await remove(of, shop, shopper.id, instrument_id, now=now)
        return found

    monkeypatch.setattr(saved_cards, "find_to_pay_with", then_removed)
    await web.post(f"{again}/pay-saved", data={"card": card})
    assert len(charges()) == 1
    assert (await web.get(again)).status_code == 200
