"""The accounts at acquirers that ever served, remembered in a file outside the database.

One that was put back to a time before an account was added says nothing of it, and what was taken
there would be taken once more elsewhere. What a process remembers and the database does not know is
written into it, and all that moves money is held until each such account is there again, or an
operator says that it is gone.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec
import structlog

from paydesk.core.errors import Malformed, NotFound
from paydesk.core.wording import noted
from paydesk.database.pool import Database
from paydesk.database.records import records_of
from paydesk.database.statements import Connection, load_statements
from paydesk.domain.accounts.audit import Action, Actor, record
from paydesk.domain.operations.history import Reading, hold

queries = load_statements(__package__ or "", "remembered_accounts.sql")
log = structlog.get_logger()

NAME: Final = "accounts.json"
EVERY: Final = 3.0
"""Seconds between two looks; an account takes its first payment later after it was added."""

FORGOTTEN: Final = noted("the database has forgotten accounts at acquirers that served")
_LONGEST: Final = 1_000_000
"""Bytes; what is longer is none of ours."""


class RememberedAccount(msgspec.Struct, frozen=True):
    """An account that served, and when it was added; `own_id` is what its acquirer calls it."""

    kind: str
    live: bool
    own_id: str
    added_at: datetime


@dataclass(frozen=True, slots=True)
class LostAccount:
    """An account that the database had forgotten, and that is not there again yet."""

    account: str
    kind: str
    live: bool
    own_id: str

    @property
    def why(self) -> str:
        """What is to be done, in words."""
        called = f"{self.kind}, {self.own_id}" if self.own_id else self.kind
        return (
            f'the account "{self.account}" ({called}) took payments that this database has forgotten: add it again '
            f"under its name (paydesk acquirer add {self.account}), or say why it never will be (paydesk acquirer gone)"
        )


@dataclass(frozen=True, slots=True)
class _Known:
    account: str
    kind: str
    live: bool
    own_id: str
    added_at: datetime
    is_lost: bool


def accounts_file(data_dir: Path) -> Path:
    """Where the processes of a data directory remember accounts."""
    return data_dir / NAME


Remembered = dict[str, dict[str, RememberedAccount]]
"""Accounts by name, by the tag of their deployment."""


def recall_accounts(file: Path) -> Remembered:
    """What was remembered; nothing if it can't be read."""
    with suppress(OSError, msgspec.MsgspecError), file.open("rb") as opened:
        return msgspec.json.decode(opened.read(_LONGEST), type=Remembered)
    return {}


def remember_accounts(file: Path, deployment: str, accounts: Mapping[str, RememberedAccount]) -> None:
    """Keep these beside those that are remembered already (0600); none is ever dropped.

    A file that can't be written is no error: who has one tells the others, by the database.
    """
    known = recall_accounts(file)
    wanted = {**known, deployment: {**known.get(deployment, {}), **accounts}}
    if wanted == known:
        return
    unfinished = file.with_name(f"{NAME}.{secrets.token_hex(4)}")
    try:
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(msgspec.json.encode(wanted))
        unfinished.replace(file)
    except OSError:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)


class AccountsMemory:
    """What a process remembers of the accounts, with the file of those before it, if it has one."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._mine: dict[str, dict[str, RememberedAccount]] = {}
        self._due = 0.0

    async def turn(self, database: Database, reading: Reading, *, is_live: bool) -> bool:
        """Compare what is remembered with what the database knows, every few seconds; true if all
        was held because it has forgotten some. Moves no money.
        """
        now = asyncio.get_running_loop().time()
        if now < self._due:
            return False
        self._due = now + EVERY
        return await self.compare(database, reading, is_live=is_live)

    async def compare(self, database: Database, reading: Reading, *, is_live: bool) -> bool:
        """Compare at once. Raises: one of AWAY."""
        tag = reading.deployment
        known = {one.account: one for one in await records_of(_Known, queries.known(database))}
        before = self._mine.get(tag, {})
        if self._file is not None:
            before = {**(await asyncio.to_thread(recall_accounts, self._file)).get(tag, {}), **before}
        forgotten = {name: one for name, one in before.items() if name not in known}
        if forgotten:
            await _write_down(database, forgotten)
        present = {
            name: RememberedAccount(
                one.kind, one.live, one.own_id or _own_id(before.get(name)), _first_added(one, before.get(name))
            )
            for name, one in known.items()
            if not one.is_lost
        }
        self._mine[tag] = {**before, **present}
        if self._file is not None:
            await asyncio.to_thread(remember_accounts, self._file, tag, self._mine[tag])
        counted = [one for one in forgotten.values() if one.live is is_live]
        if not counted or reading.held_because:
            return False
        since = min(one.added_at for one in counted)
        await hold(database, epoch=reading.beat.epoch, above=0, because=FORGOTTEN, since=since)
        return True


def _own_id(before: RememberedAccount | None) -> str:
    return before.own_id if before is not None else ""


def _first_added(one: _Known, before: RememberedAccount | None) -> datetime:
    """When an account was first added: one that was added again served before, too."""
    return min(one.added_at, before.added_at) if before is not None else one.added_at


async def _write_down(database: Database, forgotten: Mapping[str, RememberedAccount]) -> None:
    """Tell the database, and so every process, what it has forgotten."""
    await queries.miss(
        database,
        accounts=list(forgotten),
        kinds=[one.kind for one in forgotten.values()],
        lives=[one.live for one in forgotten.values()],
        own_ids=[one.own_id for one in forgotten.values()],
    )
    log.error("the database has forgotten accounts at acquirers", accounts=sorted(forgotten))


async def lost_accounts(database: Connection) -> list[LostAccount]:
    """The accounts that were forgotten, are not there again, and of which nobody has said that they
    are gone.
    """
    return await records_of(LostAccount, queries.lost(database))


async def missed_accounts(database: Connection, *, is_live: bool) -> list[LostAccount]:
    """Those of them that are waited for: where live payments are taken (`is_live`), an account for
    tests holds nobody up.
    """
    return [one for one in await lost_accounts(database) if one.live is is_live]


async def say_gone(database: Database, actor: Actor, name: str, words: str, *, now: datetime) -> None:
    """Say why a forgotten account is not added again: what it took is for the operator from then
    on, and may be taken once more. Moves no money.

    Raises: Malformed without words; NotFound if no such account is missed.
    """
    if not words.strip():
        raise Malformed("say why it is not added again: the words stand in the log", "words")
    async with database.acquire() as connection, connection.transaction():
        if await queries.say_gone(connection, account=name, because=words.strip()) is None:
            raise NotFound(f'no account "{name[:40]}" is missed')
        details: dict[str, object] = {"gone": words.strip()}
        await record(connection, actor, Action.acquirer_changed, now=now, subject=name, details=details)
