"""Browsers in which an address was proved: for one shop and one side of it, for an hour, or
remembered for 30 days.

A cookie's token is exchanged as it is used. Who comes with an older one has a stolen copy, or was
robbed of it: the session ends for both. So that it is found by the oldest copy too, a token names
its session, with a proof that we made that name.
"""

from __future__ import annotations

import hmac
import re
import secrets
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from paydesk.adapters.vault import Vault
from paydesk.database.pool import Database
from paydesk.database.records import record_if_any
from paydesk.database.statements import load_statements
from paydesk.domain.merchants.shop import Shop

queries = load_statements(__package__ or "")

REMEMBERED = timedelta(days=30)
NOT_REMEMBERED = timedelta(hours=1)

ROTATED_AFTER = timedelta(minutes=10)
"""A token that is older is exchanged when it is used."""

_NAMED: Final = re.compile(r"([0-9]{1,18})\.([0-9a-f]{24})\..*")

OVERLAP = timedelta(minutes=1)
"""How long the token before still counts: pages of one browser are loaded side by side."""


@dataclass(frozen=True, slots=True)
class NewSession:
    """A session that has just begun; `token` goes into the browser's cookie, for `max_age`
    seconds or, if that is None, until it is closed.
    """

    token: str = field(repr=False)
    max_age: int | None


@dataclass(frozen=True, slots=True)
class Shopper:
    """Who proved an address in this browser; `fresh` replaces the cookie's token."""

    shop: Shop
    id: int
    session_id: int
    email: str
    seed: str = field(repr=False)
    fresh: NewSession | None = None


@dataclass(frozen=True, slots=True)
class _Session:
    id: int
    shopper_id: int
    email: str
    seed: str
    is_current: bool
    rotated_at: datetime
    remembered: bool
    expires_at: datetime


def lifetime(remembered: bool) -> timedelta:
    """How long a browser is known."""
    return REMEMBERED if remembered else NOT_REMEMBERED


def max_age(remembered: bool) -> int | None:
    """How many seconds a browser keeps the cookie of a session that begins; None: until it is
    closed.
    """
    return int(REMEMBERED.total_seconds()) if remembered else None


def new_secret() -> str:
    """The part of a token that nobody has seen."""
    return secrets.token_urlsafe(32)


def in_cookie(vault: Vault, shop: Shop, session_id: int, secret: str, *, max_age: int | None) -> NewSession:
    """A session as its browser keeps it."""
    return NewSession(f"{session_id}.{_proof(vault, shop, session_id)}.{secret}", max_age)


def token_hash(vault: Vault, shop: Shop, token: str) -> bytes:
    """By what a token is found, which is its secret; it is of one side of one shop."""
    secret = token.rpartition(".")[2]
    return vault.fingerprint(f"{shop.merchant_id} {shop.live} {secret}", purpose="shopper session")


def _proof(vault: Vault, shop: Shop, session_id: int) -> str:
    name = f"{shop.merchant_id} {shop.live} {session_id}"
    return vault.fingerprint(name, purpose="shopper session's name").hex()[:24]


def _named(vault: Vault, shop: Shop, token: str) -> int | None:
    """The session that a token of ours names; None for one that we have not made."""
    match = _NAMED.fullmatch(token)
    if match is None:
        return None
    return int(match[1]) if hmac.compare_digest(match[2], _proof(vault, shop, int(match[1]))) else None


async def find_shopper(
    database: Database, vault: Vault, shop: Shop, token: str, *, renew: bool, now: datetime
) -> Shopper | None:
    """Who is known in the browser that came with this token, at this shop; now is real time.

    With `renew` a token that was used for a while is exchanged for a fresh one.
    """
    side = {"merchant_id": shop.merchant_id, "live": shop.live}
    hashed = token_hash(vault, shop, token)
    row = record_if_any(_Session, await queries.find_session(database, **side, token=hashed, now=now))
    if row is None:
        # A copy from before the last exchange but one, or of a session that is over.
        if (named := _named(vault, shop, token)) is not None:
            await queries.end_session(database, **side, id=named)
        return None
    if not row.is_current and now > row.rotated_at + OVERLAP:
        await queries.end_session(database, **side, id=row.id)
        return None
    fresh = None
    if renew and row.is_current and now > row.rotated_at + ROTATED_AFTER:
        left = int((row.expires_at - now).total_seconds()) if row.remembered else None
        fresh = in_cookie(vault, shop, row.id, new_secret(), max_age=left)
        successor = token_hash(vault, shop, fresh.token)
        if await queries.rotate(database, **side, id=row.id, token=hashed, fresh=successor, now=now) is None:
            fresh = None
    return Shopper(shop, row.shopper_id, row.id, row.email, row.seed, fresh)


async def forget_browser(database: Database, shopper: Shopper) -> None:
    """This browser is not known any more."""
    shop = shopper.shop
    await queries.end_session(database, merchant_id=shop.merchant_id, live=shop.live, id=shopper.session_id)


async def forget_browsers(database: Database, shop: Shop, shopper_id: int) -> None:
    """No browser is known any more in which this address was proved."""
    await queries.end_sessions(database, merchant_id=shop.merchant_id, live=shop.live, shopper_id=shopper_id)


async def forget_past(database: Database, *, now: datetime) -> None:
    """Drop codes, counts and sessions whose time is over; now is real."""
    await queries.forget_past(database, now=now)
