"""The secret behind the keys under which acquirers are asked;
the keys are made by the statements that commit intents.

Each is an HMAC of what is wished (`derived_key` and `movement_key` in the database), so that a
database that was rolled back asks for the same thing under the same key, and the acquirer does
nothing twice.
"""

from __future__ import annotations

import hashlib
from typing import Final

_BLOCK: Final = 64
_INNER: Final = bytes(byte ^ 0x36 for byte in range(256))
_OUTER: Final = bytes(byte ^ 0x5C for byte in range(256))


def pads_of(secret: bytes) -> bytes:
    """The inner and the outer block that HMAC-SHA256 makes of a key derived from `secret`.

    The database is handed these with each intent and keeps them nowhere; the secret itself never
    leaves the process.
    """
    key = hashlib.sha256(b"paydesk keys of acquirers: " + secret).digest().ljust(_BLOCK, b"\0")
    return key.translate(_INNER) + key.translate(_OUTER)
