"""Payments that are held in the service that a test started,
and what every door must do meanwhile.
"""

from __future__ import annotations

import asyncio
import html
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import httpx
import pytest

import paydesk.app
import paydesk.equipment
from paydesk.adapters.acquirers.simulator import Bank
from paydesk.core.clock import utc_now
from paydesk.domain.operations.history import History
from paydesk.domain.payments.hold_gate import LATER, Standing
from paydesk.settings import Settings
from paydesk.web.checkout.services import CheckoutServices

WHY = "the database was restored"
_NAME = "test"


def standing_still() -> Callable[[CheckoutServices], CheckoutServices]:
    """Wire a service whose clock stands still: what is counted by the minute is of one, however
    long a busy machine takes for it.
    """
    now = utc_now()
    return lambda services: replace(services, now=lambda: now)


@dataclass(slots=True)
class Hold:
    """Holds what moves money in all services of a test, and lifts that; `bank` is theirs."""

    bank: Bank
    histories: list[History] = field(default_factory=list)
    asked: int = 0

    async def begin(self) -> None:
        """Hold, once every service has looked whether its database is whole."""
        await self.looked()
        self.shut()

    async def looked(self) -> None:
        """Wait until every service has compared the bank's list with the books, and found nothing
        missing: until then, books that a test spoils hold all that comes after it.
        """
        for history in self.histories:
            while history.gate.standing is Standing.LOOKING:  # noqa: ASYNC110 (its watch sends no event)
                await asyncio.sleep(0.01)
            assert history.gate.standing is Standing.OPEN, history.gate.held()

    def shut(self) -> None:
        """Hold at once; the bank should be asked for no more money from now on."""
        self.asked = self._operations()
        for history in self.histories:
            history.gate.shut(_NAME, WHY)

    def lift(self) -> None:
        """Let money be moved again."""
        for history in self.histories:
            history.gate.reopen(_NAME)

    def is_told(self, answer: httpx.Response, words: str = "Nothing was begun and nobody charged") -> None:
        """Check that a door has refused, in words and with the time to come back,
        and that the bank heard nothing.
        """
        said = html.unescape(answer.text)
        assert answer.status_code == 503, said
        assert answer.headers["retry-after"] == str(LATER)
        assert words in said
        self.bank_heard_nothing()

    def bank_heard_nothing(self) -> None:
        """Check that the bank was asked for nothing that it writes down since it is held."""
        assert self._operations() == self.asked

    def _operations(self) -> int:
        return len(list(self.bank.record.operations()))


@pytest.fixture
def hold(bank: Bank, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hold]:
    """Asked for before the service is started that it is to hold."""
    holding, honest = Hold(bank), paydesk.equipment.history_of

    def kept(settings: Settings) -> History:
        holding.histories.append(honest(settings))
        return holding.histories[-1]

    monkeypatch.setattr(paydesk.app, "history_of", kept)
    yield holding
    holding.lift()
