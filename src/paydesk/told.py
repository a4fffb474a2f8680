"""What the terminal of `paydesk run` tells a shop's programmer, a line each, instead of requests:
results of pingbacks, test events, refused forms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import structlog
from structlog.typing import EventDict

REQUEST = "answered"
"""The line of a request."""


def _sent(event: EventDict) -> str:
    """A pingback, or a test event: what it was about, where it went, and what came of it."""
    order = f" {event['order']}" if event.get("order") else ""
    answer = event["why"] or f"answered {event['status']}, but not ok"
    said = "ok" if event["acknowledged"] else answer
    return f"{event['about']}{order} -> {event['url']}: {said} ({event['ms']} ms)"


def _refused(event: EventDict) -> str:
    return f"{event['status']}: {event['why']}"


TOLD: Mapping[str, tuple[str, Callable[[EventDict], str]]] = {
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
    if event["event"] not in TOLD and (method == "debug" or event["event"] == REQUEST):
        raise structlog.DropEvent
    return event


class InOneLine:
    """Shows what is told as people read it, and all else as `otherwise` does."""

    def __init__(self, otherwise: Callable[[object, str, EventDict], str]) -> None:
        self._otherwise = otherwise

    def __call__(self, logger: object, method: str, event: EventDict) -> str:
        """The line for an event."""
        if event["event"] not in TOLD:
            return self._otherwise(logger, method, event)
        name, say = TOLD[event["event"]]
        return " ".join(f"{event['timestamp'][11:19]}  {name:<14}{say(event)}".splitlines())
