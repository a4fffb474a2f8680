"""A file of JSON lines that grows at its end, so that a restart, or a crash in the middle
of a line, loses nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from io import FileIO
from pathlib import Path
from typing import TypeAlias

import msgspec
import structlog

from paydesk.web.demo.orders import Call, Order, ReceivedPingback

Record: TypeAlias = Order | ReceivedPingback | Call

_log = structlog.get_logger()
_decoder = msgspec.json.Decoder(Order | ReceivedPingback | Call)


class Journal:
    """The records of one shop in one file; one process writes it. All methods block on the disk."""

    def __init__(self, path: Path) -> None:
        """Use the file at `path`; its folder is made if there is none, for this user alone."""
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._path = path
        self.lines = 0

    def read(self) -> list[Record]:
        """All records, oldest first; a line that can't be read (a crash cut it off) is left out
        and logged.
        """
        records: list[Record] = []
        content = self._path.read_bytes() if self._path.exists() else b""
        lines = content.splitlines()
        for number, line in enumerate(lines, 1):
            try:
                records.append(_decoder.decode(line))
            except msgspec.DecodeError as error:
                _log.warning("shop_record_unreadable", file=str(self._path), line=number, error=str(error))
        self.lines = len(lines)
        return records

    def append(self, record: Record) -> None:
        """Add one record and wait until the disk has it. Raises: OSError."""
        with _open(self._path, os.O_APPEND) as file:
            size = file.seek(0, os.SEEK_END)
            # What a crash or a full disk cut off must not swallow this record too.
            begin = b"\n" if size and os.pread(file.fileno(), 1, size - 1) != b"\n" else b""
            try:
                _write(file, begin + msgspec.json.encode(record) + b"\n")
            except OSError:
                # Whoever asked is told that it did not happen, so no restart may find it.
                file.truncate(size)
                raise
        self.lines += 1

    def replace(self, records: Iterable[Record]) -> None:
        """Write the file anew with these records alone; readers see the old file or the new one.

        Raises: OSError.
        """
        lines = [msgspec.json.encode(record) + b"\n" for record in records]
        fresh = self._path.with_suffix(".new")
        with _open(fresh, os.O_TRUNC) as file:
            _write(file, b"".join(lines))
        fresh.replace(self._path)
        self.lines = len(lines)


def _open(path: Path, flags: int) -> FileIO:
    """Open for reading and writing; the file holds customers' names,
    so it is for this user alone.
    """
    return FileIO(os.open(path, os.O_RDWR | os.O_CREAT | flags, 0o600), "r+b")


def _write(file: FileIO, content: bytes) -> None:
    """Write all of it, as a nearly full disk takes only a part at first,
    and wait until the disk has it.
    """
    rest = memoryview(content)
    while rest:
        rest = rest[file.write(rest) :]
    os.fsync(file.fileno())
