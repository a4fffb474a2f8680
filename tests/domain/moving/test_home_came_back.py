"""Home's database comes back together with the copy, so that the directory leads to the copy: that
is told, and put right by the removal of the copy; who is no copy is not removed by that.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from tests.breaking import forget
from tests.domain.moving.copies import here, is_gone, rows, there
from tests.domain.moving.play import HERE, THERE, Cell, Killed, back, clean, enlist, killing
from tests.domain.moving.putting_back import HOME, Past

from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict
from paydesk.domain.business.key_pairs import public_keys
from paydesk.domain.cells import checking
from paydesk.domain.cells.checking import check_cells, mend_cells
from paydesk.domain.cells.comparing import compare, enter_own
from paydesk.domain.cells.directory import Kind, cells_of_person, find_cell, name_of
from paydesk.domain.merchants.keys import rotate
from paydesk.domain.moving import ending
from paydesk.domain.moving.moving import move_merchant
from paydesk.domain.moving.only_here import code_of
from paydesk.domain.moving.removing import OnlyHere, Stage, look_at_copy, remove_copy
from paydesk.domain.moving.steps import Move


async def both_come_back(past: Past) -> None:
    """The merchant has moved, and got another key and another one in its team there; then home's
    database, and that of the cell that it left, are what they were before.
    """
    await enlist(past.play.here, past.play.merchant.id, "first@shop.example")
    await enter_own(past.home.database, past.play.here.database, past.play.here.vault, HERE, now=utc_now())
    copies = {which: await past.copy(which) for which in ("home", "here")}
    await past.until(None)
    cell, merchant_id = past.play.there, past.play.merchant.id
    newest = (await public_keys(cell.database, merchant_id))[0]
    async with cell.database.acquire() as connection, connection.transaction():
        await rotate(connection, cell.vault, merchant_id, replaces=newest.id, grace=timedelta(days=1), now=utc_now())
    await enlist(cell, merchant_id, "new@shop.example")
    for which, copy in copies.items():
        past.put_back(which, copy)


async def key_led_to(past: Past, cell: Cell) -> list[int]:
    """The cells that the directory leads to for the public keys that the merchant has in a cell."""
    keys = await public_keys(cell.database, past.play.merchant.id)
    names = [name_of(past.home.vault, Kind.public_key, one.public_key) for one in keys]
    found = [await find_cell(past.home.database, Kind.public_key, name) for name in names]
    return [one.number for one in found if one]


async def checked(past: Past) -> list[str]:
    """What a check finds of merchants that are in two cells."""
    others = {HERE: past.play.here.database, THERE: past.play.there.database}
    found = await check_cells(past.home.database, others, past.home.vault, now=utc_now())
    return [f"{one.cell}: {one.what}; {one.to_do}" for one in found if "in two cells" in one.what]


async def test_the_copy_goes_and_all_lead_to_the_other_cell(past: Past) -> None:
    await both_come_back(past)
    assert await past.led_to() == HERE
    with pytest.raises(Conflict, match="with --home-came-back leads it there"):
        await remove_copy(past.going)
    before = await rows(past)
    removed = await remove_copy(past.going, home_came_back=True)
    assert (await is_gone(past), await past.open_in(), await past.led_to()) == (True, [THERE], THERE)
    assert (removed.led > 0, (await rows(past))[1]) == (True, before[1])
    assert await key_led_to(past, past.play.there) == [THERE, THERE]
    for email in ("first@shop.example", "new@shop.example"):
        cells = await cells_of_person(past.home.database, past.home.vault, email)
        assert THERE in [one.number for one in cells], email
    compared = await compare(past.home.database, past.play.there.database, past.home.vault, THERE, now=utc_now())
    assert (compared.missing, compared.elsewhere) == ((), ())
    assert await clean(past.play.there) == []
    assert await there(past).sell("goes-on")


async def test_a_check_names_who_is_open_in_two_cells_and_the_next_step(past: Past) -> None:
    await both_come_back(past)
    (said,) = await checked(past)
    name = f"merchant {past.play.merchant.id}"
    assert said.startswith(
        f"{THERE}: {name} is in two cells: open here, and open in cell {HERE}, to which the directory"
    )
    assert f"paydesk {name.replace(' ', ' move ')} --to CELL --remove-copy --dry-run" in said
    assert said.endswith(f"in cell {HERE} with --home-came-back")
    await remove_copy(past.going, home_came_back=True)
    assert await checked(past) == []


async def test_what_only_the_copy_knows_stops_it_still(past: Past) -> None:
    await both_come_back(past)
    sold = await here(past).sell("since")
    with pytest.raises(OnlyHere, match=rf"payment: 1 \({sold}\)"):
        await remove_copy(past.going, home_came_back=True)
    assert (await past.open_in(), await past.led_to()) == ([HERE, THERE], HERE)
    found = await look_at_copy(past.going, home_came_back=True)
    await remove_copy(past.going, home_came_back=True, lose=code_of(found))
    assert (await is_gone(past), await past.led_to()) == (True, THERE)


@pytest.mark.parametrize("has_left", [False, True])
async def test_the_right_one_is_not_lost_to_a_copy_that_knows_nothing_more(past: Past, has_left: bool) -> None:
    """The other cell came back from when the merchant was there once before, and the directory is
    right. That somebody was in its team who has left since is nothing more.
    """
    await past.until(None)
    left = await enlist(past.play.there, past.play.merchant.id, "left@shop.example")
    copy = await past.copy("there")
    await move_merchant(past.going_home)
    past.put_back("there", copy)
    from_home = Move(past.home, past.play.there.side, past.home.database, past.play.merchant.id, THERE)
    at_home = replace(past.play.here, database=past.home.database, vault=past.home.vault)
    await enlist(at_home, past.play.merchant.id, "since@shop.example")
    if has_left:
        await forget(past.home.database, past.play.merchant.id, "membership", person_id=left)
    found = await look_at_copy(from_home, home_came_back=True)
    assert [one.table for one in found] == ["membership"]
    with pytest.raises(Conflict, match=f"cell {THERE} knows nothing of merchant .* it may be the copy itself"):
        await remove_copy(from_home, home_came_back=True, lose=code_of(found))
    assert (await past.home.database.fetchval("select count(*) from merchant"), await past.led_to()) == (1, HOME)


@pytest.mark.parametrize("stage", [Stage.closed, Stage.compared, Stage.given_up, Stage.led])
async def test_killed_at_any_point_the_same_command_goes_on(past: Past, stage: Stage) -> None:
    await both_come_back(past)
    with pytest.raises(Killed):
        await remove_copy(past.going, home_came_back=True, reached=killing(stage))
    assert await past.open_in() == [THERE]
    await remove_copy(past.going, home_came_back=True)
    assert (await is_gone(past), await past.open_in(), await past.led_to()) == (True, [THERE], THERE)
    assert await key_led_to(past, past.play.there) == [THERE, THERE]


@pytest.mark.parametrize("before", ["switch_people", "enter"])
async def test_killed_amid_the_directory_the_same_command_leads_the_rest_there(
    past: Past, monkeypatch: pytest.MonkeyPatch, before: str
) -> None:
    """The merchant is not led there before its keys and its people are."""
    await both_come_back(past)

    async def dies(*_: object, **__: object) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(ending, before, dies)
        with pytest.raises(Killed):
            await remove_copy(past.going, home_came_back=True)
    await remove_copy(past.going, home_came_back=True)
    assert (await is_gone(past), await past.led_to()) == (True, THERE)
    assert await key_led_to(past, past.play.there) == [THERE, THERE]
    for email in ("first@shop.example", "new@shop.example"):
        cells = await cells_of_person(past.home.database, past.home.vault, email)
        assert THERE in [one.number for one in cells], email


async def test_killed_once_it_was_given_up_the_move_ends_it_too(past: Past) -> None:
    await both_come_back(past)
    with pytest.raises(Killed):
        await remove_copy(past.going, home_came_back=True, reached=killing(Stage.given_up))
    await move_merchant(past.going)
    assert (await is_gone(past), await past.open_in(), await past.led_to()) == (True, [THERE], THERE)


async def test_where_home_alone_came_back_a_check_mends_it(past: Past, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of cells that have no subscriptions here."""
    await past.until(None)
    await enter_own(past.home.database, past.play.there.database, past.play.there.vault, THERE, now=utc_now())
    copy = await past.copy("home")
    await move_merchant(replace(back(past.play), home=past.home.database))
    past.put_back("home", copy)
    assert (await past.led_to(), await checked(past)) == (THERE, [])

    async def is_not(*_: object) -> bool:
        return False

    monkeypatch.setattr(checking, "_is_broken", is_not)
    others = {HERE: past.play.here.database, THERE: past.play.there.database}
    later = utc_now() + timedelta(hours=1)
    await mend_cells(past.home.database, others, past.home.vault, home_address="", now=later)
    assert (await past.led_to(), await key_led_to(past, past.play.here)) == (HERE, [HERE])
