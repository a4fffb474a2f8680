"""`/api/v1/payments`: what became of orders."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Path, Query
from starlette.responses import Response

from paydesk.core.paging import Place
from paydesk.domain.deliveries.timeline import read_timeline
from paydesk.domain.payments.for_api import PaymentFilter, SeenPayment, find_payment, list_payments
from paydesk.domain.payments.refunding import refunds_of
from paydesk.web.api.answers import answer, described
from paydesk.web.api.ids import payment_in_path
from paydesk.web.api.list_parameters import PaymentParameters
from paydesk.web.api.lists import ApiList
from paydesk.web.api.services import ByPrivateKey, Services
from paydesk.web.api.shapes import OnePayment, PaymentList
from paydesk.web.api.shaping import payment_shape, payment_with_attempts, states_of

router = APIRouter(tags=["Payments"])
_PAYMENTS: ApiList[SeenPayment] = ApiList("payments", PaymentList, lambda one: Place(one.created_at, one.id))


@_PAYMENTS.route(router)
async def show_payments(
    caller: ByPrivateKey, services: Services, wanted: Annotated[PaymentParameters, Query()]
) -> Response:
    """Payments, newest first. With an order reference:
    that order's payment, and the renewal of that reference.
    """
    states = states_of(wanted.status) if wanted.status else None
    narrowed = PaymentFilter(states, wanted.merchant_order_id, wanted.email, wanted.subscription_id)
    read = partial(list_payments, services.desk.database, caller.shop, narrowed)
    return await _PAYMENTS.answer(caller.shop, wanted, read, payment_shape)


@router.get(
    "/api/v1/payments/{payment_id}",
    summary="Show a payment",
    operation_id="show_payment",
    responses=described(OnePayment, 404),
)
async def show(
    caller: ByPrivateKey, services: Services, payment_id: Annotated[str, Path(description="Its `payment_order.id`.")]
) -> Response:
    """One payment with all attempts to make it, all deliveries and all refunds, first to last."""
    known = await payment_in_path(services.desk.database, caller.shop, payment_id)
    seen, attempts = await find_payment(services.desk.database, caller.shop, known)
    deliveries = await read_timeline(services.desk.database, caller.shop, seen.id)
    refunds = await refunds_of(services.desk.database, caller.shop, seen.id)
    return answer(OnePayment(True, payment_with_attempts(seen, attempts, deliveries, refunds)))
