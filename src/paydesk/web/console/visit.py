"""One request to the business account, and the ways to answer it:
a page, a part of one, a question, the way on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from babel.dates import format_date, format_datetime, format_timedelta
from starlette.requests import Request
from starlette.responses import Response

from paydesk.core.paging import EARLIEST, LATEST
from paydesk.core.periods import zone_named
from paydesk.core.urls import as_header
from paydesk.database.pool import Database
from paydesk.domain.accounts.access_needs import Client, Gate
from paydesk.domain.accounts.passwords import SHORTEST
from paydesk.domain.accounts.people import Person
from paydesk.domain.accounts.roles import Permission, Role, allows
from paydesk.domain.accounts.sessions import RECENT, Session, require, require_recent
from paydesk.domain.accounts.team import Membership
from paydesk.domain.cells.directory import Cell
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.merchants.test_clock import shop_time
from paydesk.web.cells.passing_on import BetweenCells
from paydesk.web.console.cookies import Cookies, Said
from paydesk.web.console.forms import Form
from paydesk.web.console.return_paths import HOME
from paydesk.web.console.services import ConsoleServices, client_of
from paydesk.web.console.shell import Entry, Face, entries
from paydesk.web.rendering import secured
from paydesk.web.texts import Texts

_NO_SHOP = "this page has no merchant"


def _within(at: datetime) -> datetime:
    """A time that the calendar has in every zone."""
    return min(max(at, EARLIEST), LATEST)


@dataclass(frozen=True, slots=True)
class Visit:
    """Who asks for what, and how to answer.

    `form` holds the posted fields (of a POST) or those after `?` (of a GET); `csrf` is what each
    form carries back; `now` is real time, UTC; `said` is what the page before left to say;
    `memberships` fill the merchant switcher, `elsewhere` are other cells that the person has an
    account in.
    """

    request: Request
    services: ConsoleServices
    cookies: Cookies
    texts: Texts
    now: datetime
    face: Face
    form: Form
    csrf: str
    entered: Session | None
    memberships: Sequence[Membership] = ()
    elsewhere: Sequence[Cell] = ()
    said: Said | None = None
    theme: str = "auto"
    form_secret: str = ""

    @property
    def session(self) -> Session:
        """The session; only pages for everybody have none."""
        assert self.entered is not None, "a page for everybody has no session"
        return self.entered

    @property
    def person(self) -> Person:
        """Who is logged in."""
        return self.session.person

    @property
    def database(self) -> Database:
        """The database."""
        return self.services.database

    @property
    def gate(self) -> Gate:
        """What the functions of `domain.accounts` work with."""
        return self.services.gate

    @property
    def client(self) -> Client:
        """Where the request comes from."""
        return client_of(self.request, self.services)

    @property
    def between(self) -> BetweenCells | None:
        """What this process knows of other cells."""
        found: BetweenCells | None = getattr(self.request.state, BetweenCells.key, None)
        return found

    @property
    def has_cells(self) -> bool:
        """Whether there are other cells."""
        return self.between is not None and self.between.has_others

    @property
    def merchant_id(self) -> int:
        """The merchant that is looked at."""
        assert self.session.merchant_id is not None, _NO_SHOP
        return self.session.merchant_id

    @property
    def shop(self) -> Shop:
        """The side of the merchant that is looked at;
        the guard has made sure that this person may.
        """
        return Shop(self.merchant_id, self.session.live)

    @property
    def role(self) -> Role | None:
        """The person's part in the team of that merchant."""
        return self.entered.role if self.entered else None

    @property
    def shows_test_data(self) -> bool:
        """Whether the page is about test data, which it then says unmistakably."""
        return self.at_shop and not self.session.live

    @property
    def at_shop(self) -> bool:
        """Whether the page may show what surrounds a merchant's pages."""
        return self.face.about_merchants and self.entered is not None and self.entered.merchant_id is not None

    @property
    def for_operators(self) -> bool:
        """Whether the page is the console of who runs the deployment, and looks like it."""
        return bool(self.face.search) and self.entered is not None and self.person.operator

    @property
    def path(self) -> str:
        """The path of this request."""
        return str(self.request.url.path)

    def is_within(self, path: str) -> bool:
        """Whether this page is the one at a path, or one below it."""
        return self.path == path or self.path.startswith(f"{path}/")

    @property
    def home(self) -> str:
        """Where the brand's sign leads: the first page of this door."""
        return HOME if self.face.about_merchants or not self.face.sidebar else self.face.sidebar[0].path

    @property
    def first_page(self) -> str:
        """Where the person begins: the first page of the menus that they may see."""
        shown = [*self._entries(self.face.sidebar), *self._entries(self.face.settings)]
        return shown[0].path if shown else "/account/security"

    async def shop_now(self) -> datetime:
        """The shop's time: a test clock may run ahead of `now`."""
        return await shop_time(self.database, self.shop, real_now=self.now)

    def url(self, page: str = "") -> str:
        """The address of a page of the merchant that is looked at: `visit.url("payments/5")`."""
        return f"/account/{self.merchant_id}/{page}".rstrip("/")

    def number(self, name: str) -> int:
        """An id in the path."""
        return int(self.request.path_params[name])

    @property
    def token(self) -> str:
        """The token of a mail's link, in the path."""
        return str(self.request.path_params["token"])

    def can(self, permission: Permission | str) -> bool:
        """Whether the person may do something here: for showing a button;
        a route declares what it needs itself.
        """
        return allows(self.role, Permission(permission))

    def require(self, permission: Permission) -> None:
        """Refuse within a page what depends on what is asked. Raises: Forbidden."""
        require(self.session, permission)

    def require_recent(self) -> None:
        """Ask for the password unless it was given lately; then the form is carried out.

        Raises: ConfirmationNeeded.
        """
        require_recent(self.session, now=self.now)

    # What pages show

    def money(self, amount: Decimal, currency: str) -> str:
        """An amount with its currency's code, in the person's way to write numbers;
        it keeps its own order beside text from right to left.
        """
        return self.texts.apart(self.texts.money(amount, currency))

    def held(self, amount: Decimal, currency: str) -> str:
        """A balance as an amount, rounded down."""
        return self.texts.apart(self.texts.money_held(amount, currency))

    def moment(self, at: datetime) -> str:
        """A time in the person's zone: `21 Nov 2026, 03:20`."""
        return str(format_datetime(_within(at), "medium", tzinfo=self.zone, locale=self.texts.date_locale))

    def day(self, at: datetime | date) -> str:
        """A day in the person's zone: `21 Nov 2026`."""
        local = _within(at).astimezone(self.zone) if isinstance(at, datetime) else at
        return str(format_date(local, "medium", locale=self.texts.date_locale))

    def ago(self, at: datetime, now: datetime | None = None) -> str:
        """How long ago, or in what time: `5 minutes ago`, `in 3 days`.
        `now` is a test side's, where it is later.
        """
        away = at - (now or self.now)
        if abs(away) < timedelta(seconds=5):
            return self.texts.get("just now")
        return str(format_timedelta(away, add_direction=True, locale=self.texts.date_locale))

    @property
    def zone(self) -> ZoneInfo:
        """The time zone in which this person reads times."""
        return zone_named(self.entered.person.time_zone if self.entered else "UTC")

    @property
    def shortest_password(self) -> int:
        """How many characters a password that is chosen here has to have."""
        return SHORTEST

    @property
    def recent_minutes(self) -> int:
        """For how long a password that is given once more counts."""
        return RECENT.seconds // 60

    # Answers

    def page(self, template: str, /, *, status: int = 200, **values: object) -> Response:
        """A page made from a template of `templates/`, which knows `visit` and what is given
        by name.
        """
        html = self.face.pages.render(template, self.texts, **self._known(), **values)
        response = secured(html, status=status)
        if self.said is not None:
            self.cookies.forget_said(response)
        if self.form_secret:
            self.cookies.begin_forms(response, self.form_secret)
        return response

    def part(self, template: str, block: str, /, **values: Any) -> Response:
        """One block of a page alone, when htmx asks for news of it; else the whole page."""
        if "hx-request" not in self.request.headers:
            return self.page(template, **values)
        return secured(self.face.pages.render_block(template, block, self.texts, **self._known(), **values))

    def go(self, url: str, said: str = "", tone: str = "success") -> Response:
        """Send the browser on with a GET, to say something there."""
        response = Response(status_code=303, headers={"Location": as_header(url), "Cache-Control": "no-store"})
        if said:
            self.cookies.say(response, Said(said, tone))
        return response

    def ask(
        self,
        question: str,
        *,
        text: str,
        button: str,
        back: str,
        action: str = "",
        fields: Mapping[str, str] | None = None,
        danger: bool = True,
    ) -> Response:
        """A page that asks before something is done; its button posts `fields` to `action`
        (else to this path).
        """
        return self.page(
            "question.html",
            question=question,
            text=text,
            button=button,
            back=back,
            action=action or self.path,
            fields=fields or {},
            danger=danger,
        )

    def _known(self) -> dict[str, object]:
        """What every template knows, beside what its page gives it."""
        about_something = self.at_shop or not self.face.about_merchants
        return {
            "visit": self,
            "at_shop": self.at_shop,
            "sidebar": self._entries(self.face.sidebar) if about_something else [],
            "settings_menu": self._entries(self.face.settings) if about_something else [],
        }

    def _entries(self, menu: Sequence[Entry]) -> list[Entry]:
        merchant_id = self.entered.merchant_id if self.entered else None
        return entries(menu, self.role, merchant_id, has_cells=self.has_cells)
