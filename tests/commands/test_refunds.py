from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from paydesk.adapters.acquirers.simulator import Bank, Record
from paydesk.adapters.acquirers.simulator.standing import standings
from paydesk.database.pool import Database
from paydesk.settings import load_settings


@pytest.fixture
async def payment(subscription: int, account: dict[str, Any], database: Database) -> int:
    """The id of a payment of 10 USD."""
    return int(await database.fetchval("select id from payment where merchant_id = $1", account["id"]))


def kept(environment: dict[str, str]) -> Decimal:
    """What the bank says that it took and kept."""
    given: dict[str, Any] = {name.removeprefix("PAYDESK_").lower(): value for name, value in environment.items()}
    bank = Bank(Record(load_settings(**given).simulator_record))
    try:
        return sum((one.net for one in standings(bank.record.operations()).values()), Decimal(0))
    finally:
        bank.record.close()


async def test_a_part_then_the_rest(paydesk: Any, payment: int, environment: dict[str, str]) -> None:
    first = await paydesk("refund", payment, "--amount", "4.00", "--json")
    assert (first.status, first.err) == (0, "")
    assert (first.result["payment_id"], first.result["status"]) == (payment, "reversal_refunded_partially")
    assert (first.result["amount"], first.result["total"], first.result["currency"]) == (4, 4, "USD")
    assert kept(environment) == 6
    rest = await paydesk("refund", payment)
    assert rest.status == 0
    assert "reversal_refunded\n" in rest.out
    assert kept(environment) == 0
    again = await paydesk("refund", payment)
    assert (again.status, again.err) == (1, "paydesk: This transaction was already refunded\n")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--amount", "0"], "must be greater than 0"),
        (["--amount", "10.01"], "--amount 10.01 is more than the 10.00 USD that are left"),
        (["--amount", "4.001"], "USD allows 2"),
        (["--amount", "4.000"], "may mean thousands"),
        (["--amount", "x"], "not a plain decimal number"),
        (["--merchant", "99999999"], "is another one"),
        (["--live"], "is another one: a test payment"),
    ],
)
async def test_what_can_t_be_done_is_one_line(
    paydesk: Any, payment: int, options: list[str], words: str, environment: dict[str, str]
) -> None:
    said = await paydesk("refund", payment, *options)
    assert (said.status, said.out, said.err.count("\n")) == (1, "", 1)
    assert words in said.err
    assert kept(environment) == 10


async def test_an_unknown_payment_is_one_line(paydesk: Any) -> None:
    said = await paydesk("refund", 10**12)
    assert (said.status, said.err) == (1, f"paydesk: there is no payment {10**12}\n")


async def test_live_money_is_asked_for_first(
    paydesk: Any, payment: int, account: dict[str, Any], database: Database, environment: dict[str, str]
) -> None:
    for table in ("payment", "payment_attempt", "customer", "card"):
        await database.execute(f"update {table} set live = true where merchant_id = $1", account["id"])
    asked = await paydesk("refund", payment, "--amount", "4.00", "--live")
    assert asked.status == 1
    assert f"Give back 4.00 USD of live payment {payment}, order 'club-1'" in asked.err
    assert kept(environment) == 10
    done = await paydesk(
        "refund", payment, "--amount", "4.00", "--live", "--yes", "--merchant", account["id"], "--json"
    )
    assert (done.status, done.result["total"]) == (0, 4)
    assert kept(environment) == 6
