"""`/api/v1/subscriptions`, and cancelling one by the path that clients know (interface.md §8.4)."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Path, Query
from starlette.requests import Request
from starlette.responses import Response

from paydesk.core.paging import Place
from paydesk.domain.merchants.callers import Caller
from paydesk.domain.subscriptions.ending import cancel
from paydesk.domain.subscriptions.for_api import (
    SeenSubscription,
    SubscriptionFilter,
    find_subscription_for_api,
    list_subscriptions,
)
from paydesk.domain.subscriptions.states import SubscriptionState
from paydesk.web.api.answers import answer, described
from paydesk.web.api.bodies import read_fields
from paydesk.web.api.idempotency import ByIdempotencyKey
from paydesk.web.api.ids import subscription_in_path
from paydesk.web.api.list_parameters import SubscriptionParameters
from paydesk.web.api.lists import ApiList
from paydesk.web.api.services import ApiServices, ByPrivateKey, Services
from paydesk.web.api.shapes import OneSubscription, Subscription, SubscriptionList
from paydesk.web.api.shaping import subscription_shape

router = APIRouter(tags=["Subscriptions"])
_SUBSCRIPTIONS: ApiList[SeenSubscription] = ApiList(
    "subscriptions", SubscriptionList, lambda one: Place(one.subscription.created_at, one.subscription.id)
)

_Id = Annotated[str, Path(description="Its `id`.")]


@_SUBSCRIPTIONS.route(router)
async def show_subscriptions(
    caller: ByPrivateKey, services: Services, wanted: Annotated[SubscriptionParameters, Query()]
) -> Response:
    """Subscriptions, newest first. The order reference is that of the first payment."""
    state = SubscriptionState(wanted.status) if wanted.status else None
    narrowed = SubscriptionFilter(state, wanted.merchant_order_id, wanted.email)
    read = partial(list_subscriptions, services.desk.database, caller.shop, narrowed)
    return await _SUBSCRIPTIONS.answer(caller.shop, wanted, read, partial(_shape, services))


@router.get(
    "/api/v1/subscriptions/{subscription_id}",
    summary="Show a subscription",
    operation_id="show_subscription",
    responses=described(OneSubscription, 404),
)
async def show(caller: ByPrivateKey, services: Services, subscription_id: _Id) -> Response:
    """One subscription as it stands, with the address of its customer's portal."""
    known = await subscription_in_path(services.desk.database, caller.shop, subscription_id)
    seen = await find_subscription_for_api(services.desk.database, caller.shop, known)
    return answer(OneSubscription(True, _shape(services, seen)))


@router.post(
    "/api/subscription/{subscription_id}/cancel",
    summary="Cancel a subscription",
    operation_id="cancel_subscription",
    responses=described(OneSubscription, 404, 409, 413),
)
async def post_cancel(
    request: Request, caller: ByPrivateKey, services: Services, once: ByIdempotencyKey, subscription_id: _Id
) -> Response:
    """Cancel one subscription at once: nothing is charged any more,
    and one `subscription_cancelled` pingback says so.

    A charge that was already on its way to the bank stands if the bank approves it. Cancelling
    again changes nothing and answers the same. The body may be empty, `[]` or `{}`.
    """
    return await once.answer(caller.shop, partial(_cancel, request, caller, services, subscription_id))


async def _cancel(
    request: Request, caller: Caller, services: ApiServices, subscription_id: str, _key: str | None
) -> Response:
    database = services.desk.database
    known = await subscription_in_path(database, caller.shop, subscription_id)
    await read_fields(request)
    await cancel(database, caller.shop, known, by="api", now=caller.now)
    return answer(
        OneSubscription(True, _shape(services, await find_subscription_for_api(database, caller.shop, known)))
    )


def _shape(services: ApiServices, seen: SeenSubscription) -> Subscription:
    return subscription_shape(seen, services.portal_url(seen.portal))
