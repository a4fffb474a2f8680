"""What surrounds every page of a console: templates, icons, menus and languages.
It knows no visit.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from markupsafe import Markup

from paydesk.core.errors import SetupError
from paydesk.domain.accounts.people import Person
from paydesk.domain.accounts.roles import Permission, Role, allows
from paydesk.web.assets import ASSETS
from paydesk.web.mails.role_names import ROLE_NAMES
from paydesk.web.mails.writing import CATALOGUES as MAIL_CATALOGUES
from paydesk.web.rendering import DoorTemplates
from paydesk.web.texts import Catalogues, Texts, preferred_languages

_HERE = Path(__file__).parent
CATALOGUES = Catalogues(_HERE / "locale", "console", beneath=MAIL_CATALOGUES)
"""What both consoles say; what roles are called, they say as mails do."""


_ENGLISH = Catalogues(_HERE / "nowhere", "english")


@dataclass(frozen=True, slots=True)
class Entry:
    """A link of a menu: the path of its page, what it says, its icon, and which permission, if any,
    shows it, or that there are other cells.
    """

    path: str
    label: str
    icon: str
    needs: Permission | None = None
    of_cells: bool = False


@dataclass(frozen=True, slots=True)
class Face:
    """What a door shows of itself: its templates, the links at the side of every page,
    and those of its settings.

    `about_merchants`: whether its pages are about the merchant that is looked at, with a switch
    between merchants and between test and live. Without `catalogues` it speaks English alone.
    """

    pages: DoorTemplates
    catalogues: Catalogues = _ENGLISH
    sidebar: Sequence[Entry] = ()
    settings: Sequence[Entry] = ()
    about_merchants: bool = False
    search: str = ""


_PATHS: set[str] = set()


def declare(path: str) -> None:
    """Make a path known, so that menus show it; the guard does so for every page."""
    _PATHS.add(path)


def entries(
    menu: Sequence[Entry], role: Role | None, merchant_id: int | None, *, has_cells: bool = False
) -> list[Entry]:
    """The links of a menu that lead somewhere and that a role may follow,
    for the merchant that is looked at.
    """
    known = [entry for entry in menu if entry.path in _PATHS and (has_cells or not entry.of_cells)]
    shown = [entry for entry in known if entry.needs is None or allows(role, entry.needs)]
    return [replace(entry, path=entry.path.replace("{merchant_id}", str(merchant_id or ""))) for entry in shown]


@cache
def _icons() -> dict[str, str]:
    found: dict[str, str] = json.loads(ASSETS.find("icons.json").content)
    return found


def icon(name: str) -> Markup:
    """An icon as an inline SVG without words; a text beside it, or a label around it,
    says what it means.
    """
    strokes = _icons()[name]
    return Markup('<svg class="icon" viewBox="0 0 24 24" aria-hidden="true">{}</svg>').format(Markup(strokes))  # noqa: S704 (our own file)


def require_front_end() -> None:
    """Make sure that the files of others were brought. Raises: SetupError."""
    try:
        _icons()
    except KeyError:
        raise SetupError("the front-end files are missing; run: make setup (or: python hatch_build.py)") from None


def pages_of(folder: Path) -> DoorTemplates:
    """The templates of a door, built from the pieces that stand beside this module."""
    return DoorTemplates(
        folder, _HERE / "templates", macros={"kit": "kit.html", "plots": "plots.html"}, icon=icon, role_names=ROLE_NAMES
    )


def catalogues_of(folder: Path) -> Catalogues:
    """The translations of a door, over those of the pieces that stand beside this module."""
    return Catalogues(folder / "locale", folder.name, beneath=CATALOGUES)


def texts_for(catalogues: Catalogues, accept_language: str, person: Person | None) -> Texts:
    """The texts for somebody: in the language that they chose, with the numbers and dates
    of their browser's region; by what the browser asks for, where they chose none.
    """
    if person is None or not person.language_chosen:
        return catalogues.texts_for(accept_language)
    spoken = _language_of(person.language)
    regional = (tag for tag in preferred_languages(accept_language) if _language_of(tag) == spoken)
    return catalogues.texts_for(f"{next(regional, person.language)},{accept_language}")


def _language_of(tag: str) -> str:
    return tag.partition("-")[0].lower()
