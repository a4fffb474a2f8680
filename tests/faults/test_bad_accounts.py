"""Orders are shared among a dead, a slow, a lying and a good account while customers pay: nobody
pays twice, no payment is lost, and what a bank lied about is named.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from tests.faults.bad_accounts import SHARES, bad_accounts, compared, named, plan_of, rush, tried_at
from tests.faults.settling import hereafter, settle
from tests.faults.stage import PAYDESK, Cast, Order, staged
from tests.faults.test_plays import check, unforeseen
from tests.faults.verifying import contradictions, hear
from tests.lengths import long

pytestmark = pytest.mark.faults

AT_ONCE = 16
SEED = 14


@long
@pytest.mark.parametrize("customers", [30, 500])
async def test_nobody_pays_twice_and_nothing_is_lost_whatever_accounts_do(
    tmp_path: Path, customers: int, capfd: pytest.CaptureFixture[str]
) -> None:
    """What remains is what no books can mend: a bank took more than it said, or nothing."""
    chance = random.Random(SEED)
    async with (
        staged(tmp_path, Cast(command=PAYDESK, workers=2), SEED) as stage,
        bad_accounts(stage, SEED) as accounts,
    ):
        for number in range(customers):
            stage.expect(Order(f"order-{number:03}", plan_of(chance)))
        async with stage.working():
            await accounts.spoil()
            await rush(stage.crowd.customers, AT_ONCE)
            at_once = stage.crowd.paid
        await accounts.heal()
        await settle(stage)

        async with hereafter(stage.settings) as later:
            await compared(later)
            told = await named(later.database)
            denied = [one for one in told if one.state != "approved"]
            for one in denied:
                status = await stage.clerk.command("undo", one.key, "--acquirer", one.acquirer, "--yes")
                assert status in (0, 1), "there may be nothing to give back"
            await compared(later)
            left, tried = await named(later.database), await tried_at(later.database)
        found = contradictions(await hear(stage, *(accounts.record(name) for name in SHARES)))
        assert {said.split()[0] for said in found} <= {one.order for one in left}, "\n".join(found)
        assert all(" costs " in said for said in found), "\n".join(found)
        assert {one.acquirer for one in told} == {"lying"}, "of honest accounts nothing is named"
        assert await check(stage) == ""
        assert [said for customer in stage.crowd.customers for said in customer.wrong] == []
        assert stage.receiver.forged == 0
        assert {said for said in tried if said.startswith("dead ")} == {"dead failed"}
        assert not {"slow failed", "slow voided"} & tried.keys(), "nobody goes on while an outcome is unknown"
        assert {"slow approved", "lying approved", "simulator approved"} <= tried.keys()
        assert {said.partition(":")[0] for said in unforeseen(stage.web, *stage.workers)} <= {"alarm"}
        assert await stage.web.stop() == 0
    with capfd.disabled():
        print(
            f"\n{customers} customers: {at_once} ({at_once / customers:.0%}) have paid while accounts were not well,"
            f" all in the end; {len(told)} lies are named, of {len(told) - len(left)} the money went back;"
            f" {dict(tried)}"
        )
