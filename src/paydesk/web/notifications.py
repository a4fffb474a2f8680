"""Where acquirers tell of their own accord that something has happened: `POST
/acquirers/{account}/notify`. It only hurries the look-up that would come anyhow. Moves no money.

Nothing that is said here is believed: who may speak is verified, by the acquirer's signature or by
the token in an address that we gave to it, and then the acquirer is asked. What is forged, foreign
or too large changes nothing, and costs the acquirer no call.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from functools import partial

import structlog
from prometheus_client import Counter
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from paydesk.adapters.acquirers.notices import NoticeRefused
from paydesk.core.clock import utc_now
from paydesk.core.errors import TooLarge
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.hurrying import hurry_named, hurry_noticed, named
from paydesk.web.checkout.services import CheckoutServices
from paydesk.web.minute_budgets import MinuteBudget
from paydesk.web.visits import NOTHING_HERE, PASSED_ON, TAKEN_ELSEWHERE, Network, client_address, read_body

log = structlog.get_logger()

NOTIFICATIONS = Counter(
    "paydesk_acquirer_notifications_total", "Notifications of acquirers, by what came of them", ["outcome"]
)

LARGEST_BODY = 128 * 1024
A_MINUTE, ADDRESS_A_MINUTE = 600, 60
"""Notifications that one process reads a minute and can't verify, of all and of one address."""


class _Refused(Exception):
    """Why a notification is not taken, for whoever sent it, and as it is counted."""

    def __init__(self, status: int, why: str, outcome: str) -> None:
        super().__init__(why)
        self.status, self.why, self.outcome = status, why, outcome


def notification_routes(trusted_proxies: tuple[Network, ...]) -> list[Route]:
    """The route of all acquirers; `account` is the name of one, such as `stripe`."""
    budget = MinuteBudget(A_MINUTE, ADDRESS_A_MINUTE)

    async def notify(request: Request) -> Response:
        address, now = client_address(request.scope, trusted_proxies), utc_now()
        try:
            # What another cell passes on it has counted itself.
            if not request.scope.get(PASSED_ON) and not budget.take(address, now=now):
                raise _Refused(429, "too many notifications; try again in a minute", "rate")
            hurry = await _verified(CheckoutServices.of(request).desk, request, now=now)
        except _Refused as refused:
            NOTIFICATIONS.labels(refused.outcome).inc()
            if refused.status != 429:
                request.scope[TAKEN_ELSEWHERE] = partial(budget.give_back, address)
            headers = {"Retry-After": "60"} if refused.status == 429 else {}
            return PlainTextResponse(refused.why, refused.status, headers=headers)
        # Whatever comes of it, such as a merchant on its way to another cell: it is no stranger's.
        if not request.scope.get(PASSED_ON):
            budget.give_back(address)
        hurried = await hurry()
        NOTIFICATIONS.labels("hurried" if hurried else "nothing").inc()
        if not hurried:
            request.scope[NOTHING_HERE] = True
        return PlainTextResponse("ok")

    return [Route("/acquirers/{account}/notify", notify, methods=["POST"])]


async def _verified(desk: Desk, request: Request, *, now: datetime) -> Callable[[], Awaitable[bool]]:
    """What hurries what a notification is about, and says whether anybody waits for that, once it
    is known to be the acquirer's. Raises: _Refused.
    """
    account, asked = str(request.path_params.get("account")), request.query_params
    try:
        # Also for an account that is another cell's: what it says may lead it there.
        body = await read_body(request, LARGEST_BODY)
    except TooLarge as error:
        raise _Refused(413, error.message, "size") from None
    acquirer = desk.acquirers.get(account)
    if acquirer is None:
        raise _Refused(404, "no acquirer of this name is configured here", "unknown")
    if (token := asked.get("token")) is not None:
        about = named(desk.vault, account, asked.get("of", ""), token)
        if about is None:
            raise _Refused(403, "this address is none that was given to the acquirer", "forged")
        return partial(hurry_named, desk.database, account, about, now=now)
    try:
        notice = acquirer.read_notification(request.headers, body)
    except NoticeRefused as error:
        log.warning("a notification is refused", account=account, why=str(error))
        raise _Refused(400, str(error), "forged") from None
    return _nothing if notice is None else partial(hurry_noticed, desk.database, account, notice, now=now)


async def _nothing() -> bool:
    """Nobody waits for what it is about."""
    return False
