"""What a visitor is answered when a request fails: a page, or for a program JSON."""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine
from typing import Any

import asyncpg
import structlog
from fastapi.exceptions import RequestValidationError
from prometheus_client import Counter
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match

from paydesk.core.errors import IN_A_MOMENT, Conflict, PaydeskError
from paydesk.database.pool import AWAY
from paydesk.database.waiting import NoConnection
from paydesk.domain.cells import fencing
from paydesk.web.api.list_parameters import refuse_invalid
from paydesk.web.checkout import pages, wording
from paydesk.web.json_errors import error_json, problem_json
from paydesk.web.meant import meant
from paydesk.web.visits import NOTHING_HERE, base_path, wants_json

WITHOUT_CONNECTION = Counter(
    "paydesk_requests_without_connection_total", "Requests answered 503 because every database connection was in use"
)

log = structlog.get_logger()

_LONGEST_PATH = 200
_METHODS = ("DELETE", "GET", "HEAD", "PATCH", "POST", "PUT")
_CUSTOMERS_PAGE = re.compile(r"(/(?:checkout|portal(?:/pay/[0-9]+)?)/[A-Za-z0-9_.~-]+)/")


def exception_handlers() -> dict[int | type[Exception], Callable[[Request, Any], Coroutine[Any, Any, Response]]]:
    """What a visitor sees when something goes wrong: a page, or for a program JSON."""
    return {
        PaydeskError: known_error,
        HTTPException: _http_error,
        RequestValidationError: refuse_invalid,
        Exception: _unknown_error,
        **dict.fromkeys(AWAY, _database_away),
        NoConnection: _no_connection,
        ClientDisconnect: _broken_off,
        asyncpg.ObjectNotInPrerequisiteStateError: _refused_in_a_copy,
        fencing.Fenced: _fenced,
    }


async def known_error(request: Request, error: PaydeskError) -> Response:
    """What went wrong, in words for whoever asks."""
    if wants_json(request):
        return error_json(error)
    return _page(request, error.status, error.retry_after)


async def _refused_in_a_copy(request: Request, error: Exception) -> Response:
    """The database has refused to begin something live, since it is a copy for staging."""
    return await known_error(request, Conflict(str(error)))


async def _fenced(request: Request, error: Exception) -> Response:
    """The merchant goes to another cell: nothing was done, so even who writes may ask again,
    or is passed on once it is there.
    """
    request.scope[NOTHING_HERE] = True
    if wants_json(request):
        return problem_json(503, str(error), {"Retry-After": str(IN_A_MOMENT)})
    return _page(request, 503, retry_after=IN_A_MOMENT, words=wording.MOVING)


async def _broken_off(_request: Request, _error: ClientDisconnect) -> Response:
    """The client has gone amid its request: no page is drawn that nobody reads."""
    return Response(status_code=400)


async def _http_error(request: Request, error: HTTPException) -> Response:
    path = meant(request) if error.status_code == 404 else None
    if path is not None:
        return _meant(request, path)
    headers = _allowed(request) if error.status_code == 405 else dict(error.headers or {})
    if wants_json(request):
        return problem_json(error.status_code, str(error.detail), headers)
    response = _page(request, error.status_code)
    response.headers.update(headers)
    return response


def _allowed(request: Request) -> dict[str, str]:
    """The methods of an address, of all its routes: the one that refused knows its own alone."""
    routes = request.scope["router"].routes
    found = [method for method in _METHODS if any(_takes(route, request, method) for route in routes)]
    return {"Allow": ", ".join(found)}


def _takes(route: BaseRoute, request: Request, method: str) -> bool:
    return route.matches({**request.scope, "method": method})[0] is Match.FULL


def _meant(request: Request, path: str) -> Response:
    """Tell a program, or whoever made the shop's form, which address is the right one."""
    asked = request.scope.get("raw_path", b"").decode("ascii", "replace")[:_LONGEST_PATH]
    message = f"there is no {base_path(request)}{asked}: {request.method} {path} is meant"
    if wants_json(request) or request.method != "POST":
        return problem_json(404, message) if wants_json(request) else _page(request, 404)
    texts = pages.texts_for(request.headers.get("accept-language", ""))
    return pages.form_error_page(texts, status=404, message=message, fields=())


async def _no_connection(request: Request, error: NoConnection) -> Response:
    """Too many ask at once: nothing was sent, so a program may ask again without looking."""
    WITHOUT_CONNECTION.inc()
    log.warning("a request got no database connection", why=str(error))
    if wants_json(request):
        headers = {"Retry-After": str(IN_A_MOMENT)}
        return problem_json(503, "too many requests are being answered just now; nothing was done, try again", headers)
    return _page(request, 503, retry_after=IN_A_MOMENT)


async def _database_away(request: Request, error: Exception) -> Response:
    log.warning("the database is away", why=f"{type(error).__name__}: {error}")
    if wants_json(request):
        # A program that is told when to try again does so without looking, so only one that reads
        # is told.
        headers = {"Retry-After": str(IN_A_MOMENT)} if _reads(request) else {}
        return problem_json(503, f"the service is starting again; {_whether_done(request)}", headers)
    return _page(request, 503, retry_after=IN_A_MOMENT)


async def _unknown_error(request: Request, error: Exception) -> Response:
    log.error("a request failed", exc_info=error)
    if wants_json(request):
        return problem_json(500, f"something went wrong on our side; {_whether_done(request)}")
    return _page(request, 500)


def _whether_done(request: Request) -> str:
    """What a program is to do after a failure, before which a write may have been sent."""
    if _reads(request):
        return "try again"
    return (
        "it is not known whether this was done: send it again with the same Idempotency-Key, which does nothing twice, "
        "or look how it stands before you send it again without one"
    )


def _reads(request: Request) -> bool:
    return request.method in ("GET", "HEAD")


def _page(
    request: Request, status: int, retry_after: int | None = None, words: wording.PageProblem | None = None
) -> Response:
    texts = pages.texts_for(request.headers.get("accept-language", ""))
    reads = _reads(request)
    back = "" if reads else _page_before(request)
    return pages.error_page(texts, status=status, retry_after=retry_after, again=reads, back=back, words=words)


def _page_before(request: Request) -> str:
    """The customer's page whose form was sent, as far as the address tells; else empty."""
    found = _CUSTOMERS_PAGE.match(request.url.path.removeprefix(base_path(request)))
    return f"{base_path(request)}{found[1]}" if found else ""
