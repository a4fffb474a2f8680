"""Dunning: what is failing now, which try brought the money after all, and what was lost."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from datetime import timedelta

from starlette.responses import Response

from paydesk.core.money import plain_number
from paydesk.core.paging import Page
from paydesk.domain.accounts.roles import Permission
from paydesk.domain.business import acting
from paydesk.domain.business.dunning_for_team import (
    MOST_DAYS,
    USUAL_DAYS,
    Outcome,
    days_looked_at,
    dunning_report,
    failed_charges,
)
from paydesk.web.account.face import FACE
from paydesk.web.console.exports import begin_export, csv_file
from paydesk.web.console.guards import Section
from paydesk.web.console.list_parameters import days_asked, list_address, page_asked
from paydesk.web.console.payment_words import decline_words
from paydesk.web.console.visit import Visit
from paydesk.web.texts import mark

section = Section(FACE)
_DUNNING = "/account/{merchant_id}/subscriptions/dunning"
_COLUMNS = (
    "payment_id", "subscription_id", "merchant_order_id", "period", "amount", "currency", "first_tried_at",
    "failures", "decline_reason", "outcome", "paid_at",
)  # fmt: skip

OUTCOMES: Mapping[Outcome, tuple[str, str]] = {
    Outcome.OPEN: (mark("Still open"), mark("Tried again, or waiting for the customer")),
    Outcome.RECOVERED: (mark("Recovered"), mark("Paid after all")),
    Outcome.LOST: (mark("Lost"), mark("Every try failed, and the subscription was stopped")),
    Outcome.ENDED: (mark("Ended otherwise"), mark("The subscription was cancelled before it was paid")),
}
"""What became of charges that failed, in words."""


@section.page(_DUNNING, needs=Permission.view)
async def show_dunning(visit: Visit) -> Response:
    """What is failing now, and what became of the charges that failed in the days asked for."""
    period, asked = await _period(visit), days_asked(visit)
    return visit.page(
        "dunning.html",
        report=await dunning_report(visit.database, visit.shop, period),
        outcomes=OUTCOMES,
        period=period,
        last_day=period.until - timedelta(microseconds=1),
        asked=asked,
        most_days=MOST_DAYS,
        usual_days=USUAL_DAYS,
        reason_words=decline_words,
        export=list_address(visit.url("subscriptions/dunning/export"), asked),
    )


@section.page(f"{_DUNNING}/export", needs=Permission.export)
async def export_dunning(visit: Visit) -> Response:
    """The charges that failed, one by one, as a file; the audit log keeps who took it."""
    share = await begin_export(visit)
    await acting.note_export(visit.database, visit.session, "dunning", days_asked(visit), now=visit.now)
    name = f"dunning-{visit.merchant_id}{'' if visit.shop.live else '-test'}.csv"
    return csv_file(share, name, _COLUMNS, _cells(visit, await _period(visit)))


async def _period(visit: Visit) -> Page:
    return days_looked_at(page_asked(visit), now=await visit.shop_now())


async def _cells(visit: Visit, period: Page) -> AsyncIterator[Iterable[object]]:
    async for one in failed_charges(visit.database, visit.shop, period):
        yield (
            one.payment_id, one.subscription_id, one.merchant_order_id, one.period, plain_number(one.amount),
            one.currency, one.created_at, one.tries, one.reason, one.outcome, one.paid_at,
        )  # fmt: skip
