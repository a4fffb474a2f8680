"""Whatever dies while an operator sets the books right: each correction is posted once, or not at
all.
"""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import asyncpg
import pytest
from tests.faults.afterwards import ask, beside
from tests.faults.plays import EACH_FATE, Deed, Fate, have_paid, perform, play, shared_out
from tests.faults.stage import Cast, Order, Stage, staged
from tests.faults.test_plays import check
from tests.lengths import long

pytestmark = pytest.mark.faults

KEPT = "0.05"
"""What an operator posts as kept beside what the bank has told."""
FINDING = (
    "select f.id from proceeds_finding f join payment p on p.merchant_id = f.merchant_id and p.id = f.payment_id"
    " where p.merchant_order_id = $1"
)


async def have_a_finding(stage: Stage, order: Order) -> None:
    """The bank's fee for the order's payment is another than its contract says."""
    await have_paid(stage, order)
    assert await stage.clerk.command("acquirer", "fee", "simulator", "USD", "5", "1") == 0
    while not await ask(stage, FINDING, order):
        await stage.clerk.command("proceeds", "read")


async def correct(stage: Stage, order: Order) -> bool:
    """Correct it by command; whether the command says that it did."""
    finding = str(await ask(stage, FINDING, order))
    words = ("proceeds", "correct", finding, "--less", KEPT, "--fee", "--note", order.name)
    return await stage.clerk.command(*words) == 0


async def take_back(stage: Stage, order: Order) -> bool:
    """Take that back by command."""
    return await stage.clerk.command("proceeds", "correct", str(await ask(stage, FINDING, order)), "--take-back") == 0


async def _correct(stage: Stage, order: Order) -> None:
    await correct(stage, order)


async def _correct_too(stage: Stage, order: Order) -> None:
    await beside(stage, order, correct(stage, order))


async def _have_corrected(stage: Stage, order: Order) -> None:
    await have_a_finding(stage, order)
    assert await correct(stage, order)


async def _take_back(stage: Stage, order: Order) -> None:
    await take_back(stage, order)


async def _take_back_too(stage: Stage, order: Order) -> None:
    await beside(stage, order, take_back(stage, order))


IS_CORRECTED = Deed("is corrected", _correct, have_a_finding, too=_correct_too)
IS_TAKEN_BACK = Deed("is taken back", _take_back, _have_corrected, too=_take_back_too)

PLAYS = (
    play(IS_CORRECTED, "before correcting.correct"),
    play(IS_CORRECTED, "after correcting.correct"),
    play(IS_TAKEN_BACK, "before correcting.take_back_correction"),
    play(IS_TAKEN_BACK, "after correcting.take_back_correction"),
)


async def posted(stage: Stage, order: Order) -> dict[str, Decimal]:
    """What the operator's own books have for the order's finding, by account."""
    connection = await asyncpg.connect(stage.settings.database_url)
    try:
        rows = await connection.fetch(
            f"select account, sum(amount) as amount from operator_entry where finding_id = ({FINDING}) group by 1",
            order.name,
        )
    finally:
        await connection.close()
    return {row["account"]: row["amount"] for row in rows if row["amount"]}


@long
@pytest.mark.parametrize("fates", EACH_FATE[1:])
async def test_a_correction_is_posted_once_whatever_happens_at_a_point(tmp_path: Path, fates: list[Fate]) -> None:
    async with staged(tmp_path, Cast()) as stage:
        for plays, fate in shared_out(PLAYS, fates):
            for one in plays:
                await perform(stage, (one,), fate)
        for one in PLAYS:
            # The operator sees what stands, and presses again.
            is_taken_back = one.deed is IS_TAKEN_BACK
            if bool(await posted(stage, one.order)) is is_taken_back:
                assert await (take_back if is_taken_back else correct)(stage, one.order)
            assert not await (take_back if is_taken_back else correct)(stage, one.order), "a second time is refused"
            kept = Decimal(KEPT)
            expected = {} if is_taken_back else {"acquirer": -kept, "acquirer_fees": kept}
            assert await posted(stage, one.order) == expected
        assert await check(stage) == ""
