"""Which calls to an account say whether it is well, and how each kind is judged."""

from __future__ import annotations

import inspect
from collections import Counter
from typing import Any, Final, cast

import pytest
from tests.banks import answering, ending_in
from tests.domain.acquirers.test_choosing import Accounts, accounts, database, database_url
from tests.domain.acquirers.test_health import spoil

from paydesk.adapters.acquirers.gated import GatedAcquirer
from paydesk.adapters.acquirers.interface import (
    Acquirer,
    AcquirerRefused,
    NothingBegun,
    OutcomeUnknown,
    Undecided,
)
from paydesk.adapters.acquirers.simulator import Bank, SimulatedAcquirer
from paydesk.domain.acquirers.health import LEAST, Health, Kind, list_out_of_turn
from paydesk.domain.acquirers.measuring import MeasuredAcquirer

__all__ = ["accounts", "database", "database_url"]

MEASURED: Final = {
    "authorize": Kind.CUSTOMERS,
    "open_page": Kind.CUSTOMERS,
    "charge_stored": Kind.CHARGES,
    "capture": Kind.MOVEMENTS,
    "void": Kind.MOVEMENTS,
    "undo": Kind.MOVEMENTS,
    "refund": Kind.MOVEMENTS,
    "find": Kind.QUESTIONS,
    "find_page": Kind.QUESTIONS,
    "end_page": Kind.QUESTIONS,
    "end_challenge": Kind.QUESTIONS,
    "find_movement": Kind.QUESTIONS,
}
TAKE_THEIR_TIME: Final = {
    "list_pages",
    "list_purchases",
    "list_refunds",
    "look_back",
    "disputes",
    "failed_refunds",
    "find_dispute",
    "upload_evidence",
    "submit_evidence",
    "close",
}


async def counted(bank: Bank, method: str, error: Exception, health: Health | None = None) -> Counter[str]:
    """What is counted of a call that ends so."""
    mine = health or Health()
    honest = SimulatedAcquirer(bank, base_url="http://pay.test")
    measured: Any = MeasuredAcquirer(answering(honest, **{method: ending_in(error)}), mine, name="one")
    wanted = [name for name in inspect.signature(getattr(Acquirer, method)).parameters if name != "self"]
    with pytest.raises(type(error)):
        await getattr(measured, method)(*(cast(Any, None) for _ in wanted))
    assert {account for account, _ in mine._counted} <= {"one"}
    return Counter({what: count for (_, what), count in mine._counted.items()})


def test_each_call_is_measured_or_takes_its_time() -> None:
    calls = {name for name, one in vars(Acquirer).items() if inspect.iscoroutinefunction(one)}
    assert calls == {*MEASURED} | TAKE_THEIR_TIME


@pytest.mark.parametrize(("method", "kind"), MEASURED.items())
async def test_a_call_without_an_answer_is_counted_with_its_kind(bank: Bank, method: str, kind: Kind) -> None:
    for error, what in ((OutcomeUnknown("lost"), "unknown"), (NothingBegun("away"), "unreached")):
        assert await counted(bank, method, error) == {f"{kind}asked": 1, f"{kind}{what}": 1}


@pytest.mark.parametrize(("method", "kind"), MEASURED.items())
async def test_a_refusal_is_an_answer(bank: Bank, method: str, kind: Kind) -> None:
    found = await counted(bank, method, AcquirerRefused("not this"))
    assert found[f"{kind}asked"] == 1
    assert not [what for what in found if what.endswith(("unknown", "unreached", "slow"))]


@pytest.mark.parametrize(("method", "kind"), MEASURED.items())
async def test_not_decided_yet_is_an_answer_to_who_can_wait(bank: Bank, method: str, kind: Kind) -> None:
    found = await counted(bank, method, Undecided("not yet"))
    assert found[f"{kind}unknown"] == (kind is Kind.CUSTOMERS)


@pytest.mark.parametrize("method", sorted(TAKE_THEIR_TIME - {"close"}))
async def test_what_takes_its_time_counts_nothing(bank: Bank, method: str) -> None:
    assert await counted(bank, method, OutcomeUnknown("lost")) == {}


async def test_what_is_held_says_nothing_of_the_account(bank: Bank) -> None:
    mine = Health()
    measured = MeasuredAcquirer(SimulatedAcquirer(bank, base_url="http://pay.test"), mine)
    with pytest.raises(OutcomeUnknown, match="not sent"):
        await GatedAcquirer(measured, lambda: "held").void("key", "of")
    assert not mine._counted


async def test_renewals_that_get_no_answer_take_their_account_out_of_turn(accounts: Accounts) -> None:
    await accounts.add("second")
    till = accounts.till
    agreed = [await till.subscribe(order=f"club-{number}") for number in range(LEAST)]
    spoil(accounts, "second", charge_stored=ending_in(OutcomeUnknown("lost")))
    assert await till.charge(max(one.date_next for one in agreed if one.date_next)) == LEAST
    await till.desk.health.look(till.database)
    (out,) = await list_out_of_turn(till.database)
    assert (out.account, out.why) == (
        "second",
        f"{LEAST} charges without the customer in the last minutes: {LEAST} without an answer, 0 answered too slowly",
    )
    assert await till.buy("later") == await till.buy("still later")
    assert (await accounts.served_by())[-2:] == ["simulator"] * 2


async def test_refunds_that_get_no_answer_take_their_account_out_of_turn(accounts: Accounts) -> None:
    await accounts.add("second")
    till = accounts.till
    sold = [await till.sell(f"sold-{number}") for number in range(LEAST)]
    spoil(accounts, "second", refund=ending_in(NothingBegun("away")))
    for payment_id in sold:
        await till.give_back(payment_id)
    await till.desk.health.look(till.database)
    assert [one.account for one in await list_out_of_turn(till.database)] == ["second"]


async def test_many_calls_of_one_kind_that_go_well_hide_no_other_kind_that_fails(accounts: Accounts) -> None:
    database, mine = accounts.till.database, Health()
    for _ in range(100 * LEAST):
        mine.count("second", "charge asked", "question asked")
    for _ in range(LEAST):
        mine.count("second", "asked", "unknown", "movement asked")
    await mine.look(database)
    (out,) = await list_out_of_turn(database)
    assert out.why.startswith(f"{LEAST} calls that customers waited for in the last minutes: {LEAST} without")


async def test_two_kinds_that_fail_are_one_alarm_that_names_both(accounts: Accounts) -> None:
    database, mine = accounts.till.database, Health()
    for _ in range(LEAST):
        mine.count("second", "question asked", "question unreached", "movement asked", "movement unknown")
    await mine.look(database)
    (out,) = await list_out_of_turn(database)
    assert "look-ups" in out.why
    assert "refunds, captures and voids" in out.why
    assert await database.fetchval("select count(*) from alarm where kind = 'acquirer_out'") == 1


async def test_an_account_that_fails_a_few_calls_of_each_kind_stays(accounts: Accounts) -> None:
    database, mine = accounts.till.database, Health()
    for kind in Kind:
        for _ in range(LEAST - 1):
            mine.count("second", f"{kind}asked", f"{kind}unknown")
    await mine.look(database)
    assert await list_out_of_turn(database) == []


async def test_measuring_a_payment_adds_no_statement_to_it(accounts: Accounts) -> None:
    """What is counted waits in memory for the next look, which is one statement for all of it."""
    await accounts.add("second")
    await accounts.till.buy("one")
    table = "select count(*) from acquirer_count"
    assert await accounts.till.database.fetchval(table) == 0
    await accounts.till.desk.health.look(accounts.till.database)
    assert await accounts.till.database.fetchval(table) > 0
