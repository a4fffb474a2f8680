"""Which cell something is in: the home cell's directory, of which every cell has a copy.

An entry is written in the home cell first, then what it names is made in its cell; so what is in no
directory is in no cell. Fingerprints are the same in all cells, which have one secret key.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from paydesk.adapters.vault import Vault
from paydesk.core.email_addresses import in_small_letters
from paydesk.core.errors import Conflict
from paydesk.database.pool import Database
from paydesk.database.records import record_if_any, record_of, records_of
from paydesk.database.statements import Connection, load_statements

queries = load_statements(__package__ or "", "directory.sql")

PRIVATE_KEYS = "merchant private key"
"""The purpose of the fingerprints by which every cell finds its own private keys."""

DIRECTORY = "directory"
"""The purpose of all other fingerprints in the directory, each of its kind, a space, and
the value."""


class Kind(StrEnum):
    """What is in one cell."""

    merchant = "merchant"
    public_key = "public_key"
    private_key = "private_key"
    email = "email"
    """A person's, who logs in there."""
    account = "account"
    """Of a person's address in a cell: who has accounts in several has a line of each, but for the
    one that log-ins are led to, which needs none.
    """
    ids = "ids"
    """A range of ids that a cell was given besides its own (see `ranges`)."""
    totp_step = "totp_step"
    """A code of a person's app that was used there, for as long as it is good."""
    recovery_code = "recovery_code"
    """A recovery code of a person's that was used there."""


OF_ROWS = frozenset(Kind) - {Kind.ids, Kind.totp_step, Kind.recovery_code}
"""What a cell has a row of, for as long as it stands in the directory."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell: its number, its public base `address`, and where other cells reach its web server
    (`inside`).
    """

    number: int
    address: str
    inside: str


@dataclass(frozen=True, slots=True)
class Standing:
    """How this database stands among cells: its own number, and that of the home cell, None where
    there are no cells.
    """

    number: int
    home: int | None

    @property
    def has_cells(self) -> bool:
        """Whether there are others, or may soon be."""
        return self.home is not None

    @property
    def is_home(self) -> bool:
        """Whether the directory is written here."""
        return self.home == self.number


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the directory, without its cell; an e-mail address belongs to no merchant."""

    kind: Kind
    name: str
    merchant_id: int | None = None


@dataclass(frozen=True, slots=True)
class _Refused:
    kind: str
    name: str
    is_there: bool


class TakenElsewhere(Conflict):
    """What was to be entered is in another cell; `entries` says which of it.

    `is_there` is whether it surely is: home may not know the cell, and have it in no other either.
    """

    def __init__(self, entries: Sequence[Entry], *, is_there: bool) -> None:
        super().__init__(
            f"this {entries[0].kind.replace('_', ' ')} is in use in another cell, or the cell is not added yet; "
            "see: paydesk cell list"
        )
        self.entries = tuple(entries)
        self.is_there = is_there


def name_of(vault: Vault, kind: Kind, value: str) -> str:
    """How the directory calls something: a merchant by its id, all else by a fingerprint, in hex.

    An address is compared as log-ins compare it.
    """
    if kind is Kind.merchant:
        return value
    if kind is Kind.private_key:
        return vault.fingerprint(value, purpose=PRIVATE_KEYS).hex()
    return vault.fingerprint(
        f"{kind} {in_small_letters(value) if kind is Kind.email else value}", purpose=DIRECTORY
    ).hex()


def account_name(email_name: str, cell: int) -> str:
    """How the directory calls a person's account in a cell, by the name of their address."""
    return f"{email_name} {cell}"


async def cells_of_person(database: Database | Connection, vault: Vault, email: str) -> list[Cell]:
    """The cells that somebody has an account in, as far as this cell's copy knows, by number."""
    return await records_of(Cell, queries.cells_of_person(database, name=name_of(vault, Kind.email, email)))


async def cell_by_number(database: Database, number: int) -> Cell | None:
    """The cell with a number; None if there is none."""
    return record_if_any(Cell, await queries.cell_by_number(database, number=number))


async def all_other_cells(database: Database) -> list[Cell]:
    """All cells but this one, by number; none where a deployment stands alone."""
    return await records_of(Cell, queries.other_cells(database))


async def find_cell(database: Database | Connection, kind: Kind, name: str) -> Cell | None:
    """The cell of what is called so (`name_of`), as far as this cell's copy knows."""
    return record_if_any(Cell, await queries.find_cell(database, kind=kind, name=name))


async def has_merchant_of(database: Database, kind: Kind, name: str) -> bool:
    """Whether the merchant whose entry is called so is in this very database, wherever its copy of
    the directory leads.
    """
    return bool(await queries.has_merchant_of(database, kind=kind, name=name))


async def this_cell(database: Database | Connection) -> Standing:
    """Whose database this is, and whether there are cells: whoever asks often keeps the answer,
    which changes only by `paydesk cell add`.
    """
    return record_of(Standing, await queries.this_cell(database))


async def enter(home: Database | Connection, entries: Sequence[Entry], cell: int, *, now: datetime) -> None:
    """Enter what is to be made in a cell; what was entered for the same cell before is taken up.
    `home` is the home cell's database, `now` UTC.

    Raises: TakenElsewhere, which the rest is entered beside unless a transaction ends with it.
    """
    ordered = sorted(entries, key=lambda one: (one.kind, one.name))
    refused = await records_of(
        _Refused,
        queries.enter(
            home,
            kinds=[one.kind for one in ordered],
            names=[one.name for one in ordered],
            merchant_ids=[one.merchant_id for one in ordered],
            cell=cell,
            now=now,
        ),
    )
    if refused:
        names = {(one.kind, one.name) for one in refused}
        raise TakenElsewhere(
            [one for one in ordered if (one.kind, one.name) in names], is_there=any(one.is_there for one in refused)
        )


async def switch_merchant(home: Database | Connection, merchant_id: int, *, left: int, to: int, now: datetime) -> int:
    """Have a merchant and all its keys lead to another cell from now on, if they lead to the one
    that it has `left`; how many entries changed.

    E-mail addresses stay. `home` is the home cell's database, `now` UTC.
    """
    return int(await queries.switch_merchant(home, merchant_id=merchant_id, left=left, cell=to, now=now))


async def switch_people(home: Database | Connection, names: Sequence[str], *, left: int, to: int, now: datetime) -> int:
    """Lead people who go to another cell there when they log in, by the names of their addresses,
    if that was where they have `left`; how many entries that changed.
    """
    return int(await queries.switch_people(home, names=sorted(names), left=left, cell=to, now=now))


async def forget_lines(home: Database | Connection, kind: Kind, *, before: datetime) -> None:
    """Drop all of a kind that was entered before a time. `home` is the home cell's database."""
    await queries.forget_lines(home, kind=kind, before=before)
