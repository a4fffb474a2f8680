"""How much a full payment has the database do: log, index entries, rows in place, commits.

Counts, not times, so that another program on the machine changes nothing: the log that PostgreSQL
writes while real payments are taken (form, page, pay) is read record by record. Images of whole
pages, which depend on when a checkpoint was, are left out and given apart; autovacuum is off
meanwhile.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import subprocess
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import asyncpg
import uvloop

import smoke
from checkout import Connection, free_port, open_checkout, pay_open, serving
from paydesk.adapters.vault import Vault, generate_key_setting, generate_secret
from paydesk.core.clock import utc_now
from paydesk.database.embedded import EmbeddedServer, binary
from paydesk.database.migrating import migrate
from paydesk.database.pool import connected
from paydesk.domain.merchants.merchant import Merchant, create_merchant

LOG_AIM, ENTRIES_AIM, IN_PLACE_AIM = 4000, 14, 0.95
LOG_MOST, ENTRIES_MOST = 6600, 35
"""What a payment writes now, and a bit: more of it has crept in."""
RECORD = re.compile(
    r"rmgr: (?P<manager>\w+)\s+len \(rec/tot\):\s*(?P<bytes>\d+)/\s*(?P<total>\d+),.*?desc: (?P<deed>\S+)"
    r"(?:.*?rel \d+/\d+/(?P<relation>\d+))?"
)
CHANGED = "select relname, n_tup_upd, n_tup_hot_upd from pg_stat_user_tables where n_tup_upd > 0"
COMMITS = "select xact_commit from pg_stat_database where datname = current_database()"


@dataclass(slots=True)
class Work:
    """What the log of some payments says, and what the statistics do."""

    payments: int
    log_bytes: int = 0
    image_bytes: int = 0
    commits: int = 0
    rows: Counter[str] = field(default_factory=Counter)
    entries: Counter[str] = field(default_factory=Counter)
    bytes_of: Counter[str] = field(default_factory=Counter)
    in_place: dict[str, tuple[int, int]] = field(default_factory=dict)

    def take(self, line: str, names: dict[str, str]) -> None:
        """Count one record of the log."""
        found = RECORD.search(line)
        if found is None:
            return
        size = int(found["bytes"])
        self.log_bytes += size
        self.image_bytes += int(found["total"]) - size
        name = names.get(found["relation"] or "", found["manager"].lower())
        self.bytes_of[name] += size
        match found["manager"], found["deed"].removesuffix("+INIT"):
            case "Transaction", "COMMIT":
                self.commits += 1
            case "Btree", "INSERT_LEAF" | "INSERT_POST" | "SPLIT_L" | "SPLIT_R":
                self.entries[name] += 1
            case "Heap", "INSERT" | "UPDATE" | "HOT_UPDATE" | "DELETE":
                self.rows[name] += 1
            case "Heap2", "MULTI_INSERT":
                self.rows[name] += 1


async def take_payments(port: int, merchant: Merchant, payments: int, clients: int, name: str) -> None:
    """So many full payments by so many customers at once.

    All forms are posted before the first is paid: while somebody types a card's number, others'
    checkouts come to stand around theirs.
    """

    async def customer(number: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
        connection = Connection(reader, writer)
        orders = range(number, payments, clients)
        pages = [await open_checkout(connection, merchant, f"{name}-{order}") for order in orders]
        await all_open.wait()
        for page in pages:
            await pay_open(connection, page)
        writer.close()

    all_open = asyncio.Barrier(clients)
    await asyncio.gather(*(customer(number) for number in range(clients)))


async def measure(payments: int, clients: int) -> Work:
    """Take payments on a fresh cluster with its autovacuum off, and read the log of them."""
    with tempfile.TemporaryDirectory(prefix="paydesk-bench-") as folder:
        postgres = EmbeddedServer(Path(folder))
        await postgres.start()
        try:
            return await _measured(postgres, payments, clients)
        finally:
            await postgres.stop()


async def _measured(postgres: EmbeddedServer, payments: int, clients: int) -> Work:
    secret, vault_keys, port = generate_secret(), generate_key_setting(), free_port()
    vault = Vault.from_settings(vault_keys, secret)
    async with connected(postgres.url) as pool:
        await migrate(pool)
        merchant = await create_merchant(pool, vault, name="Bench", email="b@bench.example", now=utc_now())
        await pool.execute("update merchant set pingback_url = $1", "http://127.0.0.1/told")
    operator = await asyncpg.connect(postgres.dsn(role="postgres"))
    try:
        await operator.execute("alter system set autovacuum = off")
        await operator.execute("select pg_reload_conf()")
        async with serving(postgres, secret, vault_keys, port):
            # The first ones fill caches, and pages that the rest then shares.
            await take_payments(port, merchant, max(20, payments // 10), clients, "first")
            await operator.execute("analyze")
            await operator.execute("checkpoint")
            before, changed = (
                await operator.fetchval("select pg_current_wal_insert_lsn()::text"),
                await _changed(operator),
            )
            await take_payments(port, merchant, payments, clients, "counted")
            after = await operator.fetchval("select pg_switch_wal()::text")
        # Ended, its connections have told all that they had counted.
        names = {str(row[0]): row[1] for row in await operator.fetch("select relfilenode, relname from pg_class")}
        work = Work(payments, in_place=_since(changed, await _changed(operator)))
    finally:
        await operator.close()
    command = [str(binary("pg_waldump")), "-p", str(postgres.layout.cluster / "pg_wal"), "-s", before, "-e", after]
    for line in subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines():
        work.take(line, names)
    return work


async def _changed(operator: asyncpg.Connection) -> dict[str, tuple[int, int]]:
    """How many rows of each table were updated so far, and how many of them in place."""
    return {name: (updated, hot) for name, updated, hot in await operator.fetch(CHANGED)}


def _since(before: dict[str, tuple[int, int]], after: dict[str, tuple[int, int]]) -> dict[str, tuple[int, int]]:
    pairs = {name: (before.get(name, (0, 0)), now) for name, now in after.items()}
    return {name: (now[0] - old[0], now[1] - old[1]) for name, (old, now) in pairs.items() if now[0] > old[0]}


def show(work: Work) -> None:
    """Print all of it, for one payment."""

    def each(count: float) -> str:
        return f"{count / work.payments:.2f}"

    entries = sum(work.entries.values())
    print(f"a full payment (form, page, pay), of {work.payments} on a fresh cluster\n")
    print(f"  {'log, without images of pages':<44}{work.log_bytes / work.payments:>8.0f} B   aim {LOG_AIM}")
    print(f"  {'images of pages':<44}{work.image_bytes / work.payments:>8.0f} B")
    print(f"  {'commits that wrote':<44}{each(work.commits):>8}")
    print(f"  {'rows written':<44}{each(sum(work.rows.values())):>8}")
    print(f"  {'index entries':<44}{each(entries):>8}     aim {ENTRIES_AIM}")
    print("\n  index entries by index")
    for name, count in work.entries.most_common():
        print(f"    {name:<42}{each(count):>8}{work.bytes_of[name] / work.payments:>8.0f} B")
    print(f"\n  rows by table{'':<31}{'written':>8}{'log':>10}   updated in place (aim {IN_PLACE_AIM:.0%})")
    for name, count in work.rows.most_common():
        updated, hot = work.in_place.get(name, (0, 0))
        share = f"{hot / updated:>8.0%} of {each(updated)}" if updated else ""
        print(f"    {name:<42}{each(count):>8}{work.bytes_of[name] / work.payments:>8.0f} B{share}")
    rest = {name: count for name, count in work.bytes_of.items() if name not in work.entries and name not in work.rows}
    print("\n  the rest of the log")
    for name, count in sorted(rest.items(), key=lambda one: -one[1]):
        print(f"    {name:<50}{count / work.payments:>8.0f} B")


def main() -> None:
    """Read the arguments, count, print, and keep the result as JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="example: bench/work.py --payments 20000",
    )
    parser.add_argument("--payments", type=int, default=2000, help="payments that are counted (default %(default)s)")
    parser.add_argument("--clients", type=int, default=4, help="customers at once (default %(default)s)")
    asked = smoke.read(parser, payments=40)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        work = runner.run(measure(asked.payments, asked.clients))
    assert work.rows["payment"] >= 2 * work.payments, "a payment is written, and then paid"
    show(work)
    assert sum(work.entries.values()) <= ENTRIES_MOST * work.payments, "a payment writes more index entries than before"
    assert work.log_bytes <= LOG_MOST * work.payments, "a payment writes more log than before"
    result = {
        "payments": work.payments,
        "log_bytes": work.log_bytes / work.payments,
        "image_bytes": work.image_bytes / work.payments,
        "index_entries": sum(work.entries.values()) / work.payments,
        "commits": work.commits / work.payments,
        "in_place": {name: hot / updated for name, (updated, hot) in work.in_place.items()},
        "entries_of": {name: count / work.payments for name, count in work.entries.items()},
    }
    ratios = {
        "log of the most that is aimed at": work.log_bytes / work.payments / LOG_AIM,
        "index entries of the most that is aimed at": sum(work.entries.values()) / work.payments / ENTRIES_AIM,
    }
    smoke.keep("work", result, ratios, smoke=asked.smoke)


if __name__ == "__main__":
    main()
