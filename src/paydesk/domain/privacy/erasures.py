"""The list of erasures, kept outside the database: a restored backup knows the erased again,
and they are erased again.

It holds no address, only keyed fingerprints: by the deployment's secret key one can tell whether a
given address is in it, and nothing else.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from io import FileIO
from pathlib import Path

import msgspec

from paydesk.adapters.vault import Vault
from paydesk.core.email_addresses import in_small_letters
from paydesk.core.errors import SetupError
from paydesk.database.pool import Database
from paydesk.database.records import records_of
from paydesk.database.statements import load_statements
from paydesk.domain.privacy.belongings import KnownAddress, OneOrder, Subject

queries = load_statements(__package__ or "", "belongings.sql")

PURPOSE = "erased customer"
_BEGINNING = b'{"at":'
_BETWEEN = re.compile(rb"[\n\0]|(?=" + re.escape(_BEGINNING) + rb")")
"""What is between lines: nothing where earlier versions wrote one behind another that a crash had
cut off, NULs where a power loss took what was not on the disk yet.
"""
_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOTSUP)


class ErasureLine(msgspec.Struct, frozen=True):
    """One erasure: when (UTC), at which merchant, and the fingerprint of the address
    or of the order.
    """

    at: datetime
    merchant_id: int
    fingerprint: str


@dataclass(frozen=True, slots=True)
class ErasureList:
    """A file of one JSON object a line, only ever added to."""

    path: Path
    vault: Vault

    def remember(self, subject: Subject, *, now: datetime) -> None:
        """Write down that somebody is erased, on the disk before it happens:
        what is erased twice is erased.

        Raises: SetupError if the file can't be written.
        """
        line = msgspec.json.encode(ErasureLine(now, subject.merchant_id, self.fingerprint(subject))) + b"\n"
        try:
            with FileIO(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600), "r+b") as file:
                _add(file, line, alone=_locked(file))
        except OSError as error:
            raise SetupError(
                f"nothing was erased: {self.path} can't be written ({error.strerror}); see PAYDESK_ERASURE_LIST"
            ) from error

    def erased_at(self, subject: Subject) -> datetime | None:
        """When somebody was erased last; None if never.

        Raises: SetupError if the file holds something else.
        """
        if not self.path.exists():
            return None
        wanted = (subject.merchant_id, self.fingerprint(subject))
        return max((line.at for line in self.read() if (line.merchant_id, line.fingerprint) == wanted), default=None)

    def fingerprint(self, subject: Subject) -> str:
        """What stands for a customer in the list."""
        named = f"email {in_small_letters(subject.email)}" if subject.email else f"order {subject.order}"
        return self._fingerprint(subject.merchant_id, named)

    def stands_for(self, merchant_id: int, known: KnownAddress) -> set[str]:
        """What may stand in the list for an address; in lines of earlier versions, whose letters
        Python made small, too.
        """
        named = {small for typed in known.typed for small in (in_small_letters(typed), typed.lower())}
        return {self._fingerprint(merchant_id, f"email {one.strip()}") for one in named}

    def _fingerprint(self, merchant_id: int, named: str) -> str:
        return self.vault.fingerprint(f"{merchant_id} {named}", purpose=PURPOSE).hex()

    def read(self) -> list[ErasureLine]:
        """All erasures, oldest first.

        Raises: SetupError if the file is not there, or holds something else; a line that a crash
            cut off is left out, since nothing was erased by it.
        """
        try:
            content = self.path.read_bytes()
        except OSError as error:
            raise SetupError(f"cannot read {self.path}: {error.strerror}") from error
        lines = [line.strip() for line in _BETWEEN.split(content)]
        try:
            return [msgspec.json.decode(line, type=ErasureLine) for line in lines if not _cut_off(line)]
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise SetupError(f"{self.path} is no list of erasures: {error}") from error


def _locked(file: FileIO) -> bool:
    """Keep others from the file until it is closed; False where that can't be, as on some network
    file systems.

    Raises: OSError.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        return False
    return True


def _add(file: FileIO, line: bytes, *, alone: bool) -> None:
    """Add a line and wait until the disk has it; nothing of it is left where that fails,
    unless another might be writing, too.

    Raises: OSError.
    """
    size = file.seek(0, os.SEEK_END)
    # What a crash cut off must not swallow this one, too.
    rest = line if not size or os.pread(file.fileno(), 1, size - 1) == b"\n" else b"\n" + line
    try:
        while rest:
            rest = rest[file.write(rest) :]
        os.fsync(file.fileno())
    except OSError:
        if alone:
            file.truncate(size)
        raise


def _cut_off(line: bytes) -> bool:
    """Whether this is only the beginning of a line, or nothing."""
    return b"}" not in line and _BEGINNING.startswith(line[: len(_BEGINNING)])


async def still_there(
    database: Database,
    erasures: ErasureList,
    lines: Iterable[ErasureLine],
    *,
    report: Callable[[], None] = lambda: None,
) -> list[Subject]:
    """Those of the list of whom the database still, or again, holds something;
    `report` is called for each merchant.
    """
    found: list[Subject] = []
    by_merchant: dict[int, set[str]] = {}
    for line in lines:
        by_merchant.setdefault(line.merchant_id, set()).add(line.fingerprint)
    for merchant_id, wanted in by_merchant.items():
        known = _known(database, erasures, merchant_id)
        found += [subject async for subject, names in known if names & wanted]
        report()
    return found


async def _known(
    database: Database, erasures: ErasureList, merchant_id: int
) -> AsyncIterator[tuple[Subject, set[str]]]:
    """All customers and orders of a merchant, each with what may stand in the list for it."""
    for address in await records_of(KnownAddress, queries.emails_known(database, merchant_id=merchant_id)):
        if "@" in address.email:
            yield Subject(merchant_id, email=address.email.strip()), erasures.stands_for(merchant_id, address)
    for order in await records_of(OneOrder, queries.orders_known(database, merchant_id=merchant_id)):
        subject = Subject(merchant_id, order=order.merchant_order_id)
        yield subject, {erasures.fingerprint(subject)}
