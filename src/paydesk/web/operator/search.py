"""Search over everything: what one box finds at all merchants, grouped by its kind."""

from __future__ import annotations

from starlette.responses import Response

from paydesk.domain.cells.directory import Cell, all_other_cells
from paydesk.domain.operations.searching import MOST, Found, id_in, search_everything
from paydesk.domain.operations.searching_cells import birth_of, cells_of_text
from paydesk.web.cells.holding import cells_with
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
    """Other cells that have what the text names: by the directory, or, of an id that is not here,
    by what they say themselves.
    """
    between = visit.between
    if between is None or not between.has_others:
        return []
    named = await cells_of_text(visit.database, visit.gate.vault, text)
    number = None if named or found.counts else id_in(text)
    if number is None:
        return named
    return await cells_with(
        between.watch.asking,
        await all_other_cells(visit.database),
        number,
        born_in=await birth_of(visit.database, number),
        own=between.own,
        now=visit.now,
    )
