"""The files of merchants' sides in the simulated bank's record: which came, and to which dispute
they belong.
"""

from __future__ import annotations

import hashlib
import sqlite3
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from paydesk.adapters.acquirers.disputes import EvidenceFile, EvidenceKind

SCHEMA: Final = """
create table if not exists evidence_file (
    key text primary key, reference text not null unique, kind text not null, media_type text not null,
    size integer not null, sha256 text not null
) strict, without rowid;
create table if not exists given_file (
    dispute text not null, kind text not null, file text not null, primary key (dispute, kind)
) strict, without rowid;
"""


@dataclass(frozen=True, slots=True)
class GivenFile:
    """A file of a merchant's side, without what is in it."""

    reference: str
    kind: str
    media_type: str
    size: int
    sha256: str

    @classmethod
    def of(cls, file: EvidenceFile, reference: str) -> GivenFile:
        """What is noted of a file."""
        digest = hashlib.sha256(file.content).hexdigest()
        return cls(reference, str(file.kind), file.media_type, len(file.content), digest)


class EvidenceRecord:
    """These parts of the record, on its connection and under its lock."""

    def __init__(self, db: sqlite3.Connection, lock: threading.RLock) -> None:
        self._db: Final = db
        self._lock: Final = lock

    def keep(self, key: str, file: GivenFile) -> GivenFile:
        """Note a file that came under a key (inside a transaction), or find the one that did."""
        noted = (key, file.reference, file.kind, file.media_type, file.size, file.sha256)
        self._db.execute("insert or ignore into evidence_file values (?, ?, ?, ?, ?, ?)", noted)
        return self._read("where key = ?", key)[0]

    def file(self, reference: str) -> GivenFile | None:
        """The file of a reference, if there is one."""
        return next(iter(self._read("where reference = ?", reference)), None)

    def give(self, dispute: str, files: Mapping[EvidenceKind, str]) -> None:
        """Note which files belong to what a merchant says of a dispute (inside a transaction)."""
        rows = [(dispute, str(kind), file) for kind, file in files.items()]
        self._db.executemany("insert or replace into given_file values (?, ?, ?)", rows)

    def of_dispute(self, dispute: str) -> list[GivenFile]:
        """The files that belong to what a merchant said of a dispute, by what they show."""
        return self._read("where reference in (select file from given_file where dispute = ?) order by kind", dispute)

    def files(self) -> list[GivenFile]:
        """All files that came, whether they belong to a dispute or not."""
        return self._read("where key >= ?", "")

    def _read(self, condition: str, value: str) -> list[GivenFile]:
        columns = "select reference, kind, media_type, size, sha256 from evidence_file "
        with self._lock:
            return [GivenFile(*row) for row in self._db.execute(columns + condition, (value,))]
