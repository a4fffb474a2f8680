"""Adding and changing accounts at acquirers: by operators alone, with a line in the audit log that
never has the key. Moves no money.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final
from urllib.parse import urlsplit

import asyncpg

from paydesk.adapters.acquirers.interface import AcquirerRefused, OutcomeUnknown
from paydesk.adapters.vault import Sealed
from paydesk.core.errors import Conflict, Malformed, NotFound
from paydesk.core.money import parse_currency
from paydesk.core.paging import read_id
from paydesk.core.wording import worded
from paydesk.database.statements import Connection
from paydesk.domain.accounts.audit import Action, Actor, record
from paydesk.domain.acquirers.accounts import (
    KINDS,
    NAME,
    PURPOSE,
    WEBHOOK_PURPOSE,
    AcquirerAccount,
    account_named,
    print_of,
    queries,
)
from paydesk.domain.acquirers.opening import AccountToOpen
from paydesk.domain.operations import own_accounts
from paydesk.domain.payments.desk import Desk

_DOMAIN: Final = re.compile(r"[a-z0-9-]+(\.[a-z0-9-]+)+")
_LONGEST_KEY: Final = 300
_LATELY: Final = timedelta(minutes=1)
_SECRET: Final = re.compile(r"whsec_[!-~]{1,200}")
_MOST_SECRETS: Final = 4


@dataclass(frozen=True, slots=True)
class NewAccount:
    """An account as it is typed; `for_merchant` is an id, or empty for all merchants, and
    `webhook_secrets` are separated by commas or spaces.
    """

    name: str
    kind: str
    key: str = field(default="", repr=False)
    address: str = ""
    currencies: str = ""
    for_merchant: str = ""
    hosts_pages: bool = False
    page_domain: str = ""
    webhook_secrets: str = field(default="", repr=False)


async def add_account(desk: Desk, actor: Actor, typed: NewAccount, *, now: datetime) -> AcquirerAccount:
    """Add an account that answers; it takes payments a few seconds later, when every process knows
    it.

    Raises: Malformed, naming the field; Conflict if it is there already; NotFound without its
        merchant.
    """
    _check(typed)
    credential, currencies = typed.key.strip() or typed.address.strip(), parse_currencies(typed.currencies)
    merchant_id = _merchant_id(typed.for_merchant)
    await _require_another(desk, credential)
    own_id = await own_accounts.identify(desk, _to_open(typed), now=now)
    printed = print_of(desk.vault, credential)
    await own_accounts.require_new(desk, typed.name, typed.kind, own_id, printed)
    account_id = int(await queries.next_id(desk.database))
    sealed = _sealed(desk, typed.key.strip(), account_id, PURPOSE)
    webhook = _sealed(desk, " ".join(_webhook_secrets(typed.webhook_secrets, typed.kind)), account_id, WEBHOOK_PURPOSE)
    try:
        async with desk.database.acquire() as connection, connection.transaction():
            added = await queries.add_account(
                connection,
                id=account_id,
                name=typed.name,
                kind=typed.kind,
                live=KINDS[typed.kind],
                for_merchant_id=merchant_id,
                currencies=list(currencies),
                address=typed.address.strip(),
                hosts_pages=typed.hosts_pages,
                page_domain=typed.page_domain,
                key_sealed=sealed.blob if sealed else None,
                vault_key_id=sealed.key_id if sealed else None,
                key_print=printed,
                webhook_sealed=webhook.blob if webhook else None,
                webhook_key_id=webhook.key_id if webhook else None,
                now=now,
            )
            if added is None:
                raise Conflict(worded('there is an account "%(name)s" already, or one with this key', name=typed.name))
            await own_accounts.keep(connection, typed.name, own_id)
            whose = {"for_merchant": merchant_id} if merchant_id is not None else {}
            details: dict[str, object] = {"kind": typed.kind, "currencies": " ".join(currencies) or "all", **whose}
            await record(connection, actor, Action.acquirer_added, now=now, subject=typed.name, details=details)
            return await _found(connection, typed.name)
    except asyncpg.ForeignKeyViolationError:
        raise NotFound(f"there is no merchant {merchant_id}") from None


async def set_enabled(desk: Desk, actor: Actor, name: str, *, enabled: bool, now: datetime) -> AcquirerAccount:
    """Let an account take new payments, or none any more; its older ones it serves in any case.

    A second call changes nothing. Raises: NotFound.
    """
    async with desk.database.acquire() as connection, connection.transaction():
        await _found(connection, name)
        if await queries.set_enabled(connection, name=name, enabled=enabled) is not None:
            details: dict[str, object] = {"takes new payments": enabled}
            await record(connection, actor, Action.acquirer_changed, now=now, subject=name, details=details)
        return await _found(connection, name)


async def give_up(desk: Desk, actor: Actor, name: str, words: str, *, now: datetime) -> AcquirerAccount:
    """Say that an account can't be read any more, and never will be: it is asked for nothing, so
    that it holds nobody up; to enable it again takes that back.

    What it took is not compared with our books from then on, and what is open there stays so. A
    second call changes nothing. Raises: Malformed without words; NotFound; Conflict if it takes new
    payments, or its list can be read.
    """
    if not words.strip():
        raise Malformed("say why it can't be read any more: the words stand in the log", "words")
    account = await _found(desk.database, name)
    if account.enabled:
        raise Conflict(f'"{name}" takes new payments: disable it first (paydesk acquirer disable {name})')
    if account.gone_at is None and await _answers(desk, name, now=now):
        raise Conflict(f'the list of "{name}" can be read: what differs there is taken with paydesk hold accept')
    async with desk.database.acquire() as connection, connection.transaction():
        if await queries.account_gone(connection, name=name, because=words.strip()) is not None:
            details: dict[str, object] = {"gone": words.strip()}
            await record(connection, actor, Action.acquirer_changed, now=now, subject=name, details=details)
        return await _found(connection, name)


async def _answers(desk: Desk, name: str, *, now: datetime) -> bool:
    """Whether an account lets its list be read; one that can't be opened does not."""
    try:
        await desk.acquirers[name].list_purchases(now - _LATELY, "")
    except (AcquirerRefused, OutcomeUnknown):
        return False
    return True


async def set_currencies(desk: Desk, actor: Actor, name: str, typed: str, *, now: datetime) -> AcquirerAccount:
    """Say in which currencies an account takes new payments; none named: in all.

    Raises: Malformed; NotFound.
    """
    currencies = parse_currencies(typed)
    async with desk.database.acquire() as connection, connection.transaction():
        await _found(connection, name)
        if await queries.set_currencies(connection, name=name, currencies=list(currencies)) is not None:
            details: dict[str, object] = {"currencies": " ".join(currencies) or "all"}
            await record(connection, actor, Action.acquirer_changed, now=now, subject=name, details=details)
        return await _found(connection, name)


async def set_key(desk: Desk, actor: Actor, name: str, key: str, *, now: datetime) -> AcquirerAccount:
    """Give an account another secret key of the same account, which every process asks by soon.

    Raises: Malformed; NotFound; Conflict if it needs none, or another account has it.
    """
    account = await _found(desk.database, name)
    if not account.has_key:
        raise Conflict(worded('"%(name)s" has no key', name=name))
    key = _checked_key(key, account.kind)
    printed = print_of(desk.vault, key)
    if printed in desk.usual_prints:
        raise Conflict(worded("this key is that of the settings' own account"))
    opened = AccountToOpen(name, account.kind, account.address, account.hosts_pages, account.page_domain, key)
    own_id = await own_accounts.identify(desk, opened, now=now)
    await own_accounts.require_same(desk, name, account.kind, own_id, printed)
    sealed = desk.vault.seal(key.encode(), purpose=PURPOSE, merchant_id=0, row_id=account.id)
    async with desk.database.acquire() as connection, connection.transaction():
        try:
            changed = await queries.set_key(
                connection, name=name, key_sealed=sealed.blob, vault_key_id=sealed.key_id, key_print=printed
            )
        except asyncpg.UniqueViolationError:
            changed = None
        if changed is None:
            raise Conflict(worded("another account has this key"))
        await own_accounts.keep(connection, name, own_id)
        details: dict[str, object] = {"key": "another one"}
        await record(connection, actor, Action.acquirer_changed, now=now, subject=name, details=details)
        return await _found(connection, name)


async def set_webhook_secrets(desk: Desk, actor: Actor, name: str, typed: str, *, now: datetime) -> AcquirerAccount:
    """Say by which secrets notifications to an account are signed, which every process checks them
    by soon; none: they are not believed.

    Raises: Malformed; NotFound.
    """
    account = await _found(desk.database, name)
    secrets = _webhook_secrets(typed, account.kind)
    sealed = _sealed(desk, " ".join(secrets), account.id, WEBHOOK_PURPOSE)
    blob, key_id = (sealed.blob, sealed.key_id) if sealed else (None, None)
    async with desk.database.acquire() as connection, connection.transaction():
        await queries.set_webhook_secrets(connection, name=name, webhook_sealed=blob, webhook_key_id=key_id)
        details: dict[str, object] = {"secrets of notifications": len(secrets)}
        await record(connection, actor, Action.acquirer_changed, now=now, subject=name, details=details)
        return await _found(connection, name)


def parse_currencies(typed: str) -> tuple[str, ...]:
    """The currencies that are named, each once. Raises: Malformed."""
    named = typed.replace(",", " ").upper().split()
    return tuple(sorted({parse_currency(one, "currencies") for one in named}))


def _check(typed: NewAccount) -> None:
    """Make sure that an account may be one. Raises: Malformed, naming the field."""
    if typed.kind not in KINDS:
        raise Malformed(worded("the kind is one of %(kinds)s", kinds=", ".join(KINDS)), "kind")
    if not NAME.fullmatch(typed.name) or typed.name in KINDS:
        reason = worded(
            "a name has 3 to 32 of a-z, 0-9 and -, begins with a letter, and is none of %(kinds)s",
            kinds=", ".join(KINDS),
        )
        raise Malformed(reason, "name")
    if typed.kind == "simulator":
        _check_address(typed.address.strip())
        if typed.key.strip() or typed.hosts_pages or typed.page_domain or typed.webhook_secrets.strip():
            raise Malformed(worded("a simulated bank has an address alone, and no key"), "key")
        return
    _checked_key(typed.key, typed.kind)
    _webhook_secrets(typed.webhook_secrets, typed.kind)
    if typed.kind == "mollie" and (typed.hosts_pages or typed.page_domain):
        raise Malformed(worded("at Mollie customers always pay on its own page, at its own domain"), "page_domain")
    if typed.address.strip():
        raise Malformed(worded("this kind has no address of its own"), "address")
    if typed.page_domain and not (typed.hosts_pages and _DOMAIN.fullmatch(typed.page_domain)):
        raise Malformed(worded("this must be a domain like pay.shop.example, of an account with pages"), "page_domain")


def _check_address(address: str) -> None:
    """Make sure of the address of a simulated bank. Raises: Malformed."""
    try:
        parts = urlsplit(address)
    except ValueError:
        raise Malformed(worded("a simulated bank needs its address, like http://127.0.0.1:9001"), "address") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query:
        raise Malformed(worded("a simulated bank needs its address, like http://127.0.0.1:9001"), "address")


def _checked_key(key: str, kind: str) -> str:
    """A secret key that may be one; nothing of it is repeated. Raises: Malformed."""
    key, begins = key.strip(), ("live_", "test_") if kind == "mollie" else ("sk_", "rk_")
    if not key.startswith(begins) or not (key.isascii() and key.isprintable()) or len(key) > _LONGEST_KEY:
        raise Malformed(
            worded("this must be the account's secret key, which begins with %(begins)s", begins=" or ".join(begins)),
            "key",
        )
    return key


def _merchant_id(typed: str) -> int | None:
    if not typed.strip():
        return None
    if (merchant_id := read_id(typed.strip())) is None:
        raise Malformed(worded("this must be the merchant's id"), "for_merchant")
    return merchant_id


def _to_open(typed: NewAccount) -> AccountToOpen:
    return AccountToOpen(
        typed.name, typed.kind, typed.address.strip(), typed.hosts_pages, typed.page_domain, typed.key.strip()
    )


def _sealed(desk: Desk, secret: str, account_id: int, purpose: str) -> Sealed | None:
    return desk.vault.seal(secret.encode(), purpose=purpose, merchant_id=0, row_id=account_id) if secret else None


def _webhook_secrets(typed: str, kind: str) -> tuple[str, ...]:
    """The secrets by which notifications are signed; nothing of them is repeated.

    Raises: Malformed.
    """
    named = tuple(typed.replace(",", " ").split())
    if named and kind != "stripe":
        raise Malformed(worded("only Stripe signs notifications"), "webhook_secrets")
    if len(named) > _MOST_SECRETS or not all(_SECRET.fullmatch(one) for one in named):
        raise Malformed(worded("these must be signing secrets, which begin with whsec_"), "webhook_secrets")
    return named


async def _require_another(desk: Desk, credential: str) -> None:
    """Make sure that an account is not there yet: its list would be read twice, and what it has
    taken for payments that our books forgot. Raises: Conflict.
    """
    printed = print_of(desk.vault, credential)
    if printed in desk.usual_prints or await queries.key_is_taken(desk.database, key_print=printed):
        raise Conflict(worded("this account is there already, under this very key or address"))


async def _found(connection: Connection, name: str) -> AcquirerAccount:
    account = await account_named(connection, name)
    if account is None:
        raise NotFound(f'there is no account "{name[:40]}" that was added')
    return account
