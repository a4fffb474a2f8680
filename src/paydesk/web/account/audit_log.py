"""The audit log of a merchant: who did what, when, from where."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from urllib.parse import urlencode

from starlette.responses import Response

from paydesk.core.paging import Page, Place, read_id
from paydesk.domain.accounts import audit
from paydesk.domain.accounts.audit import Action, AuditEntry
from paydesk.domain.accounts.roles import Permission
from paydesk.domain.accounts.team import members_of
from paydesk.web.account.face import FACE
from paydesk.web.console.action_names import action_name
from paydesk.web.console.guards import Section
from paydesk.web.console.record_words import details_in_words, subject_in_words
from paydesk.web.console.visit import Visit

section = Section(FACE)
_ROWS = 50


@section.page("/account/{merchant_id}/settings/audit", needs=Permission.view_audit)
async def show_audit(visit: Visit) -> Response:
    """A page of the log, newest first, of one action or one person if asked."""
    asked = visit.form.text("action", 60)
    action = Action(asked) if asked in set(Action) else None
    person_id = visit.form.number("person")
    before = _place(visit.form.text("before", 60))
    page = Page(_ROWS + 1, before) if before else Page(_ROWS + 1)
    found = await audit.list_entries(visit.database, visit.merchant_id, page, action=action, person_id=person_id)
    kept = {"action": action or "", "person": person_id or ""}
    return visit.page(
        "audit.html",
        entries=found[:_ROWS],
        actions=sorted((str(one), visit.texts.get(action_name(one))) for one in Action),
        members=await members_of(visit.gate, visit.merchant_id),
        asked=kept,
        newest=_address(visit, kept) if before else "",
        older=_address(visit, {**kept, "before": _mark(found[_ROWS - 1])}) if len(found) > _ROWS else "",
        name_of=lambda one: visit.texts.get(action_name(one)),
        details_of=partial(details_in_words, visit),
        subject_of=partial(subject_in_words, visit),
    )


def _address(visit: Visit, fields: Mapping[str, object]) -> str:
    chosen = {name: value for name, value in fields.items() if value}
    return visit.path + (f"?{urlencode(chosen)}" if chosen else "")


def _mark(entry: AuditEntry) -> str:
    return f"{int(entry.at.timestamp() * 1_000_000)}-{entry.id}"


def _place(text: str) -> Place | None:
    """The place that a page's address names; what is none counts as the beginning."""
    at, _, row_id = text.partition("-")
    number = read_id(row_id)
    if number is None or not (at.isascii() and at.isdigit() and len(at) < 17):
        return None
    seconds, micros = divmod(int(at), 1_000_000)
    return Place(datetime.fromtimestamp(seconds, UTC).replace(microsecond=micros), number)
