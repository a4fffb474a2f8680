"""The team: who is in it, in which role, who is invited."""

from __future__ import annotations

from starlette.responses import Response

from paydesk.core.errors import Malformed, NotFound, PaydeskError
from paydesk.core.wording import worded
from paydesk.domain.accounts import team
from paydesk.domain.accounts.roles import Permission, Role
from paydesk.web.account import wording
from paydesk.web.account.face import FACE
from paydesk.web.console.guards import Section, field_errors
from paydesk.web.console.visit import Visit

section = Section(FACE)
_TEAM = "/account/{merchant_id}/settings/team"


@section.page(_TEAM, needs=Permission.manage_team)
async def show_team(visit: Visit) -> Response:
    """The members, the open invitations, and the form to invite."""
    return await _team(visit)


async def _team(visit: Visit, errors: dict[str, str] | None = None, status: int = 200) -> Response:
    return visit.page(
        "team.html",
        status=status,
        members=await team.members_of(visit.gate, visit.merchant_id),
        invitations=await team.invitations_of(visit.gate, visit.merchant_id, now=visit.now),
        roles=wording.ROLES,
        errors=errors or {},
    )


@section.action(f"{_TEAM}/invite", needs=Permission.manage_team)
async def invite(visit: Visit) -> Response:
    """Send an invitation by mail."""
    email = visit.form.text("email", 300)
    try:
        await team.invite(visit.gate, visit.session, email=email, role=_role(visit), now=visit.now)
    except PaydeskError as error:
        return await _team(visit, field_errors(visit, error, "email"), error.status)
    said = visit.texts.get("An invitation is on its way to %(email)s.") % {"email": email}
    return visit.go(visit.url("settings/team"), said)


@section.action(f"{_TEAM}/invitations/{{invitation_id}}/withdraw", needs=Permission.manage_team)
async def withdraw(visit: Visit) -> Response:
    """Make an invitation's link stop working."""
    await team.withdraw_invitation(visit.gate, visit.session, visit.number("invitation_id"), now=visit.now)
    return visit.go(visit.url("settings/team"), visit.texts.get("The invitation is withdrawn."))


@section.action(f"{_TEAM}/members/{{person_id}}/role", needs=Permission.manage_team)
async def change_role(visit: Visit) -> Response:
    """Give a member another role."""
    await team.change_role(visit.gate, visit.session, visit.number("person_id"), _role(visit), now=visit.now)
    return visit.go(visit.url("settings/team"), visit.texts.get("The role is changed."))


@section.page(f"{_TEAM}/members/{{person_id}}/remove", needs=Permission.manage_team)
async def ask_to_remove(visit: Visit) -> Response:
    """Whether to take a member out of the team."""
    members = await team.members_of(visit.gate, visit.merchant_id)
    member = next((one for one in members if one.person_id == visit.number("person_id")), None)
    if member is None:
        raise NotFound("there is no such member")
    return visit.ask(
        visit.texts.get("Take %(name)s out of the team?") % {"name": member.name},
        text=visit.texts.get("It works at once; what they did stays in the audit log."),
        button=visit.texts.get("Take them out"),
        back=visit.url("settings/team"),
    )


@section.action(f"{_TEAM}/members/{{person_id}}/remove", needs=Permission.manage_team)
async def remove(visit: Visit) -> Response:
    """Take a member out of the team."""
    person_id = visit.number("person_id")
    await team.remove_member(visit.gate, visit.session, person_id, now=visit.now)
    if person_id == visit.person.id:
        return visit.go("/account", visit.texts.get("You have left the team."))
    return visit.go(visit.url("settings/team"), visit.texts.get("They are no longer in the team."))


def _role(visit: Visit) -> Role:
    try:
        return Role(visit.form.text("role"))
    except ValueError:
        raise Malformed(worded("choose a role of the list"), "role") from None
