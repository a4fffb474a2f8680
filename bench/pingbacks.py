"""How fast pingbacks go out, and whether a dead neighbour delays anybody.

Speed: acknowledged pingbacks per second, claimed, signed, posted and recorded by one sender,
against a bare aiohttp client that posts the same bodies to the same receiver (a process of its own)
with as many requests at once: what one sender does for four merchants. Both are one process; they
take turns, and the median of the rounds counts. A round is long enough that a sender's first look,
for which the database plans its statements, and its last recording weigh little: in one of 10,000
they are a tenth of it. The receiver is a shop's, whose machine is not ours, so it does as little as
a server can; the same once more with one of a framework's, which shares the cores with all else.

Waking: how long a pingback takes from its commit to the answer of the shop if the senders are told
of it, as web processes do, beside the time if they find it by looking.

Fairness: how long a healthy merchant's pingbacks take from due to acknowledged, alone and beside a
merchant with thousands due at an endpoint that hangs.

Where Redis is installed with BullMQ (as Node.js finds it, see NODE_PATH) or Celery (its command on
the PATH), these post the same body from jobs, too, without any durability (bench/queues).
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import aiohttp
import structlog
import uvloop

import queues
import smoke
from paydesk.adapters.outbound import OutboundClient
from paydesk.adapters.vault import Vault, generate_key_setting, generate_secret
from paydesk.commands import loading
from paydesk.core.clock import utc_now
from paydesk.core.money import FeePlan, split_payment
from paydesk.database.embedded import EmbeddedServer
from paydesk.database.migrating import migrate
from paydesk.database.pool import Database, connected
from paydesk.domain.merchants.merchant import Merchant, create_merchant
from paydesk.domain.pingbacks import metrics
from paydesk.domain.pingbacks.payload import PaymentReport, payment_envelope
from paydesk.domain.pingbacks.sending import PingbackSender, SenderSettings
from paydesk.domain.pingbacks.stamping import stamp
from paydesk.domain.pingbacks.waking import Listening, passed_on, told
from receiving import framework, start_light

MERCHANTS = 4
AT_ONCE = MERCHANTS * SenderSettings().per_endpoint
DURABILITY = ("fsync", "synchronous_commit", "full_page_writes")
AIM = 1.0
AIMS = {"BullMQ": 1.5, "Celery": 10.0}
LIGHT, FRAMEWORK = "light", "framework"
OTHERS_MOST = 10_000
"""Jobs a round for what is slower by far."""

PAYLOAD = payment_envelope(
    PaymentReport(
        payment_id=4711,
        merchant_order_id="5d00c568c5b2b",
        currency="USD",
        split=split_payment(Decimal("10.00"), FeePlan()),
        at=datetime(2026, 1, 1, tzinfo=UTC),
        first_name="Jane",
        last_name="Doe",
        username="jane@customer.example",
        country="US",
        email="jane@customer.example",
    )
)


@dataclass(frozen=True, slots=True)
class Fairness:
    """Milliseconds from due to acknowledged of a healthy merchant's pingbacks."""

    pingbacks: int
    p50: float
    p99: float
    worst: float


async def receive(kind: str) -> None:
    """Answer `ok`; print the port and run until stdin is closed."""
    print(await (start_light() if kind == LIGHT else framework.start()), flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


@asynccontextmanager
async def receiver_process(kind: str = LIGHT) -> AsyncIterator[str]:
    """Run a receiver beside us; gives the address that it listens at."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, __file__, "--receive", kind, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(await process.stdout.readline())}"
    finally:
        process.stdin.close()
        await process.wait()


@asynccontextmanager
async def embedded_database() -> AsyncIterator[tuple[Database, str]]:
    """A new embedded server with our schema, as `paydesk run` makes it, and its address."""
    with tempfile.TemporaryDirectory(prefix="paydesk-bench-") as folder:
        server = EmbeddedServer(Path(folder))
        await server.start()
        try:
            async with connected(server.url) as database:
                await migrate(database)
                yield database, server.url
        finally:
            await server.stop()


async def queue(database: Database, merchant: Merchant, url: str, number: int) -> None:
    """Make pingbacks due now, as payments would: no two at the same moment."""
    await database.execute(
        """
        insert into pingback (merchant_id, live, event, url, sign_version, key_id, format, payload, state, due_at,
                              created_at)
        select $1, false, 'payment', $2, 'v2', (select max(id) from merchant_key where merchant_id = $1), 'json', $3,
               'due', $4::timestamptz - ($5::bigint - number) * interval '1 microsecond', $4
          from generate_series(1, $5::bigint) as number
        """,
        merchant.id,
        url,
        PAYLOAD,
        utc_now(),
        number,
    )


async def bare_rate(url: str, number: int, private_key: str) -> float:
    """Acknowledged per second by nothing but an aiohttp client; the bodies are made beforehand."""
    left = [
        stamp(
            PAYLOAD,
            sign_version="v2",
            body_format="json",
            private_key=private_key,
            header_prefix="X-Service",
            pingback_ts=int(utc_now().timestamp()) + index,
        )
        for index in range(number)
    ]
    acknowledged = 0
    connector = aiohttp.TCPConnector(limit=AT_ONCE)
    async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=15)) as session:

        async def work() -> None:
            nonlocal acknowledged
            while left:
                body, headers = left.pop()
                async with session.post(url, data=body, headers=headers) as response:
                    acknowledged += response.status == 200 and (await response.text()).strip().lower() == "ok"

        began = time.monotonic()
        await asyncio.gather(*(work() for _ in range(AT_ONCE)))
        seconds = time.monotonic() - began
    assert acknowledged == number
    return number / seconds


@asynccontextmanager
async def sending(database: Database, vault: Vault, words: Database | None = None) -> AsyncIterator[None]:
    """A sender at work, as `paydesk work` runs it; without `words` it is told nothing."""
    outbound, stop = OutboundClient([ip_network("127.0.0.0/8")]), asyncio.Event()
    sender = PingbackSender(database, vault, outbound, SenderSettings(grace=1.0))
    running = [asyncio.ensure_future(each.run(stop)) for each in (sender, Listening(words, sender.wake))]
    try:
        yield
    finally:
        stop.set()
        await asyncio.gather(*running)
        await outbound.close()


async def acknowledged(number: int, before: float) -> None:
    """Wait until so many more than `before` are recorded as acknowledged
    (the sender counts what it has recorded).
    """
    while acknowledged_so_far() - before < number:
        await asyncio.sleep(0.01)


def acknowledged_so_far() -> float:
    """The sender's own count of what is recorded as acknowledged."""
    samples = (sample for metric in metrics.ATTEMPTS.collect() for sample in metric.samples)
    return sum(s.value for s in samples if s.name.endswith("_total") and s.labels["outcome"] == "acknowledged")


async def our_rate(database: Database, vault: Vault, url: str, number: int) -> float:
    """Acknowledged and recorded per second by a sender, from its start to the last one
    in the database.
    """
    for _ in range(MERCHANTS):
        merchant = await create_merchant(database, vault, name="Speed", email="s@shop.example", now=utc_now())
        await queue(database, merchant, url, number // MERCHANTS)
    await database.execute("analyze pingback, pingback_attempt")
    began, before = time.monotonic(), acknowledged_so_far()
    async with sending(database, vault):
        await acknowledged(number, before)
        seconds = time.monotonic() - began
    left = await database.fetchval("select count(*) from pingback where state <> 'acknowledged'")
    assert left == 0, f"{left} pingbacks are not recorded as acknowledged"
    return number / seconds


async def fairness(
    database: Database, vault: Vault, base: str, seconds: float, neighbours_due: int, words: Database | None
) -> Fairness:
    """A healthy merchant's delays while `neighbours_due` pingbacks of another one are due at a URL
    that hangs; told of to the sender over `words`, if there are any.
    """
    neighbour = await create_merchant(database, vault, name="Dead", email="d@shop.example", now=utc_now())
    healthy = await create_merchant(database, vault, name="Healthy", email="h@shop.example", now=utc_now())
    if neighbours_due:
        await queue(database, neighbour, f"{base}/hang", neighbours_due)
    sent, before = 0, acknowledged_so_far()
    async with passed_on(database), sending(database, vault, words):
        await asyncio.sleep(1.0)
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            await queue(database, healthy, f"{base}/ok", 1)
            told()
            sent += 1
            await asyncio.sleep(0.02)
        await acknowledged(sent, before)
    delays = sorted(
        row["delay"]
        for row in await database.fetch(
            """
            select extract(epoch from a.at - (p.created_at))::float8 * 1000 + a.duration_ms as delay
              from pingback p
              join pingback_attempt a on a.merchant_id = p.merchant_id and a.pingback_id = p.id
             where p.merchant_id = $1
            """,
            healthy.id,
        )
    )
    assert len(delays) == sent, f"{len(delays)} attempts for {sent} pingbacks of the healthy merchant"
    await database.execute("delete from pingback where merchant_id = $1", neighbour.id)
    return Fairness(len(delays), statistics.median(delays), delays[int(len(delays) * 0.99)], delays[-1])


async def by_turns(database: Database, vault: Vault, base: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """The rates of the bare client and of ours at one receiver, and what ours is of the other."""
    bare, ours = [], []
    for _ in range(arguments.rounds):
        bare.append(await bare_rate(f"{base}/ok", arguments.pingbacks, "k" * 48))
        ours.append(await our_rate(database, vault, f"{base}/ok", arguments.pingbacks))
    return {"bare": bare, "ours": ours, "ratio": statistics.median(ours) / statistics.median(bare)}


async def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Run all measures; returns what goes into the JSON file."""
    vault = Vault.from_settings(generate_key_setting(), generate_secret())
    async with receiver_process(FRAMEWORK) as base, embedded_database() as (database, _):
        by_framework = await by_turns(database, vault, base, arguments)
    async with receiver_process() as base, embedded_database() as (database, address):
        durability = {name: await database.fetchval(f"show {name}") for name in DURABILITY}
        rates = await by_turns(database, vault, base, arguments)
        load = queues.Load(f"{base}/ok", PAYLOAD.encode(), min(arguments.pingbacks, OTHERS_MOST), AT_ONCE)
        others = {
            name: [await queues.rate(name, base, load) for _ in range(arguments.rounds)] for name in queues.installed()
        }
        async with connected(address, most=1, least=0, name="words") as words:
            found = await fairness(database, vault, base, arguments.seconds, 0, None)
            alone = await fairness(database, vault, base, arguments.seconds, 0, words)
            beside = await fairness(database, vault, base, arguments.seconds, arguments.neighbours_due, words)
    ours = statistics.median(rates["ours"])
    return {
        "postgresql": durability,
        "requests_at_once": AT_ONCE,
        "pingbacks_per_round": arguments.pingbacks,
        "rates": rates,
        "at_a_framework": by_framework,
        "others": {
            name: {"rates": rounds, "ratio": ours / statistics.median(rounds)} for name, rounds in others.items()
        },
        "neighbours_due": arguments.neighbours_due,
        "alone_and_found_by_looking": {name: getattr(found, name) for name in Fairness.__slots__},
        "alone": {name: getattr(alone, name) for name in Fairness.__slots__},
        "beside_a_dead_neighbour": {name: getattr(beside, name) for name in Fairness.__slots__},
    }


def show(result: dict[str, Any]) -> None:
    """Print one table."""
    found, alone, beside = (result[name] for name in ("alone_and_found_by_looking", "alone", "beside_a_dead_neighbour"))
    rates, others = result["rates"], result["others"]
    print(f"PostgreSQL: {result['postgresql']}; one process each; {AT_ONCE} requests at once")
    rows = [
        ("acknowledged per second, bare aiohttp client", f"{statistics.median(rates['bare']):.0f}"),
        ("acknowledged per second, Paydesk (durable)", f"{statistics.median(rates['ours']):.0f}"),
        (f"ratio (aim: at least {AIM})", f"{rates['ratio']:.2f}"),
        ("ratio where the receiver is a framework's, on the same cores", f"{result['at_a_framework']['ratio']:.2f}"),
        ("a pingback found by looking, due to acknowledged, p50 / p99", f"{found['p50']:.0f} / {found['p99']:.0f} ms"),
        ("the same, told of: a healthy merchant alone", f"{alone['p50']:.0f} / {alone['p99']:.0f} ms"),
        (
            f"the same beside {result['neighbours_due']} due at an endpoint that hangs",
            f"{beside['p50']:.0f} / {beside['p99']:.0f} ms",
        ),
    ]
    for name, other in others.items():
        posted = f"{statistics.median(other['rates']):.0f}"
        rows.append((f"posted per second, {name} on Redis without durability", posted))
        rows.append((f"ratio of Paydesk to {name} (aim: at least {AIMS[name]})", f"{other['ratio']:.2f}"))
    for label, value in rows:
        print(f"  {label:<62}{value:>16}")


def ratios_of(result: dict[str, Any]) -> dict[str, float]:
    """What goes into the history."""
    beside, alone = result["beside_a_dead_neighbour"], result["alone"]
    return {
        f"{result['pingbacks_per_round']} acknowledged over a bare aiohttp client": result["rates"]["ratio"],
        "acknowledged over a bare aiohttp client, at a framework": result["at_a_framework"]["ratio"],
        **{f"acknowledged over {name}": other["ratio"] for name, other in result["others"].items()},
        "p99 beside a dead neighbour of the p99 alone": beside["p99"] / alone["p99"],
    }


def main() -> None:
    """Read the arguments, measure, print, and keep the result as JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, epilog="example: bench/pingbacks.py"
    )
    parser.add_argument("--pingbacks", type=int, default=50_000, help="per round (default %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="default %(default)s")
    parser.add_argument("--seconds", type=float, default=6.0, help="of each fairness measure (default %(default)s)")
    parser.add_argument("--neighbours-due", type=int, default=5000, help="pingbacks of the dead neighbour")
    parser.add_argument("--receive", choices=(LIGHT, FRAMEWORK), help=argparse.SUPPRESS)
    arguments = smoke.read(parser, pingbacks=400, rounds=1, seconds=1.0, neighbours_due=1000)
    if arguments.receive:
        uvloop.run(receive(arguments.receive))
        return
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    loading.stay()  # as in every process of ours; the bare client has it, too
    result = uvloop.run(measure(arguments))
    show(result)
    smoke.keep("pingbacks", result, ratios_of(result), smoke=arguments.smoke)


if __name__ == "__main__":
    main()
