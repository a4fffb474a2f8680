"""Subscribers at the simulated bank, and a bank that does as it is told."""

from __future__ import annotations

import pytest
from tests.domain.subscriptions.subscriber import ObedientBank, Subscriber

from paydesk.domain.merchants.accounts import Shop
from paydesk.domain.payments.paying import Desk


@pytest.fixture
async def subscriber(desk: Desk, shop: Shop) -> Subscriber:
    """A merchant's customers; a janitor asks for all merchants, so what other tests have left is not asked about."""
    await desk.database.execute("update payment_attempt set lookup_at = null where lookup_at is not null")
    return Subscriber(desk, shop)


@pytest.fixture
def obedient() -> ObedientBank:
    return ObedientBank()
