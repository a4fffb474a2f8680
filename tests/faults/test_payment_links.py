"""Whatever dies while two customers want the last one that a payment link sells: one of them has
paid in the end, and the other one reads that it is sold out.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from tests.faults.customers import Plan
from tests.faults.plays import EACH_FATE, Fate, Play, perform, shared_out
from tests.faults.rivals import BUG, plays_for_the_last, rival_of
from tests.faults.settling import settle
from tests.faults.stage import Cast, Stage, staged
from tests.faults.test_plays import check, unforeseen
from tests.lengths import at_length, long
from tests.shopfront import offer_link
from tests.standings import standings

from paydesk.adapters.acquirers.simulator import Record
from paydesk.database.pool import connected
from paydesk.domain.merchants.shop import Shop
from paydesk.equipment import vault_of

pytestmark = pytest.mark.faults

MOST_VISITS = 8
PRICE = Decimal("10.00")
PLAYS = plays_for_the_last(lambda plan, name: replace(plan, link=name))


async def offered(stage: Stage, plays: Sequence[Play]) -> list[Play]:
    """The shop sells one of each: the plays with its links' addresses; their rivals wait."""
    led = []
    async with connected(stage.settings.database_url, most=2) as database:
        merchant_id = await database.fetchval("select id from merchant where name = 'Socks'")
        for one in plays:
            link = await offer_link(
                database, Shop(merchant_id, live=False), title=one.order.plan.link, price=PRICE, most_sales=1
            )
            address = f"{stage.settings.address}/buy/{link.token(vault_of(stage.settings))}"
            led.append(replace(one, order=replace(one.order, plan=replace(one.order.plan, link=address))))
    for one in led:
        stage.expect(rival_of(one.order))
    return led


def how_it_ended(stage: Stage, plays: Sequence[Play]) -> dict[str, list[str]]:
    """By play, what its two customers read last."""
    read = defaultdict[Plan | str, list[str]](list)
    for customer in stage.crowd.customers:
        last = "paid" if customer.is_paid else "sold out" if customer.sold_out else "neither"
        read[customer.plan.link].append(last)
    return {one.order.name: sorted(read[one.order.plan.link]) for one in plays}


async def all_come(stage: Stage, plays: Sequence[Play]) -> None:
    """Everybody comes back, both to a link at once, until all that can end has ended."""
    for _ in range(MOST_VISITS):
        await asyncio.gather(*(customer.visit() for customer in stage.crowd.unpaid))
        await settle(stage)
        if how_it_ended(stage, plays) == {one.order.name: ["paid", "sold out"] for one in plays}:
            break


async def taken(stage: Stage) -> dict[str, list[Decimal]]:
    """By the link's title, what the bank has taken of customers, and kept."""
    async with connected(stage.settings.database_url, most=2) as database:
        rows = await database.fetch(
            "select a.idempotency_key, l.title from payment_attempt a"
            " join payment p on p.merchant_id = a.merchant_id and p.id = a.payment_id"
            " join checkout c on c.merchant_id = p.merchant_id and c.id = p.checkout_id"
            " join payment_link l on l.merchant_id = c.merchant_id and l.id = c.payment_link_id"
        )
    links = {row["idempotency_key"]: row["title"] for row in rows}
    found = defaultdict[str, list[Decimal]](list)
    for key, purchase in standings(Record(stage.record).operations()).items():
        if purchase.net:
            found[links.get(key, "nobody knows")].append(purchase.net)
    return dict(found)


@pytest.mark.parametrize("fates", EACH_FATE)
async def test_the_last_one_is_sold_once_whatever_happens_at_a_point(tmp_path: Path, fates: list[Fate]) -> None:
    chosen = at_length(PLAYS, (PLAYS[1], PLAYS[2], PLAYS[-1]))
    async with staged(tmp_path, Cast()) as stage:
        plays = await offered(stage, chosen)
        for some, fate in shared_out(plays, fates):
            await perform(stage, some, fate)
        await all_come(stage, plays)
        assert how_it_ended(stage, plays) == {one.order.name: ["paid", "sold out"] for one in plays}
        assert await taken(stage) == {one.order.plan.link: [PRICE] for one in chosen}
        assert [answer for customer in stage.crowd.customers for answer in customer.wrong] == []
        assert await check(stage) == ""
        assert unforeseen(stage.web, outages=stage.outages) == []


@long
async def test_a_last_one_that_is_free_until_the_bank_has_answered_is_found(tmp_path: Path) -> None:
    chosen = (PLAYS[2],)
    async with staged(tmp_path, Cast(bugs=[BUG])) as stage:
        plays = await offered(stage, chosen)
        await perform(stage, plays, Fate.DIES)
        await all_come(stage, plays)
        assert await taken(stage) != {one.order.plan.link: [PRICE] for one in chosen}
