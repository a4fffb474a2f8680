"""The database of a cell comes back from before a merchant had moved: the copy there is taken away,
and nothing that only it knows is lost unseen.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from tests.breaking import forget, say
from tests.domain.moving.copies import comes_back, here, is_gone, renew, rows, subscribed, there
from tests.domain.moving.owning import THEIRS, Owning
from tests.domain.moving.play import HERE, THERE, Killed, Play, back, clean, enlist, going, killing
from tests.domain.moving.putting_back import HOME, Past, with_a_past

from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict
from paydesk.database.migrating import Migration, migrate
from paydesk.domain.accounts.audit import COMMAND_LINE
from paydesk.domain.cells.directory import switch_merchant
from paydesk.domain.cells.fencing import fence, lift
from paydesk.domain.moving import removing
from paydesk.domain.moving.cancelling import cancel_move
from paydesk.domain.moving.ending import forget_here
from paydesk.domain.moving.moving import move_merchant
from paydesk.domain.moving.only_here import code_of, only_here
from paydesk.domain.moving.removing import OnlyHere, Stage, look_at_copy, remove_copy
from paydesk.domain.moving.requirements import require_same_steps
from paydesk.domain.moving.steps import Step
from paydesk.domain.moving.tables import GUARDED
from paydesk.domain.moving.witnesses import look
from paydesk.domain.operations.merchants import suspend_merchant
from paydesk.domain.operations.payout_files import queries as files
from paydesk.domain.subscriptions.ending import cancel


async def test_the_copy_goes_and_the_merchant_is_as_it_was_where_it_works(past: Past) -> None:
    beside = past.play.beside.merchant_id
    await comes_back(past)
    sold = await there(past).sell("there-1")
    await there(past).give_back(sold, "1.00", "there-back")
    await renew(there(past))
    await cancel(past.play.there.database, past.play.shop, (await subscribed(there(past))).id, by="api", now=utc_now())
    _, before = await rows(past)
    stays = await past.play.rows(past.play.here, beside)
    assert await look_at_copy(past.going) == []
    removed = await remove_copy(past.going)
    assert (list(removed.lost), await is_gone(past)) == ([], True)
    assert (await past.open_in(), await past.led_to()) == ([THERE], THERE)
    assert (await rows(past))[1] == before
    assert await past.play.rows(past.play.here, beside) == stays
    assert (await clean(past.play.here), await clean(past.play.there)) == ([], [])
    assert await there(past).sell("there-2")


async def test_a_payment_that_was_made_here_since_stops_it_by_its_id(past: Past) -> None:
    await comes_back(past)
    sold = await here(past).sell("since")
    before = await rows(past)
    with pytest.raises(
        OnlyHere, match=rf"payment: 1 \({sold}\).*Nothing was deleted; it is open here again"
    ) as refused:
        await remove_copy(past.going)
    assert await past.open_in() == [HERE, THERE]
    assert await rows(past) == before
    await here(past).give_back(sold)
    with pytest.raises(OnlyHere, match="movement: 1"):
        await remove_copy(past.going, lose=code_of(refused.value.found))
    assert await here(past).state(sold) == "refunded"
    found = await look_at_copy(past.going)
    assert (await remove_copy(past.going, lose=code_of(found))).lost == found
    assert (await is_gone(past), await past.open_in()) == (True, [THERE])
    assert (await rows(past))[1] == before[1]


async def test_another_payment_under_the_same_number_is_not_taken_for_that_one(past: Past) -> None:
    """Numbers are given out twice after a return."""
    copy = await past.copy("here")
    first = await here(past).sell("before")
    await past.until(None)
    past.put_back("here", copy)
    second = await here(past).sell("since")
    assert second == first
    with pytest.raises(OnlyHere, match=rf"payment: 1 \({second}\)"):
        await remove_copy(past.going)
    assert await here(past).state(second) == "captured"


async def test_what_the_other_cell_has_taken_away_is_missed_by_nobody(past: Past) -> None:
    """Somebody has left the team there."""
    left = await enlist(past.play.here, past.play.merchant.id, "left@shop.example")
    await enlist(past.play.here, past.play.merchant.id, "stays@shop.example")
    await comes_back(past)
    await forget(past.play.there.database, past.play.merchant.id, "membership", person_id=left)
    await remove_copy(past.going)
    assert await is_gone(past)


async def test_who_was_suspended_here_as_advised_goes(past: Past) -> None:
    await comes_back(past)
    database, merchant_id = past.play.here.database, past.play.merchant.id
    await suspend_merchant(database, COMMAND_LINE, merchant_id, reason="it is in cell 2", now=utc_now())
    await remove_copy(past.going)
    assert (await is_gone(past), await past.open_in()) == (True, [THERE])


async def test_whose_payouts_are_in_a_file_for_the_bank_stays_until_that_is_done(past: Past) -> None:
    await comes_back(past)
    now, about = utc_now(), {"currency": "USD", "request_key": "file", "made_by": "command"}
    lines = {"merchant_ids": [past.play.merchant.id], "amounts": [Decimal(5)], "accepted_ats": [now]}
    assert await files.make_file(past.play.here.database, **about, **lines, now=now)
    for command in (remove_copy, look_at_copy):
        with pytest.raises(Conflict, match="1 payouts of it stand in a file that the bank has not done"):
            await command(past.going)
    assert await past.open_in() == [HERE, THERE]


async def test_who_only_looks_fences_nobody(past: Past) -> None:
    await comes_back(past)
    sold = await here(past).sell("since")
    (found, *_) = await look_at_copy(past.going)
    assert (found.table, found.rows, found.first) == ("payment", 1, [str(sold)])
    assert await past.open_in() == [HERE, THERE]
    assert await here(past).sell("goes-on")


async def test_where_the_directory_leads_here_nothing_goes(past: Past) -> None:
    await comes_back(past)
    await switch_merchant(past.home.database, past.play.merchant.id, left=THERE, to=HERE, now=utc_now())
    before = await rows(past)
    for command in (remove_copy, look_at_copy):
        with pytest.raises(Conflict, match=r"directory leads to merchant .* here, so that what is here is not to go"):
            await command(past.going)
    assert (await rows(past), await past.open_in()) == (before, [HERE, THERE])


async def test_who_is_here_alone_does_not_go(past: Past) -> None:
    """Whatever the directory says."""
    await switch_merchant(past.home.database, past.play.merchant.id, left=HERE, to=THERE, now=utc_now())
    before = await rows(past)
    for move in (past.going, past.play.move):
        with pytest.raises(Conflict, match=f"cell {THERE} does not have merchant .* all that there is of it"):
            await remove_copy(move)
    assert (await rows(past), await past.open_in()) == (before, [HERE])


@pytest.mark.parametrize("step", [Step.copied, Step.closed, Step.completed, Step.moved, Step.switched])
async def test_who_is_on_the_way_does_not_go(past: Past, step: Step) -> None:
    await past.until(step)
    before = await rows(past)
    for move in (past.going, past.play.move):
        with pytest.raises(Conflict, match=r"directory leads to|is on the way to cell 2, and not open there"):
            await remove_copy(move)
    assert (await rows(past))[0] == before[0]
    await move_merchant(past.going)
    assert await past.open_in() == [THERE]


async def test_who_is_on_the_way_to_a_third_cell_does_not_go(past: Past) -> None:
    await comes_back(past)
    await fence(past.play.there.database, past.play.merchant.id, other_cell=HOME, tables=GUARDED)
    with pytest.raises(Conflict, match=f"handed it over to cell {HOME}, or is about to"):
        await remove_copy(past.going)
    assert await past.open_in() == [HERE]


async def test_what_a_move_left_that_died_at_last_goes_by_this_too(past: Past) -> None:
    await past.until(Step.opened)
    await there(past).sell("there-1")
    await remove_copy(past.going)
    assert (await is_gone(past), await past.open_in()) == (True, [THERE])


@pytest.mark.parametrize("stage", [one for one in Stage if one is not Stage.led])
async def test_killed_at_any_point_the_same_command_goes_on(past: Past, stage: Stage) -> None:
    await comes_back(past)
    before = (await rows(past))[1]
    with pytest.raises(Killed):
        await remove_copy(past.going, reached=killing(stage))
    assert await past.open_in() == [THERE]
    if stage in (Stage.closed, Stage.compared):
        for command in (move_merchant, cancel_move):
            with pytest.raises(Conflict, match=r"in both cells.*stays closed here.*--remove-copy"):
                await command(past.going)
    if stage is Stage.deleted:
        with pytest.raises(Conflict, match=r"there is no merchant .* here: it is in cell 2"):
            await remove_copy(past.going)
    else:
        await remove_copy(past.going)
    assert (await is_gone(past), await past.open_in(), await past.led_to()) == (True, [THERE], THERE)
    assert (await rows(past))[1] == before


async def test_killed_once_it_was_given_up_the_move_ends_it_too(past: Past) -> None:
    await comes_back(past)
    with pytest.raises(Killed):
        await remove_copy(past.going, reached=killing(Stage.given_up))
    await move_merchant(past.going)
    assert (await is_gone(past), await past.open_in()) == (True, [THERE])


async def test_who_came_back_closed_stays_so_when_it_is_refused(past: Past) -> None:
    await comes_back(past, Step.closed)
    payment = {"merchant_id": past.play.merchant.id, "merchant_order_id": "A-2"}
    await say(past.play.there.database, "payment", payment, paid_at=None)
    with pytest.raises(OnlyHere, match=r"payment: 1 .*it stays closed here"):
        await remove_copy(past.going)
    assert await past.open_in() == [THERE]
    await remove_copy(past.going, lose=code_of(await look_at_copy(past.going)))
    assert await is_gone(past)


async def test_a_fence_that_is_all_that_is_left_goes_too(past: Past) -> None:
    """Whoever put it up came after another one had deleted the copy, and died: no fence comes up
    any more around who is not here, but an earlier release's may stand.
    """
    await comes_back(past)
    await remove_copy(past.going)
    whose, beside = past.play.merchant.id, past.play.beside.merchant_id
    await fence(past.play.here.database, beside, other_cell=THERE, tables=GUARDED)
    await say(past.play.here.database, "merchant_fence", {"merchant_id": beside}, merchant_id=whose)
    await remove_copy(past.going)
    assert (await is_gone(past), await past.open_in()) == (True, [THERE])
    await move_merchant(replace(back(past.play), home=past.home.database))
    assert await past.open_in() == [HERE]


async def test_without_a_directory_it_goes_all_the_same(play: Play, server_url: str) -> None:
    async with with_a_past(play, server_url) as past:
        await comes_back(past)
        await remove_copy(past.play.move)
        assert (await is_gone(past), await past.open_in()) == (True, [THERE])


async def test_who_has_gone_on_to_a_third_cell_since_goes_by_that(past: Past) -> None:
    """What came back here was about to go to the second one."""
    await past.until(Step.closed)
    copy = await past.copy("here")
    await past.until(None)
    await move_merchant(past.going_home)
    past.put_back("here", copy)
    with pytest.raises(Conflict, match=rf"merchant move {past.play.merchant.id} --to {HOME} --remove-copy"):
        await remove_copy(past.going)
    await remove_copy(replace(past.going, target=past.home, to=HOME))
    assert (await is_gone(past), await past.led_to()) == (True, HOME)
    assert await past.home.database.fetchval("select count(*) from merchant") == 1


async def test_whom_somebody_lets_go_on_meanwhile_stays(past: Past, monkeypatch: pytest.MonkeyPatch) -> None:
    """And is paid once more, after all was compared."""
    await comes_back(past)

    async def late(*given: Any) -> None:
        await lift(past.play.here.database, past.play.merchant.id, tables=GUARDED)
        assert await here(past).sell("since")
        await require_same_steps(*given)

    monkeypatch.setattr(removing, "require_same_steps", late)
    with pytest.raises(Conflict, match=r"somebody has just let merchant .* go on here; nothing was deleted"):
        await remove_copy(past.going)
    assert await past.open_in() == [HERE, THERE]
    assert "since" in [row["merchant_order_id"] for row in await here(past).payments()]


async def test_whom_the_other_cell_has_no_more_when_all_is_compared_stays(
    past: Past, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its database has come back, too, from before the merchant was there."""
    empty = await past.copy("there")
    await comes_back(past)

    asked = [past.play.there.side, replace(past.play.there.side, database=empty)]

    async def look_late(source: Any, target: Any, *given: Any) -> Any:
        return await look(source, asked.pop(0), *given)

    monkeypatch.setattr(removing, "look", look_late)
    with pytest.raises(Conflict, match=f"cell {THERE} does not have merchant"):
        await remove_copy(past.going)
    assert await past.open_in() == [HERE, THERE]


async def test_a_schema_that_was_brought_up_to_date_meanwhile(past: Past, monkeypatch: pytest.MonkeyPatch) -> None:
    await comes_back(past)

    async def late(*given: Any, **more: Any) -> Any:
        await migrate(past.play.there.database, steps=[Migration(9000, "9000_step", "select 1")])
        return await only_here(*given, **more)

    monkeypatch.setattr(removing, "only_here", late)
    with pytest.raises(Conflict, match="brought up to date meanwhile"):
        await remove_copy(past.going)
    assert await past.open_in() == [HERE, THERE]


async def test_who_has_come_back_is_not_deleted_by_a_call_that_comes_late(joined: Play) -> None:
    """It had been about to delete what another one deleted before it."""
    await move_merchant(going(joined))
    await move_merchant(back(joined))
    before = await joined.rows(joined.here, joined.merchant.id)
    await forget_here(going(joined))
    assert await joined.rows(joined.here, joined.merchant.id) == before
    assert await joined.is_open(joined.here)


async def test_its_account_is_read_in_the_other_cell_alone(own: Owning, server_url: str) -> None:
    async with with_a_past(own.play, server_url) as past:
        await comes_back(past)
        own.play = past.play
        await own.look()
        assert "acquirer_account" in await own.of_account(past.play.here)
        kept = await own.of_account(past.play.there)
        await remove_copy(past.going)
        await own.look()
        assert await own.of_account(past.play.here) == {}
        assert await own.of_account(past.play.there) == kept
        assert THEIRS not in list(past.play.here.desk.acquirers)
        await own.read(past.play.here)
        assert await own.of_account(past.play.here) == {}
        assert await own.till(past.play.there).sell("goes-on")
        assert (await own.served_by(past.play.there))[-1] == THEIRS


async def test_its_account_is_where_it_is_not_where_the_copy_was_about_to_go(own: Owning, server_url: str) -> None:
    async with with_a_past(own.play, server_url) as past:
        await comes_back(past, Step.closed)
        await move_merchant(past.going_home)
        await remove_copy(replace(past.going, target=past.home, to=HOME))
        own.play = past.play
        with pytest.raises(Conflict, match=f'"{THEIRS}" is in cell {HOME}, with its merchant'):
            await own.add(past.play.here, THEIRS)


async def test_an_account_that_was_added_here_since_stops_it(own: Owning, server_url: str) -> None:
    async with with_a_past(own.play, server_url) as past:
        await comes_back(past)
        own.play = past.play
        await own.look()
        await own.add(past.play.here, "new", for_merchant=str(past.play.merchant.id))
        with pytest.raises(OnlyHere, match=r"acquirer_account: 1 \(new\)"):
            await remove_copy(past.going)
        assert "acquirer_account" in await own.of_account(past.play.here)


async def test_a_move_that_died_at_last_is_not_ended_by_an_earlier_life_there(past: Past) -> None:
    """The other cell came back from when the merchant lived there once before."""
    await past.until(None)
    copy = await past.copy("there")
    await move_merchant(replace(back(past.play), home=past.home.database))
    sold = await here(past).sell("since")
    await past.until(Step.moved)
    past.put_back("there", copy)
    before = await rows(past)
    for command in (move_merchant, remove_copy):
        with pytest.raises(Conflict, match=rf"payment: 1 \({sold}\)|directory leads to"):
            await command(past.going)
    assert (await rows(past), await past.led_to()) == (before, HERE)
