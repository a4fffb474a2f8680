"""A merchant goes to another cell whole, whatever dies when; it is open in one of both at most,
and others notice nothing.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from tests import shopfront
from tests.breaking import refusing, say
from tests.domain.moving.play import HERE, SEALED, THERE, Cell, Killed, Play, clean, enlist, killing
from tests.proving import check
from tests.set_back import times
from tests.till import Till

from paydesk.adapters.vault import Sealed, Vault, generate_key_setting, generate_secret
from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict, SetupError, Unavailable
from paydesk.database.pool import connected
from paydesk.domain.accounts import second_factor
from paydesk.domain.cells import directory
from paydesk.domain.cells.adding import add_cell
from paydesk.domain.cells.directory import Entry, Kind, cells_of_person, enter, find_cell, name_of
from paydesk.domain.cells.fencing import Fenced, find_fence
from paydesk.domain.ledger.closing import close_ledger
from paydesk.domain.ledger.summing_sales import sum_sales
from paydesk.domain.merchants.keys import pairs_of
from paydesk.domain.moving import copying, moving
from paydesk.domain.moving.cancelling import cancel_move
from paydesk.domain.moving.moving import move_merchant
from paydesk.domain.moving.passes import Pass
from paydesk.domain.moving.steps import Step
from paydesk.domain.moving.tables import THEIRS
from paydesk.domain.operations.payout_files import queries as files
from paydesk.domain.payments.failed_refunds import read_failed_refunds
from paydesk.domain.payments.results import Paid

OF_SUMS = ("closings_agree", "sales_add_up", "reserves_add_up", "mrr_adds_up", "postings_balance")
"""The rules of `paydesk check` about what is kept beside the rows that it is summed from."""


async def test_everything_is_there_afterwards_and_goes_on(play: Play) -> None:
    before = await play.rows(play.here, play.merchant.id)
    moved = await move_merchant(play.move)
    after = await play.rows(play.there, play.merchant.id)
    assert {name: after[name] for name in after if name not in SEALED} == {
        name: before[name] for name in before if name not in SEALED
    }
    assert moved.copied is not None
    assert moved.copied.rows == sum(len(json.loads(rows)) for rows in before.values())
    till = Till(play.there.desk, play.shop)
    payment = (await till.payments())[0]["id"]
    await till.give_back(payment, "1.00", "back-2")
    assert await till.sell("B-1")


async def test_its_keys_and_cards_open_in_the_other_vault_alone(play: Play) -> None:
    await move_merchant(play.move)
    pairs = await pairs_of(play.there.database, play.there.vault, play.merchant.id)
    assert pairs[0] == (play.merchant.public_key, play.merchant.private_key)
    await times(play.there.database, "subscription", {}, date_next=utc_now() - timedelta(minutes=1))
    await shopfront.charge_round(play.there.desk)
    assert await play.there.database.fetchval("select count(*) from payment where renewal and paid_at is not null") == 1


async def test_the_cell_that_it_left_does_nothing_for_it_any_more(play: Play) -> None:
    link = await shopfront.order(play.here.database, play.shop)
    with pytest.raises(Killed):
        await move_merchant(play.move, passed=killing(Step.opened))
    with pytest.raises(Fenced, match="has moved to cell 2"):
        await shopfront.pay(play.here.desk, link)
    assert isinstance(await shopfront.pay(play.there.desk, link), Paid)


async def test_others_are_what_they_were(play: Play) -> None:
    before = await play.rows(play.here, play.beside.merchant_id)
    await move_merchant(play.move)
    assert await play.rows(play.here, play.beside.merchant_id) == before
    assert await shopfront.buy(play.here.desk, play.beside)
    assert await play.there.database.fetchval("select count(*) from merchant") == 1


async def test_the_books_of_both_cells_are_right(play: Play) -> None:
    await move_merchant(play.move)
    assert (await clean(play.here), await clean(play.there)) == ([], [])


@pytest.mark.parametrize("step", list(Step)[:-1])
async def test_killed_at_any_step_the_same_command_goes_on(play: Play, step: Step) -> None:
    with pytest.raises(Killed):
        await move_merchant(play.move, passed=killing(step))
    assert [await play.is_open(play.here), await play.is_open(play.there)].count(True) <= 1
    await move_merchant(play.move)
    assert (await play.is_open(play.here), await play.is_open(play.there)) == (False, True)
    assert await Till(play.there.desk, play.shop).sell("B-1")
    assert (await clean(play.here), await clean(play.there)) == ([], [])


@pytest.mark.parametrize("amid", list(Pass))
async def test_killed_amid_a_pass_nothing_of_it_is_there(play: Play, amid: Pass) -> None:
    @contextmanager
    def dying(one: Pass) -> Iterator[Callable[[], None]]:
        tables = iter(range(20))

        def report() -> None:
            if one is amid and next(tables, None) is None:
                raise Killed

        yield report

    with pytest.raises(Killed):
        await move_merchant(play.move, watch=dying)
    assert bool(await play.there.database.fetchval("select count(*) from payment")) is (amid is not Pass.whole)
    assert await play.there.database.fetchval("select count(*) from merchant") == 0
    await move_merchant(play.move)
    assert await play.is_open(play.there)


async def test_a_copy_ends_when_the_other_database_goes_away(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    """However much was read ahead at that moment."""
    monkeypatch.setattr(copying, "CHUNKS", 1)
    await say(play.here.database, "pingback", {"merchant_id": play.merchant.id}, url="https://x.test/" + "x" * 2**20)
    async with refusing(play.there.database, "pingback", "pg_terminate_backend(pg_backend_pid())"):
        with pytest.raises(Unavailable, match="run the same command again"):
            await asyncio.wait_for(move_merchant(play.move), 60)
    await move_merchant(play.move)
    assert await play.is_open(play.there)


@pytest.mark.parametrize("step", [Step.copied, Step.followed, Step.fenced, Step.closed, Step.completed])
async def test_until_it_has_moved_it_can_go_on_where_it_is(play: Play, step: Step) -> None:
    before = await play.rows(play.here, play.merchant.id)
    with pytest.raises(Killed):
        await move_merchant(play.move, passed=killing(step))
    await cancel_move(play.move)
    assert (await play.is_open(play.here), await play.is_open(play.there)) == (True, False)
    assert await play.rows(play.here, play.merchant.id) == before
    assert set((await play.rows(play.there, play.merchant.id)).values()) == {"[]"}
    assert (await clean(play.here), await clean(play.there)) == ([], [])
    await move_merchant(play.move)
    assert await play.is_open(play.there)


async def test_who_has_moved_is_not_called_back(play: Play) -> None:
    with pytest.raises(Killed):
        await move_merchant(play.move, passed=killing(Step.moved))
    with pytest.raises(Conflict, match="in cell 2 already"):
        await cancel_move(play.move)


async def test_nothing_is_left_here_but_keys_that_banks_know(play: Play) -> None:
    await move_merchant(play.move)
    left = {name for name, rows in (await play.rows(play.here, play.merchant.id)).items() if rows != "[]"}
    assert left == {"forgotten_attempt"}
    assert await find_fence(play.here.database, play.merchant.id) is None


async def test_the_directory_leads_to_the_cell_that_it_is_in(play: Play) -> None:
    home, email = play.here.database, name_of(play.here.vault, Kind.email, "ada@team.example")
    await enlist(play.here, play.merchant.id, "ada@team.example")
    for number in (HERE, THERE):
        cell = directory.Cell(number, "https://pay.test", "http://inside")
        await add_cell(home, cell, database_id=str(number), now=utc_now())
    key = Entry(Kind.public_key, name_of(play.here.vault, Kind.public_key, play.merchant.public_key), play.merchant.id)
    entries = [Entry(Kind.merchant, str(play.merchant.id), play.merchant.id), key, Entry(Kind.email, email)]
    await enter(home, entries, HERE, now=utc_now())
    moved = await move_merchant(replace(play.move, home=home))
    in_both = await cells_of_person(home, play.here.vault, "ada@team.example")
    assert [one.number for one in in_both] == [HERE, THERE], "from either cell they go on to the other"
    found = [await find_cell(home, one.kind, one.name) for one in entries]
    assert (moved.led, [one and one.number for one in found]) == (3, [THERE, THERE, THERE])


async def test_its_team_goes_along_with_password_and_second_factor(play: Play) -> None:
    person = await enlist(play.here, play.merchant.id, "ada@team.example")
    await move_merchant(play.move)
    row = await play.there.database.fetchrow(
        "select p.* from membership m join person p on p.id = m.person_id where m.merchant_id = $1", play.merchant.id
    )
    opened = Sealed(row["vault_key_id"], row["totp_sealed"])
    secret = play.there.vault.open(opened, purpose=second_factor.PURPOSE, merchant_id=0, row_id=person)
    assert (row["id"], row["password_hash"], secret) == (person, "hash", b"totp")
    assert await play.here.database.fetchval("select count(*) from membership") == 0


async def test_who_is_known_there_belongs_to_it_as_they_are_known(play: Play) -> None:
    await enlist(play.here, play.merchant.id, "ada@team.example")
    known = await enlist(play.there, 0, "Ada@team.example")
    await move_merchant(play.move)
    assert await play.there.database.fetchval("select person_id from membership") == known


async def become_live(cell: Cell) -> None:
    """What everybody has sold in tests was sold for money, two days ago."""
    async with cell.database.acquire() as connection, connection.transaction():
        await connection.execute("set local session_replication_role = replica")
        tables = "select table_name from information_schema.columns where column_name = 'live' and table_name = any($1)"
        for row in await connection.fetch(tables, list(THEIRS)):
            await say(connection, row["table_name"], {}, live=True)
        await times(connection, "payment", {}, created_at=utc_now() - timedelta(days=2))
        await connection.execute("delete from sales_change")


@pytest.mark.parametrize("is_ahead", [False, True])
async def test_kept_sums_reach_as_far_as_those_of_the_other_cell(play: Play, *, is_ahead: bool) -> None:
    await become_live(play.here)
    if is_ahead:
        await say(play.there.database, "ledger_horizon", {}, closed_id=2 * 10**13, seen_id=2 * 10**13)
        await times(play.there.database, "sales_closing", {}, closed_until=utc_now())
    else:
        for _ in range(3):
            await close_ledger(play.here.database)
            await sum_sales(play.here.database)
        assert await play.here.database.fetchval("select count(*) from balance_closing") > 0
        assert await play.here.database.fetchval("select count(*) from sales_day") > 0
    for cell in (play.here, play.there):
        await cell.database.execute(
            "insert into acquirer_own_id (account, own_id, learnt_at) values ('simulator', 'b', now())"
        )
    await move_merchant(play.move)
    for cell in (play.here, play.there):
        rules = {one.rule.statement: one.found for one in await check(cell.database, now=utc_now())}
        assert {name: rules[name] for name in OF_SUMS} == dict.fromkeys(OF_SUMS, 0)
    seen = await play.there.database.fetchval("select count(*) from sales_of_all")
    assert bool(seen) is is_ahead


async def test_cells_of_two_deployments_share_no_merchant(play: Play) -> None:
    other = Vault.from_settings(vault_keys=generate_key_setting(), secret_key=generate_secret())
    with pytest.raises(SetupError, match="PAYDESK_SECRET_KEY"):
        await move_merchant(replace(play.move, target=replace(play.there.side, vault=other)))
    assert await play.is_open(play.here)


async def test_live_money_of_an_account_that_is_not_there_stays(play: Play) -> None:
    theirs = {"merchant_id": play.merchant.id}
    await say(play.here.database, "payment_attempt", theirs, live=True, acquirer="stripe")
    with pytest.raises(Conflict, match=r"accounts that the other cell does not have \(stripe\)"):
        await move_merchant(play.move)
    assert await play.is_open(play.here)


async def test_open_outcomes_of_another_simulated_bank_stay(play: Play) -> None:
    await say(play.here.database, "payment_attempt", {}, lookup_at=utc_now() + timedelta(hours=1), lookups=1)
    with pytest.raises(Conflict, match="this cell's simulated bank"):
        await move_merchant(replace(play.move, same_simulator=False))


async def test_whose_payouts_come_into_a_file_for_the_bank_just_before_the_fence_stays(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both cells would pay the same."""
    fence_here = moving._fence_here

    async def late(*given: Any) -> Any:
        now, about = utc_now(), {"currency": "USD", "request_key": "file", "made_by": "command"}
        lines = {"merchant_ids": [play.merchant.id], "amounts": [Decimal(5)], "accepted_ats": [now]}
        assert await files.make_file(play.here.database, **about, **lines, now=now)
        return await fence_here(*given)

    monkeypatch.setattr(moving, "_fence_here", late)
    with pytest.raises(Conflict, match="1 payouts of it stand in a file that the bank has not done"):
        await move_merchant(play.move)
    assert (await play.is_open(play.here), await play.is_open(play.there)) == (True, False)


async def test_who_is_on_the_way_keeps_no_failed_refund_of_another_from_being_booked_back(play: Play) -> None:
    """The move has died, and a worker reads what their common bank tells."""
    tills = [Till(play.here.desk, shop) for shop in (play.shop, play.beside)]
    for till in tills:
        await till.give_back(await till.sell("failing"), "1.00", "failing-back")
    with pytest.raises(Killed):
        await move_merchant(play.move, passed=killing(Step.closed))

    async def made(till: Till) -> Any:
        (refund,) = [row for row in await till.rows("movement") if row["request_key"] == "failing-back"]
        return refund

    for till in tills:
        play.bank.fail_refund((await made(till))["acquirer_reference"], "lost_or_stolen_card")
    async with connected(play.here.settings.database_url, name="work") as worker:
        assert await read_failed_refunds(replace(play.here.desk, database=worker), now=utc_now()) == 1
    assert [(await made(till))["state"] for till in tills] == ["done", "failed"]
    await cancel_move(play.move)
    assert await read_failed_refunds(play.here.desk, now=utc_now() + timedelta(hours=1)) == 1
    assert [(await made(till))["state"] for till in tills] == ["failed", "failed"]
