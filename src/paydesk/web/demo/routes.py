"""The sample shop's pages and routes as a merchant sees them (interface.md §1.1, §1.2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Final, cast
from urllib.parse import parse_qs, quote

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Mount, Route

from paydesk.core.clock import utc_now
from paydesk.core.urls import source_of
from paydesk.web.assets import static_app
from paydesk.web.demo.articles import ARTICLES, COUPON_CODE, COUPON_PERCENT, COUPON_PERIODS, Plan, offers_of
from paydesk.web.demo.counter import CARRIERS, EXAMPLE_TRACKING_ID, Counter, refund_key
from paydesk.web.demo.explaining import explain, readable
from paydesk.web.demo.managing import Subscribed, Unreachable, find_subscription
from paydesk.web.demo.membership import DEEDS, PLANS, Membership, fresh_key
from paydesk.web.demo.memory import Records
from paydesk.web.demo.orders import Order, Sheet, new_order
from paydesk.web.demo.pingback_receiver import Receiver
from paydesk.web.rendering import DoorTemplates, secured
from paydesk.web.texts import Catalogues
from paydesk_client import Gateway
from paydesk_client.signature import Version

_HERE: Final = Path(__file__).parent
_PAGES: Final = DoorTemplates(_HERE / "templates")
# English only, but amounts are written as the visitor's browser asks for.
_LANGUAGES: Final = Catalogues(_HERE / "locale", "demo")

MOST_LOOKS: Final = 20
"""How often the thank-you page loads itself again without JavaScript while it waits
for the pingback."""

SHIPPING_PINGBACKS: Final = "/pingback/shipping"
"""Where the pingbacks of the account with shipped goods come in:
each account has a key of its own."""

_LARGEST_FORM: Final = 1024
_VERSIONS: Final = ("v1", "v2")


def create_shop(
    gateway: Gateway,
    shipping: Gateway,
    *,
    base_url: str,
    folder: Path,
    time_to_ship: timedelta,
    clock: Callable[[], datetime] = utc_now,
) -> Starlette:
    """Make the sample shop as an ASGI application; it needs no lifespan.

    Args:
        gateway: the shop's key pair and where Paydesk is; its `header_prefix` must be
            the service's.
        shipping: the same for the shop's second account, whose goods are shipped
            (interface.md §7.4).
        base_url: where the shop itself is, such as `http://127.0.0.1:8001`; Paydesk sends
            pingbacks there.
        time_to_ship: how long Paydesk holds the money of goods that are shipped.
        folder: for the shop's records; made if there is none. One process at a time may use it.
        clock: the time now, UTC.

    Raises: OSError if the folder can't be used.
    """
    records = Records(folder)
    shop = _Shop(gateway, shipping, base_url.rstrip("/"), records, time_to_ship, clock)
    receiver, of_shipped = Receiver(gateway, records, clock), Receiver(shipping, records, clock)
    return Starlette(
        routes=[
            Route("/", shop.shelf, methods=["GET"]),
            Route("/buy", shop.buy, methods=["POST"], max_body_size=_LARGEST_FORM),
            Route("/pay", shop.pay, methods=["GET"]),
            Route("/thanks", shop.thanks, methods=["GET"]),
            Route("/orders", shop.orders, methods=["GET"]),
            Route("/manage", shop.manage, methods=["GET"]),
            Route("/membership", shop.membership, methods=["GET"]),
            Route("/membership", shop.bend, methods=["POST"], max_body_size=_LARGEST_FORM),
            Route("/ship", shop.ship, methods=["POST"], max_body_size=_LARGEST_FORM),
            Route("/refund", shop.refund, methods=["POST"], max_body_size=_LARGEST_FORM),
            Route("/pingback", receiver.pingback, methods=["POST"]),
            Route(SHIPPING_PINGBACKS, of_shipped.pingback, methods=["POST"]),
            Mount("/static", static_app()),
        ],
        exception_handlers={HTTPException: _error},
    )


@dataclass(frozen=True, slots=True)
class _Shop:
    """The pages of one shop."""

    gateway: Gateway
    shipping: Gateway
    base_url: str
    records: Records
    time_to_ship: timedelta
    clock: Callable[[], datetime]

    async def shelf(self, request: Request) -> Response:
        """Show what can be bought, and how the next purchase will be signed."""
        single = [article for article in ARTICLES.values() if article.plan is None and not article.shipped]
        shipped = [article for article in ARTICLES.values() if article.shipped]
        monthly = [article for article in ARTICLES.values() if article.plan is not None]
        return _page(
            request,
            "shelf.html",
            single=single,
            shipped=shipped,
            monthly=monthly,
            version=_version(request),
            time_to_ship=self.time_to_ship,
            coupon=COUPON_CODE,
            percent=COUPON_PERCENT,
            periods=COUPON_PERIODS,
        )

    async def buy(self, request: Request) -> Response:
        """Make an order, and go on to a page that a reload doesn't buy again with."""
        fields = await _fields(request)
        article = ARTICLES.get(fields.get("article", ""))
        version = fields.get("sign_version", "v1")
        if article is None or version not in _VERSIONS:
            raise HTTPException(400, "The shop does not sell that. Please choose something from the shelf.")
        order = new_order(article, cast("Version", version), self.clock())
        await self.records.add_order(order)
        return RedirectResponse(f"/pay?order={quote(order.reference)}", status_code=303)

    async def pay(self, request: Request) -> Response:
        """Show the order with the signed form that takes the customer to Paydesk."""
        sheet = self._sheet(request.query_params.get("order", ""))
        if sheet.paid:
            return RedirectResponse(f"/thanks?order={quote(sheet.order.reference)}", status_code=303)
        gateway = self._gateway(sheet.order)
        form = gateway.payment_form()
        request_fields = self._request_fields(sheet.order)
        return _page(
            request,
            "pay.html",
            # Chromium applies form-action to the redirect after the post too; that stays
            # at Paydesk.
            form_action=source_of(gateway.api_url),
            order=sheet.order,
            form=form.build_form(request_fields, hide_pay_button=True),
            explanation=explain(gateway, form.build_parameters(request_fields)),
        )

    async def thanks(self, request: Request) -> Response:
        """Show the order and its pingbacks; coming here proves nothing, so it marks nothing
        as paid.
        """
        sheet = self._sheet(request.query_params.get("order", ""))
        looks = _looks(request)
        pingbacks = sorted((*sheet.pingbacks, *self.records.refused_for(sheet.order)), key=lambda one: one.received_at)
        return _page(
            request,
            "thanks.html",
            sheet=sheet,
            order=sheet.order,
            time_to_ship=self.time_to_ship,
            pingbacks=pingbacks,
            carriers=CARRIERS,
            tracking_id=EXAMPLE_TRACKING_ID,
            refund_key=refund_key(sheet),
            next_look=looks + 1 if looks < MOST_LOOKS and sheet.awaits_soon else 0,
        )

    async def ship(self, request: Request) -> Response:
        """Mark an order as shipped: Paydesk hears of it from the shop's server,
        with the private key.
        """
        fields = await _fields(request)
        sheet = self._paid_sheet(fields)
        await self._counter(sheet).ship(sheet, fields.get("carrier", ""), fields.get("tracking_id", ""))
        return _back_to(sheet)

    async def refund(self, request: Request) -> Response:
        """Give money back, by a form whose key makes a second press of its button harmless."""
        fields = await _fields(request)
        sheet = self._paid_sheet(fields)
        key = fields.get("key", "")
        if not key.startswith(f"{sheet.order.reference}-"):
            raise HTTPException(400, "The form is incomplete. Go back to the order and press the button there.")
        await self._counter(sheet).refund(sheet, fields.get("amount", ""), key)
        return _back_to(sheet)

    def _gateway(self, order: Order) -> Gateway:
        """The key pair that an order is sold under."""
        return self.shipping if order.shipped else self.gateway

    def _counter(self, sheet: Sheet) -> Counter:
        return Counter(self._gateway(sheet.order), self.records, self.clock)

    def _paid_sheet(self, fields: Mapping[str, str]) -> Sheet:
        """The paid order that a form names. Raises: HTTPException 404, 409."""
        sheet = self._sheet(fields.get("order", ""))
        if not sheet.paid:
            raise HTTPException(409, "This order is not paid yet, so there is nothing to ship or to give back.")
        return sheet

    async def manage(self, request: Request) -> Response:
        """Take the subscriber to Paydesk's portal, whose address the shop's server asks
        for with its private key.
        """
        subscribed = await self._subscribed(self._sheet(request.query_params.get("order", "")))
        return RedirectResponse(subscribed.portal_url, status_code=303, headers={"Cache-Control": "no-store"})

    async def membership(self, request: Request) -> Response:
        """Show the subscriber how the subscription stands, and what may be done with it here."""
        sheet = self._sheet(request.query_params.get("order", ""))
        subscribed = await self._subscribed(sheet)
        assert sheet.order.plan is not None, "what is subscribed to has a plan"
        return _page(
            request,
            "membership.html",
            sheet=sheet,
            subscribed=subscribed,
            offers=offers_of(sheet.order.plan),
            waiting="waiting" in request.query_params,
        )

    async def bend(self, request: Request) -> Response:
        """Show what comes of a subscriber's wish, and carry it out once that is agreed to."""
        fields = await _fields(request)
        sheet, wish, when = self._sheet(fields.get("order", "")), fields.get("wish", ""), fields.get("when", "")
        subscribed = await self._subscribed(sheet)
        if wish not in (*PLANS, *DEEDS):
            raise HTTPException(400, "The shop does not offer that. Go back and choose again.")
        member = Membership(self._gateway(sheet.order), sheet)
        if "agreed" in fields:
            done = await member.carry_out(wish, when, fields.get("key", ""))
            more = "" if done else "&waiting"
            return RedirectResponse(f"/membership?order={quote(sheet.order.reference)}{more}", status_code=303)
        comes = await member.foresee(wish, when)
        return _page(
            request,
            "agree.html",
            sheet=sheet,
            subscribed=subscribed,
            wish=wish,
            when=when,
            comes=comes,
            key=fresh_key(),
        )

    async def _subscribed(self, sheet: Sheet) -> Subscribed:
        """The subscription of an order, as the API shows it. Raises: HTTPException 404, 502."""
        if not sheet.subscription:
            raise HTTPException(404, "This order is no subscription, or it has not begun yet.")
        try:
            return await find_subscription(self._gateway(sheet.order), sheet.subscription)
        except Unreachable as error:
            raise HTTPException(502, "Paydesk did not say where the subscription is managed. Try again.") from error

    async def orders(self, request: Request) -> Response:
        """List the shop's orders, and the pingbacks that belong to none."""
        version = _version(request)
        return _page(
            request,
            "orders.html",
            sheets=self.records.sheets(),
            strays=self.records.strays(),
            version=version,
            time_to_ship=self.time_to_ship,
        )

    def _sheet(self, reference: str) -> Sheet:
        """The order of that reference. Raises: HTTPException 404."""
        sheet = self.records.sheet(reference)
        if sheet is None:
            raise HTTPException(404, "This shop has no such order. It keeps only the latest ones.")
        return sheet

    def _request_fields(self, order: Order) -> dict[str, str]:
        """The checkout request of an order, always the same for the same order
        (interface.md §2.2).
        """
        fields = {
            "merchant_order_id": order.reference,
            "amount": str(order.plan.price if order.plan else order.amount),
            "currency": order.currency,
            "description": order.description,
            "success_url": f"{self.base_url}/thanks?order={quote(order.reference)}",
            "pingback_url": self.base_url + (SHIPPING_PINGBACKS if order.shipped else "/pingback"),
        }
        if order.plan is not None:
            fields |= _recurring_fields(order, order.plan)
        # v1 is what a request without this field asks for.
        return fields | ({"sign_version": "v2"} if order.sign_version == "v2" else {})


def _recurring_fields(order: Order, plan: Plan) -> dict[str, str]:
    """What makes a checkout request one for a subscription (interface.md §2.3)."""
    return {
        "recurring_name": order.description,
        "recurring_sku_id": plan.sku,
        "recurring_period": plan.period,
        "recurring_trial_amount": str(plan.trial_price),
        "recurring_trial_period": plan.trial_period,
        "recurring_duration": "0",
    }


async def _fields(request: Request) -> dict[str, str]:
    """The fields of a small form of the shop's own, the first of each name."""
    read = parse_qs((await request.body()).decode("utf-8", "replace"))
    return {name: values[0] for name, values in read.items()}


def _back_to(sheet: Sheet) -> Response:
    return RedirectResponse(f"/thanks?order={quote(sheet.order.reference)}#counter", status_code=303)


def _version(request: Request) -> Version:
    """The signature version for the next purchase that the address asks for, v1 unless it is v2."""
    return "v2" if request.query_params.get("sign_version") == "v2" else "v1"


def _looks(request: Request) -> int:
    """How often the page loaded itself again so far; nonsense counts as enough."""
    given = request.query_params.get("look", "0")
    return int(given) if given.isascii() and given.isdecimal() and len(given) < 4 else MOST_LOOKS


def _page(request: Request, template: str, *, status: int = 200, form_action: str = "", **values: object) -> Response:
    texts = _LANGUAGES.texts_for(request.headers.get("accept-language", ""))
    html = _PAGES.render(template, texts, readable=readable, here=request.url.path, **values)
    return secured(html, status=status, form_action=form_action)


async def _error(request: Request, error: Exception) -> Response:
    """Say on a page of the shop what went wrong."""
    refusal = cast("HTTPException", error)
    phrase = HTTPStatus(refusal.status_code).phrase
    explained = refusal.detail if refusal.detail != phrase else "There is nothing here but the way back to the shelf."
    return _page(request, "error.html", status=refusal.status_code, title=phrase, explained=explained)
