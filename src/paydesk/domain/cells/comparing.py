"""Comparing the directory: with what each cell has of its own, and with each cell's copy."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from paydesk.adapters.vault import Vault
from paydesk.database.pool import Database
from paydesk.database.records import records_of
from paydesk.database.statements import load_statements
from paydesk.domain.cells.directory import OF_ROWS, Entry, Kind, TakenElsewhere, enter
from paydesk.domain.cells.entering import account_to_enter, email_to_enter, keys_to_enter, merchant_to_enter
from paydesk.domain.cells.ranges import range_given

queries = load_statements(__package__ or "", "comparing.sql")

BATCH = 1000
"""Rows that are looked at together."""

UNDER_WAY = timedelta(minutes=10)
"""For how long an entry may stand before what it names is there."""

TRIES, BETWEEN = 40, 0.25
"""How often a copy is looked at, and the seconds between, until it says what home says."""


@dataclass(frozen=True, slots=True)
class Own:
    """Something of a cell's own: its line of the directory, and what it is called there.

    `account` is a person's line where another cell has their address, `proven` whether they have
    shown here that it is theirs.
    """

    entry: Entry
    called: str
    account: Entry | None = None
    proven: bool = False

    @property
    def lines(self) -> tuple[Entry, ...]:
        """All lines that there may be of it."""
        return (self.entry,) if self.account is None else (self.entry, self.account)


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Something that the directory says is in another cell, or another merchant's."""

    own: Own
    cell: int


@dataclass(frozen=True, slots=True)
class Compared:
    """What a cell has and the directory does not know (`missing`) or knows otherwise (`elsewhere`),
    and entries of that cell for which it has nothing (`spare`).

    `accounts` are of people whom it knows in another cell alone, and who have shown here that their
    address is theirs.
    """

    own: int
    missing: tuple[Own, ...]
    elsewhere: tuple[Elsewhere, ...]
    spare: tuple[Entry, ...]
    accounts: tuple[Elsewhere, ...] = ()


@dataclass(frozen=True, slots=True)
class Digest:
    """How many lines of a kind there are, and a sum over them."""

    kind: str
    lines: int
    digest: str


@dataclass(frozen=True, slots=True)
class _Id:
    id: int


@dataclass(frozen=True, slots=True)
class _Key:
    merchant_id: int
    id: int
    public_key: str
    private_key_lookup: bytes


@dataclass(frozen=True, slots=True)
class _Person:
    id: int
    email: str
    proven: bool


@dataclass(frozen=True, slots=True)
class _Line:
    kind: str
    name: str
    cell: int
    merchant_id: int | None


@dataclass(frozen=True, slots=True)
class _LineHere:
    kind: str
    name: str
    merchant_id: int | None


async def own_entries(cell: Database, vault: Vault, number: int) -> AsyncIterator[Sequence[Own]]:
    """All that a cell of that number has of its own, batch by batch; its vault's keys are
    not needed.
    """
    if (given := await range_given(cell)) is not None:
        yield [Own(Entry(Kind.ids, str(given)), f"ids from {given} × 10¹³ on")]
    after = 0
    while found := await records_of(_Id, queries.own_merchants(cell, after=after, most=BATCH)):
        yield [Own(merchant_to_enter(one.id), f"merchant {one.id}") for one in found]
        after = found[-1].id
    place = (0, 0)
    while keys := await records_of(_Key, queries.own_keys(cell, after_merchant=place[0], after=place[1], most=BATCH)):
        yield [own for key in keys for own in _of_key(vault, key)]
        place = (keys[-1].merchant_id, keys[-1].id)
    after = 0
    while people := await records_of(_Person, queries.own_people(cell, after=after, most=BATCH)):
        yield [_of_person(vault, one, number) for one in people]
        after = people[-1].id


def _of_person(vault: Vault, one: _Person, number: int) -> Own:
    account = account_to_enter(vault, one.email, number)
    return Own(email_to_enter(vault, one.email), one.email, account, proven=one.proven)


def _of_key(vault: Vault, key: _Key) -> tuple[Own, Own]:
    called = f"key {key.id} of merchant {key.merchant_id}"
    public, private = keys_to_enter(
        vault, key.merchant_id, public=key.public_key, private_lookup=key.private_key_lookup
    )
    return Own(public, f"public {called}"), Own(private, f"private {called}")


async def compare(home: Database, cell: Database, vault: Vault, number: int, *, now: datetime) -> Compared:
    """Compare what a cell has of its own with the directory. `now` is UTC."""
    seen: set[tuple[str, str]] = set()
    missing: list[Own] = []
    elsewhere: list[Elsewhere] = []
    accounts: list[Elsewhere] = []
    owned = 0
    async for batch in own_entries(cell, vault, number):
        owned += len(batch)
        lines = await _lines_of(home, batch)
        for own in batch:
            seen.update((one.kind, one.name) for one in own.lines)
            line = lines.get((own.entry.kind, own.entry.name))
            if line is None:
                missing.append(own)
            elif line.cell != number:
                if not _has_account(own, lines):
                    (accounts if own.proven else elsewhere).append(Elsewhere(own, line.cell))
            elif line.merchant_id != own.entry.merchant_id:
                missing.append(own)
    entered = _lines_in(home, number, before=now - UNDER_WAY)
    spare = [line async for line in entered if (line.kind, line.name) not in seen]
    return Compared(owned, tuple(missing), tuple(elsewhere), tuple(spare), tuple(accounts))


async def _lines_of(home: Database, batch: Sequence[Own]) -> dict[tuple[str, str], _Line]:
    """What the directory says of some of a cell's own."""
    wanted = [line for own in batch for line in own.lines]
    found = queries.lines_of(home, kinds=[one.kind for one in wanted], names=[one.name for one in wanted])
    return {(line.kind, line.name): line for line in await records_of(_Line, found)}


def _has_account(own: Own, lines: Mapping[tuple[str, str], _Line]) -> bool:
    """Whether the directory knows that a person has an account in this cell, too."""
    return own.account is not None and (own.account.kind, own.account.name) in lines


async def _lines_in(home: Database, number: int, *, before: datetime) -> AsyncIterator[Entry]:
    """What was entered of a cell, but for ids, since those that it went on from stay its own, and
    codes that were used.
    """
    after = ("", "")
    while lines := await records_of(
        _LineHere,
        queries.lines_in(home, cell=number, before=before, after_kind=after[0], after_name=after[1], most=BATCH),
    ):
        for line in lines:
            if line.kind in OF_ROWS:
                yield Entry(Kind(line.kind), line.name, line.merchant_id)
        after = (lines[-1].kind, lines[-1].name)


async def enter_own(home: Database, cell: Database, vault: Vault, number: int, *, now: datetime) -> list[Own]:
    """Enter all that a cell has of its own; what is another's already, and so could not be.
    Called again it enters what is new. `now` is UTC.
    """
    refused: list[Own] = []
    async for batch in own_entries(cell, vault, number):
        by_entry = {own.entry: own for own in batch}
        try:
            await enter(home, list(by_entry), number, now=now)
        except TakenElsewhere as error:
            others = [by_entry[entry] for entry in error.entries]
            lines = await _lines_of(home, others)
            refused += [own for own in others if not _has_account(own, lines)]
    return refused


async def enter_accounts(home: Database, accounts: Sequence[Elsewhere], number: int, *, now: datetime) -> None:
    """Enter people who log in elsewhere, and have an account in this cell, too. `now` is UTC."""
    await enter(home, [one.own.account for one in accounts if one.own.account is not None], number, now=now)


async def take_out(home: Database, spare: Sequence[Entry], number: int, *, now: datetime) -> int:
    """Take out entries of a cell for which it has nothing, unless they were taken up meanwhile;
    how many. `now` is UTC.
    """
    kinds, names = [one.kind for one in spare], [one.name for one in spare]
    return int(await queries.take_out(home, kinds=kinds, names=names, cell=number, before=now - UNDER_WAY))


async def digests(database: Database) -> list[Digest]:
    """What a directory, or a copy of it, comes to, kind by kind; `cell` is the list of cells."""
    return await records_of(Digest, queries.digests(database))


async def kinds_that_differ(home: Database, copy: Database, *, tries: int = TRIES) -> list[str]:
    """The kinds of which a copy says something else than home, however often it is looked at:
    what home changes meanwhile takes a moment to come.
    """
    differing: set[str] = set()
    for one in range(tries):
        if one:
            await asyncio.sleep(BETWEEN)
        here, there = set(await digests(home)), set(await digests(copy))
        differing = {digest.kind for digest in here ^ there}
        if not differing:
            return []
    return sorted(differing)
