"""Passwords: hashed by argon2id in a few threads, at least 12 characters, and not one that is known
to have leaked.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import os
import secrets
import unicodedata
from dataclasses import dataclass, field
from pathlib import Path

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from argon2.low_level import ARGON2_VERSION

from paydesk.core.errors import Malformed, SetupError, TooMany
from paydesk.core.wording import plural, worded
from paydesk.domain.accounts.common_passwords import is_common

SHORTEST = 12
LONGEST = 1024
HASHES_AT_ONCE = 2
"""Each takes 64 MiB and a core for a moment."""
MOST_WAITING = 64


class BreachedPasswords:
    """A file of SHA-1 hashes of leaked passwords as published: lines `HASH:COUNT`, or `HASH`,
    sorted by hash.
    """

    def __init__(self, path: Path) -> None:
        """Take the file.

        Raises: SetupError if it can't be read or does not begin with a hash.
        """
        self._path = path
        try:
            with path.open("rb") as file:
                first = file.readline(64)
        except OSError as error:
            raise SetupError(f"PAYDESK_BREACHED_PASSWORDS: cannot read {path}: {error.strerror}") from error
        if not _is_hash(_hash_of(first)):
            raise SetupError(f"PAYDESK_BREACHED_PASSWORDS: {path} does not begin with a SHA-1 hash in hexadecimal")

    def contains(self, password: str) -> bool:
        """Look a password up by binary search: some thirty reads,
        also in the whole published list.
        """
        wanted = hashlib.sha1(password.encode(), usedforsecurity=False).hexdigest().upper().encode()
        with self._path.open("rb") as file:
            low, high = 0, os.fstat(file.fileno()).st_size
            while low < high:
                middle = (low + high) // 2
                file.seek(middle)
                if middle:
                    # From the middle of a line on to the next one; a line that begins right here is
                    # found lower down.
                    file.readline()
                line = file.readline()
                found = _hash_of(line)
                if found == wanted:
                    return True
                if line and found < wanted:
                    low = middle + 1
                else:
                    high = middle
        return False


def _hash_of(line: bytes) -> bytes:
    return line.partition(b":")[0].strip().upper()


def _is_hash(text: bytes) -> bool:
    return len(text) == 40 and all(letter in b"0123456789ABCDEF" for letter in text)


@dataclass(frozen=True, slots=True)
class PasswordVerdict:
    """Whether a password is right, and if so its hash by today's parameters where the stored one
    is older.
    """

    right: bool
    rehashed: str | None = None


@dataclass(slots=True)
class Passwords:
    """Hashes and verifies passwords, at most `at_once` at a time in this process,
    and refuses weak new ones.
    """

    hasher: PasswordHasher = field(default_factory=PasswordHasher)
    breached: BreachedPasswords | None = None
    at_once: int = HASHES_AT_ONCE
    _free: asyncio.Semaphore = field(init=False, repr=False)
    _waiting: int = field(init=False, default=0)
    _nobodys: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._free = asyncio.Semaphore(self.at_once)
        self._nobodys = _hash_of_no_password(self.hasher)

    async def choose(self, password: str, *, email: str) -> str:
        """Check a new password and return its hash.

        Raises: Malformed if it is too short, too long, the e-mail address, what everybody guesses
        first, or known to have leaked; TooMany.
        """
        text = _normal(password)
        if len(text) < SHORTEST:
            raise Malformed(
                plural(
                    "the password has %(count)s character; choose one of at least %(shortest)s",
                    "the password has %(count)s characters; choose one of at least %(shortest)s",
                    count=len(text),
                    shortest=SHORTEST,
                ),
                "password",
            )
        if len(text) > LONGEST:
            raise Malformed(
                plural(
                    "the password has %(count)s character; at most %(longest)s are accepted",
                    "the password has %(count)s characters; at most %(longest)s are accepted",
                    count=len(text),
                    longest=LONGEST,
                ),
                "password",
            )
        if text.casefold() == email.casefold():
            raise Malformed(worded("the password must not be the e-mail address"), "password")
        async with self._turn():
            if await asyncio.to_thread(is_common, text, email=email):
                raise Malformed(
                    worded(
                        "this password is made of what attackers try first (common words, rows of keys, "
                        "years, your address); take several words that have nothing to do with each other"
                    ),
                    "password",
                )
            if self.breached is not None and await asyncio.to_thread(self.breached.contains, text):
                raise Malformed(
                    worded(
                        "this password is in a public list of leaked passwords, so attackers try it; choose another one"
                    ),
                    "password",
                )
            return await asyncio.to_thread(self.hasher.hash, text)

    async def verify(self, password: str, stored: str) -> PasswordVerdict:
        """Compare with a stored hash; an empty one takes as long and is never right.

        Raises: TooMany if too many others wait for theirs.
        """
        async with self._turn():
            return await asyncio.to_thread(self._verify, _normal(password)[:LONGEST], stored)

    def _verify(self, text: str, stored: str) -> PasswordVerdict:
        try:
            self.hasher.verify(stored or self._nobodys, text)
        except (VerificationError, InvalidHashError):
            return PasswordVerdict(right=False)
        if not stored:
            return PasswordVerdict(right=False)
        return PasswordVerdict(True, self.hasher.hash(text) if self.hasher.check_needs_rehash(stored) else None)

    def _turn(self) -> _Turn:
        return _Turn(self)


def _hash_of_no_password(hasher: PasswordHasher) -> str:
    """A hash that takes as long to compare with as any of the hasher's, made of chance instead
    of a password.

    Hashing a password that nobody knows would do as well, but every process would take a tenth of a
    second to start.
    """
    salt, digest = (
        base64.b64encode(secrets.token_bytes(length)).decode().rstrip("=")
        for length in (hasher.salt_len, hasher.hash_len)
    )
    costs = f"m={hasher.memory_cost},t={hasher.time_cost},p={hasher.parallelism}"
    return f"$argon2id$v={ARGON2_VERSION}${costs}${salt}${digest}"


class _Turn:
    """A place among those who hash now; too long a queue is refused rather than kept waiting."""

    def __init__(self, passwords: Passwords) -> None:
        self._passwords = passwords

    async def __aenter__(self) -> None:
        if self._passwords._waiting >= MOST_WAITING:
            raise TooMany(worded("too many people log in just now; try again in a moment"), retry_after=5)
        self._passwords._waiting += 1
        try:
            await self._passwords._free.acquire()
        finally:
            self._passwords._waiting -= 1

    async def __aexit__(self, *_: object) -> None:
        self._passwords._free.release()


def _normal(password: str) -> str:
    """One spelling of a text that keyboards write in several (NFKC, as NIST SP 800-63B advises)."""
    return unicodedata.normalize("NFKC", password.encode(errors="replace").decode())
