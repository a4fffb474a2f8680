"""What Mollie's errors mean: only a clear no is one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web
from tests.adapters.acquirers.mollie.conftest import Till

from paydesk.adapters.acquirers.interface import AcquirerRefused, OutcomeUnknown
from paydesk.adapters.acquirers.mollie import MollieAcquirer
from paydesk.core.errors import SetupError


class Grumpy:
    """Answers everything the same way, and counts."""

    def __init__(self) -> None:
        self.answer: dict[str, Any] = {"status": 200}
        self.asked: list[web.BaseRequest] = []
        self.awake = asyncio.Event()
        self.awake.set()

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        self.asked.append(request)
        await self.awake.wait()
        return web.Response(content_type="application/hal+json", **self.answer)


@pytest.fixture
async def grumpy(till: Till) -> AsyncIterator[tuple[Grumpy, MollieAcquirer]]:
    grumpy = Grumpy()
    runner = web.ServerRunner(web.Server(grumpy), shutdown_timeout=0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    address = f"http://127.0.0.1:{runner.addresses[0][1]}"
    acquirer = MollieAcquirer("test_x", api_base=address, timeout=30, now=till.clock)
    yield grumpy, acquirer
    await acquirer.close()
    grumpy.awake.set()
    await runner.cleanup()


def problem(status: int) -> dict[str, Any]:
    return {"status": status, "text": '{"status": 1, "title": "No", "detail": "A detail of Mollie\'s"}'}


@pytest.mark.parametrize("status", [400, 405, 415, 422])
async def test_a_clear_no_is_refused_in_mollies_words(
    grumpy: tuple[Grumpy, MollieAcquirer], till: Till, status: int
) -> None:
    grumpy[0].answer = problem(status)
    with pytest.raises(AcquirerRefused, match="A detail of Mollie's"):
        await grumpy[1].open_page(till.wanted())


@pytest.mark.parametrize("status", [401, 403])
async def test_a_key_that_is_not_accepted_is_named(
    grumpy: tuple[Grumpy, MollieAcquirer], till: Till, status: int
) -> None:
    grumpy[0].answer = problem(status)
    with pytest.raises(AcquirerRefused, match="PAYDESK_MOLLIE_KEY"):
        await grumpy[1].open_page(till.wanted())


@pytest.mark.parametrize("status", [302, 409, 418, 429, 500, 502, 503])
async def test_anything_else_is_unknown_and_asked_once(
    grumpy: tuple[Grumpy, MollieAcquirer], till: Till, status: int
) -> None:
    grumpy[0].answer = problem(status)
    with pytest.raises(OutcomeUnknown):
        await grumpy[1].open_page(till.wanted())
    assert len(grumpy[0].asked) == 1, "the library's own retries are off"


@pytest.mark.parametrize("body", [b"", b"no JSON", b"{}", b'{"id": 7}', b'{"id": "\xff"}', b'{"id": ' * 9000])
async def test_an_answer_that_cant_be_read_is_unknown(
    grumpy: tuple[Grumpy, MollieAcquirer], till: Till, body: bytes
) -> None:
    grumpy[0].answer = {"status": 201, "body": body}
    with pytest.raises(OutcomeUnknown, match="can't be read"):
        await grumpy[1].open_page(till.wanted())


async def test_a_field_that_the_library_does_not_know_yet_stops_nothing(
    grumpy: tuple[Grumpy, MollieAcquirer], till: Till
) -> None:
    page = await till.acquirer.open_page(till.wanted())
    text = (
        f'{{"id": "{page.reference}", "status": "paid", "amount": {{"currency": "EUR", "value": "10.00"}}, '
        '"createdAt": "2026-05-04T12:00:00+00:00", "mode": "sideways", "method": ["new"][0]}'
    ).replace('["new"][0]', '"new"')
    grumpy[0].answer = {"status": 200, "text": text}
    assert (await grumpy[1].find_page("", page.reference)).payment == page.reference


async def test_a_slow_answer_is_unknown(grumpy: tuple[Grumpy, MollieAcquirer], till: Till) -> None:
    grumpy[0].awake.clear()
    hasty = MollieAcquirer("test_x", api_base=grumpy[1].challenge_origins[-1], timeout=0.2, now=till.clock)
    with pytest.raises(OutcomeUnknown, match="no answer"):
        await hasty.open_page(till.wanted())
    await hasty.close()


async def test_nobody_there_is_unknown(till: Till) -> None:
    nobody = MollieAcquirer("test_x", api_base="http://127.0.0.1:9", timeout=1, now=till.clock)
    with pytest.raises(OutcomeUnknown, match="ConnectError"):
        await nobody.open_page(till.wanted())
    await nobody.close()


async def test_settings_of_the_librarys_own_stop_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLIENT_TESTMODE", "true")
    with pytest.raises(SetupError, match="CLIENT_TESTMODE"):
        MollieAcquirer("live_x")
