"""What waits for an answer, requests to go live and changes: the list, one with everything said,
and the answer.
"""

from __future__ import annotations

from datetime import datetime

from starlette.responses import Response

from paydesk.core.errors import Malformed
from paydesk.core.paging import EARLIEST, LATEST
from paydesk.core.wording import worded
from paydesk.domain.business import profile_changes
from paydesk.domain.business.profiles import ProfileStatus, find_profile, waiting_profiles
from paydesk.web.console.guards import Access, Section, field_errors
from paydesk.web.console.profile_names import NAMES
from paydesk.web.console.visit import Visit
from paydesk.web.operator.face import FACE

section = Section(FACE)
_PROFILES = "/operator/profiles"
_ONE = f"{_PROFILES}/{{merchant_id}}"
_MOST = 200


@section.page(_PROFILES, needs=Access.operator)
async def show_profiles(visit: Visit) -> Response:
    """Those that wait, longest first."""
    return visit.page("profiles.html", waiting=await waiting_profiles(visit.database, _MOST))


@section.page(_ONE, needs=Access.operator)
async def show_profile(visit: Visit) -> Response:
    """One profile, and what the merchant wants to change of it;
    of bank accounts only the last digits.
    """
    return await _page(visit)


async def _page(visit: Visit, errors: dict[str, str] | None = None, status: int = 200) -> Response:
    merchant_id = visit.number("merchant_id")
    profile = await find_profile(visit.database, merchant_id)
    change = await profile_changes.waiting_change(visit.database, merchant_id)
    said = {visit.texts.get(text): getattr(profile.details, name, "") for name, text in NAMES.items() if name != "iban"}
    differences = change.differences(profile) if change else []
    return visit.page(
        "request.html",
        status=status,
        profile=profile,
        change=change,
        differences=[(visit.texts.get(NAMES[name]), name == "iban", old, new) for name, old, new in differences],
        seen=change.proposed_at if change else profile.submitted_at,
        said=said,
        missing=[visit.texts.get(NAMES[name]) for name in profile.missing],
        states=ProfileStatus,
        iban_wait=visit.services.iban_wait.days,
        live_possible=visit.services.desk.live_acquirer is not None,
        errors=errors or {},
    )


@section.action(f"{_ONE}/accept", needs=Access.operator, recent=True)
async def accept(visit: Visit) -> Response:
    """Let the merchant go live, or take its change; only what this operator has looked at."""
    seen, despite = _seen(visit), visit.form.text("despite", 5000)
    try:
        await profile_changes.accept(
            visit.database,
            visit.session.operator,
            visit.number("merchant_id"),
            seen=seen,
            despite=despite,
            iban_wait=visit.services.iban_wait,
            now=visit.now,
        )
    except Malformed as error:
        return await _page(visit, field_errors(visit, error, "despite"), error.status)
    return visit.go(_PROFILES, visit.texts.get("Accepted. The merchant's owners are told."))


@section.action(f"{_ONE}/refuse", needs=Access.operator)
async def refuse(visit: Visit) -> Response:
    """Send what waits back with a reason; an accepted profile stays in force."""
    reason, merchant_id, seen = visit.form.text("reason", 5000), visit.number("merchant_id"), _seen(visit)
    actor = visit.session.operator
    try:
        await profile_changes.refuse(visit.database, actor, merchant_id, seen=seen, reason=reason, now=visit.now)
    except Malformed as error:
        return await _page(visit, field_errors(visit, error, "reason"), error.status)
    return visit.go(_PROFILES, visit.texts.get("Sent back. The merchant reads the reason."))


def _seen(visit: Visit) -> datetime:
    """Since when what this operator looked at waits.

    Raises: Malformed for a form that is not ours.
    """
    try:
        seen = datetime.fromisoformat(visit.form.text("seen", 40))
    except ValueError:
        seen = None
    if seen is None or seen.tzinfo is None or not EARLIEST <= seen <= LATEST:
        raise Malformed(worded("the form is incomplete; open its page again"))
    return seen
