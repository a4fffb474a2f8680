"""What went wrong, told to a person: an error's message as a sentence,
and the pages that say what can't be done.
"""

from __future__ import annotations

from starlette.responses import Response

from paydesk.core.errors import Held, NotFound, PaydeskError, Unsure
from paydesk.domain.accounts.roles import ALLOWED, Permission, allows
from paydesk.web.console.field_names import in_words
from paydesk.web.console.visit import Visit
from paydesk.web.texts import SOURCE_LANGUAGE, Texts, mark

_HELD = mark("Payments are held for the moment: nothing was begun, and nobody was charged. Try again in a minute.")
_FULL_STOPS = {"ja": "。", "zh": "。"}
_ENDS = (".", "!", "?", "。", "؟")


def told(texts: Texts, error: PaydeskError) -> str:
    """What went wrong in the reader's language; English alone says why payments are held."""
    if isinstance(error, Held) and texts.language != SOURCE_LANGUAGE:
        return texts.get(_HELD)
    return texts.get(in_words(error.message))


def error_words(texts: Texts, error: PaydeskError) -> str:
    """What went wrong, as a sentence."""
    return sentence(texts, told(texts, error))


def sentence(texts: Texts, message: str) -> str:
    """A message of an error as a sentence on a page, in the reader's language."""
    text = texts.get(message)
    text = text[:1].upper() + text[1:]
    return text if text.endswith(_ENDS) else f"{text}{_FULL_STOPS.get(texts.language, '.')}"


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
        message=error_words(visit.texts, error),
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
