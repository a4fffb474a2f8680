"""Merchants' private keys, opened from the vault and kept in memory for a minute."""

from __future__ import annotations

import time
from collections.abc import Iterable

import structlog

from paydesk.adapters.vault import Vault, VaultError
from paydesk.database.pool import Database
from paydesk.database.records import records_of
from paydesk.database.statements import load_statements
from paydesk.domain.merchants.keys import SealedKey, open_key

_SECONDS = 60.0
_MOST = 10_000

queries = load_statements(__package__ or "")
log = structlog.get_logger()


class Keyring:
    """Opens keys in batches; a key is named by its merchant and its id."""

    def __init__(self, database: Database, vault: Vault) -> None:
        self._database = database
        self._vault = vault
        self._kept: dict[tuple[int, int], tuple[float, str]] = {}

    async def private_keys(self, names: Iterable[tuple[int, int]]) -> dict[tuple[int, int], str]:
        """The private keys by their names; one that can't be opened is logged and missing.

        Raises: what the database raises when it is away.
        """
        wanted, now = set(names), time.monotonic()
        if len(self._kept) > _MOST:
            self._kept.clear()
        missing = [name for name in wanted if name not in self._kept or self._kept[name][0] <= now]
        if missing:
            await self._open(missing, now)
        return {name: self._kept[name][1] for name in wanted if name in self._kept}

    async def _open(self, missing: list[tuple[int, int]], now: float) -> None:
        for name in missing:
            self._kept.pop(name, None)
        rows = queries.sealed_keys(
            self._database, merchant_ids=[name[0] for name in missing], key_ids=[name[1] for name in missing]
        )
        for key in await records_of(SealedKey, rows):
            try:
                self._kept[key.merchant_id, key.id] = (now + _SECONDS, open_key(self._vault, key))
            except VaultError as error:
                log.error("pingback_key_not_opened", merchant_id=key.merchant_id, reason=str(error))
