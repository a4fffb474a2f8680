"""`POST /api/v1/deliveries`: what became of an order's goods (interface.md §8.6)."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any

from fastapi import APIRouter, Security
from starlette.requests import Request
from starlette.responses import Response

from paydesk.core.errors import Malformed
from paydesk.domain.deliveries.confirmations import (
    ADDRESS_FIELDS,
    LONGEST,
    LONGEST_ADDRESS_PART,
    ignored_names,
    read_delivery,
    read_order,
)
from paydesk.domain.deliveries.confirming import Confirmed, confirm
from paydesk.domain.deliveries.delivery_status import DeliveryStatus, GoodsType
from paydesk.domain.merchants.callers import Caller, identify_signer
from paydesk.domain.merchants.ignored_fields import SentWith, note_ignored
from paydesk.domain.merchants.keys import KeyScope, require_scope
from paydesk.domain.payments.time_to_ship import TIME_TO_SHIP, in_words
from paydesk.web.api.answers import answer, described
from paydesk.web.api.bodies import read_fields
from paydesk.web.api.delivery_shapes import DeliveryConfirmed, OneDelivery
from paydesk.web.api.idempotency import ByIdempotencyKey
from paydesk.web.api.services import KEY_HEADER, ApiServices, Services, authenticate
from paydesk.web.visits import client_address, in_sandbox
from paydesk_client.parameters import MOST_FIELDS, MalformedForm, Parameters, leaves

router = APIRouter(tags=["Deliveries"])


def _text(name: str, described_as: str, **more: object) -> dict[str, object]:
    return {"type": "string", "maxLength": LONGEST[name], "description": described_as, **more}


BODY: dict[str, Any] = {
    "type": "object",
    "required": ["status"],
    "properties": {
        "payment_order_id": {
            "type": ["integer", "string"],
            "description": "The `payment_order.id` of the pingback. This or your own reference must be there.",
            "examples": [13330],
        },
        "merchant_reference_id": _text(
            "merchant_reference_id", "Your order reference; if both are sent they must belong together."
        ),
        "merchant_order_id": _text("merchant_order_id", "The same by another name."),
        "status": {
            "type": "string",
            "enum": [str(status) for status in DeliveryStatus],
            "description": "`order_shipped` takes money that is held, and needs the carrier's three fields. For "
            "digital goods `delivered` does.",
        },
        "type": {
            "type": "string",
            "enum": [str(kind) for kind in GoodsType],
            "description": "`physical` if left out.",
        },
        "carrier_type": _text("carrier_type", "The carrier's name.", examples=["DHL"]),
        "carrier_tracking_id": _text("carrier_tracking_id", "The parcel's number."),
        "carrier_tracking_url": _text(
            "carrier_tracking_url",
            "Where the parcel can be followed, http or https; derived from the id for carriers such as FedEx, UPS, "
            "DHL and USPS.",
        ),
        "refundable": {"type": ["boolean", "string"]},
        "notify_user": {"type": ["boolean", "string"]},
        "product_description": _text("product_description", "What was sold."),
        "details": _text("details", "Anything else."),
        "reason": _text("reason", "Why, if there is something to explain."),
        "estimated_delivery_datetime": {
            "type": "string",
            "description": "When it should arrive; UTC without a zone.",
            "examples": ["2020-02-14 11:41:14 +0530"],
        },
        "attachments": {"type": ["array", "string"], "items": {"type": ["string", "object"]}},
        "shipping_address": {
            "type": ["object", "string"],
            "properties": {name: {"type": "string", "maxLength": LONGEST_ADDRESS_PART} for name in ADDRESS_FIELDS},
        },
        "amount": {
            "type": ["number", "string"],
            "description": "What the shipment is worth: all of the order, since a part can't be captured.",
        },
        "quantity": {"type": ["number", "string"], "description": "How many are shipped: all that were ordered."},
        "public_key": {"type": "string", "description": "Without `X-ApiKey`: your public key."},
        "sign_version": {
            "type": "string",
            "enum": ["v1", "v2"],
            "description": "Without `X-ApiKey`: `v1` if left out.",
        },
        "hash": {
            "type": "string",
            "description": "Without `X-ApiKey`: the signature of all other fields, as in the checkout form.",
        },
    },
}
"""What may be sent, as the OpenAPI document tells it."""


_CONFIRMING = f"""Say what became of an order's goods; each confirmation is kept in the order's timeline.

If the account ships goods, the money of a one-time payment is only held until `order_shipped` (or, for digital
goods, `delivered`) takes it. After {in_words(TIME_TO_SHIP)} without it the hold is let go. The same confirmation
again changes nothing and gets the same answer. 409 if the order is not paid, was voided, or if the bank would not
capture; the message gives its reason, and the order stays as it is. Instead of `X-ApiKey` the body may be signed:
`public_key`, `sign_version` and `hash`. `"N/A"` and empty fields count as absent;
fields that are not known are ignored, and your account shows their names."""


@router.post(
    "/api/v1/deliveries",
    summary="Confirm a delivery",
    operation_id="confirm_delivery",
    description=_CONFIRMING,
    responses=described(OneDelivery, 403, 404, 409, 413),
    openapi_extra={
        "security": [{}],
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {"schema": BODY},
                "application/x-www-form-urlencoded": {"schema": BODY},
            },
        },
    },
)
async def post_delivery(
    request: Request,
    services: Services,
    once: ByIdempotencyKey,
    private_key: Annotated[str | None, Security(KEY_HEADER)],
) -> Response:
    """Say what became of an order's goods (interface.md §8.6)."""
    fields = _exact(await read_fields(request))
    caller = await _caller(request, services, private_key, fields)

    async def work(_key: str | None) -> Response:
        order, delivery = read_order(fields), read_delivery(fields)
        database, ignored = services.desk.database, ignored_names(fields)
        await note_ignored(database, caller.shop, SentWith.DELIVERY, ignored, now=services.now())
        confirmed = await confirm(services.desk, caller.shop, order, delivery, now=caller.now)
        return answer(OneDelivery(True, _shape(confirmed)))

    return await once.answer(caller.shop, work)


async def _caller(request: Request, services: ApiServices, private_key: str | None, fields: Parameters) -> Caller:
    """Who confirms: by the header, or without one by the hash in the body."""
    if private_key:
        return await authenticate(request, services, private_key)
    caller = await identify_signer(
        services.desk.database,
        services.desk.vault,
        fields,
        client_address=client_address(request.scope, services.trusted_proxies),
        sandbox=in_sandbox(request),
        calls_per_minute=services.calls_per_minute,
        now=services.now(),
    )
    require_scope(caller.scopes, KeyScope.move)
    return caller


def _exact(fields: Mapping[str, object]) -> Parameters:
    """The fields with JSON's fractions as decimals, which have one text form,
    and not more than a form may have.

    Raises: Malformed if there are too many, or nested too deep.
    """
    exact: Parameters = {name: _decimals(value) for name, value in fields.items()}
    try:
        count = sum(1 for _ in leaves(exact))
    except MalformedForm as error:
        raise Malformed(str(error), error.field) from error
    if count > MOST_FIELDS:
        raise Malformed(f"the body has {count} fields, at most {MOST_FIELDS} are accepted")
    return exact


def _decimals(value: Any) -> Any:
    if isinstance(value, float):
        return Decimal(repr(value))
    if isinstance(value, dict):
        return {name: _decimals(inner) for name, inner in value.items()}
    return [_decimals(inner) for inner in value] if isinstance(value, list) else value


def _shape(confirmed: Confirmed) -> DeliveryConfirmed:
    return DeliveryConfirmed(
        id=confirmed.delivery_id,
        payment_order_id=confirmed.payment_id,
        merchant_reference_id=confirmed.merchant_order_id,
        status=str(confirmed.result),
        created_at=int(confirmed.at.timestamp()),
    )
