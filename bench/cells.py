"""How much cells disturb each other: what each of several takes beside the others, over what
it takes alone, on average and of the slowest of them.

Each cell is a deployment of its own with a number of its own: an embedded PostgreSQL, `serve`,
`work`, and the customers who pay there, all of it in one control group that may use a part of a
core. In each round one pays alone, then two at once, then four, then three while the fourth is
killed. Beside it stands what the machine itself gives: a program that only computes, in the same
groups, four at once over alone. Writing control groups needs root, or a group that was delegated to
you.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import uvloop

import smoke
from checkout import DURABILITY, free_port, load
from groups import Group, can_be_written
from paydesk.adapters.vault import Vault, generate_key_setting, generate_secret
from paydesk.core.clock import utc_now
from paydesk.database.embedded import EmbeddedServer
from paydesk.database.migrating import migrate
from paydesk.database.pool import connected
from paydesk.domain.cells.numbers import IDS_OF_A_CELL, begin_cell
from paydesk.domain.merchants.merchant import create_merchant
from sizing import process, settings

AIM = 0.9
NUMBERS = (1, 2, 4, 7)
"""Cells whose ids look like no card's."""
COMPUTING = "4 programs that only compute"
SLOWEST = ", the slowest"


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell's process, which is told a line at a time what to do."""

    number: int
    running: asyncio.subprocess.Process

    async def said(self) -> dict[str, float]:
        """Its next answer. Raises: SystemExit if it has ended."""
        assert self.running.stdout is not None
        line = await self.running.stdout.readline()
        if not line:
            raise SystemExit(f"cell {self.number} has ended")
        return dict(json.loads(line))

    async def pay(self, seconds: float) -> float:
        """Payments a second that it takes for so many seconds."""
        return await self._ask("pay", seconds)

    async def compute(self, seconds: float) -> float:
        """Rounds a second that a program of its group computes for so many seconds."""
        return await self._ask("compute", seconds)

    async def _ask(self, deed: str, seconds: float) -> float:
        assert self.running.stdin is not None
        self.running.stdin.write(f"{deed} {seconds}\n".encode())
        return (await self.said())["rate"]

    def kill(self) -> None:
        """End it and all that it has started, without a word."""
        whole = psutil.Process(self.running.pid)
        for one in (*whole.children(recursive=True), whole):
            one.kill()


async def be_a_cell(number: int, folder: Path, clients: int) -> None:
    """Set up a cell, say so, and have its customers pay, or a program compute, for as many seconds
    as each line says.
    """
    postgres = EmbeddedServer(folder)
    await postgres.start()
    try:
        keys = generate_key_setting(), generate_secret()
        async with connected(postgres.url, most=2) as pool:
            await migrate(pool)
            await begin_cell(pool, number)
            vault = Vault.from_settings(*keys)
            merchant = await create_merchant(pool, vault, name="Bench", email="b@bench.example", now=utc_now())
            assert merchant.id // IDS_OF_A_CELL == number
            port = free_port()
            environment = {**settings(postgres.url, str(folder), keys, port, 0), "PAYDESK_CELL": str(number)}
            environment["PAYDESK_SIMULATOR_URL"] = ""
            async with process(["paydesk", "serve"], environment, port), process(["paydesk", "work"], environment):
                say({name: await pool.fetchval(f"show {name}") for name in DURABILITY})
                turn = 0
                while line := await asyncio.to_thread(sys.stdin.readline):
                    deed, seconds = line.split()[0], float(line.split()[1])
                    if deed == "compute":
                        say({"rate": await asyncio.to_thread(computed, seconds)})
                        continue
                    turn += 1
                    await pool.execute("analyze")
                    taken = await load(pool, port, merchant, seconds=seconds, clients=clients, name=f"turn{turn}")
                    say({"rate": taken.rate})
    finally:
        await postgres.stop()


def computed(seconds: float) -> float:
    """Rounds a second of work that knows neither a database nor a network: a structure larger than
    a core's cache is written as JSON and read again.
    """
    orders = [{"order": f"order-{number}", "amount": f"{number}.00", "currency": "USD"} for number in range(20_000)]
    rounds, began = 0, time.monotonic()
    while time.monotonic() - began < seconds:
        assert len(json.loads(json.dumps(orders))) == len(orders)
        rounds += 1
    return rounds / (time.monotonic() - began)


def say(fact: dict[str, object]) -> None:
    """Answer with a line of JSON."""
    print(json.dumps(fact), flush=True)


@asynccontextmanager
async def cells(folder: Path, part: float, clients: int) -> AsyncIterator[list[Cell]]:
    """All cells, ready to take payments; ended at the end of the block, with their groups."""
    groups = {number: Group(f"paydesk-bench-{os.getpid()}-{number}", part) for number in NUMBERS if part}
    made: list[Cell] = []
    try:
        for number in NUMBERS:
            words = [sys.executable, __file__, "--cell", str(number), "--folder", str(folder / str(number))]
            (folder / str(number)).mkdir()
            running = await asyncio.create_subprocess_exec(
                *(*words, "--clients", str(clients)),
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
                preexec_fn=groups[number].enter if part else None,
            )  # fmt: skip
            made.append(Cell(number, running))
        for cell in made:
            await cell.said()
        yield made
    finally:
        for cell in made:
            if cell.running.returncode is None and cell.running.stdin is not None:
                cell.running.stdin.close()
        for cell in made:
            await cell.running.wait()
        for group in groups.values():
            group.remove()


async def beside(paying: Sequence[Cell], alone: float, seconds: float) -> list[float]:
    """What each of several takes at once, over what one takes alone on average."""
    return [rate / alone for rate in await asyncio.gather(*(cell.pay(seconds) for cell in paying))]


async def given(made: Sequence[Cell], seconds: float) -> float:
    """What the machine gives each of several programs that compute at once, over one alone."""
    alone = statistics.mean([await cell.compute(seconds / len(made)) for cell in made])
    return statistics.mean(await asyncio.gather(*(cell.compute(seconds) for cell in made))) / alone


async def measure(asked: argparse.Namespace) -> dict[str, list[float]]:
    """All rounds; payments a second of one alone, and the ratios beside others: on average, and of
    the slowest cell.
    """
    several = ("2 at once", "4 at once", "3 while the fourth dies")
    found: dict[str, list[float]] = {"alone": [], COMPUTING: []}
    found |= {name: [] for each in several for name in (each, f"{each}{SLOWEST}")}

    def note(name: str, each: list[float]) -> None:
        found[name].append(statistics.mean(each))
        found[f"{name}{SLOWEST}"].append(min(each))

    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="paydesk-bench-")))
        made = await stack.enter_async_context(cells(folder, asked.part, asked.clients))
        for cell in made:
            await cell.pay(asked.seconds / 2)  # warms caches
        for _ in range(asked.rounds):
            alone = statistics.mean([await cell.pay(asked.seconds) for cell in made])
            found["alone"].append(alone)
            for number in (2, 4):
                note(f"{number} at once", await beside(made[:number], alone, asked.seconds))
            found[COMPUTING].append(await given(made, asked.seconds))
        dying = asyncio.get_running_loop().call_later(asked.seconds / 2, made[-1].kill)
        note("3 while the fourth dies", await beside(made[:-1], alone, asked.seconds))
        dying.cancel()
    return found


def main() -> None:
    """Measure, print one table, write JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, epilog="Example: python bench/cells.py --rounds 5 --part 0.3",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--rounds", type=int, default=3, help="rounds, each with all contenders")
    parser.add_argument("--seconds", type=float, default=8, help="seconds of each contender in a round")
    parser.add_argument("--clients", type=int, default=4, help="customers at once in each cell")
    parser.add_argument("--part", type=float, default=0.4, help="part of a core that each cell gets; 0: no limit")
    parser.add_argument("--cell", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    asked = smoke.read(parser, rounds=1, seconds=1, clients=2)
    if asked.cell:
        uvloop.run(be_a_cell(asked.cell, asked.folder, asked.clients))
        return
    if asked.smoke and not can_be_written():
        asked.part = 0
    try:
        found = uvloop.run(measure(asked))
    except PermissionError as error:
        raise SystemExit(f"control groups can't be written here ({error}): run it as root, or with --part 0") from error
    ratios = {name: statistics.median(each) for name, each in found.items() if name != "alone"}
    print(f"{len(NUMBERS)} cells, each with {asked.part or 'no limit'} of a core, its customers included\n")
    print(f"  one alone: {statistics.median(found['alone']):.0f} payments/s")
    for name, ratio in ratios.items():
        aim = "" if name == COMPUTING else f"; aim: {AIM}"
        of = "one alone" if name == COMPUTING else "that"
        print(f"  {name}: {ratio:.2f} of {of} ({min(found[name]):.2f} to {max(found[name]):.2f}){aim}")
    kept = {f"a cell of {name} over alone": ratio for name, ratio in ratios.items() if name != COMPUTING}
    kept["4 programs that only compute over alone"] = ratios[COMPUTING]
    smoke.keep("cells", found, kept, smoke=asked.smoke)


if __name__ == "__main__":
    main()
