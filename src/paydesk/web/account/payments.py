"""Payments: the list with its search and export, one payment with its timeline,
and giving money back.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Iterable, Mapping
from decimal import Decimal
from functools import partial

from babel import Locale
from starlette.responses import Response

from paydesk.core.errors import Malformed, PaydeskError, Unavailable, Unsure
from paydesk.core.money import minor_digits, parse_typed
from paydesk.core.wording import worded
from paydesk.domain.accounts.access_needs import ConfirmationNeeded
from paydesk.domain.accounts.roles import Permission
from paydesk.domain.business import acting
from paydesk.domain.business.payments_for_team import (
    PaymentForTeam,
    count_payments,
    find_payment_for_team,
    history_of,
    what_was_bought,
)
from paydesk.domain.business.search_for_team import PaymentSearch, all_payments, search_payments
from paydesk.domain.chargebacks.fraud_warnings import is_warned_of
from paydesk.domain.deliveries.timeline import read_timeline
from paydesk.domain.payments.for_api import SeenPayment
from paydesk.domain.payments.refundable import find_refundable, what_to_do
from paydesk.domain.payments.refunding import Refund, RefundStatus
from paydesk.domain.payments.states import MovementKind, PaymentState
from paydesk.web.account.face import FACE
from paydesk.web.account.payment_timeline import timeline_of
from paydesk.web.console import payment_words
from paydesk.web.console.amounts import exact
from paydesk.web.console.exports import begin_export, csv_file
from paydesk.web.console.guards import Section
from paydesk.web.console.list_parameters import (
    COUNTED,
    ROWS,
    count_shown,
    days_asked,
    list_address,
    mark_of,
    page_asked,
    searched,
)
from paydesk.web.console.problems import error_words
from paydesk.web.console.visit import Visit
from paydesk.web.texts import mark

section = Section(FACE)
_PAYMENTS = "/account/{merchant_id}/payments"
_ONE = f"{_PAYMENTS}/{{payment_id}}"
_REQUEST_KEY = 24
_NARROWING = ("q", "subscription", "since", "until")
"""What a list is asked for besides a status."""
ALL, _PART = "all", "part"
"""Of a refund's form: everything that can be given back."""
_COLUMNS = (
    "id", "created_at", "paid_at", "merchant_order_id", "status", "amount", "currency", "net", "reserve", "fees",
    "refunded", "email", "first_name", "last_name", "country", "card_brand", "card_last4", "decline_reason",
    "subscription_id",
)  # fmt: skip


@section.page(_PAYMENTS, needs=Permission.view)
async def show_payments(visit: Visit) -> Response:
    """A page of the list, newest first."""
    wanted, asked = _asked(visit)
    found = await search_payments(visit.database, visit.shop, wanted, page_asked(visit))
    shown, path = found[:ROWS], visit.url("payments")
    before = mark_of(shown[-1].created_at, shown[-1].id) if len(found) > ROWS else ""
    views = _views(visit, asked)
    return visit.page(
        "payments.html",
        payments=shown,
        views=list(views.values()),
        current=list_address(path, asked),
        counts={} if any(asked.get(name) for name in _NARROWING) else await _counts(visit, views),
        bought=await what_was_bought(visit.database, visit.shop, shown),
        states=payment_words.PAYMENT_STATES,
        instrument_words=payment_words.instrument_words,
        decline_words=payment_words.decline_words,
        asked=asked,
        filtered=any(asked.values()),
        now=await visit.shop_now(),
        newest=list_address(path, asked) if visit.form.text("before") else "",
        older=list_address(path, {**asked, "before": before}) if before else "",
        export=list_address(visit.url("payments/export"), asked),
    )


def _views(visit: Visit, asked: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """The list's tabs by their status: addresses and names, with the one that is looked at."""
    path, shown = visit.url("payments"), [*payment_words.PAYMENT_VIEWS]
    if asked.get("status", "") not in shown:
        shown.append(asked.get("status", ""))
    return {
        status: (list_address(path, {**asked, "status": status}), visit.texts.get(_view_name(status)))
        for status in shown
    }


def _view_name(status: str) -> str:
    if not status:
        return mark("All")
    group = payment_words.PAYMENT_GROUPS.get(status)
    return group[0] if group else payment_words.PAYMENT_STATES[PaymentState(status)][0]


async def _counts(visit: Visit, views: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    """How many payments are in each view that is cheap to count, by its address: not the paid ones,
    of which there are most, nor those that nobody knows the outcome of.
    """
    uncounted = {PaymentState.CAPTURED, PaymentState.PROCESSING}
    states = {status: _states(status) or frozenset() for status in views}
    counted = {status: found for status, found in states.items() if found and found.isdisjoint(uncounted)}
    all_states = frozenset[PaymentState]().union(*counted.values())
    numbers = await count_payments(visit.database, visit.shop, all_states, COUNTED + 1)
    return {views[status][0]: count_shown(sum(numbers[one] for one in found)) for status, found in counted.items()}


def _states(status: str) -> frozenset[PaymentState] | None:
    """The states that a status of the address stands for; None for any other word."""
    group = payment_words.PAYMENT_GROUPS.get(status)
    return group[1] if group else frozenset({PaymentState(status)}) if status in set(PaymentState) else None


def _asked(visit: Visit) -> tuple[PaymentSearch, dict[str, str]]:
    """What is searched for, and the fields that ask for it again."""
    status = visit.form.text("status", 40)
    states = _states(status)
    subscription_id = visit.form.number("subscription")
    text = searched(visit)
    asked = {
        "q": text,
        "status": status if states else "",
        "subscription": str(subscription_id or ""),
        **days_asked(visit),
    }
    return PaymentSearch(text, states, subscription_id), asked


@section.page(f"{_PAYMENTS}/export", needs=Permission.export)
async def export_payments(visit: Visit) -> Response:
    """The list as a file, with the same filters; the audit log keeps who took it."""
    wanted, asked = _asked(visit)
    share = await begin_export(visit)
    await acting.note_export(visit.database, visit.session, "payments", asked, now=visit.now)
    name = f"payments-{visit.merchant_id}{'' if visit.shop.live else '-test'}.csv"
    return csv_file(share, name, _COLUMNS, _cells(visit, wanted))


async def _cells(visit: Visit, wanted: PaymentSearch) -> AsyncIterator[Iterable[object]]:
    async for one in all_payments(visit.database, visit.shop, wanted, page_asked(visit)):
        split = one.split
        yield (
            one.id, one.created_at, one.paid_at, one.merchant_order_id, one.state, one.amount, one.currency, split.net,
            split.reserve, split.fees, one.refunded, one.email, one.first_name, one.last_name, one.country,
            one.card.brand, one.card.last4, one.decline_reason, one.subscription_id,
        )  # fmt: skip


@section.page(_ONE, needs=Permission.view)
async def show_payment(visit: Visit) -> Response:
    """One payment; it tells its own news while the bank's word is awaited."""
    payment = await find_payment_for_team(visit.database, visit.shop, visit.number("payment_id"))
    return await _payment(visit, payment)


async def _payment(visit: Visit, payment: PaymentForTeam, error: str = "", status: int = 200) -> Response:
    seen = payment.seen
    history = await history_of(visit.database, visit.shop, seen.id)
    deliveries = await read_timeline(visit.database, visit.shop, seen.id)
    return visit.part(
        "payment.html",
        "news",
        status=status,
        payment=payment,
        seen=seen,
        state=payment_words.PAYMENT_STATES[seen.state],
        lines=timeline_of(visit.texts, payment, history, deliveries),
        waits_to_ship=seen.state is PaymentState.AUTHORIZED,
        is_suspect=payment.refundable > 0 and await is_warned_of(visit.database, visit.shop, seen.id),
        instrument=instrument_of(payment),
        whole=ALL,
        country=_country(visit, seen),
        exact=partial(exact, visit, seen.currency),
        now=await visit.shop_now(),
        request_key=secrets.token_urlsafe(_REQUEST_KEY),
        typed=visit.form.text("amount", 40),
        error=error,
    )


def instrument_of(payment: PaymentForTeam) -> str:
    """What it was paid with, in words."""
    card = payment.seen.card
    return payment_words.instrument_words(card.brand, card.last4, payment.wallet)


def _country(visit: Visit, seen: SeenPayment) -> str:
    """A country's name in the person's language."""
    named: str = Locale.parse(visit.texts.language, sep="-").territories.get(seen.country, seen.country)
    return named


@section.action(f"{_ONE}/refund", needs=Permission.refund)
async def refund(visit: Visit) -> Response:
    """Give money back once, however often the form is sent: first it is said how much goes to
    whom, and who is sure of that sends it again.
    """
    payment = await find_payment_for_team(visit.database, visit.shop, visit.number("payment_id"))
    try:
        visit.form.require_only("amount", "how", "request_key", "sure")
        visit.form.one_of("how", ALL, _PART, "")
        sure = visit.form.one_of("sure", "1", "")
        amount, key = _amount(visit, payment), _known_key(visit.form.text("request_key", 64))
        if not sure:
            return await _question(visit, payment, amount, key)
        given = await acting.refund_payment(
            visit.services.desk,
            visit.session,
            payment.seen.id,
            amount,
            request_key=key,
            shop_now=await visit.shop_now(),
            now=visit.now,
        )
    except (ConfirmationNeeded, Unavailable, Unsure):
        raise
    except PaydeskError as error:
        payment = await find_payment_for_team(visit.database, visit.shop, payment.seen.id)
        return await _payment(visit, payment, error_words(visit.texts, error), error.status)
    return visit.go(visit.url(f"payments/{payment.seen.id}"), *_given(visit, given))


def _amount(visit: Visit, payment: PaymentForTeam) -> Decimal:
    """What is to be given back: all that can be, or what is typed, with a dot or a comma before
    the decimals. Raises: Malformed.
    """
    if visit.form.text("how", 10) == ALL:
        return payment.refundable
    typed = visit.form.text("amount", 40)
    if not typed:
        raise Malformed(worded("type how much to give back"), "amount")
    return parse_typed(typed, payment.seen.currency)


async def _question(visit: Visit, payment: PaymentForTeam, amount: Decimal, key: str) -> Response:
    """Ask whether so much is to be given back to whom; moves no money.

    Raises: Malformed, Conflict, as the refund itself would.
    """
    seen, money = payment.seen, visit.money(amount, payment.seen.currency)
    row = await find_refundable(visit.database, visit.shop, seen.id)
    released = row is not None and what_to_do(row, visit.shop, seen.id, amount) is MovementKind.VOID
    to = {"amount": money, "instrument": instrument_of(payment)}
    if released:
        question = visit.texts.get("Release %(amount)s to %(instrument)s?") % to
        button = visit.texts.get("Release %(amount)s") % to
    else:
        question = visit.texts.get("Refund %(amount)s to %(instrument)s?") % to
        button = visit.texts.get("Refund %(amount)s") % to
    order = {"order": seen.merchant_order_id, "email": seen.email or "–"}
    return visit.ask(
        question,
        text=visit.texts.get("Order %(order)s of %(email)s. It can't be taken back.") % order,
        button=button,
        back=visit.url(f"payments/{seen.id}"),
        fields={"amount": f"{amount:.{minor_digits(seen.currency)}f}", "request_key": key, "sure": "1"},
    )


def _known_key(key: str) -> str:
    """The form's own key.

    Raises: Malformed, since without one a second click would give the money back twice.
    """
    if len(key) < _REQUEST_KEY or not key.isascii() or not key.isprintable():
        raise Malformed(worded("this form is incomplete; open the payment again"))
    return key


def _given(visit: Visit, given: Refund) -> tuple[str, str]:
    """What to say of a refund, and in which tone."""
    amount = visit.money(given.amount, given.currency)
    if given.status is RefundStatus.PROCESSING:
        said = visit.texts.get("The refund of %(amount)s is on its way; the bank has not answered yet.")
        return said % {"amount": amount}, "info"
    return visit.texts.get("%(amount)s is given back to the customer.") % {"amount": amount}, "success"
