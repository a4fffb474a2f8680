"""Where a subscriber manages the subscription: the shop asks Paydesk's API for it,
server to server.
"""

from __future__ import annotations

from typing import Final

import msgspec
from aiohttp import ClientError, ClientSession, ClientTimeout

from paydesk_client import Gateway

_PATIENCE: Final = ClientTimeout(total=10)


class Unreachable(Exception):
    """Paydesk did not answer with the address."""


class _Subscription(msgspec.Struct):
    portal_url: str


class _Answer(msgspec.Struct):
    data: _Subscription


async def find_portal(gateway: Gateway, subscription: str) -> str:
    """The address of the portal of one subscription, by its id: for its customer alone.

    Raises: Unreachable.
    """
    url = f"{gateway.api_url}/api/v1/subscriptions/{subscription}"
    headers = {"X-ApiKey": gateway.private_key, "Accept": "application/json"}
    try:
        async with ClientSession(timeout=_PATIENCE) as session, session.get(url, headers=headers) as answer:
            answer.raise_for_status()
            return msgspec.json.decode(await answer.read(), type=_Answer).data.portal_url
    except (ClientError, TimeoutError, msgspec.MsgspecError) as error:
        raise Unreachable(str(error)) from error
