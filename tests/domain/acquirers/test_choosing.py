"""Several accounts take payments: an order goes to one that serves it, and stays there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests import breaking, set_back
from tests.banks import answering, ending_in
from tests.shopfront import GOOD, ships
from tests.standings import standings
from tests.till import Till

from paydesk.adapters.acquirers.interface import Acquirer, OutcomeUnknown
from paydesk.adapters.acquirers.simulator import Bank, Record, SimulatedAcquirer
from paydesk.adapters.acquirers.wrapping import PassingAcquirer
from paydesk.adapters.vault import Vault
from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict, NotFound, Unavailable
from paydesk.database.pool import Database, connected
from paydesk.domain.accounts.audit import COMMAND_LINE
from paydesk.domain.acquirers.measuring import MeasuredAcquirer
from paydesk.domain.acquirers.opening import AccountToOpen, OpenAcquirers
from paydesk.domain.acquirers.routing import Order, Rule
from paydesk.domain.chargebacks.reading_acquirers import read_disputes
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.operations import holding
from paydesk.domain.operations.acquirer_accounts import NewAccount, add_account, set_enabled
from paydesk.domain.operations.acquirer_rules import add_rule, remove_rule
from paydesk.domain.operations.reconciling import reconcile
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.hosting import Guest, go_to_page
from paydesk.domain.payments.results import ConfirmWithBank, Paid, Refused, Unsettled
from paydesk.domain.payments.time_to_ship import require_one_holds

DECLINED = "4000000000000002"
LOST = OutcomeUnknown("the answer was lost")


@dataclass
class Accounts:
    """A till with banks of accounts that were added, each with a record of its own."""

    till: Till
    banks: dict[str, Bank]
    spoilt: dict[str, Acquirer]

    async def add(self, name: str, **more: Any) -> None:
        """Add an account that serves by now."""
        typed = NewAccount(name, "simulator", address=f"http://{name}.test", **more)
        await add_account(self.till.desk, COMMAND_LINE, typed, now=utc_now())
        await set_back.accounts_serve(self.till.database)
        await self.look()

    async def look(self) -> None:
        """Notice what was changed, as every process does again and again."""
        known = self.till.desk.acquirers
        assert isinstance(known, OpenAcquirers)
        await known.look(self.till.database)

    async def enable(self, name: str, *, enabled: bool) -> None:
        await set_enabled(self.till.desk, COMMAND_LINE, name, enabled=enabled, now=utc_now())

    def taken(self, name: str) -> int:
        """How many purchases of an account took money and kept it, by its bank's own record."""
        return sum(bool(one.net) for one in standings(self.banks[name].record.operations()).values())

    async def served_by(self) -> list[str]:
        """Which accounts the attempts name, oldest first."""
        rows = await self.till.database.fetch(
            "select acquirer from payment_attempt where merchant_id = $1 order by id", self.till.shop.merchant_id
        )
        return [row["acquirer"] for row in rows]


@pytest.fixture
async def database_url(own_database_url: str) -> str:
    """Accounts are the deployment's, and each test has others."""
    return own_database_url


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    async with connected(database_url) as pool:
        yield pool


@pytest.fixture
async def accounts(desk: Desk, shop: Shop, vault: Vault, bank: Bank, tmp_path: Path) -> AsyncIterator[Accounts]:
    banks: dict[str, Bank] = {"simulator": bank}
    spoilt: dict[str, Acquirer] = {}

    class Stands(PassingAcquirer):
        """An account's bank, which a test may spoil meanwhile."""

        def __init__(self, honest: Acquirer, name: str) -> None:
            super().__init__(honest)
            self.name = name

        async def close(self) -> None:
            """Leave the bank open for who asks it next."""

        def __getattribute__(self, name: str) -> object:
            own = object.__getattribute__(self, "name") if name == "honest" else ""
            return spoilt[own] if own in spoilt else super().__getattribute__(name)

    def open_account(account: AccountToOpen) -> Acquirer:
        if account.name not in banks:
            banks[account.name] = Bank(Record(tmp_path / f"{account.name}.sqlite"))
        stands = Stands(SimulatedAcquirer(banks[account.name], base_url="http://pay.test"), account.name)
        return MeasuredAcquirer(stands, desk.health)

    known = OpenAcquirers(vault, {"simulator": desk.acquirers["simulator"]}, open_account)
    yield Accounts(Till(replace(desk, acquirers=known), shop), banks, spoilt)
    for name, each in banks.items():
        if name != "simulator":
            each.record.close()


async def test_an_account_that_was_added_takes_payments_before_that_of_the_settings(accounts: Accounts) -> None:
    assert await accounts.till.buy("before") == Paid()
    await accounts.add("second")
    assert await accounts.till.buy("after") == Paid()
    assert await accounts.served_by() == ["simulator", "second"]
    assert (accounts.taken("simulator"), accounts.taken("second")) == (1, 1)


async def test_an_account_takes_only_its_currencies(accounts: Accounts) -> None:
    await accounts.add("euros", currencies="EUR chf")
    await accounts.till.buy("dollars")
    await accounts.till.buy("francs", currency="CHF")
    assert await accounts.served_by() == ["simulator", "euros"]


async def test_another_merchants_account_takes_none_of_a_shops_payments(accounts: Accounts, other_shop: Shop) -> None:
    await accounts.add("theirs", for_merchant=str(other_shop.merchant_id))
    await accounts.till.buy("mine")
    assert await accounts.served_by() == ["simulator"]
    await replace(accounts.till, shop=other_shop).buy("theirs")
    assert accounts.taken("theirs") == 1


async def test_an_account_serves_once_every_process_has_had_time_to_know_it(accounts: Accounts) -> None:
    await accounts.add("second")
    soon = utc_now() + timedelta(minutes=5)
    await set_back.times(accounts.till.database, "acquirer_account", {}, serves_from=soon)
    await accounts.till.buy("early")
    assert await accounts.served_by() == ["simulator"]


async def test_a_disabled_account_begins_nothing_and_refunds_what_it_took(accounts: Accounts) -> None:
    await accounts.add("second")
    payment_id = await accounts.till.sell("paid")
    await accounts.enable("second", enabled=False)
    await accounts.till.buy("later")
    assert await accounts.served_by() == ["second", "simulator"]
    await accounts.till.give_back(payment_id)
    assert (accounts.taken("second"), accounts.taken("simulator")) == (0, 1)


async def test_an_order_stays_with_its_account_though_another_one_came_first_meanwhile(accounts: Accounts) -> None:
    link = await accounts.till.order("stays")
    assert isinstance(await accounts.till.pay(link, DECLINED), Refused)
    await accounts.add("second")
    assert await accounts.till.pay(link, GOOD) == Paid()
    assert await accounts.served_by() == ["simulator", "simulator"]


async def test_a_declined_order_goes_on_elsewhere_once_its_account_is_disabled(accounts: Accounts) -> None:
    await accounts.add("second")
    link = await accounts.till.order("moves")
    assert isinstance(await accounts.till.pay(link, DECLINED), Refused)
    await accounts.enable("second", enabled=False)
    assert await accounts.till.pay(link, GOOD) == Paid()
    assert await accounts.served_by() == ["second", "simulator"]
    assert (accounts.taken("second"), accounts.taken("simulator")) == (0, 1)


async def test_after_an_unknown_outcome_no_other_account_is_asked(accounts: Accounts) -> None:
    await accounts.add("second")
    honest = SimulatedAcquirer(accounts.banks["second"], base_url="http://pay.test")

    async def lose(purchase: object) -> object:
        await honest.authorize(purchase)  # type: ignore[arg-type]
        raise OutcomeUnknown("the answer was lost")

    accounts.spoilt["second"] = answering(honest, authorize=lose)
    link = await accounts.till.order("lost")
    assert await accounts.till.pay(link, GOOD) == Unsettled()
    await accounts.enable("second", enabled=False)
    del accounts.spoilt["second"]
    with pytest.raises(Unavailable):
        await accounts.till.desk.choose(Order(accounts.till.shop, "lost", "USD", Decimal(10)))
    await accounts.till.settle(minutes=2)
    assert (accounts.taken("second"), accounts.taken("simulator")) == (1, 0)


async def test_two_who_press_at_once_are_charged_once_at_one_account(accounts: Accounts) -> None:
    await accounts.add("second")
    link = await accounts.till.order("twice")
    await asyncio.gather(*(accounts.till.pay(link, GOOD) for _ in range(4)), return_exceptions=True)
    assert (accounts.taken("second"), accounts.taken("simulator")) == (1, 0)


async def test_a_subscription_is_renewed_where_it_began(accounts: Accounts) -> None:
    await accounts.add("second")
    subscription = await accounts.till.subscribe()
    await accounts.enable("second", enabled=False)
    await accounts.till.charge_due(subscription)
    assert await accounts.served_by() == ["second", "second"]


async def test_lists_are_read_and_cursors_kept_for_each_account(accounts: Accounts) -> None:
    await accounts.add("second")
    await accounts.till.buy("here")
    for name in ("simulator", "second"):
        assert not (
            await reconcile(accounts.till.desk, name, since=utc_now() - timedelta(days=1), now=utc_now())
        ).differences
    await read_disputes(accounts.till.desk, now=utc_now())
    rows = await accounts.till.database.fetch("select acquirer from dispute_reading order by acquirer")
    assert {"second", "simulator"} <= {row["acquirer"] for row in rows}


async def test_an_account_that_is_dead_keeps_nobody_from_the_other_ones_disputes(accounts: Accounts) -> None:
    await accounts.add("second")
    honest = SimulatedAcquirer(accounts.banks["second"], base_url="http://pay.test")
    accounts.spoilt["second"] = answering(honest, disputes=ending_in(OutcomeUnknown("dead")))
    await accounts.till.buy("there")
    await read_disputes(accounts.till.desk, now=utc_now())
    rows = await accounts.till.database.fetch("select acquirer from dispute_reading where acquirer = 'simulator'")
    assert len(rows) == 1


async def test_an_order_goes_where_the_rules_send_it_as_the_preview_says(accounts: Accounts) -> None:
    await accounts.add("first")
    await accounts.add("second")
    till = accounts.till
    rule = Rule(0, "second", till.shop.merchant_id, "CHF", "", "visa", None, Decimal(100), 100)
    await add_rule(till.database, COMMAND_LINE, rule, set(till.desk.acquirers), now=utc_now())
    steps = await till.desk.preview(Order(till.shop, "swiss", "CHF", Decimal(10), "", "visa"))
    assert (steps[-1].account, steps[-1].is_taken) == ("second", True)
    await till.buy("swiss", currency="CHF")
    await till.buy("other")
    assert await accounts.served_by() == ["second", "first"]


async def test_rules_that_change_move_no_order_that_was_tried(accounts: Accounts) -> None:
    await accounts.add("first")
    await accounts.add("second")
    till = accounts.till
    link = await till.order("stays")
    assert isinstance(await till.pay(link, DECLINED), Refused)
    everything = Rule(0, "second", None, "", "", "", None, None, 100)
    rule = await add_rule(till.database, COMMAND_LINE, everything, set(till.desk.acquirers), now=utc_now())
    assert await till.pay(link, GOOD) == Paid()
    await till.buy("new")
    assert await accounts.served_by() == ["first", "first", "second"]
    await remove_rule(till.database, COMMAND_LINE, rule.id, now=utc_now())
    with pytest.raises(NotFound):
        await remove_rule(till.database, COMMAND_LINE, rule.id, now=utc_now())


async def test_the_same_bank_is_no_second_account(accounts: Accounts) -> None:
    await accounts.add("second")
    typed = NewAccount("third", "simulator", address="http://second.test/")
    with pytest.raises(Conflict):
        await add_account(accounts.till.desk, COMMAND_LINE, typed, now=utc_now())


async def beside(accounts: Accounts, vault: Vault) -> Desk:
    """What a process has to hand that could open no account that was added."""

    def refuse(account: AccountToOpen) -> Acquirer:
        raise Conflict(f"{account.name} can't be opened")

    desk = accounts.till.desk
    blind = OpenAcquirers(vault, {"simulator": desk.acquirers["simulator"]}, refuse)
    await blind.look(desk.database)
    return replace(desk, acquirers=blind, live_acquirer="simulator")


async def test_who_could_not_open_an_account_takes_no_order_away_from_it(accounts: Accounts, vault: Vault) -> None:
    await accounts.add("second")
    accounts.spoilt["second"] = answering(accounts.till.desk.acquirers["second"], authorize=ending_in(LOST))
    assert await accounts.till.buy("lost") == Unsettled()
    desk = await beside(accounts, vault)
    with pytest.raises(Unavailable):
        await desk.choose(Order(accounts.till.shop, "lost", "USD", Decimal(10)))
    with pytest.raises(OutcomeUnknown):
        await desk.acquirers["second"].find("key")


async def test_a_page_at_an_account_that_can_not_be_asked_is_waited_for(accounts: Accounts, vault: Vault) -> None:
    await accounts.add("second")
    link, guest = await accounts.till.order("there"), Guest("ada@example.com", "203.0.113.7")
    for desk, result in ((accounts.till.desk, ConfirmWithBank), (await beside(accounts, vault), Unsettled)):
        checkout = await accounts.till.find(link)
        said = await go_to_page(desk, checkout, guest, base="http://pay.test", now=checkout.now)
        assert isinstance(said, result), said
    assert await accounts.served_by() == ["second"]


async def test_while_an_account_can_not_be_asked_what_is_held_stays_held(accounts: Accounts, vault: Vault) -> None:
    await accounts.add("second")
    await breaking.say(accounts.till.database, "acquirer_account", {}, live=True)
    desk = await beside(accounts, vault)
    with pytest.raises(Unavailable, match="the list of second can't be read"):
        await holding._compare(desk, utc_now() - timedelta(days=1), is_held=False)


async def test_what_is_shipped_goes_to_an_account_that_holds_money(accounts: Accounts) -> None:
    await accounts.add("second")
    accounts.till.desk.acquirers["second"].hold_period = timedelta(0)
    await ships(accounts.till.database, accounts.till.shop)
    assert await accounts.till.buy("shipped") == Paid()
    assert await accounts.served_by() == ["simulator"]


async def test_where_one_of_those_that_serve_holds_money_goods_may_be_shipped(
    accounts: Accounts, other_shop: Shop
) -> None:
    await accounts.add("theirs", for_merchant=str(other_shop.merchant_id))
    desk = accounts.till.desk
    desk.acquirers["simulator"].hold_period = timedelta(0)
    require_one_holds(await desk.serving(other_shop, None))
    with pytest.raises(Unavailable, match="simulator holds money for 0 days"):
        require_one_holds(await desk.serving(accounts.till.shop, None))
