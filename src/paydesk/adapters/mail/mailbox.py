"""Mailboxes for a machine without a mail server: whatever is sent lands here,
in memory or in a folder.
"""

from __future__ import annotations

import os
import shutil
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Protocol

import msgspec

from paydesk.adapters.mail.letters import Letter

_KEPT = 200


@dataclass(frozen=True, slots=True)
class Kept:
    """A letter that arrived, with its number in this mailbox."""

    number: int
    letter: Letter


class Letters(Protocol):
    """What a mailbox's reader sees."""

    def letters(self) -> Sequence[Kept]:
        """All that is kept, newest first."""

    def find(self, number: int) -> Kept | None:
        """The letter with this number, if it is still here."""


class Mailbox:
    """Keeps the newest letters in memory; they are gone when the process ends."""

    def __init__(self) -> None:
        self._letters: deque[Kept] = deque(maxlen=_KEPT)
        self._count = 0

    async def send(self, letter: Letter) -> None:
        """Keep a letter; a second copy of one that is here changes nothing."""
        if all(kept.letter.reference != letter.reference for kept in self._letters):
            self._count += 1
            self._letters.append(Kept(self._count, letter))

    async def rest(self) -> None:
        """There is nothing to close."""

    def letters(self) -> Sequence[Kept]:
        """All that is kept, newest first."""
        return tuple(reversed(self._letters))

    def find(self, number: int) -> Kept | None:
        """The letter with this number, if it is still here."""
        return next((kept for kept in self._letters if kept.number == number), None)


class FolderMailbox:
    """Keeps the newest letters in a folder that only this user can read:
    one process sends, another one shows.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def clear(self) -> None:
        """Throw everything away."""
        shutil.rmtree(self._folder, ignore_errors=True)

    async def send(self, letter: Letter) -> None:
        """Keep a letter; a second copy of one that is here changes nothing.

        Raises: OSError if the disk is full.
        """
        self._folder.mkdir(mode=0o700, exist_ok=True)
        name = sha256(letter.reference.encode()).hexdigest()[:32]
        files = self._files()
        if any(file.stem.endswith(name) for file in files):
            return
        number = _number(files[0]) + 1 if files else 1
        unfinished = self._folder / f"{name}.{os.getpid()}"
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(msgspec.json.encode(letter))
        unfinished.replace(self._folder / f"{number:09d}-{name}.json")
        for old in files[_KEPT - 1 :]:
            old.unlink(missing_ok=True)

    async def rest(self) -> None:
        """There is nothing to close."""

    def letters(self) -> Sequence[Kept]:
        """All that is kept, newest first."""
        return tuple(kept for file in self._files() if (kept := _read(file)) is not None)

    def find(self, number: int) -> Kept | None:
        """The letter with this number, if it is still here."""
        return next((_read(file) for file in self._files() if _number(file) == number), None)

    def _files(self) -> list[Path]:
        """The letters' files, newest first."""
        return sorted(self._folder.glob("*-*.json"), reverse=True)


def _number(file: Path) -> int:
    return int(file.stem.partition("-")[0])


def _read(file: Path) -> Kept | None:
    """A letter from its file, None if it was thrown away meanwhile."""
    with suppress(FileNotFoundError):
        return Kept(_number(file), msgspec.json.decode(file.read_bytes(), type=Letter))
    return None
