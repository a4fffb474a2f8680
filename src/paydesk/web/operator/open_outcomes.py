"""Unknown outcomes: what an acquirer has not answered, and the button that makes the janitor ask
at once.
"""

from __future__ import annotations

from datetime import timedelta

from starlette.responses import Response

from paydesk.core.errors import Malformed, NotFound
from paydesk.core.wording import worded
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.operations.open_outcomes import OpenKind, ask_now, open_outcomes
from paydesk.domain.payments.lookups import ALERT_AFTER
from paydesk.web.console.guards import Access, Section
from paydesk.web.console.list_parameters import ROWS, list_address, mark_of, place_in
from paydesk.web.console.visit import Visit
from paydesk.web.operator.face import FACE
from paydesk.web.texts import mark

section = Section(FACE)
_OUTCOMES = "/operator/outcomes"
NOT_YET = timedelta(minutes=1)
"""What is younger is most likely being answered just now."""
KINDS = {
    OpenKind.PAYMENT: mark("Payment"),
    OpenKind.RENEWAL: mark("Renewal"),
    OpenKind.CHARGE: mark("Charge of a saved card"),
    OpenKind.UNDOING: mark("Undoing a late approval"),
    OpenKind.CAPTURE: mark("Capture"),
    OpenKind.VOID: mark("Void"),
    OpenKind.REFUND: mark("Refund"),
}
"""What was asked of the acquirer, in words."""


@section.page(_OUTCOMES, needs=Access.operator)
async def show_outcomes(visit: Visit) -> Response:
    """What is open for more than a minute, or a day, longest first."""
    after, alerts = place_in(visit.form.text("after", 60)), visit.form.text("view", 10) == "day"
    begun_before = visit.now - (ALERT_AFTER if alerts else NOT_YET)
    found = await open_outcomes(visit.database, begun_before=begun_before, most=ROWS + 1, after=after)
    shown, kept = found[:ROWS], {"view": "day"} if alerts else {}
    further = mark_of(shown[-1].since, shown[-1].id) if len(found) > ROWS else ""
    return visit.part(
        "outcomes.html",
        "rows",
        found=shown,
        kinds=KINDS,
        day_ago=visit.now - ALERT_AFTER,
        views=[
            (_OUTCOMES, visit.texts.get("Over a minute")),
            (list_address(_OUTCOMES, {"view": "day"}), visit.texts.get("Over a day")),
        ],
        current=list_address(_OUTCOMES, kept),
        again=list_address(_OUTCOMES, {**kept, "after": visit.form.text("after", 60)}),
        first=list_address(_OUTCOMES, kept) if after else "",
        further=list_address(_OUTCOMES, {**kept, "after": further}) if further else "",
    )


@section.action(f"{_OUTCOMES}/ask", needs=Access.operator)
async def ask(visit: Visit) -> Response:
    """Make one due at once: the janitor asks by its key, and sends no purchase again."""
    kind, row_id, merchant_id = visit.form.text("kind", 20), visit.form.number("id"), visit.form.number("merchant")
    if kind not in set(OpenKind) or row_id is None or merchant_id is None:
        raise Malformed(worded("the form is incomplete; open its page again"))
    shop = Shop(merchant_id, visit.form.text("live", 1) == "1")
    try:
        await ask_now(visit.database, visit.session.operator, shop, OpenKind(kind), row_id, now=visit.now)
    except NotFound:
        return visit.go(_OUTCOMES, visit.texts.get("This has an outcome by now."), "info")
    return visit.go(_OUTCOMES, visit.texts.get("The acquirer is being asked; what it says shows here in a moment."))
