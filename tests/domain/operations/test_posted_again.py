"""An order that the database forgot whole, and that its shop posts again
when the bank knows its keys no more.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from tests.domain.operations.books import Books
from tests.domain.operations.conftest import After
from tests.shopfront import GOOD as VISA
from tests.shopfront import MONTHLY

from paydesk.adapters.acquirers.simulator import Bank, SimulatedAcquirer
from paydesk.core.clock import utc_now
from paydesk.domain.operations.reconciling import reconcile
from paydesk.domain.payments.results import Paid, Result

DECLINED, MASTERCARD = "4000000000000002", "5555555555554444"


async def _pay(till: Books, *numbers: str) -> list[Result]:
    token = await till.order("club-1", terms=MONTHLY, amount=MONTHLY.price)
    return [await till.pay(token, number) for number in numbers]


@pytest.mark.parametrize("numbers", [(VISA,), (DECLINED, VISA)], ids=["at once", "at the second try"])
async def test_what_was_paid_days_ago_is_looked_for_and_not_charged_again(
    after: After, bank: Bank, numbers: tuple[str, ...]
) -> None:
    async def join(till: Books) -> None:
        assert (await _pay(till, *numbers))[-1] == Paid()

    async with after(join) as (till, _):
        two_days = timedelta(days=2)
        later = SimulatedAcquirer(Bank(bank.record, now=lambda: utc_now() + two_days), base_url="http://pay.test")
        till = replace(till, desk=replace(till.desk, acquirers={"simulator": later}))
        now = utc_now() + two_days
        found = await reconcile(till.desk, "simulator", since=now - timedelta(days=3), now=now, fix=True)
        assert [one.reason for one in found.differences if "agreed to is forgotten" in one.reason] != []
        assert await _pay(till, MASTERCARD) == [Paid()]
        assert len(till.taken()) == 1
