"""Payment links: what a shop sells without code, with the link and its QR code."""

from __future__ import annotations

import re
from dataclasses import replace
from decimal import Decimal
from functools import partial

import segno
from starlette.responses import Response

from paydesk.core.errors import Malformed
from paydesk.core.money import plain_number
from paydesk.core.paging import LARGEST_ID, read_id
from paydesk.domain.accounts.roles import Permission
from paydesk.domain.business.link_offers import FIELDS, Typed
from paydesk.domain.business.payment_links import (
    OwnLink,
    change_link,
    find_own_link,
    list_payment_links,
    list_sellable,
    make_link,
    most_left,
    newer_versions,
    switch_link,
)
from paydesk.domain.payments.checkouts import LIFETIME
from paydesk.domain.selling.payment_links import Rhythm
from paydesk.domain.selling.plans import LONGEST_ABOUT, MOST_PLANS
from paydesk.domain.subscriptions.subscription_terms import Package
from paydesk.web.account.face import FACE
from paydesk.web.account.subscription_words import period_words, price_words
from paydesk.web.console.forms import LARGEST_UPLOAD, no_choice, read_upload
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

_BOXES = ("coupons", "remove_picture")
_ABOUT = re.compile(r"about-([0-9]{1,16})")
_MOST_TICKED = 200
_MOST_PRICES = 2
"""Of packages, that are named in a list."""

_TRIAL, _PAYMENTS, _VERSION = (
    mark("trial of %(time)s for %(price)s"),
    mark("payments in all: %(count)s"),
    mark("version %(version)s"),
)
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
    return await _new(visit, Typed())


@section.page(f"{_LINKS}/new/packages", needs=Permission.manage_settings)
async def show_new_page(visit: Visit) -> Response:
    """The form for another one that sells packages."""
    return await _new(visit, Typed(sells_packages=True))


@section.action(f"{_LINKS}/new/packages", needs=Permission.manage_settings, read=read_upload)
async def make_page(visit: Visit) -> Response:
    """Make one that sells packages, and show its link."""
    return await _make(visit, replace(_typed(visit), sells_packages=True))


@section.action(f"{_LINKS}/new", needs=Permission.manage_settings, read=read_upload)
async def make(visit: Visit) -> Response:
    """Make one with prices of its own, and show its link."""
    return await _make(visit, _typed(visit))


async def _new(visit: Visit, typed: Typed, errors: dict[str, str] | None = None, status: int = 200) -> Response:
    """The form for another one, with what was typed."""
    return visit.page(
        "payment_link_new.html",
        status=status,
        typed=typed,
        errors=errors or {},
        **await _choices(visit, typed),
    )


async def _choices(visit: Visit, typed: Typed) -> dict[str, object]:
    """What the form's fields show: the packages to choose from, if it sells such, and limits."""
    return {
        "sellable": await list_sellable(visit.database, visit.shop, typed.versions) if typed.sells_packages else [],
        "version_words": partial(_version_words, visit),
        "most_plans": MOST_PLANS,
        "longest_about": LONGEST_ABOUT,
        "largest": _LARGEST_PICTURE,
    }


async def _make(visit: Visit, typed: Typed) -> Response:
    try:
        _require_known(visit)
        made = await make_link(visit.gate, visit.session, visit.shop, typed, now=visit.now)
    except Malformed as error:
        return await _new(visit, typed, field_errors(visit, error, *FIELDS, *_BOXES), error.status)
    return visit.go(visit.url(f"links/{made}"), visit.texts.get("The link is made. Share it, or print its QR code."))


@section.page(_ONE, needs=Permission.view)
async def show_link(visit: Visit) -> Response:
    """One link: where it leads, what was sold by it, and the form to change it."""
    return await _page(visit, await find_own_link(visit.database, visit.shop, visit.number("link_id")))


@section.action(_ONE, needs=Permission.manage_settings, read=read_upload)
async def save(visit: Visit) -> Response:
    """Change what it offers."""
    link_id, typed = visit.number("link_id"), _typed(visit)
    try:
        _require_known(visit)
        await change_link(visit.gate, visit.session, visit.shop, link_id, typed, now=visit.now)
    except Malformed as error:
        link = await find_own_link(visit.database, visit.shop, link_id)
        typed = replace(typed, sells_packages=link.offer.plans is not None)
        return await _page(visit, link, typed, field_errors(visit, error, *FIELDS, *_BOXES), error.status)
    return visit.go(visit.url(f"links/{link_id}"), visit.texts.get("Saved."))


@section.action(f"{_ONE}/switch", needs=Permission.manage_settings)
async def switch(visit: Visit) -> Response:
    """Sell by it, or not any more."""
    visit.form.require_only("on")
    link_id, on = visit.number("link_id"), visit.form.one_of("on", "yes", "no") == "yes"
    await switch_link(visit.gate, visit.session, visit.shop, link_id, on=on, now=visit.now)
    said = "The link sells again." if on else "The link sells nothing any more."
    return visit.go(visit.url(f"links/{link_id}"), visit.texts.get(said))


async def _page(
    visit: Visit, link: OwnLink, typed: Typed | None = None, errors: dict[str, str] | None = None, status: int = 200
) -> Response:
    services, offer = visit.services, link.offer
    base = services.address if visit.shop.live else services.sandbox_address
    typed = typed or _as_typed(link)
    address = f"{base}/buy/{link.link.token(services.desk.vault)}"
    return visit.page(
        "payment_link.html",
        status=status,
        link=link,
        left=most_left(link),
        open_for=LIFETIME,
        typed=typed,
        prices=_prices(visit, link),
        newer=[(one.terms.name, _version_words(visit, one)) for one in await newer_versions(visit.database, link)],
        **await _choices(visit, typed),
        errors=errors or {},
        address=address,
        qr_code=segno.make(address, error="m").svg_data_uri(scale=4, border=4),
        picture=picture_address(visit.shop, offer.large_picture) if offer.large_picture else "",
    )


def _version_words(visit: Visit, package: Package) -> str:
    """What a version is: `10.00 USD / month, 7 days for 1.00 USD, version 12`."""
    terms, said = package.terms, [price_words(visit, package.terms)]
    if terms.trial is not None:
        trial = {
            "time": period_words(visit, terms.trial.period),
            "price": visit.money(terms.trial.price, terms.currency),
        }
        said.append(visit.texts.get(_TRIAL) % trial)
    if terms.limit:
        said.append(visit.texts.get(_PAYMENTS) % {"count": terms.limit})
    return ", ".join([*said, visit.texts.get(_VERSION) % {"version": package.version_id}])


def _prices(visit: Visit, link: OwnLink) -> str:
    """What one costs, in each rhythm, in words; of many packages some."""
    offer = link.offer
    if offer.plans is not None:
        packages = [link.packages[version] for version in offer.plans.versions if version in link.packages]
        said = [price_words(visit, one.terms) for one in packages[:_MOST_PRICES]]
        return ", ".join(said) + (" …" if len(packages) > _MOST_PRICES else "")
    return ", ".join(
        visit.texts.get(_RHYTHMS[rhythm]) % {"price": visit.money(price, offer.currency)}
        for rhythm, price in offer.prices.items()
    )


def _require_known(visit: Visit) -> None:
    """Make sure that all of a link's form was read. Raises: Malformed, naming the field."""
    about = {key for key, _ in visit.form.pairs if _ABOUT.fullmatch(key)}
    visit.form.require_only(*FIELDS, "version", *about, boxes=_BOXES, several="version")
    for said in visit.form.all("version"):
        if read_id(said) is None:
            raise no_choice(said, "packages")


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
        versions=tuple(int(one) for one in form.all("version") if re.fullmatch(r"[0-9]{1,16}", one))[:_MOST_TICKED],
        about={int(found[1]): form.text(key) for key, _ in form.pairs if (found := _ABOUT.fullmatch(key))},
        picture=form.files.get("picture", b""),
        remove_picture=form.has("remove_picture"),
    )


def _as_typed(link: OwnLink) -> Typed:
    """What is there, as it would be typed."""
    offer = link.offer
    plans = offer.plans.plans if offer.plans is not None else ()
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
        sells_packages=offer.plans is not None,
        versions=offer.plans.versions if offer.plans is not None else (),
        about={link.packages[plan.versions[0]].id: plan.about for plan in plans},
    )


def _number(price: Decimal | None) -> str:
    return "" if price is None else f"{plain_number(price):f}"
