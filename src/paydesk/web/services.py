"""What every door's routes work with, and how they get at it; each door adds its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Self

from starlette.requests import Request

from paydesk.domain.payments.desk import Desk
from paydesk.web.visits import Network, in_sandbox


@dataclass(frozen=True, slots=True, kw_only=True)
class DoorServices:
    """What the app puts, by the door's name, into the state that every request carries.

    `address` and `sandbox_address` are the public bases without a trailing slash; `now` reads the
    clock, UTC.
    """

    door: ClassVar[str]

    desk: Desk
    trusted_proxies: tuple[Network, ...]
    address: str
    sandbox_address: str
    now: Callable[[], datetime]

    @classmethod
    def of(cls, request: Request) -> Self:
        """The services of the app that this request came to."""
        services: Self = getattr(request.state, cls.door)
        return services

    def public_url(self, request: Request, path: str) -> str:
        """The public address of a path in the base that the request came to."""
        return (self.sandbox_address if in_sandbox(request) else self.address) + path
