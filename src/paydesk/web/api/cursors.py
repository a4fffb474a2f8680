"""Cursors: where a list goes on, as a text that clients hand back and need not understand."""

from __future__ import annotations

import base64
import binascii
import hashlib
import struct
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from paydesk.core.errors import Malformed
from paydesk.core.paging import EARLIEST, LARGEST_ID, LATEST, Place

_FORMAT = struct.Struct(">qq8s")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def write_cursor(place: Place, asked: Mapping[str, str]) -> str:
    """A cursor that goes on after a place of the list that `asked` describes
    (its name, side and filters).
    """
    packed = _FORMAT.pack((place.at - _EPOCH) // _MICROSECOND, place.id, _digest(asked))
    return base64.urlsafe_b64encode(packed).decode()


def read_cursor(text: str, asked: Mapping[str, str]) -> Place:
    """The place that a cursor names.

    Raises: Malformed if it is no cursor, or one of another list or other filters.
    """
    try:
        microseconds, row, digest = _FORMAT.unpack(base64.b64decode(text, altchars=b"-_", validate=True))
        at = _EPOCH + microseconds * _MICROSECOND
    except (binascii.Error, struct.error, ValueError, OverflowError):
        raise _no_cursor() from None
    if not (EARLIEST <= at <= LATEST and 0 <= row <= LARGEST_ID):
        raise _no_cursor()
    if digest != _digest(asked):
        raise Malformed("cursor belongs to another list or to other filters; start without a cursor", "cursor")
    return Place(at, row)


def _no_cursor() -> Malformed:
    return Malformed("cursor is not a next_cursor of this API; hand it back as it was given", "cursor")


def _digest(asked: Mapping[str, str]) -> bytes:
    text = repr(sorted(asked.items())).encode()
    return hashlib.sha256(text).digest()[:8]
