"""All routes of the business account, section by section;
whatever else stands below /account is a page not found.
"""

from __future__ import annotations

from starlette.responses import Response
from starlette.routing import Route

from paydesk.core.errors import NotFound
from paydesk.web.account import (
    audit_log,
    balance,
    branding,
    card_guard,
    coupons,
    deliveries,
    developers,
    disputes,
    dunning,
    getting_in,
    handing_over,
    joining,
    overview,
    package_moves,
    packages,
    payment_links,
    payments,
    pingbacks,
    profile,
    revenue,
    saved_cards,
    security,
    shop_settings,
    shops,
    subscription_changes,
    subscription_items,
    subscriptions,
    team,
    test_events,
)
from paydesk.web.account.face import FACE
from paydesk.web.console.guards import Access, Section
from paydesk.web.console.visit import Visit

_rest = Section(FACE)


@_rest.page("/account/{path:path}", needs=Access.anybody)
async def nothing_there(visit: Visit) -> Response:
    """Say so within the account, where the way back is."""
    raise NotFound(f"there is no page {visit.path}")


routes: list[Route] = [
    *getting_in.section.routes,
    *handing_over.section.routes,
    *joining.section.routes,
    *security.section.routes,
    *shops.section.routes,
    *overview.section.routes,
    *payments.section.routes,
    *saved_cards.section.routes,
    *payment_links.section.routes,
    *coupons.section.routes,
    *pingbacks.section.routes,
    *test_events.section.routes,
    *dunning.section.routes,
    *revenue.section.routes,
    *package_moves.section.routes,
    *packages.section.routes,
    *subscriptions.section.routes,
    *subscription_changes.section.routes,
    *subscription_items.section.routes,
    *deliveries.section.routes,
    *balance.section.routes,
    *developers.section.routes,
    *disputes.section.routes,
    *shop_settings.section.routes,
    *profile.section.routes,
    *branding.section.routes,
    *card_guard.section.routes,
    *team.section.routes,
    *audit_log.section.routes,
    *_rest.routes,
]
