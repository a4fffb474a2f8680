"""Going on to the next account, only where the first one can't have taken money: it could not be
reached, or refused to be asked. After an outcome that is not known nobody goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Generic, TypeVar

import structlog

from paydesk.adapters.acquirers.interface import Acquirer, Declined, DeclineReason, NothingBegun, Outcome
from paydesk.core.clock import utc_now
from paydesk.core.errors import Unavailable
from paydesk.domain.acquirers.choosing import Choice
from paydesk.domain.acquirers.routing import Order
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.outcomes import Ending, record_endings
from paydesk.domain.payments.states import AttemptState

log = structlog.get_logger()

BEGAN_NOTHING: Final = frozenset({str(DeclineReason.NOT_REACHED), str(DeclineReason.REQUEST_REFUSED)})
"""Why attempts ended that began nothing at their account, so that another one may be asked."""

NOT_REACHED: Final = Declined(DeclineReason.NOT_REACHED)
"""The answer that no connection is."""

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Tried(Generic[_Result]):
    """What came of an attempt; without an `attempt_id` a guard refused to make one.

    `began_nothing` once it is written down that its account can't have taken money.
    """

    result: _Result
    attempt_id: int = 0
    began_nothing: bool = False


async def at_accounts(
    desk: Desk,
    order: Order,
    previous_id: int | None,
    can: Callable[[Acquirer], bool],
    attempt: Callable[[Acquirer, int | None], Awaitable[Tried[_Result]]],
) -> _Result:
    """Attempt an order at the account that is chosen, and at the next one while that began nothing;
    at each account once. Moves money.

    `previous_id` is the attempt that holds the order. Raises: Unavailable if nobody takes it.
    """
    last: Tried[_Result] | None = None
    asked: list[str] = []
    while (choice := await _next(desk, order, can, asked)) is not None:
        acquirer = desk.named(choice.account)
        tried = await attempt(acquirer, previous_id)
        if not tried.attempt_id:
            return last.result if last else tried.result
        desk.health.count(acquirer.name, f"by {choice.by}", *(f"from {name}" for name in asked[-1:]))
        last = tried
        if not tried.began_nothing:
            break
        previous_id = tried.attempt_id
        asked.append(acquirer.name)
    assert last is not None
    return last.result


async def _next(desk: Desk, order: Order, can: Callable[[Acquirer], bool], asked: list[str]) -> Choice | None:
    """The account to ask now, None if all that may be asked began nothing.

    Raises: Unavailable if nobody takes the order from the outset.
    """
    try:
        choice = await desk.chosen(order, can=can)
    except Unavailable:
        if not asked:
            raise
        return None
    return None if asked and (choice.account is None or choice.account in asked) else choice


async def asked(acquirer: Acquirer, attempt_id: int, call: Awaitable[Outcome]) -> Outcome:
    """The answer to a call that a customer waits for; to have had no connection is one, too.
    Moves money. Raises: as the call, but NothingBegun.
    """
    try:
        return await call
    except NothingBegun as error:
        log.warning("the acquirer was not reached", attempt_id=attempt_id, acquirer=acquirer.name, why=str(error))
        return NOT_REACHED


async def record_not_reached(desk: Desk, shop: Shop, attempt_id: int, *, now: datetime) -> bool:
    """Record that an attempt's account was not reached; false if the janitor was faster.
    Moves no money.

    It is looked up later all the same, and undone should it have been approved: by then its order
    may be paid elsewhere. It counts as no decline.
    """
    ending = Ending(shop, attempt_id, AttemptState.FAILED, DeclineReason.NOT_REACHED)
    return bool(await record_endings(desk.database, [ending], now=now, real_now=utc_now()))


async def finished(desk: Desk, call: Coroutine[object, None, _Result]) -> _Result:
    """Wait for a call that goes on though its customer goes away: its outcome must be written
    down.
    """
    task = asyncio.create_task(call)
    desk.under_way.add(task)
    task.add_done_callback(desk.under_way.discard)
    return await asyncio.shield(task)
