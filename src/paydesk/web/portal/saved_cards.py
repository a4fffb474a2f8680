"""The page of a customer who has saved cards at a shop: it shows and removes, nobody pays by it.

No cookie is needed: the link itself is the key.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from paydesk.core.errors import NotFound
from paydesk.domain.merchants.customer_links import LinkTo, open_link
from paydesk.domain.payments.receiving import read_form
from paydesk.domain.shoppers.for_customer import SavedAtShop, find_saved
from paydesk.domain.shoppers.instruments import remove, take_back
from paydesk.domain.shoppers.sessions import forget_browsers
from paydesk.web.card_fields import text_of
from paydesk.web.portal import pages
from paydesk.web.portal.services import PortalServices
from paydesk.web.texts import Texts
from paydesk.web.visits import base_path, in_sandbox, read_form_body

LARGEST_BODY = 4 * 1024


@dataclass(frozen=True, slots=True)
class SavedCardsVisit:
    """One request to the page: what is saved, and the visitor's language."""

    request: Request
    services: PortalServices
    saved: SavedAtShop
    texts: Texts
    path: str

    async def chosen(self) -> int:
        """The card that was chosen; 0, which none has, for what is no number."""
        text = text_of(read_form(await read_form_body(self.request, LARGEST_BODY)), "card")
        return int(text) if text.isascii() and text.isdecimal() and len(text) < 18 else 0

    def back(self) -> Response:
        """The page, as it stands now."""
        return Response(status_code=303, headers={"Location": self.path, "Cache-Control": "no-store"})


Handler = Callable[[SavedCardsVisit], Awaitable[Response]]


def _route(path: str, handler: Handler, method: str) -> Route:
    async def answer(request: Request) -> Response:
        texts = pages.texts_for(request.headers.get("accept-language", ""))
        try:
            return await handler(await _visit(request, texts))
        except NotFound:
            return pages.not_found_page(texts)

    return Route(f"/portal/cards/{{token}}{path}", answer, methods=[method])


async def _visit(request: Request, texts: Texts) -> SavedCardsVisit:
    """Find what the link leads to; the sandbox base only knows test data.

    Raises: NotFound.
    """
    services, token = PortalServices.of(request), str(request.path_params.get("token"))
    link = open_link(services.desk.vault, LinkTo.SHOPPER, token)
    saved = await find_saved(services.desk.database, link, now=services.now())
    if saved.shop.live and in_sandbox(request):
        raise NotFound("this link is incomplete or wrong")
    return SavedCardsVisit(request, services, saved, texts, f"{base_path(request)}/portal/cards/{token}")


async def show(visit: SavedCardsVisit) -> Response:
    """The cards, with what was agreed to, and when."""
    return pages.saved_cards_page(visit.saved, visit.texts, visit.path)


async def remove_card(visit: SavedCardsVisit) -> Response:
    """Forget a card, and erase its number; a second time changes nothing."""
    database, saved = visit.services.desk.database, visit.saved
    await remove(database, saved.shop, saved.shopper_id, await visit.chosen(), now=saved.now)
    return visit.back()


async def take_consent_back(visit: SavedCardsVisit) -> Response:
    """The shop may not charge a card without its customer any more."""
    database, saved = visit.services.desk.database, visit.saved
    await take_back(database, saved.shop, saved.shopper_id, await visit.chosen(), now=saved.now)
    return visit.back()


async def forget(visit: SavedCardsVisit) -> Response:
    """The customer is known in no browser any more."""
    await forget_browsers(visit.services.desk.database, visit.saved.shop, visit.saved.shopper_id)
    return visit.back()


async def go_back(visit: SavedCardsVisit) -> Response:
    """A browser that reloads the address of an act is sent back to the page."""
    return visit.back()


_ACTS = {"/remove": remove_card, "/take-back": take_consent_back, "/forget": forget}

routes = [
    _route("", show, "GET"),
    *(_route(path, act, "POST") for path, act in _ACTS.items()),
    *(_route(path, go_back, "GET") for path in _ACTS),
]
