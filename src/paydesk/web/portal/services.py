"""What the portal's routes work with; the app puts it into the state that every request carries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from starlette.requests import Request

from paydesk.domain.payments.desk import Desk
from paydesk.web.visits import Network, in_sandbox


@dataclass(frozen=True, slots=True)
class PortalServices:
    """`address` and `sandbox_address` are the public bases without a trailing slash;
    `now` reads the clock, UTC.
    """

    desk: Desk
    trusted_proxies: tuple[Network, ...]
    address: str
    sandbox_address: str
    now: Callable[[], datetime]

    def public_url(self, request: Request, path: str) -> str:
        """The public address of a path in the base that the request came to."""
        return (self.sandbox_address if in_sandbox(request) else self.address) + path


def services_of(request: Request) -> PortalServices:
    """The services of the app that this request came to."""
    services: PortalServices = request.state.portal
    return services
