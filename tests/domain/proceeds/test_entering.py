"""However a balance is told, in whatever order, twice, by parts or by several, the books are the
same in the end; and `paydesk check` holds them to what was told.
"""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from tests import breaking
from tests.domain.proceeds.conftest import FEE, Proceeds
from tests.lengths import at_length
from tests.proving import check
from tests.sweeping import database, database_url

from paydesk.adapters.acquirers.balance import BalanceLine, LineKind, PayoutState
from paydesk.core.clock import utc_now
from paydesk.core.errors import Unavailable
from paydesk.domain.ledger.checking import OPERATOR_RULES
from paydesk.domain.proceeds.entering import enter_lines, enter_payouts

__all__ = ["database", "database_url"]


async def broken(proceeds: Proceeds) -> list[str]:
    """The rules about the operator's own books that are broken."""
    found = await check(proceeds.database, now=utc_now())
    return [one.rule.statement for one in found if one.rule in OPERATOR_RULES and one.found]


@pytest.mark.parametrize("seed", range(at_length(40, 4)))
async def test_order_and_repetition_change_nothing(proceeds: Proceeds, seed: int) -> None:
    dice = random.Random(seed)
    lines = [await _line(proceeds, number, dice) for number in range(9)]
    mine = [one for one in lines if one.kind is not LineKind.PAYOUT_RETURN and one.currency == "USD"]
    proceeds.pays_out(*mine[:5])
    made = proceeds.pays_out(*mine[5:])
    told = [one for name in proceeds.balance.within for one in proceeds.balance.within[name]] + lines
    for _ in range(4):
        proceeds.balance.told = dice.sample(told, len(told)) + dice.choices(told, k=3)
        dice.shuffle(proceeds.balance.paid_out)
        proceeds.balance.within = {name: dice.sample(of, len(of)) for name, of in proceeds.balance.within.items()}
        proceeds.balance.breaks_after = dice.choice([None, 1, 3, 5])
        try:
            await proceeds.read()
        except Unavailable:
            continue
    proceeds.balance.breaks_after = None
    await proceeds.read()
    entries = await proceeds.entries()
    assert entries["acquirer_fees", "USD"] == sum(one.fee for one in lines if one.currency == "USD")
    assert entries["bank", "USD"] == sum(one.amount for one in proceeds.balance.paid_out)
    placed = await proceeds.database.fetchval("select count(*) from balance_line where payout = $1", made.reference)
    assert placed == len(mine[5:]) + 1
    assert await broken(proceeds) == []


async def _line(proceeds: Proceeds, number: int, dice: random.Random) -> BalanceLine:
    """A line of other software's, of any kind."""
    kind = dice.choice([LineKind.CAPTURE, LineKind.REFUND, LineKind.FEE, LineKind.OTHER, LineKind.PAYOUT_RETURN])
    said: dict[str, Any] = {
        "id": f"txn_{number}",
        "kind": kind,
        "amount": Decimal(0) if kind is LineKind.FEE else Decimal(dice.randint(1, 9999)) / 100,
        "fee": Decimal(dice.randint(0, 99)) / 100,
        "of_key": "",
        "key": "",
        "purchase": "",
        "source": "",
        "is_ours": False,
    }
    if kind is not LineKind.PAYOUT_RETURN and not dice.randint(0, 3):
        said |= {"currency": "EUR", "of_amount": Decimal(5), "of_currency": "USD"}
    return replace(await proceeds.capture(), **said)


async def test_a_page_of_which_one_line_can_t_be_entered_is_entered_later_as_a_whole(proceeds: Proceeds) -> None:
    line = await proceeds.capture()
    async with proceeds.database.acquire() as connection:
        begun = connection.transaction()
        await begun.start()
        assert await enter_lines(connection, "simulator", [line]) == 1
        await begun.rollback()
        assert await enter_lines(connection, "simulator", [line]) == 1
        assert await enter_lines(connection, "simulator", [line]) == 0


async def test_a_payout_that_arrives_fails_and_arrives_again_is_at_the_bank_once(proceeds: Proceeds) -> None:
    made = proceeds.pays_out(await proceeds.capture())
    for state in (PayoutState.ON_ITS_WAY, PayoutState.ARRIVED, PayoutState.FAILED, PayoutState.ARRIVED):
        for _ in range(2):
            await enter_payouts(proceeds.database, "simulator", [replace(made, state=state)])
    assert (await proceeds.entries())["bank", "USD"] == 10 - FEE
    assert "arrivals_posted" not in await broken(proceeds)


@pytest.mark.parametrize(
    ("statement", "rule"),
    [
        ("update balance_line set fee = fee + 1", "lines_posted"),
        ("delete from balance_line where kind = 'payout'", "lines_posted"),
        ("update bank_payout set state = 'on_its_way'", "arrivals_posted"),
        ("update bank_payout set amount = amount + 0.01", "payouts_whole"),
    ],
)
async def test_books_that_say_otherwise_than_what_was_told_are_named(
    proceeds: Proceeds, statement: str, rule: str
) -> None:
    proceeds.pays_out(await proceeds.capture())
    await proceeds.read()
    assert await broken(proceeds) == []
    await proceeds.database.execute(statement)
    assert rule in await broken(proceeds)


async def test_the_operators_entries_are_never_changed(proceeds: Proceeds) -> None:
    proceeds.pays_out(await proceeds.capture())
    await proceeds.read()
    for statement in ("update operator_entry set amount = 1", "delete from operator_entry"):
        with pytest.raises(Exception, match="append-only"):
            await proceeds.database.execute(statement)


async def test_a_history_that_was_set_back_is_read_again(proceeds: Proceeds) -> None:
    proceeds.pays_out(await proceeds.capture())
    await proceeds.read()
    before = await proceeds.entries()
    await breaking.no_proceeds(proceeds.database)
    await proceeds.read(now=utc_now() + timedelta(minutes=20))
    assert await proceeds.entries() == before
    assert await proceeds.findings() == []
