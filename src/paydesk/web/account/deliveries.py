"""Deliveries: the orders that wait to be shipped, soonest first, what was confirmed,
and the form to confirm.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from starlette.responses import Response

from paydesk.core.errors import Malformed, NotFound, PaydeskError
from paydesk.core.paging import LARGEST_ID
from paydesk.domain.accounts.roles import Permission
from paydesk.domain.business import acting
from paydesk.domain.business.deliveries_for_team import newest_deliveries, orders_to_ship
from paydesk.domain.business.payments_for_team import PaymentForTeam, find_payment_for_team
from paydesk.domain.deliveries.carriers import NAMES
from paydesk.domain.deliveries.confirmations import all_wrong, read_delivery, read_order
from paydesk.domain.deliveries.confirming import Result
from paydesk.domain.deliveries.delivery_status import GoodsType
from paydesk.domain.deliveries.timeline import read_timeline
from paydesk.domain.payments.states import TAKEN, PaymentState
from paydesk.domain.payments.time_to_ship import TIME_TO_SHIP
from paydesk.web.account import delivery_words
from paydesk.web.account.face import FACE
from paydesk.web.console import payment_words
from paydesk.web.console.guards import Section
from paydesk.web.console.list_parameters import ROWS, list_address, mark_of, place_in
from paydesk.web.console.problems import sentence, told, with_retry
from paydesk.web.console.visit import Visit
from paydesk.web.texts import mark

section = Section(FACE)
_DELIVERIES = "/account/{merchant_id}/deliveries"
_ONE = f"{_DELIVERIES}/{{payment_id}}"

_LABELS: Mapping[str, str] = {
    "status": mark("What happened"),
    "type": mark("Kind of goods"),
    "carrier_type": mark("Carrier"),
    "carrier_tracking_id": mark("Tracking id"),
    "carrier_tracking_url": mark("Tracking link"),
    "details": mark("Note"),
}
"""The fields of the form, by the names that the API has for them."""

_GOODS: Mapping[GoodsType, str] = {GoodsType.PHYSICAL: mark("Parcels"), GoodsType.DIGITAL: mark("Digital goods")}

_WORDS: Mapping[str, str] = {
    **{name: label for name, label in _LABELS.items() if name.startswith("carrier_")},
    **{str(status): words for status, words in delivery_words.DELIVERY_STATUSES.items() if "_" in status},
}
_API_NAMES = re.compile(rf"\b({'|'.join(_WORDS)})\b")


@section.page(_DELIVERIES, needs=Permission.view)
async def show_waiting(visit: Visit) -> Response:
    """Orders whose money is held until they are shipped, the most urgent first."""
    after, path = place_in(visit.form.text("after", 60)), visit.url("deliveries")
    found = await orders_to_ship(visit.database, visit.shop, after=after, most=ROWS + 1)
    shown = found[:ROWS]
    further = mark_of(shown[-1].ship_by, shown[-1].payment_id) if len(found) > ROWS else ""
    return visit.page(
        "deliveries.html",
        orders=shown,
        views=_views(visit),
        days=TIME_TO_SHIP.days,
        now=await visit.shop_now(),
        first=path if after else "",
        further=list_address(path, {"after": further}) if further else "",
    )


def _views(visit: Visit) -> list[tuple[str, str]]:
    return [
        (visit.url("deliveries"), visit.texts.get("To ship")),
        (visit.url("deliveries/confirmed"), visit.texts.get("Confirmed")),
    ]


@section.page(f"{_DELIVERIES}/confirmed", needs=Permission.view)
async def show_confirmed(visit: Visit) -> Response:
    """What was confirmed, newest first."""
    before, path = visit.form.number("before"), visit.url("deliveries/confirmed")
    found = await newest_deliveries(visit.database, visit.shop, before=before or LARGEST_ID, most=ROWS + 1)
    shown = found[:ROWS]
    return visit.page(
        "deliveries_confirmed.html",
        deliveries=shown,
        views=_views(visit),
        statuses=delivery_words.DELIVERY_STATUSES,
        states=payment_words.PAYMENT_STATES,
        now=await visit.shop_now(),
        newest=path if before else "",
        older=list_address(path, {"before": shown[-1].id}) if len(found) > ROWS else "",
    )


@section.page(_ONE, needs=Permission.confirm_delivery)
async def show_form(visit: Visit) -> Response:
    """The form to say what became of an order's goods."""
    return await _form(visit, await _order(visit))


async def _order(visit: Visit) -> PaymentForTeam:
    """The order that the form is about. Raises: NotFound if it is no paid one."""
    payment = await find_payment_for_team(visit.database, visit.shop, visit.number("payment_id"))
    if payment.seen.state not in TAKEN | {PaymentState.AUTHORIZED, PaymentState.VOIDED}:
        raise NotFound(f"payment {payment.seen.id} is not paid, there is nothing to deliver")
    return payment


async def _form(
    visit: Visit, payment: PaymentForTeam, errors: dict[str, str] | None = None, status: int = 200
) -> Response:
    get = visit.texts.get
    return visit.page(
        "delivery.html",
        status=status,
        payment=payment,
        seen=payment.seen,
        state=payment_words.PAYMENT_STATES[payment.seen.state],
        held=payment.seen.state is PaymentState.AUTHORIZED,
        labels={name: get(text) for name, text in _LABELS.items()},
        statuses=[(str(value), get(text)) for value, text in delivery_words.DELIVERY_STATUSES.items()],
        goods=[(str(value), get(text)) for value, text in _GOODS.items()],
        status_words=delivery_words.DELIVERY_STATUSES,
        carriers=NAMES,
        said_before=await read_timeline(visit.database, visit.shop, payment.seen.id),
        typed={name: visit.form.text(name, 5000) for name in _LABELS},
        now=await visit.shop_now(),
        errors=errors or {},
    )


@section.action(_ONE, needs=Permission.confirm_delivery)
async def confirm(visit: Visit) -> Response:
    """Keep what the form says; a shipment takes the money that is held."""
    payment = await _order(visit)
    said = {name: visit.form.text(name, 5000) for name in _LABELS}
    if wrong := all_wrong(said):
        return await _form(visit, payment, _errors(visit, wrong), wrong[0].status)
    try:
        confirmed = await acting.confirm_delivery(
            visit.services.desk,
            visit.session,
            read_order({"payment_order_id": payment.seen.id}),
            read_delivery(said),
            shop_now=await visit.shop_now(),
            now=visit.now,
        )
    except PaydeskError as error:
        form = await _form(visit, await _order(visit), _errors(visit, [error]), error.status)
        return with_retry(form, error)
    return visit.go(visit.url(f"payments/{payment.seen.id}"), *_result(visit, confirmed.result))


def _errors(visit: Visit, errors: Sequence[PaydeskError]) -> dict[str, str]:
    """The messages at their fields, in the words that stand on the page in place of the API's."""
    return {_field_of(error): sentence(visit.texts, _in_words(visit, told(visit.texts, error))) for error in errors}


def _field_of(error: PaydeskError) -> str:
    field = error.fields[0] if isinstance(error, Malformed) and error.fields else ""
    return field if field in _LABELS else ""


def _in_words(visit: Visit, message: str) -> str:
    """A message with labels and names of choices where the API's names stood."""
    return _API_NAMES.sub(lambda found: visit.texts.get(_WORDS[found[0]]), message)


def _result(visit: Visit, result: Result) -> tuple[str, str]:
    if result is Result.CAPTURED:
        return visit.texts.get("The shipment is confirmed, and the money is yours."), "success"
    if result is Result.PROCESSING:
        return visit.texts.get("The shipment is confirmed; the bank has not answered yet whether it paid."), "info"
    return visit.texts.get("Kept in the order's timeline."), "success"
