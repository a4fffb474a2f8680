from __future__ import annotations

from datetime import timedelta

import pytest
from tests import breaking, set_back
from tests.domain.accounts.conftest import Join
from tests.domain.accounts.someone import Someone, new_client

from paydesk.core.clock import utc_now
from paydesk.core.errors import Forbidden, NotFound
from paydesk.database.pool import Database
from paydesk.domain.accounts.access_needs import Client, Gate, NotLoggedIn
from paydesk.domain.accounts.housekeeping import forget_past_entries
from paydesk.domain.accounts.roles import Permission, Role
from paydesk.domain.accounts.sessions import (
    IDLE,
    LIFETIME,
    end_other_sessions,
    end_session,
    find_session,
    form_token,
    form_token_fits,
    list_sessions,
    look_at,
    require,
    require_operator,
)
from paydesk.domain.accounts.signing_in import open_another_shop
from paydesk.domain.merchants.shop import Shop

SECOND = timedelta(seconds=1)


@pytest.mark.parametrize("token", ["", "nonsense", "a" * 43, "\x00", "ü"])
async def test_a_token_that_was_never_given_out_is_nobodys(gate: Gate, token: str) -> None:
    with pytest.raises(NotLoggedIn):
        await find_session(gate, token, new_client(), now=utc_now())


async def test_a_session_falls_asleep_when_nobody_uses_it(ada: Someone) -> None:
    began = ada.session.last_seen_at
    await ada.again(now=began + IDLE - SECOND)
    await ada.again(now=began + 2 * IDLE - 2 * SECOND)
    with pytest.raises(NotLoggedIn):
        await ada.again(now=began + 3 * IDLE)


async def test_an_operators_session_ends_after_fifteen_idle_minutes(ada: Someone, database: Database) -> None:
    began, minutes = ada.session.last_seen_at, timedelta(minutes=15)
    await breaking.say(database, "person", {"id": ada.id}, operator=True)
    await ada.again(now=began + minutes - SECOND)
    await ada.again(now=began + 2 * minutes - 2 * SECOND)
    with pytest.raises(NotLoggedIn):
        await ada.again(now=began + 3 * minutes)


async def test_a_page_that_asks_for_news_by_itself_keeps_no_session_awake(ada: Someone, gate: Gate) -> None:
    began = ada.session.last_seen_at
    for hours in range(1, 12):
        await find_session(gate, ada.token, ada.client, now=began + timedelta(hours=hours), by_itself=True)
    with pytest.raises(NotLoggedIn):
        await find_session(gate, ada.token, ada.client, now=began + IDLE + SECOND, by_itself=True)


async def test_a_session_ends_after_two_weeks_however_busy(ada: Someone) -> None:
    began, at = ada.session.created_at, ada.session.created_at
    while at + IDLE / 2 < began + LIFETIME:
        at += IDLE / 2
        await ada.again(now=at)
    with pytest.raises(NotLoggedIn):
        await ada.again(now=began + LIFETIME)


async def test_a_session_is_written_down_as_used_at_most_once_a_minute(ada: Someone, database: Database) -> None:
    began = ada.session.last_seen_at

    async def seen() -> timedelta:
        at = await database.fetchval("select last_seen_at from account_session where id = $1", ada.session.id)
        return timedelta(seconds=(at - began).total_seconds())

    await ada.again(now=began + timedelta(seconds=59))
    assert await seen() == timedelta()
    await ada.again(now=began + timedelta(seconds=61))
    assert await seen() == timedelta(seconds=61)


async def test_a_person_sees_their_sessions_and_ends_one_or_all_others(ada: Someone, gate: Gate) -> None:
    now = utc_now()
    phone, tablet = [await ada.log_in(now=now + n * SECOND) for n in (1, 2)]
    now += 3 * SECOND
    listed = await list_sessions(gate, ada.session, now=now)
    assert [one.id for one in listed] == [tablet.session.id, phone.session.id, ada.session.id]
    assert [one.current for one in listed] == [False, False, True]
    assert {(one.client_address, one.user_agent) for one in listed} == {(ada.client.address, "Browser/1.0")}
    await end_session(gate, ada.session, phone.session.id, now=now)
    with pytest.raises(NotLoggedIn):
        await find_session(gate, phone.token, ada.client, now=now)
    assert await end_other_sessions(gate, ada.session, now=now) == 1
    with pytest.raises(NotLoggedIn):
        await find_session(gate, tablet.token, ada.client, now=now)
    await end_session(gate, await ada.again(now=now), ada.session.id, now=now)
    with pytest.raises(NotLoggedIn):
        await ada.again(now=now)
    assert sorted((await ada.done())[-3:]) == ["logged_out", "session_ended", "session_ended"]


async def test_nobody_ends_or_sees_anothers_session(ada: Someone, stranger: Someone, gate: Gate) -> None:
    with pytest.raises(NotFound):
        await end_session(gate, stranger.session, ada.session.id, now=utc_now())
    assert await end_other_sessions(gate, stranger.session, now=utc_now()) == 0
    assert [one.id for one in await list_sessions(gate, stranger.session, now=utc_now())] == [stranger.session.id]
    await ada.again()


async def test_what_a_browser_calls_itself_is_bounded(ada: Someone, gate: Gate) -> None:
    ada.client = Client(ada.client.address, "\x00" + "x" * 100_000)
    made = await ada.log_in()
    (listed,) = [one for one in await list_sessions(gate, ada.session, now=utc_now()) if one.id == made.session.id]
    assert len(listed.user_agent) == 300


async def test_a_session_looks_at_the_test_side_until_told_otherwise(ada: Someone, gate: Gate) -> None:
    assert require(ada.session, Permission.view) == Shop(ada.merchant_id, live=False)
    await look_at(gate, ada.session, ada.merchant_id, live=True)
    assert require(await ada.again(), Permission.view) == Shop(ada.merchant_id, live=True)
    second = await open_another_shop(gate, ada.session, shop_name="Second", now=utc_now())
    await look_at(gate, ada.session, second)
    session = await ada.again()
    assert (require(session, Permission.view), session.merchant_name) == (Shop(second, live=False), "Second")
    made = await ada.log_in(now=utc_now() + timedelta(minutes=2))
    assert (made.session.merchant_id, made.session.live) == (second, False)


async def test_another_merchant_cannot_be_looked_at(ada: Someone, stranger: Someone, gate: Gate) -> None:
    for merchant_id in (stranger.merchant_id, 2**52):
        with pytest.raises(NotFound):
            await look_at(gate, ada.session, merchant_id)
    assert require(await ada.again(), Permission.view).merchant_id == ada.merchant_id


async def test_a_session_that_points_at_anothers_shop_does_not_show_it(
    ada: Someone, stranger: Someone, database: Database
) -> None:
    await breaking.say(database, "account_session", {"id": ada.session.id}, merchant_id=stranger.merchant_id, live=True)
    session = await ada.again()
    assert (session.merchant_id, session.live) == (ada.merchant_id, False)


async def test_whoever_is_in_no_team_may_do_nothing(ada: Someone, database: Database) -> None:
    await database.execute("delete from membership where person_id = $1", ada.id)
    session = await ada.again()
    assert (session.merchant_id, session.role) == (None, None)
    with pytest.raises(NotFound, match="no merchant's team"):
        require(session, Permission.view)


async def test_what_the_role_forbids_is_refused_with_its_name(ada: Someone, joined: Join) -> None:
    bob = await joined(ada, Role.support)
    assert require(bob.session, Permission.refund) == Shop(ada.merchant_id, live=False)
    with pytest.raises(Forbidden, match=r"support.*manage_keys.*owner of Corner Shop"):
        require(bob.session, Permission.manage_keys)


async def test_the_console_does_not_exist_for_merchants(ada: Someone) -> None:
    with pytest.raises(NotFound):
        require_operator(ada.session)


async def test_a_form_belongs_to_its_session(ada: Someone, stranger: Someone, gate: Gate) -> None:
    token = form_token(gate, ada.token)
    assert form_token_fits(gate, ada.token, token)
    for wrong in ("", token[:-1], form_token(gate, stranger.token), "\ud800", "ü" * 64):
        assert not form_token_fits(gate, ada.token, wrong)


async def test_housekeeping_drops_what_is_over_and_nothing_else(
    ada: Someone, stranger: Someone, database: Database
) -> None:
    await set_back.times(database, "account_session", {"id": ada.session.id}, expires_at=utc_now())
    await forget_past_entries(database, now=utc_now())
    assert await database.fetchval("select count(*) from account_session where id = $1", ada.session.id) == 0
    await stranger.again()
