"""What a subscriber is told while payments are held, and what they may do all the same."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.web.conftest import Hold
from tests.web.portal.conftest import Subscriber, leads_to

from paydesk.adapters.acquirers.simulator import Bank
from paydesk.core.errors import Held

MASTERCARD, ASKS_CUSTOMER = "5555555555554444", "4000000000003220"
BREAK = "The payment service is taking a short break"


@pytest.fixture(autouse=True)
def _held_later(hold: Hold) -> None:
    """It is there before a service is."""


async def challenged(subscriber: Subscriber, bank: Bank) -> str:
    """The number by which the bank knows a challenge of a new card."""
    challenge = bank.challenge(leads_to(await subscriber.give(ASKS_CUSTOMER)).rpartition("/")[2])
    assert challenge is not None
    return challenge.reference


async def test_another_card_is_taken_once_it_can_be_checked(
    subscriber: Subscriber, hold: Hold, count_rows: Any
) -> None:
    await hold.begin()
    assert "•••• 4242" in await subscriber.page()
    await subscriber.page(below="/card")
    hold.is_told(await subscriber.give(MASTERCARD), BREAK)
    assert await count_rows("card_change") == 0
    hold.lift()
    assert leads_to(await subscriber.give(MASTERCARD)) == f"{subscriber.path}/card/result"
    assert "•••• 4444" in await subscriber.page()


async def test_who_comes_back_from_the_bank_is_told_how_it_went(subscriber: Subscriber, hold: Hold, bank: Bank) -> None:
    reference = await challenged(subscriber, bank)
    bank.decide(reference, "approve")
    await hold.begin()
    assert "charges Visa •••• 3220" in await subscriber.page(below="/card/result")
    assert "•••• 3220" in await subscriber.page()
    hold.bank_heard_nothing()


async def test_a_challenge_that_is_open_stays_open(subscriber: Subscriber, hold: Hold, bank: Bank) -> None:
    reference = await challenged(subscriber, bank)
    await hold.begin()
    hold.is_told(await subscriber.give(MASTERCARD), BREAK)
    hold.lift()
    bank.decide(reference, "approve")
    assert "charges Visa •••• 3220" in await subscriber.page(below="/card/result")


async def test_who_is_failing_loses_no_try_and_is_charged_once_with_the_new_card(
    hold: Hold, failing: Subscriber, charges: Any
) -> None:
    await hold.begin()
    before = await failing.now()
    hold.is_told(await failing.give(MASTERCARD), BREAK)
    held = replace(failing, desk=replace(failing.desk, gate=hold.histories[-1].gate))
    with pytest.raises(Held):
        await held.charge()
    assert await failing.now() == before
    hold.lift()
    leads_to(await failing.give(MASTERCARD))
    assert await held.charge() == 1
    assert await held.charge(at=(await failing.now()).date_paid) == 0
    assert ((await failing.now()).paid_number_counter, (await failing.now()).failures) == (2, 0)
    assert len(charges()) == 2


async def test_it_is_cancelled_all_the_same(subscriber: Subscriber, hold: Hold) -> None:
    await hold.begin()
    assert leads_to(await subscriber.cancel()) == subscriber.path
    assert "ancelled" in await subscriber.page()
    assert await subscriber.events() == ["subscription_cancelled"]
    hold.bank_heard_nothing()
