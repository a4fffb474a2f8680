"""Somebody with an account, as tests see them: password, browser, session,
and the secret of their app.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal

import pyotp
from argon2 import PasswordHasher
from argon2.profiles import CHEAPEST

from paydesk.core.clock import utc_now
from paydesk.core.paging import Page
from paydesk.domain.accounts.access_needs import Client, Gate
from paydesk.domain.accounts.audit import list_own_entries
from paydesk.domain.accounts.second_factor import begin_enrolment, confirm_enrolment
from paydesk.domain.accounts.sessions import LoggedIn, Session, find_session
from paydesk.domain.accounts.signing_in import log_in

PASSWORD = "a long enough sentence"


def confirmed(session: Session) -> Session:
    """The session as it is found once its person's address is confirmed."""
    return replace(session, person=replace(session.person, email_confirmed_at=utc_now()))


class CountingHasher(PasswordHasher):
    """Cheap unless it is told the costs; counts how often a password was compared with a hash."""

    def __init__(self, **costs: int) -> None:
        names = ("time_cost", "memory_cost", "parallelism", "hash_len", "salt_len")
        super().__init__(**{**{name: getattr(CHEAPEST, name) for name in names}, **costs})
        self.compared: list[str] = []

    def verify(self, hash: str | bytes, password: str | bytes) -> Literal[True]:  # noqa: A002 (the library's name)
        self.compared.append(str(hash))
        return super().verify(hash, password)


@dataclass
class Someone:
    """A person with their password, browser and session, and the secret of their app
    if they have one.
    """

    gate: Gate
    email: str
    client: Client
    token: str
    session: Session
    password: str = PASSWORD
    secret: str = ""
    codes: tuple[str, ...] = field(default=())

    @property
    def id(self) -> int:
        return self.session.person.id

    @property
    def merchant_id(self) -> int:
        assert self.session.merchant_id is not None
        return self.session.merchant_id

    async def again(self, *, now: datetime | None = None) -> Session:
        """The session as the next request finds it."""
        self.session = await find_session(self.gate, self.token, self.client, now=now or utc_now())
        return self.session

    async def log_in(self, *, password: str | None = None, now: datetime | None = None) -> LoggedIn:
        given = self.password if password is None else password
        return await log_in(self.gate, email=self.email, password=given, client=self.client, now=now or utc_now())

    async def enrol(self, *, now: datetime | None = None) -> None:
        """Set up a second factor."""
        at = now or utc_now()
        self.secret = (await begin_enrolment(self.gate, self.session, now=at)).secret
        enrolled = await confirm_enrolment(self.gate, self.session, self.code(at), now=at)
        self.codes, self.token = enrolled.codes, enrolled.token

    def code(self, at: datetime) -> str:
        return pyotp.TOTP(self.secret).at(at)

    async def done(self) -> list[str]:
        """What the audit log says of the person, oldest first."""
        entries = await list_own_entries(self.gate.database, self.id, Page(100))
        return [str(entry.action) for entry in reversed(entries)]


def new_email() -> str:
    return f"p{secrets.token_hex(6)}@people.example"


def new_client() -> Client:
    part = secrets.token_bytes(6).hex(":", 2)
    return Client(f"2001:db8:{part}::1", "Browser/1.0")
