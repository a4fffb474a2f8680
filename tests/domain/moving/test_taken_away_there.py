"""What the other cell has taken away, or begun anew, since it and the copy were one is missed by
nobody, as far as that can be known; else it is said what it may be.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal

import pytest
from tests.breaking import forget
from tests.domain.moving.copies import comes_back, here, is_gone, subscribed
from tests.domain.moving.owning import THEIRS, Owning
from tests.domain.moving.play import Cell, enlist
from tests.domain.moving.putting_back import Past, with_a_past
from tests.domain.subscriptions.test_moving import DEARER

from paydesk.core.clock import utc_now
from paydesk.domain.accounts.audit import COMMAND_LINE, Action, record
from paydesk.domain.accounts.roles import Role
from paydesk.domain.accounts.team import add_member
from paydesk.domain.acquirers.accounts import queries as rules
from paydesk.domain.chargebacks.evidence_files import queries as files
from paydesk.domain.moving.only_here import only_here
from paydesk.domain.moving.removing import OnlyHere, remove_copy
from paydesk.domain.operations.giving_back import queries as giving_back
from paydesk.domain.subscriptions.moving import begin_move, carry_on, take_back
from paydesk.domain.subscriptions.packages import agree_package

LEFT = (
    r"membership: 1 \(left@shop.example\), who has joined here since, or has left the team there: the audit log there"
)


async def joins(past: Past, cell: Cell, email: str, *, is_told: bool = True, now: datetime | None = None) -> int:
    """Somebody joins the team, which the audit log tells at the same moment."""
    person_id, at = await enlist(cell, 0, email), now or utc_now()
    async with cell.database.acquire() as connection, connection.transaction():
        await add_member(connection, past.play.merchant.id, person_id, Role.owner, now=at)
        if is_told:
            await tells(past, cell, at)
    return person_id


async def tells(past: Past, cell: Cell, now: datetime) -> None:
    """The merchant's audit log tells something."""
    async with cell.database.acquire() as connection, connection.transaction():
        await record(connection, COMMAND_LINE, Action.member_joined, now=now, merchant_id=past.play.merchant.id)


async def leaves(past: Past, person_id: int) -> None:
    await forget(past.play.there.database, past.play.merchant.id, "membership", person_id=person_id)


async def known_here(past: Past) -> list[str]:
    found = await only_here(past.play.here.side, past.play.there.side, past.play.merchant.id)
    return [str(one) for one in found]


async def test_the_newest_of_the_team_who_has_left_there_is_missed_by_nobody(past: Past) -> None:
    left = await joins(past, past.play.here, "left@shop.example")
    await comes_back(past)
    await leaves(past, left)
    await remove_copy(past.going)
    assert await is_gone(past)


async def test_who_has_joined_here_alone_is_not_known_there(past: Past) -> None:
    await comes_back(past)
    await joins(past, past.play.here, "left@shop.example")
    await tells(past, past.play.there, utc_now() + timedelta(hours=1))
    with pytest.raises(OnlyHere, match=LEFT):
        await remove_copy(past.going)


@pytest.mark.parametrize(("after", "is_known"), [(timedelta(minutes=2), True), (timedelta(seconds=30), False)])
async def test_what_both_tell_of_later_says_who_was_known_to_both(past: Past, after: timedelta, is_known: bool) -> None:
    """Not of the same minute: who joined may have been seen only after that by others."""
    joined = utc_now() - timedelta(hours=1)
    left = await joins(past, past.play.here, "left@shop.example", is_told=False, now=joined)
    await tells(past, past.play.here, joined + after)
    await comes_back(past)
    await leaves(past, left)
    if is_known:
        assert await known_here(past) == []
    else:
        with pytest.raises(OnlyHere, match=LEFT):
            await remove_copy(past.going)


@pytest.mark.parametrize("is_told", [True, False])
async def test_a_rule_that_was_removed_there(past: Past, is_told: bool) -> None:
    """Something was told after it was added, before the copy was made, or nothing was."""
    made = await rules.add_rule(
        past.play.here.database,
        account="simulator",
        for_merchant_id=past.play.merchant.id,
        currency="",
        country="",
        brand="",
        least=None,
        most=None,
        share=100,
        now=utc_now() - timedelta(hours=1),
    )
    if is_told:
        await tells(past, past.play.here, utc_now())
    await comes_back(past)
    await rules.remove_rule(past.play.there.database, id=made)
    may_be = f"acquirer_rule: 1 ({made}), added here since, or removed there: paydesk acquirer route --preview"
    assert [one.startswith(may_be) for one in await known_here(past)] == ([] if is_told else [True])


async def _file(past: Past, cell: Cell, chargeback_id: int, now: datetime) -> int:
    of = {"merchant_id": past.play.merchant.id, "live": False, "chargeback_id": chargeback_id, "kind": "receipt"}
    content = {"name": "a.png", "media_type": "image/png", "size": 1, "pages": 1, "content": b"1", "upload_key": "k"}
    return int(await files.add_file(cell.database, **of, **content, now=now))


@pytest.mark.parametrize("is_told", [True, False])
async def test_a_file_of_an_answer_that_was_replaced_there(own: Owning, server_url: str, is_told: bool) -> None:
    async with with_a_past(own.play, server_url) as past:
        sold = await own.till(past.play.here).sell("disputed")
        own.bank.open_dispute(await own.key_of(past.play.here, sold), "fraudulent")
        await own.read(past.play.here)
        (chargeback,) = [row["id"] for row in await own.till(past.play.here).rows("chargeback")]
        first = await _file(past, past.play.here, chargeback, utc_now() - timedelta(hours=1))
        if is_told:
            await tells(past, past.play.here, utc_now())
        await comes_back(past)
        of = {"merchant_id": past.play.merchant.id, "live": False, "chargeback_id": chargeback}
        await files.remove_file(past.play.there.database, **of, id=first)
        await _file(past, past.play.there, chargeback, utc_now())
        found = await known_here(past)
        may_be = f"evidence_file: 1 ({first}), added here since, or replaced or removed there"
        assert [one.startswith(may_be) for one in found] == ([] if is_told else [True])


async def _move_plans(past: Past) -> int:
    """What runs goes to a dearer version."""
    till, now = here(past), utc_now()
    to = await agree_package(till.database, till.shop, DEARER, now=now)
    begun = await subscribed(till)
    named = (till.database, till.shop, begun.package.version_id, to)
    return (await begin_move(*named, shop_now=now, now=now)).id


async def _carried_on(cell: Cell, past: Past, move_id: int) -> None:
    for _ in range(5):
        await carry_on(cell.database, real_now=utc_now(), merchant_id=past.play.merchant.id, move_id=move_id)


async def test_a_move_of_packages_that_was_taken_back_there_is_known_there(past: Past) -> None:
    move_id = await _move_plans(past)
    await _carried_on(past.play.here, past, move_id)
    await comes_back(past)
    await take_back(past.play.there.database, past.play.shop, move_id)
    assert await known_here(past) == []
    await _carried_on(past.play.there, past, move_id)
    assert await known_here(past) == []


async def test_one_that_was_taken_back_here_alone_is_not(past: Past) -> None:
    move_id = await _move_plans(past)
    await _carried_on(past.play.here, past, move_id)
    await comes_back(past)
    await take_back(past.play.here.database, past.play.shop, move_id)
    assert f"package_move: 1 ({move_id})" in await known_here(past)


async def _given_back(cell: Cell, state: str, *, key: str = "stray") -> None:
    """A purchase is asked to be given back, and that ends so (empty: not yet)."""
    about = {"reference": "r", "merchant_order_id": "A-9", "amount": Decimal(5), "currency": "USD"}
    of = {"acquirer": THEIRS, "idempotency_key": key}
    await giving_back.begin(cell.database, **of, **about, requested_by="setting", now=utc_now())
    if state:
        await giving_back.finish(cell.database, **of, state=state, refusal="", now=utc_now())


@pytest.mark.parametrize("again", ["", "done", "refused"])
async def test_a_purchase_that_was_refused_here_and_asked_for_again_there(
    own: Owning, server_url: str, again: str
) -> None:
    async with with_a_past(own.play, server_url) as past:
        await _given_back(past.play.here, "refused")
        await comes_back(past)
        await _given_back(past.play.there, again)
        assert await known_here(past) == []


async def test_a_purchase_that_was_given_back_here_alone_stops_it(own: Owning, server_url: str) -> None:
    async with with_a_past(own.play, server_url) as past:
        await _given_back(past.play.here, "refused")
        await comes_back(past)
        await _given_back(past.play.there, "refused")
        await _given_back(past.play.here, "done")
        assert await known_here(past) == ["purchase_given_back: 1 (stray)"]
