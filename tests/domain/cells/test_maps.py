from __future__ import annotations

import asyncio
import base64
import hmac
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

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


async def test_a_deployment_without_cells_has_no_maps(own_database_url: str, vault: Vault, tmp_path: Path) -> None:
    async with connected(own_database_url, most=2) as database:
        with pytest.raises(SetupError, match="there are no cells"):
            await write_maps(database, vault, tmp_path)
    assert inodes(tmp_path) == {}
