"""An account that can never be read again holds nobody up, once an operator has said so."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.banks import answering, ending_in
from tests.domain.acquirers.test_choosing import Accounts, accounts, database, database_url

from paydesk.adapters.acquirers.interface import NothingBegun
from paydesk.adapters.acquirers.simulator import SimulatedAcquirer
from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict, Malformed, NotFound, Unavailable
from paydesk.domain.accounts.audit import COMMAND_LINE
from paydesk.domain.acquirers.accounts import account_named
from paydesk.domain.operations.acquirer_accounts import give_up
from paydesk.domain.operations.history import hold, read
from paydesk.domain.operations.holding import lift_if_whole
from paydesk.domain.payments.results import Paid

__all__ = ["accounts", "database", "database_url"]

WHY = "the bank's machine is lost, with its record"


async def say(accounts: Accounts, words: str = WHY, name: str = "second") -> None:
    """An operator says so, and every process hears of it."""
    await give_up(accounts.till.desk, COMMAND_LINE, name, words, now=utc_now())
    await accounts.look()


def loses_its_bank(accounts: Accounts) -> None:
    """Nobody answers at the account any more."""
    honest = SimulatedAcquirer(accounts.banks["second"], base_url="http://pay.test")
    lost = ending_in(NothingBegun("connection refused"))
    accounts.spoilt["second"] = answering(honest, list_purchases=lost, list_pages=lost, authorize=lost, find=lost)


@pytest.fixture
async def lost(accounts: Accounts) -> Accounts:
    """An account that took a payment, and whose bank is lost; everything is held."""
    await accounts.add("second")
    assert await accounts.till.buy("theirs") == Paid()
    loses_its_bank(accounts)
    database = accounts.till.database
    reading = await read(database)
    since = utc_now() - timedelta(days=1)
    await hold(database, epoch=reading.beat.epoch, above=0, because="it went back", since=since)
    return accounts


async def lift(accounts: Accounts) -> None:
    await lift_if_whole(accounts.till.desk, await read(accounts.till.database))


async def is_held(accounts: Accounts) -> bool:
    return bool((await read(accounts.till.database)).held_because)


async def test_what_can_never_be_read_holds_everything_until_somebody_says_so(lost: Accounts) -> None:
    with pytest.raises(Unavailable, match="the list of second can't be read"):
        await lift(lost)
    await lost.enable("second", enabled=False)
    with pytest.raises(Unavailable, match="the list of second can't be read"):
        await lift(lost)
    await say(lost)
    await lift(lost)
    assert not await is_held(lost)
    assert await lost.till.buy("ours") == Paid()
    assert await lost.served_by() == ["second", "simulator"]
    said = await lost.till.database.fetchval(
        "select details from audit_entry where subject = 'second' order by id desc limit 1"
    )
    assert WHY in said
    await say(lost, "again")
    account = await account_named(lost.till.database, "second")
    assert account is not None
    assert account.gone_at is not None


async def test_an_account_that_serves_or_answers_is_not_gone_nor_one_that_nobody_knows(lost: Accounts) -> None:
    with pytest.raises(Conflict, match="disable it first"):
        await say(lost)
    await lost.enable("second", enabled=False)
    with pytest.raises(Malformed):
        await say(lost, " ")
    with pytest.raises(NotFound):
        await say(lost, name="third")
    lost.spoilt.clear()
    with pytest.raises(Conflict, match="can be read"):
        await say(lost)
    assert await is_held(lost)


async def test_one_that_is_enabled_again_is_asked_again_by_every_process(lost: Accounts) -> None:
    await lost.enable("second", enabled=False)
    await say(lost)
    desk = lost.till.desk
    assert "second" not in desk.acquirers
    lost.spoilt.clear()
    await lost.enable("second", enabled=True)
    await lost.look()
    assert "second" in desk.acquirers
    account = await account_named(lost.till.database, "second")
    assert account is not None
    assert (account.enabled, account.gone_at) == (True, None)
    await lift(lost)
    assert not await is_held(lost)


async def test_an_order_that_may_be_paid_there_is_never_paid_elsewhere(accounts: Accounts) -> None:
    await accounts.add("second")
    honest = SimulatedAcquirer(accounts.banks["second"], base_url="http://pay.test")
    lost = ending_in(TimeoutError())
    accounts.spoilt["second"] = answering(
        honest, authorize=lost, find=lost, list_purchases=ending_in(NothingBegun("x"))
    )
    await accounts.till.buy("theirs")
    await accounts.enable("second", enabled=False)
    await say(accounts)
    await accounts.till.settle(minutes=5)
    with pytest.raises((Unavailable, Conflict)):
        await accounts.till.buy("theirs")
    assert await accounts.served_by() == ["second"]
