"""`paydesk` with a planted bug: the bank is called before the intent of a payment or refund is committed.

The fault test must find both.

uvicorn's workers import this file too (as the main module of their parent), so the bug is in each of them.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from contextvars import ContextVar
from datetime import datetime
from typing import Any

from paydesk.adapters.acquirers.interface import Acquirer, AcquirerRefused, OutcomeUnknown, Purchase
from paydesk.cli import main
from paydesk.domain.payments import movements, paying, refunding
from paydesk.domain.payments.checkouts import Checkout
from paydesk.domain.payments.paying import Desk, Payer, Refused
from paydesk.domain.payments.recording import movement_of
from paydesk.domain.payments.states import MovementKind
from paydesk.web.api import refunds

SLOW = 0.5
"""Seconds between call and commit, so that a kill is likely to come in between."""

_asking: ContextVar[tuple[Acquirer, Checkout, Payer, str]] = ContextVar("asking")
_commit_intent = paying._commit_intent
_begin_attempt = paying.queries.begin_attempt
_giving_back: ContextVar[Desk] = ContextVar("giving_back")
_refund = refunding.refund
_begin = refunding._begin


async def _remember_and_commit(
    desk: Desk, checkout: Checkout, payer: Payer, acquirer: Acquirer, *, return_url: str, now: datetime
) -> paying._Intent | Refused:
    _asking.set((acquirer, checkout, payer, return_url))
    return await _commit_intent(desk, checkout, payer, acquirer, return_url=return_url, now=now)


async def _call_then_begin(database: Any, **names: Any) -> Any:
    """Call first, commit then; the call that follows as usual has the same key, so it gets the same answer."""
    acquirer, checkout, payer, return_url = _asking.get()
    purchase = Purchase(
        key=names["idempotency_key"],
        amount=checkout.amount,
        currency=checkout.currency,
        card=payer.card,
        capture=names["capture"],
        not_after=names["not_after"],
        return_url=return_url,
    )
    with suppress(OutcomeUnknown):
        await acquirer.authorize(purchase)
    await asyncio.sleep(SLOW)
    return await _begin_attempt(database, **names)


async def _remember_and_refund(desk: Desk, *named: Any, **names: Any) -> refunding.Refund:
    _giving_back.set(desk)
    return await _refund(desk, *named, **names)


async def _call_then_commit(database: Any, kind: MovementKind, amount: Any, asked: dict[str, Any]) -> Any:
    """Call first, commit then; the call that follows as usual has the same key, so it gets the same answer."""
    async with database.acquire() as connection, connection.transaction():
        row = await _begin(connection, kind, amount, asked)
        if row is not None:
            with suppress(OutcomeUnknown, AcquirerRefused):
                await movements._ask(_giving_back.get(), movement_of(row))
            await asyncio.sleep(SLOW)
    return row


paying._commit_intent = _remember_and_commit
paying.queries.begin_attempt = _call_then_begin
# The API has its own name for it.
vars(refunds)["refund"] = _remember_and_refund
refunding._begin = _call_then_commit

if __name__ == "__main__":
    main()
