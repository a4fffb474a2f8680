"""A database that was put back to before an account was added: nothing is begun until it is there
again, or somebody says why it never will be.
"""

from __future__ import annotations

import stat
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from tests import breaking
from tests.domain.acquirers.test_choosing import Accounts, accounts, database, database_url

from paydesk.adapters.vault import Vault
from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict, Malformed, NotFound, Unavailable
from paydesk.domain.accounts.audit import COMMAND_LINE
from paydesk.domain.acquirers.opening import OpenAcquirers
from paydesk.domain.operations.copying import make_harmless
from paydesk.domain.operations.giving_back import give_back
from paydesk.domain.operations.history import hold, read
from paydesk.domain.operations.holding import accept, lift_if_whole
from paydesk.domain.operations.reconciling import SETTLED, reconcile
from paydesk.domain.operations.remembered_accounts import (
    AccountsMemory,
    RememberedAccount,
    accounts_file,
    lost_accounts,
    recall_accounts,
    remember_accounts,
    say_gone,
)
from paydesk.domain.payments.results import Paid

__all__ = ["accounts", "database", "database_url"]

THEN = datetime(2026, 1, 2, tzinfo=UTC)
ONE = RememberedAccount("stripe", True, "acct_1 live", THEN)


def test_what_is_remembered_is_kept_for_each_deployment_and_never_dropped(tmp_path: Path) -> None:
    file = accounts_file(tmp_path)
    assert recall_accounts(file) == {}
    remember_accounts(file, "here", {"one": ONE})
    remember_accounts(file, "there", {"one": ONE})
    remember_accounts(file, "here", {"two": ONE})
    assert recall_accounts(file) == {"here": {"one": ONE, "two": ONE}, "there": {"one": ONE}}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("content", ["", "{", "[1]", '{"here": {"one": 5}}'])
def test_what_can_not_be_read_is_nothing(tmp_path: Path, content: str) -> None:
    accounts_file(tmp_path).write_text(content)
    assert recall_accounts(accounts_file(tmp_path)) == {}


@dataclass
class Restored:
    """A deployment whose database is from before its second account took a payment."""

    accounts: Accounts
    vault: Vault
    file: Path
    key: str

    def restarted(self) -> None:
        """Another process, which has opened what the database knows."""
        desk = self.accounts.till.desk
        assert isinstance(desk.acquirers, OpenAcquirers)
        known = OpenAcquirers(self.vault, {"simulator": desk.acquirers["simulator"]}, desk.acquirers._open)
        self.accounts.till = replace(self.accounts.till, desk=replace(desk, acquirers=known))

    async def compare(self) -> bool:
        """A process that starts compares what it remembers."""
        memory, database = AccountsMemory(self.file), self.accounts.till.database
        return await memory.compare(database, await read(database), is_live=False)

    async def lift(self) -> None:
        await lift_if_whole(self.accounts.till.desk, await read(self.accounts.till.database))

    async def is_held(self) -> bool:
        return bool((await read(self.accounts.till.database)).held_because)


@pytest.fixture
async def restored(accounts: Accounts, vault: Vault, tmp_path: Path) -> Restored:
    file, till = accounts_file(tmp_path), accounts.till
    await accounts.add("second")
    memory = AccountsMemory(file)
    assert not await memory.compare(till.database, await read(till.database), is_live=False)
    assert await till.buy("ours") == Paid()
    key = await till.database.fetchval("select idempotency_key from payment_attempt where acquirer = 'second'")
    await breaking.forget_payments(till.database, till.shop)
    await breaking.forget_account(till.database, "second")
    found = Restored(accounts, vault, file, key)
    found.restarted()
    return found


async def test_all_is_held_until_the_account_is_there_again_and_each_order_is_paid_once(restored: Restored) -> None:
    till, accounts = restored.accounts.till, restored.accounts
    assert await restored.compare()
    with pytest.raises(Unavailable, match="paydesk acquirer add second"):
        await restored.lift()
    with pytest.raises(Conflict, match="paydesk acquirer gone"):
        await accept(till.database, COMMAND_LINE, "never mind", is_live=False, now=utc_now())
    assert await restored.is_held()
    alarm = await till.database.fetchval("select reason from alarm where kind = 'held' and settled_at is null")
    assert "paydesk acquirer add second" in alarm
    await accounts.add("second")
    await restored.lift()
    assert not await restored.is_held()
    assert await accounts.served_by() == ["second"]
    assert (accounts.taken("second"), accounts.taken("simulator")) == (1, 0)
    assert not await restored.compare()


async def test_an_operator_says_why_it_is_gone_and_the_hold_may_end(restored: Restored) -> None:
    database = restored.accounts.till.database
    assert await restored.compare()
    with pytest.raises(Malformed):
        await say_gone(database, COMMAND_LINE, "second", " ", now=utc_now())
    with pytest.raises(NotFound):
        await say_gone(database, COMMAND_LINE, "third", "no such", now=utc_now())
    await say_gone(database, COMMAND_LINE, "second", "its contract has ended", now=utc_now())
    said = await database.fetchval("select details from audit_entry where subject = 'second' order by id desc limit 1")
    assert "its contract has ended" in str(said)
    await restored.lift()
    assert not await restored.is_held()
    assert not await restored.compare(), "what was said once stays said"


async def test_who_remembers_it_after_the_hold_has_ended_holds_all_again(restored: Restored) -> None:
    await restored.lift()
    before = (await read(restored.accounts.till.database)).beat.epoch
    assert await restored.compare()
    reading = await read(restored.accounts.till.database)
    assert reading.beat.epoch > before
    assert reading.held_since is not None
    added = recall_accounts(restored.file)[reading.deployment]["second"].added_at
    assert reading.held_since <= added, "lists are read back to when it began to serve"


async def test_a_test_account_that_is_missed_holds_no_live_payments(restored: Restored) -> None:
    database = restored.accounts.till.database
    assert not await AccountsMemory(restored.file).compare(database, await read(database), is_live=True)
    assert not await restored.is_held()


async def test_a_test_account_that_is_missed_keeps_no_operator_from_ending_a_hold_of_live_payments(
    restored: Restored,
) -> None:
    database = restored.accounts.till.database
    await AccountsMemory(restored.file).compare(database, await read(database), is_live=True)
    assert [one.account for one in await lost_accounts(database)] == ["second"]
    epoch = (await read(database)).beat.epoch
    await hold(database, epoch=epoch, above=epoch, because="restored", since=None)
    assert await accept(database, COMMAND_LINE, "looked at", is_live=True, now=utc_now()) == "restored"
    assert not await restored.is_held()


async def test_a_copy_misses_no_account(restored: Restored) -> None:
    database = restored.accounts.till.database
    await restored.compare()
    await make_harmless(database)
    assert await lost_accounts(database) == []
    assert not await restored.compare()


async def test_what_was_taken_twice_under_one_key_goes_back_at_the_account_that_was_forgotten(
    restored: Restored,
) -> None:
    accounts, till = restored.accounts, restored.accounts.till
    assert await till.buy("ours") == Paid()
    key = await till.database.fetchval("select idempotency_key from payment_attempt where acquirer = 'simulator'")
    assert key == restored.key
    assert (accounts.taken("second"), accounts.taken("simulator")) == (1, 1)
    await accounts.add("second")
    now = utc_now()
    since = now - timedelta(hours=1)
    found = await reconcile(till.desk, "second", since=since, now=now + 2 * SETTLED, fix=True)
    assert [one.key for one in found.differences] == [key]
    with pytest.raises(Conflict, match="is in our books"):
        await give_back(till.desk, "simulator", key, actor=COMMAND_LINE, now=now)
    given = await give_back(till.desk, "second", key, actor=COMMAND_LINE, now=now)
    assert given.amount == Decimal(10)
    assert (accounts.taken("second"), accounts.taken("simulator")) == (0, 1)
    found = await reconcile(till.desk, "second", since=since, now=now + 2 * SETTLED, fix=True)
    assert found.differences == []
    assert await accounts.served_by() == ["simulator"]


async def test_an_order_of_a_forgotten_account_goes_nowhere_else(restored: Restored) -> None:
    """Its alarm names an account that this process has not opened."""
    till = restored.accounts.till
    await restored.accounts.add("second")
    now = utc_now()
    await reconcile(till.desk, "second", since=now - timedelta(hours=1), now=now + 2 * SETTLED)
    restored.restarted()
    assert isinstance(restored.accounts.till.desk.acquirers, OpenAcquirers)
    with pytest.raises(Unavailable):
        await restored.accounts.till.buy("ours")
    assert (restored.accounts.taken("second"), restored.accounts.taken("simulator")) == (1, 0)
