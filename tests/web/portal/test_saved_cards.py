"""A customer sees what they have saved at a shop, and removes it; the page's link never pays."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace

import httpx
import pytest
from tests import set_back
from tests.shopfront import become_known, choose_mails, save_card

from paydesk.adapters.acquirers.simulator import Bank
from paydesk.core.clock import utc_now
from paydesk.domain.mail.telling import tell_events
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk
from paydesk.domain.shoppers.for_customer import link_of
from paydesk.domain.shoppers.instruments import list_saved
from paydesk.domain.shoppers.sessions import Shopper


@pytest.fixture
async def shopper(desk: Desk, shop: Shop) -> Shopper:
    await set_back.no_codes_counted(desk.database)
    return await become_known(desk, shop)


@pytest.fixture
async def card(desk: Desk, bank: Bank, shopper: Shopper) -> int:
    return await save_card(desk, bank, shopper)


def page_of(desk: Desk, shopper: Shopper) -> str:
    return f"/portal/cards/{link_of(shopper).token(desk.vault)}"


def said(answer: httpx.Response) -> str:
    return html.unescape(answer.text)


async def kept(desk: Desk, shopper: Shopper) -> tuple[int, int]:
    """How many cards are saved, and how many numbers are there."""
    numbers = await desk.database.fetchval(
        "select count(*) from card where merchant_id = $1 and number_sealed is not null", shopper.shop.merchant_id
    )
    return len(await list_saved(desk.database, shopper.shop, shopper.id)), int(numbers)


@pytest.mark.usefixtures("card")
async def test_it_shows_each_card_with_what_was_agreed_to(web: httpx.AsyncClient, desk: Desk, shopper: Shopper) -> None:
    page = said(await web.get(page_of(desk, shopper)))
    assert "Visa ••••\u00a04242" in page
    assert "<q>keep it</q>" in page
    assert "<q>charge it</q>" in page
    assert "You are known in 1 browser" in page
    assert "4242424242" not in page
    assert shopper.email not in page, "whoever has the link need not learn whose it is"
    assert not re.search(r'action="[^"]*pay', page)


async def test_a_removed_card_is_gone_and_its_number_erased(
    web: httpx.AsyncClient, desk: Desk, shopper: Shopper, card: int
) -> None:
    path = page_of(desk, shopper)
    for _ in range(2):
        assert (await web.post(f"{path}/remove", data={"card": card})).headers["location"] == path
    assert "No card is saved here any more" in said(await web.get(path))
    assert await kept(desk, shopper) == (0, 0)


async def test_consent_to_charges_is_taken_back_and_the_card_stays_for_visits(
    web: httpx.AsyncClient, desk: Desk, shopper: Shopper, card: int
) -> None:
    path = page_of(desk, shopper)
    await web.post(f"{path}/take-back", data={"card": card})
    page = said(await web.get(path))
    assert "<q>keep it</q>" in page
    assert "charge it" not in page
    assert await kept(desk, shopper) == (1, 1)


@pytest.mark.usefixtures("card")
async def test_consent_is_shown_and_taken_back_though_the_card_was_saved_again_without(
    web: httpx.AsyncClient, desk: Desk, bank: Bank, shopper: Shopper
) -> None:
    await save_card(desk, bank, shopper, later=None)
    path = page_of(desk, shopper)
    page = said(await web.get(path))
    assert page.count("<q>charge it</q>") == 1
    form = re.search(r'/take-back".*?name="card" value="(\d+)"', page, re.DOTALL)
    assert form is not None
    await web.post(f"{path}/take-back", data={"card": form[1]})
    assert "charge it" not in said(await web.get(path))


async def test_forgotten_browsers_are_not_known_any_more(
    web: httpx.AsyncClient, desk: Desk, shopper: Shopper, card: int
) -> None:
    path = page_of(desk, shopper)
    await web.post(f"{path}/forget", data={"_": ""})
    assert "You are known in" not in said(await web.get(path))
    assert await kept(desk, shopper) == (1, 1)


async def test_one_customers_link_removes_no_other_ones_card(
    web: httpx.AsyncClient, desk: Desk, shop: Shop, card: int, shopper: Shopper
) -> None:
    eve = await become_known(desk, shop, "eve@example.com")
    for act in ("remove", "take-back"):
        await web.post(f"{page_of(desk, eve)}/{act}", data={"card": card})
    assert await kept(desk, shopper) == (1, 1)


async def test_a_wrong_link_and_that_of_another_row_lead_nowhere(
    web: httpx.AsyncClient, desk: Desk, shopper: Shopper, card: int
) -> None:
    for wrong in (replace(shopper, seed="guessed"), replace(shopper, id=shopper.id + 1)):
        assert (await web.get(page_of(desk, wrong))).status_code == 404
    for name in ("/remove", ""):
        assert (await web.get(f"/portal/cards/t1-abc{name}")).status_code == 404
    live = replace(shopper, shop=Shop(shopper.shop.merchant_id, live=True))
    assert (await web.get(page_of(desk, live))).status_code == 404


@pytest.mark.usefixtures("card")
async def test_the_receipt_leads_there_if_it_goes_to_the_proved_address(
    web: httpx.AsyncClient, desk: Desk, bank: Bank, shop: Shop, shopper: Shopper
) -> None:
    await choose_mails(desk.database, shop, customer_mails=True, test_mails=True)
    other = await become_known(desk, shop, "grace@example.com")
    await save_card(desk, bank, other)
    await tell_events(desk.database, real_now=utc_now(), keep_test=True)
    rows = await desk.database.fetch(
        "select facts::text from mail where merchant_id = $1 and kind = 'receipt' order by id", shop.merchant_id
    )
    told = sorted((json.loads(row["facts"]) for row in rows), key=lambda facts: facts["payment_id"])
    led = [(facts["shopper"] or {}).get("id") for facts in told]
    assert led == [shopper.id, None], "the second payer typed an address that is not the one that they proved"
