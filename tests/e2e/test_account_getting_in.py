"""The business account's shell and ways in, in a real browser:
with and without JavaScript, light, dark, on a phone.
"""

from __future__ import annotations

import base64
import re
import secrets
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any

import msgspec
import pyotp
import pytest
from argon2 import PasswordHasher
from playwright.async_api import Page, expect
from starlette.types import ASGIApp, Receive, Scope, Send
from tests import set_back
from tests.conftest import accept_waiting, propose_change, submit_profile
from tests.e2e.looks import flaws, violations
from tests.lengths import long, one_of

import paydesk.equipment
from paydesk.adapters.vault import Vault
from paydesk.app import create_app
from paydesk.database.pool import Database
from paydesk.domain.accounts.links import AccountLink
from paydesk.domain.accounts.passwords import Passwords
from paydesk.domain.mail.queueing import open_facts
from paydesk.domain.merchants.merchant import Merchant
from paydesk.settings import Settings

pytestmark = pytest.mark.browser

OpenPage = Callable[..., Coroutine[Any, Any, Page]]
Serve = Callable[[ASGIApp], AbstractAsyncContextManager[str]]

PASSWORD = "correct horse battery staple"
PHONE = {"viewport": {"width": 320, "height": 640}}
RED_DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="


@pytest.fixture
async def base(
    serve: Serve, settings: Settings, bank: object, database: Database, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[str]:
    """The web application at an address of its own; hashing passwords costs little there,
    and nobody is paused.
    """
    await database.execute("delete from entry_pause")
    cheap = PasswordHasher(time_cost=1, memory_cost=64, parallelism=1)
    monkeypatch.setattr(paydesk.equipment, "Passwords", partial(Passwords, hasher=cheap))
    running: dict[str, Any] = {}

    async def delegate(scope: Scope, receive: Receive, send: Send) -> None:
        await running["app"]({**scope, "state": dict(running["state"])}, receive, send)

    async with serve(delegate) as address:
        app = create_app(settings.model_copy(update={"base_url": address}))
        async with app.router.lifespan_context(app) as state:
            running.update(app=app, state=state)
            yield address


@pytest.fixture
def complaints() -> list[str]:
    """What browsers complain about: violations of the content security policy,
    and errors of scripts.
    """
    return []


@pytest.fixture
def sign_up(
    open_page: OpenPage, base: str, complaints: list[str]
) -> Callable[..., Coroutine[Any, Any, tuple[Page, str]]]:
    """Opens an account in a browser of its own; the page, and whose e-mail address it is."""

    async def sign(**options: Any) -> tuple[Page, str]:
        email = f"ada-{secrets.token_hex(6)}@shop.example"
        page = await open_page(f"{base}/account/signup", **options)
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        await page.get_by_label("Name of your shop").fill("Corner Shop")
        await page.get_by_label("Your name").fill("Ada Lovelace")
        await page.get_by_label("E-mail address").fill(email)
        await page.get_by_label("Password").fill(PASSWORD)
        await page.get_by_role("button", name="Open the account").click()
        await page.wait_for_url(re.compile(r"/account/\d+/"))
        return page, email

    return sign


SignUp = Callable[..., Coroutine[Any, Any, tuple[Page, str]]]


@pytest.fixture
def link_to(database: Database, vault: Vault, base: str) -> Callable[[str], Coroutine[Any, Any, str]]:
    """The link in the newest mail to an address."""

    async def read(email: str) -> str:
        row = await database.fetchrow(
            "select kind, facts from mail where recipient = $1 and facts ? 'token' order by id desc limit 1", email
        )
        paths = {
            "confirm_email": AccountLink.email,
            "reset_password": AccountLink.password,
            "invitation": AccountLink.invitation,
        }
        return paths[row["kind"]].at(base, str(open_facts(vault, msgspec.json.decode(row["facts"]))["token"]))

    return read


LinkTo = Callable[[str], Coroutine[Any, Any, str]]


def merchant_path(page: Page) -> str:
    match = re.search(r"/account/\d+", page.url)
    assert match is not None, page.url
    return match[0]


async def open_user_menu(page: Page) -> None:
    await page.get_by_label("Your account, Ada Lovelace").click()


async def set_up_second_factor(page: Page, base: str) -> tuple[pyotp.TOTP, list[str]]:
    await page.goto(f"{base}/account/security")
    await page.get_by_role("link", name="Set it up").click()
    await expect(page.get_by_role("img", name="QR code")).to_be_visible()
    app = pyotp.TOTP(await page.get_by_label("Secret", exact=True).inner_text())
    await page.get_by_role("textbox", name="Code").fill(app.now())
    await page.get_by_role("button", name="Set it up").click()
    return app, await page.locator(".codes li").all_inner_texts()


@long
@pytest.mark.parametrize("script", one_of(2, [True, False]))
async def test_a_merchant_signs_up_logs_out_and_comes_back(
    sign_up: SignUp, link_to: LinkTo, base: str, complaints: list[str], script: bool
) -> None:
    page, email = await sign_up(java_script_enabled=script)
    await expect(page.get_by_text("Nothing on this page is real money")).to_be_visible()
    await page.goto(await link_to(email))
    await page.get_by_role("button", name="Confirm the address").click()
    await expect(page.get_by_role("status")).to_contain_text("is confirmed")
    await open_user_menu(page)
    await page.get_by_role("button", name="Log out").click()
    await expect(page.get_by_role("status")).to_contain_text("logged out")
    await page.goto(f"{base}/account/security")
    await page.get_by_label("E-mail address").fill(email)
    await page.get_by_label("Password").fill("wrong password here")
    await page.get_by_role("button", name="Log in").click()
    await expect(page.get_by_role("alert")).to_contain_text("E-mail address or password is wrong")
    await page.get_by_label("Password").fill(PASSWORD)
    await page.get_by_role("button", name="Log in").click()
    await page.wait_for_url(f"{base}/account/security")
    assert [text for text in complaints if "401" not in text] == []


@long
async def test_a_second_factor_and_a_recovery_code_that_was_kept(
    sign_up: SignUp, open_page: OpenPage, base: str
) -> None:
    page, email = await sign_up()
    _, codes = await set_up_second_factor(page, base)
    assert len(codes) == 10
    async with page.expect_download() as kept:
        await page.get_by_role("link", name="Download them").click()
    path = await (await kept.value).path()
    assert all(code in path.read_text() for code in codes)
    other = await open_page(f"{base}/account/login")
    await other.get_by_label("E-mail address").fill(email)
    await other.get_by_label("Password").fill(PASSWORD)
    await other.get_by_role("button", name="Log in").click()
    await expect(other.get_by_role("heading", name="Your second factor")).to_be_visible()
    await other.get_by_role("textbox", name="Code").fill(codes[3])
    await other.keyboard.press("Enter")
    await other.wait_for_url(re.compile(r"/account/\d+/"))
    await other.goto(f"{base}/account/security")
    await expect(other.get_by_text("9 recovery codes are left.")).to_be_visible()
    row = other.get_by_role("row").filter(has=other.get_by_role("button", name="End", exact=True))
    await row.first.get_by_role("button", name="End", exact=True).click()
    await page.goto(f"{base}/account/security")
    await expect(page.get_by_role("heading", name="Log in")).to_be_visible()


@long
async def test_what_matters_is_carried_out_after_the_password(sign_up: SignUp, database: Database, base: str) -> None:
    page, _ = await sign_up()
    await page.goto(f"{base}/account/security")
    await set_back.password_long_ago(database)
    await page.get_by_label("New address").fill("new@shop.example")
    await page.get_by_role("button", name="Change the address").click()
    await expect(page.get_by_role("heading", name="Confirm it's you")).to_be_visible()
    await page.get_by_label("Password").fill(PASSWORD)
    await page.get_by_role("button", name="Confirm").click()
    await expect(page.get_by_role("status")).to_contain_text("We have sent a link to new@shop.example")


@long
@pytest.mark.parametrize("script", one_of(2, [True, False]))
async def test_a_colleague_joins_and_cannot_see_what_the_role_forbids(
    sign_up: SignUp, open_page: OpenPage, link_to: LinkTo, base: str, script: bool
) -> None:
    page, own = await sign_up(java_script_enabled=script)
    team = f"{base}{merchant_path(page)}/settings/team"
    await page.goto(await link_to(own))
    await page.locator("main form button").first.click()
    email = f"grace-{secrets.token_hex(6)}@shop.example"
    await page.goto(team)
    await page.get_by_label("E-mail address").fill(email)
    await page.get_by_label("Viewer").check()
    await page.get_by_role("button", name="Send the invitation").click()
    await expect(page.get_by_role("status")).to_contain_text(email)
    colleague = await open_page(await link_to(email), java_script_enabled=script)
    await colleague.get_by_label("Your name").fill("Grace Hopper")
    await colleague.get_by_label("Choose a password").fill(PASSWORD)
    await colleague.get_by_role("button", name="Join the team").click()
    await expect(colleague.get_by_role("status")).to_contain_text("Welcome to the team")
    await colleague.goto(team)
    await expect(colleague.get_by_role("heading", name="Your role doesn't allow this")).to_be_visible()
    await expect(colleague.locator("main")).to_contain_text("Owner")


@long
@pytest.mark.parametrize("script", one_of(2, [True, False]))
async def test_menus_work_on_a_phone(sign_up: SignUp, base: str, script: bool) -> None:
    page, _ = await sign_up(java_script_enabled=script, **PHONE)
    await page.goto(f"{base}/account/security")
    menu = page.get_by_label("Main, on small screens")
    await expect(menu).to_be_hidden()
    await page.get_by_label("Menu", exact=True).click()
    await menu.get_by_role("link", name="Settings").click()
    await expect(page.get_by_role("heading", name="Shop", exact=True)).to_be_visible()


@long
async def test_the_keyboard_reaches_everything(sign_up: SignUp, base: str) -> None:
    page, _ = await sign_up()
    await page.goto(f"{base}/account/security")
    await page.keyboard.press("Tab")
    await expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    await page.keyboard.press("Enter")
    assert await page.evaluate("document.activeElement.id") == "content"
    user = page.get_by_label("Your account, Ada Lovelace")
    await user.focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("button", name="Log out")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("button", name="Log out")).to_be_hidden()
    await expect(user).to_be_focused()


@long
@pytest.mark.parametrize("script", one_of(2, [True, False]))
async def test_a_theme_is_chosen_whatever_the_system_has(sign_up: SignUp, script: bool) -> None:
    page, _ = await sign_up(color_scheme="dark", java_script_enabled=script)
    scheme = "getComputedStyle(document.documentElement).colorScheme"
    assert await page.evaluate(scheme) == "dark"
    await open_user_menu(page)
    async with page.expect_navigation():
        await page.get_by_role("button", name="Light").click()
    assert await page.evaluate(scheme) == "light"


@long
async def test_who_waits_for_the_operator_sees_the_answer_without_asking(
    sign_up: SignUp, link_to: LinkTo, base: str, database: Database, complaints: list[str]
) -> None:
    page, email = await sign_up()
    profile = f"{base}{merchant_path(page)}/settings/profile"
    await page.goto(await link_to(email))
    await page.get_by_role("button", name="Confirm the address").click()
    await page.goto(profile)
    save = page.get_by_role("button", name="Save this step")
    for label in ("Legal name", "What the business does", "What you sell"):
        await page.get_by_label(label).fill("Corner Shop")
    await page.get_by_label("Website").fill("https://shop.example")
    await save.click()
    for label in ("Street and number", "Postal code", "City"):
        await page.get_by_label(label).fill("Corner Shop")
    await page.get_by_label("Country").select_option("DE")
    await save.click()
    await page.get_by_label("Support e-mail").fill("help@shop.example")
    await save.click()
    await page.get_by_label("Account holder").fill("Corner Shop")
    await page.get_by_label("IBAN").fill("DE89 3704 0044 0532 0130 00")
    await save.click()
    await page.get_by_role("button", name="Ask to go live").click()
    await expect(page.get_by_text("We look at your profile")).to_be_visible()
    await accept_waiting(database, int(merchant_path(page).split("/")[2]))
    await expect(page.get_by_text("You may take real payments")).to_be_visible(timeout=30_000)
    assert complaints == []


@long
@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=long)])
async def test_a_checkout_in_the_merchants_colours_can_be_read(
    open_page: OpenPage,
    base: str,
    database: Database,
    merchant: Merchant,
    signed_form: Callable[..., dict[str, Any]],
    complaints: list[str],
    scheme: str,
) -> None:
    await database.execute(
        "insert into branding (merchant_id, accent, logo, logo_type, changed_at) values ($1, '#c2185b', $2, $3, now())",
        merchant.id,
        base64.b64decode(RED_DOT),
        "image/png",
    )
    page = await open_page("about:blank", color_scheme=scheme)
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    answer = await page.request.post(f"{base}/payment/form", form=signed_form(), max_redirects=0)
    await page.goto(base + answer.headers["location"])
    assert await page.locator(".shop img").evaluate("image => image.naturalWidth") == 1
    button = page.get_by_role("button", name=re.compile("^Pay"))
    ground = await button.evaluate("button => getComputedStyle(button).backgroundColor")
    assert (ground == "rgb(194, 24, 91)") == (scheme == "light")
    assert await violations(page) == []
    assert complaints == []


@long
async def test_everybody_can_use_the_account_whatever_state_it_is_in(
    sign_up: SignUp, base: str, database: Database
) -> None:
    """Pages that an address alone does not bring up;
    the others are walked by test_console_pages.
    """
    page, _ = await sign_up()
    shop = f"{base}{merchant_path(page)}/settings"
    await page.goto(f"{shop}/profile?step=bank")
    await page.get_by_label("IBAN").fill("DE00")
    await page.get_by_role("button", name="Save this step").click()
    await expect(page.get_by_label("IBAN")).to_be_focused()
    found = await flaws(page)
    await submit_profile(database, int(merchant_path(page).split("/")[2]))
    await accept_waiting(database, int(merchant_path(page).split("/")[2]))
    await propose_change(database, int(merchant_path(page).split("/")[2]), "Quick Casino of the Northern Islands")
    await page.goto(f"{shop}/profile")
    await expect(page.get_by_text("Waiting for review")).to_be_visible()
    found += await flaws(page)
    await page.goto(f"{shop}/team")
    await page.get_by_role("link", name="Leave").click()
    await expect(page.get_by_role("heading", level=1)).to_contain_text("out of the team?")
    found += await flaws(page)
    for place in ("999999/settings/team", "security/second-factor", "confirm"):
        await page.goto(f"{base}/account/{place}")
        found += await flaws(page)
    await page.goto(f"{base}/account/security")
    for opened in (".switcher > summary", ".user > summary"):
        await page.locator(opened).click()
        found += await flaws(page)
    async with page.expect_navigation():
        await page.get_by_role("switch").click()
    found += await flaws(page)
    assert not found, "\n".join(found)


@long
async def test_everybody_can_get_in(sign_up: SignUp, link_to: LinkTo, base: str) -> None:
    page, email = await sign_up()
    await page.goto(await link_to(email))
    found = await flaws(page)
    await set_up_second_factor(page, base)
    found += await flaws(page)
    await page.context.clear_cookies()
    await page.goto(f"{base}/account/email/gone")
    await page.get_by_role("button", name="Confirm the address").click()
    await expect(page.get_by_text("This link was used already")).to_be_visible()
    found += await flaws(page)
    await page.goto(f"{base}/account/signup")
    await page.evaluate("document.querySelector('form').noValidate = true")
    await page.get_by_role("button", name="Open the account").click()
    await expect(page.get_by_label("E-mail address")).to_be_focused()
    found += await flaws(page)
    await page.goto(f"{base}/account/forgotten")
    await page.get_by_label("E-mail address").fill(email)
    await page.get_by_role("button", name="Send the link").click()
    await expect(page.get_by_role("status")).to_be_visible()
    found += await flaws(page)
    await page.goto(await link_to(email))
    found += await flaws(page)
    await page.goto(f"{base}/account/login")
    await page.get_by_label("E-mail address").fill(email)
    await page.get_by_label("Password").fill(PASSWORD)
    await page.get_by_role("button", name="Log in").click()
    await expect(page.get_by_role("heading", name="Your second factor")).to_be_visible()
    found += await flaws(page)
    assert not found, "\n".join(found)
