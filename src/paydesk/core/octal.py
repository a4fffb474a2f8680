"""Ids as a client in the field writes them into paths: `orderId.toString(8)`, a number in octal
(interface.md §8.5).

New ids end in 8, which no octal digit is. So no octal text is ever the decimal text of a new id;
and since it is never the smaller number of the two, it is none of an id that was given before
either, where the new id is above all of those.
"""

from __future__ import annotations

from paydesk.core.paging import LARGEST_ID

ENDING = 8
"""What the ids of payments and subscriptions end in; their sequences go by ten."""

_DIGITS = frozenset("01234567")


def octal_reading(text: str) -> int | None:
    """The new id that a text is if it was written in octal, else None."""
    if not text or text.startswith("0") or not _DIGITS.issuperset(text) or len(text) > len(f"{LARGEST_ID:o}"):
        return None
    number = int(text, 8)
    return number if number % 10 == ENDING and number <= LARGEST_ID else None
