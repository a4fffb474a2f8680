"""A mailbox within the process, for a machine without a mail server: whatever is sent lands here."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from paydesk.adapters.mail.letters import Letter

_KEPT = 200


@dataclass(frozen=True, slots=True)
class Kept:
    """A letter that arrived, with its number in this mailbox."""

    number: int
    letter: Letter


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
