"""Accounts and rules of a merchant's own that would be others in the other cell don't go there, and
it is said why.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.breaking import say
from tests.domain.moving.owning import THEIRS, Owning, with_secrets
from tests.domain.moving.play import Cell, going

from paydesk.core.errors import Conflict
from paydesk.domain.acquirers.accounts import queries as account_queries
from paydesk.domain.acquirers.routing import list_rules
from paydesk.domain.cells.fencing import find_fence
from paydesk.domain.moving.moving import move_merchant


async def gives_up(cell: Cell, name: str) -> None:
    """An operator says in a cell that an account can't be read any more."""
    await account_queries.set_enabled(cell.database, name=name, enabled=False)
    await account_queries.account_gone(cell.database, name=name, because="the contract was ended")


async def test_a_name_that_another_account_has_there_is_refused(own: Owning) -> None:
    play = own.play
    await own.add(play.there, THEIRS, address="http://another.test")
    with pytest.raises(Conflict, match=r'another account called "theirs".*where it is free'):
        await move_merchant(going(play))
    assert await play.is_open(play.here)
    assert await find_fence(play.here.database, play.merchant.id) is None


async def test_an_account_that_is_asked_there_by_another_name_is_refused(own: Owning) -> None:
    play = own.play
    await own.add(play.there, "shared", address="http://theirs.test")
    with pytest.raises(Conflict, match=r'asks the account "theirs" as "shared" already'):
        await move_merchant(going(play))


async def test_a_rule_for_an_account_that_is_not_there_is_refused(own: Owning) -> None:
    play = own.play
    await own.add(play.here, "shared")
    await own.rule(play.here, "shared", play.merchant.id)
    with pytest.raises(Conflict, match=r"rules name accounts that the other cell does not have \(shared\)"):
        await move_merchant(going(play))
    await own.add(play.there, "shared")
    await move_merchant(going(play))
    assert [one.account for one in await list_rules(play.there.database)] == [THEIRS, "shared"]
    assert await own.of_account(play.here, "shared") != {}


async def test_a_rule_of_all_that_names_its_account_is_refused(own: Owning) -> None:
    rule = await own.rule(own.play.here, THEIRS, None)
    with pytest.raises(Conflict, match=rf"rules that are not its own name its account \({rule}\)"):
        await move_merchant(going(own.play))


async def test_live_accounts_go_only_where_live_payments_are_taken(own: Owning) -> None:
    play = own.play
    await with_secrets(play.here, play.merchant.id, "stripe-own")
    with pytest.raises(Conflict, match="PAYDESK_LIVE_ACQUIRER"):
        await move_merchant(replace(going(play), serves_live=False))


async def test_live_money_of_an_account_that_the_other_cell_has_given_up_stays(own: Owning) -> None:
    """Nobody there could give it back; once it is enabled there, or given up here as well, the
    merchant goes.
    """
    play = own.play
    for cell in (play.here, play.there):
        await with_secrets(cell, None, "shared")
        await account_queries.keep_own_id(cell.database, account="shared", own_id="acct_1")
    await say(play.here.database, "payment_attempt", {"merchant_id": play.merchant.id}, live=True, acquirer="shared")
    await gives_up(play.there, "shared")
    with pytest.raises(Conflict, match=r"accounts that the other cell has given up \(shared\).*acquirer enable"):
        await move_merchant(going(play))
    assert await play.is_open(play.here)
    assert await find_fence(play.here.database, play.merchant.id) is None
    await gives_up(play.here, "shared")
    await move_merchant(going(play))
    assert await play.is_open(play.there)
