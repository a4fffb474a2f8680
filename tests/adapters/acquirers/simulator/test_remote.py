import asyncio
import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from tests.processes import free_port

from paydesk.adapters.acquirers.interface import AcquirerRefused, Approved, OutcomeUnknown
from paydesk.adapters.acquirers.purchases import CardDetails, Purchase
from paydesk.adapters.acquirers.simulator import Bank, Record, RemoteSimulator, SimulatedAcquirer
from paydesk.adapters.acquirers.simulator.remote import Timeouts

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def purchase(key: str = "one") -> Purchase:
    return Purchase(
        key=key,
        amount=Decimal("10.00"),
        currency="USD",
        card=CardDetails("4242424242424242", 12, 2099, "Ada Lovelace", "123"),
        capture=True,
        not_after=datetime.now(UTC) + timedelta(hours=1),
    )


async def serve(handler: Handler, *, patience: float = 60.0) -> tuple[web.AppRunner, RemoteSimulator]:
    app = web.Application()
    app.router.add_post("/{path}", handler)
    runner = web.AppRunner(app, shutdown_timeout=0)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    return runner, RemoteSimulator(f"http://127.0.0.1:{port}", timeouts=Timeouts(connect=patience, total=patience))


async def answer_500(_request: web.Request) -> web.Response:
    return web.Response(status=500)


async def answer_nonsense(_request: web.Request) -> web.Response:
    return web.Response(text="<html>captive portal</html>")


async def answer_no_text(_request: web.Request) -> web.Response:
    return web.Response(body=b'{"kind": "\xff"}')


async def answer_without_end(_request: web.Request) -> web.Response:
    return web.Response(body=b'{"kind": ' * 9000)


async def answer_unknown_kind(_request: web.Request) -> web.Response:
    return web.json_response({"kind": "perhaps"})


async def answer_elsewhere(_request: web.Request) -> web.Response:
    raise web.HTTPTemporaryRedirect("http://127.0.0.1:1/")


async def answer_never(_request: web.Request) -> web.Response:
    await asyncio.sleep(1)
    return web.Response()


async def hang_up(request: web.Request) -> web.Response:
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


@pytest.mark.parametrize(
    "handler",
    [
        answer_500,
        answer_nonsense,
        answer_no_text,
        answer_without_end,
        answer_unknown_kind,
        answer_elsewhere,
        answer_never,
        hang_up,
    ],
)
async def test_whatever_is_not_a_clear_answer_is_unknown(handler: Handler) -> None:
    runner, acquirer = await serve(handler, patience=0.2 if handler is answer_never else 60.0)
    with pytest.raises(OutcomeUnknown):
        await acquirer.authorize(purchase())
    await acquirer.close()
    await runner.cleanup()


async def test_a_bank_that_is_not_there_is_unknown() -> None:
    acquirer = RemoteSimulator(f"http://127.0.0.1:{free_port()}")
    with pytest.raises(OutcomeUnknown, match="ClientConnectorError"):
        await acquirer.find("one")
    await acquirer.close()


async def test_a_lost_answer_is_asked_for_only_once() -> None:
    asked = []

    async def count_and_hang_up(request: web.Request) -> web.Response:
        asked.append(await request.read())
        return await hang_up(request)

    runner, acquirer = await serve(count_and_hang_up)
    with pytest.raises(OutcomeUnknown):
        await acquirer.authorize(purchase())
    assert len(asked) == 1
    await acquirer.close()
    await runner.cleanup()


async def test_an_unreadable_question_is_refused_without_repeating_it(counter: Any) -> None:
    async with (
        aiohttp.ClientSession() as client,
        client.post(f"{counter.base_url}/authorize", data=b'{"card": {"number": 4242424242424242}}') as answer,
    ):
        assert answer.status == 400
        assert "4242" not in await answer.text()


async def test_half_of_the_latency_passes_before_the_decision(record: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    decided_after_waiting: list[tuple[float, int]] = []

    async def sleep(seconds: float) -> None:
        decided_after_waiting.append((seconds, len(list(record.operations()))))

    # Only the acquirer's own: a web server of this loop that "slept" like this would never let go
    # of it.
    own = SimpleNamespace(sleep=sleep, get_running_loop=asyncio.get_running_loop, to_thread=asyncio.to_thread)
    monkeypatch.setattr("paydesk.adapters.acquirers.simulator.acquirer.asyncio", own)
    acquirer = SimulatedAcquirer(Bank(record), base_url="http://bank.test", latency=0.5)
    await acquirer.authorize(purchase())
    assert decided_after_waiting == [(0.25, 0), (0.25, 1)]
    await acquirer.close()


async def test_the_bank_runs_as_a_process_of_its_own_and_survives_being_killed(tmp_path: Path) -> None:
    port, path = free_port(), tmp_path / "bank.sqlite"
    command = (sys.executable, "-m", "paydesk.adapters.acquirers.simulator", "--port", str(port), "--record", str(path))
    acquirer = RemoteSimulator(f"http://127.0.0.1:{port}")
    first, second = [await _ask_once_open(await asyncio.create_subprocess_exec(*command), acquirer) for _ in range(2)]
    assert isinstance(first, Approved)
    assert second == first
    assert len(list(Record(path).operations())) == 1
    await acquirer.close()


async def _ask_once_open(bank: asyncio.subprocess.Process, acquirer: RemoteSimulator) -> object:
    """Put the same purchase to a bank until it answers, then kill it."""
    try:
        while True:
            assert bank.returncode is None, "the bank ended by itself"
            try:
                return await acquirer.authorize(purchase())
            except OutcomeUnknown:
                await asyncio.sleep(0.05)
    finally:
        bank.kill()
        await bank.wait()


async def test_a_refusal_comes_with_its_reason(counter: Any) -> None:
    with pytest.raises(AcquirerRefused, match="there is no payment of this reference to refund"):
        await counter.acquirer.refund("key", "payment_unknown", Decimal(1), "USD")
