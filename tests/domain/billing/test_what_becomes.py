"""What becomes of trial, limit and counters with each kind of change is as the docs' table says."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.domain.subscriptions.test_changing_plans import DAY, due, renewed
from tests.shopfront import MONTHLY
from tests.till import Till

from paydesk.core.errors import Conflict
from paydesk.core.periods import Period
from paydesk.domain.billing.charging_differences import AtOnce, change_and_charge
from paydesk.domain.subscriptions.changing import cancel_later, cancel_now, pause, resume, undo
from paydesk.domain.subscriptions.changing_plans import Plan, Prorating, change_plan
from paydesk.domain.subscriptions.lifecycle import Subscription
from paydesk.domain.subscriptions.subscription_object import subscription_object
from paydesk.domain.subscriptions.subscription_terms import Trial

BEGUN = datetime(2027, 6, 1, 12, tzinfo=UTC)
AT = BEGUN + 10 * DAY
TWELVE = replace(MONTHLY, limit=12)
TABLE = (Path(__file__).parents[3] / "docs" / "integrate.md").read_text().split("| what is done | it was |")[1]
ROWS = [
    tuple(cell.strip().replace("`", "") for cell in row.strip("|").split("|"))
    for row in TABLE.split("\n\n")[0].splitlines()[2:]
]
YEARLY = Plan(price="100.00", period="1y")


@dataclass(frozen=True, slots=True)
class Shelf:
    """A subscription, and the versions that it may be changed to."""

    till: Till
    begun: Subscription
    six: int
    one: int

    @property
    def named(self) -> tuple[Any, ...]:
        return self.till.database, self.till.shop, self.begun.id

    async def plan(self, plan: Plan, at_once: bool = False, how: Prorating = Prorating.NONE) -> None:
        of = self.till.database, self.till.shop, self.begun.id
        await change_plan(*of, plan, by="api", now=AT, at_once=at_once, prorating=how)

    async def charge(self, plan: Plan) -> None:
        await change_and_charge(self.till.desk, self.till.shop, AtOnce(self.begun.id, plan, "api", AT))

    async def undo(self) -> None:
        await undo(*self.named, now=AT)

    async def end(self) -> None:
        await cancel_later(*self.named, by="api", now=AT)

    async def end_and_undo(self) -> None:
        await self.end()
        await self.undo()

    async def plan_and_undo(self, plan: Plan) -> None:
        await self.plan(plan)
        await self.undo()

    async def pause(self) -> None:
        await pause(*self.named, by="api", now=AT)
        await resume(*self.named, now=AT + timedelta(days=5))

    async def nothing(self) -> None:
        """All stays as it is."""

    def deed(self, what: str) -> Callable[[], Awaitable[Any]]:
        six, now = Plan(self.six), partial(self.plan, at_once=True)
        deeds: dict[str, Callable[[], Awaitable[Any]]] = {
            "nothing": self.nothing,
            "the plan, with its period": partial(self.plan, six),
            "the plan, with its period, undone": partial(self.plan_and_undo, six),
            "the plan, now": partial(now, six),
            "the plan, now, next_charge": partial(now, six, how=Prorating.NEXT_CHARGE),
            "the plan, now, charge_now": partial(self.charge, six),
            "its own plan, now, charge_now": partial(self.charge, Plan(self.begun.package.version_id)),
            "3 of it, now, charge_now": partial(self.charge, Plan(quantity="3")),
            "yearly, with its period": partial(self.plan, YEARLY),
            "yearly, now": partial(now, YEARLY),
            "yearly, now, charge_now": partial(self.charge, YEARLY),
            "a plan with 1 payment in all": partial(self.plan, Plan(self.one)),
            "paused for 5 days": self.pause,
            "to end with its period": self.end,
            "to end with its period, undone": self.end_and_undo,
            "cancelled at once": partial(cancel_now, *self.named, by="api", now=AT),
        }
        return deeds[what]


def told(subscription: Subscription, *names: str) -> list[str]:
    """Fields of its pingbacks, as the table writes them."""
    said = {name: str(value) for name, value in subscription_object(subscription).items()}
    moment = said["date_next"]
    said["date_next"] = "0" if moment == "0" else f"{datetime.fromtimestamp(int(moment), UTC):%Y-%m-%d}"
    return [said[name] for name in names]


COUNTS = ("limit", "counter", "paid_number_counter", "date_next")


@pytest.mark.parametrize("row", ROWS, ids=[f"{row[0]} ({row[1]})" for row in ROWS])
async def test_each_row_of_the_docs_holds(subscriber: Till, row: tuple[str, ...]) -> None:
    what, was, status, trial, *counts, after = row
    terms = replace(TWELVE, trial=Trial(Decimal(0), Period(14, "day"))) if was == "in its trial" else TWELVE
    begun = await subscriber.subscribe(terms, now=BEGUN)
    others = [
        await subscriber.subscribe(replace(MONTHLY, price=Decimal(30), limit=limit), order=f"limit-{limit}", now=BEGUN)
        for limit in (6, 1)
    ]
    begun = await subscriber.now(begun)
    shelf = Shelf(subscriber, begun, *(other.package.version_id for other in others))
    if status == "409":
        with pytest.raises(Conflict):
            await shelf.deed(what)()
        assert await subscriber.now(begun) == begun
        return
    await shelf.deed(what)()
    now = await subscriber.now(begun)
    assert told(now, "status", "trial", *COUNTS) == [status, trial, *counts]
    assert await subscriber.problems() == []
    if after:
        then = await renewed(subscriber, now)
        assert told(then, *COUNTS) == after.split(", ")
        assert due(then) > due(now)
        assert await subscriber.problems() == []
