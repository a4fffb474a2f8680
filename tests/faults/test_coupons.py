"""Whatever dies while two customers want the last use of a coupon: one of them pays the price that
it leaves, and the other one the usual price.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from tests import breaking
from tests.faults.plays import EACH_FATE, Fate, Play, perform, shared_out, value_of
from tests.faults.rivals import BUG, plays_for_the_last, rival_of
from tests.faults.settling import settle
from tests.faults.stage import Cast, Stage, staged
from tests.faults.test_plays import check, unforeseen
from tests.lengths import at_length, long
from tests.standings import standings

from paydesk.adapters.acquirers.simulator import Record
from paydesk.core.clock import utc_now
from paydesk.database.pool import connected
from paydesk.domain.coupons.coupons import read_terms
from paydesk.domain.coupons.keeping import make_coupon
from paydesk.domain.merchants.shop import Shop

pytestmark = pytest.mark.faults

MOST_VISITS = 8
HALF = Decimal("0.50")


PLAYS = plays_for_the_last(lambda plan, name: replace(plan, joins=True, coupon=name))


async def open_club(stage: Stage, plays: Sequence[Play]) -> None:
    """The shop signs a coupon into its forms, another for each play; the rivals wait."""
    async with connected(stage.settings.database_url, most=2) as database:
        merchant_id = await database.fetchval("select id from merchant where name = 'Socks'")
        await breaking.say(database, "merchant", {"id": merchant_id}, signs_coupons=True)
        for one in plays:
            given = {"code": one.order.plan.coupon, "percent": "50", "most_uses": "1"}
            terms = read_terms(given, (), valid_from=None, valid_until=None)
            await make_coupon(database, Shop(merchant_id, live=False), terms, now=utc_now())
    for one in plays:
        stage.expect(rival_of(one.order))


async def all_pay(stage: Stage) -> None:
    """Everybody comes back, both to a coupon at once, until each has paid; who finds it used orders
    once more.
    """
    visits = 0
    while stage.crowd.unpaid and (visits := visits + 1) <= MOST_VISITS:
        for customer in stage.crowd.unpaid:
            customer.come_again_from_the_shop()
        await asyncio.gather(*(customer.visit() for customer in stage.crowd.unpaid))
        await settle(stage)
    assert stage.crowd.unpaid == []


async def taken(stage: Stage, plays: Sequence[Play]) -> dict[str, list[Decimal]]:
    """By coupon, which shares of their prices the bank has taken of the customers, and kept."""
    async with connected(stage.settings.database_url, most=2) as database:
        rows = await database.fetch(
            "select a.idempotency_key, p.merchant_order_id from payment_attempt a"
            " join payment p on p.merchant_id = a.merchant_id and p.id = a.payment_id"
        )
    orders = {row["idempotency_key"]: row["merchant_order_id"] for row in rows}
    customers = {customer.order: customer for customer in stage.crowd.customers}
    found = defaultdict[str, list[Decimal]](list)
    for key, purchase in standings(Record(stage.record).operations()).items():
        if purchase.net:
            customer = customers[orders[key]] if key in orders else None
            share = (purchase.net / Decimal(customer.amount)).quantize(HALF) if customer else Decimal(0)
            found[customer.plan.coupon if customer else "nobody knows"].append(share)
    return {one.order.plan.coupon: sorted(found.pop(one.order.plan.coupon, [])) for one in plays} | found


async def uses(stage: Stage, plays: Sequence[Play]) -> list[int]:
    """How often each coupon has been used."""
    asked = "select uses_of(merchant_id, live, id, 0) from coupon where code = $2 and $1 <> ''"
    return [await value_of(stage, asked, one.order, one.order.plan.coupon) for one in plays]


@pytest.mark.parametrize("fates", EACH_FATE)
async def test_the_last_use_is_had_once_whatever_happens_at_a_point(tmp_path: Path, fates: list[Fate]) -> None:
    plays = at_length(PLAYS, (PLAYS[1], PLAYS[2], PLAYS[-1]))
    async with staged(tmp_path, Cast()) as stage:
        await open_club(stage, plays)
        for some, fate in shared_out(plays, fates):
            await perform(stage, some, fate)
        await all_pay(stage)
        assert await taken(stage, plays) == {one.order.plan.coupon: [HALF, Decimal(1)] for one in plays}
        assert await uses(stage, plays) == [1] * len(plays)
        assert await check(stage) == ""
        assert unforeseen(stage.web, outages=stage.outages) == []


@long
async def test_a_use_that_is_free_until_the_bank_has_answered_is_found(tmp_path: Path) -> None:
    plays = (PLAYS[2],)
    async with staged(tmp_path, Cast(bugs=[BUG])) as stage:
        await open_club(stage, plays)
        await perform(stage, plays, Fate.DIES)
        await all_pay(stage)
        assert await taken(stage, plays) != {one.order.plan.coupon: [HALF, Decimal(1)] for one in plays}
