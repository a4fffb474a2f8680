"""Hiding the links that older versions stored in clear:
what is left is a keyed hash, by which they go on working.

In small batches, each a transaction, while the service runs; it may be stopped at any time and
called again. Moves no money.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from paydesk.adapters.vault import Vault
from paydesk.database.pool import Database
from paydesk.database.records import record_of, records_of
from paydesk.database.statements import load_statements
from paydesk.domain.merchants.customer_links import LinkTo, hash_of_old

queries = load_statements(__package__ or "", "hiding_links.sql")

BATCH: Final = 500


@dataclass(frozen=True, slots=True)
class _Linked:
    """A checkout or subscription whose link stands in clear."""

    merchant_id: int
    id: int
    token: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class _Looked:
    """How many mails were looked through, and the last of them."""

    seen: int
    merchant_id: int | None
    id: int | None


async def hide_links(database: Database, vault: Vault) -> int:
    """Put hashes in the place of all links that stand in clear, in mails too; how many.
    The links go on working.
    """
    hidden = 0
    async for rows in _pages(database, LinkTo.CHECKOUT):
        hidden += int(await queries.hide_checkouts(database, **_hashed(vault, LinkTo.CHECKOUT, rows)))
    async for rows in _pages(database, LinkTo.PORTAL):
        await queries.seed_portals(database, **_hashed(vault, LinkTo.PORTAL, rows))
    await _hide_in_mails(database)
    async for rows in _pages(database, LinkTo.PORTAL):
        hidden += int(await queries.hide_portals(database, **_named(rows)))
    return hidden


async def hide_left_links(database: Database, vault: Vault) -> None:
    """The same, if any is left: cheap where none is."""
    if await queries.are_left(database):
        await hide_links(database, vault)


async def _pages(database: Database, to: LinkTo) -> AsyncIterator[list[_Linked]]:
    """Rows whose link stands in clear, page by page."""
    merchant_id, token, is_last = -1, "", False
    while not is_last:
        after = {"after_merchant": merchant_id, "after_token": token, "most": BATCH}
        is_checkout = to is LinkTo.CHECKOUT
        found = queries.read_checkouts(database, **after) if is_checkout else queries.read_portals(database, **after)
        rows = await records_of(_Linked, found)
        is_last = len(rows) < BATCH
        if rows:
            merchant_id, token = rows[-1].merchant_id, rows[-1].token
            yield rows


async def _hide_in_mails(database: Database) -> None:
    last = _Looked(BATCH, -1, -1)
    while last.seen == BATCH:
        last = record_of(
            _Looked,
            await queries.hide_in_mails(database, after_merchant=last.merchant_id, after_id=last.id, most=BATCH),
        )


def _named(rows: Sequence[_Linked]) -> dict[str, object]:
    return {"merchant_ids": [row.merchant_id for row in rows], "ids": [row.id for row in rows]}


def _hashed(vault: Vault, to: LinkTo, rows: Sequence[_Linked]) -> dict[str, object]:
    return _named(rows) | {"hashes": [hash_of_old(vault, to, row.token) for row in rows]}
