"""Whatever dies at whichever point while customers pay at Stripe or Mollie: by the acquirer's own
record each order is paid once, what was paid twice is given back, and the shop hears of one
payment.

The acquirers are stand-ins of ours, in processes of their own.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.faults.carrying import Carrier, Delivery, Letter, forgeries
from tests.faults.live_banks import NAMES
from tests.faults.live_plays import (
    GOES_AWAY,
    LEAVES,
    NOTIFIED,
    OF_MOVEMENTS,
    OF_THE_PAGE,
    OF_TWO_PAGES,
    PAYS_BOTH,
    THERE,
    UNDECIDED,
    plays_of,
    unending_pages,
)
from tests.faults.plays import PAYS, Fate, have_paid, perform, play
from tests.faults.settling import KEYS_ARE_VOID, hereafter, settle
from tests.faults.stage import Cast, Order, Stage, staged
from tests.faults.test_plays import FORKS, check, unforeseen
from tests.faults.two_pages import at_once, leave, pay_and_go, pay_on_both
from tests.faults.verifying import contradictions, hear
from tests.lengths import long

from paydesk.adapters.acquirers.simulator.record import Kind

pytestmark = pytest.mark.faults

SEED = 14
FEW_PLAYS = OF_THE_PAGE[3:11:7] + NOTIFIED["mollie"][:1] + OF_MOVEMENTS[3:4]
FEW_PAIRS = 4
PAIRS = 200
HALF = PAIRS // 2
GONE, LEFT = 60, 6
FORGED = 2
"""Notifications that somebody makes up others after: an address may send 60 a minute that can't be
verified."""
LAG = 0.05
"""Seconds that a stand-in takes before it acts, and after that, at most."""
EXPECTED = "an approval turned up for an attempt that was given up; voiding it"
"""Of pages that could not be ended."""


async def assert_nothing_lost_or_doubled(stage: Stage) -> None:
    """All witnesses agree, and no process says that something went wrong."""
    assert stage.live is not None
    found = contradictions(await hear(stage))
    assert stage.staff.wrong + stage.staff.failures() == [], found
    assert not found, "\n".join(found)
    assert await check(stage) == ""
    assert [wrong for customer in stage.crowd.customers for wrong in customer.wrong] == []
    assert stage.receiver.forged == 0
    assert await stage.live.wrong() == []
    said = unforeseen(stage.web, *stage.workers, outages=stage.outages)
    assert [one for one in said if not one.startswith(EXPECTED)] == []


async def assert_answered(carrier: Carrier, status: int, letters: Sequence[Letter]) -> None:
    """The service answers each of some letters so."""
    assert [await carrier.hand_over(one) for one in letters] == [status] * len(letters)


def told(stage: Stage) -> set[str]:
    """The orders whose payment the shop has heard of."""
    return {payload["payment_order"]["merchant_order_id"] for payload in stage.receiver.accepted}


@long
@pytest.mark.parametrize("live", NAMES)
@pytest.mark.parametrize("fate", Fate, ids=lambda fate: fate.name.lower())
async def test_nothing_is_lost_or_doubled_whatever_happens_at_a_point(tmp_path: Path, live: str, fate: Fate) -> None:
    async with staged(tmp_path, Cast(live=live, forks=FORKS)) as stage:
        assert stage.live is not None
        at_the_door, in_background = plays_of(live)
        await perform(stage, at_the_door, fate)
        await settle(stage)
        async with stage.working():
            for first in range(0, len(in_background), FORKS):
                await perform(stage, in_background[first : first + FORKS], fate)
            async with unending_pages(stage):
                await perform(stage, OF_TWO_PAGES, fate)
        if live == "mollie":
            await stage.live.do("set", capture_status="pending", releases=False)
            await perform(stage, UNDECIDED, fate)
        await settle(stage)
        await assert_nothing_lost_or_doubled(stage)
        assert await stage.web.stop() == 0


async def test_nothing_is_lost_or_doubled_at_a_few_points(tmp_path: Path) -> None:
    """The short form of all the others, without workers: kills, notifications that are lost, late
    or doubled, and pages that are paid at the same moment.
    """
    chance = random.Random(SEED)
    async with staged(tmp_path, Cast(live="mollie"), SEED) as stage:
        assert stage.live is not None
        await perform(stage, FEW_PLAYS, Fate.DIES)
        stage.live.carrier.decides = lambda letter: chance.choice([*Delivery])
        people = [stage.expect(Order(f"two-{number}", THERE)) for number in range(FEW_PAIRS)]
        await at_once(pay_on_both(one, chance, both_open=bool(n % 2)) for n, one in enumerate(people))
        for forged in forgeries(stage.live.carrier.carried[0]).items():
            await assert_answered(stage.live.carrier, *forged)
        await settle(stage)
        await assert_nothing_lost_or_doubled(stage)
        assert await stage.web.stop() == 0


@long
@pytest.mark.parametrize("live", NAMES)
async def test_who_pays_on_two_pages_at_the_same_moment_gets_one_of_them_back(tmp_path: Path, live: str) -> None:
    """At Stripe the first page is expired before the second one is made, unless its customer is
    with their bank; at Mollie none can be ended.
    """
    chance = random.Random(SEED)
    async with staged(tmp_path, Cast(live=live, web_workers=2), SEED) as stage:
        assert stage.live is not None
        await stage.live.do("take_time", LAG, SEED)
        people = [stage.expect(Order(f"order-{number:03}", THERE)) for number in range(PAIRS)]
        async with stage.working():
            await at_once(pay_on_both(one, chance, both_open=bool(n % 2)) for n, one in enumerate(people[HALF:]))
            async with unending_pages(stage):
                await at_once(pay_on_both(one, chance, both_open=bool(n % 2)) for n, one in enumerate(people[:HALF]))
        await settle(stage)
        await assert_nothing_lost_or_doubled(stage)
        given_back = sum(done.kind is Kind.VOID for done in await stage.live.operations())
        surely = HALF // 2 * (2 if live == "mollie" else 1)
        assert surely <= given_back <= PAIRS
        assert await stage.web.stop() == 0
        print(f"{PAIRS} pairs of pages at {live}, {given_back} paid on both and given back")


@long
@pytest.mark.parametrize("live", NAMES)
async def test_notifications_that_are_lost_late_doubled_replayed_or_forged_change_nothing(
    tmp_path: Path, live: str
) -> None:
    """Nobody comes back from the acquirer's page by themselves: only the notification, or the next
    look, says that they have paid there.
    """
    chance = random.Random(SEED)
    async with staged(tmp_path, Cast(live=live), SEED) as stage:
        assert stage.live is not None
        carrier = stage.live.carrier
        carrier.decides = lambda letter: chance.choice([*Delivery])
        gone = [stage.expect(Order(f"gone-{number:03}", GOES_AWAY)) for number in range(GONE)]
        left = [stage.expect(Order(f"left-{number:03}", LEAVES)) for number in range(LEFT)]
        async with stage.working():
            await at_once(pay_and_go(one) for one in gone)
            await at_once(leave(one) for one in left)
            for letter in [*carrier.carried[:FORGED], *await stage.live.lies()]:
                for forged in forgeries(letter).items():
                    await assert_answered(carrier, *forged)
            for lie in await stage.live.lies():
                assert await carrier.hand_over(lie) == 200
            async with hereafter(stage.settings) as later:
                await later.ask_the_bank(KEYS_ARE_VOID)
            assert {one.order for one in left} & told(stage) == set(), "who says so is asked, and not believed"
            await carrier.deliver_late()
        await settle(stage)
        await assert_nothing_lost_or_doubled(stage)
        for letter in carrier.carried:
            assert await carrier.hand_over(letter) == 200
        async with hereafter(stage.settings) as later:
            await later.ask_the_bank(KEYS_ARE_VOID)
            await later.resend()
        await assert_nothing_lost_or_doubled(stage)
        assert await stage.web.stop() == 0
        print(f"{len(carrier.carried)} notifications of {live}, and forged ones; answers: {dict(carrier.answered)}")


@pytest.mark.parametrize("live", NAMES)
def test_each_play_has_an_order_of_its_own(live: str) -> None:
    at_the_door, in_background = plays_of(live)
    names = [one.order.name for one in at_the_door + in_background + OF_TWO_PAGES + UNDECIDED]
    assert len(names) == len(set(names))


@long
@pytest.mark.parametrize("live", NAMES)
async def test_what_is_taken_twice_or_told_nobody_is_found(tmp_path: Path, live: str) -> None:
    """So that the plays above prove something: a bug is planted, and the record forgets refunds."""
    async with staged(tmp_path, Cast(live=live, bugs=["payments.record_approvals"])) as stage:
        assert stage.live is not None
        killed = play(PAYS, "after payments.record_approvals", plan=THERE)
        await perform(stage, [killed], Fate.DIES)
        twice = Order("twice", PAYS_BOTH)
        stage.expect(twice)
        async with unending_pages(stage):
            await have_paid(stage, twice)
        await settle(stage)
        await stage.live.do("set", refunds=[] if live == "stripe" else {})
        found = contradictions(await hear(stage))
        assert any(said.startswith(f"the merchant was told None of {killed.order.name}") for said in found), found
        assert any(said.startswith("doubled: the bank took ") and said.endswith(" for twice") for said in found), found
