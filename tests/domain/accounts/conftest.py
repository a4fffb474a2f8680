"""People of a test's own: each with an e-mail address and a client address
that no other test uses.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any

import msgspec
import pytest
from tests.domain.accounts.someone import PASSWORD, CountingHasher, Someone, confirmed, new_client, new_email

from paydesk.adapters.vault import Vault
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.accounts.access_needs import Gate
from paydesk.domain.accounts.joining import sign_up_invited
from paydesk.domain.accounts.passwords import Passwords
from paydesk.domain.accounts.roles import Role
from paydesk.domain.accounts.signing_in import sign_up
from paydesk.domain.accounts.team import invite
from paydesk.domain.mail.queueing import open_facts


@pytest.fixture
def hasher() -> CountingHasher:
    return CountingHasher()


@pytest.fixture
def gate(database: Database, vault: Vault, hasher: CountingHasher) -> Gate:
    return Gate(database, vault, Passwords(hasher=hasher))


SignUp = Callable[..., Awaitable[Someone]]


@pytest.fixture
def signed_up(gate: Gate) -> SignUp:
    """Signs somebody new up, with a shop of their own."""

    async def make(*, now: datetime | None = None, shop_name: str = "Corner Shop") -> Someone:
        email, client = new_email(), new_client()
        made = await sign_up(
            gate,
            email=email,
            password=PASSWORD,
            name="Ada Lovelace",
            shop_name=shop_name,
            client=client,
            now=now or utc_now(),
        )
        return Someone(gate, email, client, made.token, made.session)

    return make


@pytest.fixture
async def ada(signed_up: SignUp) -> Someone:
    return await signed_up()


@pytest.fixture
async def stranger(signed_up: SignUp) -> Someone:
    """The owner of another shop."""
    return await signed_up(shop_name="Other Shop")


Mails = Callable[[str], Awaitable[list[dict[str, Any]]]]


@pytest.fixture
def mails(database: Database, vault: Vault) -> Mails:
    """The mails to an address, oldest first, as their templates see them."""

    async def read(address: str) -> list[dict[str, Any]]:
        rows = await database.fetch("select * from mail where recipient = $1 order by id", address)
        return [{**dict(row), "facts": open_facts(vault, msgspec.json.decode(row["facts"]))} for row in rows]

    return read


IsStored = Callable[[str, str], Awaitable[bool]]


@pytest.fixture
def is_stored(database: Database) -> IsStored:
    """Whether a text can be read anywhere in a table."""

    async def look(text: str, table: str) -> bool:
        rows = f"select exists (select from {table} t where position($1 in t::text) > 0)"
        return bool(await database.fetchval(rows, text))

    return look


Join = Callable[[Someone, Role], Awaitable[Someone]]


@pytest.fixture
def joined(gate: Gate, mails: Mails) -> Join:
    """Invites somebody new into an owner's team, who signs up by the mail's link."""

    async def make(owner: Someone, role: Role) -> Someone:
        email, client = new_email(), new_client()
        await invite(gate, confirmed(owner.session), email=email, role=role, now=utc_now())
        token = (await mails(email))[-1]["facts"]["token"]
        made = await sign_up_invited(gate, token, name="Bob", password=PASSWORD, client=client, now=utc_now())
        return Someone(gate, email, client, made.token, made.session)

    return make
