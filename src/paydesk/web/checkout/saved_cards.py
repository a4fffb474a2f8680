"""Customers who come back: proving an address by a code, paying with a saved card, and forgetting
either.

The way is offered to everybody alike, and a code goes to whatever address is typed: no page here
tells whether a shop knows somebody.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from paydesk.core.email_addresses import parse_email
from paydesk.core.errors import Conflict, Gone, Malformed, NotFound, Unavailable
from paydesk.domain.payments.checkouts import Standing
from paydesk.domain.payments.receiving import read_form
from paydesk.domain.payments.saved_cards import pay_with_saved
from paydesk.domain.shoppers.counting import TooManyCodes
from paydesk.domain.shoppers.for_customer import link_of
from paydesk.domain.shoppers.instruments import remove
from paydesk.domain.shoppers.proving import ask_for_code, prove
from paydesk.domain.shoppers.sessions import forget_browser
from paydesk.web.card_fields import text_of
from paydesk.web.checkout import pages
from paydesk.web.checkout.known import cookies_of
from paydesk.web.checkout.routes import LARGEST_BODY, follow
from paydesk.web.checkout.visit import CheckoutVisit, find_visit
from paydesk.web.same_site import require_own_page
from paydesk.web.visits import base_path, client_address, read_form_body
from paydesk_client.signature import Value


async def _offered(request: Request) -> CheckoutVisit | None:
    """The visit, if saved cards may pay its checkout; else None."""
    visit = await find_visit(request)
    payable = visit.checkout.standing in (Standing.OPEN, Standing.CHALLENGED) and not visit.waits
    return visit if payable and visit.knows_customers else None


async def _posted(request: Request) -> tuple[CheckoutVisit, dict[str, Value]] | None:
    """The same for a form of one of our own pages, with its fields. Raises: Forbidden."""
    visit = await _offered(request)
    if visit is None:
        return None
    require_own_page(request, visit.services.public_url(request, ""))
    return visit, read_form(await read_form_body(request, LARGEST_BODY))


def _to_checkout(request: Request) -> Response:
    """Back to the checkout, as it stands."""
    path = request.url.path.rpartition("/")[0]
    return Response(status_code=303, headers={"Location": path, "Cache-Control": "no-store"})


async def show_address(request: Request) -> Response:
    """The form that asks for an address: the same for everybody."""
    visit = await _offered(request)
    if visit is None:
        return _to_checkout(request)
    return pages.address_page(visit.view(), visit.texts, email=visit.checkout.entered.email)


async def take_address(request: Request) -> Response:
    """Send a code to the address, whoever it is, and ask for it."""
    posted = await _posted(request)
    if posted is None:
        return _to_checkout(request)
    visit, form = posted
    typed = text_of(form, "email")
    try:
        email = parse_email(typed)
    except Malformed:
        wrong = "invalid" if typed else "empty"
        return pages.address_page(visit.view(), visit.texts, email=typed, wrong=wrong, status=400)
    services, shop = visit.services, visit.checkout.shop
    caller = client_address(request.scope, services.trusted_proxies)
    try:
        asked = await ask_for_code(
            services.desk.database,
            services.desk.vault,
            shop,
            email,
            mail_to=email if shop.live else visit.checkout.test_mail,
            client=caller,
            language=visit.texts.mail_language,
            now=services.now(),
        )
    except TooManyCodes:
        return pages.address_page(visit.view(), visit.texts, email=typed, notice="too_many_codes", status=429)
    response = visit.go(f"{visit.path}/code")
    cookies_of(request, services, shop).ask(response, asked.browser)
    return response


async def show_code(request: Request) -> Response:
    """The form that asks for the code: the same whether one was sent or not."""
    visit = await _offered(request)
    if visit is None:
        return _to_checkout(request)
    return pages.code_page(visit.view(), visit.texts)


async def take_code(request: Request) -> Response:
    """Judge a code; the browser that asked for it is known from then on, if it is right."""
    posted = await _posted(request)
    if posted is None:
        return _to_checkout(request)
    visit, form = posted
    services, shop = visit.services, visit.checkout.shop
    cookies = cookies_of(request, services, shop)
    code = "".join(letter for letter in text_of(form, "code") if letter.isdecimal())
    typed = "".join(str(int(digit)) for digit in code)
    session = await prove(
        services.desk.database,
        services.desk.vault,
        shop,
        cookies.asked(request),
        typed,
        remember=text_of(form, "remember") == "1",
        now=services.now(),
    )
    if session is None:
        return pages.code_page(visit.view(), visit.texts, wrong=True, status=400)
    response = visit.go(visit.path)
    cookies.forget(response, "asked")
    cookies.know(response, session)
    return response


async def pay_at_once(request: Request) -> Response:
    """Pay with a saved card: `POST /checkout/{token}/pay-saved`. Moves money."""
    visit = await find_visit(request)
    if visit.checkout.standing is Standing.PAID:
        return await visit.thank()
    posted = await _posted(request)
    if posted is None:
        return _to_checkout(request)
    visit, form = posted
    if visit.known is None:
        return visit.go(f"{visit.path}/known")
    services = visit.services
    try:
        result = await pay_with_saved(
            services.desk,
            visit.checkout,
            visit.known.shopper,
            _number(form),
            client_address=client_address(request.scope, services.trusted_proxies),
            language=visit.texts.mail_language,
            return_url=services.public_url(request, f"/checkout/{visit.token}/result"),
            now=visit.checkout.now,
        )
    except Conflict:
        return visit.go(f"{visit.path}/result")
    except (Gone, NotFound, Unavailable):
        return visit.go(visit.path)
    return await follow(visit, result)


async def remove_card(request: Request) -> Response:
    """Forget one of the shopper's own cards, and erase its number."""
    posted = await _posted(request)
    if posted is None:
        return _to_checkout(request)
    visit, form = posted
    if visit.known is not None:
        shopper, database = visit.known.shopper, visit.services.desk.database
        await remove(database, shopper.shop, shopper.id, _number(form), now=visit.checkout.now)
    return visit.go(visit.path)


async def show_cards(request: Request) -> Response:
    """Lead to the shopper's own page, whose link only who is known here gets."""
    visit = await find_visit(request)
    if visit.known is None:
        return _to_checkout(request)
    token = link_of(visit.known.shopper).token(visit.services.desk.vault)
    return visit.go(f"{base_path(request)}/portal/cards/{token}")


async def leave(request: Request) -> Response:
    """Nobody is known in this browser any more, at this shop."""
    posted = await _posted(request)
    if posted is None:
        return _to_checkout(request)
    visit, _ = posted
    if visit.known is not None:
        await forget_browser(visit.services.desk.database, visit.known.shopper)
    response = visit.go(visit.path)
    cookies_of(request, visit.services, visit.checkout.shop).forget(response, "shopper", "asked")
    return response


def _number(form: dict[str, Value]) -> int:
    """The card that was chosen; 0, which none has, for what is no number."""
    text = text_of(form, "card")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 18 else 0


async def refuse_get(request: Request) -> Response:
    """A browser that reloads the address of an act is sent back to the page."""
    await find_visit(request)
    return _to_checkout(request)


_ACTS = {"pay-saved": pay_at_once, "remove-card": remove_card, "leave": leave}

routes = [
    Route("/checkout/{token}/known", show_address, methods=["GET"]),
    Route("/checkout/{token}/known", take_address, methods=["POST"]),
    Route("/checkout/{token}/cards", show_cards, methods=["GET"]),
    Route("/checkout/{token}/code", show_code, methods=["GET"]),
    Route("/checkout/{token}/code", take_code, methods=["POST"]),
    *(Route(f"/checkout/{{token}}/{name}", act, methods=["POST"]) for name, act in _ACTS.items()),
    *(Route(f"/checkout/{{token}}/{name}", refuse_get, methods=["GET"]) for name in _ACTS),
]
