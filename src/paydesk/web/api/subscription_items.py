"""`/api/v1/subscriptions/{id}/items`: what a subscription's next charge has besides its price,
once.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from decimal import Decimal
from functools import partial
from typing import Annotated

import msgspec
from fastapi import APIRouter, Path
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from paydesk.core.errors import Malformed
from paydesk.core.money import parse_amount, plain_number
from paydesk.domain.merchants.callers import Caller
from paydesk.domain.payments.requests import read_description
from paydesk.domain.subscriptions.for_api import find_subscription_for_api
from paydesk.domain.subscriptions.items import (
    Item,
    ItemDone,
    WantedItem,
    add_item,
    list_items,
    take_back_item,
)
from paydesk.domain.subscriptions.subscription_object import price_text
from paydesk.web.api.answers import answer, described
from paydesk.web.api.bodies import read_strictly
from paydesk.web.api.idempotency import ByIdempotencyKey, Once
from paydesk.web.api.ids import subscription_in_path
from paydesk.web.api.list_parameters import known_id
from paydesk.web.api.services import ApiServices, ByPrivateKey, Services
from paydesk.web.api.shapes import Price, Seconds
from paydesk.web.api.subscription_changes import PREVIEW, flag

router = APIRouter(tags=["Subscriptions"])
_Id = Annotated[str, Path(description="The subscription's `id`.")]
_ItemId = Annotated[str, Path(description="The item's `id`.")]
_ITEMS = "/api/v1/subscriptions/{subscription_id}/items"
_FIELDS: dict[str, object] = {
    "amount": {"type": ["string", "number"], "examples": ["4.00"], "description": "How much, in its currency."},
    "description": {"type": "string", "maxLength": 1024, "description": "What the customer reads of it."},
}


class ItemShape(msgspec.Struct, frozen=True):
    """An item of a subscription."""

    id: int
    amount: Decimal
    currency: str
    description: str
    status: Annotated[
        str,
        Meta(
            description="`waiting`: it comes with the next charge. `charged`: that is paid. `taken_back`: by you. "
            "`dropped`: the subscription has ended before."
        ),
    ]
    payment_id: Annotated[
        int | None,
        Meta(description="The `payment_order.id` of the charge with it, once that was tried; null before."),
    ]
    created_at: Seconds
    taken_back_at: Seconds


class ItemAnswer(msgspec.Struct, frozen=True):
    """What came of the wish, or would come of it."""

    item: Annotated[ItemShape | None, Meta(description="The item; null of a preview that adds one.")]
    preview: Annotated[bool, Meta(description="Whether nothing was changed: this is what would come of it.")]
    next_charge_at: Annotated[Seconds, Meta(description="When the card is charged next; 0 while that is not known.")]
    next_charge_amount: Annotated[Price, Meta(description="How much that is, with what waits.")]
    balance: Annotated[
        Decimal,
        Meta(description="What the next charges have besides the price, to four decimals; less than 0 is a credit."),
    ]


class OneItem(msgspec.Struct, frozen=True):
    """An item as it stands, and the charge that it comes with."""

    success: bool
    data: ItemAnswer


class ItemList(msgspec.Struct, frozen=True):
    """Items, newest first."""

    success: bool
    data: list[ItemShape]


ITEM_ANSWERS = (OneItem, ItemList)


def _taking(required: list[str], **properties: object) -> dict[str, object]:
    """How a route describes its body, which may be left out if nothing is required."""
    schema = {
        "type": "object",
        "properties": {**properties, "preview": PREVIEW},
        "required": required,
        "additionalProperties": False,
    }
    kinds = ("application/json", "application/x-www-form-urlencoded")
    content = {kind: {"schema": schema} for kind in kinds}
    return {"requestBody": {"required": bool(required), "content": content}}


@router.post(
    _ITEMS,
    summary="Add a one-off item",
    operation_id="add_subscription_item",
    responses=described(OneItem, 404, 409, 413),
    openapi_extra=_taking(list(_FIELDS), **_FIELDS),
)
async def post_item(
    request: Request, caller: ByPrivateKey, services: Services, once: ByIdempotencyKey, subscription_id: _Id
) -> Response:
    """Have the next charge of a subscription take an amount besides its price, once.

    It is for a set-up, an extra, or what was used. Its customer reads the description on their page
    and in the receipt, and must have agreed to such charges.

    Nothing is charged before. Until that charge is tried the item can be taken back; while a charge
    is failing it comes with the one after. A credit in the balance covers it like a price, no
    coupon makes it cheaper, and no change of plan gives any of it back. Send an `Idempotency-Key`:
    asked again with it, there is one item. 409 while a charge is at the bank, and if none comes any
    more: the subscription has ended, ends with its period, has no card, or has had its payments.
    """

    async def add(fields: dict[str, object], known: int, key: str | None) -> ItemDone:
        seen = await find_subscription_for_api(services.desk.database, caller.shop, known)
        wanted = _wanted(fields, seen.subscription.package.terms.currency)
        act = partial(add_item, services.desk.database, caller.shop, known, wanted, by="api", request_key=key)
        return await act(now=caller.now, preview=_preview(fields))

    return await _once(once, request, caller, services, subscription_id, add, *_FIELDS)


@router.get(
    _ITEMS,
    summary="List one-off items",
    operation_id="list_subscription_items",
    responses=described(ItemList, 404),
)
async def show_items(caller: ByPrivateKey, services: Services, subscription_id: _Id) -> Response:
    """The one-off items of a subscription, newest first, and what became of each."""
    database = services.desk.database
    known = await subscription_in_path(database, caller.shop, subscription_id)
    seen = await find_subscription_for_api(database, caller.shop, known)
    currency = seen.subscription.package.terms.currency
    items = await list_items(database, caller.shop, known)
    return answer(ItemList(True, [_shape(item, currency) for item in items]))


@router.post(
    f"{_ITEMS}/{{item_id}}/take_back",
    summary="Take a one-off item back",
    operation_id="take_back_subscription_item",
    responses=described(OneItem, 404, 409, 413),
    openapi_extra=_taking([]),
)
async def post_take_back(
    request: Request,
    caller: ByPrivateKey,
    services: Services,
    once: ByIdempotencyKey,
    subscription_id: _Id,
    item_id: _ItemId,
) -> Response:
    """Have an item not be charged after all. Taken back again it stays so.

    409 once a charge was tried with it: refund what was paid.
    """

    async def take_back(fields: dict[str, object], known: int, _key: str | None) -> ItemDone:
        act = partial(take_back_item, services.desk.database, caller.shop, known, known_id(item_id, "item"))
        return await act(now=caller.now, preview=_preview(fields))

    return await _once(once, request, caller, services, subscription_id, take_back)


async def _once(
    once: Once,
    request: Request,
    caller: Caller,
    services: ApiServices,
    subscription_id: str,
    wish: Callable[[dict[str, object], int, str | None], Awaitable[ItemDone]],
    *known: str,
) -> Response:
    """Carry a wish out once for its Idempotency-Key."""

    async def work(key: str | None) -> Response:
        fields = await read_strictly(request, *known, "preview") or {}
        found = await subscription_in_path(services.desk.database, caller.shop, subscription_id)
        done = await wish(fields, found, key)
        return answer(OneItem(True, _answered(done, preview=_preview(fields))))

    return await once.answer(caller.shop, work)


def _preview(fields: dict[str, object]) -> bool:
    return flag(fields.get("preview", False))


def _wanted(fields: dict[str, object], currency: str) -> WantedItem:
    """The item that is asked for. Raises: Malformed, naming the field."""
    amount = parse_amount(_text(fields.get("amount"), "amount"), currency)
    return WantedItem(amount, read_description({"description": _text(fields.get("description"), "description")}))


def _text(value: object, name: str) -> str:
    """A field as text; an amount may be a number, as it is written. Raises: Malformed."""
    if name == "amount" and isinstance(value, Decimal | int) and not isinstance(value, bool):
        return f"{value:f}" if isinstance(value, Decimal) and value.is_finite() else str(value)
    if not isinstance(value, str) or not value:
        raise Malformed(f"{name} is missing, or is no text", name)
    return value


def _answered(done: ItemDone, *, preview: bool) -> ItemAnswer:
    currency = done.subscription.package.terms.currency
    return ItemAnswer(
        item=_shape(done.item, currency) if done.item is not None else None,
        preview=preview,
        next_charge_at=int(done.next_at.timestamp()) if done.next_at else 0,
        next_charge_amount=price_text(done.next_amount, currency),
        balance=plain_number(done.balance),
    )


def _shape(item: Item, currency: str) -> ItemShape:
    return ItemShape(
        id=item.id,
        amount=plain_number(item.amount),
        currency=currency,
        description=item.description,
        status=str(item.state),
        payment_id=item.payment_id,
        created_at=int(item.created_at.timestamp()),
        taken_back_at=int(item.taken_back_at.timestamp()) if item.taken_back_at else 0,
    )
