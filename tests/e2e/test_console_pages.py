"""Every page of the account and of the operator's console, as their routes declare them,
in a real browser.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import subprocess
import sys
from collections.abc import AsyncIterator, Iterable, Mapping
from pathlib import Path
from typing import Any

import pyotp
import pytest
from playwright.async_api import Page
from starlette.routing import Route
from tests.e2e.conftest import serving
from tests.e2e.looks import SIDEWAYS, flaws, violations
from tests.e2e.running import PATIENCE_MS, OpenPage, Running, fill_in
from tests.lengths import long

from paydesk.adapters.acquirers.simulator import Bank, Record, SimulatedAcquirer
from paydesk.adapters.acquirers.simulator.server import bank_app
from paydesk.domain.accounts.roles import Permission
from paydesk.web.account.routes import routes as account_routes
from paydesk.web.console.guards import Access
from paydesk.web.guide.chapters import chapters
from paydesk.web.operator.routes import routes as operator_routes

pytestmark = pytest.mark.browser

NO_PAGES = ("/export", "/statement", "/files/{file_id:id}", ".css")
"""How the addresses of files end."""
STUCK = re.compile(r"\w+ \w*[a-z][.!?][A-Z][a-z]+ \w+")
"""Two sentences without a space between them."""


def needs(route: Route) -> Access | Permission:
    declared = route.endpoint.declared  # type: ignore[attr-defined]
    found: Access | Permission = declared.needs
    return found


def addresses(routes: Iterable[Route], wanted: Iterable[object], known: Mapping[str, object]) -> list[str]:
    """Where the pages of some routes stand; a route with an id that is not known fails here."""
    kinds = set(wanted)
    paths = [r.path for r in routes if "GET" in (r.methods or ()) and (not kinds or needs(r) in kinds)]
    return [_filled(path, known) for path in paths if not path.endswith(NO_PAGES)]


def _filled(path: str, known: Mapping[str, object]) -> str:
    for name in re.findall(r"\{(\w+)", path):
        assert name in known, f"{path} needs an example of its {name}: add one to the ids of this test"
    return re.sub(r"\{(\w+)(?::\w+)?\}", lambda found: str(known[found[1]]), path)


async def walk(page: Page, running: Running, paths: Iterable[str]) -> list[str]:
    """What is wrong with pages: for everybody to use, within the screen, without errors,
    one heading, a title.
    """
    wrong: list[str] = []
    complaints: list[str] = []
    page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    for path in paths:
        await page.goto(running.address + path)
        wrong += [f"{path} has not one heading"] if await page.locator("h1").count() != 1 else []
        wrong += [f"{path} has no title"] if not (await page.title()).split("·")[0].strip() else []
        wrong += [f"{path}: sentences stick together: {one}" for one in STUCK.findall(await page.inner_text("body"))]
        wrong += await flaws(page)
        wrong += [f"{path}: {one}" for one in complaints if "status of 4" not in one]
        complaints.clear()
    return wrong


async def glance(page: Page, running: Running, paths: Iterable[str], language: str) -> list[str]:
    """What is wrong with pages in another language on the smallest screen: too wide, an error,
    written in English or in the wrong direction, or hard to use for somebody.
    """
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(f"{page.url} in {language}: {error}"))
    await page.goto(f"{running.address}/account/security")
    choice = page.locator("select[name=language]")
    await choice.select_option(language)
    await choice.locator("xpath=ancestor::form").locator("button").last.click()
    await page.locator(f"html[lang={language}]").wait_for()
    await page.set_viewport_size({"width": 320, "height": 800})
    direction = "rtl" if language == "ar" else "ltr"
    for path in paths:
        answer = await page.goto(running.address + path)
        assert answer is not None
        wrong += [f"{path} in {language}: {answer.status}"] if answer.status >= 500 else []
        spoken = await page.locator("html").evaluate("one => [one.lang, one.dir]")
        wrong += [f"{path} speaks {spoken} instead of {language}"] if spoken != [language, direction] else []
        wrong += [f"{path} scrolls sideways in {language}"] if await page.evaluate(SIDEWAYS) else []
        # Its colours are those of the English page.
        wrong += [f"in {language}: {one}" for one in await violations(page, colours=False)]
    return wrong


async def buy(open_page: OpenPage, running: Running, article: str, number: str = "4242424242424242") -> None:
    page = await open_page(running.shop)
    page.set_default_timeout(PATIENCE_MS)
    await page.get_by_role("button", name=re.compile(rf"(Buy|Subscribe to) {article}")).click()
    await page.get_by_role("button", name="Continue to payment").click()
    await page.wait_for_url("**/checkout/**")
    await fill_in(page, number)
    if await page.get_by_role("checkbox").count():
        await page.get_by_role("checkbox").first.check()
    await page.get_by_role("button", name=re.compile("Pay")).click()
    await page.wait_for_url(f"{running.shop}/thanks?order=*")


async def log_in(open_page: OpenPage, running: Running, email: str, password: str) -> Page:
    page = await open_page(f"{running.address}/account/login")
    page.set_default_timeout(PATIENCE_MS)
    await page.get_by_label("E-mail address").fill(email)
    await page.get_by_label("Password").fill(password)
    await page.get_by_role("button", name="Log in").click()
    await page.wait_for_url(lambda url: not url.endswith("/login"))
    return page


async def owners_page(open_page: OpenPage, running: Running) -> Page:
    """The sample shop's owner, logged in."""
    note = Path(running.environment["PAYDESK_DATA_DIR"]) / "demo" / "owner"
    _, email, password = note.read_text().splitlines()
    return await log_in(open_page, running, email, password)


async def operators_page(open_page: OpenPage, running: Running) -> Page:
    """An operator, made by command, with a second factor."""
    email, password = f"ops-{secrets.token_hex(4)}@example.com", secrets.token_urlsafe(16)
    command = [sys.executable, "-m", "paydesk", "operator", "create", "--email", email, "--password"]
    await asyncio.to_thread(
        subprocess.run,
        command,
        input=f"{password}\n",
        env=running.environment,
        text=True,
        check=True,
        stdout=sys.stderr,
    )
    page = await log_in(open_page, running, email, password)
    app = pyotp.TOTP(await page.get_by_label("Secret", exact=True).inner_text())
    await page.get_by_role("textbox", name="Code").fill(app.now())
    await page.get_by_role("button", name="Set it up").click()
    await page.locator(".codes").wait_for()
    return page


async def first_id(page: Page, running: Running, listed: str, name: str) -> str:
    """The first id that a list links to."""
    await page.goto(f"{running.address}{listed}")
    found = re.search(rf'href="[^"]*/{name}/(\d+)', await page.content())
    assert found is not None, listed
    return found[1]


async def make_move(page: Page, running: Running, shop: str) -> str:
    """The id of a move of subscriptions to another version, which the owner makes."""
    packages = f"{shop}/subscriptions/packages"
    package = f"{packages}/{await first_id(page, running, packages, 'packages')}"
    await page.goto(f"{running.address}{package}/version")
    await page.get_by_label("Price of a period").fill("31.00")
    await page.get_by_role("button", name="Make the version").click()
    await page.goto(f"{running.address}{package}/move")
    await page.get_by_role("button", name="See what comes of it").click()
    await page.get_by_role("button", name="Move them").click()
    await page.wait_for_url("**/moves/*")
    return page.url.rpartition("/")[2]


async def make_link(page: Page, running: Running, shop: str) -> str:
    """The id of a payment link that the owner makes."""
    await page.goto(f"{running.address}{shop}/links/new")
    for label, text in (("Title", "A mug"), ("Currency", "USD"), ("Price, paid once", "4.00")):
        await page.get_by_label(label).fill(text)
    await page.get_by_role("button", name="Make the link").click()
    await page.wait_for_url(re.compile(r"/links/\d+$"))
    return page.url.rpartition("/")[2]


@pytest.fixture
async def _second_account(running: Running, tmp_path: Path) -> AsyncIterator[None]:
    """An account at another simulated bank, which takes no payment of anybody's."""
    record = Record(tmp_path / "bank.sqlite")
    async with serving(bank_app(SimulatedAcquirer(Bank(record), base_url=running.address))) as address:
        name, words = f"second-{secrets.token_hex(3)}", ("--kind", "simulator", "--address", address)
        await asyncio.to_thread(running.command, "acquirer", "add", name, *words, "--currencies", "XPF")
        yield
        await asyncio.to_thread(running.command, "acquirer", "disable", name)
    record.close()


@pytest.fixture
async def ids(open_page: OpenPage, running: Running) -> dict[str, Any]:
    """Examples of all that an address may name: a shop where something
    of each kind has happened.
    """
    merchant_id, shipping_id = sorted(one["id"] for one in running.command("merchant", "list"))[:2]
    await buy(open_page, running, "House espresso")
    await buy(open_page, running, "House espresso", "4000000000000259")
    await buy(open_page, running, "Coffee club")
    await buy(open_page, running, "Hand grinder")
    running.command("clock", "advance", str(merchant_id), "8d")
    page, shop = await owners_page(open_page, running), f"/account/{merchant_id}"
    await page.goto(f"{running.address}{shop}/developers/keys")
    await page.get_by_role("button", name="Make new keys").click()
    await page.get_by_role("link", name="I have copied both").click()
    await page.wait_for_url("**/developers")
    subscription_id = await first_id(page, running, f"{shop}/subscriptions", "subscriptions")
    added = running.command("subscription", "item", "add", subscription_id, "5.00", "Set-up")
    return {
        "merchant_id": merchant_id,
        "shipping_id": shipping_id,
        "payment_id": await first_id(page, running, f"{shop}/payments", "payments"),
        "order_id": await first_id(page, running, f"/account/{shipping_id}/deliveries", "deliveries"),
        "subscription_id": subscription_id,
        "item_id": added["item"]["id"],
        "package_id": await first_id(page, running, f"{shop}/subscriptions/packages", "packages"),
        "link_id": await make_link(page, running, shop),
        "move_id": await make_move(page, running, shop),
        "pingback_id": await first_id(page, running, f"{shop}/pingbacks", "pingbacks"),
        "key_id": await first_id(page, running, f"{shop}/developers", "keys"),
        "chargeback_id": running.command("chargeback", "list", str(merchant_id))[0]["id"],
        "person_id": 1,
        "file_id": 1,
        "token": "nothing",
        "path": "nowhere",
    }


@long
@pytest.mark.usefixtures("_second_account")
async def test_every_page_is_for_everybody(open_page: OpenPage, running: Running, ids: dict[str, Any]) -> None:
    nobody = await open_page(running.address + "/account/login")
    wrong = await walk(nobody, running, addresses(account_routes, [Access.anybody], ids))
    wrong += await walk(nobody, running, [*(f"/docs/{slug}" for slug in chapters()), "/docs/search?q=pingback"])
    owner = await owners_page(open_page, running)
    paths = addresses(account_routes, [*Permission, Access.person, Access.halfway], ids)
    goods = f"/account/{ids['merchant_id']}/deliveries/{ids['payment_id']}"
    paths = [f"/account/{ids['shipping_id']}/deliveries/{ids['order_id']}" if path == goods else path for path in paths]
    wrong += await walk(owner, running, paths)
    operator = await operators_page(open_page, running)
    ids["account_id"] = await first_id(operator, running, "/operator/acquirers", "acquirers")
    paid = f"/operator/merchants/{ids['merchant_id']}/payments/{ids['payment_id']}"
    ids["checkout_id"] = await first_id(operator, running, paid, "checkouts")
    searches = [f"/operator/search?q={text}" for text in ("4242", "ada%40example.com", "nothing-is-called-so")]
    wrong += await walk(operator, running, [*addresses(operator_routes, [], ids), *searches])
    assert not wrong, "\n".join(wrong)


@long
@pytest.mark.usefixtures("_second_account")
async def test_every_page_fits_a_phone_in_other_languages(
    open_page: OpenPage, running: Running, ids: dict[str, Any]
) -> None:
    owner, operator = await owners_page(open_page, running), await operators_page(open_page, running)
    ids["account_id"] = await first_id(operator, running, "/operator/acquirers", "acquirers")
    paid = f"/operator/merchants/{ids['merchant_id']}/payments/{ids['payment_id']}"
    ids["checkout_id"] = await first_id(operator, running, paid, "checkouts")
    wrong = []
    for language in ("de", "ar", "ja"):
        wrong += await glance(owner, running, addresses(account_routes, [*Permission, Access.person], ids), language)
        wrong += await glance(operator, running, addresses(operator_routes, [], ids), language)
    assert not wrong, "\n".join(wrong)
