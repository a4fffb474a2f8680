"""Search over everything: what one box finds at all merchants, grouped by its kind."""

from __future__ import annotations

from starlette.responses import Response

from paydesk.domain.cells.directory import Cell
from paydesk.domain.operations.searching import MOST, Found, search_everything
from paydesk.domain.operations.searching_cells import cells_of_text
from paydesk.web.console.guards import Access, Section
from paydesk.web.console.list_parameters import list_address, searched
from paydesk.web.console.payment_words import PAYMENT_STATES, SUBSCRIPTION_STATES, instrument_words
from paydesk.web.console.visit import Visit
from paydesk.web.operator.chargebacks import STATES
from paydesk.web.operator.face import FACE, SEARCH
from paydesk.web.operator.kind_names import alarm_name
from paydesk.web.operator.pingback_states import PINGBACK_STATES

section = Section(FACE)


@section.page(SEARCH, needs=Access.operator)
async def show_found(visit: Visit) -> Response:
    """All that the text names, the newest of each kind first."""
    text = searched(visit)
    found = await search_everything(visit.database, visit.session.operator, text, now=visit.now)
    return visit.page(
        "search.html",
        text=text,
        found=found,
        elsewhere=await _elsewhere(visit, text, found),
        search_address=list_address(SEARCH, {"q": text}),
        total=sum(found.counts.values()),
        most=MOST,
        payment_states=PAYMENT_STATES,
        subscription_states=SUBSCRIPTION_STATES,
        chargeback_states=STATES,
        pingback_states=PINGBACK_STATES,
        instrument_words=instrument_words,
        kind_name=lambda kind: visit.texts.get(alarm_name(kind)),
    )


async def _elsewhere(visit: Visit, text: str, found: Found) -> list[Cell]:
    """Other cells that may have what the text names."""
    if not visit.has_cells:
        return []
    return await cells_of_text(visit.database, visit.gate.vault, text, is_here=bool(found.counts))
