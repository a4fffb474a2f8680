"""`/api/v1/chargebacks`: what customers' banks took back, and the merchant's evidence."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Path, Query
from starlette.requests import Request
from starlette.responses import Response

from paydesk.core.errors import Malformed
from paydesk.core.money import plain_number
from paydesk.core.paging import Place
from paydesk.domain.chargebacks.for_api import Chargeback, find_chargeback, list_chargebacks
from paydesk.domain.chargebacks.giving_evidence import LONGEST_EVIDENCE, give_evidence
from paydesk.domain.chargebacks.states import ChargebackState
from paydesk.web.api import balance_shapes as shapes
from paydesk.web.api.answers import answer, described
from paydesk.web.api.bodies import read_fields
from paydesk.web.api.list_parameters import ChargebackParameters, known_id
from paydesk.web.api.lists import ApiList
from paydesk.web.api.services import ByPrivateKey, Services
from paydesk.web.api.shaping import seconds_of

router = APIRouter(tags=["Chargebacks"])
_CHARGEBACKS: ApiList[Chargeback] = ApiList(
    "chargebacks", shapes.ChargebackList, lambda one: Place(one.opened_at, one.id)
)

_Id = Annotated[str, Path(description="Its `id`.")]

_BODY = {
    "type": "object",
    "required": ["text"],
    "additionalProperties": False,
    "properties": {
        "text": {
            "type": "string",
            "minLength": 1,
            "maxLength": LONGEST_EVIDENCE,
            "description": "Your side: what was ordered, when and how it was delivered.",
        }
    },
}


@_CHARGEBACKS.route(router)
async def show_chargebacks(
    caller: ByPrivateKey, services: Services, wanted: Annotated[ChargebackParameters, Query()]
) -> Response:
    """Chargebacks, newest first."""
    state = ChargebackState(wanted.status) if wanted.status else None
    read = partial(list_chargebacks, services.desk.database, caller.shop, state)
    return await _CHARGEBACKS.answer(caller.shop, wanted, read, partial(_shape, live=caller.shop.live))


@router.get(
    "/api/v1/chargebacks/{chargeback_id}",
    summary="Show a chargeback",
    operation_id="find_chargeback",
    responses=described(shapes.OneChargeback, 404),
)
async def show(caller: ByPrivateKey, services: Services, chargeback_id: _Id) -> Response:
    """One chargeback as it stands."""
    found = await find_chargeback(services.desk.database, caller.shop, known_id(chargeback_id, "chargeback"))
    return answer(shapes.OneChargeback(True, _shape(found, caller.shop.live)))


@router.post(
    "/api/v1/chargebacks/{chargeback_id}/evidence",
    summary="Give evidence",
    operation_id="give_evidence",
    responses=described(shapes.OneChargeback, 404, 409, 413),
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {"schema": _BODY},
                "application/x-www-form-urlencoded": {"schema": _BODY},
            },
        }
    },
)
async def post_evidence(request: Request, caller: ByPrivateKey, services: Services, chargeback_id: _Id) -> Response:
    """Tell the customer's bank your side while the chargeback is open;
    a later text replaces an earlier one.
    """
    known = known_id(chargeback_id, "chargeback")
    text = _text(await read_fields(request))
    found = await give_evidence(services.desk, caller.shop, known, text, now=caller.now)
    return answer(shapes.OneChargeback(True, _shape(found, caller.shop.live)))


def _text(fields: dict[str, object]) -> str:
    unknown = sorted(set(fields) - {"text"})
    if unknown:
        raise Malformed(f'there is no field "{unknown[0][:40]}", only text', unknown[0])
    text = fields.get("text")
    if not isinstance(text, str):
        raise Malformed('text is missing; give your evidence like {"text": "Delivered on 3 March, signed for"}', "text")
    return text


def _shape(found: Chargeback, live: bool) -> shapes.Chargeback:
    return shapes.Chargeback(
        id=found.id,
        payment_id=found.payment_id,
        merchant_order_id=found.merchant_order_id,
        subscription_id=found.subscription_id,
        status=str(found.state),
        amount=plain_number(found.amount),
        currency=found.currency,
        taken=plain_number(found.taken),
        returned=plain_number(found.returned),
        disputed_amount=plain_number(found.disputed_amount),
        disputed_currency=found.disputed_currency,
        fee=plain_number(found.fee),
        reason=found.reason,
        evidence=found.evidence,
        evidence_at=seconds_of(found.evidence_at),
        opened_at=seconds_of(found.opened_at),
        closed_at=seconds_of(found.closed_at),
        live=live,
    )
