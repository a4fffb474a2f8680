"""A dispute at the bank: the money, the fee, the pingback, the subscription;
each once, however often it is told.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import asyncpg
import pytest
from tests import breaking, set_back
from tests.banks import answering, ending_in
from tests.proving import check
from tests.sweeping import database, database_url

from paydesk.adapters.acquirers.disputes import Dispute, DisputePage
from paydesk.adapters.acquirers.interface import AcquirerRefused
from paydesk.adapters.acquirers.simulator import Bank
from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict, Malformed, NotFound
from paydesk.core.paging import Page
from paydesk.database.pool import Database
from paydesk.domain.chargebacks import giving_evidence
from paydesk.domain.chargebacks.for_api import find_chargeback, list_chargebacks, purchase_of
from paydesk.domain.chargebacks.giving_evidence import give_evidence
from paydesk.domain.chargebacks.reading_acquirers import read_disputes
from paydesk.domain.chargebacks.states import ChargebackState
from paydesk.domain.ledger.balances import balances
from paydesk.domain.ledger.settling import settle_due
from paydesk.domain.merchants.merchant import change_merchant
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.refunding import refund

__all__ = ["database", "database_url"]

CHARGED_BACK = "4000000000000259"

Buy = Callable[..., Awaitable[int]]


@pytest.fixture
def told(database: Database, shop: Shop) -> Callable[[], Awaitable[list[dict[str, Any]]]]:
    """What the merchant is told besides the payment, oldest first."""

    async def read() -> list[dict[str, Any]]:
        rows = await database.fetch(
            "select payload from pingback where merchant_id = $1 and event <> 'payment' order by id", shop.merchant_id
        )
        return [json.loads(row["payload"], parse_float=Decimal) for row in rows]

    return read


@pytest.fixture(autouse=True)
async def _from_the_start(database: Database) -> None:
    """Each test has a bank of its own, whose disputes nobody has read."""
    await set_back.banks_tell_again(database)


Told = Callable[[], Awaitable[list[dict[str, Any]]]]


async def held(database: Database, shop: Shop) -> tuple[Decimal, Decimal, Decimal]:
    """Pending, available and reserve in USD."""
    (balance,) = await balances(database, shop)
    return balance.pending, balance.available, balance.reserve


async def state_of(database: Database, shop: Shop, payment_id: int) -> str:
    row = await database.fetchrow(
        "select state from payment where merchant_id = $1 and id = $2", shop.merchant_id, payment_id
    )
    assert row is not None
    return str(row["state"])


async def test_a_chargeback_takes_the_money_and_a_fee_and_is_told(
    desk: Desk, shop: Shop, database: Database, buy: Buy, told: Told
) -> None:
    payment_id = await buy(CHARGED_BACK)
    await read_disputes(desk, now=utc_now())
    (found,) = await list_chargebacks(database, shop, None, Page(10))
    assert (found.payment_id, found.state, found.amount, found.fee) == (
        payment_id,
        ChargebackState.OPEN,
        Decimal(10),
        Decimal(15),
    )
    assert await state_of(database, shop, payment_id) == "charged_back"
    (envelope,) = await told()
    order = envelope["payment_order"]
    assert envelope["event"] == "chargeback"
    assert order["status"] == "reversal_chargeback"
    assert (order["reference_id"], order["chargeback_amount"], order["reason"]) == (found.id, 10, found.reason)
    # 10.00 = 9.00 net (of which 0.40 are fees that stay with Paydesk) + 0.50 reserve; and 15.00 for
    # the chargeback.
    assert await held(database, shop) == (Decimal(0), Decimal("-15.50") + Decimal("-0.10"), Decimal(0))


async def test_reading_again_changes_nothing(desk: Desk, shop: Shop, database: Database, buy: Buy, told: Told) -> None:
    await buy(CHARGED_BACK)
    await read_disputes(desk, now=utc_now())
    before = await held(database, shop)
    await breaking.say(database, "dispute_reading", {}, place="")
    assert await read_disputes(desk, now=utc_now()) == 0
    assert await held(database, shop) == before
    assert len(await told()) == 1


async def test_workers_that_read_at_once_record_it_once(
    desk: Desk, shop: Shop, database: Database, buy: Buy, told: Told
) -> None:
    await buy(CHARGED_BACK)
    await asyncio.gather(*(read_disputes(desk, now=utc_now()) for _ in range(6)))
    assert len(await told()) == 1
    assert len(await list_chargebacks(database, shop, None, Page(10))) == 1


async def test_a_chargeback_in_yen_costs_yen(desk: Desk, shop: Shop, database: Database, buy: Buy) -> None:
    await buy(CHARGED_BACK, amount="1000", currency="JPY")
    await read_disputes(desk, now=utc_now())
    (found,) = await list_chargebacks(database, shop, None, Page(10))
    assert (found.currency, found.amount, found.fee) == ("JPY", Decimal(1000), Decimal(1500))


async def test_a_chargeback_that_is_won_brings_the_money_back_but_not_the_fee(
    desk: Desk, shop: Shop, database: Database, bank: Bank, buy: Buy, told: Told
) -> None:
    payment_id = await buy()
    before = await held(database, shop)
    reference = bank.open_dispute((await purchase_of(database, shop, payment_id)).key, "fraudulent")
    await read_disputes(desk, now=utc_now())
    bank.close_dispute(reference, won=True)
    await read_disputes(desk, now=utc_now())
    assert await state_of(database, shop, payment_id) == "captured"
    after = await held(database, shop)
    assert sum(after) == sum(before) - 15
    events = [(envelope["event"], envelope["payment_order"]["status"]) for envelope in await told()]
    assert events == [("chargeback", "reversal_chargeback"), ("chargeback_reversed", "successful")]


@pytest.mark.parametrize(
    ("given_back", "status"), [(Decimal(10), "reversal_refunded"), (Decimal(4), "reversal_refunded_partially")]
)
async def test_a_chargeback_that_was_won_and_then_refunded_before_anybody_read_of_it_is_told_and_costs_its_fee(
    desk: Desk, shop: Shop, database: Database, bank: Bank, buy: Buy, told: Told, given_back: Decimal, status: str
) -> None:
    payment_id = await buy()
    reference = bank.open_dispute((await purchase_of(database, shop, payment_id)).key, "fraudulent")
    bank.close_dispute(reference, won=True)
    await refund(desk, shop, payment_id, given_back, requested_by="api", now=utc_now())
    before, state = await held(database, shop), await state_of(database, shop, payment_id)
    assert await read_disputes(desk, now=utc_now()) == 2, "that it was opened, and that it was won"
    (found,) = await list_chargebacks(database, shop, None, Page(10))
    assert (found.state, found.amount, found.fee) == (ChargebackState.WON, Decimal(10), Decimal(15))
    assert await state_of(database, shop, payment_id) == state
    assert sum(await held(database, shop)) == sum(before) - 15
    events = [(one["event"], one["payment_order"]["status"]) for one in (await told())[1:]]
    assert events == [("chargeback", "reversal_chargeback"), ("chargeback_reversed", status)]
    wrong = [one for one in await check(database, now=utc_now(), merchant_id=shop.merchant_id) if one.found]
    assert wrong == []
    await breaking.say(database, "dispute_reading", {}, place="")
    assert await read_disputes(desk, now=utc_now()) == 0, "it is written down once"


async def test_of_such_a_chargeback_a_muted_account_is_told_nothing(
    desk: Desk, shop: Shop, database: Database, bank: Bank, buy: Buy, told: Told
) -> None:
    payment_id = await buy()
    muted = ["chargeback", "chargeback_reversed"]
    await change_merchant(database, shop.merchant_id, muted=muted)
    bank.close_dispute(bank.open_dispute((await purchase_of(database, shop, payment_id)).key, "fraudulent"), won=True)
    await refund(desk, shop, payment_id, None, requested_by="api", now=utc_now())
    assert await read_disputes(desk, now=utc_now()) == 2, "that it was opened, and that it was won"
    assert [one["event"] for one in await told()] == ["refund"]
    wrong = [one for one in await check(database, now=utc_now(), merchant_id=shop.merchant_id) if one.found]
    assert wrong == []


async def test_a_chargeback_that_is_lost_is_final(
    desk: Desk, shop: Shop, database: Database, bank: Bank, buy: Buy, told: Told
) -> None:
    payment_id = await buy()
    reference = bank.open_dispute((await purchase_of(database, shop, payment_id)).key, "fraudulent")
    await read_disputes(desk, now=utc_now())
    bank.close_dispute(reference, won=False)
    await read_disputes(desk, now=utc_now())
    (found,) = await list_chargebacks(database, shop, ChargebackState.LOST, Page(10))
    assert found.closed_at is not None
    assert await state_of(database, shop, payment_id) == "charged_back"
    assert len(await told()) == 1
    with pytest.raises(Conflict):
        await give_evidence(desk, shop, found.id, "too late", now=utc_now())


async def test_a_dispute_first_heard_of_when_it_is_over_is_recorded_whole(
    desk: Desk, shop: Shop, database: Database, bank: Bank, buy: Buy, told: Told
) -> None:
    payment_id = await buy()
    bank.close_dispute(bank.open_dispute((await purchase_of(database, shop, payment_id)).key, "fraudulent"), won=True)
    await read_disputes(desk, now=utc_now())
    assert await state_of(database, shop, payment_id) == "captured"
    assert [envelope["event"] for envelope in await told()] == ["chargeback", "chargeback_reversed"]


async def test_a_chargeback_of_a_partly_refunded_payment_covers_what_is_left(
    desk: Desk, shop: Shop, database: Database, bank: Bank, buy: Buy, told: Told
) -> None:
    payment_id = await buy()
    await refund(desk, shop, payment_id, Decimal("4.00"), requested_by="api", now=utc_now())
    reference = bank.open_dispute((await purchase_of(database, shop, payment_id)).key, "fraudulent")
    await read_disputes(desk, now=utc_now())
    (found,) = await list_chargebacks(database, shop, None, Page(10))
    assert found.amount == Decimal("6.00")
    bank.close_dispute(reference, won=True)
    await read_disputes(desk, now=utc_now())
    assert await state_of(database, shop, payment_id) == "partially_refunded"
    assert (await told())[-1]["payment_order"]["status"] == "reversal_refunded_partially"


async def test_settled_money_is_taken_from_what_is_available(
    desk: Desk, shop: Shop, database: Database, bank: Bank, buy: Buy
) -> None:
    payment_id = await buy()
    await settle_due(database, real_now=utc_now(), merchant_id=shop.merchant_id, at=utc_now() + timedelta(days=8))
    pending, available, reserve = await held(database, shop)
    assert (pending, reserve) == (Decimal(0), Decimal("0.50"))
    bank.open_dispute((await purchase_of(database, shop, payment_id)).key, "fraudulent")
    await read_disputes(desk, now=utc_now())
    assert await held(database, shop) == (Decimal(0), available - Decimal("9.50") - 15, Decimal(0))


async def test_a_muted_event_is_not_told(desk: Desk, shop: Shop, database: Database, buy: Buy, told: Told) -> None:
    await change_merchant(database, shop.merchant_id, muted=["chargeback"])
    await buy(CHARGED_BACK)
    await read_disputes(desk, now=utc_now())
    assert await told() == []
    assert len(await list_chargebacks(database, shop, None, Page(10))) == 1


async def test_evidence_is_recorded_and_handed_to_the_bank(
    desk: Desk, shop: Shop, database: Database, buy: Buy
) -> None:
    await buy(CHARGED_BACK)
    await read_disputes(desk, now=utc_now())
    (found,) = await list_chargebacks(database, shop, None, Page(10))
    await give_evidence(desk, shop, found.id, "Delivered on 3 March", now=utc_now())
    shown = await find_chargeback(database, shop, found.id)
    assert (shown.evidence, shown.evidence_at is not None) == ("Delivered on 3 March", True)
    with pytest.raises(Malformed):
        await give_evidence(desk, shop, found.id, "  ", now=utc_now())


async def test_evidence_whose_recording_was_not_answered_is_recorded_and_handed_over(
    desk: Desk, shop: Shop, database: Database, buy: Buy, monkeypatch: pytest.MonkeyPatch
) -> None:
    await buy(CHARGED_BACK)
    await read_disputes(desk, now=utc_now())
    (found,) = await list_chargebacks(database, shop, None, Page(10))
    honest = giving_evidence.queries.record_evidence
    lost: list[int] = []

    async def lose(connection: Any, **said: Any) -> Any:
        row = await honest(connection, **said)
        if not lost:
            lost.append(1)
            raise asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation")
        return row

    monkeypatch.setattr(giving_evidence.queries, "record_evidence", lose)
    given = await give_evidence(desk, shop, found.id, "Delivered on 3 March", now=utc_now())
    assert (lost, given.evidence) == ([1], "Delivered on 3 March")


async def test_another_merchants_chargeback_is_not_found(
    desk: Desk, shop: Shop, other_shop: Shop, database: Database, buy: Buy
) -> None:
    await buy(CHARGED_BACK)
    await read_disputes(desk, now=utc_now())
    (found,) = await list_chargebacks(database, shop, None, Page(10))
    with pytest.raises(NotFound):
        await find_chargeback(database, other_shop, found.id)
    with pytest.raises(NotFound):
        await give_evidence(desk, other_shop, found.id, "mine", now=utc_now())
    assert await list_chargebacks(database, other_shop, None, Page(10)) == []


@pytest.mark.parametrize("error", [AcquirerRefused("this key may not read events"), KeyError("status")])
async def test_an_acquirer_that_can_not_be_read_does_not_keep_us_from_the_others(
    desk: Desk, shop: Shop, database: Database, buy: Buy, error: Exception
) -> None:
    await buy(CHARGED_BACK)
    closed = answering(desk.acquirers["simulator"], disputes=ending_in(error))
    await read_disputes(replace(desk, acquirers={"closed": closed, **desk.acquirers}), now=utc_now())
    assert len(await list_chargebacks(database, shop, None, Page(10))) == 1


async def test_whoever_asks_for_many_disputes_stays_the_one_who_reads(desk: Desk, database: Database, buy: Buy) -> None:
    for order in ("A-1", "A-2"):
        await buy(CHARGED_BACK, order)
    await read_disputes(desk, now=utc_now())
    honest, held = desk.acquirers["simulator"], []

    async def asked(reference: str) -> Dispute | None:
        held.append(await database.fetchval("select leased_until from dispute_reading where acquirer = 'simulator'"))
        return await honest.find_dispute(reference)

    asking = replace(desk, acquirers={"simulator": answering(honest, find_dispute=asked)})
    await read_disputes(asking, now=utc_now() + timedelta(days=2))
    assert len(held) > 1
    assert held == sorted(set(held))


async def leased(database: Database, until: datetime) -> None:
    await breaking.say(database, "dispute_reading", {"acquirer": "simulator"}, leased_until=until)


async def test_whoever_was_too_slow_lets_nothing_wait(desk: Desk, database: Database, buy: Buy) -> None:
    await buy(CHARGED_BACK)
    honest, theirs = desk.acquirers["simulator"], utc_now() + timedelta(minutes=5)

    async def late(place: str) -> DisputePage:
        await leased(database, theirs)
        return await honest.disputes(place)

    assert (
        await read_disputes(replace(desk, acquirers={"simulator": answering(honest, disputes=late)}), now=utc_now())
        == 0
    )
    (stands,) = await database.fetch("select place, leased_until from dispute_reading where acquirer = 'simulator'")
    assert tuple(stands) == ("", theirs)


async def test_whoever_was_too_slow_does_not_say_that_a_dispute_was_asked_for(
    desk: Desk, database: Database, shop: Shop, buy: Buy
) -> None:
    await buy(CHARGED_BACK)
    await read_disputes(desk, now=utc_now())
    asked = "select asked_at from chargeback where merchant_id = $1"
    asked_at = await database.fetchval(asked, shop.merchant_id)

    async def late(_reference: str) -> None:
        await leased(database, utc_now() + timedelta(minutes=5))
        raise AcquirerRefused("not now")

    asking = answering(desk.acquirers["simulator"], find_dispute=late)
    await read_disputes(replace(desk, acquirers={"simulator": asking}), now=utc_now() + timedelta(days=2))
    assert await database.fetchval(asked, shop.merchant_id) == asked_at


async def test_whoever_dies_between_two_pages_is_taken_over_after_their_lease(
    desk: Desk, database: Database, shop: Shop, buy: Buy
) -> None:
    await buy(CHARGED_BACK)
    honest, reached = desk.acquirers["simulator"], asyncio.Event()

    async def disputes(place: str) -> DisputePage:
        if place:
            reached.set()
            await asyncio.Event().wait()
        return await honest.disputes(place)

    slow = replace(desk, acquirers={"simulator": answering(honest, disputes=disputes)})
    dying = asyncio.ensure_future(read_disputes(slow, now=utc_now()))
    await asyncio.wait_for(reached.wait(), 30)
    await buy(CHARGED_BACK, "A-2")
    assert await read_disputes(desk, now=utc_now()) == 0, "its lease is not over"
    await leased(database, utc_now() - timedelta(minutes=5))
    assert sorted(await asyncio.gather(*(read_disputes(desk, now=utc_now()) for _ in range(2)))) == [0, 1]
    stands = "select * from dispute_reading where acquirer = 'simulator'"
    before = dict(await database.fetchrow(stands))
    dying.cancel()
    await asyncio.wait([dying])
    assert dict(await database.fetchrow(stands)) == before
    assert len(await list_chargebacks(database, shop, None, Page(10))) == 2
