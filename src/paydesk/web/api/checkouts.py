"""`/api/v1/checkouts`: a checkout for those who don't want to sign a form."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from functools import partial
from typing import Annotated

import msgspec
from fastapi import APIRouter, Path
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from paydesk.core.errors import Conflict, Malformed
from paydesk.core.money import plain_number
from paydesk.core.shrinking import LARGEST
from paydesk.domain.billing.charging_saved import LIMITED
from paydesk.domain.business.coupons_for_team import find_coupon_settings
from paydesk.domain.coupons.applying import apply_signed, check_coupon
from paydesk.domain.merchants.callers import Caller
from paydesk.domain.payments import opening
from paydesk.domain.payments.checkouts import Checkout, Standing, find_own_checkout
from paydesk.domain.payments.fetching_pictures import Fetched
from paydesk.domain.payments.line_items import FIELD as LINE_ITEMS
from paydesk.domain.payments.line_items import LARGEST_QUANTITY, LONGEST_NAME, LONGEST_URL, MOST_ITEMS, LineItem
from paydesk.domain.payments.requests import COUPON, LONGEST, PREFILLS, QUANTITY
from paydesk.web.api.answers import answer, described
from paydesk.web.api.bodies import JSON_TYPE, media_type, read_strictly
from paydesk.web.api.idempotency import NAME, ByIdempotencyKey, Passing
from paydesk.web.api.list_parameters import known_id
from paydesk.web.api.services import ApiServices, ByPrivateKey, BySigningKey, Services
from paydesk.web.item_pictures import picture_address

_WORDS: Mapping[str, str] = {
    "merchant_order_id": "Your reference of the order; each is paid once.",
    "amount": "How much, a text with a dot before the decimals; of a subscription the price per period.",
    "currency": "ISO 4217, such as `EUR`.",
    "description": "What the customer pays for, on one line.",
    "success_url": "Where the customer goes once it is paid; without, our page says thank you.",
    "pingback_url": "Where this order's pingbacks go, instead of the account's URL.",
    "email": "Fills in the page.",
    "first_name": "Fills in the page.",
    "last_name": "Fills in the page.",
    "country": "Fills in the page: two letters, such as `DE`.",
    "city": "Fills in the page, which asks for it then.",
    "zip": "Fills in the page, which asks for it then.",
    "recurring_name": "What the customer subscribes to; this and the next two make it a subscription.",
    "recurring_sku_id": "Your own name for it.",
    "recurring_period": "How often: `30d`, `2w`, `1m` or `1y`.",
    "recurring_trial_period": "A first period of another length.",
    "recurring_trial_amount": "What that costs; without, nothing.",
    QUANTITY: "Of how many it is, where the account sells several of a thing; prices are then of one, and the page "
    "charges so many times as much.",
    COUPON: "A coupon, where the account lets forms bring one; `amount` in the answer has it off, unless it can't be "
    "used now.",
    "recurring_duration": "How many payments, such as `12`, or how long, such as `1y`; without, until it is cancelled.",
    "later_charges": "What you ask to be allowed to charge later.",
    "later_charges_limit": f"The most of that within {LIMITED.days} days.",
    "sign_version": "How its pingbacks are signed: `v2`, or `v1` for old programs.",
}

_ITEM: dict[str, object] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": LONGEST_NAME, "description": "What it is."},
        "unit_price": {"type": "string", "examples": ["4.00"], "description": "What one costs; `0` for a gift."},
        "quantity": {
            "type": "integer",
            "minimum": 1,
            "maximum": LARGEST_QUANTITY,
            "default": 1,
            "description": "How many.",
        },
        "picture_url": {
            "type": "string",
            "maxLength": LONGEST_URL,
            "description": f"A PNG, JPEG or WebP picture on the public internet, at most {LARGEST.content >> 20} MB. "
            "It is fetched now, made small and shown from here.",
        },
    },
    "required": ["name", "unit_price"],
    "additionalProperties": False,
}

_BODY: dict[str, object] = {
    "type": "object",
    "properties": {
        **{
            name: {"type": "string", "description": _WORDS[name]}
            | ({"maxLength": most} if (most := LONGEST.get(name) or PREFILLS.get(name)) else {})
            for name in opening.TEXTS
        },
        LINE_ITEMS: {
            "type": "array",
            "minItems": 1,
            "maxItems": MOST_ITEMS,
            "items": _ITEM,
            "description": "What the order is made of. Together they cost `amount`, so many times as much with "
            f"`{QUANTITY}`.",
        },
    },
    "required": list(opening.REQUIRED),
    "additionalProperties": False,
}


class LineItemShape(msgspec.Struct, frozen=True):
    """One line of an order."""

    name: str
    unit_price: Decimal
    quantity: int
    picture: Annotated[str | None, Meta(description="Where its small picture is, null if it has none.")]
    picture_problem: Annotated[
        str | None, Meta(description="Why its picture could not be had, said once, when the checkout is made.")
    ]


class CheckoutShape(msgspec.Struct, frozen=True):
    """A checkout, and where it stands."""

    id: int
    url: Annotated[str, Meta(description="Send your customer there.")]
    status: Annotated[
        Standing,
        Meta(
            description="`open` until somebody pays; `processing`, `challenged` or `pending` while a bank has not "
            "decided; `paid`; `closed` if the order was paid another way; `reversed` once all was given back; "
            "`expired`; `suspended` while the account is; `sold_out` at a payment link; `coupon_over` "
            "if its coupon can't be used. Deliver by the pingback."
        ),
    ]
    merchant_order_id: str
    amount: Annotated[Decimal, Meta(description="What is paid on the page.")]
    currency: str
    description: str
    payment_order_id: Annotated[int | None, Meta(description="Of its pingback, once somebody tried to pay.")]
    line_items: list[LineItemShape]
    created_at: Annotated[int, Meta(description="Unix seconds.")]
    expires_at: Annotated[int, Meta(description="Until when it can be paid, Unix seconds.")]


class OneCheckout(msgspec.Struct, frozen=True):
    """A checkout."""

    success: bool
    data: CheckoutShape


CHECKOUT_ANSWERS = (OneCheckout,)

router = APIRouter(tags=["Checkouts"])


@router.post(
    "/api/v1/checkouts",
    summary="Make a checkout",
    operation_id="make_checkout",
    responses=described(OneCheckout, 409, 413),
    openapi_extra={"requestBody": {"required": True, "content": {JSON_TYPE: {"schema": _BODY}}}},
)
async def post_checkout(request: Request, caller: BySigningKey, services: Services, once: ByIdempotencyKey) -> Response:
    """Make a checkout without a signed form, and answer its address: the same page, the same
    pingbacks. Moves no money.

    Amounts are texts, and a field that is not known is refused. An `Idempotency-Key` is required,
    and one key makes one checkout. A picture that can't be had is left out.
    """
    if not request.headers.get(NAME):
        raise Malformed(f"the header {NAME} is missing; send a key of your own for each checkout, such as a UUID", NAME)
    return await once.answer(caller.shop, partial(_open, request, caller, services))


async def _open(request: Request, caller: Caller, services: ApiServices, key: str | None) -> Response:
    assert key is not None, "the header was there"
    if media_type(request) != JSON_TYPE:
        raise Malformed(f"send the body as {JSON_TYPE}, and name it in the header Content-Type")
    asked = opening.read_asked(await read_strictly(request, *opening.FIELDS) or {})
    if asked.coupon:
        await _require_coupon(services, caller, asked)
    checkout, pictures = await opening.open_asked(
        services.desk, services.pictures, caller, asked, request_key=key, real_now=services.now()
    )
    if asked.coupon:
        checkout = await _reduced(services, caller, checkout, asked.coupon)
    # Its address is a key to it and rests nowhere: who asks again is answered from the checkout.
    problems = [pictures.get(one.picture_url, Fetched()).problem for one in asked.items]
    return answer(OneCheckout(True, _shape(services, checkout, problems)), Passing)


async def _require_coupon(services: ApiServices, caller: Caller, asked: opening.Asked) -> None:
    """Raises: Malformed if the coupon is none for this; Conflict if the account doesn't take it."""
    database = services.desk.database
    if not (await find_coupon_settings(database, caller.shop.merchant_id)).signs_coupons:
        raise Conflict(f"{COUPON} is not switched on; allow coupons in forms under Coupons in your account")
    await check_coupon(database, caller.shop, asked.request.terms, asked.coupon)


async def _reduced(services: ApiServices, caller: Caller, checkout: Checkout, code: str) -> Checkout:
    """The checkout at the price that a coupon leaves; as it is if that can't be used now."""
    database, now = services.desk.database, services.now()
    link = await apply_signed(database, checkout.link, code, now)
    if link is None or link.row_id is None:
        return checkout
    return await find_own_checkout(database, caller.shop, link.row_id, now=now)


@router.get(
    "/api/v1/checkouts/{checkout_id}",
    summary="Show a checkout",
    operation_id="show_checkout",
    responses=described(OneCheckout, 404),
)
async def show_checkout(
    caller: ByPrivateKey, services: Services, checkout_id: Annotated[str, Path(description="Its `id`.")]
) -> Response:
    """One checkout, made by the API or by a form, and where it stands."""
    known = known_id(checkout_id, "checkout")
    checkout = await find_own_checkout(services.desk.database, caller.shop, known, now=services.now())
    return answer(OneCheckout(True, _shape(services, checkout)))


def _shape(services: ApiServices, checkout: Checkout, problems: list[str] | None = None) -> CheckoutShape:
    base, told = services.base_of(checkout.shop), problems or [""] * len(checkout.items)

    def line(item: LineItem, problem: str) -> LineItemShape:
        picture = base + picture_address(checkout.shop, item.picture) if item.picture else None
        return LineItemShape(item.name, plain_number(item.unit_price), item.quantity, picture, problem or None)

    return CheckoutShape(
        id=checkout.id,
        url=f"{base}/checkout/{checkout.link.token(services.desk.vault)}",
        status=checkout.standing,
        merchant_order_id=checkout.merchant_order_id,
        amount=plain_number(checkout.amount),
        currency=checkout.currency,
        description=checkout.description,
        payment_order_id=checkout.attempt.payment_id if checkout.attempt is not None else None,
        line_items=[line(item, problem) for item, problem in zip(checkout.items, told, strict=True)],
        created_at=int(checkout.created_at.timestamp()),
        expires_at=int(checkout.expires_at.timestamp()),
    )
