"""The acquirers that a process can ask: that of the settings, and one for each account that was
added, opened as soon as it is known and again when its key changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

import structlog

from paydesk.adapters.acquirers.interface import Acquirer, OutcomeUnknown
from paydesk.adapters.acquirers.own_ids import own_id_of
from paydesk.adapters.vault import Sealed, Vault
from paydesk.core.errors import Conflict, PaydeskError
from paydesk.database.pool import AWAY, Database
from paydesk.database.records import records_of
from paydesk.domain.acquirers.accounts import PURPOSE, WEBHOOK_PURPOSE, queries
from paydesk.loops.repeating import repeat

log = structlog.get_logger()

EVERY: Final = 2.0
"""Seconds between two looks for changed accounts; a new one serves after several of them."""


_LATELY: Final = timedelta(minutes=1)
"""How far back the list goes that shows whether an account answers."""


@dataclass(frozen=True, slots=True)
class AccountToOpen:
    """What an account is opened with; `key` is empty for a kind that needs none. Notifications to
    it are signed with one of `webhook_secrets`.
    """

    name: str
    kind: str
    address: str
    hosts_pages: bool
    page_domain: str
    key: str = field(repr=False)
    webhook_secrets: tuple[str, ...] = field(default=(), repr=False)


Open = Callable[[AccountToOpen], Acquirer | None]
"""Opens an account; None if this deployment does not serve such a one."""


@dataclass(frozen=True, slots=True)
class _Revision:
    name: str
    live: bool
    revision: int


@dataclass(frozen=True, slots=True)
class _SealedAccount:
    """An account as it rests."""

    id: int
    name: str
    kind: str
    live: bool
    address: str
    hosts_pages: bool
    page_domain: str
    revision: int
    key_sealed: bytes | None = field(repr=False)
    vault_key_id: str | None
    webhook_sealed: bytes | None = field(repr=False)
    webhook_key_id: str | None

    def opened(self, vault: Vault) -> AccountToOpen:
        """What it is opened with. Raises: VaultError."""
        key = self._open(vault, self.key_sealed, self.vault_key_id, PURPOSE)
        secrets = tuple(self._open(vault, self.webhook_sealed, self.webhook_key_id, WEBHOOK_PURPOSE).split())
        return AccountToOpen(self.name, self.kind, self.address, self.hosts_pages, self.page_domain, key, secrets)

    def _open(self, vault: Vault, blob: bytes | None, key_id: str | None, purpose: str) -> str:
        """A sealed value; empty if there is none. Raises: VaultError."""
        if blob is None or key_id is None:
            return ""
        return vault.open(Sealed(key_id, blob), purpose=purpose, merchant_id=0, row_id=self.id).decode()


async def what_opens(database: Database, vault: Vault, name: str) -> AccountToOpen | None:
    """What an account that was added is opened with, if there is such a one. Raises: VaultError."""
    rows = await records_of(_SealedAccount, queries.sealed_accounts(database, names=[name]))
    return rows[0].opened(vault) if rows else None


class NotOpen(OutcomeUnknown, KeyError):
    """An account that this process does not know, or could not open: what became of anything there
    can only be asked by another, or later.
    """


class OpenAcquirers(Mapping[str, Acquirer]):
    """Acquirers by the names that payments keep of them."""

    def __init__(self, vault: Vault, settled: Mapping[str, Acquirer], open_account: Open) -> None:
        """Begin with those of the settings, which stay."""
        self._vault = vault
        self._settled = dict(settled)
        self._open = open_account
        self._added: dict[str, Acquirer] = {}
        self._names: set[str] | None = None
        self._revisions: dict[str, int] = {}
        self._replaced: list[Acquirer] = []
        self._for_tests: set[str] = set()

    def __getitem__(self, name: str) -> Acquirer:
        """The acquirer of this name. Raises: NotOpen, which is a KeyError, too."""
        found = self._settled.get(name) or self._added.get(name)
        if found is None:
            raise NotOpen(f"this process has not opened {name}, so that it can't ask there")
        return found

    def __iter__(self) -> Iterator[str]:
        """The names, those of the settings first; what is added meanwhile is not among them."""
        return iter([*self._settled, *self._added])

    def __len__(self) -> int:
        """How many there are."""
        return len(self._settled) + len(self._added)

    @property
    def are_added(self) -> bool:
        """Whether there is any beside those of the settings, open here and taking payments or not;
        until somebody has looked there may be.
        """
        return self._names is None or bool(self._names)

    def is_for_tests(self, name: str) -> bool:
        """Whether an account that was added takes test payments alone."""
        return name in self._for_tests

    async def identify(self, account: AccountToOpen, *, now: datetime) -> str:
        """Whose account it is that is opened with this, in the acquirer's own words, once it lets
        its list be read. Moves no money.

        Raises: Conflict if this deployment serves no such account; AcquirerRefused, OutcomeUnknown.
        """
        acquirer = self._open(account)
        if acquirer is None:
            raise Conflict("live payments need a live acquirer in the settings first: PAYDESK_LIVE_ACQUIRER")
        try:
            await acquirer.list_purchases(now - _LATELY, "")
            return await own_id_of(acquirer)
        finally:
            await acquirer.close()

    async def look(self, database: Database) -> None:
        """Open what was added, and again what was changed. Raises: one of AWAY."""
        now = {one.name: one.revision for one in await records_of(_Revision, queries.revisions(database))}
        self._names = set(now)
        for gone in self._added.keys() - now.keys():
            # The database was made a copy meanwhile, or an operator has said that it is gone.
            self._replaced.append(self._added.pop(gone))
            self._revisions.pop(gone, None)
        changed = [name for name, revision in now.items() if self._revisions.get(name) != revision]
        if changed:
            rows = await records_of(_SealedAccount, queries.sealed_accounts(database, names=changed))
            for row in rows:
                self._take(row)

    async def unopened(self, database: Database) -> list[str]:
        """The accounts for live payments that this process should have open, and has not.

        Raises: one of AWAY.
        """
        await self.look(database)
        rows = await records_of(_Revision, queries.revisions(database))
        return [one.name for one in rows if one.live and one.name not in self]

    async def look_once(self, database: Database) -> None:
        """The first look, whose failure keeps no process from starting: it is repeated.

        Raises: one of AWAY.
        """
        try:
            await self.look(database)
        except AWAY:
            raise
        except Exception:
            log.exception("accounts at acquirers can't be read yet")

    def _take(self, row: _SealedAccount) -> None:
        try:
            acquirer = self._open(row.opened(self._vault))
        except PaydeskError as error:
            log.error("an account can't be opened", account=row.name, why=error.message)
            return
        self._revisions[row.name] = row.revision
        if not row.live:
            self._for_tests.add(row.name)
        if acquirer is None:
            return
        if row.name in self._added:
            # Whoever is asking by it goes on with it.
            self._replaced.append(self._added[row.name])
        self._added[row.name] = acquirer

    async def run(self, database: Database, stop: asyncio.Event) -> None:
        """Look again and again, until told to stop."""

        async def turn() -> None:
            await self.look(database)

        await repeat("acquirer accounts", turn, stop, rest=EVERY)

    async def close(self) -> None:
        """Let go of all that was added; those of the settings are their maker's."""
        while self._added or self._replaced:
            each = self._replaced.pop() if self._replaced else self._added.popitem()[1]
            await each.close()
