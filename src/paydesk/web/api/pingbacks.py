"""`/api/v1/pingbacks`: what the merchant was told, how its server answered,
and telling it again.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Path, Query
from starlette.requests import Request
from starlette.responses import Response

from paydesk.core.errors import Malformed
from paydesk.core.paging import Place
from paydesk.domain.business.pingback_acting import resend_by_key
from paydesk.domain.pingbacks.for_api import (
    PingbackFilter,
    SeenPingback,
    find_pingback,
    find_with_attempts,
    list_pingbacks,
)
from paydesk.domain.pingbacks.states import PingbackState
from paydesk.web.api.answers import answer, described
from paydesk.web.api.bodies import read_fields
from paydesk.web.api.list_parameters import PingbackParameters, known_id
from paydesk.web.api.lists import ApiList
from paydesk.web.api.services import ByPrivateKey, Services
from paydesk.web.api.shapes import OnePingback, PingbackList
from paydesk.web.api.shaping import pingback_shape, pingback_with_attempts
from paydesk.web.visits import client_address

router = APIRouter(tags=["Pingbacks"])
_PINGBACKS: ApiList[SeenPingback] = ApiList("pingbacks", PingbackList, lambda one: Place(one.created_at, one.id))

_RESEND = {
    "type": "object",
    "properties": {"url": {"type": "string", "description": "Where to send it instead: an http or https URL."}},
}

_Id = Annotated[str, Path(description="Its `id`.")]


@_PINGBACKS.route(router)
async def show_pingbacks(
    caller: ByPrivateKey, services: Services, wanted: Annotated[PingbackParameters, Query()]
) -> Response:
    """Pingbacks, newest first. Order reference and e-mail are those of the payment
    that they are about.
    """
    state = PingbackState(wanted.status) if wanted.status else None
    narrowed = PingbackFilter(state, wanted.merchant_order_id, wanted.email)
    read = partial(list_pingbacks, services.desk.database, caller.shop, narrowed)
    return await _PINGBACKS.answer(caller.shop, wanted, read, pingback_shape)


@router.get(
    "/api/v1/pingbacks/{pingback_id}",
    summary="Show a pingback",
    operation_id="show_pingback",
    responses=described(OnePingback, 404),
)
async def show(caller: ByPrivateKey, services: Services, pingback_id: _Id) -> Response:
    """One pingback with all requests to your server, first to last, and its answers."""
    found = await find_with_attempts(services.desk.database, caller.shop, known_id(pingback_id, "pingback"))
    return answer(OnePingback(True, pingback_with_attempts(*found)))


@router.post(
    "/api/v1/pingbacks/{pingback_id}/resend",
    summary="Send a pingback again",
    operation_id="resend_pingback",
    responses=described(OnePingback, 404, 409, 413),
    openapi_extra={
        "requestBody": {
            "content": {
                "application/json": {"schema": _RESEND},
                "application/x-www-form-urlencoded": {"schema": _RESEND},
            }
        }
    },
)
async def post_resend(request: Request, caller: ByPrivateKey, services: Services, pingback_id: _Id) -> Response:
    """Have a pingback sent once more, at once, whatever came of it before;
    it is stamped and signed anew.

    It goes where a new one would go: to the URL of its form, else to the account's of now; or to
    the `url` of the body, which may be empty, `[]` or `{}`. To a URL that is none of the account's
    own only a key that reads sends, and nothing of version 1, which carries the private key. 409 if
    there is no URL to send it to, or a test pingback of a live account would go anywhere but to its
    test URL.
    """
    known, database = known_id(pingback_id, "pingback"), services.desk.database
    url = (await read_fields(request)).get("url", "")
    if not isinstance(url, str):
        raise Malformed("url is no text; send an absolute http or https URL, or leave it out", "url")
    await find_pingback(database, caller.shop, known)
    await resend_by_key(
        database,
        caller.shop,
        caller.scopes,
        known,
        url=url,
        client_address=client_address(request.scope, services.trusted_proxies),
        shop_now=caller.now,
        now=services.now(),
    )
    return answer(OnePingback(True, pingback_with_attempts(*await find_with_attempts(database, caller.shop, known))))
