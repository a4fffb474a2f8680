"""How many codes may be asked for: for one address, from one client, and of one merchant."""

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
    """The limit of a client or of a merchant is used up."""


async def count_code(
    connection: Connection, vault: Vault, shop: Shop, mail_to: str, client: str, *, now: datetime
) -> bool:
    """Count one more code, within the transaction that makes it; false if its address has had its
    codes for the day. `now` is real time.

    Raises: TooManyCodes, and what is refused so is not counted.
    """
    side = "live" if shop.live else "test"
    for limit, whom in ((_CLIENT, client), (_MERCHANT, f"{shop.merchant_id} {side}")):
        if not await counted(connection, vault, limit, whom, now=now):
            raise TooManyCodes
    limit = _ADDRESS if shop.live else _TEST_ADDRESS
    return await counted(connection, vault, limit, f"{side} {mail_to.lower()}", now=now)


async def counted(connection: Connection, vault: Vault, limit: CodeLimit, whom: str, *, now: datetime) -> bool:
    """Whether one more is within a limit, which is counted then."""
    subject = vault.fingerprint(f"{limit.what} {whom}", purpose="shopper count")
    times = await queries.count(connection, subject=subject, most=limit.most, until=now + limit.span, now=now)
    return times is not None
