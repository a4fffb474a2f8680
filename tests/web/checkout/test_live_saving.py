"""Cards that customers type on Stripe's own page are kept there, pay the next order with one press,
and are charged as agreed, with a stand-in of ours behind the adapter.
"""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest
from tests import set_back
from tests.domain.billing.charges import charge, power
from tests.proving import check
from tests.shopfront import open_page, saves_cards
from tests.standins.stripe_checkout import StripeCheckout
from tests.web.checkout.coming_back import ADA, come_known, said
from tests.web.checkout.test_hosting import page_in
from tests.web.checkout.test_live_hosting import VISA, SignedForm, live, live_desk, live_web, stripe
from tests.web.checkout.test_paying import SHOP, leads_to
from tests.web.checkout.test_saving_on_pages import LATER_FIELDS, cards_on, saved

from paydesk.adapters.vault import Vault
from paydesk.core.clock import utc_now
from paydesk.core.errors import Forbidden
from paydesk.database.pool import Database
from paydesk.domain.billing.charging_saved import NotCharged
from paydesk.domain.merchants.merchant import Merchant, shop_of
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.letting_go import let_go_due

__all__ = ["live", "live_desk", "live_web", "stripe"]

IDEAL = {"type": "ideal", "ideal": {"bank": "ing"}}


@pytest.fixture
def live_shop(merchant: Merchant) -> Shop:
    return shop_of(merchant, live=True)


@pytest.fixture
async def known(
    live_web: httpx.AsyncClient, signed_form: SignedForm, database: Database, vault: Vault, live_shop: Shop
) -> str:
    """The checkout of a shop that asks to charge later, too; its customer is known."""
    await saves_cards(database, live_shop)
    await set_back.no_codes_counted(database)
    path = await open_page(live_web, signed_form(**LATER_FIELDS))
    await come_known(live_web, path, database, vault, live_shop)
    return path


async def keep(
    web: httpx.AsyncClient, stripe: StripeCheckout, path: str, method: dict[str, Any] | None = None, **ticked: str
) -> None:
    """Tick, go to Stripe's page, pay there, and come back."""
    answer = await web.post(f"{path}/continue", data={"email": ADA, **ticked})
    assert stripe.pay(page_in(leads_to(answer)), method or VISA)
    assert leads_to(await web.get(f"{path}/result")) == SHOP


async def assert_clean(database: Database, merchant: Merchant) -> None:
    found = await check(database, now=utc_now(), merchant_id=merchant.id)
    assert [finding.rule.statement for finding in found if finding.found] == []


async def test_a_kept_card_pays_with_one_press_and_its_bank_may_ask(
    live_web: httpx.AsyncClient,
    signed_form: SignedForm,
    known: str,
    stripe: StripeCheckout,
    database: Database,
    merchant: Merchant,
    live_shop: Shop,
) -> None:
    await keep(live_web, stripe, known, save="en")
    stripe.asking.update(stripe.methods)
    again = await open_page(live_web, signed_form(merchant_order_id="second", amount="7.00"))
    page = await live_web.get(again)
    assert "••••\u00a04242" in said(page)
    (card,) = cards_on(page)
    to_bank = leads_to(await live_web.post(f"{again}/pay-saved", data={"card": card}))
    assert to_bank.startswith(f"{stripe.base_url}/3ds/")
    assert stripe.off_session == set(), "a customer who is there is never charged as if they were not"
    stripe.decide(page_in(to_bank), approve=True)
    assert leads_to(await live_web.get(f"{again}/result")) == SHOP
    assert [one["amount_received"] for one in stripe.intents.values()] == [1000, 700]
    await assert_clean(database, merchant)


async def test_who_fails_at_their_bank_has_paid_nothing(
    live_web: httpx.AsyncClient, signed_form: SignedForm, known: str, stripe: StripeCheckout
) -> None:
    await keep(live_web, stripe, known, save="en")
    stripe.asking.update(stripe.methods)
    again = await open_page(live_web, signed_form(merchant_order_id="second"))
    (card,) = cards_on(await live_web.get(again))
    to_bank = leads_to(await live_web.post(f"{again}/pay-saved", data={"card": card}))
    stripe.decide(page_in(to_bank), approve=False)
    back = await live_web.get(f"{again}/result")
    assert "your bank could not confirm that it is you" in said(back)
    assert [one["amount_received"] for one in stripe.intents.values()] == [1000, 0]


async def test_a_lost_answer_to_one_press_takes_money_once(
    live_web: httpx.AsyncClient, signed_form: SignedForm, known: str, stripe: StripeCheckout
) -> None:
    await keep(live_web, stripe, known, save="en")
    again = await open_page(live_web, signed_form(merchant_order_id="second"))
    (card,) = cards_on(await live_web.get(again))
    stripe.loses = 1
    for _ in range(2):
        await live_web.post(f"{again}/pay-saved", data={"card": card})
    assert [one["amount_received"] for one in stripe.intents.values()] == [1000, 1000]


async def test_the_shop_charges_it_off_session_as_agreed(
    live_web: httpx.AsyncClient,
    live_desk: Desk,
    known: str,
    stripe: StripeCheckout,
    database: Database,
    merchant: Merchant,
    live_shop: Shop,
) -> None:
    await keep(live_web, stripe, known, charge="en")
    card = (await saved(database, live_shop))["id"]
    answers = await asyncio.gather(*(charge(live_desk, live_shop, power(card)) for _ in range(20)))
    assert len({one.payment_id for one in answers}) == 1
    assert [one["amount_received"] for one in stripe.intents.values()] == [1000, 2000]
    assert len(stripe.off_session) == 1
    await assert_clean(database, merchant)


async def test_a_bank_that_wants_to_see_the_customer_declines_a_charge_without_them(
    live_web: httpx.AsyncClient,
    live_desk: Desk,
    known: str,
    stripe: StripeCheckout,
    database: Database,
    live_shop: Shop,
) -> None:
    await keep(live_web, stripe, known, charge="en")
    stripe.asking.update(stripe.methods)
    with pytest.raises(NotCharged, match="authentication_failed"):
        await charge(live_desk, live_shop, power((await saved(database, live_shop))["id"]))
    assert [one["amount_received"] for one in stripe.intents.values()] == [1000, 0]


async def test_a_card_that_no_bank_has_authenticated_is_not_charged(
    live_web: httpx.AsyncClient,
    live_desk: Desk,
    known: str,
    stripe: StripeCheckout,
    database: Database,
    live_shop: Shop,
) -> None:
    seen = {"brand": "visa", "last4": "4242", "three_d_secure": {"result": "exempted"}}
    exempt = {"type": "card", "card": seen}
    await keep(live_web, stripe, known, exempt, charge="en")
    with pytest.raises(Forbidden, match="not authenticated by their bank"):
        await charge(live_desk, live_shop, power((await saved(database, live_shop))["id"]))


async def test_who_pays_another_way_has_kept_nothing(
    live_web: httpx.AsyncClient,
    signed_form: SignedForm,
    known: str,
    stripe: StripeCheckout,
    database: Database,
    live_shop: Shop,
) -> None:
    await keep(live_web, stripe, known, IDEAL, save="en", charge="en")
    assert (await saved(database, live_shop))["stored_reference"] == ""
    again = await open_page(live_web, signed_form(merchant_order_id="second"))
    assert cards_on(await live_web.get(again)) == []


async def test_a_removed_card_is_detached_from_its_customer(
    live_web: httpx.AsyncClient,
    live_desk: Desk,
    signed_form: SignedForm,
    known: str,
    stripe: StripeCheckout,
) -> None:
    await keep(live_web, stripe, known, save="en")
    again = await open_page(live_web, signed_form(merchant_order_id="second"))
    (card,) = cards_on(await live_web.get(again))
    await live_web.post(f"{again}/remove-card", data={"card": card})
    await let_go_due(live_desk, now=utc_now(), most=1000)
    assert [one["customer"] for one in stripe.methods.values()] == [None]
