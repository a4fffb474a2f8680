"""Links from mails: an e-mail address is confirmed, an invitation accepted."""

from __future__ import annotations

from starlette.responses import Response

from paydesk.core.errors import PaydeskError
from paydesk.domain.accounts import changing
from paydesk.domain.accounts.joining import sign_up_invited
from paydesk.domain.accounts.team import accept_invitation, find_invitation
from paydesk.web.account.face import FACE
from paydesk.web.account.getting_in import remember_device
from paydesk.web.console.guards import Access, Section, field_errors
from paydesk.web.console.return_paths import HOME
from paydesk.web.console.visit import Visit

section = Section(FACE)


@section.action("/account/email/again", needs=Access.person)
async def send_again(visit: Visit) -> Response:
    """Send the link that confirms the address once more."""
    await changing.send_confirmation_again(visit.gate, visit.session, now=visit.now)
    return visit.go(HOME, visit.texts.get("A new link is on its way to you."))


@section.page("/account/email/{token}", needs=Access.anybody)
async def show_email(visit: Visit) -> Response:
    """A button, since programs that check mails for harm follow links too."""
    return visit.page("email.html")


@section.action("/account/email/{token}", needs=Access.anybody)
async def confirm_email(visit: Visit) -> Response:
    """Take the address as its person's."""
    token, logged_in = visit.token, visit.entered
    email = await changing.confirm_email(visit.gate, token, client=visit.client, now=visit.now, logged_in=logged_in)
    return visit.go(HOME, visit.texts.get("Your e-mail address %(email)s is confirmed.") % {"email": email})


@section.page("/account/invitation/{token}", needs=Access.anybody)
async def show_invitation(visit: Visit) -> Response:
    """Who invites, to what, and the way in: join, log in first, or make an account."""
    invitation = await find_invitation(visit.gate, visit.token, now=visit.now)
    return visit.page("invitation.html", invitation=invitation, errors={}, name="")


@section.action("/account/invitation/{token}", needs=Access.anybody)
async def accept(visit: Visit) -> Response:
    """Join the team, as who is logged in, or with a new account."""
    token = visit.token
    if visit.entered:
        merchant_id = await accept_invitation(visit.gate, visit.entered, token, now=visit.now)
        return visit.go(f"/account/{merchant_id}", visit.texts.get("Welcome to the team."))
    invitation = await find_invitation(visit.gate, token, now=visit.now)
    name = visit.form.text("name", 300)
    try:
        logged_in = await sign_up_invited(
            visit.gate,
            token,
            name=name,
            password=visit.form.raw("password"),
            client=visit.client,
            now=visit.now,
            language=visit.texts.mail_language,
        )
    except PaydeskError as error:
        if error.status == 410:
            raise
        errors = field_errors(visit, error, "name", "password")
        return visit.page("invitation.html", status=error.status, invitation=invitation, errors=errors, name=name)
    response = visit.go(f"/account/{invitation.merchant_id}", visit.texts.get("Welcome to the team."))
    visit.cookies.begin_session(response, logged_in.token)
    await remember_device(visit, response, logged_in.token)
    return response
