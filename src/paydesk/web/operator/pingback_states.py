"""What the operator's console calls the states of pingbacks."""

from __future__ import annotations

from collections.abc import Mapping

from paydesk.domain.pingbacks.states import PingbackState
from paydesk.web.texts import mark

PINGBACK_STATES: Mapping[PingbackState, tuple[str, str]] = {
    PingbackState.WAITING: (mark("Waits for a URL"), "yellow"),
    PingbackState.DUE: (mark("Being sent"), "blue"),
    PingbackState.ACKNOWLEDGED: (mark("Acknowledged"), "green"),
    PingbackState.EXHAUSTED: (mark("Failed"), "red"),
    PingbackState.MUTED: (mark("Muted"), "secondary"),
}
"""A text, to be translated, and the tone of its badge."""
