"""Whoever belongs to a merchant's team comes back with what they have become elsewhere."""

from __future__ import annotations

from typing import Any

import pytest
from tests.breaking import say
from tests.domain.moving.play import Cell, Killed, Play, back, enlist, going, killing
from tests.set_back import member, session

from paydesk.adapters.vault import Sealed
from paydesk.domain.accounts import second_factor
from paydesk.domain.moving.moving import Step, cancel_move, move_merchant


async def person(cell: Cell, made: int) -> Any:
    return await cell.database.fetchrow("select * from person where id = $1", made)


async def test_people_come_back_with_what_they_changed_and_no_old_session_opens_anything(joined: Play) -> None:
    made = await enlist(joined.here, joined.merchant.id, "ada@team.example")
    await move_merchant(going(joined))
    await session(joined.here.database, made)
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
    await session(joined.here.database, made)
    await say(joined.there.database, "person", {"id": made}, password_hash="newer")
    await move_merchant(back(joined))
    assert (await person(joined.here, made))["password_hash"] == "hash"
    assert await joined.here.database.fetchval("select count(*) from account_session") == 1


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
