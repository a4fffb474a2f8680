"""Moving every sealed value to the newest key of the vault, so that an older one may go.
Moves no money.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

import msgspec
import structlog

from paydesk.adapters.vault import Sealed, Vault, VaultError
from paydesk.database.pool import Database
from paydesk.database.records import records_of
from paydesk.database.statements import Connection, load_statements
from paydesk.domain.accounts import second_factor
from paydesk.domain.acquirers import accounts
from paydesk.domain.business import profiles
from paydesk.domain.cells.fencing import Fenced
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
class SealedColumn:
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
    SealedColumn(
        "private_keys", "merchant_key", "private_key_sealed", keys.PURPOSE, "to sign pingbacks and verify forms"
    ),
    SealedColumn(
        "card_numbers", "card", "number_sealed", CARD_NUMBER, "to charge running subscriptions and saved cards"
    ),
    SealedColumn(
        "second_factors", "person", "totp_sealed", second_factor.PURPOSE, "to check the codes of a second factor"
    ),
    SealedColumn("bank_accounts", "business_profile", "iban_sealed", profiles.PURPOSE, "to pay merchants out"),
    SealedColumn(
        "proposed_accounts", "profile_change", "iban_sealed", profiles.PURPOSE, "to accept merchants' other accounts"
    ),
    SealedColumn("acquirer_keys", "acquirer_account", "key_sealed", accounts.PURPOSE, "to ask acquirers for payments"),
    SealedColumn(
        "webhook_secrets",
        "acquirer_account",
        "webhook_sealed",
        accounts.WEBHOOK_PURPOSE,
        "to verify notifications of acquirers",
    ),
    SealedColumn("mail_facts", "mail", "facts", None, "to write links into mails that are not sent yet"),
)
"""Every column in which the vault's values rest; a test compares them with the schema."""


@dataclass(frozen=True, slots=True)
class KeysInUse:
    """How many values of a place rest under each key;
    those under keys that are not configured can't be opened.
    """

    place: SealedColumn
    by_key: Mapping[str, int]

    def older_than(self, key_id: str) -> int:
        """How many are not under this key."""
        return sum(count for key, count in self.by_key.items() if key != key_id)


@dataclass(frozen=True, slots=True)
class _Count:
    """How many values of a place rest under a key."""

    key_id: str
    values: int


@dataclass(frozen=True, slots=True)
class _SealedValue:
    """A value that is not under the newest key, as it was read."""

    merchant_id: int
    id: int
    was: bytes = field(repr=False)
    key_id: str


@dataclass(frozen=True, slots=True)
class _SealedFacts:
    """Facts of a mail, as JSON, not all of whose secrets are under the newest key."""

    merchant_id: int
    id: int
    was: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class _Merchant:
    """A merchant of whose customers card numbers are kept."""

    merchant_id: int


async def held(database: Database) -> list[KeysInUse]:
    """What rests where, and under which keys."""
    found = []
    for place in PLACES:
        counts = await records_of(_Count, getattr(queries, f"count_{place.name}")(database))
        found.append(KeysInUse(place, {count.key_id: count.values for count in counts}))
    return found


async def reseal(database: Database, vault: Vault, *, report: Callable[[], None] = lambda: None) -> dict[str, int]:
    """Seal everything anew that is not under the newest key; how many values of each place moved.

    In small batches, each a transaction, while the service runs; it may be stopped at any time and
    called again. What can't be opened stays as it is, and what is of a merchant who goes to another
    cell or comes from there; `held` counts it. `report` is called for each value that was looked
    at.
    """
    return {place.name: await _reseal(database, vault, place, report) for place in PLACES}


async def _reseal(database: Database, vault: Vault, place: SealedColumn, report: Callable[[], None]) -> int:
    moved, after = 0, BEFORE_ALL
    is_complete = False
    while not is_complete:
        key_id = vault.current_key_id
        rows = await _read(database, place, after, key_id)
        opened = [(row, anew) for row in rows if (anew := _anew(vault, place, row)) is not None]
        if opened:
            moved += await _write(database, place, opened, key_id)
        for _ in rows:
            report()
        is_complete = len(rows) < BATCH
        if rows:
            after = (rows[-1].merchant_id, rows[-1].id)
    return moved


async def _write(
    database: Database,
    place: SealedColumn,
    opened: Sequence[tuple[_SealedValue | _SealedFacts, bytes | str]],
    key_id: str,
) -> int:
    """Write values that are sealed anew, but for those of merchants of whom nothing is written now,
    who may have a million; how many.
    """
    write = getattr(queries, f"write_{place.name}")
    try:
        return int(await write(database, **_written(place, opened, key_id)))
    except Fenced as error:
        whose = {row.merchant_id for row, _ in opened}
        if len(opened) == 1 or (len(whose) == 1 and place.name in OF_MERCHANTS):
            left = {"place": place.name, "merchant_id": min(whose), "values": len(opened)}
            log.warning("sealed values stay under their key", **left, why=str(error))
            return 0
    half = len(opened) // 2
    return sum([await _write(database, place, part, key_id) for part in (opened[:half], opened[half:])])


OF_MERCHANTS: Final = ("private_keys", "card_numbers", "bank_accounts", "proposed_accounts", "mail_facts")
"""The places whose values are a merchant's."""


async def hand_over(connection: Connection, opens: Vault, seals: Vault, merchant_id: int) -> int:
    """Seal for another vault what the caller's transaction has brought of a merchant's; how many
    values. Nobody else writes them.

    Raises: VaultError if one can't be opened.
    """
    return sum(
        [
            await _hand_over(connection, opens, seals, place, merchant_id)
            for place in PLACES
            if place.name in OF_MERCHANTS
        ]
    )


async def _hand_over(connection: Connection, opens: Vault, seals: Vault, place: SealedColumn, merchant_id: int) -> int:
    handed, after, is_complete = 0, -1, False
    while not is_complete:
        rows = await _brought(connection, place, merchant_id, after)
        if rows:
            anew = [(row, _sealed_anew(opens, seals, place, row)) for row in rows]
            write = getattr(queries, f"write_{place.name}")
            handed += await write(connection, **_written(place, anew, seals.current_key_id))
            after = rows[-1].id
        is_complete = len(rows) < BATCH
    return handed


async def _brought(
    connection: Connection, place: SealedColumn, merchant_id: int, after: int
) -> Sequence[_SealedValue | _SealedFacts]:
    """The next rows of a place that the transaction has brought, in the order of their ids."""
    asked = {"merchant_id": merchant_id, "after_id": after, "most": BATCH}
    if place.purpose is None:
        return await records_of(_SealedFacts, queries.find_brought_facts(connection, **asked))
    return await records_of(_SealedValue, getattr(queries, f"brought_{place.name}")(connection, **asked))


async def _read(
    database: Database, place: SealedColumn, after: tuple[int, int], key_id: str
) -> Sequence[_SealedValue | _SealedFacts]:
    """The place's next rows, in the order of the table's own key, that are not under this key."""
    asked = {"after_merchant": after[0], "after_id": after[1], "key_id": key_id, "most": BATCH}
    if place.purpose is None:
        return await records_of(_SealedFacts, queries.find_mail_facts(database, **asked))
    return await records_of(_SealedValue, getattr(queries, f"read_{place.name}")(database, **asked))


def _anew(vault: Vault, place: SealedColumn, row: _SealedValue | _SealedFacts) -> bytes | str | None:
    """A row's value under the newest key; None if it can't be opened."""
    try:
        return _sealed_anew(vault, vault, place, row)
    except VaultError as error:
        # Those under a key that is not there may be many, and are counted in the end.
        if all(vault.knows(key_id) for key_id in _keys_in(row)):
            log.error("a sealed value stays under its key", place=place.name, id=row.id, why=error.message)
        return None


def _sealed_anew(opens: Vault, seals: Vault, place: SealedColumn, row: _SealedValue | _SealedFacts) -> bytes | str:
    if isinstance(row, _SealedFacts):
        return msgspec.json.encode(reseal_facts(opens, msgspec.json.decode(row.was), seals)).decode()
    assert place.purpose is not None, "what is sealed as a whole has a purpose"
    whole = opens.open(Sealed(row.key_id, row.was), purpose=place.purpose, merchant_id=row.merchant_id, row_id=row.id)
    return seals.seal(whole, purpose=place.purpose, merchant_id=row.merchant_id, row_id=row.id).blob


def _keys_in(row: _SealedValue | _SealedFacts) -> list[str]:
    return sealed_under(msgspec.json.decode(row.was)) if isinstance(row, _SealedFacts) else [row.key_id]


def _written(
    place: SealedColumn, opened: Sequence[tuple[_SealedValue | _SealedFacts, bytes | str]], key_id: str
) -> dict[str, object]:
    rows, values = [row for row, _ in opened], [anew for _, anew in opened]
    found = {"merchant_ids": [row.merchant_id for row in rows], "ids": [row.id for row in rows]}
    were = {"were": [row.was for row in rows]}
    return found | were | ({"facts": values} if place.purpose is None else {"blobs": values, "key_id": key_id})


async def merchants_with_numbers(database: Database) -> list[int]:
    """The merchants of whose customers card numbers are kept."""
    merchants = await records_of(_Merchant, queries.merchants_with_numbers(database))
    return [merchant.merchant_id for merchant in merchants]


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
