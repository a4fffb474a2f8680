"""Proving an address: a code of six digits goes there by mail, and the browser that asked for it
sends it back.

A code is sent to whatever address is typed, known or not, and only who has it learns what is kept.
Nobody is looked up before a code was right, and the same statements run for every address. So
nothing tells whether a shop knows somebody: no word, and not how long an answer takes.
"""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from paydesk.adapters.vault import Vault
from paydesk.database.pool import Database
from paydesk.database.records import record_if_any
from paydesk.database.statements import Connection, load_statements
from paydesk.domain.mail.kinds import MailKind
from paydesk.domain.mail.queueing import queue_mail, seal_fact
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.shoppers.counting import count_code
from paydesk.domain.shoppers.sessions import NewSession, in_cookie, lifetime, max_age, new_secret, token_hash

queries = load_statements(__package__ or "")

CODE_LIFETIME = timedelta(minutes=10)
DIGITS = 6
MOST_TRIES = 5


@dataclass(frozen=True, slots=True)
class CodeSent:
    """A code is on its way, as far as anybody is told: `browser` is the secret of the browser
    that asked.
    """

    browser: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class _Code:
    """A code that may still be right."""

    email: str
    code: bytes = field(repr=False)


async def ask_for_code(
    database: Database,
    vault: Vault,
    shop: Shop,
    email: str,
    *,
    mail_to: str,
    client: str,
    language: str,
    now: datetime,
) -> CodeSent:
    """Send a code to an address, for the browser that asks; one sent before is worth nothing from
    now on. Moves no money.

    `mail_to` is the address itself, but for test data; `client` is the address that it is asked
    from; now is real time. An address that has had its codes for the day gets none, keeps the one
    before, and who asks is told nothing of it: the answer, and the work for it, are the same.

    Raises: TooManyCodes for the caller or the shop.
    """
    browser, code = secrets.token_urlsafe(32), f"{secrets.randbelow(10**DIGITS):0{DIGITS}}"
    asking = _browser(vault, shop, browser)
    side = {"merchant_id": shop.merchant_id, "live": shop.live}
    async with database.acquire() as connection, connection.transaction():
        gets_one = await count_code(connection, vault, shop, mail_to, client, now=now)
        address = _address(vault, shop, email if gets_one else browser)
        await queries.end_codes(connection, **side, address=address, browser=asking)
        # What nobody gets, nobody can guess either: it is bound to a browser that is none.
        hashed = code_hash(vault, shop, browser if gets_one else secrets.token_urlsafe(32), email, code)
        await queries.begin_code(
            connection,
            **side,
            address=address,
            browser=asking,
            email=email,
            code=hashed,
            expires_at=now + CODE_LIFETIME,
        )
        to, once = mail_to if gets_one else "", hashed.hex()[:32]
        await _send(connection, vault, shop, to, code, language=language, once=once, now=now)
    return CodeSent(browser)


async def _send(
    connection: Connection,
    vault: Vault,
    shop: Shop,
    mail_to: str,
    code: str,
    *,
    language: str,
    once: str,
    now: datetime,
) -> None:
    """Queue the mail with a code; to nobody if `mail_to` is empty."""
    await queue_mail(
        connection,
        merchant_id=shop.merchant_id,
        live=shop.live,
        kind=MailKind.shopper_code,
        to=mail_to,
        language=language,
        facts={"token": seal_fact(vault, code, row_id=shop.merchant_id), "minutes": CODE_LIFETIME.seconds // 60},
        once=f"shopper code {once}",
        now=now,
    )


async def prove(
    database: Database, vault: Vault, shop: Shop, browser: str, typed: str, *, remember: bool, now: datetime
) -> NewSession | None:
    """Judge a code that was typed; the session that begins if it is right. Moves no money.

    The try is counted before it is judged. A code works once, for the browser that asked, and its
    session has a new token: one that somebody else put into the browser is worth nothing.
    """
    side = {"merchant_id": shop.merchant_id, "live": shop.live}
    hashed = _browser(vault, shop, browser)
    known = record_if_any(_Code, await queries.count_try(database, **side, browser=hashed, most=MOST_TRIES, now=now))
    if known is None or not hmac.compare_digest(known.code, code_hash(vault, shop, browser, known.email, typed)):
        return None
    secret = new_secret()
    session_id = await queries.prove(
        database,
        **side,
        browser=hashed,
        code=known.code,
        email=known.email,
        token=token_hash(vault, shop, secret),
        remembered=remember,
        expires_at=now + lifetime(remember),
        now=now,
    )
    return None if session_id is None else in_cookie(vault, shop, session_id, secret, max_age=max_age(remember))


def code_hash(vault: Vault, shop: Shop, browser: str, email: str, code: str) -> bytes:
    """What is stored of a code: worth nothing without the browser's secret and the deployment's."""
    text = f"{shop.merchant_id} {shop.live} {browser} {email.lower()} {code}"
    return vault.fingerprint(text, purpose="shopper code")


def _browser(vault: Vault, shop: Shop, browser: str) -> bytes:
    return vault.fingerprint(f"{shop.merchant_id} {shop.live} {browser}", purpose="shopper browser")


def _address(vault: Vault, shop: Shop, email: str) -> bytes:
    return vault.fingerprint(f"{shop.merchant_id} {shop.live} {email.lower()}", purpose="shopper address")
