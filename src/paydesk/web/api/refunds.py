"""`POST /payment/{id}/refund`: money back to the customer, by the path that clients know
(interface.md §8.3).
"""

from __future__ import annotations

import json
import re
from decimal import Decimal
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Path
from starlette.requests import Request
from starlette.responses import Response

from paydesk.core.errors import Malformed
from paydesk.core.money import plain_number
from paydesk.domain.merchants.callers import Caller
from paydesk.domain.payments.refundable import INVALID_AMOUNT
from paydesk.domain.payments.refunding import Refund, refund
from paydesk.web.api.answers import answer, described
from paydesk.web.api.bodies import read_strictly
from paydesk.web.api.idempotency import REPLAYED, ByIdempotencyKey
from paydesk.web.api.ids import payment_in_path
from paydesk.web.api.refund_shapes import OneRefund, Refunded
from paydesk.web.api.services import ApiServices, ByPrivateKey, Services

_PLAIN_NUMBER = re.compile(r"[0-9]{1,15}(\.[0-9]{1,18})?")

_BODY = {
    "type": "object",
    "properties": {
        "amount": {
            "type": ["string", "number"],
            "examples": ["4.00"],
            "description": "How much, in the order's currency.",
        }
    },
    "required": ["amount"],
    "additionalProperties": False,
}

router = APIRouter(tags=["Payments"])


@router.post(
    "/payment/{payment_id}/refund",
    summary="Refund a payment",
    operation_id="refund_payment",
    responses=described(OneRefund, 404, 409, 413),
    openapi_extra={
        "requestBody": {
            "required": False,
            "content": {
                "application/json": {"schema": _BODY},
                "application/x-www-form-urlencoded": {"schema": _BODY},
            },
        }
    },
)
async def post_refund(
    request: Request,
    caller: ByPrivateKey,
    services: Services,
    once: ByIdempotencyKey,
    payment_id: Annotated[str, Path(description="Its `payment_order.id`.")],
) -> Response:
    """Give back an amount, or all that is left; as often as you like, never more than was paid.

    All is given back for a call without any body, of zero bytes; a body must hold the `amount` and
    nothing else, and be what its content type says. A `refund` pingback, or a `partial_refund`
    while something is left, tells of it once. An order that is not captured yet is let go, which is
    possible for all of it only. If the bank answers late the status is `processing` and the
    pingback follows. 400 `Invalid requested amount: …` says what is wrong with it, and
    `This transaction was already refunded` that nothing is left; 409 if it is not paid, is charged
    back, or the bank refuses. Send an `Idempotency-Key`, so that you can safely try again; without
    one an equal call within a day of one that was never answered is taken for its repeat, and
    answered with `Idempotent-Replayed: true`.
    """
    return await once.answer(caller.shop, partial(_refund, request, caller, services, payment_id))


async def _refund(
    request: Request, caller: Caller, services: ApiServices, payment_id: str, key: str | None
) -> Response:
    known = await payment_in_path(services.desk.database, caller.shop, payment_id)
    fields = await read_strictly(request, "amount")
    amount = None if fields is None else _amount(fields["amount"])
    given = await refund(services.desk, caller.shop, known, amount, requested_by="api", request_key=key, now=caller.now)
    answered = answer(OneRefund(True, _shape(given)))
    if given.again:
        answered.headers[REPLAYED] = "true"
    return answered


def _amount(given: object) -> Decimal:
    """How much to give back; an amount that is there but empty is not all of it.

    Raises: Malformed if it is no number that an amount could be.
    """
    if isinstance(given, str) and _PLAIN_NUMBER.fullmatch(given):
        return Decimal(given)
    if isinstance(given, int | Decimal) and not isinstance(given, bool):
        number = plain_number(Decimal(given))
        if number == given and number.is_finite():
            return number
    if given in ("", None):
        raise Malformed(
            f"{INVALID_AMOUNT}: amount is empty; to give back all that is left send no body at all", "amount"
        )
    shown = given if isinstance(given, str) else json.dumps(given, default=str)
    raise Malformed(f'{INVALID_AMOUNT}: "{shown[:40]}" is not a plain decimal number; write it like "4.00"', "amount")


def _shape(given: Refund) -> Refunded:
    return Refunded(
        id=given.payment_id,
        reference_id=given.reference_id,
        status=str(given.status),
        merchant_order_id=given.merchant_order_id,
        currency=given.currency,
        refund_amount=plain_number(given.amount),
        total_refunded_amount=plain_number(given.total),
    )
