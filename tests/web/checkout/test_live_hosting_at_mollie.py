"""Live payments on Mollie's own page, from the form to a clean check,
with a stand-in of ours behind the adapter, in a process of its own.
"""

from __future__ import annotations

import html
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from pydantic import SecretStr
from structlog.testing import capture_logs
from tests import set_back
from tests.conftest import accept_waiting, submit_profile
from tests.proving import check
from tests.shopfront import charge_round, open_page, ship, ships
from tests.standins.account import Account, running
from tests.standins.json_parameters import checked
from tests.web.checkout.test_hosting import leads_to, page_in, press_continue
from tests.web.checkout.test_paying import SHOP

from paydesk.adapters.acquirers.mollie import MollieAcquirer, pages
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.merchants.merchant import Merchant, go_live, shop_of
from paydesk.domain.payments import older_pages
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.janitor import settle_due
from paydesk.domain.payments.movements import finish_movements
from paydesk.domain.payments.refunding import refund
from paydesk.equipment import live_acquirer
from paydesk.settings import Settings
from paydesk_client.signature import encode_form

OpenWeb = Callable[..., Awaitable[httpx.AsyncClient]]
SignedForm = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def started() -> Iterator[Account]:
    with running("tests.standins.mollie") as account:
        yield account


@pytest.fixture
def mollie(started: Account) -> Iterator[Account]:
    started.do("forget")
    with checked() as wrong:
        yield started
    assert wrong == []


@pytest.fixture
def live(mollie: Account) -> dict[str, Any]:
    return {
        "live_acquirer": "mollie",
        "mollie_key": SecretStr("test_standin"),
        "mollie_api_base": mollie.base_url,
        "idempotency_secret": SecretStr("i" * 40),
    }


@pytest.fixture
async def live_web(
    open_web: OpenWeb, live: dict[str, Any], database: Database, merchant: Merchant
) -> httpx.AsyncClient:
    await submit_profile(database, merchant.id)
    await accept_waiting(database, merchant.id)
    await go_live(database, merchant.id, now=utc_now())
    return await open_web(**live)


@pytest.fixture
async def live_desk(desk: Desk, settings: Settings, live: dict[str, Any]) -> AsyncIterator[Desk]:
    """What a worker of that deployment works with."""
    acquirer = live_acquirer(settings.model_copy(update=live))
    assert acquirer is not None
    yield replace(desk, acquirers={**desk.acquirers, "mollie": acquirer}, live_acquirer="mollie")
    await acquirer.close()


async def attempts(database: Database, merchant: Merchant) -> list[Any]:
    """The attempts of the merchant's one order, the first one first."""
    rows: list[Any] = await database.fetch(
        """
        select p.id, p.state, a.state as attempt, a.idempotency_key as key, a.acquirer_reference as reference
          from payment p join payment_attempt a on a.merchant_id = p.merchant_id and a.payment_id = p.id
         where p.merchant_id = $1 order by a.id
        """,
        merchant.id,
    )
    return rows


async def assert_clean(database: Database, merchant: Merchant) -> None:
    found = await check(database, now=utc_now(), merchant_id=merchant.id)
    assert [finding.rule.statement for finding in found if finding.found] == []


async def test_an_ordinary_account_takes_a_payment_without_a_card_number(
    live_web: httpx.AsyncClient, signed_form: SignedForm, database: Database, merchant: Merchant, mollie: Account
) -> None:
    path = await open_page(live_web, signed_form())
    page = await live_web.get(path)
    assert "cc-number" not in page.text
    assert "https://*.mollie.com" in page.headers["content-security-policy"]
    address = leads_to(await press_continue(live_web, path))
    assert address.startswith(f"{mollie.base_url}/checkout/select-method/tr_")
    mollie.do("pay", page_in(address), "ideal")
    assert leads_to(await live_web.get(f"{path}/result")) == SHOP
    (paid,) = await attempts(database, merchant)
    assert (paid["state"], paid["reference"]) == ("captured", page_in(address))
    assert mollie.taken(paid["key"]) == 10
    await assert_clean(database, merchant)


async def test_a_payment_made_there_is_refunded(
    live_web: httpx.AsyncClient,
    live_desk: Desk,
    signed_form: SignedForm,
    database: Database,
    merchant: Merchant,
    mollie: Account,
) -> None:
    path = await open_page(live_web, signed_form())
    mollie.do("pay", page_in(leads_to(await press_continue(live_web, path))))
    await live_web.get(f"{path}/result")
    (paid,) = await attempts(database, merchant)
    await refund(live_desk, shop_of(merchant, live=True), paid["id"], Decimal(4), requested_by="api", now=utc_now())
    assert mollie.taken(paid["key"]) == 6
    await assert_clean(database, merchant)


async def test_a_lost_answer_leads_to_the_one_page_that_was_made(
    live_web: httpx.AsyncClient, live_desk: Desk, signed_form: SignedForm, mollie: Account
) -> None:
    path = await open_page(live_web, signed_form())
    mollie.do("set", loses=1)
    assert leads_to(await press_continue(live_web, path)) == f"{path}/result"
    await settle_due(live_desk, now=utc_now() + timedelta(seconds=10))
    (made,) = mollie.see()["payments"].values()
    assert (await live_web.get(f"{path}/status")).json()["url"] == made["_links"]["checkout"]["href"]


async def test_what_is_paid_on_a_page_that_could_not_be_ended_is_given_back_in_full(
    live_web: httpx.AsyncClient,
    live_desk: Desk,
    signed_form: SignedForm,
    database: Database,
    merchant: Merchant,
    mollie: Account,
) -> None:
    path = await open_page(live_web, signed_form())
    first = page_in(leads_to(await press_continue(live_web, path)))
    second = page_in(leads_to(await press_continue(live_web, path, "mended@example.com")))
    assert first != second
    assert [one["attempt"] for one in await attempts(database, merchant)] == ["abandoned", "challenged"]
    assert mollie.do("pay", second)
    assert mollie.do("pay", first), "Mollie's payments can't be canceled while they are open"
    answer = await live_web.get(f"{path}/result")
    assert "That payment is given back in full" in html.unescape((await live_web.get(path)).text + answer.text)
    (left, paid) = await attempts(database, merchant)
    assert (mollie.taken(left["key"]), mollie.taken(paid["key"])) == (0, 10)
    await settle_due(live_desk, now=utc_now() + timedelta(minutes=20))
    assert (mollie.taken(left["key"]), mollie.taken(paid["key"])) == (0, 10)
    told = await database.fetch("select event from pingback where merchant_id = $1", merchant.id)
    assert len(told) == 1
    await assert_clean(database, merchant)


async def test_one_that_nobody_comes_back_to_is_looked_at_until_its_own_end(
    live_web: httpx.AsyncClient,
    live_desk: Desk,
    signed_form: SignedForm,
    database: Database,
    merchant: Merchant,
    mollie: Account,
) -> None:
    path = await open_page(live_web, signed_form())
    first = page_in(leads_to(await press_continue(live_web, path)))
    await press_continue(live_web, path, "mended@example.com")
    now = utc_now()
    await settle_due(live_desk, now=now + timedelta(minutes=2))
    mollie.do("pay", first)
    await settle_due(live_desk, now=now + timedelta(minutes=20))
    await given_back(mollie, live_desk, now + timedelta(minutes=30))
    (left, _) = await attempts(database, merchant)
    assert (left["attempt"], mollie.taken(left["key"])) == ("voided", 0)


async def test_what_can_not_be_written_down_as_given_back_is_the_janitors_and_no_error(
    live_web: httpx.AsyncClient,
    live_desk: Desk,
    signed_form: SignedForm,
    database: Database,
    merchant: Merchant,
    mollie: Account,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = await open_page(live_web, signed_form())
    first = page_in(leads_to(await press_continue(live_web, path)))
    second = page_in(leads_to(await press_continue(live_web, path, "mended@example.com")))
    assert mollie.do("pay", second)
    assert mollie.do("pay", first)

    async def away(*_: object, **__: object) -> None:
        raise ConnectionRefusedError

    with monkeypatch.context() as broken, capture_logs() as said:
        broken.setattr(older_pages, "undo", away)
        await live_web.get(f"{path}/result")
        await live_web.get(path)
    assert "an older page waits, the database is away" in {one["event"] for one in said}
    assert [one for one in said if one["log_level"] == "error"] == []
    (left, paid) = await attempts(database, merchant)
    assert (mollie.taken(left["key"]), mollie.taken(paid["key"])) == (10, 10)
    await settle_due(live_desk, now=utc_now() + timedelta(minutes=20))
    assert (mollie.taken(left["key"]), mollie.taken(paid["key"])) == (0, 10)


async def given_back(mollie: Account, desk: Desk, now: datetime) -> None:
    """Mollie says of its refunds that their customers have the money; the janitor looks."""
    for name in mollie.see()["refunds"]:
        mollie.do("change_refund", name, "refunded")
    await settle_due(desk, now=now)


async def test_a_refund_that_fails_days_later_is_made_anew_until_its_customer_has_the_money(
    live_web: httpx.AsyncClient,
    live_desk: Desk,
    signed_form: SignedForm,
    database: Database,
    merchant: Merchant,
    mollie: Account,
) -> None:
    path = await open_page(live_web, signed_form())
    first = page_in(leads_to(await press_continue(live_web, path)))
    await press_continue(live_web, path, "mended@example.com")
    now = utc_now()
    await settle_due(live_desk, now=now + timedelta(minutes=2))
    mollie.do("pay", first)
    await settle_due(live_desk, now=now + timedelta(minutes=20))
    (made,) = mollie.see()["refunds"]
    for days in (1, 2, 3):
        await settle_due(live_desk, now=now + timedelta(days=days))
    assert next(one["attempt"] for one in await attempts(database, merchant)) == "voiding"
    mollie.do("change_refund", made, "failed")
    (left, _) = await attempts(database, merchant)
    assert mollie.taken(left["key"]) == 10
    await settle_due(live_desk, now=now + timedelta(days=4))
    assert (mollie.taken(left["key"]), len(mollie.see()["refunds"])) == (0, 2)
    _, again = mollie.see()["refunds"]
    mollie.do("change_refund", again, "refunded")
    await settle_due(live_desk, now=now + timedelta(days=5))
    assert next(one["attempt"] for one in await attempts(database, merchant)) == "voided"


@pytest.mark.parametrize(
    ("trial", "first", "later"),
    [({}, 10, 20), ({"recurring_trial_period": "14d"}, 0, 10)],
    ids=["paid at once", "after a free trial"],
)
async def test_a_subscription_begins_there_and_renews_by_what_is_kept(
    live_web: httpx.AsyncClient,
    live_desk: Desk,
    signed_form: SignedForm,
    database: Database,
    merchant: Merchant,
    mollie: Account,
    trial: dict[str, str],
    first: int,
    later: int,
) -> None:
    form = signed_form(recurring_name="Club", recurring_sku_id="club", recurring_period="1m", **trial)
    path = await open_page(live_web, form)
    typed = {"email": "ada@example.com", "agree": "en"}
    address = leads_to(await live_web.post(f"{path}/continue", data=typed))
    assert mollie.do("pay", page_in(address))
    leads_to(await live_web.get(f"{path}/result"))
    assert paid_in_all(mollie) == first
    subscription_id = await database.fetchval("select id from subscription where merchant_id = $1", merchant.id)
    await set_back.renewal_due(database, subscription_id)
    await charge_round(live_desk)
    assert paid_in_all(mollie) == later
    await assert_clean(database, merchant)


def paid_in_all(mollie: Account) -> float:
    paid = [one for one in mollie.see()["payments"].values() if one["status"] == "paid"]
    return sum(float(one["amount"]["value"]) for one in paid)


async def test_a_notification_hurries_the_look_and_nothing_in_it_is_believed(
    live_web: httpx.AsyncClient,
    live_desk: Desk,
    signed_form: SignedForm,
    database: Database,
    merchant: Merchant,
    mollie: Account,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pages, "tells", bool)
    path = await open_page(live_web, signed_form())
    name = page_in(leads_to(await press_continue(live_web, path)))
    told = urlsplit(mollie.see()["payments"][name]["webhookUrl"])
    later = utc_now() + timedelta(seconds=6)
    for words, status in ((f"{told.query}0", 403), ("", 400), (told.query, 200)):
        answer = await live_web.post(f"{told.path}?{words}", data={"id": "tr_of_another"})
        assert answer.status_code == status
    await settle_due(live_desk, now=later)
    assert [one["attempt"] for one in await attempts(database, merchant)] == ["challenged"]
    mollie.do("pay", name)
    await live_web.post(f"{told.path}?{told.query}", data={"id": name})
    await settle_due(live_desk, now=later + timedelta(seconds=6))
    assert [one["state"] for one in await attempts(database, merchant)] == ["captured"]


async def test_a_payment_that_has_expired_there_lets_the_customer_go_on(
    live_web: httpx.AsyncClient, signed_form: SignedForm, mollie: Account
) -> None:
    path = await open_page(live_web, signed_form())
    first = leads_to(await press_continue(live_web, path))
    mollie.do("set", time=(utc_now() + timedelta(minutes=16)).isoformat())
    answer = await live_web.get(f"{path}/result")
    assert answer.status_code == 402
    assert leads_to(await press_continue(live_web, path)) != first


@pytest.mark.parametrize("goods", ["shipped", "shipped, decided later", "let go", "let go later"])
async def test_shipped_goods_are_held_there_until_the_shipment_or_the_end_of_the_hold(
    live_web: httpx.AsyncClient,
    live_desk: Desk,
    signed_form: SignedForm,
    database: Database,
    merchant: Merchant,
    mollie: Account,
    goods: str,
) -> None:
    shop = shop_of(merchant, live=True)
    await ships(database, shop)
    path = await open_page(live_web, signed_form())
    name = page_in(leads_to(await press_continue(live_web, path)))
    assert mollie.do("pay", name)
    assert leads_to(await live_web.get(f"{path}/result")) == SHOP
    (held,) = await attempts(database, merchant)
    assert (held["state"], taken(mollie, name)) == ("authorized", "0.00")
    if goods.startswith("shipped"):
        mollie.do("set", capture_status="succeeded" if goods == "shipped" else "pending")
        await ship(live_desk, shop, held["id"])
        for made in mollie.see()["captures"]:
            mollie.do("decide_capture", made, "succeeded")
        await finish_movements(live_desk, now=utc_now() + timedelta(minutes=2))
        await refund(live_desk, shop, held["id"], Decimal(4), requested_by="api", now=utc_now())
    else:
        mollie.do("set", releases=goods == "let go")
        await refund(live_desk, shop, held["id"], None, requested_by="api", now=utc_now())
    if goods == "let go later":
        assert [one["state"] for one in await attempts(database, merchant)] == ["authorized"], "it was only asked for"
        mollie.do("let_go", name)
        await finish_movements(live_desk, now=utc_now() + timedelta(minutes=2))
    assert taken(mollie, name) == ("10.00" if goods.startswith("shipped") else "0.00")
    assert [one["state"] for one in await attempts(database, merchant)] == [
        "partially_refunded" if goods.startswith("shipped") else "voided"
    ]
    await assert_clean(database, merchant)


def taken(mollie: Account, name: str) -> str:
    """What a payment that was held has taken."""
    return str(mollie.see()["payments"][name]["amountCaptured"]["value"])


@pytest.fixture
def _holds_too_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is held there ends before an order has to be shipped."""
    monkeypatch.setattr(MollieAcquirer, "hold_period", timedelta(days=6))


@pytest.mark.usefixtures("_holds_too_short")
async def test_shipped_goods_are_refused_with_words_for_the_merchant_where_none_are_held(
    live_web: httpx.AsyncClient,
    signed_form: SignedForm,
    database: Database,
    merchant: Merchant,
) -> None:
    await ships(database, shop_of(merchant, live=True))
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
    answer = await live_web.post("/payment/form", content=encode_form(signed_form()), headers=headers)
    assert answer.status_code == 409
    assert "holds no money for goods that are shipped" in html.unescape(answer.text)
