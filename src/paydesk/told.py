"""What the terminal of `paydesk run` tells a shop's programmer, a line each, instead of requests:
results of pingbacks, test events, refused forms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import structlog
from structlog.typing import EventDict

REQUEST = "answered"
"""The line of a request."""


def _sent(
    *, about: str, order: str, url: str, status: int | None, why: str, acknowledged: bool, ms: int, **_: object
) -> str:
    """A pingback, or a test event: what it was about, where it went, and what came of it."""
    said = "ok" if acknowledged else why or f"answered {status}, but not ok"
    return f"{f'{about} {order}'.strip()} -> {url}: {said} ({ms} ms)"


def _refused(*, status: int, why: str, **_: object) -> str:
    return f"{status}: {why}"


TOLD: Mapping[str, tuple[str, Callable[..., str]]] = {
    "a pingback was answered": ("pingback", _sent),
    "a test event was answered": ("test event", _sent),
    "a form was refused": ("refused form", _refused),
}
"""Lines that are of level `debug` elsewhere: what they are called in the terminal,
and how they read.
"""


def instead_of_requests(_logger: object, method: str, event: EventDict) -> EventDict:
    """Let what is told pass, and whatever is no request and not below its level.

    Raises: DropEvent for the others.
    """
    name = event.get("event")
    if name not in TOLD and (method == "debug" or name == REQUEST):
        raise structlog.DropEvent
    return event


class InOneLine:
    """Shows what is told as people read it, and all else as `otherwise` does."""

    def __init__(self, otherwise: Callable[[object, str, EventDict], str]) -> None:
        self._otherwise = otherwise

    def __call__(self, logger: object, method: str, event: EventDict) -> str:
        """The line for an event."""
        told = TOLD.get(str(event.get("event")))
        if told is None:
            return self._otherwise(logger, method, event)
        name, say = told
        at = str(event.get("timestamp"))[11:19]
        return " ".join(f"{at}  {name:<14}{say(**event)}".splitlines())
