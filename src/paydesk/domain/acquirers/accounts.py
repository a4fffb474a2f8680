"""The accounts at acquirers that were added beside the one of the settings."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from paydesk.adapters.vault import Vault
from paydesk.database.pool import Database
from paydesk.database.records import record_if_any, records_of
from paydesk.database.statements import Connection, load_statements

queries = load_statements(__package__ or "")

PURPOSE: Final = "acquirer key"
"""What the secret keys of accounts are sealed for."""

KINDS: Final = {"simulator": False, "stripe": True, "mollie": True}
"""The kinds of accounts, and whether such a one takes live payments."""

WEBHOOK_PURPOSE: Final = "acquirer webhook secret"
"""What the secrets are sealed for by which acquirers sign notifications to accounts."""

_PRINT: Final = "account at an acquirer"

NAME: Final = re.compile(r"[a-z][a-z0-9-]{1,30}[a-z0-9]")
"""Names of accounts; that of a kind is the one of the settings."""


@dataclass(frozen=True, slots=True)
class AcquirerAccount:
    """An account at an acquirer; its key is not in here.

    `for_merchant_id` is the only merchant that it serves, None for all; no `currencies` means all;
    `own_id` is what its acquirer calls it, empty until that is known. Since `gone_at` it is not
    asked for anything, because it can't be.
    """

    id: int
    name: str
    kind: str
    live: bool
    for_merchant_id: int | None
    currencies: list[str]
    address: str
    hosts_pages: bool
    page_domain: str
    enabled: bool
    created_at: datetime
    has_key: bool
    has_webhook_secret: bool
    own_id: str
    gone_at: datetime | None = None


async def list_accounts(database: Database) -> list[AcquirerAccount]:
    """All accounts, in the order in which they are asked to take a payment."""
    return await records_of(AcquirerAccount, queries.accounts(database))


async def account_named(database: Connection, name: str) -> AcquirerAccount | None:
    """The account of a name, if there is one."""
    return record_if_any(AcquirerAccount, await queries.account_named(database, name=name))


async def not_here(database: Connection) -> frozenset[str]:
    """Accounts that are not this cell's, though a process may have them open: they come with their
    merchant, or have gone with it.
    """
    return frozenset(await queries.not_here(database))


async def tags_of(database: Connection, name: str) -> frozenset[str]:
    """The tags in marks that say that a purchase at an account is ours: of this deployment, and of
    the cells that the account came from.
    """
    return frozenset(await queries.tags_of(database, account=name))


def print_of(vault: Vault, credential: str) -> bytes:
    """By what an account is known again, whose credential is its key, or the address of a bank.

    What stands behind a key after a blank (Mollie's access token) is not of it.
    """
    return vault.fingerprint(credential.strip().partition(" ")[0].rstrip("/"), purpose=_PRINT)
