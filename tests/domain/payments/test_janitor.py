from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests import breaking, set_back
from tests.adapters.acquirers.simulator.lying import Lies, LyingAcquirer
from tests.banks import answering, ending_in

from paydesk.adapters.acquirers.disputes import FailedRefund, FailedRefundPage
from paydesk.adapters.acquirers.interface import (
    AcquirerRefused,
    Approved,
    DeclineReason,
    Finding,
    OutcomeUnknown,
    Voided,
)
from paydesk.adapters.acquirers.purchases import CardDetails, Purchase
from paydesk.adapters.acquirers.simulator.purchase_state import Standing
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.payments import janitor
from paydesk.domain.payments.challenges import settle_challenge
from paydesk.domain.payments.checkouts import Standing as CheckoutStanding
from paydesk.domain.payments.failed_refunds import read_failed_refunds
from paydesk.domain.payments.janitor import settle_due
from paydesk.domain.payments.lookups import Lookup
from paydesk.domain.payments.outcomes import Approval, Ending, record_approvals, record_endings
from paydesk.domain.payments.results import ConfirmWithBank, Paid, Unsettled
from paydesk.domain.payments.states import AttemptState

Charges = Callable[[], list[Standing]]

VISA, ASKS_CUSTOMER, ANSWER_LOST = "4242424242424242", "4000000000003220", "4000000000009987"


def honest(till: Any) -> Any:
    return till.honest


async def pretend_to_end(_of_key: str) -> Finding:
    """Say that a challenge was ended, and leave it open."""
    return Voided()


def lying(till: Any, **lies: float) -> Any:
    return till.at(LyingAcquirer(honest(till), Lies(**lies)))  # type: ignore[arg-type]


async def alarms(till: Any) -> list[tuple[str, str]]:
    rows = await till.desk.database.fetch(
        "select kind, subject from alarm where merchant_id = $1 and settled_at is null", till.shop.merchant_id
    )
    return [(row["kind"], row["subject"]) for row in rows]


async def arrive_late(till: Any, row: Any) -> None:
    """The question that seemed lost reaches the bank after all."""
    card = CardDetails(VISA, 12, 2040, "Ada Lovelace", "123")
    await honest(till).authorize(Purchase(row["idempotency_key"], Decimal(10), "USD", card, True, row["not_after"]))


async def test_a_lost_answer_is_found_and_recorded_with_its_ledger_and_pingback(till: Any, charges: Charges) -> None:
    token = await till.order()
    assert isinstance(await lying(till, lose_answers=1).pay(token, VISA), Unsettled)
    await till.settle(seconds=4)
    assert await till.state() == "processing", "not yet due"
    await till.settle(seconds=6)
    assert await till.state() == "captured"
    assert await till.attempt_states() == ["approved"]
    (attempt,) = await till.attempts()
    assert (attempt["lookup_at"], attempt["leased_until"]) == (None, None)
    for table in ("ledger_entry", "pingback"):
        count = f"select count(*) from {table} where merchant_id = $1"
        assert await till.desk.database.fetchval(count, till.shop.merchant_id) > 0
    assert len(charges()) == 1


async def test_a_lost_question_is_final_only_once_the_bank_can_no_longer_take_it(till: Any, charges: Charges) -> None:
    token = await till.order()
    assert isinstance(await lying(till, lose_questions=1).pay(token, VISA), Unsettled)
    for seconds in (6, 70, 85):
        await till.settle(seconds=seconds)
        assert await till.state() == "processing"
        assert (await till.find(token)).standing is CheckoutStanding.PROCESSING
    await till.settle(seconds=95)
    assert (await till.state(), await till.attempt_states()) == ("declined", ["failed"])
    assert (await till.find(token)).standing is CheckoutStanding.OPEN, "the customer may try again"
    assert isinstance(await till.pay(token, VISA), Paid)
    assert len(charges()) == 1


async def test_an_approval_that_turns_up_after_we_gave_up_is_voided_and_recorded(
    till: Any, database: Database, charges: Charges
) -> None:
    token = await till.order()
    await lying(till, lose_questions=1).pay(token, VISA)
    await till.settle(minutes=2)
    await till.pay(token, VISA)
    await arrive_late(till, (await till.attempts())[0])
    assert len(charges()) == 2
    with capture_logs() as logs:
        await till.settle(hours=2)
    assert "an approval turned up" in logs[0]["event"]
    assert logs[0]["log_level"] == "error"
    assert len(charges()) == 1
    assert await till.attempt_states() == ["voided", "approved"]
    row = (await till.attempts())[0]
    assert row["acquirer_reference"]
    assert row["alerted_at"] is not None
    assert row["lookup_at"] is None
    assert await database.fetchval("select count(*) from pingback where merchant_id = $1", till.shop.merchant_id) == 1


async def test_a_void_that_fails_is_tried_again_until_it_is_done(till: Any, charges: Charges) -> None:
    token = await till.order()
    await lying(till, lose_questions=1).pay(token, VISA)
    await till.settle(minutes=2)
    await arrive_late(till, (await till.attempts())[0])
    failing = [OutcomeUnknown("nobody answers")] * 2

    async def undo(*asked: str) -> Finding:
        if failing:
            raise failing.pop()
        found: Finding = await honest(till).undo(*asked)
        return found

    late = till.at(answering(honest(till), undo=undo))
    # The last look that an attempt gets, a week later: what was begun then must not be forgotten.
    for hours, state in ((168.5, "voiding"), (170, "voiding"), (192, "voided")):
        await late.settle(hours=hours)
        assert await till.attempt_states() == [state]
    assert charges() == []


async def test_silence_is_never_a_decline_and_alerts_once_after_a_day(till: Any) -> None:
    token = await till.order()
    nobody = ending_in(OutcomeUnknown("nobody answers"))
    silent = till.at(answering(LyingAcquirer(honest(till), Lies(lose_answers=1)), find=nobody))
    await silent.pay(token, VISA)
    hours = [0.01, 1, 2, 12, 23.9, 24.1, 25.2, 26.3, 72]
    alerts = []
    for hour in hours:
        with capture_logs() as logs:
            await silent.settle(hours=hour)
        alerts += [(hour, one) for one in logs if "unknown for a day" in one["event"]]
        assert await till.state() == "processing"
    assert [(hour, one["log_level"]) for hour, one in alerts] == [(25.2, "error")], "the hourly question after a day"
    await till.settle(hours=80)
    assert await till.state() == "captured"


async def test_a_second_charge_that_turns_up_is_undone_within_minutes(till: Any, charges: Charges) -> None:
    token = await till.order()
    await lying(till, lose_questions=1).pay(token, VISA)
    await till.settle(minutes=2)
    await till.pay(token, VISA)
    await till.settle(minutes=4)
    await arrive_late(till, (await till.attempts())[0])
    assert len(charges()) == 2
    await till.settle(minutes=6)
    assert len(charges()) == 1
    assert await till.attempt_states() == ["voided", "approved"]


async def test_an_answer_that_comes_after_its_attempt_was_given_up_is_undone_at_once(
    till: Any, charges: Charges
) -> None:
    token = await till.order()
    await lying(till, lose_questions=1).pay(token, VISA)
    await till.settle(minutes=2)
    (attempt,) = await till.attempts()
    await arrive_late(till, attempt)
    said = await honest(till).find(attempt["idempotency_key"])
    assert isinstance(said, Approved)
    assert (
        await record_approvals(till.desk.database, [Approval(till.shop, attempt["id"], said)], now=utc_now()) == set()
    )
    await till.settle(seconds=1)
    assert await till.attempt_states() == ["voided"]
    assert charges() == []


async def test_a_bank_that_takes_its_decline_back_is_an_alarm(till: Any) -> None:
    token = await till.order()
    await till.pay(token, "4000000000000002")
    (attempt,) = await till.attempts()
    approval = Approval(till.shop, attempt["id"], Approved("payment-1"))
    assert await record_approvals(till.desk.database, [approval], now=utc_now()) == set()
    assert await alarms(till) == [("contradiction", f"attempt {attempt['id']}")]
    assert await till.attempt_states() == ["declined"]


async def test_a_bank_that_takes_its_approval_back_is_an_alarm(till: Any) -> None:
    await till.pay(await till.order(), VISA)
    (attempt,) = await till.attempts()
    ending = Ending(till.shop, attempt["id"], AttemptState.DECLINED, DeclineReason.DECLINED)
    assert await record_endings(till.desk.database, [ending], now=utc_now()) == set()
    assert await alarms(till) == [("contradiction", f"attempt {attempt['id']}")]
    assert await till.attempt_states() == ["approved"]


async def test_a_second_charge_that_can_t_be_undone_is_an_alarm(till: Any) -> None:
    refusal = AcquirerRefused("the payment is disputed")
    token = await till.order()
    await lying(till, lose_questions=1).pay(token, VISA)
    await till.settle(minutes=2)
    (attempt,) = await till.attempts()
    await arrive_late(till, attempt)
    await till.at(answering(honest(till), undo=ending_in(refusal))).settle(minutes=4)
    assert await till.attempt_states() == ["voiding"]
    assert await alarms(till) == [("contradiction", f"attempt {attempt['id']}")]
    later = [await rarely(till, hours) for hours in (1, 26, 49, 51, 74, 76)]
    assert later == ["asked", "asked", "not yet", "asked", "not yet", "asked"], "often for a day, and then daily"
    await till.settle(hours=101)
    assert await till.attempt_states() == ["voided"]


async def test_a_refund_that_failed_to_undo_a_second_charge_is_an_alarm_only_once_that_is_over(till: Any) -> None:
    """Until then another is made: a person who gave the money back, too, would do so twice."""
    database = till.desk.database
    await set_back.banks_tell_of_refunds_again(database)
    await breaking.no_alarms(database)
    token = await till.order()
    await lying(till, lose_questions=1).pay(token, VISA)
    await till.settle(minutes=2)
    (attempt,) = await till.attempts()
    await arrive_late(till, attempt)
    await till.at(answering(honest(till), undo=ending_in(OutcomeUnknown("pending")))).settle(minutes=4)
    assert await till.attempt_states() == ["voiding"]
    failed = FailedRefund("re_1", f"{attempt['idempotency_key']}:void", Decimal(10), "USD", "failed", utc_now())

    async def told(after: str) -> FailedRefundPage:
        return FailedRefundPage((), after) if after else FailedRefundPage((failed,), "told")

    telling = till.at(answering(honest(till), failed_refunds=told)).desk
    unknown = "select array_agg(subject) from alarm where kind = 'refund_unknown' and settled_at is null"
    await read_failed_refunds(telling, now=utc_now())
    assert await database.fetchval(unknown) is None
    await till.settle(minutes=10)
    assert await till.attempt_states() == ["voided"]
    await set_back.banks_tell_of_refunds_again(database)
    await read_failed_refunds(telling, now=utc_now())
    assert await database.fetchval(unknown) == ["re_1"]


async def rarely(till: Any, hours: float) -> str:
    """Whether an acquirer that refuses, as it did a day long, is asked again by then."""
    asked = list[str]()

    async def undo(key: str, _of_key: str) -> Finding:
        asked.append(key)
        raise AcquirerRefused("the payment is disputed")

    whose = {"merchant_id": till.shop.merchant_id}
    asked_before = {"lookups": 30} if hours > 1 else {}
    await breaking.say(till.desk.database, "payment_attempt", whose, leased_until=None, **asked_before)
    await till.at(answering(honest(till), undo=undo)).settle(hours=hours)
    return "asked" if asked else "not yet"


async def test_the_first_question_comes_after_5_seconds(till: Any) -> None:
    await lying(till, lose_answers=1).pay(await till.order(), VISA)
    (row,) = await till.attempts()
    assert timedelta(seconds=4.9) < row["lookup_at"] - row["created_at"] < timedelta(seconds=7)
    assert timedelta(seconds=59) < row["not_after"] - row["created_at"] < timedelta(seconds=62)


async def test_two_janitors_at_once_settle_once(till: Any, charges: Charges) -> None:
    for _ in range(8):
        await lying(till, lose_answers=1).pay(await till.order(), VISA)
    now = utc_now() + timedelta(seconds=6)
    asked = await asyncio.gather(*(settle_due(till.desk, now=now, most=5) for _ in range(4)))
    assert sum(asked) == 8
    assert await till.attempt_states() == ["approved"] * 8
    count = "select count(*), count(distinct payment_id) from pingback where merchant_id = $1"
    assert tuple(await till.desk.database.fetchrow(count, till.shop.merchant_id)) == (8, 8)
    assert len(charges()) == 8


async def test_an_attempt_that_a_dead_janitor_had_claimed_is_asked_for_when_its_lease_is_over(
    till: Any, database: Database
) -> None:
    await lying(till, lose_answers=1).pay(await till.order(), VISA)
    lease = "update payment_attempt set leased_until = now() + $2 where merchant_id = $1"
    await database.execute(lease, till.shop.merchant_id, timedelta(seconds=30))
    assert await till.settle(minutes=30) == 0, "the lease is counted in real time"
    await database.execute(lease, till.shop.merchant_id, timedelta(0))
    assert await till.settle(minutes=30) == 1
    assert await till.attempt_states() == ["approved"]


async def test_what_moved_while_the_bank_was_asked_is_left_alone(till: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    token = await till.order()
    await lying(till, lose_answers=1).pay(token, VISA)
    find = janitor._find

    async def slow_find(desk: Any, one: Lookup, *, now: datetime) -> Finding | None:
        monkeypatch.setattr(janitor, "_find", find)
        await set_back.times(till.desk.database, "payment_attempt", {}, leased_until=None)
        await till.settle(seconds=7)
        return None

    monkeypatch.setattr(janitor, "_find", slow_find)
    await till.settle(seconds=6)
    (row,) = await till.attempts()
    assert (row["state"], row["lookup_at"]) == ("approved", None)


async def test_an_attempt_of_an_unknown_acquirer_holds_up_no_other(till: Any, database: Database) -> None:
    await lying(till, lose_answers=1).pay(await till.order(), VISA)
    await breaking.say(database, "payment_attempt", {"merchant_id": till.shop.merchant_id}, acquirer="retired")
    await lying(till, lose_answers=1).pay(await till.order(), VISA)
    await till.settle(seconds=6)
    assert await till.attempt_states() == ["processing", "approved"]


async def test_a_challenge_whose_announcement_was_lost_is_shown_to_the_customer(till: Any) -> None:
    token = await till.order()
    assert isinstance(await lying(till, lose_answers=1).pay(token, ASKS_CUSTOMER), Unsettled)
    await till.settle(seconds=6)
    checkout = await till.find(token)
    assert checkout.standing is CheckoutStanding.CHALLENGED
    assert checkout.attempt is not None
    assert checkout.attempt.challenge_url.startswith("http://pay.test/simulator/challenge/")


async def test_a_customer_who_never_comes_back_from_the_bank_is_not_waited_for(till: Any, charges: Charges) -> None:
    token = await till.order()
    asked = await till.pay(token, ASKS_CUSTOMER)
    assert isinstance(asked, ConfirmWithBank)
    await till.settle(minutes=16)
    assert await till.state() == "challenged"
    await till.settle(minutes=61)
    assert (await till.state(), await till.attempt_states()) == ("declined", ["abandoned"])
    bank = honest(till).bank
    assert bank.decide(asked.url.rpartition("/")[2], "approve").status == "voided"
    assert charges() == []


async def test_a_challenge_approved_by_a_customer_who_did_not_come_back_is_recorded(till: Any) -> None:
    asked = await till.pay(await till.order(), ASKS_CUSTOMER)
    honest(till).bank.decide(asked.url.rpartition("/")[2], "approve")
    await till.settle(minutes=16)
    assert await till.state() == "captured"


async def test_an_old_challenge_that_only_seemed_ended_never_charges_twice(till: Any, charges: Charges) -> None:
    token = await till.order()
    lied_to = till.at(answering(honest(till), end_challenge=pretend_to_end))
    asked = await lied_to.pay(token, ASKS_CUSTOMER)
    assert isinstance(await lied_to.pay(token, VISA), Paid)
    honest(till).bank.decide(asked.url.rpartition("/")[2], "approve")
    assert len(charges()) == 2
    await till.settle(seconds=6)
    (charge,) = charges()
    assert charge.last4 == "4242"
    assert await till.attempt_states() == ["voided", "approved"]


async def test_an_old_challenge_that_is_still_open_is_ended_again(till: Any, charges: Charges) -> None:
    token = await till.order()
    lied_to = till.at(answering(honest(till), end_challenge=pretend_to_end))
    asked = await lied_to.pay(token, ASKS_CUSTOMER)
    await lied_to.pay(token, VISA)
    await till.settle(seconds=6)
    bank = honest(till).bank
    assert bank.decide(asked.url.rpartition("/")[2], "approve").status == "voided"
    assert len(charges()) == 1


async def test_a_bank_that_forgets_its_challenge_for_a_while_ends_nothing(till: Any) -> None:
    token = await till.order()
    slow = lying(till, hide_for=3600)
    await slow.pay(token, ASKS_CUSTOMER)
    checkout = await till.find(token)
    assert isinstance(await settle_challenge(slow.desk, checkout, checkout.attempt, now=utc_now()), Unsettled)
    assert await till.attempt_states() == ["challenged"]
    await slow.settle(minutes=16)
    assert await till.attempt_states() == ["abandoned"], "a quarter of an hour later it is believed"


async def test_the_janitor_survives_an_error_and_stops_when_told(till: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    stop, rounds = asyncio.Event(), 0

    async def failing(desk: Any, *, now: datetime) -> int:
        nonlocal rounds
        rounds += 1
        if rounds == 3:
            stop.set()
        raise ConnectionError("the database is away")

    monkeypatch.setattr(janitor, "settle_due", failing)
    with capture_logs() as logs:
        await janitor.run_janitor(till.desk, stop, pause=0.001)
    assert rounds == 3
    assert [one["log_level"] for one in logs] == ["warning"] * 3
