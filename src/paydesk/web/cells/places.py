"""The places of other cells: how many requests of one process wait for a cell at a time, and whose.

A slow cell holds each for up to a minute, a silent one until it is known as that (`pulses.py`), and
whoever asks may be anybody. So nobody has a fixed share, but as much as others leave: a sender that
has half as many places as are free gets no more. One alone gets a third of an idle cell, the next a
third of the rest, and the last place is for one who has none, so that a cell is full only by eight
senders, or more. With a fixed share of a quarter four would do, and a merchant whose customers come
all at once would get less of an idle cell.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from paydesk.core.errors import IN_A_MOMENT, Unavailable

AT_ONCE: Final = 32
"""Requests that one process has passed on to one cell at a time; more are told to come back."""


class Asker(NamedTuple):
    """Whose a request is: who sends it, and what it names there (empty: nothing)."""

    sender: str
    named: str = ""


class NoPlace(Unavailable):
    """None of a cell's places is left, or none for whoever asks; nothing was done."""

    retry_after = IN_A_MOMENT

    def __init__(self, *, is_full: bool) -> None:
        super().__init__(
            "too many requests wait just now for the part of this service that does this; nothing was done, try again"
        )
        self.is_full = is_full


class Places:
    """Who waits for which cell.

    A place is held until its answer has gone out, also when its client has gone: the other cell
    works on it still, and more of them at once would only make it slower.
    """

    def __init__(self) -> None:
        self._held: defaultdict[int, list[Asker]] = defaultdict(list)

    @contextmanager
    def taken(self, cell: int, asker: Asker) -> Iterator[None]:
        """Hold one of a cell's places for the length of a block.

        What is named may have as many as are free, since it is many who name it: a shop's
        customers, or strangers. What it has counts with what its sender has, so that one who names
        one merchant over and over gets a quarter, and does not shut out others who name it.

        Raises: NoPlace.
        """
        held = self._held[cell]
        free = AT_ONCE - len(held)
        of_sender = sum(one.sender == asker.sender for one in held)
        of_named = sum(one.named == asker.named for one in held) if asker.named else 0
        if 2 * of_sender + of_named >= free:
            raise NoPlace(is_full=free <= 0)
        held.append(asker)
        try:
            yield
        finally:
            held.remove(asker)
