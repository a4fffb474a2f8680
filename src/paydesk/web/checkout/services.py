"""What the checkout's routes work with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from paydesk.domain.payments.receiving import Reception
from paydesk.web.services import DoorServices


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckoutServices(DoorServices):
    """`reception` finds out whose form it is, and whether it may be shown."""

    door: ClassVar[str] = "checkout"

    reception: Reception
