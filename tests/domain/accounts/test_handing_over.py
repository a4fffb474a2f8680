"""A token by which another cell lets somebody in: who it is for, how often, and what it opens."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from tests import set_back
from tests.domain.accounts.someone import Someone, confirmed, new_client

from paydesk.adapters.vault import Vault, generate_key_setting, generate_secret
from paydesk.core.clock import utc_now
from paydesk.core.errors import Forbidden, Gone
from paydesk.database.pool import Database
from paydesk.domain.accounts.access_needs import SecondFactorNeeded
from paydesk.domain.accounts.handing_over import CLOCKS, GOOD_FOR, HandOver, arrive, hand_over, read_hand_over
from paydesk.domain.accounts.housekeeping import HAND_OVERS_KEPT, forget_past_entries
from paydesk.domain.accounts.sessions import LoggedIn, is_recent

HERE, THERE = 1, 2


@pytest.fixture
async def known(ada: Someone, database: Database) -> Someone:
    """Somebody whose address is confirmed, in both cells: one database plays both."""
    await set_back.address_confirmed(database, ada.email)
    ada.session = confirmed(ada.session)
    return ada


async def said_by(somebody: Someone, goal: str = "/account") -> str:
    return await hand_over(somebody.gate, somebody.session, source=HERE, target=THERE, goal=goal, now=utc_now())


def read(somebody: Someone, token: str) -> HandOver:
    return read_hand_over(somebody.gate.vault, token, here=THERE, now=utc_now())


async def test_of_many_who_bring_one_token_at_once_one_gets_in(known: Someone) -> None:
    said = read(known, await said_by(known))
    came = await asyncio.gather(
        *(arrive(known.gate, said, new_client(), now=utc_now()) for _ in range(8)), return_exceptions=True
    )
    assert sum(isinstance(one, LoggedIn) for one in came) == 1
    assert sum(isinstance(one, Gone) for one in came) == 7


async def test_what_was_used_is_kept_until_nobody_believes_it(known: Someone, database: Database) -> None:
    said = read(known, await said_by(known))
    await arrive(known.gate, said, new_client(), now=utc_now())
    unlogged = await database.fetchval("select relpersistence from pg_class where relname = 'hand_over_used'")
    assert unlogged == b"p", "a crash must not forget what was used"
    for later, kept in ((GOOD_FOR + CLOCKS, 1), (HAND_OVERS_KEPT + timedelta(minutes=5), 0)):
        await forget_past_entries(database, now=utc_now() + later)
        used = await database.fetchval("select count(*) from hand_over_used where nonce = $1", said.nonce)
        assert used == kept, later


async def test_how_old_a_token_may_be_hangs_on_both_clocks(known: Someone) -> None:
    token, now = await said_by(known), utc_now()
    second = timedelta(seconds=1)
    for later in (second - CLOCKS, timedelta(), GOOD_FOR + CLOCKS - second - second):
        read_hand_over(known.gate.vault, token, here=THERE, now=now + later)
    for later in (-CLOCKS - second - second, GOOD_FOR + CLOCKS):
        with pytest.raises(Gone):
            read_hand_over(known.gate.vault, token, here=THERE, now=now + later)


async def test_another_secret_makes_no_token(known: Someone) -> None:
    other = Vault.from_settings(generate_key_setting(), generate_secret())
    with pytest.raises(Gone):
        read_hand_over(other, await said_by(known), here=THERE, now=utc_now())


async def test_no_password_was_given_in_the_session_that_it_opens(known: Someone) -> None:
    opened = await arrive(known.gate, read(known, await said_by(known)), new_client(), now=utc_now())
    assert opened.session.person.id == known.id
    assert not is_recent(opened.session, now=utc_now())


async def test_who_still_owes_a_second_factor_is_not_handed_over(known: Someone) -> None:
    await known.enrol()
    fresh = await known.log_in()
    known.token, known.session = fresh.token, fresh.session
    with pytest.raises(SecondFactorNeeded):
        await said_by(known)


async def test_an_address_that_may_be_a_strangers_is_not_handed_over(ada: Someone) -> None:
    with pytest.raises(Forbidden, match="confirm your own e-mail address first"):
        await said_by(ada)


async def test_both_cells_write_it_down(known: Someone) -> None:
    await arrive(known.gate, read(known, await said_by(known)), new_client(), now=utc_now())
    assert (await known.done())[-2:] == ["handed_over", "logged_in"]


async def test_a_token_holds_whatever_page_it_leads_to(known: Someone) -> None:
    goal = "/operator/search?q=%E3%81%82+%22%5C"
    assert read(known, await said_by(known, goal)).goal == goal
