"""What the routes of the consoles work with, and who calls them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from starlette.requests import Request

from paydesk.adapters.ip_countries import IpCountries
from paydesk.adapters.outbound import Network
from paydesk.core.bank_accounts import BankAccount
from paydesk.database.pool import Database
from paydesk.domain.accounts.access_needs import Client, Gate
from paydesk.domain.pingbacks.sending import PingbackSender
from paydesk.web.console.cookies import Cookies
from paydesk.web.services import DoorServices
from paydesk.web.visits import client_address


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleServices(DoorServices):
    """What a console's routes need besides what every door's do.

    `iban_wait` is how long payouts to a newly accepted bank account wait, `payout_account` the
    operator's own that they are sent from, if it is set; `sender` makes a sender of pingbacks for
    one request, which reaches `outbound_allow` besides the public internet; `countries` knows those
    of addresses, if there is a file of them.
    """

    door: ClassVar[str] = "console"

    gate: Gate
    iban_wait: timedelta
    payout_account: BankAccount | None
    sender: Callable[[], AbstractAsyncContextManager[PingbackSender]]
    outbound_allow: tuple[Network, ...]
    countries: IpCountries | None

    @property
    def database(self) -> Database:
        """The database behind everything."""
        return self.gate.database

    @property
    def secure(self) -> bool:
        """Whether browsers reach the service over https."""
        return self.address.startswith("https://")


def client_of(request: Request, services: ConsoleServices) -> Client:
    """Where a request comes from."""
    address = client_address(request.scope, services.trusted_proxies)
    device = Cookies(services.secure, services.gate.vault).device(request)
    return Client(address, request.headers.get("user-agent", ""), device)
