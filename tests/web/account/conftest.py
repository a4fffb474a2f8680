"""People at the business account's door: browsers that keep cookies and fill in the forms
of real pages.
"""

from __future__ import annotations

import html
import re
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import httpx
import msgspec
import pytest
from argon2 import PasswordHasher

import paydesk.equipment
from paydesk.adapters.vault import Vault
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.accounts import signing_in
from paydesk.domain.accounts.access_needs import Client, Gate
from paydesk.domain.accounts.devices import see_device
from paydesk.domain.accounts.links import AccountLink
from paydesk.domain.accounts.passwords import Passwords
from paydesk.domain.accounts.roles import Role
from paydesk.domain.accounts.team import add_member
from paydesk.domain.mail.queueing import open_facts

PASSWORD = "correct horse battery staple"


@dataclass(slots=True)
class Visitor:
    """A browser at the account's door; `email` is whose it is."""

    web: httpx.AsyncClient
    client: Client
    email: str = ""
    merchant_path: str = ""

    async def see(self, path: str, **headers: str) -> httpx.Response:
        return await self.web.get(path, headers=headers)

    async def send(self, page: str, action: str = "", /, **fields: Any) -> httpx.Response:
        """Open a page and post its form (the one with that action, or the page's own path)
        with some fields changed.
        """
        shown = await self.see(page)
        assert shown.status_code == 200, shown.text
        hidden = fields_of(shown.text, action or page)
        return await self.web.post(action or page, data={**hidden, **fields})


def fields_of(page: str, action: str) -> dict[str, str]:
    """The hidden fields of a form."""
    forms = re.findall(rf'<form method="post" action="{re.escape(action)}".*?</form>', page, re.S)
    assert forms, f"no form for {action} in:\n{page}"
    return {
        name: html.unescape(value)
        for name, value in re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)"', forms[0])
    }


def text_of(answer: httpx.Response) -> str:
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", answer.text)))


def leads_to(answer: httpx.Response) -> str:
    assert answer.status_code == 303, text_of(answer)
    return answer.headers["location"]


CHEAP = PasswordHasher(time_cost=1, memory_cost=64, parallelism=1)
"""Passwords cost next to nothing here; what they cost is tested where they are hashed."""


@pytest.fixture(autouse=True)
def quick_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The service under test hashes cheaply, too."""
    monkeypatch.setattr(paydesk.equipment, "Passwords", partial(Passwords, hasher=CHEAP))


@pytest.fixture
def gate(database: Database, vault: Vault) -> Gate:
    """What letting people in needs, beside the service."""
    return Gate(database, vault, Passwords(hasher=CHEAP))


ADDRESSES = (f"198.51.{number // 250}.{number % 250}" for number in range(250 * 250))
"""Where visitors call from, nobody from where somebody did before: tries are counted by address."""

OpenVisitor = Callable[[], Awaitable[Visitor]]
SignUp = Callable[..., Awaitable[Visitor]]
Join = Callable[[Visitor, Role], Awaitable[Visitor]]


@pytest.fixture
def stranger(open_web: Callable[..., Awaitable[httpx.AsyncClient]]) -> OpenVisitor:
    """A browser of somebody who is not logged in, calling from an address of its own."""

    async def opener() -> Visitor:
        address = next(ADDRESSES)
        return Visitor(await open_web(address=address), Client(address, "httpx", secrets.token_urlsafe(32)))

    return opener


def keep_cookie(visitor: Visitor, name: str, value: str) -> None:
    """Put a cookie into a browser, as the service would."""
    visitor.web.cookies.set(name, value, domain=visitor.web.base_url.host, path="/")


@pytest.fixture
def sign_up(stranger: OpenVisitor, gate: Gate) -> SignUp:
    """Somebody who has opened an account, with a shop, and is logged in; what the pages for that
    do is tested with them.
    """

    async def sign(shop_name: str = "Corner Shop") -> Visitor:
        visitor = await stranger()
        visitor.email = f"ada-{secrets.token_hex(6)}@shop.example"
        opened = await signing_in.sign_up(
            gate,
            shop_name=shop_name,
            name="Ada Lovelace",
            email=visitor.email,
            password=PASSWORD,
            client=visitor.client,
            now=utc_now(),
        )
        await see_device(gate, opened.session, visitor.client.device, now=utc_now())
        keep_cookie(visitor, "paydesk", opened.token)
        keep_cookie(visitor, "paydesk-device", visitor.client.device)
        visitor.merchant_path = f"/account/{opened.session.merchant_id}"
        return visitor

    return sign


@pytest.fixture
async def owner(sign_up: SignUp) -> Visitor:
    return await sign_up()


@pytest.fixture
def join(sign_up: SignUp, database: Database) -> Join:
    """Somebody who is in another's team, in a role."""

    async def into(team: Visitor, role: Role) -> Visitor:
        visitor = await sign_up("Side Business")
        person_id = await database.fetchval("select id from person where email = $1", visitor.email)
        await add_member(database, int(team.merchant_path.split("/")[2]), person_id, role, now=utc_now())
        visitor.merchant_path = team.merchant_path
        return visitor

    return into


LinkInMail = Callable[[str], Awaitable[str]]


@pytest.fixture
def link_in_mail(database: Database, vault: Vault) -> LinkInMail:
    """The path of the link in the newest mail with one to an address."""

    async def read(email: str) -> str:
        row = await database.fetchrow(
            "select kind, facts from mail where lower(recipient) = lower($1) and facts ? 'token'"
            " order by id desc limit 1",
            email,
        )
        paths = {
            "confirm_email": AccountLink.email,
            "reset_password": AccountLink.password,
            "invitation": AccountLink.invitation,
        }
        return paths[row["kind"]].at("", str(open_facts(vault, msgspec.json.decode(row["facts"]))["token"]))

    return read
