"""What went wrong, told to a person: an error's message as a sentence,
and the pages that say what can't be done.
"""

from __future__ import annotations

from starlette.responses import Response

from paydesk.core.errors import NotFound, PaydeskError, Unsure
from paydesk.domain.accounts.roles import ALLOWED, Permission, allows
from paydesk.web.console.visit import Visit


def sentence(message: str) -> str:
    """A message of an error as a sentence on a page."""
    text = message[:1].upper() + message[1:]
    return text if text.endswith((".", "!", "?")) else f"{text}."


def problem(visit: Visit, error: PaydeskError, needs: object) -> Response:
    """The page for what can't be done: which role may, that there is no such page,
    or what else is wrong.
    """
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


def _kind(error: PaydeskError) -> str:
    return "missing" if error.status == 404 else "unsure" if isinstance(error, Unsure) else "other"
