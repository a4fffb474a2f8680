from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import asyncpg
import pytest
from tests import breaking
from tests.adapters.acquirers.simulator.lying import Lies, LyingAcquirer
from tests.shopfront import MONTHLY
from tests.standings import standings

from paydesk.adapters.acquirers.interface import AcquirerRefused, OutcomeUnknown
from paydesk.adapters.acquirers.simulator.record import Kind
from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict, Malformed, NotFound, Unsure
from paydesk.database import surely
from paydesk.database.pool import Database
from paydesk.domain.deliveries import confirming
from paydesk.domain.deliveries.confirming import Result
from paydesk.domain.deliveries.timeline import read_timeline
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments import movements

WEEK = timedelta(days=7)


class TestAuthorizing:
    async def test_goods_that_are_shipped_are_only_held_and_the_shop_is_told_to_ship(self, warehouse: Any) -> None:
        payment_id = await warehouse.sell()
        row = await warehouse.payment(payment_id)
        assert (row["state"], row["ship_by"] - row["paid_at"]) == ("authorized", WEEK)
        assert row["ship_by"] - row["shipping_due_at"] == timedelta(days=1)
        assert (row["captured_at"], row["funds_due_at"]) == (None, None)
        (pingback,) = await warehouse.rows("pingback", payment_id)
        assert pingback["event"] == "payment"
        assert '"status":"successful"' in pingback["payload"]
        assert await warehouse.rows("ledger_entry", payment_id) == []
        assert await warehouse.at_the_bank(payment_id) == [Kind.AUTHORIZE]
        assert (await standing(warehouse, payment_id)).net == 0

    async def test_a_subscription_of_such_a_merchant_is_taken_at_once(self, warehouse: Any) -> None:
        payment_id = await warehouse.sell(terms=MONTHLY)
        row = await warehouse.payment(payment_id)
        assert (row["state"], row["ship_by"], row["shipping_due_at"]) == ("captured", None, None)
        assert row["funds_due_at"] - row["captured_at"] == WEEK

    async def test_an_acquirer_that_lets_go_too_soon_gets_no_such_payment(self, warehouse: Any) -> None:
        acquirer = LyingAcquirer(warehouse.desk.acquirers["simulator"], Lies())
        acquirer.hold_period = timedelta(days=5)
        with pytest.raises(Exception, match="holds money for 5 days, and goods that are shipped need 7 days"):
            await warehouse.at(acquirer).sell("too-short")
        assert (
            await warehouse.desk.database.fetchval(
                "select count(*) from payment where merchant_id = $1", warehouse.shop.merchant_id
            )
            == 0
        )


async def standing(warehouse: Any, payment_id: int) -> Any:
    key = await warehouse.desk.database.fetchval(
        "select idempotency_key from payment_attempt where payment_id = $1", payment_id
    )
    return standings(warehouse.bank.record.operations())[key]


class TestShipping:
    async def test_a_shipment_takes_the_money_and_sends_no_second_pingback(self, warehouse: Any) -> None:
        payment_id = await warehouse.sell()
        confirmed = await warehouse.confirm(payment_id)
        assert confirmed.result is Result.CAPTURED
        row = await warehouse.payment(payment_id)
        assert (row["state"], row["moving_id"], row["ship_by"], row["shipping_due_at"]) == (
            "captured",
            None,
            None,
            None,
        )
        assert row["funds_due_at"] - row["captured_at"] == WEEK
        entries = {one["account"]: one["amount"] for one in await warehouse.rows("ledger_entry", payment_id)}
        assert entries == {
            "acquirer": row["amount"], "pending": -row["net"], "reserve": -row["reserve"], "fees": -row["fees"]
        }  # fmt: skip
        assert await warehouse.events(payment_id) == ["payment"]
        assert (await standing(warehouse, payment_id)).net == row["amount"]

    async def test_the_timeline_keeps_what_was_said(self, warehouse: Any) -> None:
        payment_id = await warehouse.sell()
        for status in ("order_placed", "order_shipped", "delivered"):
            await warehouse.confirm(
                payment_id,
                status=status,
                notify_user=True,
                refundable="0",
                estimated_delivery_datetime="2020-02-14 11:41:14 +0530",
                attachments=["https://shop.example/invoice.pdf"],
                shipping_address={"country_code": "GB", "city": "London", "state": "N/A"},
            )
        lines = await read_timeline(warehouse.desk.database, warehouse.shop, payment_id)
        assert [line.status for line in lines] == ["order_placed", "order_shipped", "delivered"]
        assert {line.tracking_url for line in lines} == {
            "https://www.dhl.com/global-en/home/tracking.html?tracking-id=00340434161094021501"
        }
        first = lines[0]
        assert (first.notify_user, first.refundable, first.attachments) == (
            True, False, ["https://shop.example/invoice.pdf"]
        )  # fmt: skip
        assert first.shipping_address == {"country_code": "GB", "city": "London"}
        assert first.estimated_at is not None
        assert first.estimated_at.isoformat() == "2020-02-14T06:11:14+00:00"

    @pytest.mark.parametrize("fields", [{"status": "order_placed"}, {"status": "delivered"}])
    async def test_what_does_not_ship_is_recorded_and_takes_nothing(self, warehouse: Any, fields: Any) -> None:
        payment_id = await warehouse.sell()
        assert (await warehouse.confirm(payment_id, **fields)).result is Result.RECORDED
        assert await warehouse.state(payment_id) == "authorized"
        assert len(await warehouse.rows("delivery", payment_id)) == 1

    async def test_a_held_digital_order_is_taken_when_it_is_delivered(self, warehouse: Any) -> None:
        payment_id = await warehouse.sell()
        confirmed = await warehouse.confirm(payment_id, status="delivered", type="digital")
        assert (confirmed.result, await warehouse.state(payment_id)) == (Result.CAPTURED, "captured")

    async def test_for_an_order_that_is_taken_already_nothing_moves(self, warehouse: Any) -> None:
        payment_id = await warehouse.sell(terms=MONTHLY)
        before = await warehouse.rows("ledger_entry", payment_id)
        for fields in ({"status": "delivered", "type": "digital"}, {}):
            assert (await warehouse.confirm(payment_id, **fields)).result is Result.RECORDED
        assert await warehouse.rows("ledger_entry", payment_id) == before
        assert await warehouse.rows("movement", payment_id) == []
        assert len(await warehouse.rows("delivery", payment_id)) == 2

    async def test_the_shops_own_reference_finds_the_order(self, warehouse: Any) -> None:
        payment_id = await warehouse.sell("A-17")
        for name in ("merchant_reference_id", "merchant_order_id"):
            confirmed = await warehouse.confirm(0, payment_order_id="N/A", **{name: "A-17"})
            assert (confirmed.payment_id, confirmed.merchant_order_id) == (payment_id, "A-17")


class TestAgain:
    async def test_the_same_confirmation_gets_the_same_answer_and_captures_once(self, warehouse: Any) -> None:
        payment_id = await warehouse.sell()
        first = await warehouse.confirm(payment_id)
        assert await warehouse.confirm(payment_id, now=utc_now() + timedelta(days=1)) == first
        # The same, said with other words.
        assert await warehouse.confirm(str(payment_id), details="N/A", carrier_type=" DHL ") == first
        assert await warehouse.at_the_bank(payment_id) == [Kind.AUTHORIZE, Kind.CAPTURE]
        assert len(await warehouse.rows("delivery", payment_id)) == 1

    async def test_sent_twenty_times_at_once_it_has_one_answer_and_one_capture(self, warehouse: Any) -> None:
        payment_id = await warehouse.sell()
        answers = await asyncio.gather(*(warehouse.confirm(payment_id) for _ in range(20)))
        assert answers == [answers[0]] * 20
        assert answers[0].result is Result.CAPTURED
        assert await warehouse.at_the_bank(payment_id) == [Kind.AUTHORIZE, Kind.CAPTURE]
        assert len(await warehouse.rows("delivery", payment_id)) == 1

    async def test_two_parcels_at_once_are_two_lines_and_one_capture(self, warehouse: Any) -> None:
        payment_id = await warehouse.sell()
        answers = await asyncio.gather(
            *(warehouse.confirm(payment_id, carrier_tracking_id=f"parcel {number}") for number in range(8))
        )
        assert {one.result for one in answers} == {Result.CAPTURED}
        assert len({one.delivery_id for one in answers}) == 8
        assert await warehouse.at_the_bank(payment_id) == [Kind.AUTHORIZE, Kind.CAPTURE]


class TestAConnectionThatBreaks:
    @pytest.mark.parametrize("committed", [True, False])
    async def test_over_a_shipment_captures_once(
        self, warehouse: Any, committed: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        payment_id = await warehouse.sell()
        honest = confirming.queries.record_delivery
        lost: list[int] = []

        async def lose(connection: Any, **said: Any) -> Any:
            row = await honest(connection, **said) if committed or lost else None
            if not lost:
                lost.append(1)
                raise asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation")
            return row

        monkeypatch.setattr(confirming.queries, "record_delivery", lose)
        assert (await warehouse.confirm(payment_id)).result is Result.CAPTURED
        assert len(await warehouse.rows("delivery", payment_id)) == 1
        assert (await warehouse.at_the_bank(payment_id)).count(Kind.CAPTURE) == 1
        assert await warehouse.problems() == []

    async def test_for_long_over_a_shipment_leaves_one_that_can_be_confirmed_again(
        self, warehouse: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        payment_id = await warehouse.sell()
        honest = confirming.queries.record_delivery

        async def lose(connection: Any, **said: Any) -> Any:
            await honest(connection, **said)
            raise asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation")

        async def stay_away(*_: Any, **__: Any) -> Any:
            raise OSError("the database is away")

        with monkeypatch.context() as away:
            away.setattr(confirming.queries, "record_delivery", lose)
            away.setattr(movements.queries, "find_intent", stay_away)
            away.setattr(surely, "PATIENCE", 0)
            with pytest.raises(Unsure):
                await warehouse.confirm(payment_id)
        await movements.finish_movements(warehouse.desk, now=utc_now() + movements.FIRST_LOOK * 2)
        assert (await warehouse.confirm(payment_id)).result is Result.CAPTURED
        assert len(await warehouse.rows("delivery", payment_id)) == 1
        assert (await warehouse.at_the_bank(payment_id)).count(Kind.CAPTURE) == 1


class TestTheBankInBetween:
    async def test_a_refusal_is_told_with_its_reason_and_the_order_stays_held(self, warehouse: Any) -> None:
        payment_id = await warehouse.sell()
        acquirer = LyingAcquirer(warehouse.desk.acquirers["simulator"], Lies())

        async def refuse(*_: Any) -> None:
            raise AcquirerRefused("the card was reported stolen")

        acquirer.capture = refuse  # type: ignore[assignment,method-assign]
        for _ in range(2):
            with pytest.raises(Conflict, match="would not capture the payment: the card was reported stolen"):
                await warehouse.at(acquirer).confirm(payment_id)
        row = await warehouse.payment(payment_id)
        assert (row["state"], row["moving_id"]) == ("authorized", None)
        assert row["ship_by"] is not None
        # Once the bank is willing, the same confirmation takes the money.
        assert (await warehouse.confirm(payment_id)).result is Result.CAPTURED
        assert len(await warehouse.rows("delivery", payment_id)) == 1

    async def test_a_lost_answer_is_recorded_as_processing_and_found_out_later(self, warehouse: Any) -> None:
        payment_id = await warehouse.sell()
        deaf = LyingAcquirer(warehouse.desk.acquirers["simulator"], Lies(lose_answers=1.0))
        confirmed = await warehouse.at(deaf).confirm(payment_id)
        assert (confirmed.result, await warehouse.state(payment_id)) == (Result.PROCESSING, "authorized")
        assert await warehouse.finish(minutes=1) == 1
        assert await warehouse.state(payment_id) == "captured"
        again = await warehouse.confirm(payment_id)
        assert (again.delivery_id, again.result) == (confirmed.delivery_id, Result.CAPTURED)
        assert await warehouse.at_the_bank(payment_id) == [Kind.AUTHORIZE, Kind.CAPTURE]

    async def test_a_lost_question_is_asked_again_under_the_same_key(self, warehouse: Any) -> None:
        payment_id = await warehouse.sell()
        mute = LyingAcquirer(warehouse.desk.acquirers["simulator"], Lies(lose_questions=1.0))
        assert (await warehouse.at(mute).confirm(payment_id)).result is Result.PROCESSING
        assert await warehouse.at_the_bank(payment_id) == [Kind.AUTHORIZE]
        await warehouse.finish(minutes=1)
        assert await warehouse.state(payment_id) == "captured"
        (movement,) = await warehouse.rows("movement", payment_id)
        assert (movement["kind"], movement["state"], movement["requested_by"]) == ("capture", "done", "delivery")

    async def test_one_that_waits_in_vain_for_another_says_processing(
        self, warehouse: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        payment_id = await warehouse.sell()
        deaf = LyingAcquirer(warehouse.desk.acquirers["simulator"], Lies(lose_answers=1.0))
        first = await warehouse.at(deaf).confirm(payment_id)
        monkeypatch.setattr("paydesk.domain.deliveries.confirming.PATIENCE", 0.0)
        assert await warehouse.confirm(payment_id) == first

    async def test_an_unknown_capture_blocks_the_void_however_late(self, warehouse: Any) -> None:
        payment_id = await warehouse.sell()
        deaf = LyingAcquirer(warehouse.desk.acquirers["simulator"], Lies(lose_answers=1.0))
        await warehouse.at(deaf).confirm(payment_id)
        assert await warehouse.act(days=8) == 0
        assert await warehouse.at_the_bank(payment_id) == [Kind.AUTHORIZE, Kind.CAPTURE]
        await warehouse.finish(minutes=1)
        assert await warehouse.state(payment_id) == "captured"
        assert await warehouse.act(days=9) == 0


class TestRefusals:
    """Each is an error that says what is wrong, and nothing changes."""

    async def unchanged(
        self, warehouse: Any, payment_id: int, error: type[Exception], words: str, **fields: Any
    ) -> None:
        with pytest.raises(error, match=words):
            await warehouse.confirm(payment_id, **fields)
        assert await warehouse.rows("delivery", payment_id) == []
        assert await warehouse.rows("movement", payment_id) == []

    async def test_an_unknown_order(self, warehouse: Any) -> None:
        await self.unchanged(warehouse, 2**52, NotFound, "there is no payment")
        await self.unchanged(
            warehouse, 0, NotFound, 'there is no order "A-99"', payment_order_id="", merchant_reference_id="A-99"
        )

    async def test_another_merchants_order(self, warehouse: Any, other_shop: Shop) -> None:
        payment_id = await warehouse.sell("A-1")
        thief = type(warehouse)(warehouse.desk, other_shop, warehouse.bank)
        for fields in ({}, {"payment_order_id": "", "merchant_reference_id": "A-1"}):
            with pytest.raises(NotFound):
                await thief.confirm(payment_id, **fields)
        live = type(warehouse)(warehouse.desk, Shop(warehouse.shop.merchant_id, live=True), warehouse.bank)
        with pytest.raises(NotFound):
            await live.confirm(payment_id)
        assert (await warehouse.state(payment_id), await warehouse.rows("delivery", payment_id)) == ("authorized", [])

    async def test_an_id_and_a_reference_of_different_orders(self, warehouse: Any) -> None:
        payment_id, _ = await warehouse.sell("A-1"), await warehouse.sell("A-2")
        await self.unchanged(warehouse, payment_id, Malformed, "don't belong together", merchant_reference_id="A-2")
        assert (await warehouse.confirm(payment_id, merchant_reference_id="A-1")).result is Result.CAPTURED

    @pytest.mark.parametrize(
        ("fields", "words"),
        [
            ({"amount": "9.99"}, "a partial shipment can't be confirmed"),
            ({"quantity": "0.5"}, "a partial shipment can't be confirmed"),
            ({"amount": "10.01"}, "amount is more than the order's 10 USD"),
        ],
    )
    async def test_a_part_of_the_order(self, warehouse: Any, fields: Any, words: str) -> None:
        payment_id = await warehouse.sell()
        await self.unchanged(warehouse, payment_id, Malformed, words, **fields)
        assert (await warehouse.confirm(payment_id, amount="10.0", quantity=1)).result is Result.CAPTURED

    async def test_fewer_than_the_form_said(self, warehouse: Any, database: Database) -> None:
        payment_id = await warehouse.sell()
        await breaking.say(
            database, "checkout", {"merchant_id": warehouse.shop.merchant_id}, parameters='{"quantity": "3"}'
        )
        await self.unchanged(warehouse, payment_id, Malformed, "less than the order's 3", quantity="2")
        assert (await warehouse.confirm(payment_id, quantity="3")).result is Result.CAPTURED

    @pytest.mark.parametrize("status", ["order_placed", "order_shipped", "delivered"])
    async def test_an_order_that_was_voided(self, warehouse: Any, status: str) -> None:
        payment_id = await warehouse.sell()
        assert await warehouse.act(days=7) == 1
        with pytest.raises(Conflict, match="was voided and its money released"):
            await warehouse.confirm(payment_id, status=status)
        assert await warehouse.rows("delivery", payment_id) == []
        assert await warehouse.at_the_bank(payment_id) == [Kind.AUTHORIZE, Kind.VOID]

    async def test_an_order_whose_time_is_over_though_nobody_voided_it_yet(self, warehouse: Any) -> None:
        payment_id = await warehouse.sell()
        late = utc_now() + WEEK
        await self.unchanged(warehouse, payment_id, Conflict, "was to be shipped by", now=late)
        assert await warehouse.state(payment_id) == "authorized"

    async def test_an_order_that_is_being_voided(self, warehouse: Any) -> None:
        payment_id = await warehouse.sell()
        mute = LyingAcquirer(warehouse.desk.acquirers["simulator"], Lies(lose_questions=1.0))
        assert await warehouse.at(mute).act(days=7) == 1
        with pytest.raises(Conflict, match="is being voided"):
            await warehouse.confirm(payment_id)
        assert await warehouse.rows("delivery", payment_id) == []
        await warehouse.finish(minutes=1)
        assert await warehouse.state(payment_id) == "voided"

    @pytest.mark.parametrize("state", ["declined", "processing", "challenged"])
    async def test_an_order_that_is_not_paid(self, warehouse: Any, database: Database, state: str) -> None:
        payment_id = await warehouse.sell()
        await breaking.say(database, "payment", {"id": payment_id}, state=state)
        await self.unchanged(warehouse, payment_id, Conflict, f"is not paid: it is {state}")


async def test_what_was_shipped_passes_the_check(warehouse: Any) -> None:
    payment_id = await warehouse.sell()
    await warehouse.confirm(payment_id)
    assert await warehouse.problems() == []


async def test_a_bank_that_breaks_down_leaves_the_capture_to_the_janitor(warehouse: Any) -> None:
    payment_id = await warehouse.sell()
    acquirer = LyingAcquirer(warehouse.desk.acquirers["simulator"], Lies())

    async def vanish(*_: Any) -> None:
        raise OutcomeUnknown("no answer")

    acquirer.capture = vanish  # type: ignore[assignment,method-assign]
    assert (await warehouse.at(acquirer).confirm(payment_id)).result is Result.PROCESSING
