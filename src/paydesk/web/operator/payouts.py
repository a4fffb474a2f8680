"""Payouts: who has money available, the form that records what was sent,
and what was sent before.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Iterable
from decimal import ROUND_DOWN, Decimal

from starlette.responses import Response

from paydesk.core.errors import Malformed, NotFound, PaydeskError, Unsure
from paydesk.core.money import minor_digits, parse_known_currency, parse_typed, plain_number
from paydesk.core.wording import worded
from paydesk.domain.accounts.audit import Action, record
from paydesk.domain.business.profiles import find_profile
from paydesk.domain.ledger.payouts import LONGEST_REASON, Sent
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.operations.machinery import people_by_words
from paydesk.domain.operations.payouts import (
    Payable,
    every_payout,
    list_all_payouts,
    pay_out,
    payable,
    payee_of,
    read_bank_account,
)
from paydesk.web.console.exports import begin_export, csv_file
from paydesk.web.console.guards import Access, Section, field_errors
from paydesk.web.console.list_parameters import ROWS, days_asked, list_address, mark_of, page_asked
from paydesk.web.console.visit import Visit
from paydesk.web.operator.face import FACE
from paydesk.web.operator.live_or_test import is_live, side_field, side_tabs
from paydesk.web.texts import mark

section = Section(FACE)
_PAYOUTS = "/operator/payouts"
_ONE = f"{_PAYOUTS}/{{merchant_id}}"
_COLUMNS = ("id", "at", "merchant_id", "merchant", "currency", "amount", "reference", "recorded_by")
_RECORDED = mark("Recorded: %(amount)s, %(reference)s.")
_KNOWN = mark("This was recorded before: %(amount)s, %(reference)s.")


@section.page(_PAYOUTS, needs=Access.operator)
async def show_payable(visit: Visit) -> Response:
    """Who has money available, by merchant and currency."""
    after = visit.form.number("merchant") or 0, visit.form.text("currency", 3)
    found = await payable(visit.database, live=is_live(visit), most=ROWS + 1, now=visit.now, after=after)
    last, side = found[:ROWS][-1:], side_field(visit)
    more = {"merchant": last[0].merchant_id, "currency": last[0].currency} if len(found) > ROWS else {}
    return visit.page(
        "payouts.html",
        found=found[:ROWS],
        form_of=lambda one: list_address(f"{_PAYOUTS}/{one.merchant_id}", {"currency": one.currency, **side}),
        sides=side_tabs(visit, _PAYOUTS),
        current=list_address(_PAYOUTS, side),
        past=list_address(f"{_PAYOUTS}/past", side),
        first=list_address(_PAYOUTS, side) if after[0] else "",
        further=list_address(_PAYOUTS, {**more, **side}) if more else "",
    )


@section.page(f"{_PAYOUTS}/past", needs=Access.operator)
async def show_past(visit: Visit) -> Response:
    """What was recorded, newest first."""
    path, side, asked = f"{_PAYOUTS}/past", side_field(visit), days_asked(visit)
    found = await list_all_payouts(visit.database, page_asked(visit), live=is_live(visit))
    shown = found[:ROWS]
    before = mark_of(shown[-1].at, shown[-1].id) if len(found) > ROWS else ""
    kept = {**asked, **side}
    return visit.page(
        "payouts_past.html",
        found=shown,
        names=await people_by_words(visit.database, (one.recorded_by for one in shown)),
        asked=asked,
        test=not is_live(visit),
        sides=side_tabs(visit, path),
        current=list_address(path, side),
        newest=list_address(path, kept) if visit.form.text("before") else "",
        older=list_address(path, {**kept, "before": before}) if before else "",
        export=list_address(f"{_PAYOUTS}/export", kept),
    )


@section.page(f"{_PAYOUTS}/export", needs=Access.operator)
async def export(visit: Visit) -> Response:
    """The payouts of the days asked for as a file; the audit log keeps who took it."""
    share = await begin_export(visit)
    chosen = {name: day for name, day in days_asked(visit).items() if day}
    async with visit.database.acquire() as connection:
        await record(
            connection,
            visit.session.operator,
            Action.exported,
            now=visit.now,
            subject="payouts",
            details={**chosen, **side_field(visit)},
        )
    return csv_file(share, f"payouts{'' if is_live(visit) else '-test'}.csv", _COLUMNS, _cells(visit))


async def _cells(visit: Visit) -> AsyncIterator[Iterable[object]]:
    page = page_asked(visit)
    async for one in every_payout(visit.database, live=is_live(visit), since=page.since, until=page.until):
        amount = plain_number(one.amount)
        yield (one.id, one.at, one.merchant_id, one.merchant_name, one.currency, amount, one.reference, one.recorded_by)


@section.page(_ONE, needs=Access.operator)
async def show_form(visit: Visit) -> Response:
    """The form for one merchant and currency, with the amount asked for, or all there is."""
    available = await _available(visit)
    # The ledger has finer parts than money that can be sent.
    whole = available.available.quantize(Decimal(1).scaleb(-minor_digits(available.currency)), ROUND_DOWN)
    amount = visit.form.text("amount", 40) or (f"{whole:f}" if whole > 0 else "")
    return _form(visit, available, amount, secrets.token_hex(16))


async def _available(visit: Visit) -> Payable:
    """What the merchant has of the currency asked for, be it nothing, else of the first.

    Raises: as `payee_of`; Malformed if there is no such currency.
    """
    asked = visit.form.text("currency", 3)
    currency = parse_known_currency(asked) if asked else None
    return await payee_of(visit.database, Shop(visit.number("merchant_id"), is_live(visit)), currency, now=visit.now)


def _form(
    visit: Visit,
    available: Payable,
    amount: str,
    request_key: str,
    errors: dict[str, str] | None = None,
    status: int = 200,
) -> Response:
    return visit.page(
        "payout.html",
        status=status,
        one=available,
        amount=amount,
        reference=visit.form.text("reference", 200),
        despite_wait=visit.form.text("despite_wait", 2000),
        has_left=visit.form.text("has_left", 2000),
        longest_reason=LONGEST_REASON,
        request_key=request_key,
        side="" if is_live(visit) else "test",
        back=list_address(_PAYOUTS, side_field(visit)),
        account=f"{_PAYOUTS}/{available.merchant_id}/account",
        errors=errors or {},
    )


@section.action(f"{_ONE}/account", needs=Access.operator, recent=True)
async def show_account(visit: Visit) -> Response:
    """The bank account to send the money to; the audit log keeps who read it."""
    merchant_id = visit.number("merchant_id")
    account = await read_bank_account(
        visit.database, visit.gate.vault, visit.session.operator, merchant_id, now=visit.now
    )
    profile = await find_profile(visit.database, merchant_id)
    form = {name: visit.form.text(name, 4) for name in ("currency", "side")}
    asked = {name: text for name, text in form.items() if text}
    return visit.page(
        "payout_account.html",
        account=account,
        profile=profile,
        back=list_address(f"{_PAYOUTS}/{merchant_id}", asked),
    )


@section.action(_ONE, needs=Access.operator, recent=True)
async def record_one(visit: Visit) -> Response:
    """Record what was sent; a form that comes twice counts once."""
    request_key, amount = visit.form.text("request", 64), visit.form.text("amount", 40)
    shop = Shop(visit.number("merchant_id"), is_live(visit))
    try:
        visit.form.require_only("request", "currency", "side", "amount", "reference", "despite_wait", "has_left")
        visit.form.one_of("side", "", "live", "test")
        has_left = visit.form.text("has_left", 2000).strip()
        if not request_key:
            raise Malformed(worded("the form is incomplete; open its page again"))
        currency = parse_known_currency(visit.form.text("currency", 40))
        sent = Sent(
            parse_typed(amount, currency),
            currency,
            visit.form.text("reference", 200),
            f"person {visit.session.person.id}",
            f"console {request_key}",
            despite_wait=(has_left or visit.form.text("despite_wait", 2000).strip())[:LONGEST_REASON],
            has_left=bool(has_left),
        )
        payout = await pay_out(visit.database, visit.session.operator, shop, sent, now=visit.now)
    except (NotFound, Unsure):
        raise
    except PaydeskError as error:
        available = await _available(visit)
        return _form(
            visit,
            available,
            amount,
            request_key,
            field_errors(visit, error, "amount", "reference", "despite_wait", "has_left"),
            error.status,
        )
    words = visit.texts.get(_KNOWN if payout.again else _RECORDED) % {
        "amount": visit.money(payout.amount, payout.currency),
        "reference": payout.reference,
    }
    return visit.go(list_address(f"{_PAYOUTS}/past", side_field(visit)), words)
