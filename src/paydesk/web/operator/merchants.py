"""Merchants: the list with its search, and one with its terms, keys and team;
suspending, and changing the terms.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from functools import partial

from starlette.responses import Response

from paydesk.core.errors import Malformed
from paydesk.core.paging import read_id
from paydesk.core.wording import worded
from paydesk.domain.business.card_guard import CardGuard, find_card_guard, lift_pause
from paydesk.domain.ledger.balances import balances
from paydesk.domain.ledger.figures import Span, period_of, sales
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.merchants.trade_terms import TradeTerms
from paydesk.domain.operations.fees import fee_amounts, follow_the_rule, set_fee_amounts
from paydesk.domain.operations.figures_for_operator import UTC_DAYS, figures_of_merchants
from paydesk.domain.operations.merchants import (
    LONGEST_REASON,
    MerchantStanding,
    change_terms,
    find_merchant_for_operator,
    resume_merchant,
    search_merchants,
    suspend_merchant,
)
from paydesk.domain.operations.missed_periods import missed_periods
from paydesk.web.console.amounts import exact
from paydesk.web.console.day_names import named
from paydesk.web.console.guards import Access, Section, field_errors
from paydesk.web.console.list_parameters import ROWS, list_address, searched
from paydesk.web.console.visit import Visit
from paydesk.web.console.volume_plots import volume_plot
from paydesk.web.operator.face import FACE
from paydesk.web.operator.merchant_words import SCOPES, count_words, held_words, share_words, volume_words
from paydesk.web.texts import mark

section = Section(FACE)
_MERCHANTS = "/operator/merchants"
_ONE = f"{_MERCHANTS}/{{merchant_id}}"
_HUNDRED = Decimal(100)

STANDINGS = {
    MerchantStanding.test: mark("Never live"),
    MerchantStanding.live: mark("Live"),
    MerchantStanding.suspended: mark("Suspended"),
}


_NO_AMOUNTS = {"own_currency": "", "own_fixed": "", "own_chargeback_fee": ""}


@section.page(_MERCHANTS, needs=Access.operator)
async def show_merchants(visit: Visit) -> Response:
    """A page of the list, newest first."""
    asked, text = visit.form.text("standing", 20), searched(visit)
    standing = MerchantStanding(asked) if asked in set(MerchantStanding) else None
    before = visit.form.text("before", 16)
    before_id = read_id(before)
    found = await search_merchants(visit.database, text, standing, before_id=before_id, most=ROWS + 1)
    shown, fields = found[:ROWS], {"q": text, "standing": standing or ""}
    figures = await figures_of_merchants(visit.database, [one.id for one in shown], now=visit.now)
    every = ("", visit.texts.get("All"))
    return visit.page(
        "merchants.html",
        merchants=shown,
        figures=figures,
        share=partial(share_words, visit),
        volume=partial(volume_words, visit),
        held=partial(held_words, visit),
        text=text,
        standing=standing or "",
        views=[
            (list_address(_MERCHANTS, {"q": text, "standing": value}), visit.texts.get(name))
            for value, name in (every, *STANDINGS.items())
        ],
        current=list_address(_MERCHANTS, fields),
        newest=list_address(_MERCHANTS, fields) if before_id else "",
        older=list_address(_MERCHANTS, {**fields, "before": shown[-1].id}) if len(found) > ROWS else "",
    )


@section.page(_ONE, needs=Access.operator)
async def show_merchant(visit: Visit) -> Response:
    """One merchant, with the forms to suspend it and to change its terms."""
    return await _page(visit)


async def _page(
    visit: Visit, errors: dict[str, str] | None = None, status: int = 200, typed: dict[str, str] | None = None
) -> Response:
    seen = await find_merchant_for_operator(visit.database, visit.number("merchant_id"))
    live = Shop(seen.merchant.id, live=True)
    figures = await figures_of_merchants(visit.database, [seen.merchant.id], now=visit.now)
    period = period_of(Span.MONTH, UTC_DAYS, now=visit.now)
    sold = await sales(visit.database, live, period, now=visit.now)
    return visit.page(
        "merchant.html",
        status=status,
        seen=seen,
        merchant=seen.merchant,
        held=await balances(visit.database, live),
        figures=figures[seen.merchant.id],
        plot=volume_plot(visit, period, sold[0]) if sold else None,
        rows=list(zip(sold[0].by_day, sold[0].by_day_before, strict=True)) if sold else [],
        currency=sold[0].currency if sold else "",
        named=partial(named, visit, by_month=False),
        count=partial(count_words, visit),
        share=partial(share_words, visit),
        volume=partial(volume_words, visit),
        guards=await _guards(visit, seen.merchant.id),
        missed=await missed_periods(visit.database, live, now=visit.now) if seen.merchant.suspended_at else [],
        terms={**_NO_AMOUNTS, **_written(seen.terms), **(typed or {})},
        usual=seen.terms == TradeTerms(),
        amounts=await fee_amounts(visit.database, seen.merchant.id),
        exact=partial(exact, visit),
        scopes=SCOPES,
        longest_reason=LONGEST_REASON,
        errors=errors or {},
    )


async def _guards(visit: Visit, merchant_id: int) -> list[tuple[Shop, CardGuard]]:
    """How both sides are guarded against card testing."""
    desk, sides = visit.services.desk, (Shop(merchant_id, live=True), Shop(merchant_id, live=False))
    return [(shop, await find_card_guard(visit.database, shop, desk.limits_of(shop), now=visit.now)) for shop in sides]


@section.action(f"{_ONE}/lift", needs=Access.operator, recent=True)
async def lift(visit: Visit) -> Response:
    """End a pause for card testing before its time."""
    merchant_id = visit.number("merchant_id")
    visit.form.require_only("side")
    shop = Shop(merchant_id, live=visit.form.one_of("side", "live", "test") == "live")
    await lift_pause(visit.database, visit.session.operator, shop, now=visit.now)
    said = visit.texts.get("Cards are taken again, with 3-D Secure for all. The alarm is settled.")
    return visit.go(f"{_MERCHANTS}/{merchant_id}", said)


@section.action(f"{_ONE}/suspend", needs=Access.operator, recent=True)
async def suspend(visit: Visit) -> Response:
    """Stop live checkouts and charges of a merchant."""
    reason, merchant_id = visit.form.text("reason", 5000), visit.number("merchant_id")
    try:
        visit.form.require_only("reason")
        await suspend_merchant(visit.database, visit.session.operator, merchant_id, reason=reason, now=visit.now)
    except Malformed as error:
        return await _page(visit, field_errors(visit, error, "reason"), error.status)
    return visit.go(f"{_MERCHANTS}/{merchant_id}", visit.texts.get("Suspended: no live payment begins any more."))


@section.action(f"{_ONE}/resume", needs=Access.operator, recent=True)
async def resume(visit: Visit) -> Response:
    """Lift a suspension; what was missed is charged as the form says."""
    merchant_id = visit.number("merchant_id")
    visit.form.require_only("missed")
    wants_all = visit.form.one_of("missed", "one", "all", usual="one") == "all"
    await resume_merchant(visit.database, visit.session.operator, merchant_id, all_periods=wants_all, now=visit.now)
    return visit.go(f"{_MERCHANTS}/{merchant_id}", visit.texts.get("The merchant takes live payments again."))


@section.action(f"{_ONE}/terms", needs=Access.operator, recent=True)
async def save_terms(visit: Visit) -> Response:
    """Change what a merchant pays from now on."""
    merchant_id = visit.number("merchant_id")
    typed = {name: visit.form.text(name, 40) for name in TradeTerms.__slots__}
    try:
        visit.form.require_only(*typed, boxes=("fees_returned",))
        await change_terms(visit.database, visit.session.operator, merchant_id, _parsed(typed), now=visit.now)
    except Malformed as error:
        return await _page(visit, field_errors(visit, error, *typed), error.status, typed)
    return visit.go(f"{_MERCHANTS}/{merchant_id}", visit.texts.get("Saved. New payments follow these terms."))


@section.action(f"{_ONE}/fees", needs=Access.operator, recent=True)
async def save_amounts(visit: Visit) -> Response:
    """Change what a merchant pays in one currency from now on; with `usual` by the rule again."""
    merchant_id, currency = visit.number("merchant_id"), visit.form.text("currency", 40).upper()
    typed = {"currency": currency, **{name: visit.form.text(f"own_{name}", 40) for name in ("fixed", "chargeback_fee")}}
    actor, fields = visit.session.operator, {f"own_{name}": text for name, text in typed.items()}
    try:
        visit.form.require_only("currency", "own_fixed", "own_chargeback_fee", "usual")
        if visit.form.one_of("usual", "1", "", usual=""):
            await follow_the_rule(visit.database, actor, merchant_id, currency, now=visit.now)
        else:
            amounts = {name: _number(typed, name) for name in ("fixed", "chargeback_fee")}
            await set_fee_amounts(visit.database, actor, merchant_id, currency, **amounts, now=visit.now)
    except Malformed as error:
        found = {f"own_{name}" if name else name: text for name, text in field_errors(visit, error, *typed).items()}
        return await _page(visit, found, error.status, fields)
    return visit.go(f"{_MERCHANTS}/{merchant_id}", visit.texts.get("Saved. New payments follow these terms."))


def _parsed(typed: dict[str, str]) -> TradeTerms:
    """The terms that were typed; shares are in per cent. Raises: Malformed, naming the field."""
    return TradeTerms(
        rate=_number(typed, "rate") / _HUNDRED,
        fixed=_number(typed, "fixed"),
        reserve_rate=_number(typed, "reserve_rate") / _HUNDRED,
        fees_returned=bool(typed["fees_returned"]),
        chargeback_fee=_number(typed, "chargeback_fee"),
        settlement_days=_days(typed, "settlement_days"),
        reserve_days=_days(typed, "reserve_days"),
    )


def _days(typed: dict[str, str], name: str) -> int:
    text = typed[name]
    if not (text.isascii() and text.isdigit() and len(text) < 6):
        raise Malformed(worded("this must be a whole number of days"), name)
    return int(text)


def _number(typed: dict[str, str], name: str) -> Decimal:
    text = typed[name]
    try:
        number = Decimal(text.strip().replace(",", ".")) if text.isascii() and len(text) <= 12 else Decimal("NaN")
    except InvalidOperation:
        number = Decimal("NaN")
    if not number.is_finite():
        raise Malformed(worded("this must be a number, like 2.9"), name)
    return number


def _written(terms: TradeTerms) -> dict[str, str]:
    """The terms as the form shows them: 2.9 for a share of 0.029."""
    return {
        "rate": _plain(terms.rate * _HUNDRED),
        "fixed": _plain(terms.fixed),
        "reserve_rate": _plain(terms.reserve_rate * _HUNDRED),
        "fees_returned": "1" if terms.fees_returned else "",
        "chargeback_fee": _plain(terms.chargeback_fee),
        "settlement_days": str(terms.settlement_days),
        "reserve_days": str(terms.reserve_days),
    }


def _plain(number: Decimal) -> str:
    return format(number.normalize() if number else Decimal(0), "f")
