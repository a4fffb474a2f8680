"""Where a subscriber manages the subscription: the shop asks Paydesk's API for it,
server to server.
"""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Final

import msgspec
from aiohttp import ClientError, ClientSession, ClientTimeout

from paydesk_client import Gateway

_PATIENCE: Final = ClientTimeout(total=10)


class Unreachable(Exception):
    """Paydesk did not answer with the subscription."""


class ToCome(msgspec.Struct, frozen=True):
    """The kind of what is to come: `cancel`, `change`, or `resume` while it is paused."""

    type: str


class Subscribed(msgspec.Struct, frozen=True):
    """A subscription as the API shows it; `date_next` is in seconds, 0 if nothing is charged, and
    `change_request` says what is to come.
    """

    portal_url: str
    status: str = ""
    price: str = "0"
    currency_code: str = "USD"
    date_next: int = 0
    change_request: ToCome | None = None

    @property
    def runs(self) -> bool:
        """Whether it may still be changed."""
        return self.status in ("Active", "Trial", "Paused")

    @property
    def next_at(self) -> datetime | None:
        """When it is charged next, UTC."""
        return datetime.fromtimestamp(self.date_next, UTC) if self.date_next else None

    @property
    def amount(self) -> Decimal:
        """What a period costs."""
        return Decimal(self.price)

    @property
    def to_come(self) -> str:
        """The kind of change that is to come, if there is one."""
        return self.change_request.type if self.change_request else ""


class _Answer(msgspec.Struct):
    data: Subscribed


async def find_subscription(gateway: Gateway, subscription: str) -> Subscribed:
    """One subscription by its id, with the address of its portal: for its customer alone.

    Raises: Unreachable.
    """
    url = f"{gateway.api_url}/api/v1/subscriptions/{subscription}"
    headers = {"X-ApiKey": gateway.private_key, "Accept": "application/json"}
    try:
        async with ClientSession(timeout=_PATIENCE) as session, session.get(url, headers=headers) as answer:
            answer.raise_for_status()
            return msgspec.json.decode(await answer.read(), type=_Answer).data
    except (ClientError, TimeoutError, msgspec.MsgspecError) as error:
        raise Unreachable(str(error)) from error
