"""Standbys take over: in good order nobody notices,
and one that has forgotten something charges nobody.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.faults.failing_over import deployed, lags, shopping
from tests.lengths import long

pytestmark = pytest.mark.faults

MORE = [pytest.param(2, id="two", marks=long), pytest.param(20, id="twenty", marks=pytest.mark.soak)]


@pytest.mark.parametrize("rounds", [pytest.param(1, id="one"), *MORE])
async def test_a_planned_switchover_holds_nothing(tmp_path: Path, rounds: int) -> None:
    async with deployed(tmp_path) as deployment:
        await deployment.sell(joins=True)
        for _ in range(rounds):
            async with shopping(deployment):
                await asyncio.sleep(0.3)
                await deployment.pair.switch_over()
                await deployment.sell()
            await deployment.renewals_fall_due()
            await deployment.until_renewed()
        assert await deployment.database.fetchval("select count(*) from alarm where kind = 'held'") == 0
        assert await deployment.database.fetchval("select epoch from deployment") == 1
        assert [customer.wrong for customer in deployment.customers if customer.wrong] == []
        assert len(deployment.charges()) == len(deployment.customers) + rounds, "each once, and the club's renewals"
        print(f"{rounds} switchovers, {len(deployment.customers)} orders and {rounds} renewals paid, none held")


@long
@pytest.mark.parametrize("rounds", [pytest.param(1, id="one"), *MORE])
async def test_a_failover_that_lost_payments_is_held_before_the_first_charge(tmp_path: Path, rounds: int) -> None:
    async with deployed(tmp_path) as deployment:
        await deployment.sell(joins=True)
        lost = 0
        for number, lag in enumerate(lags(rounds, seed=12)):
            await deployment.pair.cut()
            forgotten = [await deployment.sell() for _ in range(3)]
            await deployment.renewals_fall_due()
            await deployment.until_renewed()
            await asyncio.sleep(lag)
            charged = deployment.charges()
            await deployment.pair.fail_over()
            # Whatever was paid may be paid again now: open pages, orders posted again, renewals
            # that are due.
            for customer in forgotten:
                customer.come_again_from_the_shop()
            await asyncio.gather(*(customer.visit() for customer in forgotten), deployment.customer().visit())
            await deployment.renewals_fall_due()
            why = await deployment.until_held()
            await asyncio.gather(*(customer.visit() for customer in forgotten))
            await asyncio.sleep(1.5)
            assert deployment.charges() == charged, f"round {number}, held because {why}"
            assert not any(customer.is_paid for customer in forgotten)
            lost += len(forgotten) + 1
            await deployment.take_what_is_left()
            await deployment.pair.renew_standby()
            await deployment.sell()
        assert await deployment.database.fetchval("select epoch from deployment") == rounds + 1
        print(f"{rounds} failovers, {lost} approved charges lost, each held before the first charge")
