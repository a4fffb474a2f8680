"""What of a merchant who is in both cells only one of them knows: what each has booked by itself of
the same thing is nothing that the other does not know.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any, TypeAlias

import pytest
from tests import shopfront
from tests.breaking import say
from tests.domain.moving.copies import comes_back, here, is_gone, renew, rows, subscribed, there
from tests.domain.moving.owning import THEIRS, Owning
from tests.domain.moving.play import HERE, THERE, enlist
from tests.domain.moving.putting_back import Past, with_a_past
from tests.set_back import times

from paydesk.adapters.acquirers.disputes import DisputeStatus
from paydesk.adapters.acquirers.simulator.own_pages import Way
from paydesk.core.clock import utc_now
from paydesk.core.errors import Unavailable
from paydesk.domain.accounts.team import queries as team
from paydesk.domain.acquirers.leases import Unleased
from paydesk.domain.business.key_pairs import public_keys
from paydesk.domain.chargebacks.booking import record_dispute
from paydesk.domain.ledger.settling import settle_due
from paydesk.domain.merchants.keys import rotate
from paydesk.domain.moving.copying import Pair, stream
from paydesk.domain.moving.moving import move_merchant
from paydesk.domain.moving.only_here import only_here
from paydesk.domain.moving.removing import OnlyHere, remove_copy
from paydesk.domain.moving.steps import Step
from paydesk.domain.payments.results import ConfirmWithBank, Paid
from paydesk.domain.subscriptions.ending import cancel
from paydesk.domain.test_clock.resetting import reset_test_side

Act: TypeAlias = Callable[[Past], Awaitable[object]]


async def _refund(past: Past) -> None:
    (payment,) = [row["id"] for row in await here(past).payments() if row["merchant_order_id"] == "A-2"]
    await here(past).give_back(payment, "0.50", "since")


async def _renew(past: Past) -> None:
    await renew(here(past))


async def _cancel(past: Past) -> None:
    """There it was renewed twice since, so that it has changed more often there."""
    for _ in range(2):
        await renew(there(past))
    subscription = await subscribed(here(past))
    await cancel(past.play.here.database, past.play.shop, subscription.id, by="api", now=utc_now())


async def _rotate(past: Past) -> None:
    cell, merchant_id = past.play.here, past.play.merchant.id
    newest = (await public_keys(cell.database, merchant_id))[0]
    async with cell.database.acquire() as connection, connection.transaction():
        await rotate(connection, cell.vault, merchant_id, replaces=newest.id, grace=timedelta(0), now=utc_now())


async def _join(past: Past) -> None:
    await enlist(past.play.here, past.play.merchant.id, "new@shop.example")


async def _offer(past: Past) -> None:
    await shopfront.offer_link(past.play.here.database, past.play.shop, title="Since")


async def _capture(past: Past) -> None:
    """Both had the same payment, whose outcome is known here alone."""
    payment = {"merchant_id": past.play.merchant.id, "merchant_order_id": "A-2"}
    (number,) = [row["id"] for row in await there(past).payments() if row["merchant_order_id"] == "A-2"]
    await say(past.play.there.database, "payment", payment, state="processing", paid_at=None, captured_at=None)
    attempt = {"merchant_id": past.play.merchant.id, "payment_id": number}
    await say(past.play.there.database, "payment_attempt", attempt, state="processing", finished_at=None)


async def _erase(past: Past) -> None:
    await times(past.play.here.database, "shopper", {"merchant_id": past.play.merchant.id}, erased_at=utc_now())


async def _decline(past: Past) -> None:
    """The bank has told one thing here, and another one there."""
    (number,) = [row["id"] for row in await here(past).payments() if row["merchant_order_id"] == "A-3"]
    attempt = {"merchant_id": past.play.merchant.id, "payment_id": number}
    await say(past.play.there.database, "payment_attempt", attempt, state="approved")


SINCE = [
    (_refund, r"payment: 1 .*movement: 1 .*ledger_posting: 1 "),
    (_renew, r"payment: 1 .*payment_attempt: 1 .*subscription: 1 "),
    (_cancel, r"subscription: 1 "),
    (_rotate, r"merchant_key: 2 "),
    (_join, r"membership: 1 \(new@shop.example\)"),
    (_offer, r"payment_link: 1 "),
    (_capture, r"payment: 1 .*payment_attempt: 1 "),
    (_erase, r"shopper: 1 "),
    (_decline, r"payment_attempt: 1 "),
]


@pytest.mark.parametrize(("act", "found"), SINCE, ids=[act.__name__ for act, _ in SINCE])
async def test_what_came_to_pass_here_alone_stops_it(past: Past, act: Act, found: str) -> None:
    await comes_back(past)
    await act(past)
    before = await rows(past)
    with pytest.raises(OnlyHere, match=found):
        await remove_copy(past.going)
    assert await rows(past) == before
    assert await past.open_in() == [HERE, THERE]


async def known_here(past: Past) -> list[str]:
    found = await only_here(past.play.here.side, past.play.there.side, past.play.merchant.id)
    return [str(one) for one in found]


async def test_what_fell_due_in_both_cells_is_known_in_both(past: Past) -> None:
    await here(past).confirm(await here(past).sell("due"))
    await comes_back(past)
    later = utc_now() + timedelta(days=30)
    await settle_due(past.play.here.database, real_now=later)
    assert [one for one in await known_here(past) if one.startswith("ledger_posting: ")]
    await settle_due(past.play.there.database, real_now=later)
    assert await known_here(past) == []


async def test_a_database_that_goes_away_meanwhile_is_said_and_nothing_is_deleted(
    past: Past, monkeypatch: pytest.MonkeyPatch
) -> None:
    await comes_back(past)
    before = await rows(past)

    async def late(pair: Pair, *given: Any) -> int:
        pid = await pair.here.fetchval("select pg_backend_pid()")
        await past.play.here.database.fetchval("select pg_terminate_backend($1)", pid)
        return await stream(pair, *given)

    monkeypatch.setattr("paydesk.domain.moving.only_here.stream", late)
    with pytest.raises(Unavailable, match="a database went away meanwhile; run the same command again"):
        await remove_copy(past.going)
    assert (await rows(past), await past.open_in()) == (before, [HERE, THERE])
    monkeypatch.undo()
    await remove_copy(past.going)


async def test_who_has_another_address_there_is_known_there(past: Past) -> None:
    """The only one of the team has changed it."""
    person = await enlist(past.play.here, past.play.merchant.id, "old@shop.example")
    await comes_back(past)
    await say(past.play.there.database, "person", {"id": person}, email="new@shop.example")
    assert await known_here(past) == []


async def test_a_dispute_that_both_cells_have_read_is_known_in_both(own: Owning, server_url: str) -> None:
    async with with_a_past(own.play, server_url) as past:
        sold = await own.till(past.play.here).sell("disputed")
        key = await own.key_of(past.play.here, sold)
        await comes_back(past)
        own.play = past.play
        await own.look()
        own.bank.open_dispute(key, "fraudulent")
        await own.read(past.play.here)
        (chargeback,) = [row["id"] for row in await own.till(past.play.here).rows("chargeback")]
        assert f"chargeback: 1 ({chargeback})" in await known_here(past)
        await own.read(past.play.there)
        (again,) = [row["id"] for row in await own.till(past.play.there).rows("chargeback")]
        assert again != chargeback
        assert await known_here(past) == []


async def _fails(own: Owning, past: Past, payment_id: int) -> None:
    """The bank could not give back what was refunded of a payment."""
    own.play = past.play
    await own.look()
    (refund,) = await own.till(past.play.here).rows("movement", payment_id)
    own.bank.fail_refund(refund["acquirer_reference"], "lost_or_stolen_card")


async def test_a_refund_that_failed_there_since_is_known_there(own: Owning, server_url: str) -> None:
    """Less of the payment is given back there than here."""
    async with with_a_past(own.play, server_url) as past:
        sold = await own.till(past.play.here).sell("refunded")
        await own.till(past.play.here).give_back(sold, "1.00")
        await comes_back(past)
        await _fails(own, past, sold)
        await own.read(past.play.there)
        assert (await own.till(past.play.there).payment(sold))["refunded"] == 0
        assert await known_here(past) == []
        await own.read(past.play.here)
        assert await known_here(past) == []


async def test_a_refund_that_failed_here_alone_is_not(own: Owning, server_url: str) -> None:
    async with with_a_past(own.play, server_url) as past:
        sold = await own.till(past.play.here).sell("refunded")
        await own.till(past.play.here).give_back(sold, "1.00")
        await comes_back(past)
        await _fails(own, past, sold)
        await own.read(past.play.here)
        found = await known_here(past)
        assert f"payment: 1 ({sold})" in found
        assert [one for one in found if one.startswith("movement: 1 ")]


async def test_a_dispute_that_was_won_there_since_is_known_there(own: Owning, server_url: str) -> None:
    """Less of the payment is charged back there than here."""
    async with with_a_past(own.play, server_url) as past:
        sold = await own.till(past.play.here).sell("disputed")
        dispute = own.bank.open_dispute(await own.key_of(past.play.here, sold), "fraudulent")
        await own.read(past.play.here)
        assert (await own.till(past.play.here).payment(sold))["charged_back"] > 0
        await comes_back(past)
        own.play = past.play
        await own.look()
        own.bank.close_dispute(dispute, won=True)
        await own.read(past.play.there)
        assert (await own.till(past.play.there).payment(sold))["charged_back"] == 0
        assert await known_here(past) == []


async def test_a_dispute_that_was_won_here_alone_is_not(own: Owning, server_url: str) -> None:
    async with with_a_past(own.play, server_url) as past:
        sold = await own.till(past.play.here).sell("disputed")
        reference = own.bank.open_dispute(await own.key_of(past.play.here, sold), "fraudulent")
        await own.read(past.play.here)
        await comes_back(past)
        own.play = past.play
        await own.look()
        own.bank.close_dispute(reference, won=True)
        await own.read(past.play.here)
        found = [one.partition(":")[0] for one in await known_here(past)]
        assert {"payment", "chargeback", "ledger_posting"} <= set(found)


async def test_a_lost_dispute_that_was_decided_otherwise_there_since_is_known_there(
    own: Owning, server_url: str
) -> None:
    async with with_a_past(own.play, server_url) as past:
        sold = await own.till(past.play.here).sell("disputed")
        reference = own.bank.open_dispute(await own.key_of(past.play.here, sold), "fraudulent")
        own.bank.close_dispute(reference, won=False)
        await own.read(past.play.here)
        await comes_back(past)
        own.play = past.play
        await own.look()
        told = await past.play.there.desk.acquirers[THEIRS].find_dispute(reference)
        assert told is not None
        won = replace(told, status=DisputeStatus.WON, at=told.at + timedelta(seconds=1))
        await record_dispute(Unleased(past.play.there.database).holding, THEIRS, won, now=utc_now())
        states = [(await own.till(cell).rows("chargeback"))[0]["state"] for cell in (past.play.here, past.play.there)]
        assert states == ["lost", "won"]
        assert await known_here(past) == []


@pytest.mark.parametrize(("state_here", "state_there"), [("abandoned", "voided"), ("voided", "abandoned")])
async def test_a_late_approval_is_known_where_it_was_undone(past: Past, state_here: str, state_there: str) -> None:
    """The bank approved what both cells had given up."""
    (number,) = [row["id"] for row in await here(past).payments() if row["merchant_order_id"] == "A-3"]
    await comes_back(past)
    for cell, state in ((past.play.here, state_here), (past.play.there, state_there)):
        attempt = {"merchant_id": past.play.merchant.id, "payment_id": number}
        await say(cell.database, "payment_attempt", attempt, state=state)
    found = [one.partition(":")[0] for one in await known_here(past)]
    assert found == (["payment_attempt"] if state_here == "voided" else [])


async def test_what_was_paid_there_since_holds_up_no_move(past: Past) -> None:
    """The move died once the merchant was open there, with payments that waited for their customers
    when it was closed.
    """
    declined = await here(past).order("declined")
    await here(past).pay(declined, shopfront.DECLINED)
    confirming = await here(past).order("confirming")
    assert isinstance(await shopfront.go_on(past.play.here.desk, confirming), ConfirmWithBank)
    page = (await here(past).attempts())[-1]["acquirer_reference"]
    await past.until(Step.opened)
    past.play.bank.pages.pay(page, Way.CARD, shopfront.GOOD)
    await there(past).settle_all(hours=2)
    assert isinstance(await there(past).pay(declined), Paid)
    paid = {row["merchant_order_id"] for row in await there(past).payments() if row["state"] == "captured"}
    assert {"declined", "confirming"} <= paid
    await move_merchant(past.going)
    assert (await is_gone(past), await past.open_in()) == (True, [THERE])


async def test_an_invitation_that_was_withdrawn_there_is_missed_by_nobody(past: Past) -> None:
    now, merchant_id = utc_now(), past.play.merchant.id
    about = {"merchant_id": merchant_id, "role": "developer", "invited_by": None, "expires_at": now + timedelta(days=3)}
    first, _ = [
        await team.invite(past.play.here.database, **about, email=email, token_hash=email.encode(), now=at)
        for email, at in (("first@shop.example", now), ("second@shop.example", now + timedelta(seconds=1)))
    ]
    await comes_back(past)
    await team.withdraw(past.play.there.database, merchant_id=merchant_id, id=first)
    assert await known_here(past) == []


async def test_a_test_side_that_was_emptied_there_is_missed_by_nobody(past: Past) -> None:
    await past.until(Step.opened)
    await reset_test_side(past.play.there.database, past.play.merchant.id)
    assert await here(past).payments()
    await move_merchant(past.going)
    assert (await is_gone(past), await past.open_in()) == (True, [THERE])


async def test_what_is_live_is_missed_also_where_the_test_side_was_emptied(past: Past) -> None:
    await comes_back(past)
    await reset_test_side(past.play.there.database, past.play.merchant.id)
    await _offer(past)
    await shopfront.offer_link(past.play.here.database, replace(past.play.shop, live=True), title="Live")
    (found,) = await known_here(past)
    assert found.startswith("payment_link: 1 ")
