"""Small pictures of what is sold, from our own origin: the page's policy allows nothing else, and
no shop's server learns who looks at a checkout.
"""

from __future__ import annotations

import re

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from paydesk.core.errors import NotFound
from paydesk.core.paging import LARGEST_ID
from paydesk.core.shrinking import MEDIA_TYPE
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.fetching_pictures import find_picture
from paydesk.web.checkout.services import CheckoutServices
from paydesk.web.ids import id_in_path

_NAME = re.compile(r"[0-9a-f]{64}")
_HEADERS = {
    "Cache-Control": "public, max-age=31536000, immutable",
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; sandbox",
}


async def show_picture(request: Request) -> Response:
    """A picture, drawn by us; a browser that opens it alone runs nothing."""
    merchant_id, side, name = map(request.path_params.get, ("merchant_id", "side", "name"))
    if side not in ("live", "test") or not _NAME.fullmatch(str(name)):
        return PlainTextResponse("Not Found", 404)
    shop = Shop(min(int(merchant_id or 0), LARGEST_ID), live=side == "live")
    try:
        picture = await find_picture(CheckoutServices.of(request).desk.database, shop, str(name))
    except NotFound:
        return PlainTextResponse("Not Found", 404)
    return Response(picture.content, media_type=MEDIA_TYPE, headers=_HEADERS)


routes = [Route(f"/picture/{{side}}/{id_in_path('merchant_id')}/{{name}}", show_picture, methods=["GET"])]
