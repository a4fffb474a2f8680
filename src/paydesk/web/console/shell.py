"""What surrounds every page of a console: templates, icons, menus, and the pages that say what went wrong."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup
from starlette.responses import Response

from paydesk.core.errors import NotFound, PaydeskError, SetupError, Unsure
from paydesk.domain.accounts.people import Person
from paydesk.domain.accounts.roles import ALLOWED, Permission, allows
from paydesk.web.assets import ASSETS
from paydesk.web.rendering import Pages
from paydesk.web.texts import Catalogues, Texts

if TYPE_CHECKING:
    from paydesk.web.console.visit import Visit

_HERE = Path(__file__).parent
CATALOGUES = Catalogues(_HERE / "locale", "console")


@dataclass(frozen=True, slots=True)
class Entry:
    """A link of a menu: the path of its page, what it says, its icon, and which permission, if any, shows it."""

    path: str
    label: str
    icon: str
    needs: Permission | None = None


@dataclass(frozen=True, slots=True)
class Face:
    """What a door shows of itself: its templates, the links at the side of every page, and those of its settings.

    `about_merchants`: whether its pages are about the merchant that is looked at, with a switch between merchants and
    between test and live.
    """

    pages: Pages
    sidebar: Sequence[Entry] = ()
    settings: Sequence[Entry] = ()
    about_merchants: bool = False


_PATHS: set[str] = set()


def declare(path: str) -> None:
    """Make a path known, so that menus show it; the guard does so for every page."""
    _PATHS.add(path)


def entries(visit: Visit, menu: Sequence[Entry]) -> list[Entry]:
    """The links of a menu that lead somewhere and that this person may follow, for the merchant that is looked at."""
    at = visit.entered.merchant_id if visit.entered else None
    shown = [
        entry for entry in menu if entry.path in _PATHS and (entry.needs is None or allows(visit.role, entry.needs))
    ]
    return [replace(entry, path=entry.path.replace("{merchant_id}", str(at or ""))) for entry in shown]


def first_page(visit: Visit) -> str:
    """Where a person begins: the first page of the menus that they may see."""
    shown = [*entries(visit, visit.face.sidebar), *entries(visit, visit.face.settings)]
    return shown[0].path if shown else "/account/security"


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


def pages_of(folder: Path) -> Pages:
    """The templates of a door, built from the pieces that stand beside this module."""
    return Pages(folder, _HERE / "templates", macros={"kit": "kit.html"}, icon=icon)


def texts_for(accept_language: str, person: Person | None) -> Texts:
    """The texts for somebody: in the language that they chose, with the numbers and dates of their browser's region."""
    if person is None or accept_language.lower().startswith(person.language.lower()):
        return CATALOGUES.texts_for(accept_language)
    return CATALOGUES.texts_for(f"{person.language},{accept_language}")


def render(visit: Visit, template: str, values: Mapping[str, object]) -> str:
    """A whole page."""
    return visit.face.pages.render(template, visit.texts, **_known(visit), **values)


def render_block(visit: Visit, template: str, block: str, values: Mapping[str, object]) -> str:
    """A part of a page."""
    return visit.face.pages.render_block(template, block, visit.texts, **_known(visit), **values)


def _known(visit: Visit) -> dict[str, object]:
    at_shop = visit.at_shop
    return {
        "visit": visit,
        "at_shop": at_shop,
        "sidebar": entries(visit, visit.face.sidebar) if at_shop or not visit.face.about_merchants else [],
        "settings_menu": entries(visit, visit.face.settings) if at_shop or not visit.face.about_merchants else [],
    }


def sentence(message: str) -> str:
    """A message of an error as a sentence on a page."""
    text = message[:1].upper() + message[1:]
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _kind(error: PaydeskError) -> str:
    return "missing" if error.status == 404 else "unsure" if isinstance(error, Unsure) else "other"


def problem(visit: Visit, error: PaydeskError, needs: object) -> Response:
    """The page for what can't be done: which role may, that there is no such page, or what else is wrong."""
    missing = isinstance(needs, Permission) and visit.entered is not None and not allows(visit.role, needs)
    roles = [role for role, allowed in ALLOWED.items() if needs in allowed] if missing else []
    response = visit.page(
        "problem.html",
        status=error.status,
        kind="role" if missing and not isinstance(error, NotFound) else _kind(error),
        message=sentence(error.message),
        roles=roles,
    )
    return with_retry(response, error)


def with_retry(response: Response, error: PaydeskError) -> Response:
    """The answer to what can't be done, with when to try again if the error says so."""
    if error.retry_after is not None:
        response.headers["Retry-After"] = str(error.retry_after)
    return response
