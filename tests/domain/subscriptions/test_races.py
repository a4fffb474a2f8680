"""Hundreds of cancellations against the renewal that is due at the same moment,
with a bank that takes its time.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from random import Random

from tests.banks import ObedientBank, answering
from tests.lengths import long
from tests.proving import check
from tests.till import Till

from paydesk.adapters.acquirers.interface import Outcome
from paydesk.adapters.acquirers.purchases import Purchase
from paydesk.core.clock import utc_now
from paydesk.domain.billing.charging import BillingRun
from paydesk.domain.billing.pacing import Pace
from paydesk.domain.subscriptions.ending import cancel

RACES = 200


async def pause(chance: Random, turns: int = 40) -> None:
    for _ in range(chance.randrange(turns)):
        await asyncio.sleep(0)


@long
async def test_what_was_charged_before_the_end_is_paid_and_told_and_nothing_is_charged_after_it(
    subscriber: Till,
) -> None:
    bank, turns = ObedientBank(), Random(11)

    async def slowly(purchase: Purchase) -> Outcome:
        await pause(turns)
        answer = await bank.charge_stored(purchase)
        await pause(turns)
        return answer

    club, chance = subscriber.at(answering(bank, authorize=slowly, charge_stored=slowly)), Random(5)
    members = [await club.subscribe(order=f"club-{number}") for number in range(RACES)]
    late = max(one.date_next for one in members if one.date_next)

    leaving = iter(chance.sample([one.id for one in members], RACES))

    async def leave() -> None:
        for subscription_id in leaving:
            await pause(chance)
            await cancel(club.desk.database, club.shop, subscription_id, by="api", now=late)

    async def charge() -> None:
        run = BillingRun(club.desk, Pace(batch=10))
        while await run.charge_due(merchant_id=club.shop.merchant_id, at=late):
            await pause(chance)

    await asyncio.gather(leave(), leave(), charge(), charge())
    assert await club.charge(late) == 0
    ended = [await club.now(one) for one in members]
    assert {one.state for one in ended} == {"Cancelled"}
    paid = Counter(one.paid_number_counter for one in ended)
    assert set(paid) == {1, 2}, f"both may happen: {paid}"
    assert len(bank.kept) == RACES + paid[2]
    told = Counter(one["event"] for one in await club.told())
    assert told == {"payment": len(bank.kept), "subscription_cancelled": RACES}
    found = await check(club.desk.database, now=utc_now(), merchant_id=club.shop.merchant_id)
    assert [one.detail for finding in found for one in finding.differences] == []
