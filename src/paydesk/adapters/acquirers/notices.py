"""What an acquirer tells us of its own accord: it only hurries a look-up. What it says of money is
never believed; the acquirer is asked.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec


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


class _Page(msgspec.Struct, frozen=True):
    """A Checkout Session of Stripe's: each says where we had it lead back to."""

    success_url: str = ""


class _Data(msgspec.Struct, frozen=True):
    object: _Page


class _Event(msgspec.Struct, frozen=True):
    data: _Data


def said_way_back(body: bytes) -> str:
    """Where the page leads back to that a signed notification is about, as whoever has written it
    says; empty if it says nothing of that. Good for leading it to a cell, and for nothing else.

    Source: docs.stripe.com/api/checkout/sessions/object, "success_url".
    """
    try:
        return msgspec.json.decode(body, type=_Event).data.object.success_url
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""
