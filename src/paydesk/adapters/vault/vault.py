"""Authenticated encryption of single values (AES-256-GCM), each bound to the row
that it was sealed for.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from paydesk.core.errors import PaydeskError, SetupError

_VERSION: Final = b"\x01"
_NONCE_BYTES: Final = 12
_TAG_BYTES: Final = 16
_KEY_BYTES: Final = 32
_SHORTEST_SECRET: Final = 32
_KEY_ID: Final = re.compile(r"[A-Za-z0-9_.-]{1,32}")


class VaultError(PaydeskError):
    """A sealed value can't be opened; the message never holds the value or a key."""

    status = 500


@dataclass(frozen=True, slots=True)
class Sealed:
    """An encrypted value as it is stored: the id of its key, and one blob of version byte, nonce,
    ciphertext, tag.
    """

    key_id: str
    blob: bytes = field(repr=False)


class Vault:
    """Seals and opens values, and makes keyed fingerprints by which a sealed value can be found."""

    def __init__(self, keys: Mapping[str, bytes], secret_key: bytes) -> None:
        """Take 32-byte keys by their ids, the first of which seals,
        and the secret that fingerprints derive from.

        Raises: SetupError naming the setting that is wrong.
        """
        if not keys:
            raise SetupError("PAYDESK_VAULT_KEYS holds no key; write it as id:key, the key 32 random bytes in base64")
        for key_id, key in keys.items():
            _check_key(key_id, key)
        if len(secret_key) < _SHORTEST_SECRET:
            raise SetupError(f"PAYDESK_SECRET_KEY has {len(secret_key)} bytes; it needs at least {_SHORTEST_SECRET}")
        self._ciphers = {key_id: AESGCM(key) for key_id, key in keys.items()}
        self._current = next(iter(keys))
        self._secret_key = secret_key
        self._current_key = keys[self._current]
        self._fingerprint_keys: dict[str, bytes] = {}
        self._fingerprints: dict[str, hmac.HMAC] = {}
        self._passing_fingerprints: dict[str, hmac.HMAC] = {}

    @classmethod
    def from_settings(cls, vault_keys: str, secret_key: str) -> Vault:
        """A vault from PAYDESK_VAULT_KEYS (`id:base64key[,id:base64key…]`, newest first)
        and PAYDESK_SECRET_KEY.

        Raises: SetupError naming the setting and the entry, never a key.
        """
        return cls(_parse_keys(vault_keys), secret_key.strip().encode())

    def __repr__(self) -> str:
        return f"Vault(key ids: {', '.join(self._ciphers)})"

    @property
    def current_key_id(self) -> str:
        """The id of the key that seals; values under another one may be sealed anew
        (key rotation).
        """
        return self._current

    def knows(self, key_id: str) -> bool:
        """Whether values under this key can be opened."""
        return key_id in self._ciphers

    def seal(self, plaintext: bytes, *, purpose: str, merchant_id: int, row_id: int) -> Sealed:
        """Encrypt a value so that it opens only for the same purpose, merchant and row."""
        nonce = secrets.token_bytes(_NONCE_BYTES)
        bound_to = _associated_data(self._current, purpose, merchant_id, row_id)
        ciphertext = self._ciphers[self._current].encrypt(nonce, plaintext, bound_to)
        return Sealed(self._current, _VERSION + nonce + ciphertext)

    def open(self, sealed: Sealed, *, purpose: str, merchant_id: int, row_id: int) -> bytes:
        """Decrypt a value that was sealed for this purpose, merchant and row.

        Raises: VaultError if its key is not configured, or it was changed or belongs elsewhere.
        """
        cipher = self._ciphers.get(sealed.key_id)
        if cipher is None:
            raise VaultError(
                f'vault key "{sealed.key_id}" is not configured; put it back at the end of PAYDESK_VAULT_KEYS'
            )
        blob = sealed.blob
        if blob[:1] != _VERSION or len(blob) < 1 + _NONCE_BYTES + _TAG_BYTES:
            raise VaultError(f"sealed {purpose} of row {row_id} is not in a format that this version knows")
        nonce, ciphertext = blob[1 : 1 + _NONCE_BYTES], blob[1 + _NONCE_BYTES :]
        try:
            return cipher.decrypt(nonce, ciphertext, _associated_data(sealed.key_id, purpose, merchant_id, row_id))
        except InvalidTag:
            raise VaultError(
                f"sealed {purpose} of merchant {merchant_id}, row {row_id} was changed or belongs to another row"
            ) from None

    def fingerprint(self, value: str, *, purpose: str) -> bytes:
        """32 bytes by which equal values of one purpose are found
        without being readable (HMAC-SHA256).
        """
        made = self._fingerprints.get(purpose)
        if made is None:
            made = self._fingerprints[purpose] = hmac.new(self.fingerprint_key(purpose), digestmod="sha256")
        return _of_value(made, value)

    def fingerprint_key(self, purpose: str) -> bytes:
        """The key of one purpose's fingerprints, for a program of the operator's that makes them,
        too.
        """
        if purpose not in self._fingerprint_keys:
            derivation = HKDF(SHA256(), _KEY_BYTES, salt=None, info=b"paydesk fingerprint: " + purpose.encode())
            self._fingerprint_keys[purpose] = derivation.derive(self._secret_key)
        return self._fingerprint_keys[purpose]

    def passing_fingerprint(self, value: str, *, purpose: str) -> bytes:
        """Like `fingerprint`, for what is soon forgotten: its key derives from the vault's newest,
        not from the secret.

        After a rotation equal values have another one. For values of which there are few enough to
        try them all.
        """
        made = self._passing_fingerprints.get(purpose)
        if made is None:
            derivation = HKDF(SHA256(), _KEY_BYTES, salt=None, info=b"paydesk passing fingerprint: " + purpose.encode())
            key = derivation.derive(self._current_key)
            made = self._passing_fingerprints[purpose] = hmac.new(key, digestmod="sha256")
        return _of_value(made, value)


def generate_key_setting() -> str:
    """A fresh entry for PAYDESK_VAULT_KEYS; its id is random,
    so that entries of a rotation never clash.
    """
    return f"k{secrets.token_hex(4)}:{base64.b64encode(secrets.token_bytes(_KEY_BYTES)).decode()}"


def generate_secret() -> str:
    """A fresh value for PAYDESK_SECRET_KEY, 256 bits of chance."""
    return secrets.token_urlsafe(_KEY_BYTES)


def _of_value(begun: hmac.HMAC, value: str) -> bytes:
    """The fingerprint of a value by one that knows its key: to begin anew each time takes as long
    again, and lets go of the interpreter's lock, for which others may wait.
    """
    fingerprint = begun.copy()
    fingerprint.update(value.encode())
    return fingerprint.digest()


def _associated_data(key_id: str, purpose: str, merchant_id: int, row_id: int) -> bytes:
    """What a value is bound to, written so that no two bindings look the same
    (each text is preceded by its length).
    """
    return _bound_texts(key_id, purpose) + merchant_id.to_bytes(8, signed=True) + row_id.to_bytes(8, signed=True)


@lru_cache(maxsize=1024)
def _bound_texts(key_id: str, purpose: str) -> bytes:
    """The part that many values share: a billing run opens thousands of cards."""
    texts = (key_id.encode(), purpose.encode())
    return _VERSION + b"".join(len(text).to_bytes(2) + text for text in texts)


def _parse_keys(setting: str) -> dict[str, bytes]:
    """Read `id:base64key` entries in their order."""
    keys: dict[str, bytes] = {}
    for place, entry in enumerate(filter(None, (part.strip() for part in setting.split(","))), start=1):
        key_id, colon, encoded = entry.partition(":")
        if not colon:
            raise SetupError(f"entry {place} of PAYDESK_VAULT_KEYS is not of the form id:base64key")
        if key_id in keys:
            raise SetupError(f'PAYDESK_VAULT_KEYS names the key id "{key_id}" twice')
        keys[key_id] = _decode_key(encoded, place)
    return keys


def _decode_key(encoded: str, place: int) -> bytes:
    """Read base64, standard or URL-safe, with or without its padding."""
    standard = encoded.strip().replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return base64.b64decode(standard + "=" * (-len(standard) % 4), validate=True)
    except binascii.Error:
        raise SetupError(f"the key in entry {place} of PAYDESK_VAULT_KEYS is not base64") from None


def _check_key(key_id: str, key: bytes) -> None:
    """Make sure that a key has a plain id and 256 bits."""
    if not _KEY_ID.fullmatch(key_id):
        # The text may be a key whose id was forgotten, so it is not repeated here.
        raise SetupError("a key id in PAYDESK_VAULT_KEYS is not 1 to 32 letters, digits, dots, dashes or underscores")
    if len(key) != _KEY_BYTES:
        raise SetupError(f'vault key "{key_id}" has {len(key)} bytes; AES-256 needs {_KEY_BYTES}')
