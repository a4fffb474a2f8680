"""Subscriptions are found by the address that their customer typed."""

from __future__ import annotations

import pytest
from tests.till import Till

from paydesk.core.paging import Page
from paydesk.domain.subscriptions.for_api import SubscriptionFilter, list_subscriptions


@pytest.mark.parametrize("email", ["İrem@example.com", "ΝΙΚΟΣ@example.com"])
@pytest.mark.parametrize("reference", [None, "A-1"])
async def test_a_subscription_is_found_by_the_address_that_was_typed(
    subscriber: Till, email: str, reference: str | None
) -> None:
    """Python makes other letters of it than PostgreSQL."""
    made = await subscriber.subscribe(order="A-1", email=email)
    wanted = SubscriptionFilter(email=email, reference=reference)
    listed = await list_subscriptions(subscriber.database, subscriber.shop, wanted, Page(10))
    assert [one.subscription.id for one in listed] == [made.id]
