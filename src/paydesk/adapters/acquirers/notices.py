"""What an acquirer tells us of its own accord: it only hurries a look-up. What it says of money is
never believed; the acquirer is asked.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Notice:
    """Something has happened to the purchase that was asked for under `key`;
    `merchant` is the merchant's tag in its mark.
    """

    key: str
    merchant: str


class NoticeRefused(Exception):
    """A notification that is not the acquirer's, comes too late, or can't be read;
    the message says which.
    """
