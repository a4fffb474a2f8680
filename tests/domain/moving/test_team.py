"""Whoever belongs to a merchant's team comes back with what they have become elsewhere."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from tests.breaking import forget, say
from tests.databases import until_waiting
from tests.domain.moving.play import HERE, Cell, Killed, Play, back, enlist, going, killing
from tests.set_back import member

from paydesk.adapters.vault import Sealed
from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict
from paydesk.domain.accounts import second_factor
from paydesk.domain.accounts.access_needs import Client, Gate
from paydesk.domain.accounts.passwords import Passwords
from paydesk.domain.accounts.sessions import begin_session, find_session, look_at
from paydesk.domain.accounts.tokens import Purpose, add_token
from paydesk.domain.cells.directory import enter
from paydesk.domain.cells.entering import merchant_to_enter
from paydesk.domain.merchants.merchant import create_merchant
from paydesk.domain.moving.cancelling import cancel_move
from paydesk.domain.moving.copying import queries
from paydesk.domain.moving.moving import move_merchant
from paydesk.domain.moving.steps import Step


async def person(cell: Cell, made: int) -> Any:
    return await cell.database.fetchrow("select * from person where id = $1", made)


async def team(cell: Cell, merchant_id: int) -> list[tuple[int, str, str]]:
    """Who belongs to the merchant, with address and password."""
    rows = await cell.database.fetch(
        "select p.id, p.email, p.password_hash from membership m join person p on p.id = m.person_id"
        " where m.merchant_id = $1 order by p.id",
        merchant_id,
    )
    return [(row["id"], row["email"], row["password_hash"]) for row in rows]


async def log_in(cell: Cell, person_id: int) -> None:
    """A person is logged in, and looks at no shop."""
    gate = Gate(cell.database, cell.vault, Passwords())
    await begin_session(cell.database, gate, person_id, Client("192.0.2.1"), halfway=False, now=utc_now())


async def asks_for_another_address(cell: Cell, person_id: int, email: str) -> None:
    """A link has gone to an address that a person would rather have."""
    gate = Gate(cell.database, cell.vault, Passwords())
    await add_token(cell.database, gate, person_id, Purpose.email, email=email, now=utc_now())


async def test_people_come_back_with_what_they_changed_and_no_old_session_opens_anything(joined: Play) -> None:
    made = await enlist(joined.here, joined.merchant.id, "ada@team.example")
    await move_merchant(going(joined))
    await log_in(joined.here, made)
    sealed = joined.there.vault.seal(b"newer", purpose=second_factor.PURPOSE, merchant_id=0, row_id=made)
    changed = {"password_hash": "newer", "totp_sealed": sealed.blob, "vault_key_id": sealed.key_id}
    await say(joined.there.database, "person", {"id": made}, email="Ada@new.example", **changed)
    await move_merchant(back(joined))
    now = await person(joined.here, made)
    assert (now["email"], now["password_hash"]) == ("Ada@new.example", "newer")
    opened = Sealed(now["vault_key_id"], now["totp_sealed"])
    secret = joined.here.vault.open(opened, purpose=second_factor.PURPOSE, merchant_id=0, row_id=made)
    assert secret == b"newer"
    assert await joined.here.database.fetchval("select count(*) from account_session") == 0


async def test_who_has_another_shop_here_goes_on_with_the_account_that_they_use(joined: Play) -> None:
    made = await enlist(joined.here, joined.merchant.id, "ada@team.example")
    await member(joined.here.database, joined.beside.merchant_id, made)
    await move_merchant(going(joined))
    await log_in(joined.here, made)
    await say(joined.there.database, "person", {"id": made}, password_hash="newer")
    await move_merchant(back(joined))
    assert (await person(joined.here, made))["password_hash"] == "hash"
    assert await joined.here.database.fetchval("select count(*) from account_session") == 1


async def test_who_looks_at_the_shop_when_it_goes_looks_at_another_one_then(joined: Play) -> None:
    here = joined.here
    made = await enlist(here, joined.merchant.id, "ada@team.example")
    await member(here.database, joined.beside.merchant_id, made)
    gate = Gate(here.database, here.vault, Passwords())
    client = Client("192.0.2.1")
    token = await begin_session(here.database, gate, made, client, halfway=False, now=utc_now())
    await look_at(gate, await find_session(gate, token, client, now=utc_now()), joined.merchant.id, live=True)
    await move_merchant(going(joined))
    session = await find_session(gate, token, client, now=utc_now())
    assert (session.merchant_id, session.live) == (joined.beside.merchant_id, False)


@pytest.mark.parametrize("step", [Step.followed, Step.completed])
async def test_who_does_not_come_back_after_all_leaves_the_accounts_that_people_had(joined: Play, step: Step) -> None:
    made = await enlist(joined.here, joined.merchant.id, "ada@team.example")
    await move_merchant(going(joined))
    new = await enlist(joined.there, joined.merchant.id, "ben@team.example")
    with pytest.raises(Killed):
        await move_merchant(back(joined), passed=killing(step))
    assert bool(await person(joined.here, new)) is (step is Step.completed)
    await cancel_move(back(joined))
    assert (await person(joined.here, made))["email"] == "ada@team.example"
    assert await person(joined.here, new) is None


async def test_an_address_that_somebody_else_has_taken_over_leads_to_who_has_it_now(joined: Play) -> None:
    """In a chain, and in a circle: no password of who had it before opens anything."""
    here, there, shop = joined.here, joined.there, joined.merchant.id
    ann, ben, cleo, dan = [await enlist(here, shop, f"{name}@team.example") for name in ("ann", "ben", "cleo", "dan")]
    await move_merchant(going(joined))
    for made, email in ((ben, "b@new.example"), (ann, "ben@team.example"), (dan, "parked@team.example")):
        await say(there.database, "person", {"id": made}, email=email, password_hash=f"of {made}")
    for made, email in ((cleo, "dan@team.example"), (dan, "cleo@team.example")):
        await say(there.database, "person", {"id": made}, email=email, password_hash=f"of {made}")
    await move_merchant(back(joined))
    assert await team(here, shop) == [
        (ann, "ben@team.example", f"of {ann}"),
        (ben, "b@new.example", f"of {ben}"),
        (cleo, "dan@team.example", f"of {cleo}"),
        (dan, "cleo@team.example", f"of {dan}"),
    ]


async def test_who_has_left_the_team_does_not_come_in_by_the_address_that_they_had(joined: Play) -> None:
    here, there, shop = joined.here, joined.there, joined.merchant.id
    gone, stays = [await enlist(here, shop, email) for email in ("owner@team.example", "eve@team.example")]
    await move_merchant(going(joined))
    await say(there.database, "person", {"id": gone}, email="gone@new.example")
    await forget(there.database, shop, "membership", person_id=gone)
    await say(there.database, "person", {"id": stays}, email="owner@team.example", password_hash="newer")
    await move_merchant(back(joined))
    assert await team(here, shop) == [(stays, "owner@team.example", "newer")]
    assert (await person(here, gone))["email"] == "gone@new.example"


@pytest.mark.parametrize("has_come", [False, True])
async def test_who_opened_an_account_by_a_members_address_and_never_showed_it_gets_into_no_team(
    joined: Play, has_come: bool
) -> None:
    """By themselves in that cell, or with a shop that has moved there."""
    here, there, email = joined.here, joined.there, "ben@team.example"
    opened_at = here if has_come else there
    bait = await create_merchant(opened_at.database, opened_at.vault, name="Bait", email=email, now=utc_now())
    stranger = await enlist(opened_at, bait.id, email)
    if has_come:
        await enter(here.database, [merchant_to_enter(bait.id)], HERE, now=utc_now())
        await move_merchant(replace(going(joined), merchant_id=bait.id))
    await say(there.database, "person", {"id": stranger}, password_hash="a stranger's")
    await log_in(there, stranger)
    await asks_for_another_address(there, stranger, "stranger@new.example")
    ben = stranger if has_come else await enlist(here, 0, email)
    await member(here.database, joined.merchant.id, ben)
    await say(here.database, "person", {"id": ben}, email_confirmed_at=utc_now(), recovery_codes=[b"code"])
    await move_merchant(going(joined))
    assert await team(there, joined.merchant.id) == [(stranger, email, "hash")]
    now = await person(there, stranger)
    assert now["email_confirmed_at"] is not None
    opened = Sealed(now["vault_key_id"], now["totp_sealed"])
    assert there.vault.open(opened, purpose=second_factor.PURPOSE, merchant_id=0, row_id=stranger) == b"totp"
    assert now["recovery_codes"] == ([b"code"] if has_come else []), "they hold for one account"
    for left in ("account_session", "person_token"):
        assert await there.database.fetchval(f"select count(*) from {left} where person_id = $1", stranger) == 0


async def test_of_two_who_never_showed_one_address_the_other_gets_into_no_team(joined: Play) -> None:
    """Nor into the other's shop: where the directory has lost the line that keeps one out."""
    here, there, email = joined.here, joined.there, "ben@team.example"
    ben = await enlist(here, joined.merchant.id, email)
    stranger = await enlist(there, 0, email)
    bait = await create_merchant(there.database, there.vault, name="Bait", email=email, now=utc_now())
    await member(there.database, bait.id, stranger)
    await say(there.database, "person", {"id": stranger}, password_hash="a stranger's")
    with pytest.raises(Conflict, match=r"ben@team\.example has an account in each cell, and nobody has shown"):
        await move_merchant(going(joined))
    assert (await joined.is_open(here), await joined.is_open(there)) == (True, False)
    await forget(there.database, bait.id, "membership", person_id=stranger)
    await log_in(there, stranger)
    await move_merchant(going(joined))
    assert await team(there, joined.merchant.id) == [(stranger, email, "hash")], "the member's password"
    assert await there.database.fetchval("select count(*) from account_session where person_id = $1", stranger) == 0
    assert ben != stranger


async def test_who_opens_a_shop_meanwhile_gets_into_no_team(joined: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    """By an address that nobody has shown to be theirs, just before their account is taken over."""
    here, there, email = joined.here, joined.there, "ben@team.example"
    await enlist(here, joined.merchant.id, email)
    stranger = await enlist(there, 0, email)
    bait = await create_merchant(there.database, there.vault, name="Bait", email=email, now=utc_now())
    take_over = queries.take_over_unproven

    async def late(connection: Any, **given: Any) -> Any:
        await member(there.database, bait.id, stranger)
        return await take_over(connection, **given)

    monkeypatch.setattr(queries, "take_over_unproven", late)
    with pytest.raises(Conflict, match=r"nobody has shown in either cell that the address ben@team\.example"):
        await move_merchant(going(joined))
    assert await team(there, joined.merchant.id) == []
    assert (await joined.is_open(here), await joined.is_open(there)) == (True, False)


async def test_who_takes_another_address_meanwhile_gets_into_no_team(joined: Play) -> None:
    """By a link that they follow while the team is brought."""
    here, there, email = joined.here, joined.there, "ben@team.example"
    stranger = await enlist(there, 0, email)
    ben = await enlist(here, joined.merchant.id, email)
    await say(here.database, "person", {"id": ben}, email_confirmed_at=utc_now())
    async with there.database.acquire() as connection, connection.transaction():
        await say(connection, "person", {"id": stranger}, email="stranger@new.example", email_confirmed_at=utc_now())
        moving = asyncio.create_task(move_merchant(going(joined)))
        await until_waiting(there.database, moving)
    await moving
    assert await team(there, joined.merchant.id) == [(ben, email, "hash")]


async def test_who_has_shown_the_address_there_keeps_their_account(joined: Play) -> None:
    here, there, email = joined.here, joined.there, "ben@team.example"
    ben = await enlist(here, joined.merchant.id, email)
    other = await enlist(there, 0, email)
    for cell, made in ((here, ben), (there, other)):
        await say(cell.database, "person", {"id": made}, email_confirmed_at=utc_now(), password_hash=f"of {made}")
    await log_in(there, other)
    await move_merchant(going(joined))
    assert await team(there, joined.merchant.id) == [(other, email, f"of {other}")]
    assert await there.database.fetchval("select count(*) from account_session") == 1


async def test_an_address_of_somebody_who_works_there_is_not_taken_from_them(joined: Play) -> None:
    here, there, shop = joined.here, joined.there, joined.merchant.id
    works, comes = [await enlist(here, shop, email) for email in ("owner@team.example", "eve@team.example")]
    await member(here.database, joined.beside.merchant_id, works)
    await move_merchant(going(joined))
    await say(there.database, "person", {"id": works}, email="works@new.example")
    await say(there.database, "person", {"id": comes}, email="owner@team.example")
    with pytest.raises(Conflict, match=r"owner@team\.example as the address of somebody else"):
        await move_merchant(back(joined))
    assert (await joined.is_open(here), await joined.is_open(there)) == (False, True)
    await say(here.database, "person", {"id": works}, email="works@new.example")
    await move_merchant(back(joined))
    assert [(one, email) for one, email, _ in await team(here, shop)] == [
        (works, "works@new.example"),
        (comes, "owner@team.example"),
    ]
