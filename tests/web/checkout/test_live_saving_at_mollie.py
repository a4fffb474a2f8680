"""Cards that customers type on Mollie's own page are kept there to be charged as agreed; they are
not offered for one press, since Mollie charges what it keeps without the customer alone.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import httpx
import pytest
from tests import set_back
from tests.domain.billing.charges import charge, power
from tests.shopfront import open_page, saves_cards
from tests.standins.account import Account
from tests.web.checkout.coming_back import ADA, come_known
from tests.web.checkout.test_hosting import page_in
from tests.web.checkout.test_live_hosting_at_mollie import (
    SignedForm,
    assert_clean,
    live,
    live_desk,
    live_web,
    mollie,
    started,
)
from tests.web.checkout.test_paying import leads_to
from tests.web.checkout.test_saving_on_pages import LATER_FIELDS, cards_on, saved

from paydesk.adapters.acquirers.mollie.kept import Kept
from paydesk.adapters.vault import Vault
from paydesk.core.clock import utc_now
from paydesk.core.errors import Forbidden
from paydesk.database.pool import Database
from paydesk.domain.billing.charging_saved import NotCharged
from paydesk.domain.merchants.merchant import Merchant, shop_of
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.janitor import settle_due

__all__ = ["live", "live_desk", "live_web", "mollie", "started"]


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """A charge that is not decided at once is looked for by the janitor."""
    monkeypatch.setattr(Kept.__init__, "__defaults__", ((),))


@pytest.fixture
def live_shop(merchant: Merchant) -> Shop:
    return shop_of(merchant, live=True)


@pytest.fixture
async def known(
    live_web: httpx.AsyncClient, signed_form: SignedForm, database: Database, vault: Vault, live_shop: Shop
) -> str:
    await saves_cards(database, live_shop)
    await set_back.no_codes_counted(database)
    path = await open_page(live_web, signed_form(**LATER_FIELDS))
    await come_known(live_web, path, database, vault, live_shop)
    return path


async def keep(web: httpx.AsyncClient, mollie: Account, path: str, method: str = "creditcard", **details: str) -> None:
    """Tick, go to Mollie's page, pay there, and come back."""
    answer = await web.post(f"{path}/continue", data={"email": ADA, "charge": "en"})
    mollie.do("pay", page_in(leads_to(answer)), method, **details)
    await web.get(f"{path}/result")


def paid_without_customer(mollie: Account) -> list[Any]:
    return [one for one in mollie.see()["payments"].values() if one["sequenceType"] == "recurring"]


async def test_only_later_charges_are_asked_for(
    live_web: httpx.AsyncClient, signed_form: SignedForm, known: str, mollie: Account
) -> None:
    page = await live_web.get(known)
    assert 'id="page-charge"' in page.text
    assert 'id="page-save"' not in page.text
    await keep(live_web, mollie, known)
    again = await open_page(live_web, signed_form(merchant_order_id="second"))
    assert cards_on(await live_web.get(again)) == []


async def test_who_asks_for_no_later_charges_offers_nothing(
    live_web: httpx.AsyncClient, signed_form: SignedForm, database: Database, live_shop: Shop
) -> None:
    await saves_cards(database, live_shop)
    path = await open_page(live_web, signed_form())
    assert "/known" not in (await live_web.get(path)).text


async def test_the_shop_charges_it_by_its_mandate(
    live_web: httpx.AsyncClient,
    live_desk: Desk,
    known: str,
    mollie: Account,
    database: Database,
    merchant: Merchant,
    live_shop: Shop,
) -> None:
    await keep(live_web, mollie, known)
    card = (await saved(database, live_shop))["id"]
    for _ in range(2):
        assert not (await charge(live_desk, live_shop, power(card))).is_open
    assert [one["amount"]["value"] for one in paid_without_customer(mollie)] == ["20.00"]
    await assert_clean(database, merchant)


async def test_a_charge_that_mollie_has_not_decided_is_open_until_it_has(
    live_web: httpx.AsyncClient,
    live_desk: Desk,
    known: str,
    mollie: Account,
    database: Database,
    merchant: Merchant,
    live_shop: Shop,
) -> None:
    await keep(live_web, mollie, known)
    card = (await saved(database, live_shop))["id"]
    mollie.do("set", recurring_status="pending")
    assert (await charge(live_desk, live_shop, power(card))).is_open
    (payment,) = paid_without_customer(mollie)
    mollie.do("settle", payment["id"], "paid")
    await settle_due(live_desk, now=utc_now() + timedelta(minutes=5))
    assert not (await charge(live_desk, live_shop, power(card))).is_open
    assert len(paid_without_customer(mollie)) == 1
    await assert_clean(database, merchant)


async def test_a_declined_charge_is_told(
    live_web: httpx.AsyncClient, live_desk: Desk, known: str, mollie: Account, database: Database, live_shop: Shop
) -> None:
    await keep(live_web, mollie, known)
    mollie.do("set", recurring_status="failed")
    with pytest.raises(NotCharged, match="declined"):
        await charge(live_desk, live_shop, power((await saved(database, live_shop))["id"]))


async def test_a_card_that_no_bank_has_authenticated_is_not_charged(
    live_web: httpx.AsyncClient, live_desk: Desk, known: str, mollie: Account, database: Database, live_shop: Shop
) -> None:
    await keep(live_web, mollie, known, cardSecurity="normal")
    with pytest.raises(Forbidden, match="not authenticated by their bank"):
        await charge(live_desk, live_shop, power((await saved(database, live_shop))["id"]))
    assert paid_without_customer(mollie) == []
