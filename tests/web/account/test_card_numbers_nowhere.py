"""A card number typed into any field of any door but the card's own rests nowhere:
in no dump and in no log.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import structlog
from starlette.routing import Route
from tests.domain.payments.test_card_secrecy import dump, findings
from tests.lengths import long
from tests.web.account.conftest import SignUp, Visitor, fields_of

import paydesk.web
from paydesk.app import create_app
from paydesk.core.card_numbers import MASK
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.accounts.audit import Action, Actor, record
from paydesk.domain.merchants.merchant import Merchant
from paydesk.domain.payments.requests import KNOWN_FIELDS
from paydesk.logs import set_up_logs
from paydesk.settings import Settings
from paydesk.web.console.profile_names import NAMES

VISA, AMEX, MASTERCARD = "4716258050958645", "371449635398431", "5105105105105100"
TYPED = {
    "plain": VISA,
    "spaced": "4716 2580 5095 8645",
    "dashed": f"my card: {AMEX[:4]}-{AMEX[4:10]}-{AMEX[10:]}, thanks",
    "in full width": MASTERCARD.translate(str.maketrans("0123456789", "０１２３４５６７８９")),
}
EACH_SPELLING = [pytest.param(typed, id=name, marks=() if name == "plain" else long) for name, typed in TYPED.items()]
NUMBERS = [VISA, AMEX, MASTERCARD]
EXACT = {"merchant_order_id", "email", "success_url", "pingback_url", "recurring_sku_id"}
"""What is kept or echoed to the character, so that a form with a card number there is refused."""

SignedForm = Callable[..., dict[str, Any]]
OpenWeb = Callable[..., Awaitable[httpx.AsyncClient]]


@pytest.fixture
def logged(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    """Everything that is logged meanwhile."""
    kept = io.StringIO()
    monkeypatch.setattr(sys, "stderr", kept)
    before = structlog.get_config()
    set_up_logs(settings.model_copy(update={"log_level": "debug"}))
    yield kept
    structlog.configure(**before)


@pytest.fixture
async def nowhere(database_url: str, logged: io.StringIO) -> Callable[[], Awaitable[None]]:
    """Look through a dump and the logs."""

    async def look() -> None:
        text = await dump(database_url)
        wide = [number.translate(str.maketrans("0123456789", "０１２３４５６７８９")) for number in NUMBERS]
        for line in [*text.splitlines(), *logged.getvalue().splitlines()]:
            assert not findings(line, NUMBERS), line[:400]
            assert not any(number in line for number in wide), line[:400]

    return look


def field_names() -> list[str]:
    """The name of every field of every page, as the templates have them."""
    folder = Path(paydesk.web.__file__).parent
    texts = [path.read_text() for path in folder.rglob("*.html")]
    names = {name for text in texts for name in re.findall(r'\bname="([a-z_]+)"', text)}
    return sorted(names - {"csrf"} | NAMES.keys() | {"q", "note", "reason", "text", "name", "next", "before", "email"})


@pytest.mark.parametrize("typed", EACH_SPELLING)
async def test_not_of_checkout_forms(
    open_web: OpenWeb, signed_form: SignedForm, nowhere: Callable[[], Awaitable[None]], typed: str
) -> None:
    web = await open_web(forms_per_minute=1000)
    names = sorted((KNOWN_FIELDS | {"note", "recurring_name"}) - {"api_key", "hash", "sign_version"})
    plan = {"recurring_name": "Club", "recurring_sku_id": "club", "recurring_period": "1m"}
    answers = {}
    for name in names:
        value = {
            "email": f"{typed}@example.com",
            "success_url": f"https://shop.example/{typed}",
            "pingback_url": f"https://shop.example/{typed}",
        }.get(name, typed)
        fields = {**(plan if name.startswith("recurring") else {}), name: value}
        answers[name] = (await web.post("/payment/form", data=signed_form(**fields))).status_code
    answers["a field's name"] = (
        await web.post("/payment/form", data=signed_form(**{re.sub(r"[ :,]", "_", typed): "x"}))
    ).status_code
    await web.post("/payment/form", data={**signed_form(description=typed), "hash": typed})
    await web.post("/payment/form", data={**signed_form(), "api_key": typed})
    refused = {name for name, status in answers.items() if status == 400}
    assert refused >= EXACT
    assert {answers[name] for name in ("description", "first_name", "last_name", "city", "zip", "note")} == {303}
    await nowhere()


async def test_a_refusal_says_which_field_and_what_to_do(web: httpx.AsyncClient, signed_form: SignedForm) -> None:
    answer = await web.post(
        "/payment/form", data=signed_form(merchant_order_id=f"order {VISA}"), headers={"Accept": "application/json"}
    )
    assert answer.status_code == 400
    assert "merchant_order_id holds what looks like a card number" in answer.text
    assert VISA not in answer.text


async def test_the_shop_signs_what_it_sends_and_the_customer_reads_it_masked(
    web: httpx.AsyncClient, signed_form: SignedForm
) -> None:
    opened = await web.post("/payment/form", data=signed_form(description=f"Gift card {VISA}"))
    page = (await web.get(opened.headers["location"])).text
    assert f"Gift card {MASK}" in page


@pytest.mark.parametrize("typed", EACH_SPELLING)
async def test_not_of_payment_pages(
    web: httpx.AsyncClient, signed_form: SignedForm, nowhere: Callable[[], Awaitable[None]], typed: str
) -> None:
    card = {"number": "4242424242424242", "expiry": "12/40", "cvc": "123", "holder": "Ada Lovelace"}
    usual = {**card, "email": "ada@example.com", "country": "GB"}
    for name in ("email", "holder", "country", "city", "zip", "expiry", "cvc", "agree", "note"):
        opened = await web.post("/payment/form", data=signed_form(city="London", zip="N1", email="ada@example.com"))
        value = f"{typed}@example.com" if name == "email" else typed
        answer = await web.post(f"{opened.headers['location']}/pay", data={**usual, name: value})
        assert answer.status_code == (303 if name in ("city", "zip", "agree", "note") else 400), name
        await web.get(f"{opened.headers['location']}?n={typed}", headers={b"User-Agent": typed.encode()})
    await nowhere()


@pytest.mark.parametrize("typed", EACH_SPELLING)
async def test_not_of_calls_of_the_api(
    web: httpx.AsyncClient,
    merchant: Merchant,
    signed_form: SignedForm,
    settings: Settings,
    nowhere: Callable[[], Awaitable[None]],
    typed: str,
) -> None:
    opened = await web.post("/payment/form", data=signed_form(merchant_order_id="api-1"))
    card = {"number": "4242424242424242", "expiry": "12/40", "cvc": "123", "holder": "Ada Lovelace"}
    await web.post(f"{opened.headers['location']}/pay", data={**card, "email": "a@b.example", "country": "GB"})
    key = {"X-ApiKey": merchant.private_key}
    shipment: dict[str, Any] = {"merchant_reference_id": "api-1", "type": "physical", "status": "delivered"}
    texts = ("product_description", "details", "reason", "carrier_type", "carrier_tracking_id", "unknown", typed)
    for name in texts:
        answer = await web.post("/api/v1/deliveries", json={**shipment, name: typed}, headers=key)
        assert answer.status_code == 200, answer.text
    address = {"street": typed, "city": typed, "zip": typed, "phone": typed, "first_name": typed, "other": typed}
    whole = {**shipment, "shipping_address": address, "attachments": [typed, {typed: typed}]}
    assert (await web.post("/api/v1/deliveries", json=whole, headers=key)).status_code == 200
    asked = {"Idempotency-Key": typed.replace(" ", "-").encode("ascii", "replace").decode()}
    answer = await web.post("/payment/1/refund", json={}, headers={**key, **asked})
    if typed.isascii():
        assert (answer.status_code, "Idempotency-Key" in answer.text) == (400, True)
    app = create_app(settings)
    paths = [
        route.path for route in app.routes if isinstance(route, Route) and route.path.startswith(("/api/", "/payment/"))
    ]
    for number, path in enumerate(paths):
        filled = re.sub(r"\{[^}]+\}", typed, path)
        for url in (filled, re.sub(r"\{[^}]+\}", "1", path)):
            every = dict.fromkeys(("amount", "text", "reason", "advance", "email", "merchant_order_id"), typed)
            for body in ({"json": every}, {"data": every}, {"json": {"amount": int(VISA)}}, {"json": {"text": typed}}):
                again = {**key, "Idempotency-Key": f"k{number}-{len(str(body))}-{len(url)}", "User-Agent": "x"}
                await web.post(url, headers=again, **body)
            await web.get(url, params={"email": typed, "merchant_order_id": typed, typed: typed}, headers=key)
    await nowhere()


def is_safe(route: Route) -> bool:
    return not route.path.endswith(("/logout", "/reset")) and "{token}" not in route.path


@pytest.mark.parametrize("typed", EACH_SPELLING)
async def test_not_of_the_account_and_the_console(
    sign_up: SignUp, settings: Settings, nowhere: Callable[[], Awaitable[None]], typed: str
) -> None:
    owner = await sign_up()
    names = field_names()
    assert len(names) > 40
    routes = [route for route in create_app(settings).routes if isinstance(route, Route)]
    for route in filter(is_safe, routes):
        path = re.sub(r"/account/\{merchant_id:id\}", owner.merchant_path, route.path)
        path = re.sub(r"\{[^}]+\}", "5", path)
        if "POST" not in (route.methods or ()):
            await owner.web.get(path, params=dict.fromkeys(names, typed), headers={b"User-Agent": typed.encode()})
            continue
        shown = await owner.see("/account/security")
        if shown.status_code != 200:
            owner = await sign_up()
            shown = await owner.see("/account/security")
        hidden = fields_of(shown.text, "/account/logout")
        await owner.web.post(path, data={**dict.fromkeys(names, typed), **hidden})
    await nowhere()


@pytest.mark.parametrize("typed", EACH_SPELLING)
async def test_not_of_what_a_team_says_of_itself(
    owner: Visitor, database: Database, nowhere: Callable[[], Awaitable[None]], typed: str
) -> None:
    page = f"{owner.merchant_path}/settings/profile"
    details = dict.fromkeys(("legal_name", "street", "postal_code", "city", "registration", "description"), typed)
    saved = await owner.send(page, **details)
    assert saved.status_code == 303
    merchant_id = int(owner.merchant_path.split("/")[2])
    assert MASK in await database.fetchval(
        "select description from business_profile where merchant_id = $1", merchant_id
    )
    async with database.acquire() as connection:
        said = {"before": typed, "after": [typed]}
        await record(connection, Actor(None, "x"), Action.exported, now=utc_now(), subject=typed, details=said)
    for list_page in ("payments", "subscriptions", "deliveries", "pingbacks"):
        await owner.see(f"{owner.merchant_path}/{list_page}?q={typed}")
        await owner.see(f"{owner.merchant_path}/{list_page}/export?q={typed}")
    await nowhere()


async def test_an_iban_that_looks_like_a_card_number_is_kept_whole(owner: Visitor, database: Database) -> None:
    """Swiss ones have 19 digits; they rest sealed."""
    page = f"{owner.merchant_path}/settings/profile"
    assert (await owner.send(page, iban="CH93 0076 2011 6238 5295 7")).status_code == 303
