"""All that may happen after the payment, in any interleaving, with a bank that loses messages
and refuses.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from decimal import Decimal
from functools import partial
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests import set_back
from tests.domain.payments.counter import Teller, Till
from tests.lengths import at_length
from tests.sweeping import database, database_url

from paydesk.adapters.acquirers.simulator import Bank, Record
from paydesk.adapters.vault import Vault
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.deliveries import confirming
from paydesk.domain.merchants.merchant import change_merchant, create_merchant, shop_of
from paydesk.domain.payments.desk import Desk

__all__ = ["database", "database_url"]

which = st.integers(0, 3)
deeds = st.one_of(
    st.tuples(st.just("ship"), which, st.integers(0, 1)),
    st.tuples(st.just("refund"), which, st.sampled_from((None, None, "0.1", "0.5", "0.75", "1", "1.5"))),
    st.tuples(st.just("repeat"), which, st.sampled_from((None, "0.25"))),
    st.tuples(st.just("dispute"), which),
    st.tuples(st.just("decide"), which, st.booleans()),
    st.tuples(st.just("come back"), which, which),
    st.just(("read",)),
    st.just(("read failed",)),
    st.just(("deadlines",)),
    st.just(("settle",)),
    st.just(("pay out",)),
    st.just(("finish",)),
)
steps = st.one_of(
    st.tuples(st.just("sell"), st.sampled_from(("10.00", "0.31", "7.77")), st.booleans()),
    st.tuples(st.just("do"), deeds, st.sampled_from(("", "", "question", "answer", "refuse"))),
    st.tuples(st.just("at once"), st.lists(deeds, min_size=2, max_size=5), st.sampled_from(("", "", "", "answer"))),
    st.tuples(st.just("wait"), st.sampled_from((1, 7, 180))),
    st.tuples(st.just("return fees"), st.booleans()),
    st.just(("rest",)),
)


async def take(till: Till, step: tuple[object, ...]) -> None:
    """Do one step, and see that the books are in order."""
    match step:
        case ("sell", str(amount), bool(shipped)):
            await till.sell(amount, shipped=shipped)
        case ("do", tuple(deed), str(trouble)):
            await _do(till, [deed], trouble)
        case ("at once", list(several), str(trouble)):
            await _do(till, several, trouble)
        case ("wait", int(days)):
            await till.wait(days=days)
        case ("return fees", bool(returned)):
            await change_merchant(till.database, till.shop.merchant_id, fees_returned=returned)
        case ("rest",):
            await till.come_to_rest()
            await till.agree()
    await till.in_order()


async def _do(till: Till, several: list[tuple[object, ...]], trouble: str) -> None:
    """Do one deed, or several at once, while the bank loses something or refuses."""
    teller = till.teller
    teller.lose, teller.refuse = ("", "not today") if trouble == "refuse" else (trouble, "")
    await asyncio.gather(*(_deed(till, deed) for deed in several))
    teller.lose = teller.refuse = ""


async def _deed(till: Till, deed: tuple[object, ...]) -> None:
    workers: dict[str, Callable[[], Awaitable[object]]] = {
        "read": till.read,
        "read failed": till.read_failed,
        "deadlines": till.deadlines,
        "settle": till.settle,
        "pay out": till.pay_out,
        "finish": partial(till.finish, minutes=1),
    }
    match deed:
        case (str(name),):
            await workers[name]()
        case (str(name), int(number), *how):
            paid = list(till.prices)
            await _with(till, name, paid[number % len(paid)], how)


async def _with(till: Till, name: str, payment_id: int, how: list[object]) -> None:
    """Do something with one payment."""
    match name, how:
        case "ship", [int(parcel)]:
            await till.ship(payment_id, parcel)
        case "refund", [share]:
            await till.refund(payment_id, _part(till, payment_id, share))
        case "repeat", [share]:
            await till.refund(payment_id, _part(till, payment_id, share), key=f"{payment_id}-{share}")
        case "dispute", []:
            await till.dispute(payment_id)
        case "decide", [bool(won)]:
            await till.decide(payment_id, won=won)
        case "come back", [int(number)]:
            await till.come_back(payment_id, number)


def _part(till: Till, payment_id: int, share: object) -> str | None:
    """A share of the price, None for what is left."""
    if share is None:
        return None
    return str((till.prices[payment_id] * Decimal(str(share))).quantize(Decimal("0.01")))


@pytest.fixture(autouse=True)
def _nobody_waits_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """A confirmation that comes twice does not wait for what a lost answer leaves
    to the janitor.
    """
    monkeypatch.setattr(confirming, "PATIENCE", 0.05)


@settings(
    max_examples=at_length(25, 3),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@example(fees_returned=True, plan=[("wait", 180), ("do", ("settle",), ""), ("do", ("pay out",), "")], seed=0)
@example(
    fees_returned=False,
    plan=[("do", ("dispute", 1), ""), ("do", ("decide", 1, True), ""), ("do", ("refund", 1, None), "")],
    seed=0,
)
@example(
    fees_returned=True,
    plan=[("wait", 7), ("do", ("settle",), ""), ("at once", [("pay out",), ("pay out",)], ""), ("rest",)],
    seed=0,
)
@example(fees_returned=False, plan=[("rest",), ("do", ("dispute", 1), "")], seed=0)
@given(fees_returned=st.booleans(), plan=st.lists(steps, min_size=5, max_size=20), seed=st.integers(0, 1000))
async def test_any_interleaving_agrees_with_the_bank(
    database: Database,
    vault: Vault,
    tmp_path_factory: pytest.TempPathFactory,
    fees_returned: bool,
    plan: list[tuple[object, ...]],
    seed: int,
) -> None:
    await set_back.banks_tell_again(database)
    merchant = await create_merchant(database, vault, name="Mugs", email="m@shop.example", now=utc_now())
    await change_merchant(database, merchant.id, fees_returned=fees_returned)
    record = Record(Path(tmp_path_factory.mktemp("bank")) / "record.sqlite")
    teller = Teller(Bank(record), Random(seed))
    till = Till(database, Desk(database, vault, {"simulator": teller}), shop_of(merchant, live=False), teller)
    await till.sell("10.00", shipped=True)
    await till.sell("10.00")
    try:
        for step in plan:
            await take(till, step)
        await till.come_to_rest()
        await till.agree()
        await till.wait(days=400)
        await till.deadlines()
        while await till.settle():
            pass
        await till.agree()
        assert {(row["settled_at"] is None) for row in (await till.payments()).values() if row["captured_at"]} <= {
            False
        }
    finally:
        record.close()
