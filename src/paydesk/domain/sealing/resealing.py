"""Moving every sealed value to the newest key of the vault, so that an older one may go.
Moves no money.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import msgspec
import structlog

from paydesk.adapters.vault import Sealed, Vault, VaultError
from paydesk.database.pool import Database
from paydesk.database.statements import load_statements
from paydesk.domain.accounts import second_factor
from paydesk.domain.business import profiles
from paydesk.domain.mail.queueing import reseal_facts, sealed_under
from paydesk.domain.merchants import keys
from paydesk.domain.payments.stored_cards import CARD_NUMBER

queries = load_statements(__package__ or "")
log = structlog.get_logger()

BATCH: Final = 500
"""Values that one transaction moves; whoever stops this in between begins with those
that are left."""

BEFORE_ALL: Final = (-1, -1)


@dataclass(frozen=True, slots=True)
class Place:
    """A column that holds sealed values: what of, who needs it, and how it is read and written.

    `purpose` is what its values are sealed for; None says that they stand among other facts
    in JSON.
    """

    name: str
    table: str
    column: str
    purpose: str | None
    needed: str


PLACES: Final = (
    Place("private_keys", "merchant_key", "private_key_sealed", keys.PURPOSE, "to sign pingbacks and verify forms"),
    Place("card_numbers", "card", "number_sealed", CARD_NUMBER, "to charge running subscriptions"),
    Place("second_factors", "person", "totp_sealed", second_factor.PURPOSE, "to check the codes of a second factor"),
    Place("bank_accounts", "business_profile", "iban_sealed", profiles.PURPOSE, "to pay merchants out"),
    Place(
        "proposed_accounts", "profile_change", "iban_sealed", profiles.PURPOSE, "to accept merchants' other accounts"
    ),
    Place("mail_facts", "mail", "facts", None, "to write links into mails that are not sent yet"),
)
"""Every column in which the vault's values rest; a test compares them with the schema."""


@dataclass(frozen=True, slots=True)
class Held:
    """How many values of a place rest under each key;
    those under keys that are not configured can't be opened.
    """

    place: Place
    by_key: Mapping[str, int]

    def older_than(self, key_id: str) -> int:
        """How many are not under this key."""
        return sum(count for key, count in self.by_key.items() if key != key_id)


async def held(database: Database) -> list[Held]:
    """What rests where, and under which keys."""
    found = []
    for place in PLACES:
        rows = getattr(queries, f"count_{place.name}")(database)
        found.append(Held(place, {row["key_id"]: row["values"] for row in [row async for row in rows]}))
    return found


async def reseal(database: Database, vault: Vault, *, report: Callable[[], None] = lambda: None) -> dict[str, int]:
    """Seal everything anew that is not under the newest key; how many values of each place moved.

    In small batches, each a transaction, while the service runs; it may be stopped at any time and
    called again. What can't be opened stays as it is; `held` counts it. `report` is called for each
    value that was looked at.
    """
    return {place.name: await _reseal(database, vault, place, report) for place in PLACES}


async def _reseal(database: Database, vault: Vault, place: Place, report: Callable[[], None]) -> int:
    moved, (merchant_id, row_id) = 0, BEFORE_ALL
    read, write = getattr(queries, f"read_{place.name}"), getattr(queries, f"write_{place.name}")
    is_complete = False
    while not is_complete:
        key_id = vault.current_key_id
        asked = read(database, after_merchant=merchant_id, after_id=row_id, key_id=key_id, most=BATCH)
        rows = [row async for row in asked]
        opened = [(row, anew) for row in rows if (anew := _anew(vault, place, row)) is not None]
        if opened:
            moved += await write(database, **_written(place, opened, key_id))
        for _ in rows:
            report()
        is_complete = len(rows) < BATCH
        if rows:
            merchant_id, row_id = rows[-1]["merchant_id"], rows[-1]["id"]
    return moved


def _anew(vault: Vault, place: Place, row: Mapping[str, Any]) -> Any:
    """A row's value under the newest key; None if it can't be opened."""
    try:
        if place.purpose is None:
            return msgspec.json.encode(reseal_facts(vault, msgspec.json.decode(row["facts"]))).decode()
        bound = {"purpose": place.purpose, "merchant_id": row["merchant_id"], "row_id": row["id"]}
        return vault.seal(vault.open(Sealed(row["key_id"], row["sealed"]), **bound), **bound).blob
    except VaultError as error:
        # Those under a key that is not there may be many, and are counted in the end.
        if all(vault.knows(key_id) for key_id in _keys_in(place, row)):
            log.error("a sealed value stays under its key", place=place.name, id=row["id"], why=error.message)
        return None


def _keys_in(place: Place, row: Mapping[str, Any]) -> list[str]:
    return [row["key_id"]] if place.purpose else sealed_under(msgspec.json.decode(row["facts"]))


def _written(place: Place, opened: Sequence[tuple[Mapping[str, Any], Any]], key_id: str) -> dict[str, Any]:
    names = {"merchant_ids": [row["merchant_id"] for row, _ in opened], "ids": [row["id"] for row, _ in opened]}
    values = [anew for _, anew in opened]
    if place.purpose is None:
        return names | {"were": [row["facts"] for row, _ in opened], "facts": values}
    return names | {"were": [row["sealed"] for row, _ in opened], "blobs": values, "key_id": key_id}


async def merchants_with_numbers(database: Database) -> list[int]:
    """The merchants of whose customers card numbers are kept."""
    return [row["merchant_id"] async for row in queries.merchants_with_numbers(database)]


async def forget_fingerprints(database: Database) -> None:
    """Erase fingerprints of card numbers, which nothing reads:
    with the digits that stay they leave few to try.
    """
    await queries.forget_fingerprints(database)


async def forget_spare_numbers(database: Database, merchant_id: int, keepers: Sequence[str], *, now: datetime) -> int:
    """Erase a merchant's card numbers that nothing needs; how many.
    `keepers` are acquirers that keep cards themselves.

    None is left by this version, whose statements erase what they end the need for; a process of
    the version before, which ran on after the migration, may have left some.
    """
    return int(await queries.forget_spare_numbers(database, merchant_id=merchant_id, keepers=list(keepers), now=now))
