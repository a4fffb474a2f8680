"""The portal of a trial that began without a card: it says so, and takes one."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import httpx
import pytest
from tests.links import newest_portal
from tests.shopfront import open_page
from tests.web.portal.conftest import Subscriber, leads_to, text_of

from paydesk.database.pool import Database
from paydesk.domain.merchants.customer_ways import PortalCancels
from paydesk.domain.merchants.merchant import Merchant, change_merchant
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk
from paydesk.domain.subscriptions.changing import carry_out_due

VISA, DECLINED = "4242424242424242", "4000000000000002"


@pytest.fixture
async def trying(
    web: httpx.AsyncClient,
    desk: Desk,
    shop: Shop,
    merchant: Merchant,
    database: Database,
    signed_form: Callable[..., dict[str, Any]],
) -> Subscriber:
    """A customer in a trial that took no card."""
    await change_merchant(database, merchant.id, trials_without_card=True, portal_pauses=True)
    form = signed_form(
        recurring_name="Coffee club", recurring_sku_id="club", recurring_period="1m", recurring_trial_period="14d"
    )
    path = await open_page(web, form)
    answer = await web.post(f"{path}/start", data={"email": "ada@example.com", "agree": "en"})
    assert answer.status_code == 303
    portal = await newest_portal(database, shop.merchant_id)
    return Subscriber(desk, shop, portal.row_id, f"/portal/{portal.token(desk.vault)}", web)


async def test_it_says_that_there_is_no_card_yet_and_what_that_means(trying: Subscriber) -> None:
    page = await trying.page()
    for said in ("It ends then, and nothing is charged, unless you add a card", "None yet", "Add a card", "Trial"):
        assert said in page
    assert "••••" not in page
    assert "Keep the subscription" not in page
    assert "Noch keine" in await trying.page("de")


async def test_the_card_page_says_when_it_is_charged_first(trying: Subscriber) -> None:
    page = (await trying.page(below="/card")).replace("\u00a0", " ")
    assert "Add a card for Coffee club" in page
    assert "Nothing is charged before" in page
    assert "charges you from then on: 10.00 USD every month until you cancel" in page
    assert "Until now" not in page


async def test_a_card_that_is_given_is_charged_when_the_trial_is_over(trying: Subscriber, charges: Any) -> None:
    trial = await trying.now()
    assert leads_to(await trying.give(VISA)) == f"{trying.path}/card/result"
    done = await trying.page(below="/card/result")
    assert "Your card is saved" in done
    assert "The first charge" in done
    page = await trying.page()
    assert "•••• 4242" in page
    assert "Replace the card" in page
    assert charges() == [], "checking a card takes nothing"
    assert (await trying.now()).date_next == trial.paid_until
    assert await trying.charge() == 1


async def test_a_card_that_is_declined_is_told_without_a_word_of_an_old_one(trying: Subscriber) -> None:
    answer = await trying.give(DECLINED)
    assert answer.status_code == 402
    assert "Your card was declined" in text_of(answer)
    assert "old card" not in text_of(answer)


async def test_it_may_be_paused_and_resumed_and_still_has_no_card(trying: Subscriber) -> None:
    assert "Pause the subscription" in await trying.page()
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    assert leads_to(await trying.web.post(f"{trying.path}/pause", headers=headers)) == trying.path
    assert "paused until you resume it" in await trying.page()
    assert leads_to(await trying.web.post(f"{trying.path}/undo", headers=headers)) == trying.path
    assert "unless you add a card" in await trying.page()


@pytest.mark.parametrize("cancels", list(PortalCancels))
async def test_it_may_be_cancelled_however_the_shop_has_that(trying: Subscriber, cancels: PortalCancels) -> None:
    await change_merchant(trying.desk.database, trying.shop.merchant_id, portal_cancels=cancels)
    assert "Cancel the subscription" in await trying.page()
    assert leads_to(await trying.cancel()) == trying.path
    page = await trying.page()
    assert "was cancelled on" in page or "This subscription ends on" in page


async def test_once_it_is_over_it_says_that_it_has_ended(trying: Subscriber) -> None:
    trial = await trying.now()
    at = trial.paid_until + timedelta(seconds=1)
    assert await carry_out_due(trying.desk.database, real_now=at, merchant_id=trying.shop.merchant_id, at=at) == 1
    page = await trying.page()
    assert "Nothing more is charged" in page
    assert "Add a card" not in page
