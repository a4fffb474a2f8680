"""Subscriptions that the release before began, by cards that were typed and are sealed here, renew
after the upgrade: once a period each, by whichever code, and the shop hears of each charge once.
"""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from pathlib import Path

import asyncpg
import pytest
from tests.faults.customers import APPROVED, Customer, Plan
from tests.faults.keeping import Task, Wish
from tests.lengths import long
from tests.processes import eventually
from tests.standings import standings
from tests.upgrade.code import NEW, Code, code_before
from tests.upgrade.deployment import Deployment, deployed
from tests.upgrade.test_upgrading import CHECK_SAID, MIGRATE_SAID

from paydesk.adapters.acquirers.simulator import Record

pytestmark = pytest.mark.faults

MEMBERS = 3
ANOTHER_CARD = "5555555555554444"
_CHARGES = """
select s.init_merchant_order_id as name, s.counter, s.state, d.last4,
       d.number_sealed is not null and d.stored_reference = '' as typed
  from subscription s
  join card d on d.merchant_id = s.merchant_id and d.id = s.card_id
"""


@long
async def test_a_card_that_the_release_before_sealed_is_charged_by_both_and_by_the_new_one(tmp_path: Path) -> None:
    old = code_before(tmp_path / "old")
    async with deployed(tmp_path, seed=5) as here:
        hears_at = await here.stack.enter_async_context(here.receiver.listening())
        await here.open_shop(old, hears_at)
        before = await here.begin(old)
        members = [member(here, number) for number in range(MEMBERS)]
        for one in members:
            while not await one.visit():
                pass
        await is_told(here, times=1)
        assert (await here.command(NEW, *MIGRATE_SAID)).returncode == 0
        await a_month_passes(here, old)
        after = await here.begin(NEW)
        await here.end(old, before)
        await a_month_passes(here, NEW)
        await is_told(here, times=3)
        await here.end(NEW, after)
        await charged_three_times(here, members)
        said = await here.command(NEW, *CHECK_SAID, "--simulator-record", str(here.record))
        assert said.returncode == 0, said.stdout + said.stderr


def member(here: Deployment, number: int) -> Customer:
    """Somebody who joins the club by typing a card."""
    assert here.gateway is not None
    card, amount = (ANOTHER_CARD if number == 1 else APPROVED), f"{number + 10}.00"
    one = Customer(f"order-{number}", amount, Plan((card,), joins=True), here.gateway, here.browser)
    here.staff.tasks[one.order] = Task(Wish.KEEP, Decimal(amount), here.gateway)
    return one


async def a_month_passes(here: Deployment, code: Code) -> None:
    """The shop moves its test clock on by a release's own command, which charges what falls due."""
    said = await here.command(code, "clock", "advance", str(here.merchant_id), "31d", "--json")
    assert said.returncode == 0, said.stdout + said.stderr


async def is_told(here: Deployment, times: int) -> None:
    """The shop has heard of so many payments of each member."""

    def heard() -> Counter[str]:
        payments = [told for told in here.receiver.accepted if told["event"] == "payment"]
        return Counter(str(told["subscription"]["init_merchant_order_id"]) for told in payments)

    wanted = {f"order-{number}": times for number in range(MEMBERS)}
    await eventually(lambda: heard() == wanted, f"{times} each are told", *(kept.tail for kept in here.all_processes))


async def charged_three_times(here: Deployment, members: list[Customer]) -> None:
    """Books and bank say so: each period once, by the card that was typed in the beginning."""
    connection = await asyncpg.connect(here.postgres.url)
    try:
        rows = {row["name"]: row for row in await connection.fetch(_CHARGES)}
    finally:
        await connection.close()
    assert {name: (row["counter"], row["state"], row["typed"]) for name, row in rows.items()} == {
        one.order: (3, "Active", True) for one in members
    }
    record = Record(here.record)
    taken = [(purchase.net, purchase.last4) for purchase in standings(record.operations()).values() if purchase.net]
    record.close()
    expected = [(Decimal(one.amount), one.plan.cards[0][-4:]) for one in members for _ in range(3)]
    assert sorted(taken) == sorted(expected)
