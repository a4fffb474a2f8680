"""An account's figures: approvals, declines, answer times, volume, and what routing did."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

from babel.numbers import format_decimal
from starlette.responses import Response

from paydesk.domain.acquirers.accounts import list_accounts
from paydesk.domain.operations.acquirer_figures import account_figures
from paydesk.web.console.amounts import exact
from paydesk.web.console.guards import Access, Section
from paydesk.web.console.list_parameters import list_address
from paydesk.web.console.visit import Visit
from paydesk.web.operator.face import FACE

section = Section(FACE)
_FIGURES = "/operator/acquirer-figures"
_PERIODS = {
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "week": timedelta(days=7),
    "month": timedelta(days=31),
}


@section.page(_FIGURES, needs=Access.operator)
async def show_figures(visit: Visit) -> Response:
    """One account's figures of the last hour, day, week or month."""
    names = sorted({*visit.services.desk.acquirers, *(one.name for one in await list_accounts(visit.database))})
    account = visit.form.text("account", 40)
    account = account if account in names else names[0]
    period = visit.form.text("period", 10)
    period = period if period in _PERIODS else "day"
    found = await account_figures(visit.database, account, since=visit.now - _PERIODS[period], until=visit.now)
    texts = {
        "hour": visit.texts.get("Last hour"),
        "day": visit.texts.get("Last 24 hours"),
        "week": visit.texts.get("Last 7 days"),
        "month": visit.texts.get("Last 31 days"),
    }
    return visit.page(
        "acquirer_figures.html",
        account=account,
        found=found,
        accounts=[(name, name) for name in names],
        period=period,
        action=_FIGURES,
        views=[(list_address(_FIGURES, {"account": account, "period": one}), text) for one, text in texts.items()],
        current=list_address(_FIGURES, {"account": account, "period": period}),
        exact=partial(exact, visit),
        count=partial(format_decimal, locale=visit.texts.locale),
    )
