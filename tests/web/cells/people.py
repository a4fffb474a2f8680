"""People who have accounts in both cells, and their browsers."""

from __future__ import annotations

import html
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass

import httpx
from pyotp import TOTP
from tests import set_back
from tests.web.account.conftest import CHEAP, PASSWORD, Visitor, fields_of, keep_cookie
from tests.web.cells.two_cells import HOME, SECOND, Cells

from paydesk.adapters.vault import Vault
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.accounts import signing_in
from paydesk.domain.accounts.access_needs import Client, Gate
from paydesk.domain.accounts.passwords import Passwords
from paydesk.domain.accounts.second_factor import begin_enrolment, confirm_enrolment
from paydesk.domain.accounts.sessions import find_session
from paydesk.domain.cells.directory import enter
from paydesk.domain.cells.entering import account_to_enter, email_to_enter

ARRIVE = "/account/arrive"


@dataclass
class Known:
    """Somebody's account in a cell: logged in in its browser, or not."""

    visitor: Visitor
    shop: str
    secret: str = ""


def gate_of(cells: Cells, cell: int) -> Gate:
    """What letting people into a cell needs, beside its web application."""
    return Gate(cells.databases[cell], cells.vault, Passwords(hasher=CHEAP))


@dataclass(frozen=True)
class Opened:
    """An account that was just opened: the token of its session, the path of its shop, and the
    secret of its second factor, if it has one.
    """

    token: str
    shop: str
    secret: str = ""


async def open_in(
    gate: Gate,
    email: str,
    client: Client,
    *,
    shop: str,
    confirmed: bool = True,
    operator: bool = False,
    second_factor: bool = False,
) -> Opened:
    """Open an account in a cell, with a shop."""
    now = utc_now()
    opened = await signing_in.sign_up(
        gate, shop_name=shop, name="Ada Lovelace", email=email, password=PASSWORD, client=client, now=now
    )
    path = f"/account/{opened.session.merchant_id}"
    if confirmed:
        await set_back.address_confirmed(gate.database, email)
    if operator:
        await set_back.runs_the_deployment(gate.database, email)
    if not second_factor:
        return Opened(opened.token, path)
    token, secret = await add_second_factor(gate, opened.token, client)
    return Opened(token, path, secret)


async def add_second_factor(gate: Gate, token: str, client: Client) -> tuple[str, str]:
    """Set a second factor up in a session; its new token, and the secret."""
    now = utc_now()
    session = await find_session(gate, token, client, now=now)
    secret = (await begin_enrolment(gate, session, now=now)).secret
    return (await confirm_enrolment(gate, session, TOTP(secret).at(now), now=now)).token, secret


async def account(cells: Cells, cell: int, email: str, **how: bool) -> Known:
    """Open an account in a cell, and log its browser there in (`open_in`)."""
    visitor = Visitor(cells.web[cell], Client("192.0.2.10", "httpx", secrets.token_urlsafe(32)), email)
    opened = await open_in(gate_of(cells, cell), email, visitor.client, shop=f"Tea in {cell}", **how)
    keep_cookie(visitor, "paydesk", opened.token)
    visitor.merchant_path = opened.shop
    return Known(visitor, opened.shop, opened.secret)


async def in_both(cells: Cells, **there: bool) -> tuple[Known, Known]:
    """Somebody with an account in each cell, as the directories of both know; in the second cell
    they are not logged in.
    """
    email = f"ada-{secrets.token_hex(6)}@shop.example"
    here, other = await account(cells, HOME, email), await account(cells, SECOND, email, **there)
    cells.web[SECOND].cookies.clear()
    await know(cells, email)
    return here, other


async def know(cells: Cells, email: str) -> None:
    """Have both directories know that a person of the first cell has an account in the second."""
    await enter_both(cells.databases.values(), cells.vault, email)


async def enter_both(directories: Iterable[Database], vault: Vault, email: str) -> None:
    """Enter a person of the first cell who has an account in the second, too."""
    for database in directories:
        await enter(database, [email_to_enter(vault, email)], HOME, now=utc_now())
        await enter(database, [account_to_enter(vault, email, SECOND)], SECOND, now=utc_now())


async def go(visitor: Visitor, cell: int, goal: str = "") -> httpx.Response:
    """Press a button that leads to another cell; the page whose form goes there."""
    page = (await visitor.see("/account/security")).text
    csrf = fields_of(page, "/account/logout")["csrf"]
    return await visitor.web.post("/account/cells/go", data={"csrf": csrf, "cell": str(cell), "next": goal})


def token_in(page: httpx.Response) -> str:
    """The token of a page that goes to another cell."""
    found = re.search(r'name="token" value="([^"]+)"', page.text)
    assert found is not None, page.text
    return html.unescape(found[1])


async def come(cells: Cells, cell: int, token: str, origin: str = "http://pay1.test") -> httpx.Response:
    """What a cell answers to a browser that brings a token from a page of another."""
    headers = {"origin": origin, "sec-fetch-site": "cross-site"} if origin else {}
    return await cells.web[cell].post(ARRIVE, data={"token": token}, headers=headers)
