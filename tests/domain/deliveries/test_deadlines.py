from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from random import Random
from typing import Any

import pytest
from tests import set_back
from tests.adapters.acquirers.simulator.lying import Lies, LyingAcquirer
from tests.lengths import at_length, long

from paydesk.adapters.acquirers.interface import AcquirerRefused, Captured, Voided
from paydesk.adapters.acquirers.simulator.record import Kind
from paydesk.adapters.outbound import OutboundClient
from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict, Malformed
from paydesk.core.periods import Period
from paydesk.database.pool import Database
from paydesk.domain.deliveries import deadlines
from paydesk.domain.deliveries.confirming import Result
from paydesk.domain.deliveries.deadlines import act_on_due, run_deadlines
from paydesk.domain.merchants.merchant import change_merchant
from paydesk.domain.payments.refunding import refund
from paydesk.domain.pingbacks.sending import PingbackSender, SenderSettings
from paydesk.domain.test_clock.advancing import Summary, What, advance

WEEK = timedelta(days=7)


async def reference_of(warehouse: Any, payment_id: int) -> str:
    """What the bank calls a payment's purchase."""
    return str(
        await warehouse.desk.database.fetchval(
            "select acquirer_reference from payment_attempt where merchant_id = $1 and payment_id = $2",
            warehouse.shop.merchant_id,
            payment_id,
        )
    )


async def mails(warehouse: Any) -> list[Mapping[str, Any]]:
    return list(
        await warehouse.desk.database.fetch(
            "select * from mail where merchant_id = $1 order by id", warehouse.shop.merchant_id
        )
    )


class TestReminders:
    async def test_a_day_before_the_merchant_is_reminded_once(self, warehouse: Any) -> None:
        payment_id = await warehouse.sell("A-1")
        ship_by = (await warehouse.payment(payment_id))["ship_by"]
        assert await warehouse.act(days=5, hours=23, minutes=59) == 0
        assert await warehouse.act(days=6) == 1
        assert await warehouse.act(days=6, hours=23) == 0
        (mail,) = await mails(warehouse)
        assert (mail["kind"], mail["recipient"], mail["live"], mail["state"]) == (
            "void_reminder", "owner@mugs.example", False, "due"
        )  # fmt: skip
        assert json.loads(mail["facts"]) == {
            "merchant_id": warehouse.shop.merchant_id,
            "payment_id": payment_id,
            "merchant_order_id": "A-1",
            "amount": "10",
            "currency": "USD",
            "ship_by": f"{ship_by:%Y-%m-%dT%H:%M:%SZ}",
        }
        assert mail["due_at"] <= utc_now(), "mail is sent in real time, however far a test clock runs ahead"
        assert (await warehouse.payment(payment_id))["state"] == "authorized"

    async def test_many_workers_remind_once(self, warehouse: Any) -> None:
        for _ in range(5):
            await warehouse.sell()
        assert sum(await asyncio.gather(*(warehouse.act(days=6) for _ in range(6)))) == 5
        assert len(await mails(warehouse)) == 5

    async def test_what_was_shipped_needs_no_reminder(self, warehouse: Any) -> None:
        payment_id = await warehouse.sell()
        await warehouse.confirm(payment_id)
        assert await warehouse.act(days=30) == 0
        assert await mails(warehouse) == []

    async def test_a_reminder_that_would_come_too_late_is_left_out(self, warehouse: Any) -> None:
        payment_id = await warehouse.sell()
        assert await warehouse.act(days=7) == 1
        assert (await mails(warehouse), await warehouse.state(payment_id)) == ([], "voided")


class TestVoids:
    async def test_after_seven_days_the_hold_is_let_go_and_the_shop_is_told(self, warehouse: Any) -> None:
        payment_id = await warehouse.sell("A-1")
        assert await warehouse.act(days=6, hours=23, minutes=59) == 1, "the reminder"
        assert await warehouse.state(payment_id) == "authorized"
        assert await warehouse.act(days=7) == 1
        row = await warehouse.payment(payment_id)
        assert (row["state"], row["moving_id"], row["shipping_due_at"]) == ("voided", None, None)
        assert await warehouse.at_the_bank(payment_id) == [Kind.AUTHORIZE, Kind.VOID]
        assert await warehouse.rows("ledger_entry", payment_id) == []
        _, pingback = await warehouse.rows("pingback", payment_id)
        (movement,) = await warehouse.rows("movement", payment_id)
        told = json.loads(pingback["payload"])
        assert (pingback["event"], told["event"]) == ("refund", "refund")
        order = told["payment_order"]
        assert (order["status"], order["merchant_order_id"]) == ("reversal_refunded", "A-1")
        assert (order["refund_amount"], order["total_refunded_amount"], order["reference_id"]) == (
            10, 10, movement["id"]
        )  # fmt: skip
        assert movement["requested_by"] == "deadline"
        assert await warehouse.problems() == []

    async def test_a_merchant_that_muted_refunds_is_not_told(self, warehouse: Any, database: Database) -> None:
        payment_id = await warehouse.sell()
        await change_merchant(database, warehouse.shop.merchant_id, muted=["refund"])
        await warehouse.act(days=7)
        assert (await warehouse.state(payment_id), await warehouse.events(payment_id)) == ("voided", ["payment"])

    async def test_many_workers_void_each_order_once(self, warehouse: Any) -> None:
        sold = [await warehouse.sell() for _ in range(12)]
        assert sum(await asyncio.gather(*(warehouse.act(days=7) for _ in range(6)))) == 12
        for payment_id in sold:
            assert await warehouse.at_the_bank(payment_id) == [Kind.AUTHORIZE, Kind.VOID]
            assert await warehouse.events(payment_id) == ["payment", "refund"]

    async def test_no_more_are_taken_at_once_than_was_asked_for(self, warehouse: Any) -> None:
        for _ in range(5):
            await warehouse.sell()
        now = utc_now()
        side = {"real_now": now, "merchant_id": warehouse.shop.merchant_id, "at": now + WEEK, "most": 2}
        assert [await act_on_due(warehouse.desk, **side) for _ in range(4)] == [2, 2, 1, 0]

    async def test_a_refusal_is_logged_and_looked_at_again_an_hour_later(
        self, warehouse: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        payment_id, errors = await warehouse.sell(), []
        acquirer = LyingAcquirer(warehouse.desk.acquirers["simulator"], Lies())

        async def refuse(*_: Any) -> Voided:
            raise AcquirerRefused("the bank is closed for stocktaking")

        acquirer.void = refuse  # type: ignore[assignment,method-assign]
        monkeypatch.setattr(deadlines.log, "error", lambda what, **facts: errors.append((what, facts)))
        assert await warehouse.at(acquirer).act(days=7) == 1
        row = await warehouse.payment(payment_id)
        assert (row["state"], row["moving_id"]) == ("authorized", None)
        assert errors == [
            (
                "an authorization could not be voided",
                {"payment_id": payment_id, "why": "the bank is closed for stocktaking"},
            )
        ]
        assert await warehouse.act(days=7, minutes=59) == 0
        assert await warehouse.act(days=7, hours=1, minutes=1) == 1
        assert await warehouse.state(payment_id) == "voided"

    async def test_what_the_bank_has_captured_is_recorded_and_never_given_back(
        self, warehouse: Any, database: Database
    ) -> None:
        """As after a database came back without the shipment that it had recorded."""
        payment_id = await warehouse.sell()
        purchase = await database.fetchrow(
            "select * from payment_attempt where merchant_id = $1 and payment_id = $2",
            warehouse.shop.merchant_id,
            payment_id,
        )
        warehouse.bank.capture("forgotten", purchase["acquirer_reference"], Decimal(10), "USD")
        assert await warehouse.act(days=7) == 1
        payment = await warehouse.payment(payment_id)
        assert (payment["state"], payment["moving_id"], payment["shipping_due_at"]) == ("captured", None, None)
        assert payment["funds_due_at"] == payment["captured_at"] + WEEK
        moved = [(row["kind"], row["state"]) for row in await warehouse.rows("movement", payment_id)]
        assert sorted(moved) == [("capture", "done"), ("void", "refused")]
        assert await warehouse.events(payment_id) == ["payment"]
        assert await warehouse.at_the_bank(payment_id) == [Kind.AUTHORIZE, Kind.CAPTURE]
        assert await warehouse.problems() == []
        (alarm,) = await database.fetch("select * from alarm where merchant_id = $1", warehouse.shop.merchant_id)
        assert (alarm["kind"], alarm["subject"]) == ("captured_elsewhere", f"payment {payment_id}")
        assert await warehouse.act(days=30) == 0

    @pytest.mark.parametrize("returned", [True, False])
    async def test_a_part_that_the_bank_has_captured_is_recorded_and_the_rest_told_as_given_back(
        self, warehouse: Any, database: Database, returned: bool
    ) -> None:
        payment_id = await warehouse.sell()
        await change_merchant(database, warehouse.shop.merchant_id, fees_returned=returned)
        warehouse.bank.capture("by hand", await reference_of(warehouse, payment_id), Decimal("4.50"), "USD")
        assert await warehouse.act(days=7) == 1
        payment = await warehouse.payment(payment_id)
        assert (payment["state"], payment["moving_id"], payment["refunding"]) == ("partially_refunded", None, 0)
        assert (payment["refunded"], payment["shipping_due_at"]) == (Decimal("5.50"), None)
        assert payment["funds_due_at"] == payment["captured_at"] + WEEK
        moved = [(row["kind"], row["state"], row["amount"]) for row in await warehouse.rows("movement", payment_id)]
        assert sorted(moved) == [
            ("capture", "done", Decimal(10)),
            ("refund", "done", Decimal("5.50")),
            ("void", "refused", Decimal(10)),
        ]
        assert await warehouse.events(payment_id) == ["payment", "partial_refund"]
        (_, told) = await warehouse.rows("pingback", payment_id)
        order = json.loads(told["payload"])["payment_order"]
        assert (order["refund_amount"], order["total_refunded_amount"]) == (5.5, 5.5)
        fees = await database.fetchval(
            "select -sum(amount) from ledger_entry where merchant_id = $1 and account = 'fees'",
            warehouse.shop.merchant_id,
        )
        assert fees == payment["fees"] - payment["fees_taken"] < payment["fees"], "none for what was never captured"
        (alarm,) = await database.fetch("select * from alarm where merchant_id = $1", warehouse.shop.merchant_id)
        assert alarm["kind"] == "captured_elsewhere"
        assert "4.5 of 10" in alarm["reason"]
        assert await warehouse.problems() == []
        assert await warehouse.finish(days=1) == 0, "nothing is left for the janitor to ask the bank for"
        assert await warehouse.act(days=30) == 0
        assert await warehouse.at_the_bank(payment_id) == [Kind.AUTHORIZE, Kind.CAPTURE]

    async def test_what_was_captured_in_part_can_be_refunded_to_that_part(
        self, warehouse: Any, database: Database
    ) -> None:
        payment_id = await warehouse.sell()
        warehouse.bank.capture("by hand", await reference_of(warehouse, payment_id), Decimal("4.50"), "USD")
        await warehouse.act(days=7)
        asked: dict[str, Any] = {"requested_by": "api", "now": utc_now()}
        with pytest.raises(Malformed, match=r"4\.50 USD are left"):
            await refund(warehouse.desk, warehouse.shop, payment_id, Decimal(5), **asked)
        assert (await refund(warehouse.desk, warehouse.shop, payment_id, None, **asked)).amount == Decimal("4.50")
        assert await warehouse.problems() == []

    @pytest.mark.parametrize("amount", ["0", "10.01"])
    async def test_a_capture_that_fits_no_payment_waits_for_the_operator(
        self, warehouse: Any, database: Database, amount: str
    ) -> None:
        payment_id = await warehouse.sell()
        acquirer = LyingAcquirer(warehouse.desk.acquirers["simulator"], Lies())

        async def captured(*_: Any) -> Captured:
            return Captured("pi_1", Decimal(amount))

        acquirer.void = captured  # type: ignore[assignment,method-assign]
        odd = warehouse.at(acquirer)
        assert await odd.act(days=7) == 1
        payment = await warehouse.payment(payment_id)
        assert (payment["state"], payment["moving_id"]) == ("authorized", None)
        assert await odd.act(days=7, hours=2) == 1
        (alarm,) = await database.fetch("select * from alarm where merchant_id = $1", warehouse.shop.merchant_id)
        assert (alarm["kind"], alarm["times"]) == ("captured_elsewhere", 2)
        assert "not recorded" in alarm["reason"]
        assert await warehouse.at_the_bank(payment_id) == [Kind.AUTHORIZE]

    @pytest.mark.parametrize("lies", [Lies(lose_answers=1.0), Lies(lose_questions=1.0)])
    async def test_an_unknown_void_is_found_out_and_told_once(self, warehouse: Any, lies: Lies) -> None:
        payment_id = await warehouse.sell()
        lossy = LyingAcquirer(warehouse.desk.acquirers["simulator"], lies)
        await warehouse.at(lossy).act(days=7)
        assert await warehouse.state(payment_id) == "authorized"
        assert await warehouse.act(days=8) == 0, "it is under way"
        assert await warehouse.finish(minutes=1) == 1
        assert await warehouse.state(payment_id) == "voided"
        assert await warehouse.events(payment_id) == ["payment", "refund"]
        assert await warehouse.at_the_bank(payment_id) == [Kind.AUTHORIZE, Kind.VOID]


class TestTime:
    async def test_a_test_side_goes_by_its_clock_and_a_live_one_by_real_time(
        self, warehouse: Any, database: Database
    ) -> None:
        payment_id = await warehouse.sell()
        await act_on_due(warehouse.desk, real_now=utc_now())
        assert await warehouse.state(payment_id) == "authorized"
        await set_back.clock_runs_ahead(database, warehouse.shop.merchant_id, timedelta(days=7, minutes=1))
        assert await act_on_due(warehouse.desk, real_now=utc_now()) == 1
        row = await warehouse.payment(payment_id)
        (movement,) = await warehouse.rows("movement", payment_id)
        assert row["state"] == "voided"
        assert movement["finished_at"] - utc_now() > WEEK - timedelta(minutes=1), "told by the side's own time"

    async def test_one_merchants_clock_moves_nobody_elses_orders(self, warehouse: Any, other_shop: Any) -> None:
        payment_id = await warehouse.sell()
        now = utc_now()
        assert await act_on_due(warehouse.desk, real_now=now, merchant_id=other_shop.merchant_id, at=now + WEEK) == 0
        assert await warehouse.state(payment_id) == "authorized"

    async def test_the_worker_goes_on_after_a_failure_and_stops_when_told(
        self, warehouse: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        stop, rounds = asyncio.Event(), []

        async def act(*_: Any, **__: Any) -> int:
            rounds.append(1)
            if len(rounds) == 1:
                raise OSError("the database is away")
            if len(rounds) == 3:
                stop.set()
            return len(rounds) % 2

        monkeypatch.setattr(deadlines, "act_on_due", act)
        await run_deadlines(warehouse.desk, stop, pause=0.0)
        assert len(rounds) == 3


class TestTheTestClock:
    async def advance(self, warehouse: Any, days: int) -> Summary:
        outbound = OutboundClient(allow=[], timeout=1.0)
        try:
            sender = PingbackSender(warehouse.desk.database, warehouse.desk.vault, outbound, SenderSettings())
            by = Period(days, "day")
            return await advance(warehouse.desk, sender, warehouse.shop.merchant_id, by, patience=20.0)
        finally:
            await outbound.close()

    async def test_moved_by_eight_days_it_reminds_then_voids_each_at_its_time(self, warehouse: Any) -> None:
        payment_id = await warehouse.sell()
        shipped = await warehouse.sell()
        await warehouse.confirm(shipped)
        ship_by = (await warehouse.payment(payment_id))["ship_by"]
        assert What.VOIDED not in (await self.advance(warehouse, 6)).counts
        summary = await self.advance(warehouse, 2)
        assert summary.counts[What.VOIDED] == 1
        (movement,) = await warehouse.rows("movement", payment_id)
        assert (movement["kind"], movement["state"], movement["created_at"]) == ("void", "done", ship_by)
        assert (await warehouse.state(payment_id), await warehouse.state(shipped)) == ("voided", "captured")
        assert len(await mails(warehouse)) == 1
        assert await warehouse.events(payment_id) == ["payment", "refund"]

    async def test_a_bank_that_will_not_void_does_not_hold_it_up(self, warehouse: Any) -> None:
        payment_id = await warehouse.sell()
        acquirer = LyingAcquirer(warehouse.desk.acquirers["simulator"], Lies())

        async def refuse(*_: Any) -> Voided:
            raise AcquirerRefused("not today")

        acquirer.void = refuse  # type: ignore[assignment,method-assign]
        await self.advance(warehouse.at(acquirer), 8)
        tried = await warehouse.rows("movement", payment_id)
        assert {one["state"] for one in tried} == {"refused"}
        assert len(tried) == 25, "once an hour"
        assert await warehouse.state(payment_id) == "authorized"


ROUNDS, AT_ONCE = at_length(40, 12), 8


@long
async def test_of_a_shipment_and_the_deadline_exactly_one_wins_here_and_at_the_bank(warehouse: Any) -> None:
    """Many races; who is first in each is left to chance."""
    chance, won = Random(7), Counter[str]()

    async def ship(payment_id: int) -> str:
        for _ in range(chance.randrange(6)):
            await asyncio.sleep(0)
        try:
            confirmed = await warehouse.confirm(payment_id)
        except Conflict as error:
            return "voided" if "void" in error.message else error.message
        assert confirmed.result is Result.CAPTURED
        return "captured"

    for _ in range(ROUNDS):
        sold = await asyncio.gather(*(warehouse.sell() for _ in range(AT_ONCE)))
        late = {"days": 7, "minutes": 1}
        racing = [ship(payment_id) for payment_id in sold]
        racing[chance.randrange(AT_ONCE) : 0] = [warehouse.act(**late)]
        answers = await asyncio.gather(*racing, warehouse.act(**late))
        said = dict(zip(sold, [one for one in answers if isinstance(one, str)], strict=True))
        for payment_id in sold:
            await proves(warehouse, payment_id, said[payment_id])
            won[said[payment_id]] += 1
    assert min(won["captured"], won["voided"]) > ROUNDS // 4, won
    assert await warehouse.problems() == []


async def proves(warehouse: Any, payment_id: int, outcome: str) -> None:
    """Payment, movement, ledger, pingbacks and the bank's record all tell the same outcome."""
    assert await warehouse.state(payment_id) == outcome
    (movement,) = await warehouse.rows("movement", payment_id)
    captured = outcome == "captured"
    assert (movement["kind"], movement["state"]) == ("capture" if captured else "void", "done")
    assert await warehouse.at_the_bank(payment_id) == [Kind.AUTHORIZE, Kind.CAPTURE if captured else Kind.VOID]
    assert bool(await warehouse.rows("ledger_entry", payment_id)) is captured
    assert await warehouse.events(payment_id) == (["payment"] if captured else ["payment", "refund"])
    assert len(await warehouse.rows("delivery", payment_id)) == captured
