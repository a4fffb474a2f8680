"""Payment links: what a shop sells without code, with the link and its QR code."""

from __future__ import annotations

from decimal import Decimal
from functools import partial

import segno
from starlette.responses import Response

from paydesk.core.errors import Malformed
from paydesk.core.money import plain_number
from paydesk.core.paging import LARGEST_ID
from paydesk.domain.accounts.roles import Permission
from paydesk.domain.business.payment_links import (
    FIELDS,
    OwnLink,
    Typed,
    change_link,
    find_own_link,
    list_payment_links,
    make_link,
    most_left,
    switch_link,
)
from paydesk.domain.payments.checkouts import LIFETIME
from paydesk.domain.selling.payment_links import Offer, Rhythm
from paydesk.web.account.face import FACE
from paydesk.web.console.forms import LARGEST_UPLOAD, read_upload
from paydesk.web.console.guards import Section, field_errors
from paydesk.web.console.list_parameters import ROWS, list_address
from paydesk.web.console.visit import Visit
from paydesk.web.item_pictures import picture_address
from paydesk.web.texts import mark

section = Section(FACE)
_LINKS = "/account/{merchant_id}/links"
_ONE = f"{_LINKS}/{{link_id}}"

_LARGEST_PICTURE = (LARGEST_UPLOAD - 24_000) // 1000
"""In kB: a form's fields and its picture come in one upload."""

_RHYTHMS = {
    Rhythm.ONCE: mark("%(price)s"),
    Rhythm.MONTHLY: mark("%(price)s a month"),
    Rhythm.YEARLY: mark("%(price)s a year"),
}


@section.page(_LINKS, needs=Permission.view)
async def show_links(visit: Visit) -> Response:
    """The shop's links, newest first."""
    before = visit.form.number("before")
    found = await list_payment_links(visit.database, visit.shop, before=before or LARGEST_ID, most=ROWS + 1)
    shown, path = found[:ROWS], visit.url("links")
    return visit.page(
        "payment_links.html",
        links=shown,
        prices=partial(_prices, visit),
        newest=path if before else "",
        older=list_address(path, {"before": shown[-1].id}) if len(found) > ROWS else "",
    )


@section.page(f"{_LINKS}/new", needs=Permission.manage_settings)
async def show_new(visit: Visit) -> Response:
    """The form for another one."""
    return visit.page("payment_link_new.html", typed=Typed(), errors={}, largest=_LARGEST_PICTURE)


@section.action(f"{_LINKS}/new", needs=Permission.manage_settings, read=read_upload)
async def make(visit: Visit) -> Response:
    """Make it, and show its link."""
    typed = _typed(visit)
    try:
        made = await make_link(visit.gate, visit.session, visit.shop, typed, now=visit.now)
    except Malformed as error:
        errors = field_errors(error, *FIELDS)
        return visit.page(
            "payment_link_new.html", status=error.status, typed=typed, errors=errors, largest=_LARGEST_PICTURE
        )
    return visit.go(visit.url(f"links/{made}"), visit.texts.get("The link is made. Share it, or print its QR code."))


@section.page(_ONE, needs=Permission.view)
async def show_link(visit: Visit) -> Response:
    """One link: where it leads, what was sold by it, and the form to change it."""
    return _page(visit, await find_own_link(visit.database, visit.shop, visit.number("link_id")))


@section.action(_ONE, needs=Permission.manage_settings, read=read_upload)
async def save(visit: Visit) -> Response:
    """Change what it offers."""
    link_id, typed = visit.number("link_id"), _typed(visit)
    try:
        await change_link(visit.gate, visit.session, visit.shop, link_id, typed, now=visit.now)
    except Malformed as error:
        link = await find_own_link(visit.database, visit.shop, link_id)
        return _page(visit, link, typed, field_errors(error, *FIELDS), error.status)
    return visit.go(visit.url(f"links/{link_id}"), visit.texts.get("Saved."))


@section.action(f"{_ONE}/switch", needs=Permission.manage_settings)
async def switch(visit: Visit) -> Response:
    """Sell by it, or not any more."""
    link_id, on = visit.number("link_id"), visit.form.text("on", 3) == "yes"
    await switch_link(visit.gate, visit.session, visit.shop, link_id, on=on, now=visit.now)
    said = "The link sells again." if on else "The link sells nothing any more."
    return visit.go(visit.url(f"links/{link_id}"), visit.texts.get(said))


def _page(
    visit: Visit, link: OwnLink, typed: Typed | None = None, errors: dict[str, str] | None = None, status: int = 200
) -> Response:
    services, offer = visit.services, link.offer
    base = services.address if visit.shop.live else services.sandbox_address
    address = f"{base}/buy/{link.link.token(services.desk.vault)}"
    return visit.page(
        "payment_link.html",
        status=status,
        link=link,
        left=most_left(link),
        open_for=LIFETIME,
        largest=_LARGEST_PICTURE,
        typed=typed or _as_typed(offer),
        prices=_prices(visit, offer),
        errors=errors or {},
        address=address,
        qr_code=segno.make(address, error="m").svg_data_uri(scale=4, border=4),
        picture=picture_address(visit.shop, offer.large_picture) if offer.large_picture else "",
    )


def _prices(visit: Visit, offer: Offer) -> str:
    """What one costs, in each rhythm, in words."""
    return ", ".join(
        visit.texts.get(_RHYTHMS[rhythm]) % {"price": visit.money(price, offer.currency)}
        for rhythm, price in offer.prices.items()
    )


def _typed(visit: Visit) -> Typed:
    form = visit.form
    return Typed(
        title=form.text("title", 1000),
        description=form.text("description", 5000),
        currency=form.text("currency", 10).upper(),
        price=form.text("price", 40),
        monthly_price=form.text("monthly_price", 40),
        yearly_price=form.text("yearly_price", 40),
        most_quantity=form.text("most_quantity", 20),
        most_sales=form.text("most_sales", 20),
        success_url=form.text("success_url", 3000),
        coupons=form.has("coupons"),
        picture=form.files.get("picture", b""),
        remove_picture=form.has("remove_picture"),
    )


def _as_typed(offer: Offer) -> Typed:
    """What is there, as it would be typed."""
    return Typed(
        title=offer.title,
        description=offer.description,
        currency=offer.currency,
        price=_number(offer.price),
        monthly_price=_number(offer.monthly_price),
        yearly_price=_number(offer.yearly_price),
        most_quantity=str(offer.most_quantity),
        most_sales="" if offer.most_sales is None else str(offer.most_sales),
        success_url=offer.success_url,
        coupons=offer.coupons,
    )


def _number(price: Decimal | None) -> str:
    return "" if price is None else f"{plain_number(price):f}"
