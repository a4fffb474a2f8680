"""The shop's pingback receiver (interface.md §4.7)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from paydesk.web.demo.memory import Records
from paydesk.web.demo.orders import ReceivedPingback
from paydesk_client import Gateway, InvalidPingback

LARGEST_BODY: Final = 64 * 1024
_REFUSED_BODY_KEPT: Final = 2000
_HEADER_KEPT: Final = 200
MASK: Final = "••••••••"


@dataclass(frozen=True, slots=True)
class Receiver:
    """Validates what comes to the pingback URL, has it recorded,
    and answers as interface.md §4.5 says.
    """

    gateway: Gateway
    records: Records
    clock: Callable[[], datetime]

    async def pingback(self, request: Request) -> Response:
        """Answer `ok` to a genuine pingback once it is on the disk, `NOK` to anything else."""
        body = await _body(request)
        try:
            if body is None:
                raise InvalidPingback(f"the body is larger than {LARGEST_BODY // 1024} KiB")
            payload = self.gateway.pingback().parse(body, request.headers)
        except InvalidPingback as refusal:
            kept = (body or b"")[:_REFUSED_BODY_KEPT]
            await self.records.refuse(self._received(request, kept, verdict=f"Refused: {refusal}."))
            return PlainTextResponse("NOK", 413 if body is None else 400)
        await self.records.accept(self._received(request, body, genuine=True), payload)
        return PlainTextResponse("ok")

    def _received(self, request: Request, body: bytes, *, genuine: bool = False, verdict: str = "") -> ReceivedPingback:
        prefix = self.gateway.header_prefix
        return ReceivedPingback(
            received_at=self.clock(),
            version=request.headers.get(f"{prefix}-Signature-Version", "")[:20] or "v1",
            headers=_kept_headers(request.headers, prefix),
            body=body.decode("utf-8", "replace"),
            genuine=genuine,
            verdict=verdict,
        )


async def _body(request: Request) -> bytes | None:
    """The raw body, or None if it is too large; no more than that is ever in memory."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > LARGEST_BODY:
            return None
    return bytes(body)


def _kept_headers(headers: Headers, prefix: str) -> tuple[tuple[str, str], ...]:
    """The headers that matter here; a v1 pingback's `X-ApiKey` is the shop's private key,
    so it is masked at once.
    """
    wanted = ("Content-Type", "User-Agent", "X-ApiKey", f"{prefix}-Signature-Version", f"{prefix}-Signature")
    found = ((name, headers[name][:_HEADER_KEPT]) for name in wanted if name in headers)
    return tuple((name, MASK if name == "X-ApiKey" else value) for name, value in found)
