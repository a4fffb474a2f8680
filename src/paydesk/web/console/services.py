"""What the routes of the consoles work with; the app puts it into the state
that every request carries.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta

from starlette.requests import Request

from paydesk.database.pool import Database
from paydesk.domain.accounts.gate import Client, Gate
from paydesk.domain.payments.desk import Desk
from paydesk.domain.pingbacks.sending import PingbackSender
from paydesk.web.console.cookies import Cookies
from paydesk.web.visits import Network, client_address


@dataclass(frozen=True, slots=True)
class ConsoleServices:
    """`address` is the public base without a trailing slash, `sandbox_address` the sandbox's;
    `now` reads the clock.

    `iban_wait` is how long payouts to a newly accepted bank account wait; `sender` makes a sender
    of pingbacks for one request.
    """

    gate: Gate
    desk: Desk
    trusted_proxies: tuple[Network, ...]
    address: str
    sandbox_address: str
    iban_wait: timedelta
    now: Callable[[], datetime]
    sender: Callable[[], AbstractAsyncContextManager[PingbackSender]]

    @property
    def database(self) -> Database:
        """The database behind everything."""
        return self.gate.database

    @property
    def secure(self) -> bool:
        """Whether browsers reach the service over https."""
        return self.address.startswith("https://")


def services_of(request: Request) -> ConsoleServices:
    """The services of the app that this request came to."""
    services: ConsoleServices = request.state.console
    return services


def client_of(request: Request, services: ConsoleServices) -> Client:
    """Where a request comes from."""
    address = client_address(request.scope, services.trusted_proxies)
    device = Cookies(services.secure, services.gate.vault).device(request)
    return Client(address, request.headers.get("user-agent", ""), device)
