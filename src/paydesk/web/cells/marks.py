"""The mark of a request that another cell has passed on: who sent it there, and to which base.

Only a cell can make one, since the key derives from the secret key that all have. So a marked
request is believed, and is passed on no more.
"""

from __future__ import annotations

import hmac
import re
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from urllib.parse import quote, unquote

from paydesk.adapters.vault import Vault
from paydesk.core.errors import IN_A_MOMENT, Unavailable
from paydesk.web.connections.limits import MARK

HEADER: Final = MARK.decode()

LASTS: Final = 300
"""Seconds in which a mark is good: clocks differ, and nobody has a use for one that is older."""

_PURPOSE: Final = "requests passed on between cells"
_MARK: Final = re.compile(r"([0-9]{1,12}) ([^ ]{1,200}) ([^ ]{1,200}) ([0-9a-f]{64})")
_LIVE, _SANDBOX = "live", "sandbox"


@dataclass(frozen=True, slots=True)
class Passed:
    """What a cell says of a request that it passes on: its `client` (`visits.client_address`), and
    what stands before a route's path in the sandbox's base where it came to; None for the live one.
    """

    client: str
    sandbox: str | None = None

    @property
    def _base(self) -> str:
        return _LIVE if self.sandbox is None else _SANDBOX + quote(self.sandbox)


def mark(vault: Vault, method: str, target: str, passed: Passed, *, now: datetime) -> str:
    """The header's value for a request to `target`, its path and query."""
    said = f"{int(now.timestamp())} {quote(passed.client, safe=':') or '-'} {passed._base}"
    return f"{said} {_proof(vault, method, target, said)}"


class NotLately(Unavailable):
    """A cell has made the mark, but not just now by this one's clock."""

    retry_after = IN_A_MOMENT

    def __init__(self) -> None:
        super().__init__(
            "the clocks of two parts of this service are minutes apart, so that this can't be passed on; nothing was "
            "done, try again later"
        )


def read_mark(vault: Vault, method: str, target: str, given: str, *, now: datetime) -> Passed | None:
    """What a mark says; None if no cell has made it for this request.

    Raises: NotLately. Without what the mark says the request would be another one: what came to the
        sandbox would be live.
    """
    match = _MARK.fullmatch(given)
    if match is None or not given.isascii():
        return None
    said = given.rpartition(" ")[0]
    if not hmac.compare_digest(_proof(vault, method, target, said), match[4]):
        return None
    if abs(now.timestamp() - int(match[1])) > LASTS:
        raise NotLately
    sandbox = unquote(match[3].removeprefix(_SANDBOX)) if match[3].startswith(_SANDBOX) else None
    return Passed(unquote(match[2]), sandbox)


def _proof(vault: Vault, method: str, target: str, said: str) -> str:
    return vault.fingerprint(f"{method} {target} {said}", purpose=_PURPOSE).hex()
