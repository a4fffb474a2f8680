"""`/buy/{token}`: a payment link, where a customer chooses before they come to the checkout."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from paydesk.core.errors import Conflict, Malformed, NotFound, TooMany
from paydesk.domain.merchants.customer_links import LinkTo, open_link
from paydesk.domain.payments.receiving import read_form
from paydesk.domain.selling.buying import SoldOut, buy, read_choice
from paydesk.domain.selling.payment_links import PaymentLink, find_payment_link
from paydesk.web.checkout import link_pages, pages
from paydesk.web.checkout.services import CheckoutServices
from paydesk.web.minute_budgets import MinuteBudget
from paydesk.web.texts import Texts
from paydesk.web.visits import base_path, client_address, in_sandbox, read_form_body
from paydesk_client.signature import Value

LARGEST_BODY = 4 * 1024
_FIELDS = ("chosen", "press", "quantity")
"""What can be wrong of what a page posts; all else is that too many of it are too expensive."""

_presses = MinuteBudget(everybody=3_000, each=60)
"""Each makes a checkout, and nobody has to sign anything for it."""


async def show(request: Request) -> Response:
    """What the link offers; `?period=1y` shows packages as they are paid by the year."""
    return _page(request, await _find(request), period=request.query_params.get("period", ""))


async def submit(request: Request) -> Response:
    """Lead to the checkout of what was chosen; its button may be pressed twice. Moves no money."""
    link, services = await _find(request), CheckoutServices.of(request)
    address, now = client_address(request.scope, services.trusted_proxies), services.now()
    form = read_form(await read_form_body(request, LARGEST_BODY))
    if not link.for_sale:
        return _page(request, link)
    if not _presses.take(address, now=now):
        raise TooMany("too many orders from this address; wait a minute", retry_after=60 - now.second)
    chosen = _text(form, "rhythm" if link.offer.plans is None else "version")
    try:
        choice = read_choice(link, chosen, _text(form, "quantity"), _text(form, "press"))
        checkout = await buy(services.desk, link, choice, real_now=now)
    except SoldOut:
        return _page(request, await _find(request))
    except Malformed as error:
        wrong = error.fields[0] if error.fields and error.fields[0] in _FIELDS else "quantity"
        return _page(request, link, chosen=chosen, wrong=wrong)
    except Conflict:
        return link_pages.closed_page(_view(request, link), _texts(request))
    path = f"{base_path(request)}/checkout/{checkout.token(services.desk.vault)}"
    return RedirectResponse(path, 303, headers={"Cache-Control": "no-store"})


async def _find(request: Request) -> PaymentLink:
    """The link that is opened; the sandbox base only knows those of test sides.

    Raises: NotFound.
    """
    services = CheckoutServices.of(request)
    opened = open_link(services.desk.vault, LinkTo.SALE, str(request.path_params.get("token")))
    link = await find_payment_link(services.desk.database, opened)
    if link.shop.live and in_sandbox(request):
        raise NotFound("this link is incomplete or wrong")
    return link


def _page(request: Request, link: PaymentLink, period: str = "", chosen: str = "", wrong: str = "") -> Response:
    view, texts = _view(request, link), _texts(request)
    if not link.for_sale:
        return link_pages.closed_page(view, texts)
    if link.left == 0:
        return link_pages.sold_out_page(view, texts)
    return link_pages.buy_page(view, texts, period=period, chosen=chosen, wrong=wrong)


def _view(request: Request, link: PaymentLink) -> link_pages.LinkView:
    return link_pages.LinkView(link, f"{base_path(request)}/buy/{request.path_params.get('token')}")


def _texts(request: Request) -> Texts:
    return pages.texts_for(request.headers.get("accept-language", ""))


def _text(form: dict[str, Value], name: str) -> str:
    value = form.get(name, "")
    return value if isinstance(value, str) else "?"


routes = [
    Route("/buy/{token}", show, methods=["GET"]),
    Route("/buy/{token}", submit, methods=["POST"]),
]
