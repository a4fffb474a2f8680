"""What a payment, a renewal and a pingback cost: CPU time of each process, WAL,
bytes kept, connections.

One `paydesk serve`, one `paydesk work`, a simulated bank and a shop that answers, each a process of
its own, on one embedded PostgreSQL. Each kind of work is done so many times; what processes and log
have grown by in the meantime, less what they use when nothing is done, is divided by that number. A
payment is the form, the page, the card, and the pingback that follows; a renewal is charged by the
worker and told by a pingback; a pingback alone is neither.

WAL is measured without full-page images, whose number depends on checkpoints and not on payments.
Bytes are those of tables and indexes that are packed (`vacuum full`): room for what changes comes
on top.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import psutil
import uvloop

import billing
import smoke
from checkout import Connection, free_port, pay_once
from paydesk.adapters.vault import Vault, generate_key_setting, generate_secret
from paydesk.core.clock import utc_now
from paydesk.database import programs
from paydesk.database.embedded import EmbeddedServer
from paydesk.database.migrating import migrate
from paydesk.database.pool import Database, connected
from paydesk.domain.merchants.merchant import Merchant, create_merchant
from pingbacks import queue, receiver_process

SIZES = """
select sum(pg_table_size(c.oid))::bigint as tables, sum(pg_indexes_size(c.oid))::bigint as indexes
  from pg_class c
  join pg_namespace n on n.oid = c.relnamespace
 where c.relkind = 'r' and n.nspname = 'public'
"""
CONNECTIONS = """
select replace(application_name, 'paydesk ', '') as pool, count(*) as open
  from pg_stat_activity
 where application_name like 'paydesk %'
 group by 1
"""
WAITING = "select count(*) from pingback where state = 'due'"
RATES = (10, 100)
YEAR = 1_000_000
SETTLES = 3.0
"""Seconds after which what has been done leaves nothing to do:
what workers sum up and settle each second."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What processes and log have used until now: CPU seconds by process, bytes of WAL,
    time in seconds.
    """

    cpu: dict[str, float]
    wal: int
    images: int
    at: float


@dataclass(frozen=True, slots=True)
class Rig:
    """All that is measured, at work."""

    database: Database
    vault: Vault
    merchant: Merchant
    shop: str
    port: int
    processes: dict[str, psutil.Process]

    async def read(self) -> Reading:
        """What has been used until now."""
        row = await self.database.fetchrow(
            "select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint as at, wal_fpi from pg_stat_wal"
        )
        return Reading(
            {name: used(process) for name, process in self.processes.items()},
            row["at"],
            row["wal_fpi"],
            time.monotonic(),
        )

    async def told(self) -> None:
        """Wait until every pingback is sent, and what follows is done."""
        while await self.database.fetchval(WAITING):
            await asyncio.sleep(0.1)
        await asyncio.sleep(SETTLES)

    async def sizes(self) -> dict[str, int]:
        """Bytes of all tables and all indexes, packed."""
        await self.database.execute("vacuum full", timeout=600)
        await self.database.execute("analyze")
        return dict(await self.database.fetchrow(SIZES))

    async def pay(self, number: int, clients: int, name: str) -> None:
        """So many customers pay, some at once."""
        left = iter(range(number))

        async def client() -> None:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 20)
            connection = Connection(reader, writer)
            for one in left:
                await pay_once(connection, self.merchant, f"{name}-{one}")
            writer.close()

        await asyncio.gather(*(client() for _ in range(clients)))
        paid = (
            "select count(*) from payment where merchant_id = $1 and state = 'captured' and merchant_order_id like $2"
        )
        captured = await self.database.fetchval(paid, self.merchant.id, f"{name}-%")
        assert captured == number, f"{number} customers have paid, {captured} payments are captured"

    async def renew(self, number: int) -> None:
        """Have those charged who are due."""
        self.processes["worker"].send_signal(signal.SIGCONT)
        charged = "select count(*) from payment where renewal and state = 'captured'"
        while await self.database.fetchval(charged) < number:
            await asyncio.sleep(0.1)

    async def make_due(self) -> None:
        """Let all subscriptions be due, while the worker stands still."""
        self.processes["worker"].send_signal(signal.SIGSTOP)
        await self.database.execute("update subscription set date_next = now() - random() * interval '1 day'")

    async def send(self, number: int) -> None:
        """So many pingbacks are due at once."""
        await queue(self.database, self.merchant, self.shop, number)


def used(process: psutil.Process) -> float:
    """CPU seconds of a process and of all that it has started, ended or not."""
    times = process.cpu_times()
    own = times.user + times.system + times.children_user + times.children_system
    for child in process.children(recursive=True):
        try:
            mine = child.cpu_times()
        except psutil.NoSuchProcess:
            continue
        own += mine.user + mine.system
    return own


async def cost(rig: Rig, work: Callable[[], Awaitable[None]], number: int, idle: Reading | None) -> dict[str, float]:
    """What one of so many costs: CPU milliseconds by process, bytes of WAL;
    idle is used in a second of rest.
    """
    before = await rig.read()
    await work()
    await rig.told()
    after = await rig.read()
    seconds = after.at - before.at
    spent = {
        name: 1000 * (after.cpu[name] - before.cpu[name] - (idle.cpu[name] * seconds if idle else 0)) / number
        for name in after.cpu
    }
    wal = (after.wal - before.wal - (idle.wal * seconds if idle else 0)) / number
    return {**spent, "wal": wal, "images": (after.images - before.images) / number}


async def rest(rig: Rig, seconds: float) -> Reading:
    """What is used in a second in which nobody pays."""
    before = await rig.read()
    await asyncio.sleep(seconds)
    after = await rig.read()
    passed = after.at - before.at
    return Reading(
        {name: (after.cpu[name] - before.cpu[name]) / passed for name in after.cpu},
        int((after.wal - before.wal) / passed),
        0,
        passed,
    )


async def measure(asked: argparse.Namespace) -> dict[str, object]:
    """Measure all three kinds of work; returns what goes into the JSON file."""
    async with rig() as made:
        await made.pay(asked.warm, asked.clients, "warm")
        await made.told()
        idle = await rest(made, asked.rest)
        empty = await made.sizes()
        payment = await cost(made, lambda: made.pay(asked.payments, asked.clients, "paid"), asked.payments, idle)
        open_now = {row["pool"]: row["open"] for row in await made.database.fetch(CONNECTIONS)}
        paid = await made.sizes()
        pingback = await cost(made, lambda: made.send(asked.pingbacks), asked.pingbacks, idle)
        await billing.subscribe(made.database, made.vault, asked.renewals)
        before = await made.sizes()
        await made.make_due()
        renewal = await cost(made, lambda: made.renew(asked.renewals), asked.renewals, idle)
        after = await made.sizes()
        version = await made.database.fetchval("show server_version")
    return {
        "PostgreSQL": version,
        "idle": {**{name: 1000 * spent for name, spent in idle.cpu.items()}, "wal": idle.wal},
        "payment": {**payment, **grown(empty, paid, asked.payments)},
        "renewal": {**renewal, **grown(before, after, asked.renewals)},
        "pingback": pingback,
        "connections": open_now,
    }


def grown(before: dict[str, int], after: dict[str, int], number: int) -> dict[str, float]:
    """Bytes that tables and indexes have grown by for each of so many."""
    return {name: (after[name] - before[name]) / number for name in before}


@asynccontextmanager
async def rig() -> AsyncIterator[Rig]:
    """A deployment of five processes, ended at the end of the block."""
    with tempfile.TemporaryDirectory(prefix="paydesk-bench-") as folder:
        postgres = EmbeddedServer(Path(folder))
        with patch.object(programs, "server_command", without_full_pages(programs.server_command)):
            await postgres.start()
        try:
            async with receiver_process() as shop, connected(postgres.url, most=4) as database:
                await migrate(database)
                assert await database.fetchval("show full_page_writes") == "off"
                server = psutil.Process(await database.fetchval("select pg_backend_pid()")).parent()
                assert server is not None
                keys = generate_key_setting(), generate_secret()
                vault = Vault.from_settings(*keys)
                merchant = await create_merchant(
                    database, vault, name="Bench", email="b@bench.example", pingback_url=f"{shop}/ok", now=utc_now()
                )
                changed = {
                    "https://shop.example/pingback": f"{shop}/ok",
                    "'bench', ''": "'simulator', 'first payment'",
                    "'bench'": "'simulator'",
                    # Nothing is charged before all subscriptions are there.
                    "now() - random() * interval '1 day'": "now() + interval '1 day'",
                }
                for usual, here in changed.items():
                    assert usual in billing.SUBSCRIBE
                    billing.SUBSCRIBE = billing.SUBSCRIBE.replace(usual, here)
                port, bank = free_port(), free_port()
                environment = settings(postgres.url, folder, keys, port, bank)
                simulator = ["paydesk.adapters.acquirers.simulator", "--port", str(bank), "--record", f"{folder}/bank"]
                async with (
                    process(simulator, environment, bank),
                    process(["paydesk", "serve"], environment, port) as web,
                    process(["paydesk", "work"], environment) as worker,
                ):
                    measured = {"web": web, "worker": worker, "PostgreSQL": server}
                    yield Rig(database, vault, merchant, f"{shop}/ok", port, measured)
        finally:
            await postgres.stop()


def without_full_pages(usual: Callable[..., list[str]]) -> Callable[..., list[str]]:
    """The command of a server that writes no full-page images; what runs otherwise says `on`."""
    return lambda *given: [word.replace("full_page_writes=on", "full_page_writes=off") for word in usual(*given)]


def settings(address: str, folder: str, keys: tuple[str, str], port: int, bank: int) -> dict[str, str]:
    """The settings of the processes: no limits that one client reaches, a bank that answers
    at once.
    """
    unlimited = ("FORMS_PER_MINUTE", "DECLINES_PER_HOUR", "TRIES_PER_CARD", "WRONG_CVCS_PER_CARD", "CHECKS_PER_CARD")
    given = {
        "DATABASE_URL": address,
        "VAULT_KEYS": keys[0],
        "SECRET_KEY": keys[1],
        "DATA_DIR": folder,
        "PORT": str(port),
        "METRICS_PORT": "0",
        "SIMULATOR_URL": f"http://127.0.0.1:{bank}",
        "SIMULATOR_LATENCY": "0",
        "OUTBOUND_ALLOW": "127.0.0.0/8",
        "PAGE_CHECK_HOURS": "0",
        "LOG_LEVEL": "error",
        **dict.fromkeys(unlimited, "100000000"),
    }
    return {f"PAYDESK_{name}": value for name, value in given.items()}


@asynccontextmanager
async def process(words: list[str], environment: dict[str, str], port: int = 0) -> AsyncIterator[psutil.Process]:
    """A process that listens on its port, if it has one; ended at the end of the block."""
    running = psutil.Popen([sys.executable, "-m", *words], env={**clean(), **environment}, stdout=subprocess.DEVNULL)
    try:
        while port and running.poll() is None:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.1)
            else:
                writer.close()
                break
        assert running.poll() is None, f"{' '.join(words)} has ended with {running.poll()}"
        yield running
    finally:
        running.send_signal(signal.SIGCONT)
        running.terminate()
        await asyncio.to_thread(running.wait, 60)


def clean() -> dict[str, str]:
    """Our environment without anybody's settings."""
    return {name: value for name, value in psutil.Process().environ().items() if not name.startswith("PAYDESK_")}


def show(result: dict[str, object]) -> None:
    """Print what one costs, and what that comes to."""
    kinds = {name: result[name] for name in ("payment", "renewal", "pingback", "idle")}
    columns = ("web", "worker", "PostgreSQL", "wal", "images", "tables", "indexes")
    print(f"PostgreSQL {result['PostgreSQL']}; CPU in ms, WAL and tables in bytes, of one; idle: of a second\n")
    print(f"  {'':<10}" + "".join(f"{column:>12}" for column in columns))
    for name, kind in kinds.items():
        assert isinstance(kind, dict)
        print(
            f"  {name:<10}" + "".join(f"{kind[column]:>12.1f}" if column in kind else f"{'':>12}" for column in columns)
        )
    print(f"\n  connections while paying: {result['connections']}\n")
    payment = kinds["payment"]
    assert isinstance(payment, dict)
    kept = payment["tables"] + payment["indexes"]
    for rate in RATES:
        cores = ", ".join(f"{name} {rate * payment[name] / 1000:.2f}" for name in ("web", "worker", "PostgreSQL"))
        print(f"  {rate} payments/s: cores: {cores}; WAL {rate * payment['wal'] / 1e6:.2f} MB/s")
    print(f"  {YEAR} payments: {YEAR * kept / 1e9:.1f} GB kept, {YEAR * payment['wal'] / 1e9:.1f} GB WAL")


def main() -> None:
    """Read the arguments, measure, print, and keep the result as JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, epilog="example: bench/sizing.py"
    )
    parser.add_argument("--payments", type=int, default=5000, help="default %(default)s")
    parser.add_argument("--renewals", type=int, default=5000, help="default %(default)s")
    parser.add_argument("--pingbacks", type=int, default=5000, help="default %(default)s")
    parser.add_argument("--warm", type=int, default=500, help="payments before anything is measured")
    parser.add_argument("--clients", type=int, default=8, help="customers at once")
    parser.add_argument("--rest", type=float, default=30.0, help="seconds in which nobody pays")
    asked = smoke.read(parser, payments=60, renewals=60, pingbacks=60, warm=20, clients=4, rest=2.0)
    result = uvloop.run(measure(asked))
    show(result)
    smoke.keep("sizing", result, {}, smoke=asked.smoke)


if __name__ == "__main__":
    main()
