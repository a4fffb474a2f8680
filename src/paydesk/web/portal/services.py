"""What the portal's routes work with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from paydesk.web.services import DoorServices


@dataclass(frozen=True, slots=True, kw_only=True)
class PortalServices(DoorServices):
    """Nothing but what every door needs."""

    door: ClassVar[str] = "portal"
