"""The one place where every route of a console says who may come:
a page without a declaration can't be made.

Each route gets a `Visit`. Who is not logged in is sent to the log-in page and comes back; who lacks
a role gets a page that names the roles that have it; another merchant's pages don't exist. Every
POST must carry its session's token.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

import structlog
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from paydesk.core.errors import Forbidden, Malformed, NotFound, PaydeskError, Unsure
from paydesk.core.paging import LARGEST_ID
from paydesk.core.wording import worded
from paydesk.database.pool import AWAY
from paydesk.database.waiting import may_wait_only_briefly
from paydesk.domain.accounts.access_needs import Client, ConfirmationNeeded, NotLoggedIn, SecondFactorNeeded
from paydesk.domain.accounts.people import Person
from paydesk.domain.accounts.roles import Permission
from paydesk.domain.accounts.sessions import (
    Session,
    Stage,
    find_session,
    form_token,
    form_token_fits,
    look_at,
    require,
    require_open,
    require_operator,
    require_recent,
)
from paydesk.domain.accounts.team import memberships_of
from paydesk.domain.cells.directory import Cell, cells_of_person
from paydesk.web.cells.passing_on import BetweenCells
from paydesk.web.console import shell
from paydesk.web.console.cookies import Cookies, new_form_secret
from paydesk.web.console.forms import TOKEN_FIELD, Form, parse_fields, read_posted
from paydesk.web.console.problems import error_words, problem
from paydesk.web.console.return_paths import own_path, path_of, with_next
from paydesk.web.console.services import ConsoleServices, client_of
from paydesk.web.console.shell import Face
from paydesk.web.console.visit import Visit
from paydesk.web.ids import id_in_path
from paydesk.web.same_site import require_own_page
from paydesk.web.visits import in_sandbox

Handler = Callable[[Visit], Awaitable[Response]]
ReadBody = Callable[[Request], Awaitable[Form]]

LOG_IN, SECOND_FACTOR, ENROLMENT = "/account/login", "/account/second-factor", "/account/security/second-factor"

_UNSURE = (
    "the database went away just now, and it is not known whether this was done; look how it stands before you do it "
    "again"
)
log = structlog.get_logger()

REFRESH = "x-paydesk-refresh"
"""The header of what a page asks by itself (`kit.live`), which keeps no session
from falling asleep."""


class Access(StrEnum):
    """Who may come to a page that is about no merchant; `Permission` is for the others."""

    anybody = "anybody"
    """Whether logged in or not."""
    halfway = "halfway"
    """Logged in by password; a second factor may still be due."""
    person = "person"
    """Logged in."""
    operator = "operator"
    """Logged in with a second factor, and runs the deployment."""
    other_cell = "other_cell"
    """Handed over by another cell, which a token proves: the page sees to everything."""


Needs = Access | Permission


@dataclass(frozen=True, slots=True)
class Declaration:
    """What a route needs: `recent` means that the password was given lately."""

    needs: Needs
    recent: bool


@dataclass(frozen=True, slots=True)
class Section:
    """Some pages that belong together, with their door's face; `routes` are theirs."""

    face: Face
    routes: list[Route] = field(default_factory=list)

    def page(self, path: str, *, needs: Needs, recent: bool = False) -> Callable[[Handler], Handler]:
        """Answer GET at a path. `{merchant_id}` and other `{…_id}` are numbers;
        `recent` asks for the password.
        """
        return self._route(path, "GET", Declaration(needs, recent), _fields_of_address)

    def action(
        self, path: str, *, needs: Needs, recent: bool = False, read: ReadBody = read_posted
    ) -> Callable[[Handler], Handler]:
        """Answer POST at a path, from a form of our own page;
        `read` reads another body than plain fields.
        """
        return self._route(path, "POST", Declaration(needs, recent), read)

    def _route(self, path: str, method: str, declared: Declaration, read: ReadBody) -> Callable[[Handler], Handler]:
        if (declared.needs is Access.operator) == self.face.about_merchants:
            raise ValueError(f"{path}: the operator's pages are for operators, and no others are")
        if self.face.about_merchants and isinstance(declared.needs, Permission) != ("{merchant_id}" in path):
            raise ValueError(f"{path}: a permission is for a merchant's pages, and they need one")

        def register(handler: Handler) -> Handler:
            async def answer(request: Request) -> Response:
                return await _answer(request, self.face, handler, declared, read)

            answer.declared = declared  # type: ignore[attr-defined]
            answer.__name__ = handler.__name__
            typed = re.sub(r"\{(\w+_id)\}", lambda found: id_in_path(found[1]), path)
            shell.declare(path)
            self.routes.append(Route(typed, answer, methods=[method]))
            return handler

        return register


async def _fields_of_address(request: Request) -> Form:
    return parse_fields(str(request.url.query)[:8192])


async def _answer(request: Request, face: Face, handler: Handler, declared: Declaration, read: ReadBody) -> Response:
    """Let a request through to its page, or say why not."""
    services = ConsoleServices.of(request)
    if in_sandbox(request):
        return RedirectResponse(services.address + request.scope["path"], 308)
    door = _Door(request, services, face, services.now())
    may_wait_only_briefly(only_reads=not door.posted)
    try:
        door.require_own_page(declared.needs)
        await door.enter()
        await door.let_in(declared.needs)
        door.form = await read(request)
        door.require_form_token(declared.needs)
        if declared.recent and door.session is not None:
            require_recent(door.session, now=door.now)
        return await handler(await door.visit())
    except (NotLoggedIn, SecondFactorNeeded) as error:
        return door.send_to_log_in(error)
    except ConfirmationNeeded:
        return await door.ask_for_password()
    except PaydeskError as error:
        return problem(await door.visit(), error, declared.needs)
    except AWAY as error:
        if not door.posted or door.session is None:
            raise
        log.warning("the database is away", why=f"{type(error).__name__}: {error}")
        return problem(await door.visit(alone=True), Unsure(_UNSURE), declared.needs)


@dataclass(slots=True)
class _Door:
    """What becomes known of a request on its way in."""

    request: Request
    services: ConsoleServices
    face: Face
    now: datetime
    form: Form = field(default_factory=Form)
    session: Session | None = None
    secret: str = ""
    fresh_secret: str = ""

    @property
    def cookies(self) -> Cookies:
        return Cookies(self.services.secure, self.services.gate.vault)

    @property
    def client(self) -> Client:
        return client_of(self.request, self.services)

    @property
    def posted(self) -> bool:
        return self.request.method == "POST"

    def require_own_page(self, needs: Needs) -> None:
        """Refuse another site's form before anything of it is looked at. Raises: Forbidden."""
        if self.posted and needs is not Access.other_cell:
            require_own_page(self.request, self.services.address)

    async def enter(self) -> None:
        """Find the session of the cookie, if it lives;
        forms are bound to it, or else to a cookie of their own.
        """
        token = self.cookies.session_token(self.request)
        if token:
            try:
                self.session = await self._find_session(token)
                self.secret = token
            except NotLoggedIn:
                self.session = None
        if not self.secret:
            self.secret = self.cookies.form_secret(self.request)
        if not self.secret:
            self.secret = self.fresh_secret = new_form_secret()

    def require_form_token(self, needs: Needs) -> None:
        """Make sure that a form came from a page of this very session. Raises: Forbidden."""
        if needs is Access.other_cell:
            return
        if self.posted and not form_token_fits(self.services.gate, self.secret, self.form.raw(TOKEN_FIELD)):
            raise Forbidden(worded("this form is out of date, or the browser keeps no cookies; open its page again"))

    async def let_in(self, needs: Needs) -> None:
        """Make sure that this person may come here, before anything that they send is read.

        Raises: NotLoggedIn, SecondFactorNeeded, NotFound, Forbidden.
        """
        self._require_real_ids()
        if needs in (Access.anybody, Access.other_cell):
            return
        if self.session is None:
            raise NotLoggedIn("log in first")
        if needs is not Access.halfway:
            require_open(self.session)
        if needs is Access.operator:
            require_operator(self.session)
        if isinstance(needs, Permission):
            await self._look_at(self.session, self.request.path_params["merchant_id"])
            require(self.session, needs)

    def _require_real_ids(self) -> None:
        if any(isinstance(value, int) and value > LARGEST_ID for value in self.request.path_params.values()):
            raise NotFound("there is no such page")

    async def _look_at(self, session: Session, merchant_id: int) -> None:
        """Make the merchant of the address the one that is looked at.

        Raises: NotFound if it is not theirs.
        """
        if session.merchant_id == merchant_id:
            return
        await look_at(self.services.gate, session, merchant_id)
        self.session = await self._find_session(self.secret)
        if self.session.merchant_id != merchant_id:
            raise NotFound("you are not in this merchant's team")

    async def _find_session(self, token: str) -> Session:
        """The session; what a page asks by itself does not keep it awake,
        for nobody need sit before it.
        """
        by_itself = not self.posted and REFRESH in self.request.headers
        return await find_session(self.services.gate, token, self.client, now=self.now, by_itself=by_itself)

    async def visit(self, *, alone: bool = False) -> Visit:
        """What the page works with; the merchant switcher is read for whole pages,
        unless one stands `alone`.
        """
        person = self.session.person if self.session else None
        part = "hx-request" in self.request.headers
        wanted = self.session is not None and self.session.stage is Stage.open and not part and not alone
        return Visit(
            request=self.request,
            services=self.services,
            cookies=self.cookies,
            texts=shell.texts_for(self.face.catalogues, self.request.headers.get("accept-language", ""), person),
            now=self.now,
            face=self.face,
            form=self.form,
            csrf=form_token(self.services.gate, self.secret),
            entered=self.session,
            memberships=await memberships_of(self.services.gate, person.id) if wanted and person else (),
            elsewhere=await self._elsewhere(person) if wanted and person else (),
            said=self.cookies.said(self.request),
            theme=self.cookies.theme(self.request),
            form_secret=self.fresh_secret,
        )

    async def _elsewhere(self, person: Person) -> Sequence[Cell]:
        """The other cells that somebody has an account in."""
        between: BetweenCells | None = getattr(self.request.state, BetweenCells.key, None)
        if between is None or not between.has_others:
            return ()
        found = await cells_of_person(self.services.database, self.services.gate.vault, person.email)
        return [one for one in found if one.number != between.own]

    def send_to_log_in(self, error: PaydeskError) -> Response:
        """The page that lets them in, from where they come back to what they asked for."""
        goal = path_of(str(self.request.url)) if not self.posted else path_of(self.request.headers.get("referer", ""))
        page = LOG_IN
        if isinstance(error, SecondFactorNeeded) and self.session is not None:
            page = ENROLMENT if self.session.stage is Stage.enrolment else SECOND_FACTOR
        headers = {"Location": with_next(page, goal), "Cache-Control": "no-store"}
        if "hx-request" in self.request.headers:
            return Response(status_code=200, headers={"HX-Refresh": "true", "Cache-Control": "no-store"})
        response = Response(status_code=303, headers=headers)
        if self.session is None and self.cookies.session_token(self.request):
            self.cookies.end_session(response)
        return response

    async def ask_for_password(self) -> Response:
        """The page that asks for the password; what was asked for is carried out after it."""
        visit = await self.visit()
        if not self.posted:
            return visit.go(with_next("/account/confirm", path_of(str(self.request.url))))
        return visit.page(
            "confirm.html",
            status=403,
            goal=own_path(self.request.url.path),
            fields=list(self.form.but(TOKEN_FIELD)),
            back=path_of(self.request.headers.get("referer", "")),
            error="",
        )


def field_errors(visit: Visit, error: PaydeskError, *known: str) -> dict[str, str]:
    """The message of an error at its field, if the form has it, else at the form itself
    (the key is empty).
    """
    fields = error.fields if isinstance(error, Malformed) else ()
    name = next((one for one in fields if one in known), "")
    return {name: error_words(visit.texts, error)}
