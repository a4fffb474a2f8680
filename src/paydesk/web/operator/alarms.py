"""Alarms: what can't be booked, contradicts or is held, each with its reason
until somebody has looked after it.
"""

from __future__ import annotations

import re
from datetime import datetime
from functools import partial

from starlette.responses import Response

from paydesk.core.errors import Malformed, NotFound
from paydesk.core.wording import worded
from paydesk.domain.alarms.kinds import MEANINGS, AlarmKind
from paydesk.domain.operations.alarms import ListedAlarm, list_alarms, settle_alarm
from paydesk.domain.operations.machinery import people_by_words
from paydesk.web.console.guards import Access, Section
from paydesk.web.console.list_parameters import ROWS, list_address, mark_of, page_asked
from paydesk.web.console.record_words import details_in_words
from paydesk.web.console.visit import Visit
from paydesk.web.operator.face import FACE
from paydesk.web.operator.kind_names import alarm_name

section = Section(FACE)
_ALARMS = "/operator/alarms"
_SETTLED, _ACCEPTED = "settled", "accepted"
_ON_ACCOUNTS = frozenset({AlarmKind.disputes_unread, AlarmKind.one_account_twice, AlarmKind.refunds_unread})
"""Alarms whose subject is the name of an account at an acquirer."""


@section.page(_ALARMS, needs=Access.operator)
async def show_alarms(visit: Visit) -> Response:
    """A page of the open alarms, newest first, or of the settled or accepted ones;
    of one kind if asked.
    """
    kind, asked = visit.form.text("kind", 60), visit.form.text("view", 10)
    settled, accepted = asked == _SETTLED, asked == _ACCEPTED
    wanted = AlarmKind(kind) if kind in set(AlarmKind) else None
    found = await list_alarms(visit.database, page_asked(visit), kind=wanted, settled=settled, accepted=accepted)
    shown = found[:ROWS]
    people = [who for one in shown for who in (one.settled_by, one.accepted_by) if who]
    older = mark_of(_place(shown[-1]), shown[-1].id) if len(found) > ROWS else ""
    view = {"view": asked} if settled or accepted else {}
    kept = {**view, "kind": str(wanted or "")}
    names = [(str(one), visit.texts.get(alarm_name(one))) for one in AlarmKind]
    return visit.page(
        "alarms.html",
        found=shown,
        names=await people_by_words(visit.database, people),
        page_of=_page_of,
        settled=settled,
        accepted=accepted,
        kind=str(wanted or ""),
        kinds=[("", visit.texts.get("Every kind")), *names],
        name_of=lambda kind: visit.texts.get(alarm_name(kind)),
        meaning=visit.texts.get(MEANINGS[wanted]) if wanted else "",
        details_of=partial(details_in_words, visit),
        subject_of=lambda one: one.subject if one.kind in _ON_ACCOUNTS else visit.texts.noted(one.subject),
        views=[
            (_ALARMS, visit.texts.get("Open")),
            (list_address(_ALARMS, {"view": _SETTLED}), visit.texts.get("Settled")),
            (list_address(_ALARMS, {"view": _ACCEPTED}), visit.texts.get("Accepted")),
        ],
        current=list_address(_ALARMS, view),
        newest=list_address(_ALARMS, kept) if visit.form.text("before") else "",
        older=list_address(_ALARMS, {**kept, "before": older}) if older else "",
    )


@section.action(f"{_ALARMS}/settle", needs=Access.operator)
async def settle(visit: Visit) -> Response:
    """Settle one, because its cause was looked after."""
    alarm_id = visit.form.number("id")
    if alarm_id is None:
        raise Malformed(worded("the form is incomplete; open its page again"))
    try:
        await settle_alarm(visit.database, visit.session.operator, alarm_id, now=visit.now)
    except NotFound:
        return visit.go(_ALARMS, visit.texts.get("This is settled by now."), "info")
    return visit.go(_ALARMS, visit.texts.get("The alarm is settled; if it happens again, it is raised again."))


def _page_of(alarm: ListedAlarm) -> str:
    """The page of the payment or subscription that an alarm is about; empty if it is neither."""
    about = re.fullmatch("(payment|subscription) ([0-9]{1,16})", alarm.subject)
    if about is None or not alarm.merchant_id:
        return ""
    return f"/operator/merchants/{alarm.merchant_id}/{about[1]}s/{about[2]}"


def _place(alarm: ListedAlarm) -> datetime:
    return alarm.settled_at or alarm.accepted_at or alarm.raised_at
