"""The header `Idempotency-Key`: a call that was sent twice is made once, and answered alike."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Header
from starlette.requests import Request
from starlette.responses import Response

from paydesk.core.errors import Malformed, PaydeskError
from paydesk.domain.merchants.idempotent_calls import KEPT, ApiCall, KeptAnswer, begin_call
from paydesk.domain.merchants.shop import Shop
from paydesk.web.api.bodies import media_type, raw_body
from paydesk.web.api.services import ApiServices, Services
from paydesk.web.json_errors import error_json

NAME = "Idempotency-Key"
REPLAYED = "Idempotent-Replayed"
"""The header of an answer that was given before."""

Work = Callable[[str | None], Awaitable[Response]]
"""Makes a call and answers it; it gets the caller's key, if there is one."""


class Passing(Response):
    """A success that only speaks of the moment: it is not kept, and who repeats the call gets
    another.
    """


@dataclass(frozen=True, slots=True)
class Once:
    """Makes the call of a request once for its Idempotency-Key;
    without the header it is simply made.
    """

    request: Request
    services: ApiServices

    async def answer(self, shop: Shop, work: Work) -> Response:
        """Do the work, or give the answer that it got when the shop sent this key
        with this call before.

        Raises: Malformed, Conflict about the key; PaydeskError of the work only if there is no key.
        """
        keys = self.request.headers.getlist(NAME)
        if not keys:
            return await work(None)
        if len(keys) > 1:
            raise Malformed(f"the header {NAME} is given more than once", NAME)
        digest, now = await self._digest(), self.services.now()
        begun = await begin_call(self.services.desk.database, shop, keys[0], digest, real_now=now)
        if isinstance(begun, KeptAnswer):
            headers = {"Cache-Control": "no-store", REPLAYED: "true"}
            return Response(begun.body, begun.status, headers, "application/json")
        return await _first_answer(begun, work)

    async def _digest(self) -> bytes:
        """Tells calls apart by method, path, media type and body."""
        scope, digest = self.request.scope, hashlib.sha256()
        for part in (
            scope["method"].encode(),
            scope["path"].encode(),
            media_type(self.request).encode(),
            await raw_body(self.request),
        ):
            digest.update(len(part).to_bytes(8, "big") + part)
        return digest.digest()


async def _first_answer(call: ApiCall, work: Work) -> Response:
    """Do the work and keep its answer, a refusal included;
    not one that only speaks of the moment.
    """
    kept = False
    try:
        async with call.held():
            try:
                response = await work(call.key)
                passing = isinstance(response, Passing)
            except PaydeskError as error:
                response = error_json(error)
                passing = error.passing
        if not passing and response.status_code < 500:
            await call.keep(KeptAnswer(response.status_code, bytes(response.body).decode()))
            kept = True
    finally:
        if not kept:
            await call.give_up()
    return response


async def _once(
    request: Request,
    services: Services,
    _key: Annotated[
        str | None,
        Header(
            alias=NAME,
            description="A key of your own for this very request, such as a UUID. Sent again within "
            f"{KEPT.days} days with the same body, it is answered alike and nothing is done twice; with another body "
            "it is a 409.",
        ),
    ] = None,
) -> Once:
    return Once(request, services)


ByIdempotencyKey = Annotated[Once, Depends(_once)]
"""`return await once.answer(caller.shop, lambda key: …)` in a route
that takes `once: ByIdempotencyKey`."""
