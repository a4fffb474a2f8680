"""Fee plans: what everybody pays, and who has terms of their own."""

from __future__ import annotations

from babel.numbers import format_percent
from starlette.responses import Response

from paydesk.core.paging import read_id
from paydesk.domain.merchants.trade_terms import TradeTerms
from paydesk.domain.operations.merchants import own_terms
from paydesk.web.console.guards import Access, Section
from paydesk.web.console.list_parameters import ROWS, list_address
from paydesk.web.console.visit import Visit
from paydesk.web.operator.face import FACE

section = Section(FACE)
_PLANS = "/operator/plans"


@section.page(_PLANS, needs=Access.operator)
async def show_plans(visit: Visit) -> Response:
    """The usual terms, and a page of the merchants whose terms are others, newest first."""
    before = visit.form.text("before", 16)
    before_id = read_id(before)
    found = await own_terms(visit.database, before_id=before_id, most=ROWS + 1)
    shown = found[:ROWS]
    return visit.page(
        "plans.html",
        usual=TradeTerms(),
        merchants=shown,
        percent=lambda share: format_percent(share, "#,##0.####%", locale=visit.texts.locale),
        newest=_PLANS if before_id else "",
        older=list_address(_PLANS, {"before": shown[-1].merchant_id}) if len(found) > ROWS else "",
    )
