"""All routes of the operator's console, section by section;
to whoever is no operator none of them exists.
"""

from __future__ import annotations

from starlette.responses import Response
from starlette.routing import Route

from paydesk.core.errors import NotFound
from paydesk.web.console.guards import Access, Section
from paydesk.web.console.visit import Visit
from paydesk.web.operator import (
    acquirer_figures,
    acquirer_rules,
    acquirers,
    alarms,
    audit_log,
    cells,
    chargebacks,
    merchants,
    open_outcomes,
    orders,
    overview,
    payout_files,
    payouts,
    plans,
    proceeds,
    profiles,
    queues,
    search,
)
from paydesk.web.operator.face import FACE

_rest = Section(FACE)


@_rest.page("/operator/{path:path}", needs=Access.operator)
async def nothing_there(visit: Visit) -> Response:
    """Say so within the console, where the way back is."""
    raise NotFound(f"there is no page {visit.path}")


routes: list[Route] = [
    *overview.section.routes,
    *alarms.section.routes,
    *search.section.routes,
    *merchants.section.routes,
    *orders.section.routes,
    *profiles.section.routes,
    *plans.section.routes,
    *payout_files.section.routes,
    *payouts.section.routes,
    *chargebacks.section.routes,
    *open_outcomes.section.routes,
    *acquirers.section.routes,
    *acquirer_rules.section.routes,
    *acquirer_figures.section.routes,
    *proceeds.section.routes,
    *queues.section.routes,
    *cells.section.routes,
    *audit_log.section.routes,
    *_rest.routes,
]
