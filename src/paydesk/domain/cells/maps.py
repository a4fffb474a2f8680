"""Maps by which HAProxy leads requests to the cell of their merchant, written from the directory.

They name merchants by id and all else by a fingerprint: never a key. A map is only replaced when it
changed, whole and at once, so that whoever reads it meanwhile reads the old or the new one. Of
several who write them one does at a time.
"""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
from base64 import b64encode
from collections.abc import AsyncIterator, Iterable
from contextlib import ExitStack, asynccontextmanager
from filecmp import cmp
from pathlib import Path
from typing import Final, TextIO
from urllib.parse import urlsplit

from paydesk.adapters.vault import Vault
from paydesk.core.errors import SetupError
from paydesk.database.pool import Database
from paydesk.database.records import records_of
from paydesk.database.statements import load_statements
from paydesk.domain.cells.directory import DIRECTORY, PRIVATE_KEYS, Cell, Kind

queries = load_statements(__package__ or "", "maps.sql")

MAPS: Final = {
    Kind.merchant: "merchants.map",
    Kind.public_key: "public_keys.map",
    Kind.private_key: "private_keys.map",
    Kind.email: "emails.map",
}
HOSTS: Final = "hosts.map"
KEYS: Final = "keys.cfg"
"""The keys of the fingerprints, as a piece of HAProxy's configuration that nobody else may read."""

_NEW: Final = ".new"
_SOON: Final = 0.1
_LOCKS_NO_FOLDER: Final = (errno.EBADF, errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)
"""What file systems say of a lock that they have not; NFS asks for a file that is written to."""


async def write_maps(database: Database, vault: Vault, folder: Path) -> list[str]:
    """Write what a folder of HAProxy's lacks; the names of the files that changed.

    Raises: SetupError if there are no cells, or the folder can't be written.
    """
    try:
        async with _alone(folder):
            cells = await records_of(Cell, queries.cells(database))
            if not cells:
                raise SetupError("there are no cells: add them with `paydesk cell add`")
            with ExitStack() as stack:
                files = {kind: stack.enter_context(_new(folder / name)) for kind, name in MAPS.items()}
                async for kind, name, cell in queries.entries(database):
                    if kind in files:
                        files[kind].write(f"{name} {backend(cell)}\n")
                hosts = stack.enter_context(_new(folder / HOSTS))
                hosts.writelines(_hosts(cells))
                stack.enter_context(_new(folder / KEYS, mode=0o600)).write(_keys(vault))
            return [name for name in (*MAPS.values(), HOSTS, KEYS) if _replace(folder / name)]
    except OSError as error:
        raise SetupError(f"the maps can't be written: {error}") from error


def backend(cell: int) -> str:
    """What HAProxy calls the web servers of a cell."""
    return f"cell{cell}"


def _hosts(cells: Iterable[Cell]) -> Iterable[str]:
    return (f"{urlsplit(cell.address).hostname} {backend(cell.number)}\n" for cell in cells)


def _keys(vault: Vault) -> str:
    lines = (
        f"    set-var proc.{name} str({b64encode(vault.fingerprint_key(purpose)).decode()})\n"
        for name, purpose in (("paydesk_directory", DIRECTORY), ("paydesk_private_keys", PRIVATE_KEYS))
    )
    return "".join(
        ("# By these HAProxy finds keys in the maps. They derive from PAYDESK_SECRET_KEY.\n", "global\n", *lines)
    )


@asynccontextmanager
async def _alone(folder: Path) -> AsyncIterator[None]:
    """Nobody else writes into a folder for a block, where its file system locks folders;
    the lock ends with its process.
    """
    handle = os.open(folder, os.O_RDONLY)
    try:
        while not _taken(handle):  # noqa: ASYNC110 (a lock sends no event)
            await asyncio.sleep(_SOON)
        yield
    finally:
        os.close(handle)


def _taken(handle: int) -> bool:
    """Whether a folder is ours now; it is where nobody can lock it, as on NFS."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in _LOCKS_NO_FOLDER:
            raise
    return True


def _new(path: Path, mode: int = 0o644) -> TextIO:
    """A file beside the one that it may replace."""
    beside = path.with_name(path.name + _NEW)
    beside.unlink(missing_ok=True)
    return os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w")


def _replace(path: Path) -> bool:
    """Put the new file in its place; false if it says the same as the old one."""
    beside = path.with_name(path.name + _NEW)
    if path.exists() and cmp(path, beside, shallow=False):
        beside.unlink()
        return False
    beside.replace(path)
    return True
