"""What customers do with a subscription: cancel it, keep it after all, pause and resume it
(planning.py has the choice of another plan).
"""

from __future__ import annotations

from datetime import datetime
from functools import partial

from starlette.responses import Response

from paydesk.core.errors import Conflict
from paydesk.core.periods import Period, occurrence
from paydesk.domain.payments.receiving import read_form
from paydesk.domain.subscriptions.changing import cancel_later, pause, resume, undo
from paydesk.domain.subscriptions.ending import cancel
from paydesk.web.card_fields import text_of
from paydesk.web.portal import pages
from paydesk.web.portal.visiting import LARGEST_BODY, PortalVisit, Wish
from paydesk.web.visits import read_form_body

LONGEST_MONTHS = 3
"""For so many months a customer may pause at most, if they name an end."""


_PERIOD_END = "period_end"
_ENDS = ("", "now", _PERIOD_END)
"""When a subscription may end; a page of before says nothing, and means at once."""


async def ask_to_cancel(visit: PortalVisit) -> Response:
    """The question whether to cancel; what has ended, or will by the customer's wish, has none."""
    held = visit.holding
    return pages.cancel_page(visit.view) if held.ends_later or held.ends_at_once else visit.go(visit.path)


async def submit_cancel(visit: PortalVisit) -> Response:
    """Cancel at once or with the period, as its merchant allows;
    a second time changes nothing and gets the same answer.

    Who asked for the period's end never loses what they have paid: where that can't be had any
    more, or it can't be read what they chose, they are asked anew.
    """
    held, form = visit.holding, read_form(await read_form_body(visit.request, LARGEST_BODY))
    when = text_of(form, "when")
    if when not in _ENDS:
        return visit.go(f"{visit.path}/cancel")
    if when == _PERIOD_END or not held.ends_at_once:
        if held.ends_later:
            return await _carry_out(visit, partial(cancel_later, by="customer"))
        return visit.go(f"{visit.path}/cancel" if held.ends_at_once and not held.ends_by_wish else visit.path)
    await cancel(visit.services.desk.database, held.shop, held.subscription.id, by="customer", now=held.now)
    return visit.go(visit.path)


async def submit_undo(visit: PortalVisit) -> Response:
    """Keep what was to end, or resume what is paused, if it was the customer's own wish."""
    if not visit.holding.may_undo:
        return visit.go(visit.path)
    return await _carry_out(visit, resume if visit.holding.subscription.paused else undo)


async def ask_to_pause(visit: PortalVisit) -> Response:
    """The question whether to pause, and for how long."""
    return pages.pause_page(visit.view, LONGEST_MONTHS) if visit.holding.may_pause else visit.go(visit.path)


async def submit_pause(visit: PortalVisit) -> Response:
    """Pause it; a second time changes nothing."""
    if not visit.holding.may_pause:
        return visit.go(visit.path)
    form = read_form(await read_form_body(visit.request, LARGEST_BODY))
    return await _carry_out(visit, partial(pause, until=_until(visit, text_of(form, "months")), by="customer"))


def _until(visit: PortalVisit, months: str) -> datetime | None:
    """When a pause of so many months is over; None for one that is open."""
    if months not in {str(number) for number in range(1, LONGEST_MONTHS + 1)}:
        return None
    held = visit.holding
    return occurrence(held.now, Period(int(months), "month"), 1, held.subscription.time_zone)


async def _carry_out(visit: PortalVisit, wish: Wish) -> Response:
    """Do it; what can't be just now is said on the page."""
    held = visit.holding
    try:
        await wish(visit.services.desk.database, held.shop, held.subscription.id, now=held.now)
    except Conflict:
        return visit.go(f"{visit.path}?busy")
    return visit.go(visit.path)


async def back(visit: PortalVisit) -> Response:
    """Keeping is a POST: a browser that reloads this address is sent back."""
    return visit.go(visit.path)
