"""A desk for commands that move money: with both sides' acquirers, and the watch over the
database's history.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from paydesk.commands.connecting import Deployment
from paydesk.domain.payments.desk import Desk
from paydesk.equipment import accounts_open, history_watched, live_acquirer, payment_desk, test_acquirer


@asynccontextmanager
async def money_desk(here: Deployment) -> AsyncIterator[Desk]:
    """A desk with the acquirers of test and live payments, for a block."""
    async with AsyncExitStack() as stack:
        acquirer, live = test_acquirer(here.settings), live_acquirer(here.settings)
        for one in (acquirer, live):
            if one is not None:
                stack.push_async_callback(one.close)
        desk = payment_desk(here.settings, here.database, here.vault, acquirer, live, gate=here.history.gate)
        await stack.enter_async_context(accounts_open(desk))
        await stack.enter_async_context(history_watched(here.settings, desk, here.history))
        yield desk
