"""Coupons: made, listed, switched off, and where they may be used."""

from __future__ import annotations

from datetime import UTC, datetime, time

from starlette.responses import Response

from paydesk.core.card_numbers import masked
from paydesk.core.errors import Conflict, Malformed
from paydesk.core.money import refuse_thousands, with_dot
from paydesk.core.paging import EARLIEST, LARGEST_ID, LATEST, Page, Place
from paydesk.core.wording import worded
from paydesk.domain.accounts.roles import Permission
from paydesk.domain.business.coupons_for_team import (
    CouponSettings,
    find_coupon_settings,
    make_coupon,
    save_coupon_settings,
    switch_coupon,
)
from paydesk.domain.coupons.coupons import MOST_SKUS, Coupon, CouponTerms, read_terms
from paydesk.domain.coupons.keeping import find_coupon, list_coupons
from paydesk.domain.subscriptions.subscription_terms import LONGEST_TEXT
from paydesk.web.account.face import FACE
from paydesk.web.console.guards import Section, field_errors
from paydesk.web.console.list_parameters import ROWS, list_address
from paydesk.web.console.problems import error_words
from paydesk.web.console.visit import Visit

section = Section(FACE)
_COUPONS = "/account/{merchant_id}/coupons"
_TEXTS = ("code", "percent", "amount", "currency", "periods", "most_uses", "most_per_customer")
_DATES = ("valid_from", "valid_until")
_SKUS = "sku_ids"
_FIELDS = (*_TEXTS, *_DATES, _SKUS)
_BOXES = ("types_coupons", "signs_coupons")
_WHOLE = (MOST_SKUS + 1) * (LONGEST_TEXT + 2)
"""Characters of all SKUs, a line each: of one that is cut, another one would be left."""


@section.page(_COUPONS, needs=Permission.view)
async def show_coupons(visit: Visit) -> Response:
    """The shop's coupons, newest first."""
    return await _list(visit)


async def _list(visit: Visit, errors: dict[str, str] | None = None, status: int = 200) -> Response:
    before = visit.form.number("before")
    place = Place(LATEST, LARGEST_ID)
    if before:
        place = Place((await find_coupon(visit.database, visit.shop, before)).created_at, before)
    found = await list_coupons(visit.database, visit.shop, Page(ROWS + 1, place))
    shown, path = found[:ROWS], visit.url("coupons")
    return visit.page(
        "coupons.html",
        status=status,
        errors=errors or {},
        coupons=shown,
        off=lambda one: _off(visit, one),
        chosen=await find_coupon_settings(visit.database, visit.merchant_id),
        newest=path if before else "",
        older=list_address(path, {"before": shown[-1].id}) if len(found) > ROWS else "",
    )


@section.action(_COUPONS, needs=Permission.manage_settings)
async def save(visit: Visit) -> Response:
    """Take where coupons may be used."""
    try:
        visit.form.require_only(boxes=_BOXES)
    except Malformed as error:
        return await _list(visit, field_errors(visit, error, *_BOXES), error.status)
    chosen = CouponSettings(visit.form.has("types_coupons"), visit.form.has("signs_coupons"))
    await save_coupon_settings(visit.gate, visit.session, visit.shop, chosen, now=visit.now)
    return visit.go(visit.url("coupons"), visit.texts.get("Saved."))


@section.page(f"{_COUPONS}/new", needs=Permission.manage_settings)
async def show_new(visit: Visit) -> Response:
    """The form for another one."""
    return visit.page("coupon_new.html", typed={}, errors={})


@section.action(f"{_COUPONS}/new", needs=Permission.manage_settings)
async def make(visit: Visit) -> Response:
    """Make it, and show the list."""
    typed = {name: visit.form.text(name, 100) for name in _FIELDS if name != _SKUS}
    # Each line by itself: numbers below each other may look like a card's.
    typed[_SKUS] = "\n".join(map(masked, visit.form.raw(_SKUS)[:_WHOLE].splitlines()))
    try:
        visit.form.require_only(*_FIELDS)
        await make_coupon(visit.gate, visit.session, visit.shop, _terms(visit, typed), now=visit.now)
    except (Malformed, Conflict) as error:
        errors = (
            {"code": error_words(visit.texts, error)}
            if isinstance(error, Conflict)
            else field_errors(visit, error, *_FIELDS)
        )
        return visit.page("coupon_new.html", status=error.status, typed=typed, errors=errors)
    return visit.go(visit.url("coupons"), visit.texts.get("The coupon is made."))


@section.action(f"{_COUPONS}/{{coupon_id}}/switch", needs=Permission.manage_settings)
async def switch(visit: Visit) -> Response:
    """Let it be used, or not any more."""
    visit.form.require_only("on")
    on = visit.form.one_of("on", "yes", "no") == "yes"
    await switch_coupon(visit.gate, visit.session, visit.shop, visit.number("coupon_id"), on=on, now=visit.now)
    said = "The coupon can be used again." if on else "The coupon can’t be used any more."
    return visit.go(visit.url("coupons"), visit.texts.get(said))


def _terms(visit: Visit, typed: dict[str, str]) -> CouponTerms:
    """What was typed, checked; a last day counts whole, by the clock of whoever typed it.

    Raises: Malformed, naming the field.
    """
    given = {name: typed[name].upper() if name == "currency" else typed[name] for name in _TEXTS}
    given |= {name: with_dot(typed[name]) for name in ("percent", "amount")}
    first, last = _day(visit, typed, "valid_from", time.min), _day(visit, typed, "valid_until", time.max)
    if first is not None and last is not None and last < first:
        raise Malformed(worded("the last day comes before the first"), "valid_until")
    terms = read_terms(
        given,
        tuple(line.strip() for line in visit.form.raw(_SKUS)[:_WHOLE].splitlines() if line.strip()),
        valid_from=first,
        valid_until=last,
    )
    if terms.currency is not None:
        refuse_thousands(visit.form.text("amount", 100), terms.currency, "amount")
    return terms


def _day(visit: Visit, typed: dict[str, str], name: str, at: time) -> datetime | None:
    if not typed[name]:
        return None
    try:
        day = datetime.combine(datetime.fromisoformat(typed[name]).date(), at, visit.zone).astimezone(UTC)
    except (ValueError, OverflowError):
        day = None
    if day is None or not EARLIEST <= day <= LATEST:
        raise Malformed(worded("this is no date; write it like 2026-12-31"), name)
    return day


def _off(visit: Visit, coupon: Coupon) -> str:
    """What it takes off, in words."""
    if coupon.amount is not None and coupon.currency is not None:
        return visit.money(coupon.amount, coupon.currency)
    return f"{coupon.percent:f} %"
