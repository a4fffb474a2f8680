"""Old and new code side by side, while steps are applied, customers pay and a backup reads:
nobody notices.

`make test-upgrade` tries it on 3 million rows; by default there are fewer. In the short form
the old code serves on the new schema beside the new one, and does not come back.
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Sequence
from pathlib import Path

import asyncpg
import pytest
from tests.faults.test_plays import unforeseen
from tests.lengths import at_length, long
from tests.processes import PATIENCE, eventually
from tests.standings import standings
from tests.upgrade.code import NEW, ROOT, Code, code_before
from tests.upgrade.deployment import Deployment, backup, deployed
from tests.upgrade.history import write_history
from tests.upgrade.waits import MIGRATE

from paydesk.adapters.acquirers.simulator import Record
from paydesk.database.migrating import Migration, known_migrations, migrate, steps_in
from paydesk.database.pool import connected

pytestmark = pytest.mark.faults

ROWS = int(os.environ.get("UPGRADE_ROWS", at_length("14000", "4000")))
MANY_ROWS = ROWS > 1_000_000
WHOLE = at_length(True, MANY_ROWS)
SOME = 40 if MANY_ROWS else at_length(8, 2)
"""How many customers pay in each phase."""

_PAGE = (ROOT / "docs" / "operate.md").read_text()
_UPGRADES = _PAGE.split("\n## Upgrades\n")[1].split("\n## ")[0]
_SAID = [words.split() for words in re.findall(r"^ +paydesk (.+)$", _UPGRADES, re.MULTILINE)]
MIGRATE_SAID, CHECK_SAID, FINISH_SAID = _SAID
"""What the docs say is to be run."""

NOBODY_WAITS = 2.0
"""Seconds."""

_OPEN = """
select (select count(*) from pingback where state <> 'acknowledged')
       + (select count(*) from payment where state in ('processing', 'challenged'))
       + (select count(*) from movement where lookup_at is not null)
"""

STEPS = steps_in(Path(__file__).with_name("steps"))
EXPANDING, CONTRACTING = STEPS[:-1], STEPS[-1:]
SEED = 12


@long
async def test_an_upgrade_and_the_way_back_stop_nobody_who_pays(tmp_path: Path) -> None:
    old = code_before(tmp_path / "old")
    async with deployed(tmp_path, SEED) as here:
        hears_at = await here.stack.enter_async_context(here.receiver.listening())
        await here.open_shop(old, hears_at)
        before = await here.begin(old)
        rows = await fill(here)
        begun = time.monotonic()
        async with here.paying():
            await here.sold(SOME)
            await upgrade(here)
            after = await here.begin(NEW)
            await here.sold(SOME)
            assert min(here.balancer.answered(name) for name in ("old", "new")) > 0, "both serve side by side"
            await here.end(old, before)
            await here.sold(SOME)
            last = after
            if WHOLE:
                last = await here.begin(old)
                await here.end(NEW, after)
                await here.sold(SOME)
        await everything_ends(here)
        await here.end(old, last)
        await nobody_noticed(here, (NEW, old) if WHOLE else (old,))
        last = await here.begin(NEW)
        async with here.paying():
            await finished(here, old)
            await here.sold(SOME)
        await everything_ends(here)
        await here.end(NEW, last)
        await nobody_noticed(here, (NEW,))
        await contracted(here, old)
        print(
            f"\n{rows:,} rows, {len(here.customers)} customers in {time.monotonic() - begun:.0f} s: the longest wait "
            f"for a lock was {here.waits.longest:.2f} s, {len(here.waits.logged)} were of a second or more"
        )


async def fill(here: Deployment) -> int:
    """Write the history; the number of rows that the tables have then."""
    admin = await asyncpg.connect(here.admin_url)
    try:
        months = "select count(*) from pg_class where relname like 'pingback\\_attempt\\_m%' and relkind = 'r'"
        while not await admin.fetchval(months):  # noqa: ASYNC110 (the worker makes them as it begins)
            await asyncio.sleep(0.05)
        await write_history(admin, here.merchant_id, ROWS)
        rows = await admin.fetchval(
            "select sum(reltuples)::bigint from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r'"
        )
        assert rows > ROWS * 0.9
        return int(rows)
    finally:
        await admin.close()


async def upgrade(here: Deployment) -> None:
    """Apply the steps of the new code and those of each kind, while two backups read,
    one after the other.
    """
    async with backup(here):
        migrating = asyncio.create_task(apply_all(here, EXPANDING))
        await held_up(here, migrating)
    async with connected(here.postgres.url, most=1) as database:
        applied = "select exists (select from schema_migration where number = $1)"
        while not await database.fetchval(applied, EXPANDING[0].number):
            assert not migrating.done() or await migrating
            await asyncio.sleep(0.05)
        async with backup(here):
            await held_up(here, migrating)
        await migrating
        assert await database.fetchval("select count(*) from payment where remark is distinct from note") == 0


async def held_up(here: Deployment, migrating: asyncio.Task[list[str]]) -> None:
    """A step waits for who reads; customers pay on all the same."""
    before = here.waits.held_up
    await eventually(lambda: here.waits.held_up > before or migrating.done(), "a step is held up")
    await here.sold(SOME)
    assert not migrating.done(), "a backup is waited for"


async def apply_all(here: Deployment, steps: tuple[Migration, ...]) -> list[str]:
    """What an operator does, and then the steps of each kind, by the same means."""
    said = await here.command(NEW, *MIGRATE_SAID)
    assert said.returncode == 0, said.stderr
    assert f"paydesk {' '.join(FINISH_SAID)}" in said.stdout
    async with connected(here.postgres.url, most=2, name=MIGRATE.removeprefix("paydesk ")) as database:
        return await migrate(database, steps=steps)


async def finished(here: Deployment, old: Code) -> None:
    """What only old code needs is taken away while customers pay;
    old code says so at its start from then on.
    """
    said = await here.command(NEW, *FINISH_SAID)
    assert said.returncode == 0, said.stderr
    assert "once no older code runs" not in said.stdout
    waited = [step for step in known_migrations() if step.waits]
    assert [step.name in said.stdout for step in waited] == [True] * len(waited)
    await refused(here, old, waited[-1].number)


async def everything_ends(here: Deployment) -> None:
    """All that was begun is told to the shop, and what its staff wish is done."""

    def is_told() -> bool:
        told = {payload["payment_order"]["merchant_order_id"] for payload in here.receiver.accepted}
        return told >= {customer.order for customer in here.customers} and not here.staff.is_busy

    await eventually(is_told, "all is told and done", *(kept.tail for kept in here.all_processes))
    connection = await asyncpg.connect(here.postgres.url)
    try:
        async with asyncio.timeout(PATIENCE):
            while await connection.fetchval(_OPEN):  # noqa: ASYNC110
                await asyncio.sleep(0.1)
    finally:
        await connection.close()


async def nobody_noticed(here: Deployment, releases: Sequence[Code]) -> None:
    """What customers, the shop, the bank, the database, the logs and the books
    of these releases say.
    """
    assert [wrong for customer in here.customers for wrong in customer.wrong] == []
    assert here.balancer.failures == {}
    assert here.staff.wrong + here.staff.failures() == []
    assert here.receiver.forged == 0
    assert unforeseen(*here.all_processes) == []
    assert [line for kept in here.all_processes for line in kept.lines if "Traceback" in line] == []
    assert "\n".join(here.waits.deadlocks) == ""
    assert max(here.waits.longest, *here.waits.logged, 0.0) < NOBODY_WAITS
    record = Record(here.record)
    taken = [purchase for purchase in standings(record.operations()).values() if purchase.captured]
    record.close()
    assert len(taken) == len(here.customers), "the bank was asked for each order's money once"
    words = (*CHECK_SAID, "--simulator-record", str(here.record))
    for said in await asyncio.gather(*(here.command(code, *words) for code in releases)):
        assert said.returncode == 0, said.stdout + said.stderr


async def contracted(here: Deployment, old: Code) -> None:
    """After a step that old code can't run with, it says so at its start, and what to do."""
    async with connected(here.postgres.url, most=2, name="migrate") as database:
        assert await migrate(database, steps=STEPS) == [step.name for step in CONTRACTING]
    await refused(here, old, 9010)


async def refused(here: Deployment, old: Code, needed: int) -> None:
    """Old code says at its start that it can't run on this schema, and what to do."""
    commands = ("serve", "work", "migrate") if WHOLE else ("serve",)
    for said in await asyncio.gather(*(here.command(old, command) for command in commands)):
        assert (said.returncode, said.stdout) == (1, "")
        assert f"needs code that knows version {needed} of it" in said.stderr
        assert "install the newer Paydesk" in said.stderr
        assert "Traceback" not in said.stderr
