"""What letting people in needs, who asks, and why they may be turned away."""

from __future__ import annotations

from dataclasses import dataclass, field

from paydesk.adapters.vault import Vault
from paydesk.core.errors import Forbidden, Unauthorized
from paydesk.database.pool import Database
from paydesk.domain.accounts.passwords import Passwords
from paydesk.domain.cells.entering import ALONE, Entering


@dataclass(frozen=True, slots=True)
class Gate:
    """What letting people in needs: the database, the vault, the hashing of passwords (one per
    process), and the directory of cells, in which new people are entered.
    """

    database: Database
    vault: Vault
    passwords: Passwords
    entering: Entering = ALONE


@dataclass(frozen=True, slots=True)
class Client:
    """Where a request comes from: the address, what the browser calls itself,
    and the token that it is known by.
    """

    address: str
    user_agent: str = ""
    device: str = field(default="", repr=False)


class NotLetIn(Unauthorized):
    """E-mail address, password or code is wrong; the same words whatever it was."""


class NotLoggedIn(Unauthorized):
    """The session is unknown, has ended or has expired."""


class SecondFactorNeeded(Forbidden):
    """The session's second factor has still to be given, or an operator's to be set up."""


class ConfirmationNeeded(Forbidden):
    """What was asked needs the password given again, since the last time is too long ago."""
