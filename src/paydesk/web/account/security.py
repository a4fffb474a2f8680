"""What a person decides for themselves: name and language, password, e-mail address,
second factor, sessions.
"""

from __future__ import annotations

import base64
from dataclasses import replace

from markupsafe import Markup
from starlette.responses import Response

from paydesk.core.errors import Conflict, PaydeskError
from paydesk.core.paging import Page
from paydesk.domain.accounts import audit, changing, second_factor
from paydesk.domain.accounts.people import time_zones
from paydesk.domain.accounts.sessions import (
    Stage,
    end_other_sessions,
    end_session,
    form_token,
    list_sessions,
)
from paydesk.web.account import wording
from paydesk.web.account.face import FACE
from paydesk.web.account.getting_in import remember_device
from paydesk.web.browsers import browser_of
from paydesk.web.console.action_names import action_name
from paydesk.web.console.guards import ENROLMENT, Access, Section, field_errors
from paydesk.web.console.problems import error_words
from paydesk.web.console.return_paths import HOME
from paydesk.web.console.shell import texts_for
from paydesk.web.console.visit import Visit
from paydesk.web.texts import Texts

section = Section(FACE)
SECURITY = "/account/security"
_SHOWN = 10


@section.page(SECURITY, needs=Access.person)
async def show_security(visit: Visit) -> Response:
    """Everything on one page."""
    return await _security(visit)


async def _security(visit: Visit, form: str = "", errors: dict[str, str] | None = None, status: int = 200) -> Response:
    """The page; `errors` belong to one of its forms."""
    return visit.page(
        "security.html",
        status=status,
        sessions=await list_sessions(visit.gate, visit.session, now=visit.now),
        log=await audit.list_own_entries(visit.database, visit.person.id, Page(_SHOWN)),
        zones=sorted(time_zones()),
        languages=list(wording.LANGUAGES),
        action_name=action_name,
        browser_of=browser_of,
        errors={form: errors or {}},
    )


@section.action("/account/security/profile", needs=Access.person)
async def change_profile(visit: Visit) -> Response:
    """Take name, language and time zone."""
    try:
        await changing.change_profile(
            visit.gate,
            visit.session,
            now=visit.now,
            name=visit.form.text("name", 300),
            language=visit.form.text("language", 40),
            time_zone=visit.form.text("time_zone", 60),
        )
    except PaydeskError as error:
        return await _security(
            visit, "profile", field_errors(visit, error, "name", "language", "time_zone"), error.status
        )
    return visit.go(SECURITY, _texts_from_now_on(visit).get("Saved."))


def _texts_from_now_on(visit: Visit) -> Texts:
    """The texts in the language that was chosen just now."""
    chosen = visit.form.text("language", 40)
    person = replace(visit.person, language=chosen, language_chosen=bool(chosen))
    return texts_for(FACE.catalogues, visit.request.headers.get("accept-language", ""), person)


@section.action("/account/security/password", needs=Access.person)
async def change_password(visit: Visit) -> Response:
    """Take a new password from who knows the present one."""
    current, new = visit.form.raw("current"), visit.form.raw("password")
    try:
        token = await changing.change_password(visit.gate, visit.session, current=current, new=new, now=visit.now)
    except PaydeskError as error:
        errors = (
            field_errors(visit, error, "password")
            if error.status == 400
            else {"current": error_words(visit.texts, error)}
        )
        return await _security(visit, "password", errors, error.status)
    response = visit.go(SECURITY, visit.texts.get("Your password is changed; your other sessions have ended."))
    visit.cookies.begin_session(response, token)
    return response


@section.action("/account/security/email", needs=Access.person, recent=True)
async def change_email(visit: Visit) -> Response:
    """Send a link to a new address, which takes the old one's place once it is followed."""
    email = visit.form.text("email", 300)
    try:
        await changing.ask_for_email_change(visit.gate, visit.session, email=email, now=visit.now)
    except PaydeskError as error:
        return await _security(visit, "email", field_errors(visit, error, "email"), error.status)
    said = visit.texts.get("We have sent a link to %(email)s. Your address changes when you follow it.")
    return visit.go(SECURITY, said % {"email": email}, "info")


@section.page(ENROLMENT, needs=Access.halfway)
async def show_enrolment(visit: Visit) -> Response:
    """The secret for an app, as a picture and as text; the same one until it is confirmed."""
    if visit.session.stage is Stage.second_factor:
        return visit.go("/account/second-factor")
    if visit.person.second_factor:
        return visit.go(SECURITY)
    _require_recent_unless_due(visit)
    return await _enrolment(visit)


async def _enrolment(visit: Visit, error: str = "", status: int = 200) -> Response:
    try:
        enrolment = await second_factor.show_enrolment(visit.gate, visit.session)
    except Conflict:
        enrolment = await second_factor.begin_enrolment(visit.gate, visit.session, now=visit.now)
    qr_code = Markup(enrolment.qr_code)  # noqa: S704 (drawn by us)
    return visit.page("enrolment.html", status=status, enrolment=enrolment, qr_code=qr_code, error=error)


def _require_recent_unless_due(visit: Visit) -> None:
    """An operator's first one is set up halfway, right after the password;
    everybody else gives the password again.
    """
    if visit.session.stage is Stage.open:
        visit.require_recent()


@section.action(ENROLMENT, needs=Access.halfway)
async def confirm_enrolment(visit: Visit) -> Response:
    """Take the first code of the app, and show the recovery codes."""
    _require_recent_unless_due(visit)
    code = visit.form.text("code", 40)
    try:
        enrolled = await second_factor.confirm_enrolment(visit.gate, visit.session, code, now=visit.now)
    except PaydeskError as error:
        return await _enrolment(visit, error_words(visit.texts, error), error.status)
    response = _codes(replace(visit, csrf=form_token(visit.gate, enrolled.token)), enrolled.codes)
    visit.cookies.begin_session(response, enrolled.token)
    await remember_device(visit, response, enrolled.token)
    return response


@section.action("/account/security/codes", needs=Access.person, recent=True)
async def renew_codes(visit: Visit) -> Response:
    """Show new recovery codes; the old ones are worth nothing any more."""
    return _codes(visit, await second_factor.new_recovery_codes(visit.gate, visit.session, now=visit.now))


def _codes(visit: Visit, codes: tuple[str, ...]) -> Response:
    """The codes, this once; the file to keep is in the page itself,
    so that nothing has to remember them.
    """
    lines = "\r\n".join(["Paydesk", visit.person.email, "", *codes, ""])
    download = "data:text/plain;charset=utf-8;base64," + base64.b64encode(lines.encode()).decode()
    return visit.page("codes.html", codes=codes, download=download, home=HOME)


@section.page("/account/security/second-factor/remove", needs=Access.person, recent=True)
async def ask_to_remove(visit: Visit) -> Response:
    """Whether to do without it."""
    return visit.ask(
        visit.texts.get("Remove the second factor?"),
        text=visit.texts.get("From then on your password alone is enough to get into your account."),
        button=visit.texts.get("Remove it"),
        back=SECURITY,
    )


@section.action("/account/security/second-factor/remove", needs=Access.person, recent=True)
async def remove_second_factor(visit: Visit) -> Response:
    """Do without a second factor."""
    await second_factor.remove_second_factor(visit.gate, visit.session, now=visit.now)
    return visit.go(SECURITY, visit.texts.get("The second factor is removed."), "warning")


@section.action("/account/security/sessions/others/end", needs=Access.person)
async def end_others(visit: Visit) -> Response:
    """Log out everywhere else."""
    await end_other_sessions(visit.gate, visit.session, now=visit.now)
    return visit.go(SECURITY, visit.texts.get("Your other sessions have ended."))


@section.action("/account/security/sessions/{session_id}/end", needs=Access.person)
async def end_one(visit: Visit) -> Response:
    """End one of the person's sessions."""
    await end_session(visit.gate, visit.session, visit.number("session_id"), now=visit.now)
    return visit.go(SECURITY, visit.texts.get("The session has ended."))
