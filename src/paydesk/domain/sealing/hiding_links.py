"""Hiding the links that older versions stored in clear:
what is left is a keyed hash, by which they go on working.

In small batches, each a transaction, while the service runs; it may be stopped at any time and
called again. Moves no money.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final

from paydesk.adapters.vault import Vault
from paydesk.database.pool import Database
from paydesk.database.statements import load_statements
from paydesk.domain.merchants.customer_links import LinkTo, hash_of_old

queries = load_statements(__package__ or "", "hiding_links.sql")

BATCH: Final = 500


async def hide_links(database: Database, vault: Vault) -> int:
    """Put hashes in the place of all links that stand in clear, in mails too; how many.
    The links go on working.
    """
    hidden = 0
    async for rows in _pages(database, queries.read_checkouts):
        hidden += int(await queries.hide_checkouts(database, **_hashed(vault, LinkTo.CHECKOUT, rows)))
    async for rows in _pages(database, queries.read_portals):
        await queries.seed_portals(database, **_hashed(vault, LinkTo.PORTAL, rows))
    await _hide_in_mails(database)
    async for rows in _pages(database, queries.read_portals):
        hidden += int(await queries.hide_portals(database, **_named(rows)))
    return hidden


async def hide_left_links(database: Database, vault: Vault) -> None:
    """The same, if any is left: cheap where none is."""
    if await queries.are_left(database):
        await hide_links(database, vault)


async def _pages(database: Database, read: Any) -> AsyncIterator[list[Mapping[str, Any]]]:
    """Rows whose link stands in clear, page by page."""
    merchant_id, token, is_last = -1, "", False
    while not is_last:
        rows = [row async for row in read(database, after_merchant=merchant_id, after_token=token, most=BATCH)]
        is_last = len(rows) < BATCH
        if rows:
            merchant_id, token = rows[-1]["merchant_id"], rows[-1]["token"]
            yield rows


async def _hide_in_mails(database: Database) -> None:
    merchant_id, mail_id, seen = -1, -1, BATCH
    while seen == BATCH:
        row = await queries.hide_in_mails(database, after_merchant=merchant_id, after_id=mail_id, most=BATCH)
        merchant_id, mail_id, seen = row["merchant_id"], row["id"], row["seen"]


def _named(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {"merchant_ids": [row["merchant_id"] for row in rows], "ids": [row["id"] for row in rows]}


def _hashed(vault: Vault, to: LinkTo, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return _named(rows) | {"hashes": [hash_of_old(vault, to, row["token"]) for row in rows]}
