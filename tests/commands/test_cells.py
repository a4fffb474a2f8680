"""`PAYDESK_CELL`, as an operator meets it: at the first `paydesk migrate`, and ever after; and
`paydesk cell`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import typer
from tests.breaking import say
from tests.cell_servers import CellServer
from tests.commands.conftest import Refusal
from tests.conftest import migrated_database
from typer.testing import CliRunner

from paydesk.adapters.vault import Vault, generate_key_setting, generate_secret
from paydesk.commands.working import migrate
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database, connected
from paydesk.domain.cells.directory import Entry, Kind, enter
from paydesk.domain.cells.fencing import fence, lift
from paydesk.domain.cells.numbers import begin_cell, note_secret
from paydesk.domain.cells.ranges import go_on_above
from paydesk.domain.merchants.merchant import create_merchant
from paydesk.domain.moving.tables import GUARDED
from paydesk.domain.operations.searching_cells import birth_of

IDS = 10**13


@pytest.fixture
async def database_url(server_url: str) -> AsyncIterator[str]:
    """A database that has given out nothing yet."""
    async with migrated_database(server_url, cell=None) as url:
        yield url


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    async with connected(database_url, most=2) as pool:
        yield pool


def migrated(environment: dict[str, str]) -> tuple[int, str]:
    """Exit status and all output of `paydesk migrate`."""
    app = typer.Typer()
    app.command()(migrate)
    done = CliRunner().invoke(app, env=environment)
    return done.exit_code, done.output


def in_cell(environment: dict[str, str], cell: str) -> dict[str, str]:
    """The environment with the cell's number."""
    return environment | {"PAYDESK_CELL": cell}


def test_migrate_makes_a_new_database_the_cells_and_no_other_s(environment: dict[str, str]) -> None:
    for _ in range(2):
        assert migrated(in_cell(environment, "7")) == (0, "the schema is up to date\n")
    status, said = migrated(in_cell(environment, "8"))
    assert (status, "this database is cell 7, PAYDESK_CELL says 8" in said) == (1, True)


@pytest.mark.parametrize(
    ("cell", "why"),
    [
        ("41", ""),
        ("400", "ids of cell 400 would begin like card numbers"),
        ("900", "PAYDESK_CELL: input should be less than or equal to 899"),
        ("-1", "PAYDESK_CELL: input should be greater than or equal to 0"),
        ("first", "PAYDESK_CELL: input should be a valid integer"),
    ],
)
def test_a_number_that_will_not_do_is_refused_with_a_reason(environment: dict[str, str], cell: str, why: str) -> None:
    status, said = migrated(in_cell(environment, cell))
    assert (status, why in said) == (1 if why else 0, True), said


async def test_commands_refuse_to_work_on_another_cells_database(
    paydesk: Any, database: Database, environment: dict[str, str]
) -> None:
    await begin_cell(database, 7)
    environment["PAYDESK_CELL"] = "7"
    created = await paydesk("merchant", "create", "--name", "Shop", "--email", "o@shop.example", "--json")
    assert created.result["id"] == 7 * IDS + 1
    environment["PAYDESK_CELL"] = "9"
    refused = await paydesk("merchant", "list")
    assert (refused.status, refused.out) == (1, "")
    assert "this database is cell 7, PAYDESK_CELL says 9: correct PAYDESK_CELL or PAYDESK_DATABASE_URL" in refused.err
    environment["PAYDESK_CELL"] = "7"
    assert (await paydesk("merchant", "list", "--json")).result[0]["id"] == created.result["id"]


@pytest.mark.parametrize("command", ["serve", "work"])
async def test_no_service_starts_on_another_cells_database(
    database: Database, database_url: str, tmp_path: Path, command: str, refusal: Refusal
) -> None:
    await begin_cell(database, 7)
    keys = {"SECRET_KEY": generate_secret(), "VAULT_KEYS": generate_key_setting()}
    line = await refusal(command, DATABASE_URL=database_url, DATA_DIR=tmp_path / "data", CELL=9, **keys)
    assert "this database is cell 7, PAYDESK_CELL says 9" in line


class Cells:
    """The commands of the home cell, whose database and the other cell's these are."""

    def __init__(self, paydesk: Any, environment: dict[str, str], home: CellServer, other: CellServer) -> None:
        self.paydesk = paydesk
        self.home, self.other = home, other
        environment["PAYDESK_DATABASE_URL"] = home.url
        environment["PAYDESK_CELL"] = "0"
        environment["PAYDESK_CELL_DATABASES"] = f"2={other.admin_url}"
        self.environment = environment
        self.vault = Vault.from_settings(environment["PAYDESK_VAULT_KEYS"], environment["PAYDESK_SECRET_KEY"])

    async def add(self, number: int, *more: str) -> Any:
        """Add a cell by its number."""
        addresses = "--address", f"https://{number}.example/", "--inside", f"http://10.0.0.{number}:8000"
        return await self.paydesk("cell", "add", number, *addresses, *more, "--json")

    async def check(self, *more: str) -> tuple[int, list[str]]:
        """The exit status of a check, and what it found, each with the cell's number."""
        said = await self.paydesk("cell", "check", "--home", self.home.admin_url, "--json", *more)
        return said.status, [f"{one['cell']}: {one['what']}" for one in said.result["found"]]


@pytest.fixture
def cells(paydesk: Any, environment: dict[str, str], home: CellServer, other: CellServer) -> Cells:
    return Cells(paydesk, environment, home, other)


async def test_cells_are_added_listed_checked_and_mended(cells: Cells) -> None:
    alone = await cells.paydesk("cell", "check")
    assert (alone.status, "this deployment stands alone" in alone.err) == (1, True)
    early = await cells.add(2)
    assert (early.status, "paydesk cell add 0" in early.err) == (1, True)
    assert (await cells.add(0)).result["entries"] == 0
    await note_secret(cells.other.pool, cells.vault)
    made = await create_merchant(cells.other.pool, cells.vault, name="Shop", email="o@shop.example", now=utc_now())
    added = await cells.add(2, "--home", cells.home.admin_url)
    assert (added.result["entries"], added.result["copied"], added.result["address"]) == (3, True, "https://2.example")
    listed = {one["number"]: one for one in (await cells.paydesk("cell", "list", "--json")).result}
    assert (listed[0]["copy"], listed[2]["copy"], listed[2]["merchants"]) == ("home", "follows", 1)
    assert listed[2]["bytes_behind"] is not None
    table = (await cells.paydesk("cell", "list")).out
    assert "https://2.example" in table
    assert "postgres" not in table, "no database address is shown"
    assert await cells.check() == (0, [])
    await _planted(cells, made.id)


async def _planted(cells: Cells, merchant_id: int) -> None:
    """What differs is found, with the cell, and set right by --mend as far as that can be."""
    late = await create_merchant(cells.other.pool, cells.vault, name="Late", email="l@shop.example", now=utc_now())
    old = utc_now() - timedelta(days=1)
    await enter(cells.home.pool, [Entry(Kind.merchant, "4711", 4711)], 2, now=old)
    status, found = await cells.check()
    assert status == 1
    assert [one.partition(":")[0] for one in found] == ["2", "2"]
    assert f"3 not in the directory, or as another merchant's: merchant {late.id}, public key" in found[0]
    assert "1 in the directory that it has not: merchant 4711" in found[1]
    await _others_checked_without_a_dead_cell(cells)
    await say(cells.other.pool, "directory", {"name": str(merchant_id)}, cell=0)
    status, found = await cells.check()
    assert "2: its copy says otherwise than home: merchant" in found
    assert await cells.check("--mend") == (0, [])
    assert await cells.check() == (0, [])
    await _left_half_way(cells, merchant_id)
    await _ids_planted(cells)
    await say(cells.home.pool, "directory", {"name": str(merchant_id)}, cell=0)
    status, found = await cells.check("--mend")
    assert status == 1
    assert f"2: it has what the directory says is elsewhere: merchant {merchant_id} (cell 0)" in found


async def _others_checked_without_a_dead_cell(cells: Cells) -> None:
    """A cell that does not answer is named, and the others are compared and mended all the same."""
    at = cells.environment["PAYDESK_CELL_DATABASES"]
    cells.environment["PAYDESK_CELL_DATABASES"] = "2=postgresql://paydesk:secret@127.0.0.1:1/paydesk"
    await enter(cells.home.pool, [Entry(Kind.merchant, "4712", 4712)], 0, now=utc_now() - timedelta(days=1))
    away = "2: its database can't be reached: it was not compared"
    assert await cells.check() == (1, ["0: 1 in the directory that it has not: merchant 4712", away])
    assert await cells.check("--mend") == (1, [away])
    said = await cells.paydesk("cell", "check")
    assert "secret" not in said.out + said.err
    cells.environment["PAYDESK_CELL_DATABASES"] = at


async def _left_half_way(cells: Cells, merchant_id: int) -> None:
    """Whose move was killed is told once it is no passing thing: the shop sells nothing."""
    other = cells.other.pool
    await fence(other, merchant_id, other_cell=0, arrives=False, tables=GUARDED)
    assert await cells.check() == (0, [])
    await say(other, "merchant_fence", {"merchant_id": merchant_id}, since=datetime(2026, 1, 2, 3, 4, tzinfo=UTC))
    words = f"2: merchant {merchant_id} is closed, on the way to cell 0, since 2026-01-02 03:04 UTC"
    assert await cells.check() == (1, [words])
    await lift(other, merchant_id, tables=GUARDED)
    assert await cells.check() == (0, [])


async def _ids_planted(cells: Cells) -> None:
    """A range of ids that a cell was given stays its own, also if home has forgotten it."""
    for above in (5, 100):
        number = await go_on_above(cells.home.pool, cells.other.pool, 2, above, now=utc_now() - timedelta(days=1))
    assert await cells.check("--mend") == (0, [])
    assert [one["ids"] for one in (await cells.paydesk("cell", "list", "--json")).result] == [0, number]
    await say(cells.home.pool, "directory", {"kind": "ids", "name": str(number)}, kind="of a later release")
    assert await cells.check() == (
        1,
        [f"2: 1 not in the directory, or as another merchant's: ids from {number} × 10¹³ on"],
    )
    assert await cells.check("--mend") == (0, [])
    assert await birth_of(cells.other.pool, number * IDS + 8) == 2, "its copy knows, too"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--address", "ftp://x", "--inside", "http://h:1"), "--address needs http://host:port"),
        (("--address", "https://x", "--inside", "http://h:1/path"), "--inside needs http://host:port"),
        (("--address", "https://u:p@x", "--inside", "http://h:1"), "can't hold a password"),
        (("--address", "https://x", "--inside", "http://h:1"), "give the database of cell 5"),
        (
            ("--address", "https://x", "--inside", "http://h:1", "--database", "postgresql://u:secret@127.0.0.1:1/x"),
            "the database of cell 5 can't be reached",
        ),
    ],
)
async def test_what_cannot_be_a_cell_is_refused_in_one_line(
    paydesk: Any, environment: dict[str, str], words: tuple[str, ...], why: str
) -> None:
    environment["PAYDESK_CELL"] = "0"
    said = await paydesk("cell", "add", 5, *words)
    assert (said.status, said.out, why in said.err) == (1, "", True), said.err
    assert "secret" not in said.err
