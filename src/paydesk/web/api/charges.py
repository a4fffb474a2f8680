"""`/api/v1/charges`: charging a customer's saved card without them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Annotated

import msgspec
from fastapi import APIRouter, Query
from msgspec import Meta
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from paydesk.core.errors import Malformed
from paydesk.core.money import parse_amount, parse_currency, plain_number
from paydesk.core.paging import LARGEST_ID, Place
from paydesk.domain.billing.charging_saved import LIMITED, Charged, Wanted, charge_saved
from paydesk.domain.merchants.callers import Caller
from paydesk.domain.payments.requests import read_description, read_order_reference
from paydesk.domain.shoppers.for_api import SeenInstrument, list_instruments
from paydesk.web.api.answers import answer, described
from paydesk.web.api.bodies import read_strictly
from paydesk.web.api.idempotency import NAME, ByIdempotencyKey, Passing
from paydesk.web.api.list_parameters import PageParameters, Text
from paydesk.web.api.lists import ApiList
from paydesk.web.api.services import ApiServices, ByPrivateKey, Services

_FIELDS = ("instrument_id", "merchant_order_id", "amount", "currency", "description")
_ID = re.compile(r"[0-9]{1,16}")

_BODY: dict[str, object] = {
    "type": "object",
    "properties": {
        "instrument_id": {"type": ["integer", "string"], "description": "The saved card, from the list of these."},
        "merchant_order_id": {
            "type": "string",
            "maxLength": 255,
            "description": "Your reference of what is charged; each is paid once.",
        },
        "amount": {"type": ["string", "number"], "examples": ["4.00"], "description": "How much."},
        "currency": {
            "type": "string",
            "examples": ["EUR"],
            "description": "The currency in which its customer agreed to a limit.",
        },
        "description": {"type": "string", "maxLength": 1024, "description": "What the customer reads in the receipt."},
    },
    "required": list(_FIELDS),
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class _Asked:
    """The fields of a charge, as they were sent."""

    instrument_id: str
    merchant_order_id: str
    amount: str
    currency: str
    description: str


class InstrumentParameters(PageParameters):
    """What the list of saved cards takes."""

    email: Text | None = Field(None, description="Only of the customer who proved this e-mail address, in any case.")


class LaterChargesShape(msgspec.Struct, frozen=True):
    """What a customer allowed to be charged without them."""

    purpose: Annotated[str, Meta(description="For what, as the form said.")]
    limit: Annotated[Decimal, Meta(description=f"The most within {LIMITED.days} days.")]
    currency: str
    agreed_at: Annotated[int, Meta(description="When they agreed, Unix seconds.")]
    authenticated: Annotated[bool, Meta(description="Whether their bank authenticated them then; without, no charge.")]


class InstrumentShape(msgspec.Struct, frozen=True):
    """A saved card."""

    id: Annotated[int, Meta(description="By which it is charged.")]
    email: Annotated[str, Meta(description="The address that its customer proved.")]
    brand: str
    last4: Annotated[str, Meta(description="Its last four digits.")]
    exp_month: int
    exp_year: int
    later_charges: Annotated[
        LaterChargesShape | None, Meta(description="What may be charged without the customer; null: nothing.")
    ]
    created_at: Annotated[int, Meta(description="When it was saved, Unix seconds.")]


class InstrumentList(msgspec.Struct, frozen=True):
    """Saved cards, newest first."""

    success: bool
    data: list[InstrumentShape]
    next_cursor: str | None


class ChargeShape(msgspec.Struct, frozen=True):
    """A charge, and where it stands."""

    id: Annotated[int, Meta(description="The `payment_order.id` of its pingback.")]
    instrument_id: Annotated[int, Meta(description="The saved card.")]
    merchant_order_id: Annotated[str, Meta(description="Your order reference.")]
    status: Annotated[
        str,
        Meta(
            description="`successful`, or `processing` while the bank has not answered: a pingback follows if it is "
            "paid, and the same call says by then what became of it."
        ),
    ]
    amount: Decimal
    currency: str


class OneCharge(msgspec.Struct, frozen=True):
    """The card is charged, or the bank is about to say."""

    success: bool
    data: ChargeShape


CHARGE_ANSWERS = (OneCharge, InstrumentList)

router = APIRouter(tags=["Saved cards"])
_INSTRUMENTS: ApiList[SeenInstrument] = ApiList(
    "instruments", InstrumentList, lambda one: Place(one.created_at, one.id)
)


@_INSTRUMENTS.route(router, summary="List saved cards")
async def show_instruments(
    caller: ByPrivateKey, services: Services, wanted: Annotated[InstrumentParameters, Query()]
) -> Response:
    """Cards that customers have saved and not removed, newest first."""
    read = partial(list_instruments, services.desk.database, caller.shop, wanted.email)
    return await _INSTRUMENTS.answer(caller.shop, wanted, read, _instrument)


def _instrument(seen: SeenInstrument) -> InstrumentShape:
    later = None
    if seen.charge_agreed_at is not None and seen.charge_limit is not None:
        limit, agreed_at = plain_number(seen.charge_limit), int(seen.charge_agreed_at.timestamp())
        later = LaterChargesShape(seen.charge_for, limit, seen.charge_currency, agreed_at, seen.authenticated)
    return InstrumentShape(
        id=seen.id,
        email=seen.email,
        brand=seen.brand,
        last4=seen.last4,
        exp_month=seen.exp_month,
        exp_year=seen.exp_year,
        later_charges=later,
        created_at=int(seen.created_at.timestamp()),
    )


_CHARGING = f"""Charge a card that a customer has saved at your shop, without them: a one-time payment, told
by a `payment` pingback.

The customer must have agreed to it at a checkout that asked by `later_charges`, and their bank
must have authenticated them then: otherwise 403. No more is charged than they agreed to within
{LIMITED.days} days: beyond that 409. What the bank declines is 402, and the same key is answered so again;
try another time with another key. An `Idempotency-Key` is required, and one key charges once."""


@router.post(
    "/api/v1/charges",
    summary="Charge a saved card",
    description=_CHARGING,
    operation_id="charge_saved_card",
    responses=described(OneCharge, 402, 404, 409, 413),
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
async def post_charge(request: Request, caller: ByPrivateKey, services: Services, once: ByIdempotencyKey) -> Response:
    """Charge a saved card without its customer; `_CHARGING` tells shops of it."""
    if not request.headers.get(NAME):
        raise Malformed(f"the header {NAME} is missing; send a key of your own for each charge, such as a UUID", NAME)
    return await once.answer(caller.shop, partial(_charge, request, caller, services))


async def _charge(request: Request, caller: Caller, services: ApiServices, key: str | None) -> Response:
    assert key is not None, "the header was there"
    fields = await read_strictly(request, *_FIELDS)
    wanted = _wanted(fields or {})
    charged = await charge_saved(services.desk, caller.shop, wanted, request_key=key, now=caller.now)
    # Who asks again learns what the bank has said by then.
    return answer(OneCharge(True, _shape(charged)), Passing if charged.is_open else Response)


def _wanted(fields: dict[str, object]) -> Wanted:
    """The charge that is asked for.

    Raises: Malformed, naming the field.
    """
    given = {name: _text(fields.get(name), name) for name in _FIELDS}
    asked = _Asked(**given)
    if not _ID.fullmatch(asked.instrument_id) or not 0 < int(asked.instrument_id) <= LARGEST_ID:
        raise Malformed("instrument_id is not the number of a saved card", "instrument_id")
    currency = parse_currency(asked.currency)
    return Wanted(
        instrument_id=int(asked.instrument_id),
        merchant_order_id=read_order_reference(given),
        amount=parse_amount(asked.amount, currency),
        currency=currency,
        description=read_description(given),
    )


def _text(value: object, name: str) -> str:
    """A field as text; numbers are taken as they are written."""
    if isinstance(value, Decimal | int) and not isinstance(value, bool):
        return f"{value:f}" if isinstance(value, Decimal) and value.is_finite() else str(value)
    if not isinstance(value, str) or not value:
        raise Malformed(f"{name} is missing, or is no text", name)
    return value


def _shape(charged: Charged) -> ChargeShape:
    wanted = charged.wanted
    return ChargeShape(
        id=charged.payment_id,
        instrument_id=wanted.instrument_id,
        merchant_order_id=wanted.merchant_order_id,
        status="processing" if charged.is_open else "successful",
        amount=plain_number(wanted.amount),
        currency=wanted.currency,
    )
