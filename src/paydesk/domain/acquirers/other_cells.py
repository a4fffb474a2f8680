"""What other cells say of what an account told that is not known here: where cells share an
account, each reads all that its lists have.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final, TypeAlias, TypeVar

MOST: Final = 100
"""How many are tried again, and asked for, at once."""

_LONGEST_KEY: Final = 200
_LONGEST_REFERENCE: Final = 200

Asked = TypeVar("Asked")


@dataclass(frozen=True, slots=True)
class Known:
    """What a cell knows by this key; `is_over` if it has booked all that was told of it."""

    key: str
    is_over: bool


@dataclass(frozen=True, slots=True)
class Heard:
    """What the other cells say.

    `silent` are the numbers of those that did not answer, `older` of those whose release does not
    know the question, and `has_others` is false where this one is alone.
    """

    known: tuple[Known, ...] = ()
    silent: tuple[int, ...] = ()
    older: tuple[int, ...] = ()
    has_others: bool = True

    @property
    def is_whole(self) -> bool:
        """Whether all have answered."""
        return not (self.silent or self.older)


Elsewhere: TypeAlias = Callable[[Sequence[Asked]], Awaitable[Heard]]
"""Asks all other cells at once which of these, `MOST` at most, they know; who does not answer in
time is silent."""


async def alone(_asked: Sequence[Any]) -> Heard:
    """There is no other cell."""
    return Heard(has_others=False)


def may_be_ours(key: str) -> bool:
    """Whether it may be a key of ours, under which an acquirer was asked: anybody may write another
    one in an account's own pages.
    """
    return key.isascii() and key.isprintable() and 0 < len(key) <= _LONGEST_KEY


def storable_name(name: str) -> str:
    """A name that PostgreSQL stores and finds, for whatever an acquirer calls something."""
    name = name.replace("\x00", "\ufffd")
    if len(name) <= _LONGEST_REFERENCE:
        return name
    # Two long ones may begin alike.
    return name[: _LONGEST_REFERENCE // 2] + sha256(name.encode()).hexdigest()
