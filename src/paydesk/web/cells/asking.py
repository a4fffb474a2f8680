"""Asks other cells what they know, in this cell's own name: signed, for a short time, and no more
of an answer than fits. Nothing is changed by it, so whoever repeats a question gains nothing.
"""

from __future__ import annotations

import asyncio
import hmac
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Final, TypeVar

import msgspec
from aiohttp import ClientError

from paydesk.adapters.vault import Vault
from paydesk.core.errors import PaydeskError
from paydesk.domain.cells.directory import Cell
from paydesk.web.cells.calling import CellAway, OtherCells
from paydesk.web.cells.marks import HEADER, LASTS, Passed, mark
from paydesk.web.cells.places import Asker

QUESTION: Final = "x-paydesk-question"
"""The header with which a cell proves that it asks."""

PATIENCE: Final = 3.0
"""Seconds that another cell gets for a whole answer."""

LARGEST_ANSWER: Final = 128 * 1024

_PURPOSE: Final = "questions between cells"
_PROOF: Final = re.compile(r"([0-9]{1,12}) ([0-9]{1,3}) ([0-9]{1,3}) ([0-9a-f]{64})")

T = TypeVar("T")


class QuestionUnknown(CellAway):
    """A cell of an older release does not know the question."""


@dataclass(frozen=True, slots=True)
class Asking:
    """How a cell asks others."""

    others: OtherCells
    vault: Vault

    async def ask(self, cell: Cell, path: str, question: object, answer: type[T], *, own: int, now: datetime) -> T:
        """What another cell answers. `own` is this cell's number, `now` UTC.

        Raises: CellAway if it doesn't, in time, or with something else than it was asked for;
            QuestionUnknown if it says that there is no such question.
        """
        body = msgspec.json.encode(question)
        headers = [
            ("content-type", "application/json"),
            ("content-length", str(len(body))),
            (HEADER, mark(self.vault, "POST", path, Passed(""), now=now)),
            (QUESTION, prove(self.vault, path, body, asking=own, asked=cell.number, now=now)),
        ]
        asked = self.others.asked(cell, "POST", path, headers, body, asker=Asker(f"question {path}"))
        try:
            async with asyncio.timeout(PATIENCE), asked as answered:
                if answered.head.status != 200:
                    raise QuestionUnknown if answered.head.status == 404 else CellAway
                return msgspec.json.decode(await _bounded(answered.parts()), type=answer)
        except QuestionUnknown:
            raise
        except (PaydeskError, ClientError, TimeoutError, OSError, ValueError, RecursionError) as error:
            raise CellAway from error


async def _bounded(parts: AsyncIterator[bytes]) -> bytes:
    """A whole answer. Raises: CellAway if it is too long."""
    whole = b""
    async for part in parts:
        whole += part
        if len(whole) > LARGEST_ANSWER:
            raise CellAway
    return whole


def prove(vault: Vault, path: str, body: bytes, *, asking: int, asked: int, now: datetime) -> str:
    """The header's value for a question of one cell to another."""
    said = f"{int(now.timestamp())} {asking} {asked}"
    return f"{said} {_proof(vault, path, body, said)}"


def who_asks(vault: Vault, path: str, body: bytes, given: str, *, own: int, now: datetime) -> int | None:
    """The cell that asks this one; None if none does, with this question, just now."""
    match = _PROOF.fullmatch(given)
    if match is None or not given.isascii() or abs(now.timestamp() - int(match[1])) > LASTS or int(match[3]) != own:
        return None
    said = given.rpartition(" ")[0]
    return int(match[2]) if hmac.compare_digest(_proof(vault, path, body, said), match[4]) else None


def _proof(vault: Vault, path: str, body: bytes, said: str) -> str:
    return vault.fingerprint(f"{path} {sha256(body).hexdigest()} {said}", purpose=_PURPOSE).hex()
