"""`paydesk merchant move`, as an operator uses it, with the other cell's environment file."""

from __future__ import annotations

import os
import pty
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
from tests.breaking import say
from tests.commands.conftest import Paydesk
from tests.conftest import migrated_database
from tests.domain.moving.putting_back import copied

from paydesk.adapters.vault import generate_key_setting
from paydesk.commands import moving_merchants
from paydesk.commands.printing import waiting
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database, connected
from paydesk.domain.cells.adding import add_cell, follow
from paydesk.domain.cells.directory import Cell, Entry, Kind, enter
from paydesk.domain.cells.ranges import Ranges, go_on_above, ranges_of
from paydesk.domain.merchants.merchant import create_merchant
from paydesk.domain.moving import moving
from paydesk.domain.moving.comparisons import COMPARED
from paydesk.domain.moving.moving import move_merchant
from paydesk.equipment import vault_of

HERE, THERE = 1, 2


@pytest.fixture
async def database_url(server_url: str) -> AsyncIterator[str]:
    async with migrated_database(server_url, cell=HERE) as url:
        yield url


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    async with connected(database_url, most=2) as pool:
        yield pool


@pytest.fixture
async def other(server_url: str, environment: dict[str, str], tmp_path: Path) -> AsyncIterator[tuple[Database, str]]:
    """The other cell's database, and its environment file."""
    environment["PAYDESK_CELL"] = str(HERE)
    async with migrated_database(server_url, cell=THERE) as url, connected(url, most=2) as pool:
        file = tmp_path / "cell2.env"
        settings = {
            "PAYDESK_DATABASE_URL": url,
            "PAYDESK_CELL": str(THERE),
            "PAYDESK_SECRET_KEY": environment["PAYDESK_SECRET_KEY"],
            "PAYDESK_VAULT_KEYS": generate_key_setting(),
        }
        file.write_text("".join(f"{name}='{value}'\n" for name, value in settings.items()))
        yield pool, str(file)


async def test_a_merchant_moves_and_is_not_here_any_more(paydesk: Paydesk, other: tuple[Database, str]) -> None:
    there, file = other
    made = (await paydesk("merchant", "create", "--name", "Shop", "--email", "o@shop.example", "--json")).result
    name, to = str(made["id"]), ("--to", str(THERE), "--to-env", file)
    moved = await paydesk("merchant", "move", name, *to, "--json")
    assert (moved.status, moved.result["cell"], moved.result["rows"] > 1) == (0, THERE, True), moved.err
    assert await there.fetchval("select name from merchant where id = $1", made["id"]) == "Shop"
    assert (await paydesk("merchant", "list", "--json")).result == []
    assert moved.result["was_there"] is False


@pytest.mark.parametrize("with_directory", [True, False])
async def test_a_move_that_has_ended_is_run_again_without_harm(
    paydesk: Paydesk, database: Database, other: tuple[Database, str], with_directory: bool
) -> None:
    there, file = other
    made = (await paydesk("merchant", "create", "--name", "Shop", "--email", "o@shop.example", "--json")).result
    if with_directory:
        await _enlist(database, there, made["id"])
    asked = ("merchant", "move", str(made["id"]), "--to", str(THERE), "--to-env", file)
    assert (await paydesk(*asked)).status == 0
    again = await paydesk(*asked)
    said = f"merchant {made['id']} is in cell 2 already, and nothing of it is here"
    assert (again.status, said in again.err, "closed for" in again.err) == (0, True, False), again.err
    as_json = await paydesk(*asked, "--json")
    assert (as_json.status, as_json.result["was_there"], as_json.result["rows"]) == (0, True, None), as_json.err
    cancelled = await paydesk(*asked, "--cancel")
    assert (cancelled.status, "is not being moved: it is in cell 2" in cancelled.err) == (1, True), cancelled.err
    removed = await paydesk(*asked, "--remove-copy")
    assert (removed.status, "there is no merchant" in removed.err) == (1, True), removed.err


async def _enlist(database: Database, there: Database, merchant_id: int) -> None:
    """Both cells are in the directory, which the first one keeps, and the merchant."""
    for number in (HERE, THERE):
        cell = Cell(number, f"https://pay{number}.test", "http://inside")
        await add_cell(database, cell, database_id=str(number), now=utc_now())
    await enter(database, [Entry(Kind.merchant, str(merchant_id), merchant_id)], HERE, now=utc_now())
    for one in (database, there):
        await follow(one, HERE)


async def test_without_a_directory_it_is_said_that_somebody_must_lead_there(
    paydesk: Paydesk, other: tuple[Database, str]
) -> None:
    made = (await paydesk("merchant", "create", "--name", "Shop", "--email", "o@shop.example", "--json")).result
    moved = await paydesk("merchant", "move", str(made["id"]), "--to", str(THERE), "--to-env", other[1])
    assert (moved.status, "lead the host names of its forms and links to cell 2" in moved.err) == (0, True), moved.err


async def test_it_goes_to_lower_ids_once_it_is_said_which_come_then(
    paydesk: Paydesk, database: Database, other: tuple[Database, str]
) -> None:
    there, file = other
    made = (await paydesk("merchant", "create", "--name", "Shop", "--email", "o@shop.example", "--json")).result
    await _enlist(database, there, made["id"])
    higher = await go_on_above(database, database, HERE, THERE, now=utc_now())
    asked = ("merchant", "move", str(made["id"]), "--to", str(THERE), "--to-env", file)
    moved = await paydesk(*asked, "--json")
    assert (moved.status, moved.result["ids"]) == (0, higher + 1), moved.err
    assert await ranges_of(there) == Ranges(higher + 1, higher + 1)


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (("--to", "3"), "the database of --to-env is cell 2, not 3"),
        (("--to", "2", "--cancel"), "is not being moved"),
        (("--to", "2"), "there is no merchant 5"),
    ],
)
async def test_what_can_not_be_is_refused_with_a_reason(
    paydesk: Paydesk, other: tuple[Database, str], asked: tuple[str, ...], why: str
) -> None:
    refused = await paydesk("merchant", "move", "5", *asked, "--to-env", other[1])
    assert (refused.status, why in refused.err) == (1, True), refused.err


def _with(file: Path, name: str, value: str) -> Path:
    """An environment file with another value of one setting."""
    lines = [line for line in file.read_text().splitlines() if not line.startswith(f"{name}=")]
    file.write_text("\n".join([*lines, f"{name}={value}"]))
    return file


async def test_a_cell_that_can_not_be_reached_is_named(paydesk: Paydesk, other: tuple[Database, str]) -> None:
    file = _with(Path(other[1]), "PAYDESK_DATABASE_URL", "postgresql://paydesk:secret@127.0.0.1:1/paydesk")
    refused = await paydesk("merchant", "move", "5", "--to", "2", "--to-env", str(file))
    assert (refused.status, "secret" in refused.err) == (1, False)
    assert f"--to-env: the database of {file} can't be reached" in refused.err


async def test_keys_that_open_nothing_in_the_other_cell_are_not_its_own(
    paydesk: Paydesk, other: tuple[Database, str]
) -> None:
    there, file = other
    vault = vault_of(moving_merchants.settings_of(Path(file)))
    await create_merchant(there, vault, name="Shop", email="o@shop.example", now=utc_now())
    assert "there is no merchant 5" in (await paydesk("merchant", "move", "5", "--to", "2", "--to-env", file)).err
    another = _with(Path(file), "PAYDESK_VAULT_KEYS", generate_key_setting())
    refused = await paydesk("merchant", "move", "5", "--to", "2", "--to-env", str(another))
    assert (refused.status, "--to-env: PAYDESK_VAULT_KEYS lacks keys" in refused.err) == (1, True), refused.err


async def test_who_loses_a_database_on_the_way_reads_what_to_do(
    paydesk: Paydesk, other: tuple[Database, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def lost(*_: object, **__: object) -> None:
        raise ConnectionResetError

    monkeypatch.setattr(moving_merchants, "move_merchant", lost)
    stopped = await paydesk("merchant", "move", "5", "--to", "2", "--to-env", other[1])
    assert (stopped.status, "run the same command again, which goes on" in stopped.err) == (1, True), stopped.err


async def test_the_end_of_a_move_that_died_shows_how_far_it_has_compared(
    paydesk: Paydesk, other: tuple[Database, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = (await paydesk("merchant", "create", "--name", "Shop", "--email", "o@shop.example", "--json")).result
    asked = ("merchant", "move", str(made["id"]), "--to", str(THERE), "--to-env", other[1])

    async def lost(_: object) -> None:
        raise ConnectionResetError

    with monkeypatch.context() as dying:
        dying.setattr(moving, "forget_here", lost)
        assert (await paydesk(*asked)).status == 1
    shown: dict[str, list[int]] = {}

    @contextmanager
    def bar(what: str, total: int) -> Iterator[Callable[[], None]]:
        steps = shown[what] = [0, total]

        def step() -> None:
            steps[0] += 1

        yield step

    monkeypatch.setattr(moving_merchants, "progress", bar)
    ended = await paydesk(*asked)
    assert (ended.status, shown) == (0, {"Comparing": [len(COMPARED)] * 2}), ended.err


async def test_who_looks_at_no_terminal_is_told_once_what_is_waited_for(
    paydesk: Paydesk, database: Database, other: tuple[Database, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(moving_merchants, "move_merchant", partial(move_merchant, patience=2))
    made = (await paydesk("merchant", "create", "--name", "Shop", "--email", "o@shop.example", "--json")).result
    monkeypatch.setattr(moving, "CLOCK_ENDS", 2)
    await say(database, "merchant", {"id": made["id"]}, clock_held_until=utc_now() + timedelta(hours=1))
    asked = ("merchant", "move", str(made["id"]), "--to", str(THERE), "--to-env", other[1], "--json")
    moved = await paydesk(*asked)
    assert (moved.status, moved.result["cell"]) == (0, THERE), moved.err
    told = [line for line in moved.err.splitlines() if "waiting" in line]
    assert told == [
        "paydesk: waiting until nobody advances or resets its test clock, for 2 s at most",
        "paydesk: fenced, waiting for calls in the air, for 2 s at most",
    ]


def test_at_a_terminal_what_is_waited_for_is_shown_for_as_long(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = pty.openpty()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    with os.fdopen(theirs, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        with waiting("Waiting for calls", 59.2):
            pass
        terminal.flush()
        shown = os.read(ours, 65536).decode()
    os.close(ours)
    assert "Waiting for calls, for 60 s at most" in shown
    assert "paydesk:" not in shown


@pytest.fixture
async def in_both(
    paydesk: Paydesk, environment: dict[str, str], database: Database, other: tuple[Database, str], server_url: str
) -> AsyncIterator[tuple[str, Database]]:
    """A merchant who has moved, and the database here as it was before."""
    made = (await paydesk("merchant", "create", "--name", "Shop", "--email", "o@shop.example", "--json")).result
    async with AsyncExitStack() as stack:
        url = await copied(stack, server_url, database)
        moved = await paydesk("merchant", "move", str(made["id"]), "--to", str(THERE), "--to-env", other[1])
        assert moved.status == 0, moved.err
        environment["PAYDESK_DATABASE_URL"] = url
        yield str(made["id"]), await stack.enter_async_context(connected(url, most=2))


async def test_a_copy_that_came_back_goes(
    paydesk: Paydesk, other: tuple[Database, str], in_both: tuple[str, Database]
) -> None:
    there, file = other
    name, asked = in_both[0], ("merchant", "move", in_both[0], "--to", str(THERE), "--to-env", file)
    refused = await paydesk(*asked)
    assert (refused.status, f"move {name} --to CELL --remove-copy" in refused.err) == (1, True), refused.err
    looked = await paydesk(*asked, "--remove-copy", "--dry-run", "--json")
    assert looked.result == {"merchant_id": int(name), "cell": THERE, "only_here": [], "code": None}
    assert len((await paydesk("merchant", "list", "--json")).result) == 1
    gone = await paydesk(*asked, "--remove-copy")
    assert (gone.status, f"merchant {name} is in cell 2 alone" in gone.err) == (0, True), gone.err
    assert (await paydesk("merchant", "list", "--json")).result == []
    assert await there.fetchval("select name from merchant where id = $1", int(name)) == "Shop"
    again = await paydesk(*asked, "--remove-copy")
    assert (again.status, "there is no merchant" in again.err) == (1, True), again.err


async def test_what_only_the_copy_knows_is_shown_and_lost_by_its_code_alone(
    paydesk: Paydesk, other: tuple[Database, str], in_both: tuple[str, Database]
) -> None:
    name, database = in_both
    await say(database, "merchant", {"id": int(name)}, went_live_at=utc_now())
    asked = ("merchant", "move", name, "--to", str(THERE), "--to-env", other[1], "--remove-copy")
    looked = await paydesk(*asked, "--dry-run")
    assert (looked.status, looked.out.split()) == (0, ["Table", "Rows", "First", "merchant", "1", name]), looked.out
    refused = await paydesk(*asked)
    assert (refused.status, f"merchant: 1 ({name})" in refused.err) == (1, True), refused.err
    as_json = await paydesk(*asked, "--json")
    found = {"table": "merchant", "rows": 1, "first": [name], "may_be": ""}
    assert (as_json.status, as_json.result["only_here"]) == (1, [found])
    code = as_json.result["code"]
    assert f"--lose {code}" in refused.err
    wrong = await paydesk(*asked, "--lose", code[::-1])
    assert (wrong.status, len((await paydesk("merchant", "list", "--json")).result)) == (1, 1), wrong.err
    gone = await paydesk(*asked, "--lose", code, "--json")
    assert (gone.status, gone.result["only_here"][0]["table"]) == (0, "merchant"), gone.err
    assert (await paydesk("merchant", "list", "--json")).result == []


async def test_a_copy_to_which_the_directory_leads_goes_when_it_is_said_that_home_came_back(
    paydesk: Paydesk, other: tuple[Database, str], in_both: tuple[str, Database]
) -> None:
    """This cell is home."""
    name, database = in_both
    await _enlist(database, other[0], int(name))
    asked = ("merchant", "move", name, "--to", str(THERE), "--to-env", other[1], "--remove-copy")
    refused = await paydesk(*asked)
    assert (refused.status, "with --home-came-back leads it there" in refused.err) == (1, True), refused.err
    looked = await paydesk(*asked, "--home-came-back", "--dry-run", "--json")
    assert (looked.status, looked.result["only_here"]) == (0, []), looked.err
    gone = await paydesk(*asked, "--home-came-back")
    assert (gone.status, "led there: the directory had come back, too" in gone.err) == (0, True), gone.err
    led = await database.fetchval("select cell from directory where kind = 'merchant' and name = $1", name)
    assert (led, (await paydesk("merchant", "list", "--json")).result) == (THERE, [])


@pytest.mark.parametrize(
    "asked", [("--cancel", "--remove-copy"), ("--dry-run",), ("--lose", "abc"), ("--home-came-back",)]
)
async def test_what_is_for_a_copy_alone_is_said_with_it(
    paydesk: Paydesk, other: tuple[Database, str], asked: tuple[str, ...]
) -> None:
    refused = await paydesk("merchant", "move", "5", "--to", "2", "--to-env", other[1], *asked)
    assert (refused.status, "--remove-copy" in refused.err) == (2, True), refused.err
