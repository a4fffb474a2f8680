"""How the checkout's pages look and feel: every state of them, for every eye and every screen."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from playwright.async_api import Page
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from tests.e2e.looks import Look, violations
from tests.lengths import long, one_of

from paydesk.core.periods import Period
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.line_items import LineItem
from paydesk.domain.selling.payment_links import Offer, PaymentLink
from paydesk.domain.selling.plans import Plan, Plans
from paydesk.domain.shoppers.instruments import LaterCharges, SavedInstrument
from paydesk.domain.subscriptions.subscription_terms import Discount, Package, Terms, Trial
from paydesk.web.assets import static_app
from paydesk.web.checkout import link_pages, pages, wording
from paydesk.web.checkout.checkout_view import CheckoutView, Customer, Line
from paydesk.web.checkout.consents import charge_in_words, keep_in_words
from paydesk.web.checkout.coupon_view import CouponView
from paydesk.web.checkout.pages import texts_for
from paydesk.web.texts import Texts

pytestmark = pytest.mark.browser

VIEW = CheckoutView(
    merchant_name="Demo Shop",
    description="A mug",
    amount=Decimal("10.00"),
    currency="USD",
    merchant_order_id="order-1",
    live=False,
    pay_url="/pay",
    shop_url="https://shop.example/thanks",
    form_action="",
    expires_at=datetime(2030, 1, 1, tzinfo=UTC),
    entered=Customer("ada@example.com", "Ada Lovelace", ""),
)
DOT = "data:image/gif;base64,R0lGODlhAQABAIAAAAUEBAAAACwAAAAAAQABAAACAkQBADs="
PLACED = replace(VIEW.entered, city="London", postal_code="SW1A 1AA", asks_place=True)
WORD = "Donaudampfschifffahrtsgesellschaft" * 8
WIDE = replace(VIEW, merchant_name=WORD, description=WORD, merchant_order_id=WORD, amount=Decimal(999999999999))
FREE = Terms("Coffee club", "club", "USD", Decimal(10), Period(1, "month"), Trial(Decimal(0), Period(14, "day")), 12)


def subscribing(view: CheckoutView, *, free: bool) -> CheckoutView:
    """The view as that of a subscription, with a free trial or without one."""
    name = view.description
    if free:
        return replace(view, amount=Decimal(0), terms=replace(FREE, name=name))
    return replace(view, terms=replace(FREE, name=name, trial=None, price=view.amount))


def several(view: CheckoutView) -> CheckoutView:
    """The view of a subscription to three of a thing."""
    view = subscribing(view, free=False)
    assert view.terms is not None
    whole = view.amount * 3
    return replace(view, amount=whole, terms=replace(view.terms, price=whole, quantity=3))


def with_coupon(view: CheckoutView) -> CheckoutView:
    """The view of a subscription at the price that a coupon leaves for a time."""
    view = subscribing(view, free=False)
    assert view.terms is not None
    discount = Discount(view.amount * 2, 3)
    return replace(view, terms=replace(view.terms, discount=discount), coupon=CouponView(code="W" * 40, without="/c"))


def known(view: CheckoutView, texts: Texts) -> CheckoutView:
    """The view of somebody who has proved an address, and may pay at once or save this card."""
    later = LaterCharges(view.description, view.amount, view.currency)
    return replace(
        view,
        path="/checkout/t",
        known_as=f"{view.description[:200]}@example.com",
        saved=[SavedInstrument(1, 1, "ok", view.expires_at, (), (), "visa", "4242", 12, 2040)],
        keep=keep_in_words(view.merchant_name, texts),
        charge=charge_in_words(view.merchant_name, later, texts),
    )


def itemized(view: CheckoutView) -> CheckoutView:
    """The view of an order of many things, some of which have a picture."""
    lines = [LineItem(view.description, view.amount, number + 1) for number in range(8)]
    return replace(view, lines=[Line(line, DOT if line.quantity % 2 else "") for line in lines])


def offered(view: CheckoutView, *prices: str, most_quantity: int = 1, **more: Any) -> link_pages.LinkView:
    """A payment link that offers what the view is about."""
    usual: dict[str, Any] = dict.fromkeys(("price", "monthly_price", "yearly_price"))
    said = {"title": view.description, "description": view.description, "picture": "", "large_picture": ""}
    rest = {
        "currency": view.currency,
        "most_quantity": most_quantity,
        "most_sales": None,
        "success_url": "",
        "coupons": True,
        "plans": more.pop("plans", None),
    }
    offer = Offer(**{**usual, **said, **rest, **dict.fromkeys(prices, view.amount)})
    facts: dict[str, Any] = {"active": True, "changed_at": view.expires_at, "left": None, "suspended": False}
    brand: dict[str, Any] = {"branded_at": None, "has_logo": False, "merchant_name": view.merchant_name}
    return link_pages.LinkView(PaymentLink(Shop(1, live=False), 1, "", offer, **facts, **brand, **more), "/buy/t")


def side_by_side(view: CheckoutView) -> link_pages.LinkView:
    """A page of four packages, paid by the month or the year, one with a trial."""
    terms = subscribing(view, free=False).terms
    assert terms is not None
    trial = Trial(view.amount, Period(2, "week"))
    by_year = replace(terms, period=Period(1, "year"), price=view.amount * 10)
    versions = (terms, by_year, replace(terms, trial=trial), replace(by_year, trial=trial), terms, terms)
    packages = {number: Package(number, number, one, 0) for number, one in enumerate(versions)}
    about = "\n".join([view.description[:200], "Tea"])
    plans = Plans((Plan((0, 1), about), Plan((2, 3), about), Plan((4,)), Plan((5,), "Tea")))
    return offered(view, most_quantity=9, plans=plans, packages=packages, several=True)


STATES: dict[str, Callable[[CheckoutView, Texts], Response]] = {
    "payment": pages.payment_page,
    "buy": lambda view, texts: link_pages.buy_page(offered(view, "price", most_quantity=9), texts, wrong="quantity"),
    "buy-club": lambda view, texts: link_pages.buy_page(offered(view, "monthly_price", "yearly_price"), texts),
    "plans": lambda view, texts: link_pages.buy_page(side_by_side(view), texts),
    "plans-wrong": lambda view, texts: link_pages.buy_page(side_by_side(view), texts, chosen="1", wrong="quantity"),
    "sold-out": lambda view, texts: link_pages.sold_out_page(offered(view, "price"), texts),
    "not-sold": lambda view, texts: link_pages.closed_page(offered(view, "price"), texts),
    "sold-out-late": link_pages.sold_out_checkout_page,
    "items": lambda view, texts: pages.payment_page(itemized(view), texts),
    "live": lambda view, texts: pages.payment_page(replace(view, live=True, entered=Customer()), texts),
    "errors": lambda view, texts: pages.payment_page(
        view, texts, field_errors=dict.fromkeys(wording.FIELDS, "invalid"), status=400
    ),
    "declined": lambda view, texts: pages.payment_page(view, texts, notice="wrong_cvc", status=402),
    "several": lambda view, texts: pages.payment_page(several(view), texts),
    "coupon": lambda view, texts: pages.payment_page(with_coupon(view), texts),
    "coupon-items": lambda view, texts: pages.payment_page(itemized(with_coupon(view)), texts),
    "no-such-coupon": lambda view, texts: pages.payment_page(
        replace(subscribing(view, free=False), coupon=CouponView(url="/coupon")), texts, notice="coupon_unknown"
    ),
    "subscription": lambda view, texts: pages.payment_page(subscribing(view, free=False), texts),
    "free-trial": lambda view, texts: pages.payment_page(subscribing(view, free=True), texts),
    "not-agreed": lambda view, texts: pages.payment_page(
        subscribing(view, free=False), texts, field_errors={"agree": "empty"}, status=400
    ),
    "subscribed": lambda view, texts: pages.already_paid_page(subscribing(view, free=True), texts),
    "checking": lambda view, texts: pages.checking_page(view, texts, status_url="/pending"),
    "paid": pages.already_paid_page,
    "thanks": lambda view, texts: pages.already_paid_page(replace(view, shop_url="", payment_id=13338), texts),
    "may-save": lambda view, texts: pages.payment_page(replace(view, path="/checkout/t"), texts),
    "known": lambda view, texts: pages.payment_page(known(view, texts), texts),
    "address": lambda view, texts: pages.address_page(known(view, texts), texts, wrong="invalid"),
    "code": lambda view, texts: pages.code_page(known(view, texts), texts, wrong=True),
    "place": lambda view, texts: pages.payment_page(replace(view, entered=PLACED), texts),
    "expired": pages.expired_page,
    "closed": pages.closed_page,
    "suspended": pages.suspended_page,
    "form-error": lambda view, texts: pages.form_error_page(
        texts, status=403, message="wrong hash", fields=["hash"], hashed="amount=10.00&" * 20, suspect="description"
    ),
    "error": lambda view, texts: pages.error_page(texts, status=404),
}


async def show_state(request: Request) -> Response:
    view = WIDE if request.path_params["width"] == "wide" else VIEW
    return STATES[request.path_params["name"]](view, texts_for(request.headers["accept-language"]))


async def still_processing(request: Request) -> Response:
    return JSONResponse({"state": "processing"})


@pytest.fixture(scope="module")
async def base(serve: Callable[[Any], AbstractAsyncContextManager[str]]) -> AsyncIterator[str]:
    routes = [
        Route("/pending", still_processing),
        Mount("/static", static_app()),
        Route("/{width}/{name}", show_state),
    ]
    async with serve(Starlette(routes=routes)) as base:
        yield base


Show = Callable[..., Coroutine[Any, Any, Page]]


@pytest.fixture
def show(look: Look, base: str) -> Show:
    async def show(path: str, **options: Any) -> Page:
        page = await look(base + path, **options)
        for folded in await page.locator("summary:visible").all():
            await folded.click()
        return page

    return show


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=long)])
@pytest.mark.parametrize("name", one_of(8, STATES))
async def test_axe_reports_nothing(show: Show, name: str, scheme: str) -> None:
    page = await show(f"/usual/{name}", color_scheme=scheme)
    assert await violations(page) == []


@pytest.mark.parametrize("name", one_of(8, STATES))
async def test_nothing_scrolls_sideways_at_320_pixels(show: Show, name: str) -> None:
    page = await show(f"/wide/{name}", viewport={"width": 320, "height": 640}, locale="de-DE")
    assert await page.evaluate("document.documentElement.scrollWidth") <= 320


async def test_targets_are_large_enough_to_hit(show: Show) -> None:
    page = await show("/usual/not-agreed", viewport={"width": 320, "height": 640})
    sizes = await page.locator("a, button, input, select, summary").evaluate_all(
        "all => all.map(one => [one.outerHTML.slice(0, 80), one.getBoundingClientRect().height])"
    )
    assert [size for size in sizes if size[1] < 24] == []


async def test_motion_is_calmed_and_forced_colours_keep_the_form_usable(show: Show) -> None:
    page = await show("/usual/checking", reduced_motion="reduce")
    assert await page.locator(".spinner").evaluate("one => getComputedStyle(one).animationDuration") == "4s"
    page = await show("/usual/errors", forced_colors="active")
    assert await page.locator("#number").evaluate("one => getComputedStyle(one).outlineStyle") == "solid"
