"""Who carries the notifications of a live acquirer to the service: some get lost, are late or come
twice, and others are made up.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import StrEnum

import aiohttp
from aiohttp import web
from tests.standins.stripe_checkout import signature

from paydesk.core.clock import utc_now

SECRET = "whsec_of_the_stage"
"""With which the stand-in for Stripe signs."""
ENORMOUS = 200 * 1024
OLD = timedelta(minutes=6)
"""Older than a signature may be."""


class Delivery(StrEnum):
    """What becomes of a notification on its way."""

    ARRIVES = "arrives"
    LOST = "is lost"
    LATE = "is late"
    TWICE = "comes twice at once"


@dataclass(frozen=True, slots=True)
class Letter:
    """A notification: where to, by path and query, and what is in it."""

    to: str
    headers: Mapping[str, str]
    body: bytes


@dataclass
class Carrier:
    """Carries letters to the service at an address, each as `decides` says; `late` are those that
    it still has, `carried` all that it has had, and `answered` counts what came of those that were
    handed over.
    """

    service: str
    decides: Callable[[Letter], Delivery] = lambda letter: Delivery.ARRIVES
    late: list[Letter] = field(default_factory=list)
    carried: list[Letter] = field(default_factory=list)
    answered: Counter[int] = field(default_factory=Counter)
    _handing: set[asyncio.Task[object]] = field(default_factory=set)

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[str]:
        """Take letters on loopback for the length of a block; gives the address."""
        app = web.Application(client_max_size=2 * ENORMOUS)
        app.router.add_post("/{path:.*}", self._take)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        try:
            yield f"http://127.0.0.1:{runner.addresses[0][1]}"
        finally:
            await asyncio.gather(*self._handing, return_exceptions=True)
            await runner.cleanup()

    async def hand_over(self, letter: Letter) -> int:
        """The service's answer to a letter, 0 if it gave none."""
        status = 0
        with suppress(aiohttp.ClientError, OSError, TimeoutError):
            async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=30)) as net:
                url = f"{self.service}{letter.to}"
                async with net.post(url, data=letter.body, headers=letter.headers) as answer:
                    status = answer.status
        self.answered[status] += 1
        return status

    async def deliver_late(self) -> None:
        """Hand over what was late."""
        late, self.late = self.late, []
        for letter in late:
            await self.hand_over(letter)

    async def _take(self, request: web.Request) -> web.Response:
        kept = ("Content-Type", "Stripe-Signature")
        headers = {name: request.headers[name] for name in kept if name in request.headers}
        letter = Letter(request.path_qs, headers, await request.read())
        self.carried.append(letter)
        match self.decides(letter):
            case Delivery.ARRIVES:
                self._hand_over_soon(letter)
            case Delivery.TWICE:
                self._hand_over_soon(letter)
                self._hand_over_soon(letter)
            case Delivery.LATE:
                self.late.append(letter)
        return web.Response(text="ok")

    def _hand_over_soon(self, letter: Letter) -> None:
        # Who tells waits for nothing, as a queue does.
        handing: asyncio.Task[object] = asyncio.create_task(self.hand_over(letter))
        self._handing.add(handing)
        handing.add_done_callback(self._handing.discard)


def forgeries(letter: Letter) -> dict[int, list[Letter]]:
    """Letters that somebody made up after one that they have seen, by the answers that they get."""
    huge = replace(letter, body=letter.body + b" " * ENORMOUS)
    elsewhere = replace(letter, to=letter.to.replace("/acquirers/", "/acquirers/not-"))
    if "Stripe-Signature" in letter.headers:
        signed = signature(letter.body, SECRET, at=utc_now() - OLD)
        unsigned = {name: value for name, value in letter.headers.items() if name != "Stripe-Signature"}
        refused = [
            replace(letter, body=letter.body.replace(b"paydesk_key", b"paydesk_kex")),
            replace(letter, headers=unsigned),
            replace(letter, headers={**letter.headers, "Stripe-Signature": signed}),
        ]
        return {400: refused, 413: [huge], 404: [elsewhere]}
    path, _, query = letter.to.partition("?")
    others = replace(letter, to=f"{path}?{query[:-1]}{'0' if query[-1] != '0' else '1'}")
    return {403: [others], 400: [replace(letter, to=path)], 413: [huge], 404: [elsewhere]}
