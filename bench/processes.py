"""How many `serve` and `work` one core of PostgreSQL feeds, and what each more of them adds.

PostgreSQL is a control group with a part of a core to itself, and each process is another with as
large a part, so a machine of two cores stands for one of many. Customers, the shop and the
simulated bank have what is left. Payments: one to three `serve`; pingbacks: one to three `work`.
Where one more adds little and PostgreSQL's group has used up its part, the database is the ceiling.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import psutil
import uvloop

import smoke
from checkout import Connection, free_port, pay_once
from groups import Group
from paydesk.adapters.vault import Vault, generate_key_setting, generate_secret
from paydesk.core.clock import utc_now
from paydesk.database.embedded import EmbeddedServer
from paydesk.database.migrating import migrate
from paydesk.database.pool import Database, connected
from paydesk.domain.merchants.merchant import Merchant, create_merchant
from pingbacks import queue, receiver_process
from sizing import process, settings, used

MOST = 3
DUE = "select count(*) from pingback where state = 'due'"
CAPTURED = "select count(*) from payment where state = 'captured'"


@dataclass(frozen=True, slots=True)
class Found:
    """What so many processes of a kind did a second, and which part of what it may use each of them
    used on average, and PostgreSQL.
    """

    kind: str
    processes: int
    rate: float
    each_used: float
    database_used: float


@dataclass(frozen=True, slots=True)
class Rig:
    """A database in its group, and what is needed to start processes in theirs; `postgres` says how
    many seconds of a core it has used, its passing processes (autovacuum) included.
    """

    database: Database
    postgres: Callable[[], float]
    merchant: Merchant
    shop: str
    settings: Callable[[int], dict[str, str]]
    part: float
    stack: AsyncExitStack

    async def start(self, words: list[str], port: int = 0) -> psutil.Process:
        """A process in a group of its own, ready; both gone at the end of the stack."""
        ended = self.stack.push_async_callback
        if self.part:
            group = Group(f"paydesk-bench-{os.getpid()}-{words[-1]}-{port or free_port()}", self.part)
            ended(asyncio.to_thread, group.remove)
        running = await self.stack.enter_async_context(process(words, self.settings(port), port))
        if self.part:
            group.take(running.pid)
        return running

    async def measured(self, kind: str, running: list[psutil.Process], count: str, seconds: float) -> Found:
        """What is done meanwhile: how much `count` changes in so many seconds, once it does and
        all are warm.
        """
        first = await self.database.fetchval(count)
        while await self.database.fetchval(count) == first:
            await asyncio.sleep(0.1)
        await asyncio.sleep(seconds / 3)
        await self.database.execute("analyze", timeout=60)
        readings: list[Callable[[], float]] = [self.postgres, *(partial(used, one) for one in running)]
        began, before, spent = time.monotonic(), await self.database.fetchval(count), [read() for read in readings]
        await asyncio.sleep(seconds)
        after, passed = await self.database.fetchval(count), time.monotonic() - began
        database, *each = [
            (read() - earlier) / passed / (self.part or 1) for read, earlier in zip(readings, spent, strict=True)
        ]
        return Found(kind, len(running), abs(after - before) / passed, statistics.fmean(each), database)


async def pay_at(rig: Rig, ports: list[int], clients: int, stop: asyncio.Event) -> None:
    """So many customers at each port pay until told to stop."""

    async def customer(port: int, number: int) -> None:
        connection = Connection(*await asyncio.open_connection("127.0.0.1", port, limit=1 << 20))
        paid = 0
        while not stop.is_set():
            await pay_once(connection, rig.merchant, f"of{len(ports)} at{port} customer{number} order{paid}")
            paid += 1
        connection.writer.close()

    await asyncio.gather(*(customer(port, number) for port in ports for number in range(clients)))


async def with_web(rig: Rig, processes: int, asked: argparse.Namespace) -> Found:
    """So many `serve`, each with its own customers."""
    ports = [free_port() for _ in range(processes)]
    running = [await rig.start(["paydesk", "serve"], port) for port in ports]
    stop = asyncio.Event()
    paying = asyncio.create_task(pay_at(rig, ports, asked.clients, stop))
    found = await rig.measured("payments", running, CAPTURED, asked.seconds)
    stop.set()
    await paying
    return found


async def with_workers(rig: Rig, processes: int, asked: argparse.Namespace) -> Found:
    """So many `work`, with more pingbacks due than they send."""
    await queue(rig.database, rig.merchant, rig.shop, asked.due)
    await rig.database.execute("analyze", timeout=60)  # Nobody meets so many at once on an empty database.
    workers = [await rig.start(["paydesk", "work"]) for _ in range(processes)]
    found = await rig.measured("pingbacks", workers, DUE, asked.seconds)
    left = await rig.database.fetchval(DUE)
    assert left, f"{processes} workers had nothing left to send: give more with --due"
    return found


@asynccontextmanager
async def rig(part: float) -> AsyncIterator[Rig]:
    """A database, a bank and a shop; ended at the end of the block, with what was started."""
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="paydesk-bench-"))
        postgres = EmbeddedServer(Path(folder))
        if part:
            group = Group(f"paydesk-bench-{os.getpid()}-postgres", part)
            stack.callback(group.remove)
        await postgres.start()
        stack.push_async_callback(postgres.stop)
        shop = await stack.enter_async_context(receiver_process())
        database = await stack.enter_async_context(connected(postgres.url, most=4))
        await migrate(database)
        server = psutil.Process(await database.fetchval("select pg_backend_pid()")).parent()
        assert server is not None
        if part:
            group.take(server.pid, *(child.pid for child in server.children(recursive=True)))
        keys = generate_key_setting(), generate_secret()
        vault = Vault.from_settings(*keys)
        merchant = await create_merchant(
            database, vault, name="Bench", email="b@bench.example", pingback_url=f"{shop}/ok", now=utc_now()
        )
        bank = free_port()
        simulator = ["paydesk.adapters.acquirers.simulator", "--port", str(bank), "--record", f"{folder}/bank"]
        environment = settings(postgres.url, folder, keys, 0, bank)
        await stack.enter_async_context(process(simulator, environment, bank))
        started = await stack.enter_async_context(AsyncExitStack())
        yield Rig(
            database, group.used if part else partial(used, server), merchant, f"{shop}/ok",
            lambda port: {**environment, "PAYDESK_PORT": str(port)}, part, started,
        )  # fmt: skip


async def measure(asked: argparse.Namespace) -> list[Found]:
    """Each number of each kind on a database of its own, as often as asked; the median counts.

    (On one that more are put to work on, these would walk past what earlier ones have left there.)
    """
    found: list[Found] = []
    for _ in range(asked.rounds):
        for kind in (with_web, with_workers):
            for processes in range(1, asked.most + 1):
                async with rig(asked.part) as made:
                    found.append(await kind(made, processes, asked))
    return [middle([one for one in found if (one.kind, one.processes) == of]) for of in named(found)]


def named(found: list[Found]) -> list[tuple[str, int]]:
    """What was measured, once each."""
    return list(dict.fromkeys((one.kind, one.processes) for one in found))


def middle(runs: list[Found]) -> Found:
    """The run whose rate is the median."""
    return sorted(runs, key=lambda one: one.rate)[len(runs) // 2]


def main() -> None:
    """Measure, print one table, write JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, epilog="Example: python bench/processes.py --rounds 3 --part 0.25",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--rounds", type=int, default=1, help="rounds, each on new databases")
    parser.add_argument("--seconds", type=float, default=8, help="seconds that are measured each time")
    parser.add_argument("--clients", type=int, default=4, help="customers at once at each `serve`")
    parser.add_argument("--due", type=int, default=200_000, help="pingbacks that are due at first")
    parser.add_argument("--most", type=int, default=MOST, help="processes of a kind, at last")
    parser.add_argument("--part", type=float, default=0.3, help="part of a core that each gets; 0: no limit")
    asked = smoke.read(parser, rounds=1, seconds=2, clients=2, due=60_000, most=2, part=0)
    try:
        found = uvloop.run(measure(asked))
    except PermissionError as error:
        raise SystemExit(f"control groups can't be written here ({error}): run it as root, or with --part 0") from error
    print(f"PostgreSQL and each process with {asked.part or 'no limit'} of a core\n")
    for one in found:
        first = next(other for other in found if other.kind == one.kind)
        print(
            f"  {one.kind:<10}{one.processes} processes: {one.rate:8.0f}/s, {one.rate / first.rate:5.2f} of one's; "
            f"each uses {one.each_used:.0%} of its part, PostgreSQL {one.database_used:.0%}"
        )
    ratios = {
        f"{one.kind} of {one.processes} processes over one's": one.rate / statistics.fmean(
            other.rate for other in found if (other.kind, other.processes) == (one.kind, 1)
        )
        for one in found if one.processes > 1
    }  # fmt: skip
    smoke.keep("processes", [asdict(one) for one in found], ratios, smoke=asked.smoke)


if __name__ == "__main__":
    main()
