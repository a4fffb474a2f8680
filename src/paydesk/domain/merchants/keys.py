"""Key pairs: the public key names a merchant in a form, the private key signs;
it rests encrypted in the vault.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

from paydesk.adapters.vault import Sealed, Vault, VaultError
from paydesk.core.errors import Conflict, Forbidden, NotFound, Unavailable
from paydesk.core.wording import worded
from paydesk.database.pool import Database
from paydesk.database.records import record_if_any, records_of
from paydesk.database.statements import Connection, load_statements
from paydesk.domain.cells.directory import TakenElsewhere
from paydesk.domain.cells.entering import ALONE, Entering, keys_to_enter, merchant_to_enter
from paydesk.domain.merchants.taking_turns import take_turn

queries = load_statements(__package__ or "")

PURPOSE = "merchant private key"


class KeyScope(StrEnum):
    """One thing that a key pair may be allowed to do."""

    sign = "sign"
    """Sign checkout forms."""
    read = "read"
    """Read by the API."""
    move = "move"
    """Change things by the API: refunds, charges of saved cards, deliveries, cancellations.
    Moves money.
    """


ALL_SCOPES = frozenset(KeyScope)


def in_order(scopes: Iterable[str]) -> tuple[KeyScope, ...]:
    """Scopes as they are listed: signing, reading, moving."""
    return tuple(scope for scope in KeyScope if scope in set(scopes))


def scopes_there(scopes: Iterable[str], *, live: bool, moves_live: bool) -> frozenset[KeyScope]:
    """What a key may do on one side: one that somebody made who may not give money back moves test
    money alone.
    """
    known = frozenset(map(KeyScope, scopes))
    return known - {KeyScope.move} if live and not moves_live else known


def require_scope(scopes: frozenset[KeyScope], needed: KeyScope) -> None:
    """Make sure that a key pair may do something.

    Raises: Forbidden, saying what it may do.
    """
    if needed not in scopes:
        may = ", ".join(in_order(scopes))
        raise Forbidden(f"this key lacks the scope {needed} (it has: {may}); use another, or make one in your account")


class KeyUnreadable(Unavailable):
    """A private key can't be opened, so nothing that it signs can be checked
    until an operator has mended that; `why` is for them.
    """

    retry_after = 60

    def __init__(self, merchant_id: int, key_id: int, forms_this_minute: int, why: str) -> None:
        super().__init__(
            "this merchant's private key can't be opened here, so nothing that it signs can be checked; nothing was "
            "begun and nobody charged. The operator of this service has to mend it; try again later"
        )
        self.merchant_id = merchant_id
        self.key_id = key_id
        self.forms_this_minute = forms_this_minute
        self.why = why


@dataclass(frozen=True, slots=True)
class Signer:
    """Who may have signed a form: the merchant whose key it named, and its forms of this minute
    from one client.

    `refused_this_minute` counts those of them whose hash was wrong.
    """

    merchant_id: int
    merchant_name: str
    key_id: int
    private_key: str = field(repr=False)
    test_mode: bool
    went_live_at: datetime | None
    forms_this_minute: int
    refused_this_minute: int
    test_clock: timedelta
    suspended: bool = False
    shipped_goods: bool = False
    signs_coupons: bool = False
    signs_quantities: bool = False
    signs_line_items: bool = False
    scopes: frozenset[KeyScope] = ALL_SCOPES
    moves_live: bool = True
    in_a_copy: bool = False
    """Whether the database is a staging copy, which has no live side."""


def refuse_in_a_copy(*, live: bool, in_a_copy: bool) -> None:
    """Refuse whatever is live in a staging copy.

    Raises: Conflict, saying how to go on in test mode.
    """
    if live and in_a_copy:
        raise Conflict(
            "this is a copy for staging, where live calls and payments are refused; call its sandbox base, or switch "
            "the account's test mode on"
        )


async def add(
    connection: Connection,
    vault: Vault,
    merchant_id: int,
    *,
    public: str,
    private: str,
    now: datetime,
    scopes: frozenset[KeyScope] = ALL_SCOPES,
    moves_live: bool = True,
    entering: Entering = ALONE,
    is_first: bool = False,
) -> int:
    """Seal and store a pair for a merchant; returns the key's id.

    `moves_live` is whether what it may move includes live money; `is_first` says that the merchant
    is made with it, and entered in the directory of cells with it.
    Raises: Conflict if another cell has such a key; Unavailable if that can't be asked.
    """
    key_id = int(await queries.next_key_id(connection))
    lookup = vault.fingerprint(private, purpose=PURPOSE)
    sealed = vault.seal(private.encode(), purpose=PURPOSE, merchant_id=merchant_id, row_id=key_id)
    await queries.add_key(
        connection,
        merchant_id=merchant_id,
        id=key_id,
        public_key=public,
        private_key_lookup=lookup,
        private_key_sealed=sealed.blob,
        vault_key_id=sealed.key_id,
        scopes=sorted(scopes),
        moves_live=moves_live,
        now=now,
    )
    entries = keys_to_enter(vault, merchant_id, public=public, private_lookup=lookup)
    try:
        await entering.enter(connection, (*entries, merchant_to_enter(merchant_id)) if is_first else entries, now=now)
    except TakenElsewhere as error:
        raise taken() from error
    return key_id


def taken() -> Conflict:
    """Somebody has one of a pair already."""
    return Conflict("this key already belongs to a merchant; choose another pair, or leave it out")


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A new pair; `private` is shown this once. The others of the merchant are valid
    until `others_until` (UTC).
    """

    id: int
    public: str
    private: str = field(repr=False)
    others_until: datetime


def random_pair() -> tuple[str, str]:
    """A public and a private key that nobody has."""
    return secrets.token_hex(16), secrets.token_hex(24)


async def rotate(
    connection: Connection,
    vault: Vault,
    merchant_id: int,
    *,
    replaces: int,
    grace: timedelta,
    now: datetime,
    scopes: frozenset[KeyScope] = ALL_SCOPES,
    moves_live: bool = True,
    entering: Entering = ALONE,
) -> KeyPair:
    """Make a new pair in the connection's transaction, and end all others after `grace`.

    What began under an old pair, such as running subscriptions, has its pingbacks signed with that
    until it ends, and from then on with the newest. `replaces` is the id of the newest key that was
    known: the same wish comes true once.

    Raises: Conflict if there is a newer key by now; Unavailable if the directory of cells can't be
        asked.
    """
    await take_turn(connection, merchant_id)
    newest = await queries.newest_key(connection, merchant_id=merchant_id)
    if newest != replaces:
        raise Conflict(worded("new keys have been made meanwhile; look at them before you make others"))
    until = now + grace
    await queries.end_keys(connection, merchant_id=merchant_id, until=until)
    public, private = random_pair()
    key_id = await add(
        connection,
        vault,
        merchant_id,
        public=public,
        private=private,
        now=now,
        scopes=scopes,
        moves_live=moves_live,
        entering=entering,
    )
    return KeyPair(key_id, public, private, until)


class SealedKey(msgspec.Struct, frozen=True):
    """A private key as it rests."""

    merchant_id: int
    id: int
    private_key_sealed: bytes
    vault_key_id: str


class _PublicKey(SealedKey, frozen=True):
    public_key: str


class _SigningKey(SealedKey, frozen=True):
    """A key that a form names, its merchant, and the forms of this minute from one client."""

    scopes: list[str]
    moves_live: bool
    name: str
    test_mode: bool
    went_live_at: datetime | None
    test_clock: timedelta
    suspended_at: datetime | None
    shipped_goods: bool
    signs_coupons: bool
    signs_quantities: bool
    signs_line_items: bool
    forms: int
    refused: int
    in_a_copy: bool


async def find_signer(
    database: Database, vault: Vault, public_key: str, client_address: str, now: datetime
) -> Signer | None:
    """The merchant that a form names, or None; counts the form against the client's limit.

    Raises: KeyUnreadable.
    """
    minute = now.replace(second=0, microsecond=0)
    row = record_if_any(
        _SigningKey,
        await queries.find_signer(
            database, public_key=public_key, client_address=client_address, minute=minute, now=now
        ),
    )
    if row is None:
        return None
    try:
        private_key = open_key(vault, row)
    except VaultError as error:
        raise KeyUnreadable(row.merchant_id, row.id, row.forms, error.message) from error
    return Signer(
        merchant_id=row.merchant_id,
        merchant_name=row.name,
        key_id=row.id,
        private_key=private_key,
        test_mode=row.test_mode,
        went_live_at=row.went_live_at,
        forms_this_minute=row.forms,
        refused_this_minute=row.refused,
        test_clock=row.test_clock,
        suspended=row.suspended_at is not None,
        shipped_goods=row.shipped_goods,
        signs_coupons=row.signs_coupons,
        signs_quantities=row.signs_quantities,
        signs_line_items=row.signs_line_items,
        scopes=frozenset(map(KeyScope, row.scopes)),
        moves_live=row.moves_live,
        in_a_copy=row.in_a_copy,
    )


async def private_key_of(database: Database, vault: Vault, merchant_id: int, key_id: int) -> str:
    """The private key with this id, also when it is no longer valid:
    what it signed before still needs it.

    Raises: NotFound.
    """
    key = record_if_any(SealedKey, await queries.sealed_key(database, merchant_id=merchant_id, id=key_id))
    if key is None:
        raise NotFound(f"merchant {merchant_id} has no key {key_id}")
    return open_key(vault, key)


async def pairs_of(database: Database, vault: Vault, merchant_id: int) -> list[tuple[str, str]]:
    """All (public, private) pairs of a merchant, newest first."""
    keys = await records_of(_PublicKey, queries.keys_of(database, merchant_id=merchant_id))
    return [(key.public_key, open_key(vault, key)) for key in keys]


async def readable_pairs_of(database: Database, vault: Vault, merchant_id: int, *, most: int) -> list[tuple[str, str]]:
    """A merchant's newest (public, private) pairs, as far as they can be opened."""
    keys = await records_of(_PublicKey, queries.keys_of(database, merchant_id=merchant_id))
    found: list[tuple[str, str]] = []
    for key in keys[:most]:
        with suppress(VaultError):
            found.append((key.public_key, open_key(vault, key)))
    return found


async def is_private_key(database: Database, vault: Vault, text: str) -> bool:
    """Whether this is somebody's private key, of whichever merchant, valid or not."""
    lookup = vault.fingerprint(text, purpose=PURPOSE)
    return bool(await queries.is_private_key(database, private_key_lookup=lookup))


def open_key(vault: Vault, key: SealedKey) -> str:
    """Unseal a private key."""
    sealed = Sealed(key.vault_key_id, key.private_key_sealed)
    return vault.open(sealed, purpose=PURPOSE, merchant_id=key.merchant_id, row_id=key.id).decode()
