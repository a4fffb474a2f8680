"""`POST /api/v1/test_clock`: let time pass on the merchant's test side."""

from __future__ import annotations

from functools import partial

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from paydesk.core.errors import Conflict, Malformed
from paydesk.core.periods import Period, parse_period
from paydesk.domain.merchants.callers import Caller
from paydesk.domain.merchants.heavy_work import Asker, Work, take_share
from paydesk.domain.test_clock.advancing import MOST_SECONDS, advance
from paydesk.web.api.answers import answer, described
from paydesk.web.api.bodies import read_strictly
from paydesk.web.api.idempotency import ByIdempotencyKey
from paydesk.web.api.services import ApiServices, ByPrivateKey, Services
from paydesk.web.api.shapes import ClockAdvanced
from paydesk.web.api.shaping import summary_shape
from paydesk.web.visits import client_address

PATIENCE = 20.0
"""Seconds that a call waits, all in all, for outcomes that are unknown:
shorter than callers wait for an answer."""

_BODY = {
    "type": "object",
    "required": ["advance"],
    "additionalProperties": False,
    "properties": {
        "advance": {
            "type": "string",
            "pattern": "^[0-9]{1,4}[dwmy]$",
            "examples": ["31d"],
            "description": "How far: a number and `d`, `w`, `m` or `y`.",
        }
    },
}

router = APIRouter(tags=["Test clock"])


@router.post(
    "/api/v1/test_clock",
    summary="Advance the test clock",
    operation_id="advance_test_clock",
    responses=described(ClockAdvanced, 409, 413),
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {"schema": _BODY},
                "application/x-www-form-urlencoded": {"schema": _BODY},
            },
        }
    },
)
async def post_test_clock(
    request: Request, caller: ByPrivateKey, services: Services, once: ByIdempotencyKey
) -> Response:
    """Move the time of your test data forward; whatever falls due on the way happens, in order,
    each at its own time.

    Renewals, retries, stops, expiries and pingbacks, as the workers would do them. Returns when all
    is done, with what happened. 429 if there is more to do than one call may take, or your account
    is moved to another server meanwhile: the message says how far the clock has come, so advance it
    by the rest. 409 on live data, which has no clock, and while somebody else moves this clock.
    """
    return await once.answer(caller.shop, partial(_advance, request, caller, services))


async def _advance(request: Request, caller: Caller, services: ApiServices, _key: str | None) -> Response:
    by = _period(await read_strictly(request, "advance") or {})
    if caller.shop.live:
        raise Conflict("live data has no test clock; call it below the sandbox base")
    asker = Asker(client_address(request.scope, services.trusted_proxies), caller.shop)
    share = await take_share(services.desk.database, Work.TEST_CLOCK, asker)
    async with share.held(), services.sender() as sender:
        summary = await advance(
            services.desk, sender, caller.shop.merchant_id, by, patience=PATIENCE, most_seconds=MOST_SECONDS
        )
    return answer(ClockAdvanced(True, summary_shape(summary)))


def _period(fields: dict[str, object]) -> Period:
    """How far to go.

    Raises: Malformed, naming what is missing, unknown or malformed.
    """
    text = fields.get("advance")
    if not isinstance(text, str):
        raise Malformed('advance is missing; give a period like {"advance": "31d"}', "advance")
    return parse_period(text, "advance")
