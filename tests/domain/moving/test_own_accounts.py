"""A merchant goes with accounts at acquirers of its own: each payment stays at its account, what
acquirers say is booked once, and each cell asks only what is its own.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from tests import shopfront
from tests.breaking import say
from tests.domain.moving.owning import LATER, TERMS, THEIRS, Owning, with_secrets
from tests.domain.moving.play import Cell, Killed, back, clean, going, killing
from tests.set_back import times

from paydesk.adapters.vault import VaultError
from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict, NotFound
from paydesk.domain.accounts.audit import COMMAND_LINE
from paydesk.domain.acquirers.accounts import list_accounts, not_here
from paydesk.domain.acquirers.opening import what_opens
from paydesk.domain.acquirers.routing import list_rules
from paydesk.domain.cells.fencing import Fenced, fence
from paydesk.domain.moving import accounts, moving
from paydesk.domain.moving.cancelling import cancel_move
from paydesk.domain.moving.moving import move_merchant
from paydesk.domain.moving.steps import Step
from paydesk.domain.moving.tables import GUARDED
from paydesk.domain.operations.acquirer_accounts import set_enabled
from paydesk.domain.operations.history import read as read_history
from paydesk.domain.operations.reconciling import reconcile
from paydesk.domain.operations.remembered_accounts import AccountsMemory, lost_accounts
from paydesk.domain.payments.results import Paid


async def test_it_goes_on_through_its_own_account(own: Owning) -> None:
    play = own.play
    sold = await own.till(play.here).sell("own-3")
    await move_merchant(going(play))
    await own.look()
    till = own.till(play.there)
    await till.give_back(sold, "1.00", "own-back")
    assert await till.buy("own-4") == Paid()
    await times(play.there.database, "subscription", {}, date_next=utc_now() - timedelta(minutes=1))
    await shopfront.charge_round(play.there.desk)
    renewals = "select acquirer from payment_attempt a join payment p on p.id = a.payment_id where p.renewal"
    assert {row["acquirer"] for row in await play.there.database.fetch(renewals)} == {THEIRS, "simulator"}
    assert (await own.served_by(play.there)).count(THEIRS) == 6
    assert THEIRS not in play.here.desk.acquirers
    assert (await clean(play.here), await clean(play.there)) == ([], [])


async def test_what_is_sold_meanwhile_is_taken_by_its_own_account(own: Owning, monkeypatch: pytest.MonkeyPatch) -> None:
    play = own.play
    monkeypatch.setattr(accounts, "OPENED_AFTER", timedelta(seconds=2))

    async def selling() -> int:
        """Customers come to the cell that has the shop, whose process has looked by then."""
        sold = 0
        while sold < 5 or not await play.is_open(play.there):
            await own.look()
            with suppress(Fenced, NotFound):
                cell = play.here if await play.is_open(play.here) else play.there
                assert await own.till(cell).buy(f"meanwhile-{sold}") == Paid()
                sold += 1
        await own.look()
        assert await own.till(play.there).buy("after") == Paid()
        return sold + 1

    before = await own.served_by(play.here)
    _, sold = await asyncio.wait_for(asyncio.gather(move_merchant(going(play)), selling()), 60)
    assert await own.served_by(play.there) == [*before, *[THEIRS] * sold]


async def test_nothing_of_its_account_is_left_and_all_of_it_came(own: Owning) -> None:
    play = own.play
    own.bank.balance.agree(TERMS, timedelta(seconds=1))
    await asyncio.sleep(1)
    await own.read(play.here)
    before = await own.of_account(play.here)
    assert {"acquirer_account", "acquirer_rule", "bank_payout", "dispute_reading", "operator_entry"} <= set(before)
    await move_merchant(going(play))
    assert (await own.of_account(play.here), await own.of_account(play.there)) == ({}, before)


async def test_what_its_acquirer_tells_is_booked_once(own: Owning) -> None:
    play, bank = own.play, own.bank
    sold = [await own.till(play.here).sell(f"disputed-{number}") for number in range(3)]
    keys = [await own.key_of(play.here, one) for one in sold]
    bank.open_dispute(keys[0], "fraudulent")
    await own.read(play.here)

    async def at(step: Step, key: str) -> None:
        with pytest.raises(Killed):
            await move_merchant(going(play), passed=killing(step))
        bank.open_dispute(key, "fraudulent")
        await own.look()
        await own.read(play.here)
        await own.read(play.there)

    booked = "select count(*) from chargeback"
    await at(Step.closed, keys[1])
    assert await play.here.database.fetchval(booked) == 1
    assert await play.there.database.fetchval(booked) == 1, "as it was copied"
    await at(Step.opened, keys[2])
    assert await play.here.database.fetchval(booked) == 1
    await move_merchant(going(play))
    await own.read(play.here)
    await own.look()
    await own.read(play.there)
    for cell, there in ((play.here, 0), (play.there, 3)):
        assert await cell.database.fetchval(booked) == there
        assert await cell.database.fetchval("select count(*) from dispute_waiting") == 0
        assert await cell.database.fetchval("select count(*) from alarm where settled_at is null") == 0
    assert await own.of_account(play.here) == {}
    lines = "select count(*), count(distinct line) from balance_line where acquirer = $1"
    assert len(set(await play.there.database.fetchrow(lines, THEIRS))) == 1
    assert (await clean(play.here), await clean(play.there)) == ([], [])


async def test_what_it_took_before_is_its_own_still(own: Owning) -> None:
    play, bank = own.play, own.bank
    sold = await own.till(play.here).sell("before")
    key = await own.key_of(play.here, sold)
    await move_merchant(going(play))
    await own.look()
    await own.read(play.there)
    lines = "select count(*) filter (where is_ours is false), count(*) from balance_line where acquirer = $1"
    foreign, entered = await play.there.database.fetchrow(lines, THEIRS)
    assert (foreign, entered > 0) == (0, True)
    made = bank.record.decided(key)
    assert made is not None
    bank.refund("made-by-hand", made.reference, Decimal(3), "USD")
    found = await reconcile(play.there.desk, THEIRS, since=utc_now() - timedelta(days=1), now=utc_now() + LATER)
    assert [one.payment_id for one in found.differences if one.what == "purchase"] == [sold]
    with pytest.raises(Conflict, match=r"2 differences between its account and our books are open"):
        await move_merchant(back(play))
    await say(play.there.database, "alarm", {}, accepted_at=utc_now())
    await move_merchant(back(play))
    asked = await play.here.database.fetchval("select asked_by from acquirer_account where name = $1", THEIRS)
    assert sorted(asked) == sorted({await tag(play.here), await tag(play.there)})


async def tag(cell: Cell) -> str:
    return str(await cell.database.fetchval("select tag from deployment"))


async def test_a_refund_that_fails_while_it_moves_is_booked_back_there(own: Owning) -> None:
    play = own.play
    sold = await own.till(play.here).sell("failing")
    await own.till(play.here).give_back(sold, "1.00", "failing-back")
    with pytest.raises(Killed):
        await move_merchant(going(play), passed=killing(Step.closed))
    key = await play.here.database.fetchval("select idempotency_key from movement where payment_id = $1", sold)
    made = own.bank.record.decided(key)
    assert made is not None
    own.bank.fail_refund(made.reference, "lost_or_stolen_card")
    for cell in (play.here, play.there):
        await own.read(cell)
    await move_merchant(going(play))
    for cell in (play.here, play.there):
        await own.look()
        await own.read(cell)
    failed = "select count(*) from ledger_posting where kind = 'refund_failure'"
    assert [await cell.database.fetchval(failed) for cell in (play.here, play.there)] == [0, 1]
    alarms = "select count(*) from alarm where settled_at is null"
    assert [await cell.database.fetchval(alarms) for cell in (play.here, play.there)] == [0, 0]


async def die_at(own: Owning, step: Step) -> dict[str, int]:
    """The move dies at a step after its account was read; what was known of that before."""
    await own.read(own.play.here)
    before = await own.of_account(own.play.here)
    with pytest.raises(Killed):
        await move_merchant(going(own.play), passed=killing(step))
    await own.look()
    return before


@pytest.mark.parametrize("step", list(Step)[:-1])
async def test_killed_at_any_step_it_is_read_and_listed_where_it_is(own: Owning, step: Step) -> None:
    play, before = own.play, await die_at(own, step)
    listed = [THEIRS in [one.name for one in await list_accounts(cell.database)] for cell in (play.here, play.there)]
    ruled = [bool(await list_rules(cell.database)) for cell in (play.here, play.there)]
    assert listed == ruled
    has_moved = step in (Step.moved, Step.switched, Step.opened)
    assert listed == [not has_moved, step is Step.opened]
    if step is not Step.opened:
        await own.read(play.there)
    await move_merchant(going(play))
    await own.look()
    assert (await own.of_account(play.here), await own.of_account(play.there)) == ({}, before)
    assert await own.till(play.there).buy("own-5") == Paid()
    assert (await own.served_by(play.there))[-1] == THEIRS
    assert (await clean(play.here), await clean(play.there)) == ([], [])


@pytest.mark.parametrize("step", [Step.copied, Step.fenced, Step.completed])
async def test_a_cancelled_move_leaves_nothing_there_and_all_here(own: Owning, step: Step) -> None:
    play, before = own.play, await die_at(own, step)
    await cancel_move(going(play))
    await own.read(play.there)
    assert (await own.of_account(play.here), await own.of_account(play.there)) == (before, {})
    await own.look()
    assert THEIRS not in play.there.desk.acquirers
    assert await own.till(play.here).buy("own-5") == Paid()
    assert (await own.served_by(play.here))[-1] == THEIRS
    await own.read(play.here)
    await move_merchant(going(play))
    await own.look()
    assert await own.till(play.there).buy("own-6") == Paid()
    assert (await own.served_by(play.there))[-1] == THEIRS


async def test_it_comes_back_with_its_account(own: Owning) -> None:
    play = own.play
    await own.read(play.here)
    await move_merchant(going(play))
    await own.look()
    assert await own.till(play.there).buy("own-5") == Paid()
    await own.read(play.there)
    there = await own.of_account(play.there)
    await move_merchant(back(play))
    await own.look()
    assert (await own.of_account(play.here), await own.of_account(play.there)) == (there, {})
    assert await own.till(play.here).buy("own-6") == Paid()
    assert (await own.served_by(play.here))[-2:] == [THEIRS, THEIRS]
    await own.read(play.here)
    assert await play.here.database.fetchval("select count(*) from acquirer_lost") == 0
    assert (await clean(play.here), await clean(play.there)) == ([], [])


async def test_no_process_misses_an_account_that_has_gone(own: Owning, tmp_path: Path) -> None:
    play = own.play
    memories = [(cell, AccountsMemory(tmp_path / f"{n}.json")) for n, cell in enumerate((play.here, play.there))]

    async def remembered() -> bool:
        held = [
            await one.compare(cell.database, await read_history(cell.database), is_live=False) for cell, one in memories
        ]
        missed = [await lost_accounts(cell.database) for cell, _ in memories]
        return any(held) or any(missed)

    assert not await remembered()
    with pytest.raises(Killed):
        await move_merchant(going(play), passed=killing(Step.copied))
    assert not await remembered()
    await cancel_move(going(play))
    assert not await remembered()
    await move_merchant(going(play))
    assert not await remembered()
    await move_merchant(back(play))
    assert not await remembered()


async def test_keys_open_in_the_other_vault_alone(own: Owning) -> None:
    play = own.play
    await with_secrets(play.here, play.merchant.id, "stripe-own")
    await say(play.here.database, "acquirer_account", {"name": "stripe-own"}, serves_from=utc_now())
    opened = await what_opens(play.here.database, play.here.vault, "stripe-own")
    moved = await move_merchant(going(play))
    assert await what_opens(play.there.database, play.there.vault, "stripe-own") == opened
    assert opened is not None
    assert (opened.key, opened.webhook_secrets) == ("sk_of_theirs", ("whsec_one", "whsec_two"))
    assert moved.sealed > 2
    with pytest.raises(VaultError):
        await what_opens(play.there.database, play.here.vault, "stripe-own")


async def test_a_change_that_comes_after_the_copy_is_opened_again(own: Owning) -> None:
    play = own.play
    asked = "select revision from acquirer_account where name = $1"
    with pytest.raises(Killed):
        await move_merchant(going(play), passed=killing(Step.followed))
    first = await play.there.database.fetchval(asked, THEIRS)
    await set_enabled(play.here.desk, COMMAND_LINE, THEIRS, enabled=False, now=utc_now())
    await move_merchant(going(play))
    assert await play.there.database.fetchval(asked, THEIRS) > first
    account = next(one for one in await list_accounts(play.there.database) if one.name == THEIRS)
    assert not account.enabled


async def test_it_is_closed_once_its_account_may_serve_there(own: Owning, monkeypatch: pytest.MonkeyPatch) -> None:
    play, seen = own.play, []
    monkeypatch.setattr(accounts, "OPENED_AFTER", timedelta(seconds=2))

    def passed(step: Step) -> None:
        if step is Step.followed:
            seen.append(utc_now())
        if step is Step.fenced:
            seen.append(utc_now())

    await move_merchant(going(play), passed=passed)
    serves = await play.there.database.fetchval("select serves_from from acquirer_account where name = $1", THEIRS)
    assert seen[-1] >= serves


async def test_a_reading_that_goes_on_is_waited_for_while_it_sells(own: Owning) -> None:
    play = own.play
    await own.read(play.here)
    until = utc_now() + timedelta(seconds=3)
    await say(play.here.database, "balance_reading", {"acquirer": THEIRS}, leased_until=until)
    fenced = []

    def passed(step: Step) -> None:
        if step is Step.fenced:
            fenced.append(utc_now())

    await move_merchant(going(play), passed=passed)
    assert fenced[0] >= until


async def test_a_reading_is_never_cut_off(own: Owning, monkeypatch: pytest.MonkeyPatch) -> None:
    play = own.play
    await own.read(play.here)
    monkeypatch.setattr(accounts, "READ_FOR", 0.5)
    await say(play.here.database, "balance_reading", {"acquirer": THEIRS}, leased_until=utc_now() + timedelta(hours=1))
    with pytest.raises(Conflict, match="is being read still"):
        await move_merchant(going(play))
    assert await play.is_open(play.here)
    await say(play.here.database, "balance_reading", {"acquirer": THEIRS}, leased_until=None)
    await move_merchant(going(play))
    assert await play.is_open(play.there)


async def test_a_reading_that_began_just_before_the_fence_lets_it_go_on_here(own: Owning) -> None:
    play = own.play
    await own.read(play.here)
    with pytest.raises(Killed):
        await move_merchant(going(play), passed=killing(Step.followed))
    await fence(play.here.database, play.merchant.id, other_cell=2, tables=GUARDED)
    with pytest.raises(Fenced):
        await say(play.here.database, "dispute_reading", {"acquirer": THEIRS}, leased_until=utc_now() + LATER)
    await say(play.here.database, "dispute_reading", {"acquirer": THEIRS}, place="5")
    assert await play.here.database.fetchval("select place from dispute_reading where acquirer = $1", THEIRS) == "5"


@pytest.mark.parametrize("stands", [{"serves_from": timedelta(minutes=5)}, {"gone_at": timedelta(0)}])
async def test_who_would_not_be_served_there_yet_goes_on_here(
    own: Owning, stands: dict[str, timedelta], monkeypatch: pytest.MonkeyPatch
) -> None:
    play = own.play

    async def nobody_waits(*_: object) -> None:
        """An account is added, or asked again, just after somebody has looked."""
        async with play.there.database.acquire() as connection, connection.transaction():
            await connection.execute("set local session_replication_role = replica")
            await say(connection, "acquirer_account", {}, **{name: utc_now() + ago for name, ago in stands.items()})

    monkeypatch.setattr(moving, "wait_until_they_may_go", nobody_waits)
    with pytest.raises(Conflict, match="was added meanwhile"):
        await move_merchant(going(play))
    assert await play.is_open(play.here)
    monkeypatch.undo()
    assert await own.till(play.here).buy("own-5") == Paid()


async def test_nobody_changes_an_account_that_is_on_the_way(own: Owning) -> None:
    play = own.play
    with pytest.raises(Killed):
        await move_merchant(going(play), passed=killing(Step.fenced))
    for cell in (play.here, play.there):
        with pytest.raises(Fenced):
            await set_enabled(cell.desk, COMMAND_LINE, THEIRS, enabled=False, now=utc_now())
    with pytest.raises(Fenced):
        await own.rule(play.here, "simulator", play.merchant.id)
    assert await not_here(play.there.database) == {THEIRS}
    assert await not_here(play.here.database) == frozenset()


async def test_others_accounts_stay_as_they_are(own: Owning) -> None:
    play = own.play
    await own.add(play.here, "shared")
    await own.read(play.here)
    before = await own.of_account(play.here, "shared")
    await move_merchant(going(play))
    assert await own.of_account(play.here, "shared") == before
    assert await own.of_account(play.there, "shared") == {}
    with pytest.raises(Conflict, match="is in cell 2, with its merchant"):
        await own.add(play.here, THEIRS)
    with pytest.raises(NotFound):
        await set_enabled(play.here.desk, COMMAND_LINE, THEIRS, enabled=True, now=utc_now())
