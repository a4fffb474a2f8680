from collections.abc import AsyncIterator

import pytest
from tests.adapters.acquirers.conftest import Street, open_counter
from tests.adapters.acquirers.counters import BankClock, Counter

from paydesk.adapters.acquirers.simulator import Record


@pytest.fixture(params=["in process", "remote"])
async def counter(
    request: pytest.FixtureRequest, street: Street, record: Record, clock: BankClock
) -> AsyncIterator[Counter]:
    async with open_counter(request, request.param) as opened:
        yield opened
