"""What surrounds every page of the account: templates, icons, the sidebar, and the pages that say what went wrong."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup
from starlette.responses import Response

from paydesk.core.errors import NotFound, PaydeskError, SetupError, TooMany
from paydesk.domain.accounts.people import Person
from paydesk.domain.accounts.roles import ALLOWED, Permission, allows
from paydesk.web.assets import ASSETS
from paydesk.web.rendering import Pages
from paydesk.web.texts import Catalogues, Texts, mark

if TYPE_CHECKING:
    from paydesk.web.account.visit import Visit

_HERE = Path(__file__).parent
CATALOGUES = Catalogues(_HERE / "locale", "account")


@dataclass(frozen=True, slots=True)
class Entry:
    """A link of a menu: where below the merchant's address, what it says, its icon, and which permission shows it."""

    page: str
    label: str
    icon: str
    needs: Permission


SIDEBAR = (
    Entry("overview", mark("Overview"), "layout-dashboard", Permission.view),
    Entry("payments", mark("Payments"), "credit-card", Permission.view),
    Entry("subscriptions", mark("Subscriptions"), "repeat", Permission.view),
    Entry("deliveries", mark("Deliveries"), "truck-delivery", Permission.view),
    Entry("pingbacks", mark("Pingbacks"), "webhook", Permission.view_pingbacks),
    Entry("balance", mark("Balance"), "wallet", Permission.payouts_view),
    Entry("developers", mark("Developers"), "code", Permission.manage_integration),
)
SETTINGS = (
    Entry("settings/profile", mark("Business profile"), "building-store", Permission.manage_settings),
    Entry("settings/branding", mark("Branding"), "palette", Permission.manage_settings),
    Entry("settings/team", mark("Team"), "users", Permission.manage_team),
    Entry("settings/audit", mark("Audit log"), "history", Permission.view_audit),
)
_PATHS: set[str] = set()


def declare(path: str) -> None:
    """Make a path known, so that menus show it; the guard does so for every page."""
    _PATHS.add(path)


def entries(visit: Visit, menu: Sequence[Entry]) -> list[Entry]:
    """The links of a menu that lead somewhere and that this person may follow."""
    there = [entry for entry in menu if f"/account/{{merchant_id}}/{entry.page}" in _PATHS]
    return [entry for entry in there if allows(visit.role, entry.needs)]


def first_page(visit: Visit) -> str:
    """Where a person begins at a merchant: the first page of the menus that they may see."""
    shown = [*entries(visit, SIDEBAR), *entries(visit, SETTINGS)]
    return visit.url(shown[0].page) if shown else "/account/security"


@cache
def _icons() -> dict[str, str]:
    found: dict[str, str] = json.loads(ASSETS.find("icons.json").content)
    return found


def icon(name: str) -> Markup:
    """An icon as an inline SVG without words; a text beside it, or a label around it, says what it means."""
    strokes = _icons()[name]
    return Markup('<svg class="icon" viewBox="0 0 24 24" aria-hidden="true">{}</svg>').format(Markup(strokes))  # noqa: S704 (our own file)


def require_front_end() -> None:
    """Make sure that the files of others were brought. Raises: SetupError."""
    try:
        _icons()
    except KeyError:
        raise SetupError("the front-end files are missing; run: make setup (or: python hatch_build.py)") from None


_PAGES = Pages(_HERE / "templates", macros={"kit": "kit.html"}, icon=icon)


def texts_for(accept_language: str, person: Person | None) -> Texts:
    """The texts for somebody: in the language that they chose, with the numbers and dates of their browser's region."""
    if person is None or accept_language.lower().startswith(person.language.lower()):
        return CATALOGUES.texts_for(accept_language)
    return CATALOGUES.texts_for(f"{person.language},{accept_language}")


def render(visit: Visit, template: str, values: Mapping[str, object]) -> str:
    """A whole page."""
    return _PAGES.render(template, visit.texts, **_known(visit), **values)


def render_block(visit: Visit, template: str, block: str, values: Mapping[str, object]) -> str:
    """A part of a page."""
    return _PAGES.render_block(template, block, visit.texts, **_known(visit), **values)


def _known(visit: Visit) -> dict[str, object]:
    return {
        "visit": visit,
        "sidebar": entries(visit, SIDEBAR),
        "settings_menu": entries(visit, SETTINGS),
    }


def sentence(message: str) -> str:
    """A message of an error as a sentence on a page."""
    text = message[:1].upper() + message[1:]
    return text if text.endswith((".", "!", "?")) else f"{text}."


def problem(visit: Visit, error: PaydeskError, needs: object) -> Response:
    """The page for what can't be done: which role may, that there is no such page, or what else is wrong."""
    missing = isinstance(needs, Permission) and visit.entered is not None and not allows(visit.role, needs)
    roles = [role for role, allowed in ALLOWED.items() if needs in allowed] if missing else []
    response = visit.page(
        "problem.html",
        status=error.status,
        kind="role" if missing and not isinstance(error, NotFound) else "missing" if error.status == 404 else "other",
        message=sentence(error.message),
        roles=roles,
    )
    if isinstance(error, TooMany):
        response.headers["Retry-After"] = str(error.retry_after)
    return response
