"""What tests break on purpose, to see that it is found: books that say what never came to pass,
and books that have forgotten.

The statements that write it stand here alone. What only sets the time back, or what others have
left, is in `tests/set_back.py`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from tests.databases import unguarded

from paydesk.database.pool import Database
from paydesk.domain.merchants.shop import Shop


async def say(database: Any, table: str, of: Mapping[str, Any], **columns: Any) -> None:
    """Rows of which these columns are so (`of`; none: all rows) say something else,
    whatever came to pass.
    """
    told = ", ".join(f"{name} = ${place}" for place, name in enumerate(columns, 1))
    which = " and ".join(f"{name} = ${place}" for place, name in enumerate(of, len(columns) + 1))
    await database.execute(f"update {table} set {told} where {which or 'true'}", *columns.values(), *of.values())


async def forget(database: Database, merchant_id: int, *tables: str, **of: object) -> None:
    """A merchant's rows of these tables are gone, whatever they belong to, or those of which these
    columns are so.
    """
    which = "".join(f" and {name} = ${place}" for place, name in enumerate(of, 2))
    async with database.acquire() as connection, connection.transaction(), unguarded(connection):
        for table in tables:
            await connection.execute(f"delete from {table} where merchant_id = $1{which}", merchant_id, *of.values())


_OF_NOBODY = {
    "customer": "insert into customer (merchant_id, live, email, first_name, last_name, username, country, created_at)"
    " values (0, false, '', '', '', '', '', now()) returning id",
    "card": "insert into card (merchant_id, live, vault_key_id, bin, last4, brand, exp_month, exp_year, holder,"
    " created_at) values (0, false, '', '', '', 'visa', 1, 2030, '', now()) returning id",
}


async def leave_without_merchant(database: Database, table: str) -> int:
    """A customer or a card of a merchant that does not exist; its id."""
    return int(await database.fetchval(_OF_NOBODY[table]))


async def forget_payments(database: Database, shop: Shop) -> None:
    """The database has forgotten all that a merchant was paid."""
    tables = ("pingback", "ledger_entry", "movement", "payment_attempt", "payment")
    await forget(database, shop.merchant_id, *tables)


async def paid_elsewhere(database: Database) -> None:
    """What was paid so far was paid at a bank that is none of this test's."""
    await say(database, "payment_attempt", {"state": "approved"}, acquirer="elsewhere")


async def forget_account(database: Database, name: str) -> None:
    """The database is from before an account at an acquirer was added."""
    for table, column in (("acquirer_account", "name"), ("acquirer_own_id", "account"), ("reconciliation", "acquirer")):
        await database.execute(f"delete from {table} where {column} = $1", name)


async def no_alarms(database: Database, *kinds: str) -> None:
    """The operator's list is empty, or has none of these kinds."""
    await database.execute("delete from alarm where $1::text[] = '{}' or kind = any($1)", list(kinds))


async def no_proceeds(database: Database) -> None:
    """No acquirer has told of its balance yet."""
    tables = "balance_line", "bank_payout", "operator_entry", "proceeds_finding", "balance_reading", "acquirer_fee"
    await emptied(database, *tables)


async def emptied(database: Database, *tables: str) -> None:
    """Nothing is left in these tables, as after a crash in those that are unlogged."""
    await database.execute(f"truncate {', '.join(tables)}")


async def never_reconciled(database: Database) -> None:
    """No acquirer's list was ever compared with our books."""
    await _empty(database, "reconciliation")


async def nothing_given_back(database: Database) -> None:
    """No purchase that our books lack was ever given back."""
    await _empty(database, "purchase_given_back")


async def forget_own_ids(database: Database) -> None:
    """Nobody has asked yet whose accounts are asked."""
    await _empty(database, "acquirer_own_id")


async def nothing_kept(database: Database) -> None:
    """No acquirer is to let go of anything, nor was there a subscription for which it keeps any."""
    await _empty(database, "kept_release")
    await say(database, "subscription", {}, network_reference="")


async def _empty(database: Database, table: str) -> None:
    await database.execute(f"delete from {table}")


@asynccontextmanager
async def refusing(database: Database, table: str, condition: str) -> AsyncIterator[None]:
    """The database takes no row of a table that meets a condition, for the length of a block."""
    await database.execute(f"alter table {table} add constraint odd check (not ({condition})) not valid")
    try:
        yield
    finally:
        await database.execute(f"alter table {table} drop constraint odd")


async def no_accounts(database: Database) -> None:
    """What accounts at acquirers there are, no process opens."""
    await say(
        database,
        "acquirer_account",
        {},
        kind="gone",
        live=False,
        enabled=False,
        key_sealed=None,
        vault_key_id=None,
        key_print=None,
        webhook_sealed=None,
        webhook_key_id=None,
    )
    await forget_own_ids(database)
