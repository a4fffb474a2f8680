"""How many full payments a second one web process takes: form, page, pay; everything durable.

Measured in turns against the same three routes and statements as a bare FastAPI and asyncpg program
(the floor of the framework), and against pgbench running the statements alone (the floor of the
database). Same PostgreSQL, same number of clients, same load generator; the median of the
rounds counts. The simulated bank is measured apart, as it answers in the same process and writes
its record on the same disk: what is compared with the floors has a bank that approves at once.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

import uvloop

import smoke
from paydesk.adapters.vault import Vault, generate_key_setting, generate_secret
from paydesk.core.clock import utc_now
from paydesk.database.embedded import EmbeddedServer, binary
from paydesk.database.migrating import migrate
from paydesk.database.pool import SESSION, Database, connected
from paydesk.domain.merchants.merchant import Merchant, create_merchant
from paydesk_client.signature import sign

HERE = Path(__file__).parent
SOURCE = HERE.parent / "src" / "paydesk" / "domain"
DURABILITY = ("fsync", "synchronous_commit", "full_page_writes")
AIM = 0.8
WITH_BANK = ("-m", "paydesk")
WITHOUT_RECORD = (str(HERE / "peers" / "serve_without_record.py"),)
"""The web process with the simulated bank in it, and with one that only approves."""
CONTENDERS = ("paydesk", "with_bank", "bare", "pgbench")
SUCCESS = "http://127.0.0.1/thanks"
TAKEN = """
select count(*)
  from payment p
  join pingback b on b.merchant_id = p.merchant_id and b.payment_id = p.id
 where p.merchant_id = $1 and p.state = 'captured' and p.merchant_order_id like $2 || '-%'
"""
CARD = urlencode(
    {
        "email": "ada@example.com",
        "holder": "Ada Lovelace",
        "country": "GB",
        "number": "4242424242424242",
        "expiry": "12/30",
        "cvc": "123",
    }
).encode()
LOCATION = re.compile(rb"\r\nlocation: ([^\r]+)", re.IGNORECASE)
LENGTH = re.compile(rb"\r\ncontent-length: (\d+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Taken:
    """What a server took: payments a second, and how long the slowest of a hundred took, form, page
    and pay together (milliseconds).
    """

    rate: float
    p99: float


@dataclass(frozen=True, slots=True)
class Round:
    """Payments a second of each contender in one round, and what one in a hundred waits for
    at least (milliseconds).
    """

    paydesk: float
    with_bank: float
    bare: float
    pgbench: float
    paydesk_p99: float
    bare_p99: float


class Connection:
    """A keep-alive HTTP connection that costs the load generator as little as possible."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def ask(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        """Send one request; returns the status and the Location header."""
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n"
            "Content-Type: application/x-www-form-urlencoded\r\nAccept: text/html\r\n\r\n"
        )
        self.writer.write(head.encode() + body)
        answer = await self.reader.readuntil(b"\r\n\r\n")
        length = LENGTH.search(answer)
        if length is not None and int(length[1]):
            await self.reader.readexactly(int(length[1]))
        location = LOCATION.search(answer)
        return int(answer[9:12]), location[1] if location else b""


async def pay_once(connection: Connection, merchant: Merchant, order: str) -> None:
    """One customer: post the form, look at the page, pay."""
    await pay_open(connection, await open_checkout(connection, merchant, order))


async def open_checkout(connection: Connection, merchant: Merchant, order: str) -> str:
    """Post a shop's form; the path of the page that it leads to."""
    fields = {
        "api_key": merchant.public_key,
        "merchant_order_id": order,
        "amount": "10.00",
        "currency": "USD",
        "description": "Golden Ticket",
        "success_url": SUCCESS,
    }
    form = urlencode({**fields, "hash": sign(fields, merchant.private_key)}).encode()
    status, location = await connection.ask("POST", "/payment/form", form)
    assert status == 303, (status, location)
    return location.decode()


async def pay_open(connection: Connection, path: str) -> None:
    """Look at the page of an open checkout, and pay there."""
    status, _ = await connection.ask("GET", path)
    assert status == 200, status
    status, location = await connection.ask("POST", f"{path}/pay", CARD)
    assert (status, location.decode()) == (303, SUCCESS), (status, location)


async def load(pool: Database, port: int, merchant: Merchant, *, seconds: float, clients: int, name: str) -> Taken:
    """What a server on `port` takes from this many clients at once."""
    took: list[float] = []
    deadline = time.perf_counter() + seconds

    async def client(number: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
        connection, count = Connection(reader, writer), 0
        while (came := time.perf_counter()) < deadline:
            await pay_once(connection, merchant, f"{name}-{number}-{count}")
            count += 1
            took.append(time.perf_counter() - came)
        writer.close()

    began = time.perf_counter()
    await asyncio.gather(*(client(number) for number in range(clients)))
    seconds = time.perf_counter() - began
    taken = await pool.fetchval(TAKEN, merchant.id, name)
    assert taken == len(took), f"{len(took)} customers of {name} were told that they have paid, {taken} have"
    return Taken(len(took) / seconds, 1000 * sorted(took)[len(took) * 99 // 100])


@asynccontextmanager
async def server(command: list[str], environment: dict[str, str], port: int) -> AsyncIterator[None]:
    """A server process that answers on its port, ended at the end of the block."""
    process = subprocess.Popen(command, env={**os.environ, **environment}, stdout=subprocess.DEVNULL)
    try:
        for _ in range(300):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            if process.poll() is not None:
                raise SystemExit(f"{command} ended with {process.returncode}")
            await asyncio.sleep(0.1)
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=30)


@asynccontextmanager
async def serving(
    postgres: EmbeddedServer, secret: str, vault_keys: str, port: int, program: tuple[str, ...] = WITH_BANK
) -> AsyncIterator[None]:
    """A web process of Paydesk that refuses nobody who pays often, for the length of a block."""
    settings = {
        "PAYDESK_DATABASE_URL": postgres.url,
        "PAYDESK_SECRET_KEY": secret,
        "PAYDESK_VAULT_KEYS": vault_keys,
        "PAYDESK_DATA_DIR": str(postgres.layout.data_dir),
        "PAYDESK_PORT": str(port),
        "PAYDESK_METRICS_PORT": "0",
        "PAYDESK_FORMS_PER_MINUTE": "100000000",
        "PAYDESK_DECLINES_PER_HOUR": "100000000",
        "PAYDESK_TRIES_PER_CARD": "100000000",
        "PAYDESK_WRONG_CVCS_PER_CARD": "100000000",
        "PAYDESK_SIMULATOR_LATENCY": "0",
        "PAYDESK_LOG_LEVEL": "warning",
    }
    async with server([sys.executable, *program, "serve"], settings, port):
        yield


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def statement(file: Path, name: str) -> str:
    """A statement as it stands in its file, which pgbench reads as it is."""
    text = file.read_text()
    found = re.search(rf"-- name: {name}\(.*?\n(.*?;)\s*(?=\n-- name:|\Z)", text, re.DOTALL)
    assert found is not None, name
    return "\n".join(line for line in found[1].splitlines() if not line.startswith("--"))


def pgbench_script(merchant: Merchant, key_id: int) -> str:
    """A payment as pgbench plays it: the statements of one payment, one after the other."""
    payments, merchants = SOURCE / "payments" / "queries.sql", SOURCE / "merchants" / "queries.sql"
    now = utc_now()
    values = {
        "public_key": merchant.public_key, "client_address": "127.0.0.1", "minute": f"{now:%Y-%m-%d %H:%M}:00+00",
        "merchant_id": str(merchant.id), "live": "false", "currency": "USD", "description": "Golden Ticket",
        "amount": "10", "success_url": SUCCESS, "pingback_url": "", "sign_version": "v1", "key_id": str(key_id),
        "parameters": "{}", "email": "ada@example.com", "first_name": "", "last_name": "", "country": "GB",
        "language": "en",
        "now": now.isoformat(), "expires_at": "2099-01-01", "declined_since": now.isoformat(),
        "previous_attempt_id": "0", "acquirer": "simulator", "capture": "true", "number_sealed": "sealed",
        "vault_key_id": "k", "bin": "424242", "last4": "4242", "brand": "visa", "exp_month": "12",
        "exp_year": "2030", "holder": "Ada Lovelace", "username": "ada", "not_after": "2099-01-01",
        "lookup_at": "2099-01-01", "merchant_ids": f"{{{merchant.id}}}", "lives": "{false}",
        "acquirer_references": "{r}", "network_references": "{n}", "nets": "{8.9}", "reserves": "{0.5}",
        "fees": "{0.6}", "send_to": "{NULL}", "pingback_formats": "{json}", "payloads": "{x}",
        "terms_agreed": "",
        "leads_back": "{true}", "time_to_ship": "7 days", "reminded_before": "1 day",
        "kinds": "{address,card,wrong_cvc}", "subjects": "{a,b,c}", "mosts": "{100000000,100000000,100000000}",
        "anywhere": "{f,f,f}", "checkout_most": "10",
        "address_most": "100000000", "factors": "{1,1,1}", "spans": "{1h,1h,1d}", "real_now": now.isoformat(),
        "pads": rf"\\x{'00' * 128}",
    }  # fmt: skip
    steps = [
        "\\set number random(1, 9000000000000000000)",
        statement(merchants, "find_signer"),
        statement(payments, "open_checkout").removesuffix(";") + ", id as checkout_id \\gset",
        statement(SOURCE / "payments" / "checkout_rows.sql", "find_checkout"),
        statement(SOURCE / "payments" / "checkout_rows.sql", "find_checkout"),
        statement(payments, "prepare_attempt").removesuffix(";") + " \\gset",
        statement(payments, "begin_attempt"),
        statement(SOURCE / "payments" / "one_time.sql", "record_approvals"),
    ]
    script = "\n".join(steps)
    for unique in ("request_digest", "merchant_order_id"):
        script = re.sub(rf"(?<![:\w]):{unique}\b", ":number", script)
    script = re.sub(r"(?<![:\w]):attempt_ids\b", "array[:attempt_id]", script)
    script = re.sub(r"(?<![:\w]):(package_version_id|first_amount)\b", "null", script)
    for name, value in values.items():
        script = re.sub(rf"(?<![:\w]):{name}\b", f"'{value}'", script)
    return script


def pgbench(server_: EmbeddedServer, script: Path, *, seconds: int, clients: int) -> float:
    """Payments a second of the statements alone, prepared, without any program around them."""
    command = [
        *(str(binary("pgbench")), "-n", "-M", "prepared", "-f", str(script), "-c", str(clients), "-j", "1"),
        *("-T", str(seconds), server_.url),
    ]
    session = " ".join(f"-c {name}={value}" for name, value in SESSION.items())
    said = subprocess.run(
        command, env={**os.environ, "PGOPTIONS": session}, capture_output=True, text=True, check=False
    )
    found = re.search(r"tps = ([0-9.]+)", said.stdout)
    if found is None or said.returncode:
        raise SystemExit(said.stderr[-2000:])
    return float(found[1])


async def measure(rounds: int, seconds: int, clients: int) -> tuple[list[Round], dict[str, str]]:
    """Let the contenders take turns on one embedded PostgreSQL."""
    with tempfile.TemporaryDirectory(prefix="paydesk-bench-") as folder:
        data_dir = Path(folder)
        postgres = EmbeddedServer(data_dir)
        await postgres.start()
        try:
            secret, vault_keys = generate_secret(), generate_key_setting()
            vault = Vault.from_settings(vault_keys, secret)
            async with connected(postgres.url) as pool:
                await migrate(pool)
                merchant = await create_merchant(pool, vault, name="Bench", email="b@bench.example", now=utc_now())
                key_id = await pool.fetchval("select id from merchant_key where merchant_id = $1", merchant.id)
                durability = {name: str(await pool.fetchval(f"show {name}")) for name in DURABILITY}
                durability["PostgreSQL"] = str(await pool.fetchval("show server_version"))
            port, port_with_bank, bare_port = free_port(), free_port(), free_port()
            bare_settings = {"BENCH_DATABASE_URL": postgres.url, "BENCH_PRIVATE_KEY": merchant.private_key}
            bare_command = [sys.executable, str(HERE / "peers" / "bare_checkout.py"), str(bare_port)]
            script = data_dir / "payment.sql"
            script.write_text(pgbench_script(merchant, key_id))
            results = []
            async with (
                serving(postgres, secret, vault_keys, port, WITHOUT_RECORD),
                serving(postgres, secret, vault_keys, port_with_bank),
                server(bare_command, bare_settings, bare_port),
            ):
                for turn in range(rounds + 1):
                    # As in any database that has lived for a minute, the planner knows the tables.
                    async with connected(postgres.url, most=1) as pool:
                        await pool.execute("analyze")
                        ours, banked, bare = [
                            await load(pool, each, merchant, seconds=seconds, clients=clients, name=f"{name}{turn}")
                            for name, each in (("p", port), ("w", port_with_bank), ("b", bare_port))
                        ]
                    floor = await asyncio.to_thread(pgbench, postgres, script, seconds=seconds, clients=clients)
                    if turn:  # the first round warms caches
                        results.append(Round(ours.rate, banked.rate, bare.rate, floor, ours.p99, bare.p99))
            return results, durability
        finally:
            await postgres.stop()


def main() -> None:
    """Measure, print one table, write JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, epilog="Example: python bench/checkout.py --rounds 5 --seconds 8",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--rounds", type=int, default=3, help="rounds that count (one more warms up)")
    parser.add_argument("--seconds", type=int, default=5, help="seconds of each contender in a round")
    parser.add_argument("--clients", type=int, default=16, help="customers at once")
    asked = smoke.read(parser, rounds=1, seconds=1, clients=4)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        rounds, durability = runner.run(measure(asked.rounds, asked.seconds, asked.clients))
    medians = {name: statistics.median(getattr(one, name) for one in rounds) for name in CONTENDERS}
    ratios = {
        "bare": statistics.median(one.paydesk / one.bare for one in rounds),
        "with bank": statistics.median(one.with_bank / one.bare for one in rounds),
        "pgbench": statistics.median(one.paydesk / one.pgbench for one in rounds),
    }
    print(f"full payments (form, page, pay), {asked.clients} clients, one web process each, {durability}\n")
    print(f"  {'contender':<44}{'payments/s':>11}{'paydesk / it':>15}")
    print(f"  {'paydesk serve':<44}{medians['paydesk']:>11.0f}{'':>15}")
    print(f"  {'  with the simulated bank in the process':<44}{medians['with_bank']:>11.0f}{'':>15}")
    print(f"  {'(b) same routes, bare FastAPI + asyncpg':<44}{medians['bare']:>11.0f}{ratios['bare']:>15.2f}")
    print(f"  {'(a) same statements, pgbench':<44}{medians['pgbench']:>11.0f}{ratios['pgbench']:>15.2f}")
    slowest = {name: statistics.median(getattr(one, f"{name}_p99") for one in rounds) for name in ("paydesk", "bare")}
    print(f"\n  aim: {AIM} x (b); reached {ratios['bare']:.2f}, with the simulated bank {ratios['with bank']:.2f}")
    print("  a customer's three requests, p99: " + ", ".join(f"{name} {ms:.0f} ms" for name, ms in slowest.items()))
    result = {"payments_per_second": medians, "paydesk_over": ratios, "aim_over_bare": AIM, **durability}
    result["p99_ms"] = slowest
    kept = {
        "payments over bare": ratios["with bank"],
        "payments without the bank's record over bare": ratios["bare"],
        "payments over pgbench": ratios["pgbench"],
    }
    kept["p99 of a payment over bare"] = slowest["paydesk"] / slowest["bare"]
    smoke.keep("checkout", result, kept, smoke=asked.smoke)


if __name__ == "__main__":
    main()
