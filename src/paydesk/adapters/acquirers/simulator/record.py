"""The simulated bank's own append-only record of what it did.

This is another system's store, deliberately not our PostgreSQL: when that is killed or cut off, the
record can still testify what the bank did. So it is a SQLite file of its own, which several
processes may use at once.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Final

import msgspec

from paydesk.adapters.acquirers.marks import Mark, packed, unpacked
from paydesk.adapters.acquirers.simulator.balance_record import SCHEMA as _BALANCE
from paydesk.adapters.acquirers.simulator.balance_record import BalanceRecord
from paydesk.adapters.acquirers.simulator.evidence_record import SCHEMA as _EVIDENCE
from paydesk.adapters.acquirers.simulator.evidence_record import EvidenceRecord

MARK_LENGTH: Final = 4
"""Hexadecimal digits of a card's mark; files of older versions have longer ones,
which begin alike."""

_BUSY_SECONDS: Final = 30
_SWITCH_TRIES: Final = 600
_PAGE: Final = 1000

# The unique index is what makes the first decision on a key win. Refusals may repeat, they
# decide nothing.
_SCHEMA: Final = """
begin immediate;
create table if not exists operation (
    seq integer primary key,
    at text not null,
    key text,
    kind text not null,
    of_key text,
    amount text not null,
    currency text not null,
    last4 text not null,
    card_token text not null,
    capture integer not null,
    reference text not null,
    result text not null
) strict;
create unique index if not exists operation_key_decides_once on operation (key) where kind <> 'refuse';
create index if not exists operation_of_purchase on operation (of_key, seq);
create index if not exists operation_of_dispute on operation (seq)
    where kind in ('dispute', 'dispute_won', 'dispute_lost');
create index if not exists operation_of_failed_refund on operation (seq) where kind = 'refund_failed';
create index if not exists operation_refused on operation (key, seq) where kind = 'refuse';
create index if not exists operation_by_reference on operation (reference) where reference <> '';
drop index if exists operation_made;
create index if not exists operation_begun on operation (at) where kind in ('authorize', 'charge', 'challenge', 'page');
create index if not exists operation_refunded on operation (at) where kind = 'refund';
create index if not exists operation_page on operation (at) where kind = 'page';
create trigger if not exists operation_is_never_changed before update on operation
    begin select raise(abort, 'the record is append-only'); end;
create trigger if not exists operation_is_never_removed before delete on operation
    begin select raise(abort, 'the record is append-only'); end;
create table if not exists way_back (reference text primary key, return_url text not null) strict, without rowid;
create table if not exists mark (of_key text primary key, not_after text not null, packed text not null)
    strict, without rowid;
create table if not exists refund_number (reference text primary key, number integer not null) strict, without rowid;
create table if not exists page (reference text primary key, asked text not null) strict, without rowid;
create table if not exists instrument (of_key text primary key, told text not null) strict, without rowid;
create table if not exists kept (reference text primary key, of_key text not null) strict, without rowid;
create table if not exists token_key (id integer primary key check (id = 1), value blob not null) strict;
insert or ignore into token_key (id, value) values (1, randomblob(32));
"""


class Kind(StrEnum):
    """What the bank did, or was asked to do and refused."""

    AUTHORIZE = "authorize"
    CHARGE = "charge"
    CHALLENGE = "challenge"
    PAGE = "page"
    """A page was made for a purchase that its customer has yet to choose a card for."""
    PAGE_LEFT = "page_left"
    """The customer went from the page to their bank, to confirm."""
    PAGE_DECLINED = "page_declined"
    """A try to pay on the page failed; the page stays."""
    PAGE_PENDING = "page_pending"
    """The customer chose a method that takes days; the result says which way."""
    APPROVE = "approve"
    REJECT = "reject"
    CLOSE = "close"
    END = "end"
    CAPTURE = "capture"
    VOID = "void"
    REFUND = "refund"
    REFUND_FAILED = "refund_failed"
    DISPUTE = "dispute"
    DISPUTE_WON = "dispute_won"
    DISPUTE_LOST = "dispute_lost"
    EVIDENCE = "evidence"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One line of the record.

    `key` is the caller's idempotency key (None for what a customer or their bank does: challenges,
    disputes, failures); `of_key` the key of the purchase that it concerns (its own for a purchase);
    `amount` is in the main unit; `capture` says whether an approval takes the money at once;
    `result` is "approved", "challenged", a decline reason, what was refused and why, a dispute's
    reason, or the text of evidence. All that concerns a dispute has its reference.
    """

    at: datetime
    key: str | None
    kind: Kind
    of_key: str | None
    result: str
    amount: Decimal = Decimal(0)
    currency: str = ""
    last4: str = ""
    card_token: str = ""
    capture: bool = False
    reference: str = ""
    seq: int = 0


_COLUMNS: Final = tuple(column.name for column in fields(Operation))
_INSERT: Final = """
insert into operation (at, key, kind, of_key, amount, currency, last4, card_token, capture, reference, result)
values (:at, :key, :kind, :of_key, :amount, :currency, :last4, :card_token, :capture, :reference, :result)
"""
_SELECT: Final = """
select at, key, kind, of_key, result, amount, currency, last4, card_token, capture, reference, seq from operation
"""


class Record:
    """The record in one SQLite file; safe for threads,
    and for processes that open the same file.
    """

    def __init__(self, path: Path) -> None:
        """Open the record, and make it first if there is none (readable by its owner only)."""
        self.path: Final = path
        _create_private(path)
        self._lock = threading.RLock()
        self._db = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        # Killed processes lose nothing without fsync, only a power cut would: this bank has no
        # real money.
        self._db.execute("pragma synchronous = off")
        _write_ahead(self._db)
        self._db.executescript(f"{_SCHEMA}{_BALANCE}{_EVIDENCE}commit;")
        self.balance: Final[BalanceRecord[Operation]] = BalanceRecord(self._db, self._lock, self._read)
        self.evidence: Final[EvidenceRecord] = EvidenceRecord(self._db, self._lock)
        self._token_key: bytes = self._db.execute("select value from token_key").fetchone()[0]

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._db.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Hold the only writer's place, so that what is read stays true until what follows
        from it is written.
        """
        with self._lock:
            self._db.execute("begin immediate")
            try:
                yield
            except BaseException:
                self._db.execute("rollback")
                raise
            self._db.execute("commit")

    def write(self, operation: Operation) -> None:
        """Append one operation (inside a transaction)."""
        row = {name: getattr(operation, name) for name in _COLUMNS}
        row |= {"at": operation.at.isoformat(), "amount": plain(operation.amount), "capture": int(operation.capture)}
        self._db.execute(_INSERT, row)

    def write_way_back(self, reference: str, return_url: str) -> None:
        """Keep where the browser goes after the challenge `reference` (inside a transaction)."""
        self._db.execute("insert into way_back (reference, return_url) values (?, ?)", (reference, return_url))

    def way_back(self, reference: str) -> str:
        """Where the browser goes after the challenge `reference`."""
        with self._lock:
            found = self._db.execute("select return_url from way_back where reference = ?", (reference,)).fetchone()
        return str(found[0]) if found else ""

    def write_page(self, reference: str, asked: str) -> None:
        """Keep all that was asked for a page (inside a transaction)."""
        self._db.execute("insert into page (reference, asked) values (?, ?)", (reference, asked))

    def page(self, reference: str) -> str:
        """All that was asked for a page, empty if there is none of that reference."""
        with self._lock:
            found = self._db.execute("select asked from page where reference = ?", (reference,)).fetchone()
        return str(found[0]) if found else ""

    def write_instrument(self, of_key: str, told: str) -> None:
        """Keep what a page was paid with (inside a transaction)."""
        self._db.execute("insert into instrument (of_key, told) values (?, ?)", (of_key, told))

    def instrument(self, of_key: str) -> str:
        """What a page was paid with, empty if it was not."""
        with self._lock:
            found = self._db.execute("select told from instrument where of_key = ?", (of_key,)).fetchone()
        return str(found[0]) if found else ""

    def write_kept(self, reference: str, of_key: str) -> None:
        """Keep what a page was paid with, to be charged again (inside a transaction)."""
        self._db.execute("insert into kept (reference, of_key) values (?, ?)", (reference, of_key))

    def forget_kept(self, reference: str) -> None:
        """Keep nothing under a reference any more (inside a transaction)."""
        self._db.execute("delete from kept where reference = ?", (reference,))

    def kept(self, reference: str) -> str:
        """What is kept under a reference, empty if nothing is."""
        of_key = self.kept_by(reference)
        return self.instrument(of_key) if of_key else ""

    def kept_by(self, reference: str) -> str:
        """The purchase by which something is kept, empty if nothing is under the reference."""
        with self._lock:
            found = self._db.execute("select of_key from kept where reference = ?", (reference,)).fetchone()
        return str(found[0]) if found else ""

    def write_mark(self, of_key: str, not_after: datetime, mark: Mark | None) -> None:
        """Keep what a purchase is for, and until when it was to be taken (inside a transaction)."""
        told = packed(mark) if mark else ""
        row = (of_key, not_after.isoformat(), told)
        self._db.execute("insert or ignore into mark (of_key, not_after, packed) values (?, ?, ?)", row)

    def mark(self, of_key: str) -> tuple[datetime, Mark | None] | None:
        """Until when a purchase was to be taken, and what it is for;
        None for one that was made without saying.
        """
        with self._lock:
            found = self._db.execute("select not_after, packed from mark where of_key = ?", (of_key,)).fetchone()
        return (datetime.fromisoformat(found[0]), unpacked(found[1])) if found else None

    def write_number(self, reference: str, number: int) -> None:
        """Keep what its caller calls a refund, once (inside a transaction)."""
        row = (reference, number)
        self._db.execute("insert or ignore into refund_number (reference, number) values (?, ?)", row)

    def number(self, reference: str) -> int:
        """What its caller calls a refund, 0 if they did not say."""
        with self._lock:
            found = self._db.execute("select number from refund_number where reference = ?", (reference,)).fetchone()
        return int(found[0]) if found else 0

    def decided(self, key: str) -> Operation | None:
        """The operation that used up the idempotency key, refusals aside."""
        return next(iter(self._read("where key = ? and kind <> 'refuse'", key)), None)

    def refused(self, key: str, of_key: str) -> Operation | None:
        """The first refusal of a request under `key` that concerned the purchase `of_key`."""
        refusals = self._read("where key = ? and kind = 'refuse' order by seq", key)
        return next((refusal for refusal in refusals if refusal.of_key == of_key), None)

    def of_purchase(self, key: str) -> list[Operation]:
        """All that concerns the purchase under `key`, in order."""
        return self._read("where of_key = ? order by seq", key)

    def named(self, reference: str, *kinds: Kind) -> Operation | None:
        """The operation of one of `kinds` that gave out `reference`."""
        named = self._read("where reference = ? and reference <> ''", reference)
        return next((found for found in named if found.kind in kinds), None)

    def operations(self) -> Iterator[Operation]:
        """Everything that the bank did or refused, in order; what is added meanwhile comes last."""
        seq = 0
        while page := self._read(f"where seq > ? order by seq limit {_PAGE}", seq):
            yield from page
            seq = page[-1].seq

    def dispute_operations(self, after: int, limit: int) -> list[Operation]:
        """At most `limit` openings and endings of disputes that came after the operation `after`,
        in order.
        """
        kinds = "kind in ('dispute', 'dispute_won', 'dispute_lost')"
        return self._read(f"where seq > ? and {kinds} order by seq limit {int(limit)}", after)

    def made_since(self, since: datetime, after: int, limit: int, *kinds: Kind) -> list[Operation]:
        """At most `limit` operations of some kinds since a time that came
        after the operation `after`, in order.
        """
        named = ", ".join(f"'{kind}'" for kind in kinds)
        condition = f"where kind in ({named}) and at >= ? and seq > ? order by seq limit {int(limit)}"
        return self._read(condition, since.isoformat(), after)

    def failed_refunds(self, after: int, limit: int) -> list[Operation]:
        """At most `limit` failures of refunds that came after the operation `after`, in order."""
        return self._read(f"where seq > ? and kind = 'refund_failed' order by seq limit {int(limit)}", after)

    def card_token(self, key: str, card: str) -> str:
        """A mark by which a repeated key is seen to name the same card;
        of no use across keys, so it links nobody.

        It is too short to confirm a guess: the key that it is made under stands in the same file,
        beside last digits.
        """
        return hmac.new(self._token_key, f"{key}\n{card}".encode(), hashlib.sha256).hexdigest()[:MARK_LENGTH]

    def _read(self, condition: str, *values: str | int) -> list[Operation]:
        """Operations that meet a condition."""
        with self._lock:
            rows = self._db.execute(_SELECT + condition, values).fetchall()
        # SQLite knows neither times, decimals nor booleans: they rest as text and numbers.
        return [msgspec.convert(dict(zip(_COLUMNS, row, strict=True)), Operation, strict=False) for row in rows]


def new_reference(prefix: str) -> str:
    """A reference that nobody can guess."""
    return f"{prefix}_{secrets.token_urlsafe(18)}"


def plain(amount: Decimal) -> str:
    """An amount as text without exponent or trailing zeros,
    so that equal amounts are written alike.
    """
    text = f"{amount:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _write_ahead(db: sqlite3.Connection) -> None:
    """Let readers and the one writer not wait for each other;
    of processes that open a new file, one switches it.

    To the others SQLite answers "locked" at once, without the patience that it has for every
    other statement.
    """
    patience = _BUSY_SECONDS / _SWITCH_TRIES
    for left in reversed(range(_SWITCH_TRIES)):
        try:
            db.execute("pragma journal_mode = wal")
        except sqlite3.OperationalError:
            if not left:
                raise
            time.sleep(patience)
        else:
            return


def _create_private(path: Path) -> None:
    """Create an empty file that only its owner may read; SQLite gives its side files the same mode.

    An existing file is not opened here: closing it would drop the locks that this process holds on
    it (POSIX).
    """
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        return
