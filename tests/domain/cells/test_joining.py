"""A cell joins the others: its own is entered at home, and home's directory comes to it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests import cell_servers
from tests.breaking import say
from tests.cell_servers import CellServer

from paydesk.adapters.vault import Vault, generate_key_setting, generate_secret
from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict, SetupError
from paydesk.database.pool import Database, connected
from paydesk.domain.accounts.access_needs import Gate
from paydesk.domain.accounts.operators import create_operator
from paydesk.domain.accounts.passwords import Passwords
from paydesk.domain.cells import joining
from paydesk.domain.cells.adding import follow
from paydesk.domain.cells.checking import check_cells, mend_cells
from paydesk.domain.cells.comparing import kinds_that_differ
from paydesk.domain.cells.directory import Cell, Entry, Kind, enter, find_cell, name_of, switch_merchant, this_cell
from paydesk.domain.cells.joining import begin_home, join
from paydesk.domain.cells.numbers import note_secret
from paydesk.domain.cells.ranges import go_on_above
from paydesk.domain.cells.replicating import slots
from paydesk.domain.merchants.merchant import Merchant, create_merchant

HOME = Cell(0, "https://pay.example", "http://10.0.0.1:8000")
OTHER = Cell(2, "https://two.pay.example", "http://10.0.0.2:8000")
CUTS = ("add_cell", "enter_own", "subscribe", "wait_for_copy")
"""What a try may be cut off at, step by step."""


@pytest.fixture(scope="module")
def vaults(deployment_keys: dict[str, str]) -> tuple[Vault, Vault]:
    """Home's and the other cell's: one secret, keys of their own."""
    other = {**deployment_keys, "vault_keys": generate_key_setting()}
    return Vault.from_settings(**deployment_keys), Vault.from_settings(**other)


async def merchant(database: Database, vault: Vault) -> Merchant:
    return await create_merchant(database, vault, name="Corner Shop", email="owner@shop.example", now=utc_now())


async def person(database: Database, vault: Vault, email: str) -> None:
    """Somebody who logs in there."""
    await create_operator(Gate(database, vault, Passwords()), email=email, now=utc_now())


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    """Wait for what another process does."""
    while not await holds():  # noqa: ASYNC110 (another process sends no event)
        await asyncio.sleep(0.05)


async def brought(other: CellServer, kind: Kind, name: str, cell: Cell) -> None:
    """Wait until the other cell knows where something is."""

    async def known() -> bool:
        return await find_cell(other.pool, kind, name) == cell

    await asyncio.wait_for(until(known), 60)


def bringing(home: CellServer) -> str:
    """Home's database as the role of the docs that brings the directory out."""
    return home.server.dsn(role="paydesk_directory")


async def roles_of_the_docs(home: CellServer) -> None:
    """Make the two roles as the docs say, word by word."""
    page = (Path(__file__).parents[3] / "docs" / "operate.md").read_text()
    found = re.search(r"```sql\n(\s*create role paydesk_directory .*?)```", page, re.DOTALL)
    assert found
    async with connected(home.admin_url, most=1) as admin:
        await admin.execute(found[1])


async def joined(home: CellServer, other: CellServer, vault: Vault, *, at: str = "") -> joining.Joined:
    """Have the other cell join, as its superuser would; its server reaches home's at an address."""
    async with connected(other.admin_url, most=2) as database:
        return await join(home.pool, database, vault, OTHER, home_address=at or bringing(home), now=utc_now())


async def test_cells_one_after_the_other(
    home: CellServer, other: CellServer, vaults: tuple[Vault, Vault], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One deployment's way: refused for what is not right, cut off at each step, joined, restarted,
    and mended after a failover that lost the slot.
    """
    ours, theirs = vaults
    first, second = await merchant(home.pool, ours), await merchant(other.pool, theirs)
    await person(home.pool, ours, "Ann@shop.example")
    await person(other.pool, theirs, "ben@shop.example")
    with pytest.raises(Conflict, match=r"add this cell itself first.*paydesk cell add 0"):
        await joined(home, other, ours)
    assert (await begin_home(home.pool, ours, HOME, now=utc_now())).own == 4
    await _refused(home, other, ours, theirs)
    await roles_of_the_docs(home)
    for step in CUTS:
        with monkeypatch.context() as patched:
            patched.setattr(joining, step, _cut_off)
            with pytest.raises(TimeoutError):
                await joined(home, other, ours)
    await _made_by_one_alone(home, other, ours)
    for _ in range(2):
        done = await joined(home, other, ours)
        assert (done.own, done.copied) == (4, True)
    assert await kinds_that_differ(home.pool, other.pool) == []
    await _known_in_both(home, other, ours, first, second)
    await _goes_on_after_a_restart(home, other, ours)
    await _mended_after_a_failover(home, other, ours)
    await _led_by_the_role_that_enters(home, other)


async def _cut_off(*_: Any, **__: Any) -> None:
    raise TimeoutError


async def _made_by_one_alone(home: CellServer, other: CellServer, vault: Vault) -> None:
    """Of two calls at once that would make the copy the second says that another does."""
    with pytest.MonkeyPatch.context() as patched:

        async def late(*given: Any) -> None:
            patched.undo()
            with pytest.raises(Conflict, match="another call makes the copy of the directory in cell 2 at this moment"):
                await joined(home, other, vault)
            await follow(*given)

        patched.setattr("paydesk.domain.cells.replicating.follow", late)
        assert (await joined(home, other, vault)).copied


async def _refused(home: CellServer, other: CellServer, ours: Vault, theirs: Vault) -> None:
    with pytest.raises(SetupError, match="has not noted its PAYDESK_SECRET_KEY yet"):
        await joined(home, other, ours)
    await note_secret(other.pool, Vault.from_settings(generate_key_setting(), generate_secret()))
    with pytest.raises(SetupError, match="cell 2 has another PAYDESK_SECRET_KEY than this one"):
        await joined(home, other, ours)
    await note_secret(other.pool, theirs)
    with pytest.raises(SetupError, match="the role of --home may not replicate the directory"):
        await joined(home, other, ours, at=home.url)
    with pytest.raises(SetupError, match="--home is another database than this cell's"):
        await joined(home, other, ours, at=other.admin_url)
    with pytest.raises(SetupError, match="PAYDESK_CELL_DATABASES, may not make a subscription"):
        await join(home.pool, other.pool, ours, OTHER, home_address=home.admin_url, now=utc_now())
    wrong = Cell(3, OTHER.address, OTHER.inside)
    with pytest.raises(SetupError, match="that database is cell 2, not 3"):
        await join(home.pool, other.pool, ours, wrong, home_address=home.admin_url, now=utc_now())
    await person(home.pool, ours, "BEN@shop.example")
    await begin_home(home.pool, ours, HOME, now=utc_now())
    with pytest.raises(Conflict, match=r"cell 2 has what is in other cells: ben@shop.example \(cell 0\)"):
        await joined(home, other, ours, at=home.admin_url)
    ben, cid = (name_of(ours, Kind.email, f"{who}@shop.example") for who in ("ben", "cid"))
    await say(home.pool, "person", {"email": "BEN@shop.example"}, email="cid@shop.example")
    await say(home.pool, "directory", {"name": ben}, name=cid)
    assert not (await this_cell(other.pool)).has_cells, "nothing came of all that"


async def _known_in_both(home: CellServer, other: CellServer, vault: Vault, first: Merchant, second: Merchant) -> None:
    for of, cell, email in ((first, HOME, "ann@shop.example"), (second, OTHER, "ben@shop.example")):
        for kind, value in (
            (Kind.merchant, str(of.id)),
            (Kind.public_key, of.public_key),
            (Kind.private_key, of.private_key),
            (Kind.email, email),
        ):
            for database in (home.pool, other.pool):
                assert await find_cell(database, kind, name_of(vault, kind, value)) == cell
    assert (await this_cell(other.pool)).home == 0
    slot = (await slots(home.pool))["paydesk_directory_2"]
    assert (slot.active, slot.lost) == (True, False)
    assert slot.seconds_behind is not None
    assert await check_cells(home.pool, {2: other.pool}, vault, now=utc_now()) == []


async def _goes_on_after_a_restart(home: CellServer, other: CellServer, vault: Vault) -> None:
    await home.server.stop()
    assert await find_cell(other.pool, Kind.email, name_of(vault, Kind.email, "ann@shop.example")) == HOME
    await cell_servers.start(home.server)
    await home.pool.expire_connections()
    await enter(home.pool, [Entry(Kind.merchant, "777", 777)], HOME.number, now=utc_now())
    await brought(other, Kind.merchant, "777", HOME)


async def _mended_after_a_failover(home: CellServer, other: CellServer, vault: Vault) -> None:
    """The new primary knows no slot, nor what was published just before; and what was written
    meanwhile never comes by itself.
    """
    async with connected(other.admin_url, most=1) as admin:
        await admin.execute("alter subscription paydesk_directory_2 disable")

        async def unread() -> bool:
            return not (await slots(home.pool))["paydesk_directory_2"].active

        await asyncio.wait_for(until(unread), 60)
        async with connected(home.admin_url, most=1) as failed_over:
            await failed_over.execute("select pg_drop_replication_slot('paydesk_directory_2')")
            await failed_over.execute("drop publication paydesk_directory")
        await admin.execute("alter subscription paydesk_directory_2 enable")
    await enter(home.pool, [Entry(Kind.merchant, "778", 778)], HOME.number, now=utc_now())
    (lost,) = await check_cells(home.pool, {2: other.pool}, vault, now=utc_now())
    assert (lost.cell, "no slot for it" in lost.what, lost.to_do) == (2, True, "paydesk cell check --mend")
    async with connected(other.admin_url, most=2) as admin:
        await mend_cells(home.pool, {2: admin}, vault, home_address=bringing(home), now=utc_now())
    assert await check_cells(home.pool, {2: other.pool}, vault, now=utc_now()) == []
    assert await find_cell(other.pool, Kind.merchant, "778") == HOME


async def _led_by_the_role_that_enters(home: CellServer, other: CellServer) -> None:
    """A move between two cells that are not home has the directory lead elsewhere, as the role of
    the docs that enters what is new.
    """
    async with connected(home.server.dsn(role="paydesk_entering"), most=2) as entering:
        assert (await this_cell(entering)).is_home
        assert await go_on_above(entering, other.pool, OTHER.number, 7, now=utc_now()) == 100
        assert await switch_merchant(entering, 777, left=HOME.number, to=OTHER.number, now=utc_now()) == 1
    await brought(other, Kind.merchant, "777", OTHER)
