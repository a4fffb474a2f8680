"""What the simulated bank's record has about its account's balance: the terms, from which operation
on they held, and where payouts were cut.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from typing import Any, Final, Generic, TypeVar

from paydesk.adapters.acquirers.balance import LineKind
from paydesk.core.money import minor_digits

_Operation = TypeVar("_Operation")

SCHEMA: Final = """
create table if not exists balance_terms (
    after_seq integer not null, rate text not null, fixed text not null, refund text not null, dispute text not null
) strict;
create table if not exists balance_cut (boundary text primary key, last_seq integer not null) strict, without rowid;
create table if not exists balance_carried (currency text primary key, after_seq integer not null)
    strict, without rowid;
create table if not exists balance_payout (
    id integer primary key, reference text not null unique, at text not null, currency text not null,
    amount text not null, after_seq integer not null, last_seq integer not null
) strict;
create index if not exists operation_moved on operation (at)
    where kind in ('authorize', 'charge', 'approve', 'capture', 'void', 'refund', 'refund_failed', 'dispute',
                   'dispute_won');
"""
_MOVED: Final = """kind in ('authorize', 'charge', 'approve', 'capture', 'void', 'refund', 'refund_failed', 'dispute',
                   'dispute_won')"""


_PAYOUTS: Final = "select id, reference, at, currency, amount, after_seq, last_seq from balance_payout where "


@dataclass(frozen=True, slots=True)
class Terms:
    """What the bank charges its account: of each capture `rate` percent and `fixed`, for each
    refund and dispute a sum of its own, in main units of whatever currency.
    """

    rate: Decimal = Decimal(0)
    fixed: Decimal = Decimal(0)
    refund: Decimal = Decimal(0)
    dispute: Decimal = Decimal(0)

    def fee(self, kind: LineKind, amount: Decimal, currency: str) -> Decimal:
        """What one movement costs."""
        cost = {
            LineKind.CAPTURE: amount * self.rate / 100 + self.fixed,
            LineKind.REFUND: self.refund,
            LineKind.CHARGEBACK: self.dispute,
        }.get(kind, Decimal(0))
        return cost.quantize(Decimal(1).scaleb(-minor_digits(currency)), ROUND_HALF_UP)


def parse_terms(text: str) -> Terms:
    """Terms as they are written in a setting: up to four numbers, of which the rest is 0.

    Raises: ValueError.
    """
    try:
        told = [Decimal(part) for part in text.split()]
    except InvalidOperation:
        told = [Decimal(-1)]
    if len(told) > 4 or not all(one.is_finite() and one >= 0 for one in told):
        raise ValueError("must be up to four numbers, such as 1.4 0.25 0.10 15")
    return Terms(*told)


@dataclass(frozen=True, slots=True)
class Payout:
    """A payout: it is of the lines of its currency after one operation, up to another."""

    id: int
    reference: str
    at: datetime
    currency: str
    amount: Decimal
    after_seq: int
    last_seq: int


class BalanceRecord(Generic[_Operation]):
    """The balance's part of a record, by the record's own connection; `read` gives operations that
    meet a condition.
    """

    def __init__(self, db: sqlite3.Connection, lock: threading.RLock, read: Callable[..., list[_Operation]]) -> None:
        self._db = db
        self._lock = lock
        self._read = read

    def agree(self, terms: Terms) -> None:
        """From now on these terms hold (inside a transaction)."""
        if self._newest_terms() != terms:
            row = (str(terms.rate), str(terms.fixed), str(terms.refund), str(terms.dispute))
            self._db.execute(
                "insert into balance_terms (after_seq, rate, fixed, refund, dispute)"
                " select coalesce(max(seq), 0), ?, ?, ?, ? from operation",
                row,
            )

    def _newest_terms(self) -> Terms | None:
        rows = self._rows("select rate, fixed, refund, dispute from balance_terms order by rowid desc limit 1")
        return Terms(*map(Decimal, rows[0])) if rows else None

    def terms(self) -> list[tuple[int, Terms]]:
        """All terms with the operation after which they held, the newest first."""
        rows = self._rows("select after_seq, rate, fixed, refund, dispute from balance_terms order by rowid desc")
        return [(row[0], Terms(*map(Decimal, row[1:]))) for row in rows]

    def moved(
        self, after: int, limit: int, *, since: datetime | None = None, until: int | None = None
    ) -> list[_Operation]:
        """At most `limit` operations that may have moved money, after one, in order: those made
        since a time, or up to another one.
        """
        condition, values = f"where {_MOVED} and seq > ?", [after]
        if until is not None:
            condition, values = f"{condition} and seq <= ?", [*values, until]
        made = [since.isoformat()] if since is not None else []
        condition = f"{condition} and at >= ?" if made else condition
        return self._read(f"{condition} order by seq limit {int(limit)}", *values, *made)

    def is_cut(self, boundary: datetime) -> bool:
        """Whether payouts were made at this boundary, or a later one."""
        return bool(self._rows("select 1 from balance_cut where boundary >= ? limit 1", boundary.isoformat()))

    def last_before(self, boundary: datetime) -> int:
        """The last operation before a boundary; those that came after another one that is younger
        than the boundary are not before it.
        """
        rows = self._rows("select coalesce(max(seq), 0) from operation where at < ?", boundary.isoformat())
        return int(rows[0][0])

    def last_cut(self) -> int:
        """Up to which operation payouts were made."""
        return int(self._rows("select coalesce(max(last_seq), 0) from balance_cut")[0][0])

    def carried(self) -> dict[str, int]:
        """The currencies of which nothing was paid out at the last cut, with where they begin."""
        return dict(self._rows("select currency, after_seq from balance_carried"))

    def cut(self, boundary: datetime, last: int, payouts: Mapping[str, tuple[int, Decimal]]) -> None:
        """Make payouts, by currency with where each begins and what it is of; one that would be of
        nothing, or less, is carried on (inside a transaction).
        """
        at = boundary.isoformat()
        self._db.execute("insert into balance_cut (boundary, last_seq) values (?, ?)", (at, last))
        self._db.execute("delete from balance_carried")
        for currency, (after, amount) in payouts.items():
            if amount <= 0:
                self._db.execute("insert into balance_carried values (?, ?)", (currency, after))
                continue
            name = f"payout_{boundary:%Y%m%dT%H%M}_{currency}"
            row = (name, at, currency, str(amount), after, last)
            self._db.execute(
                "insert into balance_payout (reference, at, currency, amount, after_seq, last_seq)"
                " values (?, ?, ?, ?, ?, ?)",
                row,
            )

    def payouts(self, since: datetime, after: int, limit: int) -> list[Payout]:
        """At most `limit` payouts made since a time, after one, in order."""
        return self._payouts("at >= ? and id > ? order by id limit ?", since.isoformat(), after, limit)

    def payout(self, reference: str) -> Payout | None:
        """The payout of a reference."""
        return next(iter(self._payouts("reference = ?", reference)), None)

    def _payouts(self, condition: str, *values: object) -> list[Payout]:
        rows = self._rows(_PAYOUTS + condition, *values)
        return [
            Payout(row[0], row[1], datetime.fromisoformat(row[2]), row[3], Decimal(row[4]), row[5], row[6])
            for row in rows
        ]

    def _rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        with self._lock:
            return self._db.execute(statement, values).fetchall()
