"""Signing up, logging in and out, the second factor, a forgotten password,
and the password once more.
"""

from __future__ import annotations

from starlette.responses import Response

from paydesk.core.errors import PaydeskError
from paydesk.domain.accounts import changing, signing_in
from paydesk.domain.accounts.devices import see_device
from paydesk.domain.accounts.second_factor import pass_second_factor
from paydesk.domain.accounts.sessions import LoggedIn, Stage, end_session, find_session
from paydesk.web.account.face import FACE
from paydesk.web.console.cookies import new_device
from paydesk.web.console.guards import ENROLMENT, SECOND_FACTOR, Access, Section, field_errors
from paydesk.web.console.problems import error_words
from paydesk.web.console.return_paths import HOME, own_path, with_next
from paydesk.web.console.visit import Visit
from paydesk.web.texts import mark

section = Section(FACE)


@section.page("/account", needs=Access.person)
async def home(visit: Visit) -> Response:
    """Where somebody begins: at the merchant that they looked at last, or by opening a shop."""
    if visit.person.operator and visit.session.merchant_id is None:
        return visit.go("/operator")
    return visit.go(visit.first_page if visit.session.merchant_id is not None else "/account/shops/new")


@section.page("/account/signup", needs=Access.anybody)
async def show_sign_up(visit: Visit) -> Response:
    """The form to open an account."""
    return visit.go(HOME) if visit.entered else visit.page("signup.html", errors={}, entered={})


@section.action("/account/signup", needs=Access.anybody)
async def sign_up(visit: Visit) -> Response:
    """Open an account with a shop in test mode, and log in."""
    entered = {name: visit.form.text(name, 300) for name in ("shop_name", "name", "email")}
    try:
        logged_in = await signing_in.sign_up(
            visit.gate,
            **entered,
            password=visit.form.raw("password"),
            client=visit.client,
            language=visit.texts.mail_language,
            now=visit.now,
        )
    except PaydeskError as error:
        errors = field_errors(visit, error, "shop_name", "name", "email", "password")
        return visit.page("signup.html", status=error.status, errors=errors, entered=entered)
    return await begin(visit, logged_in, f"/account/{logged_in.session.merchant_id}/developers/keys/first")


@section.page("/account/login", needs=Access.anybody)
async def show_log_in(visit: Visit) -> Response:
    """The form to log in."""
    goal = own_path(visit.form.text("next"))
    if visit.entered and visit.entered.stage is Stage.open:
        return visit.go(goal)
    return visit.page("login.html", error="", email="", goal=goal)


@section.action("/account/login", needs=Access.anybody)
async def log_in(visit: Visit) -> Response:
    """Open a session, always a new one: a token from before the log-in is worth nothing
    after it.
    """
    email, goal = visit.form.text("email", 300), own_path(visit.form.text("next"))
    try:
        logged_in = await signing_in.log_in(
            visit.gate,
            email=email,
            password=visit.form.raw("password"),
            client=visit.client,
            language=visit.texts.mail_language,
            now=visit.now,
        )
    except PaydeskError as error:
        words = error_words(visit.texts, error)
        return visit.page("login.html", status=error.status, error=words, email=email, goal=goal)
    if visit.entered:
        await end_session(visit.gate, visit.entered, visit.entered.id, now=visit.now)
    return await begin(visit, logged_in, goal)


async def begin(visit: Visit, logged_in: LoggedIn, goal: str, said: str = "") -> Response:
    """Give the browser its session, and lead it to what the session needs next, to say
    something there.
    """
    pages = {Stage.second_factor: with_next(SECOND_FACTOR, goal), Stage.enrolment: ENROLMENT, Stage.open: goal}
    response = visit.go(pages[logged_in.session.stage], said, "info")
    visit.cookies.begin_session(response, logged_in.token)
    if logged_in.session.stage is Stage.open:
        await remember_device(visit, response, logged_in.token)
    return response


async def remember_device(visit: Visit, response: Response, token: str) -> None:
    """Keep in mind the browser of a session that has just opened;
    the person is told by mail if it is a new one.
    """
    device = visit.cookies.device(visit.request) or new_device()
    session = await find_session(visit.gate, token, visit.client, now=visit.now)
    await see_device(visit.gate, session, device, now=visit.now)
    visit.cookies.keep_device(response, device)


@section.page(SECOND_FACTOR, needs=Access.halfway)
async def show_second_factor(visit: Visit) -> Response:
    """The form for the code of the second factor."""
    goal = own_path(visit.form.text("next"))
    return visit.page("second_factor.html", error="", goal=goal) if _code_is_due(visit) else visit.go(goal)


@section.action(SECOND_FACTOR, needs=Access.halfway)
async def give_second_factor(visit: Visit) -> Response:
    """Take a code of the app, or a recovery code."""
    goal = own_path(visit.form.text("next"))
    if not _code_is_due(visit):
        return visit.go(goal)
    try:
        token = await pass_second_factor(visit.gate, visit.session, visit.form.text("code", 100), now=visit.now)
    except PaydeskError as error:
        return visit.page("second_factor.html", status=error.status, error=error_words(visit.texts, error), goal=goal)
    response = visit.go(goal)
    visit.cookies.begin_session(response, token)
    await remember_device(visit, response, token)
    return response


def _code_is_due(visit: Visit) -> bool:
    return visit.session.stage is Stage.second_factor


@section.action("/account/logout", needs=Access.halfway)
async def log_out(visit: Visit) -> Response:
    """End this session."""
    await end_session(visit.gate, visit.session, visit.session.id, now=visit.now)
    said = mark("You are logged out.")
    if visit.elsewhere:
        said = mark("You are logged out here. Where your other shops are you stay logged in until you log out.")
    response = visit.go("/account/login", visit.texts.get(said))
    visit.cookies.end_session(response)
    response.headers["Clear-Site-Data"] = '"cache"'
    return response


@section.page("/account/forgotten", needs=Access.anybody)
async def show_forgotten(visit: Visit) -> Response:
    """The form to ask for a link."""
    return visit.page("forgotten.html", error="", sent_to="")


@section.action("/account/forgotten", needs=Access.anybody)
async def forgotten(visit: Visit) -> Response:
    """Send a link, if there is such an account; the answer is the same if there is none."""
    email = visit.form.text("email", 300)
    try:
        await changing.ask_for_reset(visit.gate, email=email, client=visit.client, now=visit.now)
    except PaydeskError as error:
        return visit.page("forgotten.html", status=error.status, error=error_words(visit.texts, error), sent_to="")
    return visit.page("forgotten.html", error="", sent_to=email)


@section.page("/account/password/{token}", needs=Access.anybody)
async def show_password(visit: Visit) -> Response:
    """The form to choose a password, for who has the link."""
    holder = await changing.find_reset(visit.gate, visit.token, now=visit.now)
    return visit.page("password.html", errors={}, holder=holder)


@section.action("/account/password/{token}", needs=Access.anybody)
async def choose_password(visit: Visit) -> Response:
    """Take the new password; whoever was logged in is so no more."""
    token, password = visit.token, visit.form.raw("password")
    holder = await changing.find_reset(visit.gate, token, now=visit.now)
    try:
        await changing.reset_password(visit.gate, token, password=password, client=visit.client, now=visit.now)
    except PaydeskError as error:
        if error.status == 410:
            raise
        errors = field_errors(visit, error, "password")
        return visit.page("password.html", status=error.status, errors=errors, holder=holder)
    response = visit.go("/account/login", visit.texts.get("Your password is changed. Log in with the new one."))
    visit.cookies.end_session(response)
    return response


@section.page("/account/confirm", needs=Access.person)
async def show_confirm(visit: Visit) -> Response:
    """The question for the password before something that matters."""
    goal = own_path(visit.form.text("next"))
    return visit.page("confirm.html", goal=goal, fields=None, back=HOME, error="")


@section.action("/account/confirm", needs=Access.person)
async def confirm(visit: Visit) -> Response:
    """Take the password, then go on: to the page, or with the form that was sent (307:
    the browser sends it again).
    """
    goal, again = own_path(visit.form.text("_goal")), visit.form.has("_again")
    try:
        await signing_in.confirm(visit.gate, visit.session, password=visit.form.raw("_password"), now=visit.now)
    except PaydeskError as error:
        fields = list(visit.form.but("csrf", "_goal", "_again", "_back", "_password", "username")) if again else None
        return visit.page(
            "confirm.html",
            status=error.status,
            goal=goal,
            fields=fields,
            back=own_path(visit.form.text("_back")),
            error=error_words(visit.texts, error),
        )
    response = visit.go(goal)
    if again:
        response.status_code = 307
    return response
