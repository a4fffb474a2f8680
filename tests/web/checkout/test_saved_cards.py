"""A customer proves an address, saves a card, and pays with it at the next visit: at this shop, in
this browser, and nobody else does.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import httpx
import pytest
from tests import set_back
from tests.shopfront import open_page, press_pay, saves_cards
from tests.web.checkout.coming_back import ADA, come_known, said

from paydesk.adapters.acquirers.simulator import Bank
from paydesk.adapters.acquirers.simulator.purchase_state import Standing
from paydesk.adapters.vault import Vault
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.shoppers.instruments import UNUSED, remove_unneeded

SignedForm = Callable[..., dict[str, Any]]
Charges = Callable[[], list[Standing]]

ELSEWHERE = {"origin": "https://evil.example", "sec-fetch-site": "cross-site"}


@pytest.fixture
async def saving(database: Database, shop: Shop) -> None:
    await saves_cards(database, shop)


@pytest.fixture(autouse=True)
async def _nobody_asked_lately(database: Database) -> None:
    await set_back.no_codes_counted(database)


def cards_on(page: httpx.Response) -> list[str]:
    return re.findall(r'pay-saved">\s*<button class="main" name="card" value="(\d+)"', page.text)


async def numbers(database: Database, shop: Shop) -> int:
    found = await database.fetchval(
        "select count(*) from card where merchant_id = $1 and number_sealed is not null", shop.merchant_id
    )
    return int(found)


async def test_a_shop_that_did_not_ask_for_it_offers_nothing(web: httpx.AsyncClient, signed_form: SignedForm) -> None:
    path = await open_page(web, signed_form())
    assert "/known" not in (await web.get(path)).text
    for name in ("known", "code"):
        assert (await web.get(f"{path}/{name}")).headers["location"] == path
    for name in ("known", "code", "pay-saved", "remove-card", "leave"):
        assert (await web.post(f"{path}/{name}", data={})).headers["location"] == path


@pytest.mark.usefixtures("saving")
async def test_a_saved_card_pays_the_next_order_with_one_press(
    web: httpx.AsyncClient, signed_form: SignedForm, database: Database, vault: Vault, shop: Shop, charges: Charges
) -> None:
    path = await open_page(web, signed_form())
    assert f"{path}/known" in (await web.get(path)).text
    await come_known(web, path, database, vault, shop)
    page = await web.get(path)
    assert "You are known as ada@example.com" in said(page)
    assert cards_on(page) == []
    assert not re.search(r'id="save"[^>]*checked', page.text), "nobody agrees without saying so"
    await press_pay(web, path, save="en")
    again = await open_page(web, signed_form(merchant_order_id="second", amount="7.00"))
    (card,) = cards_on(await web.get(again))
    paid = await web.post(f"{again}/pay-saved", data={"card": card})
    assert paid.status_code == 303
    assert [charge.captured for charge in charges()] == [Decimal(10), Decimal(7)]
    kept = await database.fetchrow("select * from saved_instrument where merchant_id = $1", shop.merchant_id)
    assert "Save this card for my next visit" in kept["keep_wording"]
    assert kept["keep_agreed_at"] is not None
    assert kept["charge_wording"] == ""
    assert await numbers(database, shop) == 1


@pytest.mark.usefixtures("saving")
async def test_nothing_is_kept_without_a_tick(
    web: httpx.AsyncClient, signed_form: SignedForm, database: Database, vault: Vault, shop: Shop
) -> None:
    path = await open_page(web, signed_form())
    await come_known(web, path, database, vault, shop)
    await press_pay(web, path, save="0", charge="no")
    assert await numbers(database, shop) == 0
    again = await open_page(web, signed_form(merchant_order_id="second"))
    assert cards_on(await web.get(again)) == []


@pytest.mark.usefixtures("saving")
async def test_a_guest_who_forges_the_tick_keeps_nothing(
    web: httpx.AsyncClient, signed_form: SignedForm, database: Database, shop: Shop
) -> None:
    path = await open_page(web, signed_form())
    await press_pay(web, path, save="en", charge="en")
    assert await numbers(database, shop) == 0
    assert (
        await database.fetchval("select count(*) from saved_instrument where merchant_id = $1", shop.merchant_id) == 0
    )


@pytest.mark.usefixtures("saving")
async def test_a_guest_with_a_known_address_changes_nothing_of_its_customer_and_their_words_are_the_payments(
    web: httpx.AsyncClient, signed_form: SignedForm, database: Database, vault: Vault, shop: Shop
) -> None:
    path = await open_page(web, signed_form())
    await come_known(web, path, database, vault, shop)
    await press_pay(web, path, save="en")
    kept = "select * from shopper u left join saved_instrument s on s.shopper_id = u.id where u.merchant_id = $1"
    before = await database.fetch(kept, shop.merchant_id)
    web.cookies.clear()
    again = await open_page(web, signed_form(merchant_order_id="a guest's"))
    await press_pay(web, again, email="ADA@example.com", holder="Somebody Else", save="en", charge="en")
    assert await database.fetch(kept, shop.merchant_id) == before
    assert len(before) == 1
    payers = await database.fetch(
        "select c.email, k.holder from payment p join customer c on c.id = p.customer_id"
        " join card k on k.id = p.card_id where p.merchant_id = $1 order by p.id",
        shop.merchant_id,
    )
    assert [tuple(one) for one in payers] == [
        ("ada@example.com", "Ada King Lovelace"),
        ("ADA@example.com", "Somebody Else"),
    ]


@pytest.mark.usefixtures("saving")
async def test_a_declined_card_is_not_kept(
    web: httpx.AsyncClient, signed_form: SignedForm, database: Database, vault: Vault, shop: Shop
) -> None:
    path = await open_page(web, signed_form())
    await come_known(web, path, database, vault, shop)
    assert (await press_pay(web, path, "4000000000000002", save="en")).status_code == 402
    assert await numbers(database, shop) == 0
    assert cards_on(await web.get(path)) == []


@pytest.mark.usefixtures("saving")
async def test_a_card_that_asks_for_3d_secure_is_asked_again_when_it_is_saved(
    web: httpx.AsyncClient, signed_form: SignedForm, database: Database, vault: Vault, shop: Shop, bank: Bank
) -> None:
    path = await open_page(web, signed_form())
    await come_known(web, path, database, vault, shop)
    to_bank = (await press_pay(web, path, "4000000000003220", save="en")).headers["location"]
    assert cards_on(await web.get(path)) == [], "it is saved once it has paid"
    bank.decide(to_bank.rpartition("/")[2], "approve")
    await web.get(f"{path}/result")
    again = await open_page(web, signed_form(merchant_order_id="second"))
    (card,) = cards_on(await web.get(again))
    challenged = (await web.post(f"{again}/pay-saved", data={"card": card})).headers["location"]
    assert "/simulator/" in challenged, "a code by mail is no authentication of the bank's"


@pytest.mark.usefixtures("saving")
async def test_pressed_twice_a_saved_card_pays_once(
    web: httpx.AsyncClient, signed_form: SignedForm, database: Database, vault: Vault, shop: Shop, charges: Charges
) -> None:
    path = await open_page(web, signed_form())
    await come_known(web, path, database, vault, shop)
    await press_pay(web, path, save="en")
    again = await open_page(web, signed_form(merchant_order_id="second"))
    (card,) = cards_on(await web.get(again))
    for _ in range(3):
        assert (await web.post(f"{again}/pay-saved", data={"card": card})).status_code == 303
    assert len(charges()) == 2


@pytest.mark.usefixtures("saving")
async def test_another_sites_forms_do_nothing(
    web: httpx.AsyncClient, signed_form: SignedForm, database: Database, vault: Vault, shop: Shop, charges: Charges
) -> None:
    path = await open_page(web, signed_form())
    await come_known(web, path, database, vault, shop)
    await press_pay(web, path, save="en")
    again = await open_page(web, signed_form(merchant_order_id="second"))
    (card,) = cards_on(await web.get(again))
    for name in ("pay-saved", "remove-card", "leave", "known", "code"):
        answer = await web.post(f"{again}/{name}", data={"card": card, "email": ADA}, headers=ELSEWHERE)
        assert answer.status_code == 403
    assert len(charges()) == 1
    assert cards_on(await web.get(again)) == [card]


@pytest.mark.usefixtures("saving")
async def test_nobody_pays_with_or_removes_another_ones_card(
    web: httpx.AsyncClient, signed_form: SignedForm, database: Database, vault: Vault, shop: Shop, charges: Charges
) -> None:
    path = await open_page(web, signed_form())
    await come_known(web, path, database, vault, shop)
    await press_pay(web, path, save="en")
    again = await open_page(web, signed_form(merchant_order_id="second"))
    (card,) = cards_on(await web.get(again))
    web.cookies.clear()
    await come_known(web, again, database, vault, shop, "eve@example.com")
    assert cards_on(await web.get(again)) == []
    assert (await web.post(f"{again}/pay-saved", data={"card": card})).headers["location"] == again
    await web.post(f"{again}/remove-card", data={"card": card})
    assert len(charges()) == 1
    assert await numbers(database, shop) == 1


@pytest.mark.usefixtures("saving")
async def test_a_removed_card_is_gone_and_its_number_erased(
    web: httpx.AsyncClient, signed_form: SignedForm, database: Database, vault: Vault, shop: Shop
) -> None:
    path = await open_page(web, signed_form())
    await come_known(web, path, database, vault, shop)
    await press_pay(web, path, save="en")
    again = await open_page(web, signed_form(merchant_order_id="second"))
    await press_pay(web, again, save="en")
    third = await open_page(web, signed_form(merchant_order_id="third"))
    (card,) = cards_on(await web.get(third))
    await web.post(f"{third}/remove-card", data={"card": card})
    assert cards_on(await web.get(third)) == [], "the same card, saved twice, is removed as one"
    assert await numbers(database, shop) == 0


@pytest.mark.usefixtures("saving")
async def test_the_shop_asks_to_charge_later_and_the_sentence_is_kept(
    web: httpx.AsyncClient, signed_form: SignedForm, database: Database, vault: Vault, shop: Shop, bank: Bank
) -> None:
    form = signed_form(later_charges="what your car has charged", later_charges_limit="50.00")
    path = await open_page(web, form)
    await come_known(web, path, database, vault, shop)
    page = await web.get(path)
    assert "for: what your car has charged – at most 50.00\u00a0USD within 30 days" in said(page)
    to_bank = (await press_pay(web, path, charge="en")).headers["location"]
    assert "/simulator/" in to_bank, "the bank sees who agrees to that"
    bank.decide(to_bank.rpartition("/")[2], "approve")
    await web.get(f"{path}/result")
    kept = await database.fetchrow("select * from saved_instrument where merchant_id = $1", shop.merchant_id)
    assert kept["charge_limit"] == Decimal(50)
    assert "what your car has charged" in kept["charge_wording"]
    again = await open_page(web, signed_form(merchant_order_id="second"))
    assert cards_on(await web.get(again)) == [], "that it may be charged is not that it is offered"


async def test_a_shop_that_asks_to_charge_later_says_what_for_and_how_much(
    web: httpx.AsyncClient, signed_form: SignedForm
) -> None:
    for fields in (
        {"later_charges": "power"},
        {"later_charges_limit": "5"},
        {"later_charges": "p", "later_charges_limit": "x"},
    ):
        answer = await web.post("/payment/form", data=signed_form(**fields), headers={"accept": "application/json"})
        assert answer.status_code == 400
        assert "later_charges" in answer.text


@pytest.mark.usefixtures("saving")
async def test_cards_that_nobody_uses_are_forgotten(
    web: httpx.AsyncClient, signed_form: SignedForm, database: Database, vault: Vault, shop: Shop
) -> None:
    path = await open_page(web, signed_form())
    await come_known(web, path, database, vault, shop)
    await press_pay(web, path, save="en")
    await remove_unneeded(database, now=utc_now() + UNUSED - timedelta(days=2))
    assert await numbers(database, shop) == 1
    await remove_unneeded(database, now=utc_now() + UNUSED + timedelta(days=2))
    assert await numbers(database, shop) == 0
