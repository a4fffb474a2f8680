"""`paydesk` with a planted bug: the bank is called before the intent is committed. The fault test must find it.

uvicorn's workers import this file too (as the main module of their parent), so the bug is in each of them.
"""

from __future__ import annotations

from contextlib import suppress
from contextvars import ContextVar
from datetime import datetime
from typing import Any

from paydesk.adapters.acquirers.interface import Acquirer, OutcomeUnknown, Purchase
from paydesk.cli import main
from paydesk.domain.payments import paying
from paydesk.domain.payments.checkouts import Checkout
from paydesk.domain.payments.paying import Desk, Payer, Refused

_asking: ContextVar[tuple[Acquirer, Checkout, Payer, str]] = ContextVar("asking")
_commit_intent = paying._commit_intent
_begin_attempt = paying.queries.begin_attempt


async def _remember_and_commit(
    desk: Desk, checkout: Checkout, payer: Payer, acquirer: Acquirer, *, return_url: str, now: datetime
) -> tuple[int, Purchase] | Refused:
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
        capture=True,
        not_after=names["not_after"],
        return_url=return_url,
    )
    with suppress(OutcomeUnknown):
        await acquirer.authorize(purchase)
    return await _begin_attempt(database, **names)


paying._commit_intent = _remember_and_commit
paying.queries.begin_attempt = _call_then_begin

if __name__ == "__main__":
    main()
