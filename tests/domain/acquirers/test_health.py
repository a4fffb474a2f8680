"""Accounts that fail go out of turn, by what all processes counted; a probe brings them back."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from tests import set_back
from tests.banks import answering, ending_in
from tests.domain.acquirers.test_choosing import LOST, Accounts, accounts, database, database_url
from tests.shopfront import GOOD, go_on

from paydesk.adapters.acquirers.interface import AcquirerRefused, NothingBegun, OutcomeUnknown
from paydesk.adapters.acquirers.purchases import Purchase
from paydesk.adapters.acquirers.simulator import SimulatedAcquirer
from paydesk.core.clock import utc_now
from paydesk.domain.accounts.audit import COMMAND_LINE
from paydesk.domain.acquirers import health
from paydesk.domain.acquirers.health import LEAST, Health, list_out_of_turn
from paydesk.domain.acquirers.routing import Order, Rule
from paydesk.domain.operations.acquirer_rules import add_rule
from paydesk.domain.payments.results import ConfirmWithBank, Paid, Refused, Unsettled

__all__ = ["accounts", "database", "database_url"]


def spoil(accounts: Accounts, name: str, **calls: Any) -> None:
    """Let some calls to an account's bank come to something else."""
    honest = SimulatedAcquirer(accounts.banks[name], base_url="http://pay.test")
    accounts.spoilt[name] = answering(honest, **calls)


async def fail(accounts: Accounts, times: int = LEAST) -> None:
    """Let customers lose answers of the second account, and every process see what came of it."""
    spoil(accounts, "second", authorize=ending_in(LOST), list_purchases=ending_in(LOST))
    for number in range(times):
        assert await accounts.till.buy(f"lost-{number}") == Unsettled()
    await accounts.till.desk.health.look(accounts.till.database)


async def test_an_account_that_fails_is_passed_over_and_keeps_the_orders_it_has(accounts: Accounts) -> None:
    await accounts.add("second")
    await fail(accounts)
    assert await accounts.till.buy("later") == Paid()
    assert (await accounts.served_by())[-1] == "simulator"
    chosen = await accounts.till.desk.choose(Order(accounts.till.shop, "lost-0", "USD", Decimal(10)))
    assert chosen.name == "second", "its outcome is not known"


async def test_too_few_calls_take_no_account_out_of_turn(accounts: Accounts) -> None:
    await accounts.add("second")
    await fail(accounts, LEAST - 1)
    assert await list_out_of_turn(accounts.till.database) == []


async def test_declines_and_refused_requests_take_no_account_out_of_turn(accounts: Accounts) -> None:
    await accounts.add("second")
    spoil(accounts, "second", authorize=ending_in(AcquirerRefused("not this")))
    for number in range(2 * LEAST):
        await accounts.till.buy(f"refused-{number}")
    await accounts.till.desk.health.look(accounts.till.database)
    assert await list_out_of_turn(accounts.till.database) == []


async def test_answers_that_come_too_slowly_take_an_account_out(
    accounts: Accounts, monkeypatch: pytest.MonkeyPatch
) -> None:
    await accounts.add("second")
    monkeypatch.setattr(health, "SLOW", 0.0)
    for number in range(LEAST):
        assert await accounts.till.buy(f"slow-{number}") == Paid()
    await accounts.till.desk.health.look(accounts.till.database)
    assert [one.account for one in await list_out_of_turn(accounts.till.database)] == ["second"]


async def test_every_process_passes_over_what_another_one_has_seen_failing(accounts: Accounts) -> None:
    await accounts.add("second")
    await fail(accounts)
    other = replace(accounts.till.desk, health=Health())
    await other.health.look(accounts.till.database)
    assert (await other.choose(Order(accounts.till.shop, "new", "USD", Decimal(10)))).name == "simulator"


async def test_what_several_processes_count_is_added_up(accounts: Accounts) -> None:
    several = [Health() for _ in range(LEAST)]
    for each in several:
        each.count("second", "asked", "unknown")
        await each.look(accounts.till.database)
    assert [one.account for one in await list_out_of_turn(accounts.till.database)] == ["second"]


async def test_where_no_other_account_may_serve_the_failing_one_is_asked(accounts: Accounts) -> None:
    await accounts.add("second")
    await fail(accounts)
    del accounts.spoilt["second"]
    desk = replace(accounts.till.desk, test_acquirer="second")
    assert (await desk.choose(Order(accounts.till.shop, "new", "USD", Decimal(10)))).name == "second"


async def test_a_probe_brings_an_account_back_once_it_answers_and_settles_the_alarm(accounts: Accounts) -> None:
    await accounts.add("second")
    await fail(accounts)
    till, mine = accounts.till, accounts.till.desk.health
    alarms = "select count(*) from alarm where kind = 'acquirer_out' and settled_at is null"
    assert await till.database.fetchval(alarms) == 1
    await mine.probe(till.database, till.desk.acquirers)
    await set_back.times(till.database, "acquirer_turn", {}, probe_at=utc_now() - timedelta(seconds=1))
    await mine.probe(till.database, till.desk.acquirers)
    await mine.look(till.database)
    assert (await till.buy("still")) == Paid()
    assert (await accounts.served_by())[-1] == "simulator", "it does not answer yet"
    del accounts.spoilt["second"]
    await set_back.times(till.database, "acquirer_turn", {}, probe_at=utc_now() - timedelta(seconds=1))
    await mine.probe(till.database, till.desk.acquirers)
    await mine.look(till.database)
    assert await till.buy("again") == Paid()
    assert (await accounts.served_by())[-1] == "second"
    assert await till.database.fetchval(alarms) == 0


async def taken_out(accounts: Accounts) -> timedelta:
    """Let an account fail that was in turn; how long it is left alone then."""
    mine = Health()
    for _ in range(LEAST):
        mine.count("second", "asked", "unreached")
    await mine.look(accounts.till.database)
    rest = await accounts.till.database.fetchval("select rest from acquirer_turn where out_since is not null")
    assert isinstance(rest, timedelta)
    return rest


async def test_one_that_fails_again_soon_is_left_alone_for_longer(accounts: Accounts) -> None:
    database, probing = accounts.till.database, Health()
    first = await taken_out(accounts)
    await probing.look(database)
    await set_back.times(database, "acquirer_turn", {}, probe_at=utc_now() - timedelta(seconds=1))
    await probing.probe(database, {"second": accounts.till.desk.acquirers["simulator"]})
    assert await list_out_of_turn(database) == []
    await set_back.times(database, "acquirer_turn", {}, back_at=utc_now() - timedelta(seconds=30))
    await set_back.times(database, "acquirer_count", {}, since=utc_now() - timedelta(hours=1))
    assert await taken_out(accounts) == 2 * first


async def test_a_rule_passes_over_an_account_out_of_turn_and_the_preview_says_so(accounts: Accounts) -> None:
    await accounts.add("second")
    till = accounts.till
    rule = Rule(0, "second", None, "USD", "", "", None, None, 100)
    await add_rule(till.database, COMMAND_LINE, rule, set(till.desk.acquirers), now=utc_now())
    await fail(accounts)
    steps = await till.desk.preview(Order(till.shop, "new", "USD", Decimal(10)))
    assert "out of turn" in steps[0].why
    assert (steps[-1].account, steps[-1].is_taken) == ("simulator", True)


async def test_what_was_counted_becomes_hours_and_stays_the_same_sum(accounts: Accounts) -> None:
    database, mine = accounts.till.database, Health()
    hour = utc_now().replace(minute=0, second=0, microsecond=0) - timedelta(hours=5)
    for count in (1, 2):
        mine.count("second", *["asked"] * count)
        await mine.look(database)
        await set_back.times(database, "acquirer_count", {"count": count}, since=hour + timedelta(minutes=count))
    await health.queries.fold_counts(database, before=utc_now() - timedelta(hours=3))
    rows = await database.fetch("select since, count from acquirer_count")
    assert [(row["since"], row["count"]) for row in rows] == [(hour, 3)]


@pytest.mark.parametrize("began", [True, False])
async def test_only_where_nothing_began_the_next_account_is_asked(accounts: Accounts, began: bool) -> None:
    await accounts.add("second")
    error = OutcomeUnknown("lost") if began else NothingBegun("refused")
    spoil(accounts, "second", authorize=ending_in(error))
    assert await accounts.till.buy("one", GOOD) == (Unsettled() if began else Paid())
    assert await accounts.served_by() == (["second"] if began else ["second", "simulator"])


async def test_if_nothing_begins_anywhere_the_customer_reads_so_and_may_try_again(accounts: Accounts) -> None:
    await accounts.add("second")
    till = replace(accounts.till, desk=replace(accounts.till.desk, test_acquirer="second"))
    spoil(accounts, "second", authorize=ending_in(NothingBegun("refused")))
    link = await till.order("again")
    assert await till.pay(link) == Refused("not_reached")
    accounts.spoilt.clear()
    assert await till.pay(link) == Paid()
    assert await accounts.served_by() == ["second", "second"]


async def test_a_page_that_can_not_be_asked_for_is_made_at_the_next_account(accounts: Accounts) -> None:
    await accounts.add("second")
    spoil(accounts, "second", open_page=ending_in(NothingBegun("refused")))
    link = await accounts.till.order("page")
    assert isinstance(await go_on(accounts.till.desk, link), ConfirmWithBank)
    assert await accounts.served_by() == ["second", "simulator"]


async def test_if_one_that_was_not_reached_has_taken_money_after_all_it_goes_back(accounts: Accounts) -> None:
    await accounts.add("second")
    honest = SimulatedAcquirer(accounts.banks["second"], base_url="http://pay.test")

    async def deny(purchase: Purchase) -> None:
        await honest.authorize(purchase)
        raise NothingBegun("refused")

    spoil(accounts, "second", authorize=deny)
    assert await accounts.till.buy("lied") == Paid()
    await accounts.till.settle_all(minutes=2)
    assert (accounts.taken("second"), accounts.taken("simulator")) == (0, 1)
