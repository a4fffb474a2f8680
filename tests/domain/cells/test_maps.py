from __future__ import annotations

import asyncio
import base64
import errno
import fcntl
import hmac
import os
import re
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

from paydesk.adapters.vault import Vault
from paydesk.core.clock import utc_now
from paydesk.core.errors import SetupError
from paydesk.database.pool import Database, connected
from paydesk.domain.cells import maps
from paydesk.domain.cells.adding import add_cell
from paydesk.domain.cells.directory import Cell, Entry, Kind, enter, name_of
from paydesk.domain.cells.maps import write_maps

PUBLIC, PRIVATE, EMAIL = "a1b2c3d4e5f6", "f6e5d4c3b2a1f6e5", "ada@shop.example"


def read(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


def inodes(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_ino for path in folder.iterdir()}


async def two_cells(database: Database, vault: Vault) -> None:
    """A merchant with a key and a person, all in the second."""
    for number in (1, 2):
        cell = Cell(number, f"https://Pay{number}.example/base", "http://10.0.0.1:8000")
        await add_cell(database, cell, database_id=f"database of {number}", now=utc_now())
    entries = [
        Entry(kind, name_of(vault, kind, value), 15)
        for kind, value in (
            (Kind.merchant, "15"),
            (Kind.public_key, PUBLIC),
            (Kind.private_key, PRIVATE),
            (Kind.email, EMAIL),
        )
    ]
    await enter(database, entries, 2, now=utc_now())


async def test_the_maps_hold_what_haproxy_computes_and_no_key(
    own_database_url: str, vault: Vault, tmp_path: Path
) -> None:
    async with connected(own_database_url, most=2) as database:
        await two_cells(database, vault)
        changed = await write_maps(database, vault, tmp_path)
    files = read(tmp_path)
    assert sorted(changed) == sorted(files)
    assert files["merchants.map"] == "15 cell2\n"
    assert files["hosts.map"] == "pay1.example cell1\npay2.example cell2\n"
    keys = dict(re.findall(r"proc\.(\w+) str\((.+)\)", files["keys.cfg"]))
    for name, key, said in (
        ("public_keys.map", "paydesk_directory", f"public_key {PUBLIC}"),
        ("emails.map", "paydesk_directory", f"email {EMAIL}"),
        ("private_keys.map", "paydesk_private_keys", PRIVATE),
    ):
        found = hmac.digest(base64.b64decode(keys[key]), said.encode(), "sha256").hex()
        assert files[name] == f"{found} cell2\n"
    assert not any(secret in text for text in files.values() for secret in (PUBLIC, PRIVATE, EMAIL))
    assert (tmp_path / "keys.cfg").stat().st_mode & 0o777 == 0o600


async def test_only_what_changed_is_replaced(own_database_url: str, vault: Vault, tmp_path: Path) -> None:
    async with connected(own_database_url, most=2) as database:
        await two_cells(database, vault)
        await write_maps(database, vault, tmp_path)
        before = inodes(tmp_path)
        assert await write_maps(database, vault, tmp_path) == []
        assert inodes(tmp_path) == before
        await enter(database, [Entry(Kind.merchant, "16", 16)], 1, now=utc_now())
        assert await write_maps(database, vault, tmp_path) == ["merchants.map"]
    assert (tmp_path / "merchants.map").read_text() == "15 cell2\n16 cell1\n"
    assert inodes(tmp_path).keys() == before.keys()


async def test_of_two_who_write_at_once_none_leaves_half_a_map(
    own_database_url: str, vault: Vault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads, goes_on, entries = asyncio.Event(), asyncio.Event(), maps.queries.entries
    held = [True]

    async def slowly(database: Database) -> AsyncIterator[Any]:
        async for entry in entries(database):
            yield entry
            if held and held.pop():
                reads.set()
                await goes_on.wait()

    monkeypatch.setattr(maps.queries, "entries", slowly)
    async with connected(own_database_url, most=4) as database, asyncio.TaskGroup() as both:
        await two_cells(database, vault)
        both.create_task(write_maps(database, vault, tmp_path))
        await reads.wait()
        second = both.create_task(write_maps(database, vault, tmp_path))
        await asyncio.wait([second], timeout=0.2)
        goes_on.set()
    assert {name for name, text in read(tmp_path).items() if not text} == set()
    assert sorted(read(tmp_path)) == sorted([*maps.MAPS.values(), maps.HOSTS, maps.KEYS])
    assert (tmp_path / "merchants.map").read_text() == "15 cell2\n"


async def test_who_has_waited_for_another_writes_what_is_true_then(
    own_database_url: str, vault: Vault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits, tried = asyncio.Event(), fcntl.flock
    other = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(other, fcntl.LOCK_EX)
    loop = asyncio.get_running_loop()

    def seen(handle: int, how: int) -> None:
        loop.call_soon_threadsafe(waits.set)
        tried(handle, how)

    monkeypatch.setattr(fcntl, "flock", seen)
    async with connected(own_database_url, most=4) as database, asyncio.TaskGroup() as both:
        await two_cells(database, vault)
        both.create_task(write_maps(database, vault, tmp_path))
        await waits.wait()
        third = Cell(3, "https://pay3.example", "http://10.0.0.3:8000")
        await add_cell(database, third, database_id="database of 3", now=utc_now())
        os.close(other)
    assert (tmp_path / "hosts.map").read_text().endswith("pay3.example cell3\n")


def test_who_waits_for_another_can_be_broken_off(tmp_path: Path) -> None:
    other = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(other, fcntl.LOCK_EX)

    async def wait() -> None:
        async with maps._alone(tmp_path):
            pytest.fail("two have the folder")

    async def break_off() -> None:
        waiting = asyncio.create_task(wait())
        await asyncio.wait([waiting], timeout=0.1)
        waiting.cancel()
        await asyncio.wait([waiting])

    ended = threading.Event()

    def run() -> None:
        asyncio.run(break_off())
        ended.set()

    runs = threading.Thread(target=run)
    runs.start()
    try:
        # The other one goes on for as long as it likes.
        assert ended.wait(20)
    finally:
        os.close(other)
        runs.join()


@pytest.mark.parametrize("number", [errno.EBADF, errno.ENOLCK, errno.EOPNOTSUPP])
async def test_a_folder_that_can_t_be_locked_is_written_all_the_same(
    own_database_url: str, vault: Vault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(*_: object) -> NoReturn:
        raise OSError(number, os.strerror(number))

    # NFS locks nothing that is not open for writing, which no folder is.
    monkeypatch.setattr(fcntl, "flock", refuse)
    async with connected(own_database_url, most=2) as database:
        await two_cells(database, vault)
        assert sorted(await write_maps(database, vault, tmp_path)) == sorted(read(tmp_path))
    assert (tmp_path / "merchants.map").read_text() == "15 cell2\n"


async def test_a_deployment_without_cells_has_no_maps(own_database_url: str, vault: Vault, tmp_path: Path) -> None:
    async with connected(own_database_url, most=2) as database:
        with pytest.raises(SetupError, match="there are no cells"):
            await write_maps(database, vault, tmp_path)
    assert inodes(tmp_path) == {}
