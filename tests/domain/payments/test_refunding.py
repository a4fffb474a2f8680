from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from tests import breaking
from tests.adapters.acquirers.simulator.lying import Lies, LyingAcquirer
from tests.banks import answering, live_bank_of
from tests.lengths import long
from tests.shopfront import ships
from tests.standings import standings
from tests.till import Till

from paydesk.adapters.acquirers.interface import AcquirerRefused, Declined, DeclineReason, OutcomeUnknown
from paydesk.adapters.acquirers.simulator import Bank
from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict, Malformed, NotFound
from paydesk.database.pool import Database
from paydesk.domain.deliveries.confirmations import read_delivery, read_order
from paydesk.domain.deliveries.confirming import confirm
from paydesk.domain.merchants.merchant import change_merchant
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments import refunding
from paydesk.domain.payments.janitor import run_janitor, watch_open_outcomes
from paydesk.domain.payments.metrics import OPEN_OUTCOMES
from paydesk.domain.payments.movements import first_look
from paydesk.domain.payments.movements import queries as movement_queries
from paydesk.domain.payments.refunding import Refund, RefundStatus, refunds_of

VISA = "4242424242424242"
TEN = Decimal(10)


async def held(till: Till) -> int:
    """The id of a payment that waits for its shipment."""
    await ships(till.database, till.shop)
    return await till.sell()


@pytest.fixture(autouse=True)
async def _ledger_sums_to_zero(database: Database, shop: Shop) -> AsyncIterator[None]:
    yield
    uneven = await database.fetch(
        "select posting_id from ledger_entry where merchant_id = $1 group by posting_id having sum(amount) <> 0",
        shop.merchant_id,
    )
    assert uneven == []


class TestAWholeRefund:
    async def test_it_gives_all_back_and_tells_the_merchant(self, till: Till) -> None:
        payment_id = await till.sell()
        refund = await till.give_back(payment_id)
        assert (refund.status, refund.amount, refund.total) == (RefundStatus.WHOLE, TEN, TEN)
        payment = await till.payment(payment_id)
        assert (payment["state"], payment["refunded"], payment["refunding"]) == ("refunded", 10, 0)
        assert till.standing().net == 0
        (told,) = await till.told(but="payment")
        assert told["event"] == "refund"
        order = told["payment_order"]
        assert (order["id"], order["status"], order["reference_id"]) == (
            payment_id, "reversal_refunded", refund.reference_id,
        )  # fmt: skip
        assert (order["refund_amount"], order["total_refunded_amount"], order["paid_amount"]) == (10, 10, 10)

    async def test_fees_are_kept_by_the_usual_plan(self, till: Till) -> None:
        await till.give_back(await till.sell())
        assert await till.accounts() == {"available": Decimal("0.6"), "fees": Decimal("-0.6")}
        assert await till.problems() == []

    async def test_fees_come_back_if_the_plan_says_so(self, till: Till) -> None:
        await change_merchant(till.database, till.shop.merchant_id, fees_returned=True)
        await till.give_back(await till.sell())
        assert await till.accounts() == {}

    async def test_a_choice_about_fees_holds_for_refunds_from_then_on(self, till: Till) -> None:
        payment_id = await till.sell()
        await till.give_back(payment_id, "5.00")
        await change_merchant(till.database, till.shop.merchant_id, fees_returned=True)
        await till.give_back(payment_id, "2.50")
        assert (await till.accounts())["fees"] == Decimal("-0.45")
        await change_merchant(till.database, till.shop.merchant_id, fees_returned=False)
        await till.give_back(payment_id)
        assert await till.accounts() == {"available": Decimal("0.45"), "fees": Decimal("-0.45")}
        assert await till.problems() == []

    async def test_a_refund_that_was_asked_for_before_is_recorded_as_it_was_then(self, till: Till) -> None:
        payment_id = await till.sell()
        mute = till.at(LyingAcquirer(till.desk.acquirers["simulator"], Lies(lose_answers=1)))
        assert (await mute.give_back(payment_id)).status is RefundStatus.PROCESSING
        await change_merchant(till.database, till.shop.merchant_id, fees_returned=True)
        await till.finish(minutes=1)
        assert await till.accounts() == {"available": Decimal("0.6"), "fees": Decimal("-0.6")}

    async def test_settled_money_comes_out_of_the_available_balance(self, till: Till) -> None:
        payment_id = await till.sell()
        await till.database.execute(
            "update payment set settled_at = now(), revision = revision + 1 where id = $1", payment_id
        )
        await till.give_back(payment_id, "4.00")
        assert (await till.accounts())["available"] == Decimal("3.8")

    async def test_again_there_is_nothing_left(self, till: Till) -> None:
        payment_id = await till.sell()
        await till.give_back(payment_id)
        for amount in (None, "1.00", "0"):
            with pytest.raises(Malformed) as raised:
                await till.give_back(payment_id, amount)
            assert raised.value.message == "This transaction was already refunded"
        assert len(await till.told(but="payment")) == 1


class TestPartialRefunds:
    async def test_each_is_told_with_its_own_reference_and_the_total(self, till: Till) -> None:
        payment_id = await till.sell()
        parts = [await till.give_back(payment_id, amount) for amount in ("2.50", "0.01", None)]
        assert [part.status for part in parts] == [RefundStatus.PART, RefundStatus.PART, RefundStatus.WHOLE]
        assert [part.total for part in parts] == [Decimal("2.5"), Decimal("2.51"), Decimal(10)]
        assert len({part.reference_id for part in parts}) == 3
        told = [(one["event"], one["payment_order"]) for one in await till.told(but="payment")]
        assert [event for event, _ in told] == ["partial_refund", "partial_refund", "refund"]
        assert [order["status"] for _, order in told] == [
            "reversal_refunded_partially", "reversal_refunded_partially", "reversal_refunded",
        ]  # fmt: skip
        assert [order["refund_amount"] for _, order in told] == [Decimal("2.5"), Decimal("0.01"), Decimal("7.49")]
        assert [order["reference_id"] for _, order in told] == [part.reference_id for part in parts]

    async def test_many_take_from_the_ledger_exactly_what_one_takes(self, till: Till) -> None:
        await change_merchant(till.database, till.shop.merchant_id, fees_returned=True)
        payment_id = await till.sell(amount="0.37")
        for _ in range(37):
            await till.give_back(payment_id, "0.01")
        assert await till.accounts() == {}
        assert (await till.payment(payment_id))["state"] == "refunded"
        assert await till.problems() == []

    @pytest.mark.parametrize("amount", ["0", "-1", "10.01", "1.001", "0.001", "NaN", "Infinity", "-Infinity", "1E+30"])
    async def test_an_amount_that_can_t_be_given_back_is_refused(self, till: Till, amount: str) -> None:
        payment_id = await till.sell()
        with pytest.raises(Malformed) as raised:
            await till.give_back(payment_id, amount)
        assert raised.value.message.startswith("Invalid requested amount: ")
        assert till.standing().net == 10

    async def test_what_is_too_much_says_how_much_is_left(self, till: Till) -> None:
        payment_id = await till.sell()
        await till.give_back(payment_id, "4.00")
        with pytest.raises(Malformed) as raised:
            await till.give_back(payment_id, "6.01")
        assert raised.value.message == "Invalid requested amount: 6.01 USD is too much, 6.00 USD are left"
        assert not raised.value.passing

    async def test_what_is_too_much_beside_refunds_on_their_way_speaks_of_the_moment(self, till: Till) -> None:
        payment_id = await till.sell()
        deaf = till.at(LyingAcquirer(till.desk.acquirers["simulator"], Lies(lose_answers=1.0)))
        await deaf.give_back(payment_id, "4.00")
        for amount, passing in (("6.01", True), ("10.01", False)):
            with pytest.raises(Malformed, match=r"6\.00 USD are left, and 4\.00 USD on their way back") as raised:
                await till.give_back(payment_id, amount)
            assert raised.value.passing is passing

    @pytest.mark.parametrize(
        ("currency", "right", "wrong"),
        [
            ("JPY", "3", "3.5"),
            ("JPY", "3.00", "3.50"),
            ("BHD", "1.001", "1.0001"),
            ("USD", "1.5000", "1.5001"),
            ("USD", "1.000000000000000000", "1.000000000000000001"),
        ],
    )
    async def test_the_currency_says_how_many_decimals_there_are(
        self, till: Till, currency: str, right: str, wrong: str
    ) -> None:
        payment_id = await till.sell(amount="10", currency=currency)
        with pytest.raises(Malformed):
            await till.give_back(payment_id, wrong)
        assert (await till.give_back(payment_id, right)).amount == Decimal(right)
        assert await till.problems() == []

    async def test_twenty_at_once_never_give_back_more_than_was_taken(self, till: Till) -> None:
        payment_id = await till.sell()
        answers = await asyncio.gather(*(till.give_back(payment_id, "1.50") for _ in range(20)), return_exceptions=True)
        done = [one for one in answers if isinstance(one, Refund)]
        refused = [one for one in answers if isinstance(one, Malformed)]
        assert (len(done), len(refused)) == (6, 14)
        assert all(one.message.startswith("Invalid requested amount: 1.5 USD is too much") for one in refused)
        assert all(one.status is RefundStatus.PART for one in done)
        assert till.standing().net == 1
        assert (await till.payment(payment_id))["refunded"] == 9
        totals = [one["payment_order"]["total_refunded_amount"] for one in await till.told(but="payment")]
        assert totals == [Decimal("1.5") * number for number in range(1, 7)]

    async def test_twenty_who_want_all_get_it_once(self, till: Till) -> None:
        payment_id = await till.sell()
        answers = await asyncio.gather(*(till.give_back(payment_id) for _ in range(20)), return_exceptions=True)
        assert sum(isinstance(one, Refund) for one in answers) == 1
        assert sum(isinstance(one, Malformed) for one in answers) == 19
        assert till.standing().net == 0
        assert len(await till.told(but="payment")) == 1

    async def test_races_of_any_amounts_agree_with_the_bank(self, till: Till) -> None:
        chance = random.Random(4)
        for _ in range(10):
            payment_id = await till.sell()
            amounts = [f"{chance.randint(1, 400) / 100:.2f}" for _ in range(8)]
            answers = await asyncio.gather(
                *(till.give_back(payment_id, amount) for amount in [*amounts, None]), return_exceptions=True
            )
            given = sum(one.amount for one in answers if isinstance(one, Refund))
            payment = await till.payment(payment_id)
            assert (payment["refunded"], payment["refunding"]) == (given, 0)
            key = await till.database.fetchval(
                "select idempotency_key from payment_attempt where payment_id = $1", payment_id
            )
            assert standings(till.bank.record.operations())[key].net == 10 - given


class TestMoreDecimalsThanAcquirersTake:
    @pytest.fixture
    async def live(self, till: Till, bank: Bank) -> AsyncIterator[Till]:
        """The merchant's live side."""
        live_bank = live_bank_of(bank)
        acquirers = {**till.desk.acquirers, live_bank.name: live_bank}
        desk = replace(till.desk, acquirers=acquirers, live_acquirer=live_bank.name)
        yield replace(till, desk=desk, shop=replace(till.shop, live=True))
        await live_bank.close()

    async def test_of_a_live_payment_are_refused_before_a_refund_is_begun(self, live: Till) -> None:
        payment_id = await live.sell(amount="10.12", currency="KWD")
        with pytest.raises(Conflict, match=r"acquirers don't take 1\.125 KWD, .*; ask for 1\.13"):
            await live.give_back(payment_id, "1.125")
        assert await refunds_of(live.database, live.shop, payment_id) == []
        assert live.standing().net == Decimal("10.12")
        assert (await live.give_back(payment_id, "1.130")).status is RefundStatus.PART
        assert (await live.give_back(payment_id)).status is RefundStatus.WHOLE

    @pytest.mark.parametrize("parts", [[None], ["10.125"], ["0.125", "10"], ["10", "0.125"], ["5", None]])
    async def test_of_a_payment_that_was_made_with_them_are_given_back(
        self, live: Till, parts: list[str | None]
    ) -> None:
        payment_id = await live.sell(amount="10.13", currency="KWD")
        await breaking.say(live.database, "payment", {"id": payment_id}, amount=Decimal("10.125"))
        given = [await live.give_back(payment_id, part) for part in parts]
        assert (given[-1].status, given[-1].total) == (RefundStatus.WHOLE, Decimal("10.125"))
        assert live.standing().net == Decimal("0.005")

    async def test_the_rest_of_a_payment_is_given_back_as_it_is(self, live: Till) -> None:
        payment_id = await live.sell(amount="10.12", currency="KWD")
        part = await live.give_back(payment_id, "5.00")
        await breaking.say(live.database, "payment", {"id": payment_id}, refunded=Decimal("5.005"))
        assert (await live.give_back(payment_id, "5.115")).total > part.total

    @pytest.mark.parametrize(
        ("before", "asked", "said"),
        [("9.015", "1.103", "1.105"), ("10.115", "0.003", "0.005"), ("9.015", "1.093", "1.100")],
    )
    async def test_what_could_be_asked_for_instead_is_no_more_than_is_left(
        self, live: Till, before: str, asked: str, said: str
    ) -> None:
        payment_id = await live.sell(amount="10.12", currency="KWD")
        await live.give_back(payment_id, "5.00")
        await breaking.say(live.database, "payment", {"id": payment_id}, refunded=Decimal(before))
        with pytest.raises(Conflict, match=rf"don't take {asked} KWD, .*; ask for {said}"):
            await live.give_back(payment_id, asked)
        assert (await live.give_back(payment_id, said)).total == Decimal(before) + Decimal(said)

    async def test_of_what_is_not_captured_yet_it_is_said_that_no_part_can_be_given_back(self, live: Till) -> None:
        """And not what could be asked for, which would be refused, too."""
        await ships(live.database, live.shop)
        payment_id = await live.sell(amount="10.12", currency="KWD")
        with pytest.raises(Malformed, match="not captured yet"):
            await live.give_back(payment_id, "1.125")
        assert (await live.give_back(payment_id, "10.120")).status is RefundStatus.WHOLE

    async def test_of_a_test_payment_are_given_back(self, till: Till) -> None:
        payment_id = await till.sell(amount="10.12", currency="KWD")
        assert (await till.give_back(payment_id, "1.125")).status is RefundStatus.PART


class TestWhatIsNotPaid:
    async def test_an_unknown_payment_and_another_merchant_s_are_not_found(self, till: Till, other_shop: Shop) -> None:
        payment_id = await till.sell()
        for shop, asked in (
            (till.shop, 2**50),
            (other_shop, payment_id),
            (replace(till.shop, live=True), payment_id),
        ):
            with pytest.raises(NotFound):
                await refunding.refund(till.desk, shop, asked, None, requested_by="api", now=utc_now())
        assert till.standing().net == 10

    @pytest.mark.parametrize("state", ["processing", "challenged", "declined", "charged_back"])
    async def test_what_is_not_paid_or_was_charged_back_is_a_conflict(self, till: Till, state: str) -> None:
        payment_id = await till.sell()
        await till.database.execute("alter table payment disable trigger guarded")
        await till.database.execute(
            "update payment set state = $2, charged_back = case when $2 = 'charged_back' then amount else 0 end"
            " where id = $1",
            payment_id,
            state,
        )
        await till.database.execute("alter table payment enable trigger guarded")
        with pytest.raises(Conflict):
            await till.give_back(payment_id)
        assert till.standing().net == 10

    async def test_what_cost_nothing_is_a_conflict(self, till: Till) -> None:
        payment_id = await till.sell()
        await breaking.say(till.database, "payment", {"id": payment_id}, amount=0)
        with pytest.raises(Conflict, match="cost nothing"):
            await till.give_back(payment_id)


class TestAnAuthorization:
    async def test_it_is_voided_and_told_as_a_refund(self, till: Till) -> None:
        payment_id = await held(till)
        assert till.standing().held == 10
        refund = await till.give_back(payment_id, "10.00")
        assert (refund.status, refund.amount, refund.total) == (RefundStatus.WHOLE, TEN, TEN)
        payment = await till.payment(payment_id)
        assert (payment["state"], payment["moving_id"], payment["ship_by"]) == ("voided", None, None)
        assert not till.standing().held
        assert not till.standing().net
        (told,) = await till.told(but="payment")
        assert (told["event"], told["payment_order"]["status"]) == ("refund", "reversal_refunded")
        assert told["payment_order"]["reference_id"] == refund.reference_id
        assert await till.accounts() == {}
        assert await till.problems() == []

    async def test_one_that_the_bank_declined_after_all_is_held_no_more(self, till: Till) -> None:
        """As an intent at Stripe whose capture failed: no later answer would be another."""
        payment_id = await held(till)

        async def declined(*_: Any) -> Declined:
            return Declined(DeclineReason.DECLINED)

        gone = till.at(answering(till.desk.acquirers["simulator"], void=declined))
        refund = await gone.give_back(payment_id, "10.00")
        assert refund.status is RefundStatus.WHOLE
        payment = await till.payment(payment_id)
        assert (payment["state"], payment["moving_id"], payment["ship_by"]) == ("voided", None, None)
        assert len(await till.told(but="payment")) == 1

    async def test_only_all_of_it_can_be_given_back(self, till: Till) -> None:
        payment_id = await held(till)
        with pytest.raises(Malformed, match="not captured yet"):
            await till.give_back(payment_id, "4.00")
        with pytest.raises(Malformed, match="Invalid requested amount"):
            await till.give_back(payment_id, "10.01")
        assert till.standing().held == 10

    async def test_again_there_is_nothing_left(self, till: Till) -> None:
        payment_id = await held(till)
        await till.give_back(payment_id)
        with pytest.raises(Malformed, match="already refunded"):
            await till.give_back(payment_id)

    async def test_while_it_is_being_captured_it_is_a_conflict(self, till: Till) -> None:
        payment_id = await held(till)
        deaf = till.at(LyingAcquirer(till.desk.acquirers["simulator"], Lies(lose_answers=1.0)))
        said: dict[str, Any] = {"status": "delivered", "type": "digital", "payment_order_id": payment_id}
        order, delivery = read_order(said), read_delivery(said)
        await confirm(deaf.desk, till.shop, order, delivery, now=utc_now())
        with pytest.raises(Conflict, match="being captured"):
            await till.give_back(payment_id)
        await till.finish(minutes=1)
        assert (await till.payment(payment_id))["state"] == "captured"
        assert (await till.give_back(payment_id, "4.00")).status is RefundStatus.PART
        assert till.standing().net == 6

    async def test_twenty_who_want_it_back_void_it_once(self, till: Till) -> None:
        payment_id = await held(till)
        answers = await asyncio.gather(*(till.give_back(payment_id) for _ in range(20)), return_exceptions=True)
        assert sum(isinstance(one, Refund) for one in answers) == 1
        assert all(isinstance(one, Refund | Malformed | Conflict) for one in answers)
        assert len(await till.told(but="payment")) == 1


class TestAnAcquirerThat:
    async def test_answers_late_leaves_it_processing_until_the_janitor_finds_it(self, till: Till) -> None:
        payment_id = await till.sell()
        late = till.at(LyingAcquirer(till.desk.acquirers["simulator"], Lies(lose_answers=1)))
        refund = await late.give_back(payment_id, "4.00")
        assert (refund.status, refund.amount, refund.total) == (RefundStatus.PROCESSING, Decimal(4), Decimal(0))
        assert (await till.payment(payment_id))["refunding"] == 4
        assert await till.told(but="payment") == []
        assert await till.finish(seconds=5) == 0, "its call may still be under way"
        assert await till.finish(minutes=1) == 1
        assert (await till.payment(payment_id))["refunded"] == 4
        assert till.standing().net == 6
        assert [one["payment_order"]["reference_id"] for one in await till.told(but="payment")] == [refund.reference_id]
        assert await till.finish(minutes=1) == 0

    async def test_never_got_the_question_gets_it_once_more_under_the_same_key(self, till: Till) -> None:
        payment_id = await till.sell()
        deaf = till.at(LyingAcquirer(till.desk.acquirers["simulator"], Lies(lose_questions=1)))
        assert (await deaf.give_back(payment_id)).status is RefundStatus.PROCESSING
        assert till.standing().net == 10
        assert await till.finish(minutes=1) == 1
        assert till.standing().net == 0
        assert (await till.payment(payment_id))["state"] == "refunded"

    async def test_knows_late_what_it_did_does_not_do_it_twice(self, till: Till) -> None:
        payment_id = await till.sell()
        slow = till.at(LyingAcquirer(till.desk.acquirers["simulator"], Lies(lose_answers=1, hide_for=3600)))
        await slow.give_back(payment_id, "3.00")
        await slow.finish()
        await till.finish(hours=2)
        assert till.standing().net == 7
        assert (await till.payment(payment_id))["refunded"] == 3

    async def test_refuses_gives_its_reason_and_frees_what_was_reserved(
        self, till: Till, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        payment_id = await till.sell()
        acquirer = type(till.desk.acquirers["simulator"])
        with monkeypatch.context() as refusing:

            async def refuse(*_: Any) -> str:
                raise AcquirerRefused("the account is closed")

            refusing.setattr(acquirer, "refund", refuse)
            with pytest.raises(Conflict, match="the account is closed"):
                await till.give_back(payment_id, "4.00", key="k-1")
            with pytest.raises(Conflict, match="the account is closed"):
                await till.give_back(payment_id, "4.00", key="k-1")
        payment = await till.payment(payment_id)
        assert (payment["state"], payment["refunding"], payment["refunded"]) == ("captured", 0, 0)
        assert await till.told(but="payment") == []
        assert (await till.give_back(payment_id)).status is RefundStatus.WHOLE

    async def test_is_slow_is_written_down_though_the_caller_went_away(
        self, till: Till, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        payment_id = await till.sell()
        acquirer = type(till.desk.acquirers["simulator"])
        honest, reached, answer = acquirer.refund, asyncio.Event(), asyncio.Event()

        async def slowly(self: Any, *asked: Any) -> str:
            reference: str = await honest(self, *asked)
            reached.set()
            await answer.wait()
            return reference

        monkeypatch.setattr(acquirer, "refund", slowly)
        caller = asyncio.create_task(till.give_back(payment_id))
        await reached.wait()
        caller.cancel()
        await asyncio.gather(caller, return_exceptions=True)
        answer.set()
        await till.desk.finish()
        assert (await till.payment(payment_id))["state"] == "refunded"
        assert len(await till.told(but="payment")) == 1

    async def test_never_answered_a_dead_process_is_asked_by_the_janitor(self, till: Till) -> None:
        payment_id = await till.sell()
        await movement_queries.begin_refund(
            till.database, merchant_id=till.shop.merchant_id, live=False, payment_id=payment_id,
            amount=None, requested_by="api", most_of_payment=None, most_of_day=None,
            request_key=None, drawn=False, seen=None, pads=till.desk.pads, lookup_at=utc_now(), now=utc_now(),
        )  # fmt: skip
        stop = asyncio.Event()
        janitor = asyncio.create_task(run_janitor(till.desk, stop, pause=0.01))
        for _ in range(1000):
            if (await till.payment(payment_id))["state"] == "refunded":
                break
            await asyncio.sleep(0.01)
        stop.set()
        await janitor
        assert (await till.payment(payment_id))["state"] == "refunded"
        assert till.standing().net == 0

    async def test_is_silent_for_a_day_raises_the_alarm(self, till: Till, monkeypatch: pytest.MonkeyPatch) -> None:
        payment_id = await till.sell()

        async def silent(*_: Any) -> str:
            raise OutcomeUnknown("nobody answers")

        acquirer = type(till.desk.acquirers["simulator"])
        monkeypatch.setattr(acquirer, "refund", silent)
        monkeypatch.setattr(acquirer, "find_movement", silent)
        assert (await till.give_back(payment_id)).status is RefundStatus.PROCESSING
        for hours in (1, 3, 25):
            assert await till.finish(hours=hours) == 1
        row = await till.database.fetchrow("select * from movement where payment_id = $1", payment_id)
        assert (row["lookups"], row["state"]) == (3, "processing")
        assert row["alerted_at"] is not None
        await watch_open_outcomes(till.database, now=utc_now() + timedelta(minutes=2))
        assert OPEN_OUTCOMES._value.get() >= 1

    @long
    async def test_contradicts_itself_holds_up_nobody_else(self, till: Till) -> None:
        late = till.at(LyingAcquirer(till.desk.acquirers["simulator"], Lies(lose_answers=1)))
        odd, even = await till.sell(), await till.sell()
        for payment_id in (odd, even):
            await late.give_back(payment_id, "4.00")
        # Somebody's hand wrote what can't be: with this refund more would be given back than
        # was taken.
        await till.database.execute(
            "update payment set state = 'partially_refunded', refunded = 8, refunding = 0, revision = revision + 1"
            " where id = $1",
            odd,
        )
        assert await till.finish(minutes=1) == 2
        alarms = await till.database.fetch(
            "select subject, reason from alarm a join movement m on a.subject = 'refund ' || m.id"
            " where m.payment_id = any($1::bigint[])",
            [odd, even],
        )
        assert len(alarms) == 1
        assert "it does not fit its payment: CheckViolationError" in alarms[0]["reason"]
        assert [(await till.payment(one))["refunded"] for one in (odd, even)] == [8, 4]
        assert await till.finish(minutes=3) == 1, "it is asked for again"

    async def test_loses_what_it_likes_ends_in_agreement(self, till: Till) -> None:
        payment_id = await till.sell()
        bad = till.at(
            LyingAcquirer(till.desk.acquirers["simulator"], Lies(lose_questions=0.4, lose_answers=0.4, seed=7))
        )
        await asyncio.gather(*(bad.give_back(payment_id, "0.30") for _ in range(30)))
        for round_ in range(12):
            await bad.finish(hours=2 * round_ + 1)
        await till.finish(hours=50)
        payment = await till.payment(payment_id)
        assert (payment["refunded"], payment["refunding"]) == (9, 0)
        assert till.standing().net == 1
        assert len(await till.told(but="payment")) == 30
        assert await till.problems() == []


class TestTheSameKeyAgain:
    async def test_moves_money_once_however_often_and_at_once(self, till: Till) -> None:
        payment_id = await till.sell()
        answers = await asyncio.gather(*(till.give_back(payment_id, "2.00", key="k-1") for _ in range(10)))
        assert len({one.reference_id for one in answers}) == 1
        assert till.standing().net == 8
        assert (await till.give_back(payment_id, "2.00", key="k-1")).status is RefundStatus.PART
        assert len(await till.told(but="payment")) == 1

    async def test_finds_what_a_dead_process_had_begun(self, till: Till) -> None:
        payment_id = await till.sell()
        await movement_queries.begin_refund(
            till.database, merchant_id=till.shop.merchant_id, live=False, payment_id=payment_id,
            amount=Decimal("2.00"), requested_by="api", most_of_payment=None, most_of_day=None,
            request_key="k-1", drawn=False, seen=None, pads=till.desk.pads, lookup_at=first_look(), now=utc_now(),
        )  # fmt: skip
        again = await till.give_back(payment_id, "2.00", key="k-1")
        assert again.status is RefundStatus.PROCESSING
        await till.finish(minutes=1)
        assert (await till.give_back(payment_id, "2.00", key="k-1")).reference_id == again.reference_id
        assert till.standing().net == 8

    async def test_for_something_else_is_a_conflict(self, till: Till) -> None:
        first, second = await till.sell(), await till.sell()
        await till.give_back(first, "2.00", key="k-1")
        for payment_id, amount in ((first, "3.00"), (second, "2.00"), (second, None)):
            with pytest.raises(Conflict, match="another request"):
                await till.give_back(payment_id, amount, key="k-1")


class TestTheAccount:
    async def test_can_mute_what_is_told_but_never_the_money(self, till: Till) -> None:
        await change_merchant(till.database, till.shop.merchant_id, muted=["partial_refund"])
        payment_id = await till.sell()
        await till.give_back(payment_id, "4.00")
        await till.give_back(payment_id)
        assert [one["event"] for one in await till.told(but="payment")] == ["refund"]
        assert await till.problems() == []
        assert till.standing().net == 0

    async def test_sees_each_refund_with_its_state(self, till: Till) -> None:
        payment_id = await till.sell()
        await till.give_back(payment_id, "4.00")
        late = till.at(LyingAcquirer(till.desk.acquirers["simulator"], Lies(lose_answers=1)))
        await late.give_back(payment_id, "1.00")
        seen = await refunds_of(till.database, till.shop, payment_id)
        assert [(str(one.state), one.amount) for one in seen] == [("done", Decimal(4)), ("processing", Decimal(1))]
