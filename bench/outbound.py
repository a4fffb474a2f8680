"""How fast the client of pingbacks posts, beside aiohttp's: the same bodies to the same receiver,
as many requests at once, and nothing else.

Over kept connections without and with TLS, and with TLS on a new connection for each request. The
receiver is a process of its own that reads requests and answers `ok`; the two clients take turns,
and the median of the rounds counts.
"""

from __future__ import annotations

import argparse
import asyncio
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import aiohttp
import uvloop

import smoke
from paydesk.adapters.outbound import OutboundClient
from receiving import receivers

AT_ONCE = 128
MERCHANTS = 4
BODY = b"x" * 700
"""As long as a pingback of a payment."""
HEADERS = {"Content-Type": "application/json", "X-Service-Signature": "s" * 64}

Post = Callable[[int], Awaitable[bool]]
"""Posts once for one of the merchants; whether `ok` came back."""


@dataclass(frozen=True, slots=True)
class Way:
    """How requests travel: with TLS or without, over a kept connection or a new one each time."""

    name: str
    tls: bool
    kept: bool


WAYS = (
    Way("plain, kept connections", tls=False, kept=True),
    Way("TLS, kept connections", tls=True, kept=True),
    Way("TLS, a new connection each", tls=True, kept=False),
)


async def receive(folder: Path) -> None:
    """Print the ports without and with TLS, and answer until stdin is closed."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "certificate.pem", folder / "key.pem")
    loop = asyncio.get_running_loop()
    servers = [await loop.create_server(receivers(), "127.0.0.1", 0, ssl=tls, backlog=1024) for tls in (None, context)]
    print(*(server.sockets[0].getsockname()[1] for server in servers), flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


def make_certificate(folder: Path) -> None:
    """A certificate for localhost that nobody but this run believes."""
    made = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", str(folder / "key.pem")]
    named = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-days", "2"]
    asked = ["openssl", "req", "-x509", *made, *named, "-out", str(folder / "certificate.pem")]
    subprocess.run(asked, check=True, capture_output=True)


@asynccontextmanager
async def receiver_process(folder: Path) -> AsyncIterator[tuple[str, str]]:
    """Run the receiver beside us; gives its addresses without and with TLS."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        __file__,
        "--receive",
        str(folder),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        plain, secure = (await process.stdout.readline()).split()
        yield f"http://localhost:{int(plain)}/ok", f"https://localhost:{int(secure)}/ok"
    finally:
        process.stdin.close()
        await process.wait()


async def rate(post: Post, number: int) -> float:
    """Answered with `ok` per second."""
    left = iter(range(number))

    async def work(worker: int) -> int:
        return sum([await post(worker % MERCHANTS) for _ in left])

    began = time.monotonic()
    answered = sum(await asyncio.gather(*(work(worker) for worker in range(AT_ONCE))))
    seconds = time.monotonic() - began
    assert answered == number, f"{number - answered} of {number} were not answered"
    return number / seconds


async def our_rate(url: str, way: Way, trust: ssl.SSLContext, number: int) -> float:
    """By the client of pingbacks, with all of its guards."""
    client = OutboundClient([ip_network("127.0.0.0/8"), ip_network("::1/128")], tls=trust)

    async def post(merchant: int) -> bool:
        answer = await client.post(url, BODY, HEADERS, whose=merchant if way.kept else None)
        return answer.status == 200 and answer.body_start == b"ok"

    try:
        return await rate(post, number)
    finally:
        await client.close()


async def bare_rate(url: str, way: Way, trust: ssl.SSLContext, number: int) -> float:
    """By aiohttp's client, without any guard."""
    connector = aiohttp.TCPConnector(limit=AT_ONCE, force_close=not way.kept, ssl=trust)
    async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=60)) as session:

        async def post(_merchant: int) -> bool:
            async with session.post(url, data=BODY, headers=HEADERS) as response:
                return response.status == 200 and await response.read() == b"ok"

        return await rate(post, number)


async def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Both clients in each way, by turns; returns what goes into the JSON file."""
    found: dict[str, Any] = {"requests_at_once": AT_ONCE, "posts_per_round": arguments.posts}
    with tempfile.TemporaryDirectory(prefix="paydesk-bench-") as name:
        make_certificate(Path(name))
        trust = ssl.create_default_context(cafile=str(Path(name) / "certificate.pem"))
        async with receiver_process(Path(name)) as (plain, secure):
            for way in WAYS:
                url = secure if way.tls else plain
                # A new connection with TLS costs some twenty times a kept one.
                number = arguments.posts if way.kept else max(AT_ONCE, arguments.posts // 10)
                bare, ours = [], []
                for _ in range(arguments.rounds):
                    bare.append(await bare_rate(url, way, trust, number))
                    ours.append(await our_rate(url, way, trust, number))
                ratio = statistics.median(ours) / statistics.median(bare)
                found[way.name] = {"aiohttp": bare, "ours": ours, "ratio": ratio}
    return found


def show(result: dict[str, object]) -> None:
    """Print one table."""
    print(f"one process each; {AT_ONCE} requests at once; posts a second, median of the rounds")
    print(f"  {'':<28}{'aiohttp':>10}{'Paydesk':>10}{'ratio':>8}")
    for way in WAYS:
        row = result[way.name]
        assert isinstance(row, dict)
        bare, ours = statistics.median(row["aiohttp"]), statistics.median(row["ours"])
        print(f"  {way.name:<28}{bare:>10.0f}{ours:>10.0f}{row['ratio']:>8.2f}")


def main() -> None:
    """Read the arguments, measure, print, and keep the result as JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, epilog="example: bench/outbound.py"
    )
    parser.add_argument("--posts", type=int, default=20_000, help="per round and way (default %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="default %(default)s")
    parser.add_argument("--receive", type=Path, help=argparse.SUPPRESS)
    arguments = smoke.read(parser, posts=400, rounds=1)
    if arguments.receive is not None:
        uvloop.run(receive(arguments.receive))
        return
    result = uvloop.run(measure(arguments))
    show(result)
    ratios = {f"{way.name} over aiohttp": result[way.name]["ratio"] for way in WAYS}
    smoke.keep("outbound", result, ratios, smoke=arguments.smoke)


if __name__ == "__main__":
    main()
