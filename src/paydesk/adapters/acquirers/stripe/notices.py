"""Stripe's notifications (webhooks): whether one is Stripe's, and what it is about.

Source: docs.stripe.com/webhooks, "Verify webhook signatures manually"; docs.stripe.com/api/events.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Final

import msgspec

from paydesk.adapters.acquirers.notices import Notice, NoticeRefused
from paydesk.adapters.acquirers.stripe.objects import KEY, mark_of

TOLERANCE: Final = 5 * 60
"""How many seconds a signature's time may be from ours: what is older may be somebody's copy."""

_SCHEME: Final = "v1"


class _Object(msgspec.Struct, frozen=True):
    """What an event is about: sessions and payments have our key and mark in their metadata."""

    metadata: dict[str, str] | None = None


class _Data(msgspec.Struct, frozen=True):
    object: _Object


class _Event(msgspec.Struct, frozen=True):
    """An event; all else that it says is asked of Stripe."""

    data: _Data


class Notices:
    """Reads notifications that were signed with one of some secrets."""

    def __init__(self, secrets: Sequence[str], now: Callable[[], datetime]) -> None:
        self._secrets: Final = tuple(secret.encode() for secret in secrets)
        self._now: Final = now

    def read(self, headers: Mapping[str, str], body: bytes) -> Notice | None:
        """What an event is about; None for one without a key of ours. Raises: NoticeRefused."""
        if not self._secrets:
            raise NoticeRefused("notifications of Stripe need PAYDESK_STRIPE_WEBHOOK_SECRET")
        self._require_signed(headers.get("stripe-signature", ""), body)
        try:
            about = msgspec.json.decode(body, type=_Event).data.object
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise NoticeRefused("the event can't be read") from error
        metadata = about.metadata or {}
        key, mark = metadata.get(KEY), mark_of(metadata)
        return Notice(key, mark.merchant) if key and mark else None

    def _require_signed(self, header: str, body: bytes) -> None:
        """Make sure that a body was signed with one of our secrets, just now.

        Raises: NoticeRefused.
        """
        parts = [part.strip().partition("=") for part in header.split(",")]
        times = [value for name, _, value in parts if name == "t"]
        signatures = [value for name, _, value in parts if name == _SCHEME]
        if len(times) != 1 or not (times[0].isascii() and times[0].isdigit() and len(times[0]) <= 12):
            raise NoticeRefused("Stripe-Signature has no time")
        signed = times[0].encode() + b"." + body
        made = [hmac.new(secret, signed, "sha256").hexdigest() for secret in self._secrets]
        # Each is compared with each, so that how long it takes tells nothing.
        found = [hmac.compare_digest(one.encode(), given.encode()) for one in made for given in signatures]
        if not any(found):
            raise NoticeRefused("Stripe-Signature is not made with PAYDESK_STRIPE_WEBHOOK_SECRET")
        if abs(self._now().timestamp() - int(times[0])) > TOLERANCE:
            raise NoticeRefused("Stripe-Signature is of another time: see the clock of this machine")
