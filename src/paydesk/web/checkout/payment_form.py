"""`POST /payment/form`: a shop sends its customer with a signed form (interface.md §2.1)."""

from __future__ import annotations

import segno
import structlog
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from paydesk.core.errors import PaydeskError, Unavailable
from paydesk.domain.merchants.refused_forms import WrongHash
from paydesk.domain.payments import metrics
from paydesk.domain.payments.receiving import LARGEST_BODY, receive_form
from paydesk.web.checkout import pages
from paydesk.web.checkout.coupon_view import COUPON_OVER
from paydesk.web.checkout.services import CheckoutServices
from paydesk.web.json_errors import error_json
from paydesk.web.visits import base_path, client_address, in_sandbox, read_form_body, wants_json

log = structlog.get_logger()


async def post_form(request: Request) -> Response:
    """Open a checkout for a signed form and send the customer there, or say what is wrong
    with the form.
    """
    try:
        response = await _receive(request)
    except PaydeskError as error:
        log.debug("a form was refused", status=error.status, why=error.message)
        response = _refusal(request, error)
    metrics.FORMS.labels(str(response.status_code)).inc()
    return response


async def _receive(request: Request) -> Response:
    services = CheckoutServices.of(request)
    received = await receive_form(
        services.reception,
        await read_form_body(request, LARGEST_BODY),
        client_address=client_address(request.scope, services.trusted_proxies),
        sandbox=in_sandbox(request),
        now=services.now(),
    )
    path = f"/checkout/{received.token}" + (f"?{COUPON_OVER}" if received.coupon_over else "")
    if received.request.wants_qr_code and wants_json(request):
        return _qr_code(services.public_url(request, path))
    return RedirectResponse(base_path(request) + path, 303, headers={"Cache-Control": "no-store"})


def _qr_code(url: str) -> Response:
    """The checkout's address for a phone: as text and as a picture (interface.md §2.7)."""
    picture = segno.make(url, error="m").svg_data_uri(scale=6, border=4)
    body = {"success": True, "data": {"checkout_url": url, "qr_code": picture}}
    return JSONResponse(body, headers={"Cache-Control": "no-store"})


def _refusal(request: Request, error: PaydeskError) -> Response:
    if wants_json(request):
        return error_json(error)
    texts = pages.texts_for(request.headers.get("accept-language", ""))
    if isinstance(error, Unavailable):
        # Nothing is wrong with the form: the shop's programmer has nothing to look for.
        return pages.error_page(texts, status=error.status, retry_after=error.retry_after)
    # Only what was looked into has a suspect: that is what tests send.
    wrong = error if isinstance(error, WrongHash) and error.suspect else None
    return pages.form_error_page(
        texts,
        status=error.status,
        message=error.message,
        fields=getattr(error, "fields", ()),
        hashed=wrong.hashed if wrong else None,
        suspect=wrong.suspect if wrong else None,
        retry_after=error.retry_after,
    )


routes = [Route("/payment/form", post_form, methods=["POST"])]
