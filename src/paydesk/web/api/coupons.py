"""`/api/v1/coupons`: what takes something off the price of a subscription."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import Annotated

import msgspec
from fastapi import APIRouter, Path, Query
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from paydesk.core.errors import Malformed
from paydesk.core.money import plain_number
from paydesk.core.paging import Place, read_moment
from paydesk.domain.coupons.coupons import LONGEST_CODE, MOST_SKUS, MOST_USES, Coupon, CouponTerms, read_terms
from paydesk.domain.coupons.keeping import find_coupon, list_coupons, make_coupon, switch_coupon
from paydesk.domain.merchants.callers import Caller
from paydesk.domain.subscriptions.subscription_terms import MOST_PAYMENTS
from paydesk.web.api.answers import answer, described
from paydesk.web.api.bodies import JSON_TYPE, read_strictly
from paydesk.web.api.idempotency import ByIdempotencyKey
from paydesk.web.api.list_parameters import PageParameters, known_id
from paydesk.web.api.lists import ApiList
from paydesk.web.api.services import ApiServices, ByPrivateKey, Services

_SKUS = "sku_ids"
_DATES = ("valid_from", "valid_until")
_WHOLE = ("periods", "most_uses", "most_per_customer")


def _described_moment(what: str) -> dict[str, object]:
    return {"type": ["string", "integer"], "description": f"{what} Unix seconds or ISO 8601 (UTC without a zone)."}


_BODY: dict[str, object] = {
    "type": "object",
    "properties": {
        "code": {
            "type": "string",
            "maxLength": LONGEST_CODE,
            "description": "What customers type, in any case: letters, digits, `-` and `_`.",
            "examples": ["SPRING"],
        },
        "percent": {"type": "string", "description": "What it takes off, at most 100.", "examples": ["20"]},
        "amount": {"type": "string", "description": "Or how much.", "examples": ["5.00"]},
        "currency": {"type": "string", "description": "ISO 4217; needed with `amount`. Without, of any currency."},
        "periods": {
            "type": "integer",
            "minimum": 1,
            "maximum": MOST_PAYMENTS,
            "description": "For how many regular payments; left out: for all.",
        },
        "valid_from": _described_moment("From when it can be used."),
        "valid_until": _described_moment("Until when."),
        "most_uses": {"type": "integer", "minimum": 1, "maximum": MOST_USES, "description": "How often in all."},
        "most_per_customer": {
            "type": "integer",
            "minimum": 1,
            "maximum": MOST_USES,
            "description": "How often by one customer, known by their e-mail address.",
        },
        _SKUS: {
            "type": "array",
            "items": {"type": "string"},
            "maxItems": MOST_SKUS,
            "description": "For which packages (`recurring_sku_id`); left out: for all.",
        },
    },
    "required": ["code"],
    "additionalProperties": False,
}
_FIELDS = ("code", "percent", "amount", "currency", *_WHOLE, *_DATES, _SKUS)


class CouponShape(msgspec.Struct, frozen=True):
    """A coupon."""

    id: int
    code: str
    percent: Annotated[Decimal | None, Meta(description="What it takes off, null if it is an amount.")]
    amount: Annotated[Decimal | None, Meta(description="How much it takes off, null if it is a share.")]
    currency: Annotated[str | None, Meta(description="Of what it is for; null: of any.")]
    periods: Annotated[int | None, Meta(description="For how many regular payments; null: for all.")]
    valid_from: Annotated[int | None, Meta(description="Unix seconds.")]
    valid_until: Annotated[int | None, Meta(description="Unix seconds.")]
    most_uses: Annotated[int | None, Meta(description="How often it may be used in all; null: any number.")]
    most_per_customer: Annotated[int | None, Meta(description="How often by one customer; null: any number.")]
    sku_ids: Annotated[list[str], Meta(description="For which packages; empty: for all.")]
    active: Annotated[bool, Meta(description="Whether it can be used, but for its dates and uses.")]
    uses: Annotated[int, Meta(description="How often it was used, what is being paid just now included.")]
    created_at: Annotated[int, Meta(description="Unix seconds.")]


class OneCoupon(msgspec.Struct, frozen=True):
    """A coupon."""

    success: bool
    data: CouponShape


class CouponList(msgspec.Struct, frozen=True):
    """Coupons, newest first."""

    success: bool
    data: list[CouponShape]
    next_cursor: str | None


COUPON_ANSWERS = (OneCoupon, CouponList)

router = APIRouter(tags=["Coupons"])
_COUPONS: ApiList[Coupon] = ApiList("coupons", CouponList, lambda one: Place(one.created_at, one.id))


@_COUPONS.route(router)
async def show_coupons(
    caller: ByPrivateKey, services: Services, wanted: Annotated[PageParameters, Query()]
) -> Response:
    """Coupons, newest first."""
    read = partial(list_coupons, services.desk.database, caller.shop)
    return await _COUPONS.answer(caller.shop, wanted, read, _shape)


@router.post(
    "/api/v1/coupons",
    summary="Make a coupon",
    operation_id="make_coupon",
    responses=described(OneCoupon, 409, 413),
    openapi_extra={"requestBody": {"required": True, "content": {JSON_TYPE: {"schema": _BODY}}}},
)
async def post_coupon(request: Request, caller: ByPrivateKey, services: Services, once: ByIdempotencyKey) -> Response:
    """Make a coupon for subscriptions. Moves no money.

    Give `percent` or `amount`. Its terms never change: the same ones under the same code are the
    same coupon, other ones are 409.
    """
    return await once.answer(caller.shop, partial(_make, request, caller, services))


async def _make(request: Request, caller: Caller, services: ApiServices, _key: str | None) -> Response:
    terms = _terms(await read_strictly(request, *_FIELDS) or {})
    made = await make_coupon(services.desk.database, caller.shop, terms, now=caller.now)
    return answer(OneCoupon(True, _shape(made)))


@router.get(
    "/api/v1/coupons/{coupon_id}",
    summary="Show a coupon",
    operation_id="show_coupon",
    responses=described(OneCoupon, 404),
)
async def show_coupon(
    caller: ByPrivateKey, services: Services, coupon_id: Annotated[str, Path(description="Its `id`.")]
) -> Response:
    """One coupon, and how often it was used."""
    found = await find_coupon(services.desk.database, caller.shop, known_id(coupon_id, "coupon"))
    return answer(OneCoupon(True, _shape(found)))


@router.post(
    "/api/v1/coupons/{coupon_id}/switch_off",
    summary="Switch a coupon off",
    operation_id="switch_coupon_off",
    responses=described(OneCoupon, 404),
)
async def switch_off(
    caller: ByPrivateKey, services: Services, coupon_id: Annotated[str, Path(description="Its `id`.")]
) -> Response:
    """Let nobody use a coupon any more; who has used it keeps what they agreed to. Moves no money.

    A second call changes nothing; in your account it can be switched on again.
    """
    known = known_id(coupon_id, "coupon")
    return answer(OneCoupon(True, _shape(await switch_coupon(services.desk.database, caller.shop, known, on=False))))


def _terms(fields: Mapping[str, object]) -> CouponTerms:
    """What is asked for.

    Raises: Malformed, naming the field.
    """
    skus = fields.get(_SKUS) or []
    if not isinstance(skus, list) or not all(isinstance(sku, str) for sku in skus):
        raise Malformed(f"{_SKUS} must be a list of texts", _SKUS)
    given = {name: _text(fields[name], name) for name in _FIELDS if name != _SKUS and fields.get(name) is not None}
    dates = {name: _moment(given.pop(name, ""), name) for name in _DATES}
    return read_terms(given, tuple(skus), **dates)


def _text(value: object, name: str) -> str:
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        return f"{value:f}" if isinstance(value, Decimal) and value.is_finite() else str(value)
    if not isinstance(value, str):
        raise Malformed(f"{name} must be a text or a number", name)
    return value


def _moment(text: str, name: str) -> datetime | None:
    try:
        return read_moment(text) if text else None
    except ValueError as error:
        raise Malformed(f"{name}: {error}", name) from error


def _shape(coupon: Coupon) -> CouponShape:
    return CouponShape(
        id=coupon.id,
        code=coupon.code,
        percent=None if coupon.percent is None else plain_number(coupon.percent),
        amount=None if coupon.amount is None else plain_number(coupon.amount),
        currency=coupon.currency,
        periods=coupon.periods,
        valid_from=_seconds(coupon.valid_from),
        valid_until=_seconds(coupon.valid_until),
        most_uses=coupon.most_uses,
        most_per_customer=coupon.most_per_customer,
        sku_ids=coupon.skus,
        active=coupon.active,
        uses=coupon.uses,
        created_at=int(coupon.created_at.timestamp()),
    )


def _seconds(at: datetime | None) -> int | None:
    return None if at is None else int(at.timestamp())
