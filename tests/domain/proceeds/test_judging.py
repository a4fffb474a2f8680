"""A bank that charges for all that customers and merchants do: its lines agree with our books, and
what it owes is the same by both.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from tests import breaking, shopfront
from tests.domain.proceeds.conftest import PATIENCE
from tests.sweeping import database, database_url
from tests.till import Till

from paydesk.adapters.acquirers.simulator import Terms
from paydesk.adapters.acquirers.simulator.balance import AskedBalance, BalanceBook
from paydesk.adapters.acquirers.wrapping import PassingAcquirer
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.chargebacks.reading_acquirers import read_disputes
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.failed_refunds import read_failed_refunds
from paydesk.domain.proceeds.for_operator import list_bank_payouts, list_findings, list_margins
from paydesk.domain.proceeds.reading import read_proceeds

__all__ = ["database", "database_url"]

TERMS = Terms(Decimal("1.4"), Decimal("0.25"), Decimal("0.10"), Decimal(15))
LATER = timedelta(days=2)


@pytest.fixture
async def till(desk: Desk, shop: Shop, database: Database) -> Till:
    """A till at the simulated bank, two days of whose clock are over once its balance is read."""
    await breaking.no_proceeds(database)
    await breaking.paid_elsewhere(database)
    bank = PassingAcquirer(desk.acquirers["simulator"])
    till = Till(replace(desk, acquirers={"simulator": bank}), shop)
    till.bank.balance.agree(TERMS, timedelta(days=1))

    async def ask(question: Callable[[], Any]) -> Any:
        return question()

    bank.balance = AskedBalance(BalanceBook(till.bank.record, lambda: utc_now() + LATER), ask)
    return till


async def read(till: Till) -> list[tuple[str, str]]:
    """Read the balance as it is two days later; what differs."""
    await read_proceeds(till.desk, "simulator", patience=PATIENCE, now=utc_now() + LATER, every=timedelta(0))
    return [(str(one.kind), one.reason) for one in await list_findings(till.database)]


async def sold(till: Till) -> None:
    await till.sell()


async def refunded(till: Till) -> None:
    payment_id = await till.sell()
    await till.give_back(payment_id, "4.00")
    await till.give_back(payment_id, "6.00")


async def declined(till: Till) -> None:
    await till.buy(number="4000000000000002")


async def shipped(till: Till) -> None:
    await shopfront.ships(till.database, till.shop)
    await till.confirm(await till.sell())


async def disputed(till: Till) -> None:
    payment_id = await till.sell()
    (attempt,) = await till.rows("payment_attempt", payment_id)
    dispute = till.bank.open_dispute(attempt["idempotency_key"], "fraudulent")
    await read_disputes(till.desk, now=utc_now())
    till.bank.close_dispute(dispute, won=True)
    await read_disputes(till.desk, now=utc_now() + timedelta(minutes=5))


async def refund_failed(till: Till) -> None:
    payment_id = await till.sell()
    await till.give_back(payment_id, "4.00")
    (movement,) = await till.rows("movement", payment_id)
    till.bank.fail_refund(movement["acquirer_reference"], "closed")
    await read_failed_refunds(till.desk, now=utc_now())


PLAYS: list[Callable[[Till], Awaitable[None]]] = [sold, refunded, declined, shipped, disputed, refund_failed]


@pytest.mark.parametrize("play", PLAYS)
async def test_what_the_bank_charges_for_agrees_with_our_books(
    till: Till, play: Callable[[Till], Awaitable[None]]
) -> None:
    await play(till)
    assert await read(till) == []
    assert await till.database.fetchval("select count(*) from balance_line where examined_at is null") == 0
    owed = await till.database.fetchval(
        """
        select (select coalesce(sum(amount), 0) from ledger_entry where account = 'acquirer' and merchant_id = $1)
             + (select coalesce(sum(amount), 0) from operator_entry where account = 'acquirer')
        """,
        till.shop.merchant_id,
    )
    lines = till.bank.balance.lines(utc_now() - timedelta(days=1), "").lines
    assert owed == sum((one.net for one in lines), Decimal(0)), "by the bank, after what it paid out"


async def test_what_is_paid_out_is_matched_and_leaves_a_margin(till: Till) -> None:
    await till.sell()
    await read(till)
    (made,) = await list_bank_payouts(till.database)
    assert (made.amount, made.is_matched) == (Decimal("9.61"), True)
    now = utc_now() + LATER
    margins = await list_margins(till.database, since=now - timedelta(days=60), until=now)
    (fees,) = await till.database.fetchrow("select fees from payment where merchant_id = $1", till.shop.merchant_id)
    (here,) = [one for one in margins if one.acquirer == "simulator" and one.currency == "USD"]
    assert (here.cost, here.margin) == (Decimal("0.39"), here.income - Decimal("0.39"))
    assert here.income >= fees
