"""The routes of the guide: chapters, and the search through them. Everybody may read it;
who is logged in finds their own public key in its programs.
"""

from __future__ import annotations

from pathlib import Path

from starlette.responses import RedirectResponse, Response

from paydesk.domain.accounts.roles import Permission
from paydesk.domain.business.key_pairs import public_keys
from paydesk.web.console.guards import Access, Section
from paydesk.web.console.shell import Face, pages_of
from paydesk.web.console.visit import Visit
from paydesk.web.guide.calls import calls_of
from paydesk.web.guide.chapters import Chapter, chapters
from paydesk.web.guide.searching import found

FACE = Face(pages_of(Path(__file__).parent / "templates"), about_merchants=True)
section = Section(FACE)
_LONGEST_SEARCH = 100


@section.page("/docs", needs=Access.anybody)
async def begin(_: Visit) -> Response:
    """The guide begins with its first chapter."""
    first = next(iter(chapters()))
    return RedirectResponse(f"/docs/{first}", 303, headers={"Cache-Control": "no-store"})


@section.page("/docs/search", needs=Access.anybody)
async def search(visit: Visit) -> Response:
    """Where words stand in the guide, and which calls of the API reference they mean."""
    return _found(visit, visit.form.text("q", _LONGEST_SEARCH))


def _found(visit: Visit, words: str, *, status: int = 200) -> Response:
    places = found(words, calls_of(visit.request))
    return visit.page("search.html", status=status, chapters=_contents(), words=words, found=places)


@section.page("/docs/{chapter}", needs=Access.anybody)
async def show_chapter(visit: Visit) -> Response:
    """One chapter, with the reader's own addresses and public key in its programs;
    who asks for one that there is not sees where its words stand.
    """
    slug = visit.path.removeprefix("/docs/")
    if slug not in chapters():
        return _found(visit, slug[:_LONGEST_SEARCH].replace("-", " "), status=404)
    order, chapter = _contents(), chapters()[slug]
    place = order.index(chapter)
    key = await _own_key(visit)
    return visit.page(
        "chapter.html",
        chapters=order,
        chapter=chapter,
        html=chapter.filled_in(visit.services.address, visit.services.sandbox_address, key),
        own_key=key if chapter.names_a_key else "",
        before=order[place - 1] if place else None,
        after=order[place + 1] if place + 1 < len(order) else None,
    )


def _contents() -> list[Chapter]:
    return list(chapters().values())


async def _own_key(visit: Visit) -> str:
    """The newest public key of the shop that is looked at, if its reader may see it."""
    if visit.entered is None or visit.entered.merchant_id is None or not visit.can(Permission.manage_integration):
        return ""
    keys = await public_keys(visit.database, visit.merchant_id, most=1)
    return keys[0].public_key if keys else ""


routes = section.routes
