"""Business profiles that wait for an answer: the list, one with everything that was said, accepting and refusing."""

from __future__ import annotations

from starlette.responses import Response

from paydesk.core.errors import Malformed
from paydesk.domain.merchants.profiles import (
    ProfileStatus,
    accept_profile,
    find_profile,
    refuse_profile,
    waiting_profiles,
)
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
    """One profile; of the bank account only the last digits."""
    return await _page(visit)


async def _page(visit: Visit, errors: dict[str, str] | None = None, status: int = 200) -> Response:
    profile = await find_profile(visit.database, visit.number("merchant_id"))
    said = {visit.texts.get(text): getattr(profile.details, name, "") for name, text in NAMES.items() if name != "iban"}
    return visit.page(
        "request.html",
        status=status,
        profile=profile,
        said=said,
        missing=[visit.texts.get(NAMES[name]) for name in profile.missing],
        states=ProfileStatus,
        live_possible=visit.services.desk.live_acquirer is not None,
        errors=errors or {},
    )


@section.action(f"{_ONE}/accept", needs=Access.operator, recent=True)
async def accept(visit: Visit) -> Response:
    """Let the merchant go live; its team decides when."""
    await accept_profile(visit.database, visit.session.operator, visit.number("merchant_id"), now=visit.now)
    return visit.go(_PROFILES, visit.texts.get("Accepted: the merchant may leave test mode."))


@section.action(f"{_ONE}/refuse", needs=Access.operator)
async def refuse(visit: Visit) -> Response:
    """Send the profile back with a reason."""
    reason, merchant_id = visit.form.text("reason", 5000), visit.number("merchant_id")
    try:
        await refuse_profile(visit.database, visit.session.operator, merchant_id, reason=reason, now=visit.now)
    except Malformed as error:
        return await _page(visit, field_errors(error, "reason"), error.status)
    return visit.go(_PROFILES, visit.texts.get("Sent back. The merchant reads the reason."))
