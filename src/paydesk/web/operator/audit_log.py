"""The operators' audit log: what they and the command line did, at any merchant."""

from __future__ import annotations

from functools import partial
from operator import itemgetter

from starlette.responses import Response

from paydesk.domain.accounts.audit import Action
from paydesk.domain.operations.machinery import ActFilter, list_acts, operators
from paydesk.web.console.action_names import action_name
from paydesk.web.console.guards import Access, Section
from paydesk.web.console.list_parameters import ROWS, days_asked, list_address, mark_of, page_asked
from paydesk.web.console.record_words import details_in_words, subject_in_words
from paydesk.web.console.visit import Visit
from paydesk.web.operator.face import FACE

section = Section(FACE)
_AUDIT = "/operator/audit"
_COMMAND = "command"


@section.page(_AUDIT, needs=Access.operator)
async def show_acts(visit: Visit) -> Response:
    """A page of the log, newest first, of one person, kind, merchant or days if asked."""
    person, action = visit.form.text("person", 20), visit.form.text("action", 60)
    merchant_id, days = visit.form.number("merchant"), days_asked(visit)
    wanted = ActFilter(
        person_id=visit.form.number("person"),
        by_command=person == _COMMAND,
        action=Action(action) if action in set(Action) else None,
        merchant_id=merchant_id,
    )
    found = await list_acts(visit.database, page_asked(visit), wanted)
    shown = found[:ROWS]
    before = mark_of(shown[-1].at, shown[-1].id) if len(found) > ROWS else ""
    kept = {
        "person": _COMMAND if wanted.by_command else wanted.person_id or "",
        "action": wanted.action or "",
        "merchant": "" if merchant_id is None else str(merchant_id),
        **days,
    }
    everybody = [("", visit.texts.get("Everybody")), (_COMMAND, visit.texts.get("Command line"))]
    return visit.page(
        "acts.html",
        found=shown,
        asked=kept,
        people=[*everybody, *((str(one.id), one.name) for one in await operators(visit.database))],
        actions=[
            ("", visit.texts.get("Everything")),
            *sorted(((str(one), visit.texts.get(action_name(one))) for one in Action), key=itemgetter(1)),
        ],
        name_of=lambda one: visit.texts.get(action_name(one)),
        details_of=partial(details_in_words, visit),
        subject_of=partial(subject_in_words, visit),
        newest=list_address(_AUDIT, kept) if visit.form.text("before") else "",
        older=list_address(_AUDIT, {**kept, "before": before}) if before else "",
    )
