"""Live or test: which side of all merchants a list is about, as its address says."""

from __future__ import annotations

from paydesk.web.console.list_parameters import list_address
from paydesk.web.console.visit import Visit


def is_live(visit: Visit) -> bool:
    """Live, unless the address asks for test."""
    return visit.form.text("side", 10) != "test"


def side_field(visit: Visit) -> dict[str, str]:
    """What an address carries to stay on this side."""
    return {} if is_live(visit) else {"side": "test"}


def side_tabs(visit: Visit, path: str) -> list[tuple[str, str]]:
    """The list for live, and for test."""
    return [
        (path, visit.texts.get("Live")),
        (list_address(path, {"side": "test"}), visit.texts.get("Test")),
    ]
