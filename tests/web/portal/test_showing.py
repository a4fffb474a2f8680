from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from typing import Any

import httpx
import pytest
from babel.dates import format_date
from tests import breaking, set_back
from tests.links import newest_portal

from paydesk.adapters.vault import Vault
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.business.branding import brand_account
from paydesk.domain.merchants.merchant import Merchant
from paydesk.domain.payments.states import PaymentState
from paydesk.web.portal.pages import CATALOGUES
from paydesk.web.portal.wording import PAYMENTS

LOGO = (files("paydesk.web.demo") / "static/shop-mark.png").read_bytes()
Subscribe = Callable[..., Awaitable[Any]]


def long_date(at: datetime, language: str = "en") -> str:
    return format_date(at, "long", language)


async def test_the_page_says_what_is_charged_when_and_to_which_card(subscriber: Any, merchant: Merchant) -> None:
    page = await subscriber.page()
    due = (await subscriber.now()).date_next
    for shown in (merchant.name, "Coffee club", "Active", "10.00\u00a0USD every month", "Visa", "•••• 4242"):
        assert shown in page
    assert f"10.00\u00a0USD on {long_date(due)}" in page
    assert "4242424242424242" not in page


async def test_it_wears_its_shops_colour_and_logo(
    subscriber: Any, database: Database, merchant: Merchant, web: httpx.AsyncClient
) -> None:
    assert "/brand/" not in await subscriber.page()
    await brand_account(database, merchant.id, accent="#1f5a43", logo=LOGO, now=utc_now())
    page = await subscriber.page()
    style = re.search(rf'<link rel="stylesheet" href="(/brand/{merchant.id}/\w+)/style.css">', page)
    assert style is not None
    assert f'<img src="{style[1]}/logo" alt="">' in page
    assert "--accent: #1f5a43" in (await web.get(f"{style[1]}/style.css")).text
    assert (await web.get(f"{style[1]}/logo")).content == LOGO


async def test_it_speaks_german_with_german_dates(subscriber: Any) -> None:
    page = await subscriber.page("de-DE")
    due = (await subscriber.now()).date_next
    assert 'lang="de"' in page
    assert f"10,00\u00a0USD am {long_date(due, 'de')}" in page
    assert "Abonnement kündigen" in page


async def test_another_language_gets_english_with_english_months(subscriber: Any) -> None:
    due = (await subscriber.now()).date_next
    assert long_date(due) in await subscriber.page("sv-SE")


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Pacific/Pago_Pago"])
async def test_dates_are_those_of_the_merchants_time_zone(
    subscribe: Subscribe, database: Database, merchant: Merchant, zone: str
) -> None:
    await breaking.say(database, "merchant", {"id": merchant.id}, time_zone=zone)
    subscriber = await subscribe()
    noon = datetime(2030, 1, 31, 12, 30, tzinfo=UTC)
    await set_back.times(database, "subscription", {"merchant_id": merchant.id}, date_next=noon)
    day = "February 1, 2030" if zone == "Pacific/Kiritimati" else "January 31, 2030"
    assert day in await subscriber.page()


async def test_a_trial_shows_when_it_ends(subscribe: Subscribe) -> None:
    subscriber = await subscribe(recurring_trial_period="14d", recurring_trial_amount="1.00")
    page = await subscriber.page()
    assert "Trial until" in page
    assert long_date((await subscriber.now()).anchor) in page
    await subscriber.charge()
    assert "Trial until" not in await subscriber.page()


async def test_a_failing_charge_is_said_with_the_day_of_the_next_try(failing: Any) -> None:
    page = await failing.page()
    assert "The last charge failed." in page
    assert f"charged again on {long_date((await failing.now()).date_next)}" in page


async def test_a_limited_subscription_says_that_nothing_more_is_charged(subscribe: Subscribe) -> None:
    subscriber = await subscribe(recurring_duration="2")
    await subscriber.charge()
    page = await subscriber.page()
    assert "None: all agreed payments are made." in page
    assert long_date((await subscriber.now()).date_end) in page


async def test_past_payments_are_listed_newest_first_with_a_way_to_older_ones(subscriber: Any) -> None:
    for _ in range(14):
        assert await subscriber.charge() == 1
    page = await subscriber.page()
    assert page.count("<tr><td>") == 12
    (place,) = re.findall(r"\?before=[0-9]+", page)
    older = await subscriber.page(below=place)
    assert older.count("<tr><td>") == 3
    assert "Older payments" not in older
    assert "Newest payments" in older
    assert "paid" in older


async def test_a_declined_payment_is_listed_as_failed(failing: Any) -> None:
    assert '<td class="declined">failed' in await failing.page()


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (PaymentState.PARTIALLY_REFUNDED, "partly refunded"),
        (PaymentState.REFUNDED, "refunded"),
        (PaymentState.CHARGED_BACK, "taken back by your bank"),
    ],
)
async def test_what_was_given_back_is_said(
    subscriber: Any, database: Database, merchant: Merchant, state: PaymentState, words: str
) -> None:
    await breaking.say(database, "payment", {"merchant_id": merchant.id}, state=str(state))
    assert f'<td class="{state}">{words}' in await subscriber.page()


def test_every_state_of_a_payment_has_words() -> None:
    assert set(PAYMENTS) == set(PaymentState)


@pytest.mark.parametrize("before", ["", "-1", "0", "x", "999999999", "9" * 40, "١٢", "%00", "1&before=2"])
async def test_any_place_to_go_on_from_gets_a_page(subscriber: Any, before: str) -> None:
    await subscriber.page(below=f"?before={before}")


async def test_a_link_opens_its_own_subscription_only(subscribe: Subscribe) -> None:
    mine, yours = await subscribe(), await subscribe(recurring_name="Tea club", recurring_sku_id="tea")
    assert "Tea club" not in await mine.page()
    await mine.cancel()
    assert ((await mine.now()).state, (await yours.now()).state) == ("Cancelled", "Active")


@pytest.mark.parametrize(
    "change",
    [
        lambda token: token[:-1] + ("0" if token[-1] != "0" else "1"),
        lambda token: "l" + token[1:],
        lambda token: token.upper(),
        lambda token: token + "0",
        lambda token: "tfffffffffffff-" + token.partition("-")[2],
        lambda token: "t1-" + "0" * 32,
        lambda token: "t1-" + "0" * 48,
        lambda token: token.partition("-")[0] + "-" + "f" * 48,
        lambda token: token[:-16],
        lambda token: token[:-16] + "f" * 16,
        lambda token: "x",
        lambda token: "%00",
        lambda token: "'; drop table subscription; --",
        lambda token: "é" * 200,
        lambda token: "../nowhere",
    ],
)
@pytest.mark.parametrize("below", ["", "/status", "/cancel", "/card", "/card/result", "/card/status"])
async def test_any_other_link_is_not_found(subscriber: Any, change: Callable[[str], str], below: str) -> None:
    token = subscriber.path.rpartition("/")[2]
    answer = await subscriber.web.get(f"/portal/{change(token)}{below}")
    assert answer.status_code == 404
    assert "Coffee club" not in answer.text


async def test_a_link_to_a_checkout_is_none_to_a_portal_and_the_other_way_round(
    subscriber: Any, web: httpx.AsyncClient, signed_form: Callable[..., dict[str, Any]]
) -> None:
    opened = await web.post("/payment/form", data=signed_form())
    checkout = opened.headers["location"]
    assert (await web.get(checkout)).status_code == 200
    assert (await web.get(checkout.replace("checkout", "portal"))).status_code == 404
    assert (await web.get(subscriber.path.replace("portal", "checkout"))).status_code == 404


async def test_the_not_found_page_says_what_to_do_in_the_visitors_language(web: httpx.AsyncClient) -> None:
    answer = await web.get("/portal/nothing", headers={"Accept-Language": "de"})
    assert answer.status_code == 404
    assert "Wir finden dieses Abonnement nicht" in answer.text


async def test_below_the_sandbox_base_only_test_subscriptions_exist(
    subscriber: Any, web: httpx.AsyncClient, database: Database, merchant: Merchant, vault: Vault
) -> None:
    page = await web.get(f"/sandbox{subscriber.path}")
    assert page.status_code == 200
    assert f'href="/sandbox{subscriber.path}/card"' in page.text
    assert "Test mode" in page.text
    await make_live(database, merchant.id)
    live = (await newest_portal(database, merchant.id)).token(vault)
    assert live.startswith("l")
    assert (await web.get(f"/portal/{live}")).status_code == 200
    assert (await web.get(f"/sandbox/portal/{live}")).status_code == 404


async def make_live(database: Database, merchant_id: int) -> None:
    """Turn a test subscription and what its page needs into a live one."""
    for table in ("subscription", "customer", "card", "package_version", "subscription_package"):
        await database.execute(f"update {table} set live = true where merchant_id = $1", merchant_id)


async def test_what_others_wrote_stays_text(subscribe: Subscribe, renamed: str) -> None:
    subscriber = await subscribe(recurring_name="<b>club</b>")
    answer = await subscriber.web.get(subscriber.path)
    assert "<script>alert" not in answer.text
    assert "<b>club</b>" not in answer.text
    assert renamed in await subscriber.page()


@pytest.mark.parametrize("below", ["", "/cancel", "/card"])
async def test_every_page_is_private_and_runs_nothing_foreign(subscriber: Any, below: str) -> None:
    answer = await subscriber.web.get(subscriber.path + below)
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["referrer-policy"] == "same-origin"
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert "style=" not in answer.text
    assert "http://" not in answer.text.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in answer.text.replace('<a href="https://shop.example/"', "")


def test_the_portal_speaks_what_the_checkout_speaks() -> None:
    assert set(CATALOGUES.languages) >= {"en", "de"}


async def test_a_test_clock_that_runs_ahead_counts_as_now(
    subscriber: Any, database: Database, merchant: Merchant
) -> None:
    await subscriber.cancel()
    assert "What you have paid runs until" in await subscriber.page()
    await set_back.clock_runs_ahead(database, merchant.id, timedelta(days=40))
    assert "What you have paid runs until" not in await subscriber.page()
