from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Any

import pytest
from tests import shopfront
from tests.shopfront import buy, ships
from tests.standings import standings

from paydesk.adapters.acquirers.interface import AcquirerRefused, OutcomeUnknown
from paydesk.adapters.acquirers.simulator import Bank
from paydesk.core.clock import utc_now
from paydesk.core.errors import Busy, Conflict, Malformed, Unsure
from paydesk.database import surely
from paydesk.database.durability import Unconfirmed
from paydesk.database.pool import Database
from paydesk.domain.payments import asked_again, movements, refunding
from paydesk.domain.payments.movements import finish_movements
from paydesk.domain.payments.refunding import Refund, RefundStatus, refund


class Caller:
    """A shop whose client knows no Idempotency-Key, one payment of 10 USD,
    and a database that may go away.
    """

    def __init__(self, till: Any, bank: Bank, payment_id: int) -> None:
        self.till, self.bank, self.payment_id = till, bank, payment_id
        self.database: Database = till.desk.database

    async def ask(self, amount: str | None = "4.00") -> Refund:
        return await shopfront.give_back(self.till.desk, self.till.shop, self.payment_id, amount)

    async def ask_in_vain(self, amount: str | None = "4.00", *, kind: str = "refund") -> str:
        """The intent is committed, and the database stays away until the caller is sent away;
        what the caller hears.
        """
        honest = getattr(movements.queries, f"begin_{kind}")

        async def begin_and_lose(connection: Any, **asked: Any) -> None:
            await honest(connection, **asked)
            raise OSError("the database is away")

        async def lose(_connection: Any, **_: Any) -> None:
            raise OSError("the database is away")

        with pytest.MonkeyPatch.context() as away:
            away.setattr(movements.queries, f"begin_{kind}", begin_and_lose)
            away.setattr(movements.queries, "find_intent", lose)
            away.setattr(surely, "PATIENCE", 0)
            with pytest.raises(Unsure) as said:
                await self.ask(amount)
        return said.value.message

    async def later(self, interval: str = "1 minute") -> None:
        """So much time goes by."""
        await self.database.execute(
            "update movement set unanswered_since = unanswered_since - $2::text::interval where merchant_id = $1",
            self.till.shop.merchant_id, interval,
        )  # fmt: skip

    async def finish(self) -> None:
        await finish_movements(self.till.desk, now=utc_now() + movements.FIRST_LOOK * 2)

    def kept(self) -> Decimal:
        (standing,) = standings(self.bank.record.operations()).values()
        return Decimal(standing.net)

    async def movements(self) -> list[str]:
        rows = await self.database.fetch(
            "select state from movement where merchant_id = $1 order by id", self.till.shop.merchant_id
        )
        return [row["state"] for row in rows]


async def paying(till: Any, bank: Bank, *, shipped: bool = False) -> Caller:
    await ships(till.desk.database, till.shop, shipped=shipped)
    return Caller(till, bank, await buy(till.desk, till.shop))


@pytest.fixture
async def caller(till: Any, bank: Bank) -> Caller:
    return await paying(till, bank)


@pytest.mark.parametrize("amount", ["4.00", "10.00", None])
@pytest.mark.parametrize("finished", [True, False])
async def test_a_repeat_of_what_nobody_was_told_of_moves_nothing(
    caller: Caller, amount: str | None, finished: bool
) -> None:
    await caller.ask_in_vain(amount)
    if finished:
        await caller.finish()
    await caller.later()
    again = await caller.ask(amount)
    assert (again.again, again.amount) == (True, Decimal(amount or 10))
    assert (again.status is RefundStatus.PROCESSING) is not finished
    await caller.finish()
    assert caller.kept() == 10 - again.amount
    assert await caller.movements() == ["done"]


async def test_a_repeat_of_a_void_moves_nothing(till: Any, bank: Bank) -> None:
    caller = await paying(till, bank, shipped=True)
    await caller.ask_in_vain(None, kind="void")
    await caller.later()
    assert (await caller.ask(None)).status is RefundStatus.PROCESSING
    await caller.finish()
    assert await caller.movements() == ["done"]
    assert caller.kept() == 0


async def test_once_told_of_an_equal_wish_is_a_new_one(caller: Caller) -> None:
    await caller.ask_in_vain()
    await caller.later()
    first = await caller.ask()
    second = await caller.ask()
    assert (first.again, second.again) == (True, False)
    await caller.finish()
    assert caller.kept() == 2


async def test_what_is_answered_as_usual_leaves_equal_wishes_alone(caller: Caller) -> None:
    answers = [await caller.ask("2.00"), await caller.ask("2.00")]
    await caller.later()
    answers.append(await caller.ask("2.00"))
    assert [one.again for one in answers] == [False] * 3
    assert caller.kept() == 4


async def test_another_amount_is_another_wish(caller: Caller) -> None:
    await caller.ask_in_vain("4.00")
    await caller.later()
    assert (await caller.ask("3.00")).again is False
    assert (await caller.ask(None)).amount == 3
    await caller.finish()
    assert caller.kept() == 0
    with pytest.raises(Malformed, match="already refunded"):
        await caller.ask("3.00")


async def test_after_a_day_an_equal_wish_is_a_new_one(caller: Caller) -> None:
    await caller.ask_in_vain()
    await caller.later("25 hours")
    assert (await caller.ask()).again is False
    await caller.finish()
    assert caller.kept() == 2


async def test_what_the_bank_refused_is_tried_anew(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(*_: Any) -> str:
        raise AcquirerRefused("not now")

    await caller.ask_in_vain()
    with monkeypatch.context() as refusing:
        refusing.setattr(type(caller.till.desk.acquirer_for(live=False)), "refund", refuse)
        await caller.finish()
    await caller.later()
    assert (await caller.ask()).again is False
    assert await caller.movements() == ["refused", "done"]


async def test_a_late_bank_is_told_of_and_leaves_equal_wishes_alone(
    caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def lose(*_: Any) -> str:
        raise OutcomeUnknown("lost")

    with monkeypatch.context() as late:
        late.setattr(type(caller.till.desk.acquirer_for(live=False)), "refund", lose)
        assert (await caller.ask()).status is RefundStatus.PROCESSING
    await caller.later()
    assert (await caller.ask()).again is False


async def test_equal_ones_at_work_are_made_one_after_the_other(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    acquirer = type(caller.till.desk.acquirer_for(live=False))
    honest, reached, go_on = acquirer.refund, asyncio.Event(), asyncio.Event()

    async def slowly(self: Any, *asked: Any) -> str:
        reached.set()
        await go_on.wait()
        reference: str = await honest(self, *asked)
        return reference

    monkeypatch.setattr(acquirer, "refund", slowly)
    first = asyncio.create_task(caller.ask())
    await reached.wait()
    with pytest.MonkeyPatch.context() as hasty:
        hasty.setattr(asked_again, "LONGEST_WAIT", 0)
        with pytest.raises(Busy, match="equal refunds"):
            await asyncio.wait_for(caller.ask(), 60)
    looked, waiting = asked_again.queries.unanswered, asyncio.Event()

    def look(*place: Any, **asked: Any) -> Any:
        waiting.set()
        return looked(*place, **asked)

    monkeypatch.setattr(asked_again.queries, "unanswered", look)
    second = asyncio.create_task(caller.ask())
    await asyncio.wait_for(waiting.wait(), 60)
    go_on.set()
    assert [(await one).again for one in (first, second)] == [False, False]
    assert caller.kept() == 2


async def test_of_two_repeats_at_once_one_is_the_repeat(caller: Caller) -> None:
    await caller.ask_in_vain()
    await caller.later()
    answers = await asyncio.gather(caller.ask(), caller.ask())
    assert sorted(one.again for one in answers) == [False, True]


async def test_a_first_try_that_the_database_gets_to_after_the_repeat_changes_nothing(caller: Caller) -> None:
    names = {"merchant_id": caller.till.shop.merchant_id, "live": False, "payment_id": caller.payment_id}
    await caller.ask()
    stuck = await movements.queries.begin_refund(
        caller.database, **names, amount=Decimal(4), seen=Decimal(0), most_of_payment=None, most_of_day=None,
        requested_by="api", request_key="drawn-1", drawn=True, pads=bytes(128), lookup_at=utc_now(), now=utc_now(),
    )  # fmt: skip
    assert stuck is None
    assert caller.kept() == 6


async def test_the_words_say_how_to_ask_again(caller: Caller) -> None:
    said = await caller.ask_in_vain()
    key = await caller.database.fetchval("select request_key from movement where payment_id = $1", caller.payment_id)
    assert f'with the header "Idempotency-Key: {key}" or, within a day, as it is' in said
    by_key = await refund(
        caller.till.desk, caller.till.shop, caller.payment_id, Decimal(4), requested_by="api", request_key=key,
        now=utc_now(),
    )  # fmt: skip
    assert by_key.again
    await caller.later()
    assert (await caller.ask()).again is False, "it was told of under its key"


async def test_a_key_of_the_caller_s_own_is_not_looked_for_by_amount(caller: Caller) -> None:
    await caller.ask_in_vain()
    await caller.later()
    keyed = await refund(
        caller.till.desk, caller.till.shop, caller.payment_id, Decimal(4), requested_by="api", request_key="mine",
        now=utc_now(),
    )  # fmt: skip
    assert keyed.again is False
    with pytest.raises(Conflict, match="another request"):
        await refund(
            caller.till.desk, caller.till.shop, caller.payment_id, Decimal(3), requested_by="api", request_key="mine",
            now=utc_now(),
        )  # fmt: skip


async def test_nobody_is_told_of_one_that_a_failover_may_forget(
    caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken_off(*_: Any, **__: Any) -> None:
        raise Unconfirmed

    async def ask() -> Refund:
        return await refund(
            caller.till.desk, caller.till.shop, caller.payment_id, Decimal(4), requested_by="api", request_key="mine",
            now=utc_now(),
        )  # fmt: skip

    await ask()
    with monkeypatch.context() as without_standby:
        without_standby.setattr(refunding, "make_durable", broken_off)
        with pytest.raises(Unconfirmed):
            await ask()
    assert (await ask()).again
    assert caller.kept() == 6
