"""How many codes may be asked for: by one address, from one client, and of one merchant."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from paydesk.adapters.vault import Vault
from paydesk.database.statements import Connection, load_statements
from paydesk.domain.merchants.shop import Shop

queries = load_statements(__package__ or "")

CODES_A_DAY = 5
"""To one address, whoever asks, and at whatever shop."""

TEST_CODES_A_DAY = 50
"""The same for test data, whose codes all go to the merchant's own address."""

CODES_OF_CLIENT = 20
"""From one client's address within an hour, at all shops together."""

CODES_OF_MERCHANT = 600
"""At one side of a shop within an hour."""


@dataclass(frozen=True, slots=True)
class CodeLimit:
    """So many times within a span, from the first time on."""

    what: str
    most: int
    span: timedelta


_ADDRESS = CodeLimit("address", CODES_A_DAY, timedelta(days=1))
_TEST_ADDRESS = CodeLimit("address", TEST_CODES_A_DAY, timedelta(days=1))
_CLIENT = CodeLimit("client", CODES_OF_CLIENT, timedelta(hours=1))
_MERCHANT = CodeLimit("merchant", CODES_OF_MERCHANT, timedelta(hours=1))


class TooManyCodes(Exception):
    """A limit is used up: `what` is whose."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what


async def count_code(
    connection: Connection, vault: Vault, shop: Shop, mail_to: str, client: str, *, now: datetime
) -> None:
    """Count one more code, within the transaction that makes it: one that is refused is not
    counted. `now` is real time.

    Raises: TooManyCodes.
    """
    side = "live" if shop.live else "test"
    subjects = [
        (_CLIENT, client),
        (_MERCHANT, f"{shop.merchant_id} {side}"),
        (_ADDRESS if shop.live else _TEST_ADDRESS, f"{side} {mail_to.lower()}"),
    ]
    for limit, whom in subjects:
        subject = vault.fingerprint(f"{limit.what} {whom}", purpose="shopper count")
        counted = await queries.count(connection, subject=subject, most=limit.most, until=now + limit.span, now=now)
        if counted is None:
            raise TooManyCodes(limit.what)
