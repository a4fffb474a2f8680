"""What a merchant reads about subscriptions, each with the link to its portal. Moves no money."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from paydesk.core.paging import Page
from paydesk.database.pool import Database
from paydesk.database.records import records_of
from paydesk.database.statements import load_statements
from paydesk.domain.merchants.customer_links import Link
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.subscriptions.ending import find_row
from paydesk.domain.subscriptions.lifecycle import Subscription
from paydesk.domain.subscriptions.rows import SubscriptionRow, link_of, subscription_of
from paydesk.domain.subscriptions.states import SubscriptionState

queries = load_statements(__package__ or "", "for_api.sql")


@dataclass(frozen=True, slots=True)
class SeenSubscription:
    """A subscription and the link that opens its portal:
    who has it may cancel and change the card.
    """

    subscription: Subscription
    portal: Link


@dataclass(frozen=True, slots=True)
class SubscriptionFilter:
    """Which subscriptions: of a state, begun by an order reference, of an e-mail address."""

    state: SubscriptionState | None = None
    reference: str | None = None
    email: str | None = None


async def list_subscriptions(
    database: Database, shop: Shop, wanted: SubscriptionFilter, page: Page
) -> list[SeenSubscription]:
    """A page of the shop's subscriptions, newest first;
    the narrowest filter leads, by an index of its own.
    """
    common = {"merchant_id": shop.merchant_id, "live": shop.live, **page.parameters()}
    if wanted.reference is not None:
        about = {"reference": wanted.reference, "email": wanted.email}
        found = queries.of_reference(database, **common, **about, state=wanted.state)
    elif wanted.email is not None:
        found = queries.of_email(database, **common, email=wanted.email, state=wanted.state)
    elif wanted.state not in (None, SubscriptionState.ACTIVE):
        found = queries.in_state(database, **common, state=wanted.state)
    else:
        found = queries.by_time(database, **common, state=wanted.state)
    return [_seen(row) for row in await records_of(SubscriptionRow, found)]


async def find_subscription_for_api(database: Database, shop: Shop, subscription_id: int) -> SeenSubscription:
    """The shop's subscription with this id, with the link to its portal.

    Raises: NotFound if the shop has no such subscription in this mode.
    """
    return _seen(await find_row(database, shop, subscription_id))


async def which_subscription(database: Database, shop: Shop, ids: Sequence[int]) -> int:
    """The first of some ids, by which a client may mean one subscription, that the shop has;
    else the first of all.
    """
    found = await queries.which(database, merchant_id=shop.merchant_id, live=shop.live, ids=ids)
    return ids[0] if found is None else int(found)


def _seen(row: SubscriptionRow) -> SeenSubscription:
    return SeenSubscription(subscription_of(row), link_of(row))
