"""Disputes as banks have them, not as we would like them: each is booked as the bank did it,
and none is lost.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import asyncpg
import pytest
from tests import set_back
from tests.adapters.acquirers.simulator.lying import Lies
from tests.domain.chargebacks.telling import Books, TellingBank, beside_a_telling_bank
from tests.sweeping import database, database_url

from paydesk.adapters.acquirers.disputes import DisputeStatus
from paydesk.adapters.acquirers.interface import AcquirerRefused, OutcomeUnknown
from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict, Malformed
from paydesk.database.pool import Database
from paydesk.domain.chargebacks import metrics
from paydesk.domain.chargebacks.for_api import purchase_of
from paydesk.domain.chargebacks.giving_evidence import give_evidence
from paydesk.domain.chargebacks.reading_acquirers import UNREAD, read_disputes, watch_readings
from paydesk.domain.chargebacks.waiting_disputes import PATIENCE
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.operations.chargebacks import list_waiting, reckon
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.movements import finish_movements
from paydesk.domain.payments.refunding import RefundStatus, refund

__all__ = ["database", "database_url"]

OPEN, WON, LOST = DisputeStatus.OPEN, DisputeStatus.WON, DisputeStatus.LOST
INQUIRY, DROPPED = DisputeStatus.INQUIRY, DisputeStatus.DROPPED

Buy = Callable[..., Awaitable[int]]


@pytest.fixture
async def books(desk: Desk, shop: Shop, database: Database, buy: Buy) -> AsyncIterator[Books]:
    await set_back.no_disputes_left(database)
    kept = await beside_a_telling_bank(desk, shop, await buy())
    yield kept
    await kept.in_order()


async def test_a_dispute_over_the_whole_amount_after_a_partial_refund_is_booked(books: Books) -> None:
    await books.give("4.00")
    before = await books.merchants()
    await books.hear(books.dispute("10.00"))
    assert await books.taken_back() == ("charged_back", Decimal(4), Decimal(10))
    assert await books.owed() == -4, "the bank has given the customer 4.00 too much, out of our pocket"
    assert await books.merchants() == before - 10 - 15
    await books.hear(books.dispute("10.00", WON))
    assert await books.taken_back() == ("partially_refunded", Decimal(4), Decimal(0))
    assert await books.merchants() == before - 15


async def test_a_dispute_of_a_refunded_payment_is_booked(books: Books) -> None:
    await books.give("10.00")
    await books.hear(books.dispute("10.00"), books.dispute("10.00", LOST))
    assert await books.taken_back() == ("charged_back", Decimal(10), Decimal(10))
    assert await books.owed() == -10
    (found,) = await books.chargebacks()
    assert (str(found.state), found.taken, found.returned) == ("lost", Decimal(10), Decimal(0))
    assert [one["event"] for one in await books.told_of_chargebacks()] == ["chargeback"]


async def test_a_dispute_above_the_charge_is_booked_as_it_is(books: Books) -> None:
    before = await books.merchants()
    await books.hear(books.dispute("10.37"))
    assert await books.taken_back() == ("charged_back", Decimal(0), Decimal("10.37"))
    assert await books.merchants() == before - Decimal("25.37")
    (told,) = await books.told_of_chargebacks()
    assert told["payment_order"]["chargeback_amount"] == Decimal("10.37")


async def test_several_disputes_of_one_payment_are_booked_and_the_rest_can_be_refunded(books: Books) -> None:
    await books.hear(books.dispute("4.00"), books.dispute("3.00", reference="dp_2"))
    assert await books.taken_back() == ("charged_back", Decimal(0), Decimal(7))
    with pytest.raises(Malformed):
        await books.give("3.01")
    assert (await books.give("3.00")).status is RefundStatus.PART
    assert await books.taken_back() == ("charged_back", Decimal(3), Decimal(7))
    await books.hear(books.dispute("4.00", WON))
    assert await books.taken_back() == ("charged_back", Decimal(3), Decimal(3))


async def test_what_is_charged_back_whole_can_not_be_refunded(books: Books) -> None:
    await books.hear(books.dispute("10.00"))
    with pytest.raises(Conflict, match="charged back"):
        await books.give("1.00")


async def test_a_dispute_while_a_refund_is_on_its_way_is_booked_and_so_is_the_refund(books: Books) -> None:
    deaf = replace(books.desk, acquirers={"simulator": TellingBank(books.teller.honest, Lies(lose_answers=1.0))})
    status = (await refund(deaf, books.shop, books.payment_id, Decimal(4), requested_by="api", now=utc_now())).status
    assert status is RefundStatus.PROCESSING
    await books.hear(books.dispute("10.00"))
    await finish_movements(books.desk, now=utc_now() + timedelta(hours=1))
    assert await books.taken_back() == ("charged_back", Decimal(4), Decimal(10))
    assert await books.owed() == -4


async def test_a_part_that_came_back_of_a_lost_dispute_is_booked_and_told(books: Books) -> None:
    before = await books.merchants()
    await books.hear(
        books.dispute("10.00", taken=Decimal(10), returned=Decimal(0)),
        books.dispute("10.00", LOST, taken=Decimal(10), returned=Decimal(4)),
    )
    assert await books.taken_back() == ("charged_back", Decimal(0), Decimal(6))
    assert await books.merchants() == before - 6 - 15
    (found,) = await books.chargebacks()
    assert (str(found.state), found.taken, found.returned, found.closed_at is not None) == (
        "lost",
        Decimal(10),
        Decimal(4),
        True,
    )
    orders = [one["payment_order"] for one in await books.told_of_chargebacks()]
    events = [one["event"] for one in await books.told_of_chargebacks()]
    assert events == ["chargeback", "chargeback_reversed"]
    assert [(one["status"], one["chargeback_amount"]) for one in orders] == [
        ("reversal_chargeback", 10),
        ("reversal_chargeback", 4),
    ]


async def test_a_dispute_that_is_taken_again_after_it_was_won_is_booked_and_told_again(books: Books) -> None:
    before = await books.merchants()
    await books.hear(books.dispute("10.00"), books.dispute("10.00", WON))
    books.teller.stands["dp_1"] = books.dispute("10.00", LOST)
    await books.hear(books.teller.stands["dp_1"])
    (found,) = await books.chargebacks()
    assert (str(found.state), found.taken, found.returned, found.fee) == ("lost", Decimal(20), Decimal(10), Decimal(15))
    assert await books.merchants() == before - 10 - 15, "one dispute costs one fee"
    assert [one["event"] for one in await books.told_of_chargebacks()] == [
        "chargeback",
        "chargeback_reversed",
        "chargeback",
    ]
    assert await books.hear(books.dispute("10.00", LOST)) == 0, "told once more it is what is in the books"


async def test_money_that_comes_back_after_the_dispute_was_won_is_awaited(books: Books) -> None:
    await books.hear(books.dispute("10.00", WON, taken=Decimal(10), returned=Decimal(0)))
    assert await books.taken_back() == ("charged_back", Decimal(0), Decimal(10))
    books.teller.stands["dp_1"] = books.dispute("10.00", WON)
    await read_disputes(books.desk, now=utc_now() + timedelta(hours=25))
    assert books.teller.asked == ["dp_1"]
    assert await books.taken_back() == ("captured", Decimal(0), Decimal(0))


async def test_an_inquiry_moves_nothing_and_may_become_a_dispute(books: Books) -> None:
    before = await books.merchants()
    await books.hear(books.dispute("10.00", INQUIRY))
    (found,) = await books.chargebacks()
    assert (str(found.state), found.taken, found.fee) == ("inquiry", Decimal(0), Decimal(0))
    assert (await books.taken_back(), await books.merchants(), await books.told_of_chargebacks()) == (
        ("captured", Decimal(0), Decimal(0)),
        before,
        [],
    )
    with pytest.raises(Conflict, match="does not take"):
        await give_evidence(books.desk, books.shop, found.id, "It was for a mug", now=utc_now())
    await books.hear(books.dispute("10.00"))
    (found,) = await books.chargebacks()
    assert (str(found.state), found.taken, found.fee, found.evidence) == (
        "open",
        Decimal(10),
        Decimal(15),
        "It was for a mug",
    )
    assert [one["event"] for one in await books.told_of_chargebacks()] == ["chargeback"]


@pytest.mark.parametrize("first", [INQUIRY, OPEN])
async def test_what_ends_before_money_moves_costs_nothing(books: Books, first: DisputeStatus) -> None:
    before = await books.merchants()
    nothing = {"taken": Decimal(0), "returned": Decimal(0)}
    await books.hear(books.dispute("10.00", first, **nothing), books.dispute("10.00", DROPPED, **nothing))
    (found,) = await books.chargebacks()
    assert (str(found.state), found.taken, found.fee, found.closed_at is not None) == (
        "dropped",
        Decimal(0),
        Decimal(0),
        True,
    )
    assert (await books.merchants(), await books.told_of_chargebacks()) == (before, [])


async def test_a_dispute_in_another_currency_is_kept_in_both(books: Books) -> None:
    await books.hear(books.dispute("9.20", currency="EUR", of_payment=Decimal("9.87")))
    (found,) = await books.chargebacks()
    assert (found.amount, found.currency) == (Decimal("9.87"), "USD")
    assert (found.disputed_amount, found.disputed_currency) == (Decimal("9.20"), "EUR")
    assert await books.taken_back() == ("charged_back", Decimal(0), Decimal("9.87"))
    order = (await books.told_of_chargebacks())[0]["payment_order"]
    assert (order["chargeback_amount"], order["disputed_amount"]) == (Decimal("9.87"), Decimal("9.20"))
    assert (order["paid_currency"], order["disputed_currency"]) == ("USD", "EUR")
    assert await books.kinds() == []


async def test_what_nobody_says_the_worth_of_is_booked_whole_and_an_operator_told(books: Books) -> None:
    await books.hear(books.dispute("9.20", currency="EUR"))
    (found,) = await books.chargebacks()
    assert (found.amount, found.disputed_amount) == (Decimal(10), Decimal("9.20"))
    assert await books.kinds() == ["dispute_reckoned"]
    half = {"taken": Decimal("9.20"), "returned": Decimal("4.60")}
    await books.hear(books.dispute("9.20", LOST, currency="EUR", **half))
    assert await books.taken_back() == ("charged_back", Decimal(0), Decimal(5))
    worth = {"of_payment": Decimal("9.90"), "taken": Decimal("9.20"), "returned": Decimal("4.60")}
    books.teller.stands["dp_1"] = books.dispute("9.20", LOST, currency="EUR", **worth)
    await books.hear(books.teller.stands["dp_1"])
    assert (await books.taken_back())[2] == Decimal("4.95"), "once it is known, it is put right"


async def test_a_dispute_of_an_attempt_that_does_not_hold_its_payment_stands_aside(books: Books) -> None:
    await books.database.execute(
        "insert into payment_attempt (merchant_id, live, id, payment_id, checkout_id, state, acquirer, idempotency_key,"
        " amount, currency, card_id, capture, client_address, not_after, created_at, finished_at)"
        " select merchant_id, live, nextval('payment_attempt_id_seq'), payment_id, checkout_id, 'voided', acquirer,"
        " 'late', amount, currency, card_id, capture, client_address, not_after, created_at, finished_at"
        " from payment_attempt where merchant_id = $1",
        books.shop.merchant_id,
    )
    before = await books.merchants()
    await books.hear(books.dispute("10.00", of_key="late"))
    assert await books.taken_back() == ("captured", Decimal(0), Decimal(0)), "its own money is untouched"
    assert await books.owed() == 0
    assert await books.merchants() == before - 25
    assert (await books.give("10.00")).status is RefundStatus.WHOLE
    await books.hear(books.dispute("10.00", WON, of_key="late"))
    assert await books.merchants() == before - 25, "10.00 came back, and 10.00 were refunded"
    statuses = [one["payment_order"]["status"] for one in await books.told_of_chargebacks()]
    assert statuses == ["reversal_chargeback", "reversal_refunded"]


async def test_one_that_can_not_be_booked_yet_stops_no_other_and_is_booked_later(
    books: Books, buy: Buy, database: Database
) -> None:
    other = await buy(order="A-2")
    other_key = (await purchase_of(database, books.shop, other)).key
    changed = "update payment_attempt set state = $2, lookup_at = $3 where idempotency_key = $1"
    await database.execute(changed, books.key, "processing", utc_now())
    now = utc_now()
    assert await books.hear(books.dispute("10.00"), books.dispute("10.00", reference="dp_2", of_key=other_key)) == 1
    assert [found.payment_id for found in await books.chargebacks()] == [other]
    assert await books.waiting() == ["the outcome of its payment is not known yet"]
    assert await books.kinds() == [], "that passes by itself"
    await read_disputes(books.desk, now=now + PATIENCE + timedelta(minutes=1))
    assert await books.kinds() == ["dispute_waits"]
    await database.execute(changed, books.key, "approved", None)
    await read_disputes(books.desk, now=now + PATIENCE + timedelta(minutes=30))
    assert len(await books.chargebacks()) == 2
    assert (await books.waiting(), await books.kinds()) == ([], [])


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"of_key": "nobody's"}, "no attempt to pay has the key"),
        ({"amount": Decimal("NaN")}, "no sum of money"),
        ({"amount": Decimal(0)}, "over nothing"),
        ({"taken": Decimal("1e30")}, "no sum of money"),
    ],
)
async def test_what_can_not_be_booked_waits_with_its_reason_and_the_place_moves_on(
    books: Books, changes: dict[str, Any], reason: str
) -> None:
    await books.hear(replace(books.dispute("10.00"), **changes), books.dispute("1.00", reference="dp_2"))
    (why,) = await books.waiting()
    assert reason in why
    assert await books.kinds() == ["dispute_waits"]
    assert [found.amount for found in await books.chargebacks()] == [1]
    assert await books.database.fetchval("select place from dispute_reading where acquirer = 'simulator'") == "2"


async def test_one_that_is_larger_than_any_price_is_booked(books: Books) -> None:
    """As a charge of a dear plan with what a change of it has put into the balance may be."""
    await books.hear(books.dispute("2000000000000.00"))
    assert [found.amount for found in await books.chargebacks()] == [Decimal("2000000000000.00")]
    assert await books.waiting() == []


async def test_a_row_that_the_database_refuses_waits_too(books: Books) -> None:
    await books.database.execute("alter table chargeback add constraint trouble check (reason <> 'trouble')")
    try:
        await books.hear(books.dispute("10.00", reason="trouble"), books.dispute("1.00", reference="dp_2"))
    finally:
        await books.database.execute("alter table chargeback drop constraint trouble")
    (why,) = await books.waiting()
    assert why.startswith("CheckViolationError")
    await read_disputes(books.desk, now=utc_now() + timedelta(minutes=1))
    assert (len(await books.chargebacks()), await books.waiting()) == (2, [])


async def test_nothing_is_left_behind_when_the_database_goes_away(
    books: Books, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: object, **__: object) -> None:
        raise asyncpg.ConnectionDoesNotExistError("the server restarts")

    with monkeypatch.context() as patch:
        patch.setattr("paydesk.domain.chargebacks.reading_acquirers.record_dispute", away)
        with pytest.raises(asyncpg.ConnectionDoesNotExistError):
            await books.hear(books.dispute("10.00"))
    assert (await books.waiting(), await books.chargebacks()) == ([], [])
    await read_disputes(books.desk, now=utc_now())
    assert len(await books.chargebacks()) == 1


async def test_an_older_telling_is_asked_about_and_changes_nothing(books: Books) -> None:
    early = books.dispute("10.00")
    books.teller.stands["dp_1"] = books.dispute("10.00", WON)
    assert await books.hear(books.teller.stands["dp_1"], early) == 1
    assert books.teller.asked == ["dp_1"]
    (found,) = await books.chargebacks()
    assert (str(found.state), found.taken, found.returned) == ("won", Decimal(10), Decimal(10))


async def test_a_telling_that_the_bank_can_not_confirm_waits(books: Books) -> None:
    early = books.dispute("10.00")
    await books.hear(books.dispute("10.00", WON), early)
    assert await books.waiting() == ["it was told otherwise before, and is not known any more"]
    assert await books.kinds() == ["dispute_waits"]


async def test_each_that_is_not_over_is_asked_for_once_a_day(books: Books) -> None:
    now = utc_now()
    await books.hear(books.dispute("10.00"))
    for hours in (1, 23, 25, 26, 48, 50):
        books.teller.stands["dp_1"] = books.dispute("10.00", OPEN if hours < 48 else LOST)
        await read_disputes(books.desk, now=now + timedelta(hours=hours))
    assert books.teller.asked == ["dp_1", "dp_1"]
    (found,) = await books.chargebacks()
    assert found.state == "lost", "nobody told of its end"
    await read_disputes(books.desk, now=now + timedelta(days=9))
    assert books.teller.asked == ["dp_1", "dp_1"], "it is over"


async def test_one_that_the_acquirer_forgot_is_an_alarm(books: Books) -> None:
    await books.hear(books.dispute("10.00"))
    await read_disputes(books.desk, now=utc_now() + timedelta(hours=25))
    assert await books.kinds() == ["dispute_unknown"]


@pytest.mark.parametrize(
    "silent",
    [AcquirerRefused("this key may not read events"), OutcomeUnknown("no answer"), KeyError("an answer without sense")],
)
async def test_disputes_that_can_not_be_read_are_measured_and_an_alarm_until_they_can(
    books: Books, silent: Exception
) -> None:
    now = utc_now()
    await read_disputes(books.desk, now=now)
    books.teller.silent = silent
    for later, alarms in ((UNREAD / 2, []), (UNREAD * 2, ["disputes_unread"])):
        await read_disputes(books.desk, now=now + later)
        await watch_readings(books.desk, now=now + later)
        age = metrics.READING_AGE.labels("simulator")._value.get()
        assert age == pytest.approx(later.total_seconds(), abs=1)
        assert await books.kinds() == alarms
    books.teller.silent = None
    await read_disputes(books.desk, now=now + UNREAD * 3)
    await watch_readings(books.desk, now=now + UNREAD * 3)
    assert await books.kinds() == []


async def test_one_that_can_not_be_asked_for_stops_no_other(books: Books) -> None:
    now = utc_now()
    await books.hear(books.dispute("3.00", reference="dp_1"), books.dispute("2.00", reference="dp_2"), now=now)
    books.teller.stands = {one: books.dispute("3.00", LOST, reference=one) for one in ("dp_1", "dp_2")}
    books.teller.nonsense = "dp_1"
    await read_disputes(books.desk, now=now + timedelta(hours=25))
    assert sorted(one.state for one in await books.chargebacks()) == ["lost", "open"]
    await read_disputes(books.desk, now=now + timedelta(hours=25.5))
    assert books.teller.asked.count("dp_1") == 1, "what gives no answer is asked for an hour later"
    books.teller.nonsense = ""
    await read_disputes(books.desk, now=now + timedelta(hours=26.5))
    assert [one.state for one in await books.chargebacks()] == ["lost", "lost"]


async def test_a_dispute_of_a_test_side_that_was_emptied_is_nobodys(books: Books) -> None:
    await books.database.execute(
        "insert into forgotten_attempt (merchant_id, acquirer, idempotency_key) values ($1, 'simulator', 'gone')",
        books.shop.merchant_id,
    )
    assert await books.hear(books.dispute("10.00", of_key="gone")) == 0
    assert await books.waiting() == []


async def test_an_operator_says_what_a_dispute_in_another_currency_is_worth(books: Books) -> None:
    moved = {"taken": Decimal("9.20"), "returned": Decimal("4.60")}
    await books.hear(books.dispute("9.20", LOST, currency="EUR", **moved))
    assert await books.taken_back() == ("charged_back", Decimal(0), Decimal(5))
    (found,) = await books.chargebacks()
    after = await reckon(books.database, books.shop, found.id, Decimal("9.90"), now=utc_now())
    assert (after.amount, after.taken - after.returned) == (Decimal("9.90"), Decimal("4.95"))
    assert await books.taken_back() == ("charged_back", Decimal(0), Decimal("4.95"))
    assert await books.kinds() == []
    assert await books.hear(books.dispute("9.20", LOST, currency="EUR", **moved)) == 0, "the operator's word stays"


async def test_what_is_in_the_payments_currency_is_not_reckoned(books: Books) -> None:
    await books.hear(books.dispute("10.00"))
    (found,) = await books.chargebacks()
    with pytest.raises(Conflict, match="nothing to reckon"):
        await reckon(books.database, books.shop, found.id, Decimal(9), now=utc_now())


async def test_an_operator_sees_what_waits(books: Books) -> None:
    told = books.dispute("10.00", of_key="nobody's", taken=Decimal("9.5"))
    await books.hear(told)
    (one,) = await list_waiting(books.database, most=10)
    assert (one.acquirer, one.told, one.tries) == ("simulator", told, 1)
