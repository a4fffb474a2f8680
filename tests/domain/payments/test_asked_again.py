from __future__ import annotations

import asyncio
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from tests.shopfront import ships
from tests.till import Till

from paydesk.adapters.acquirers.interface import AcquirerRefused, OutcomeUnknown
from paydesk.core.clock import utc_now
from paydesk.core.errors import Busy, Conflict, Malformed, Unsure
from paydesk.database import surely
from paydesk.database.durability import Unconfirmed
from paydesk.domain.payments import asked_again, movements, refunding
from paydesk.domain.payments.refunding import Refund, RefundStatus, refund


async def ask(caller: Till, amount: str | None = "4.00") -> Refund:
    return await caller.give(amount)


async def ask_in_vain(caller: Till, amount: str | None = "4.00", *, kind: str = "refund") -> str:
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
            await ask(caller, amount)
    return said.value.message


async def later(caller: Till, interval: str = "1 minute") -> None:
    """So much time goes by."""
    await caller.database.execute(
        "update movement set unanswered_since = unanswered_since - $2::text::interval where merchant_id = $1",
        caller.shop.merchant_id, interval,
    )  # fmt: skip


async def movement_states(caller: Till) -> list[str]:
    return [row["state"] for row in await caller.rows("movement")]


@pytest.fixture
async def caller(till: Till) -> Till:
    """A shop whose client knows no Idempotency-Key, and one payment of 10 USD."""
    return replace(till, payment_id=await till.sell())


@pytest.mark.parametrize("amount", ["4.00", "10.00", None])
@pytest.mark.parametrize("finished", [True, False])
async def test_a_repeat_of_what_nobody_was_told_of_moves_nothing(
    caller: Till, amount: str | None, finished: bool
) -> None:
    await ask_in_vain(caller, amount)
    if finished:
        await caller.finish(minutes=1)
    await later(caller)
    again = await ask(caller, amount)
    assert (again.again, again.amount) == (True, Decimal(amount or 10))
    assert (again.status is RefundStatus.PROCESSING) is not finished
    await caller.finish(minutes=1)
    assert caller.standing().net == 10 - again.amount
    assert await movement_states(caller) == ["done"]


async def test_a_repeat_of_a_void_moves_nothing(till: Till) -> None:
    await ships(till.database, till.shop)
    caller = replace(till, payment_id=await till.sell())
    await ask_in_vain(caller, None, kind="void")
    await later(caller)
    assert (await ask(caller, None)).status is RefundStatus.PROCESSING
    await caller.finish(minutes=1)
    assert await movement_states(caller) == ["done"]
    assert caller.standing().net == 0


async def test_once_told_of_an_equal_wish_is_a_new_one(caller: Till) -> None:
    await ask_in_vain(caller)
    await later(caller)
    first = await ask(caller)
    second = await ask(caller)
    assert (first.again, second.again) == (True, False)
    await caller.finish(minutes=1)
    assert caller.standing().net == 2


async def test_what_is_answered_as_usual_leaves_equal_wishes_alone(caller: Till) -> None:
    answers = [await ask(caller, "2.00"), await ask(caller, "2.00")]
    await later(caller)
    answers.append(await ask(caller, "2.00"))
    assert [one.again for one in answers] == [False] * 3
    assert caller.standing().net == 4


async def test_another_amount_is_another_wish(caller: Till) -> None:
    await ask_in_vain(caller, "4.00")
    await later(caller)
    assert (await ask(caller, "3.00")).again is False
    assert (await ask(caller, None)).amount == 3
    await caller.finish(minutes=1)
    assert caller.standing().net == 0
    with pytest.raises(Malformed, match="already refunded"):
        await ask(caller, "3.00")


async def test_after_a_day_an_equal_wish_is_a_new_one(caller: Till) -> None:
    await ask_in_vain(caller)
    await later(caller, "25 hours")
    assert (await ask(caller)).again is False
    await caller.finish(minutes=1)
    assert caller.standing().net == 2


async def test_what_the_bank_refused_is_tried_anew(caller: Till, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(*_: Any) -> str:
        raise AcquirerRefused("not now")

    await ask_in_vain(caller)
    with monkeypatch.context() as refusing:
        refusing.setattr(type(caller.desk.acquirer_for(live=False)), "refund", refuse)
        await caller.finish(minutes=1)
    await later(caller)
    assert (await ask(caller)).again is False
    assert await movement_states(caller) == ["refused", "done"]


async def test_a_late_bank_is_told_of_and_leaves_equal_wishes_alone(
    caller: Till, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def lose(*_: Any) -> str:
        raise OutcomeUnknown("lost")

    with monkeypatch.context() as late:
        late.setattr(type(caller.desk.acquirer_for(live=False)), "refund", lose)
        assert (await ask(caller)).status is RefundStatus.PROCESSING
    await later(caller)
    assert (await ask(caller)).again is False


async def test_equal_ones_at_work_are_made_one_after_the_other(caller: Till, monkeypatch: pytest.MonkeyPatch) -> None:
    acquirer = type(caller.desk.acquirer_for(live=False))
    honest, reached, go_on = acquirer.refund, asyncio.Event(), asyncio.Event()

    async def slowly(self: Any, *asked: Any) -> str:
        reached.set()
        await go_on.wait()
        reference: str = await honest(self, *asked)
        return reference

    monkeypatch.setattr(acquirer, "refund", slowly)
    first = asyncio.create_task(ask(caller))
    await reached.wait()
    with pytest.MonkeyPatch.context() as hasty:
        hasty.setattr(asked_again, "LONGEST_WAIT", 0)
        with pytest.raises(Busy, match="equal refunds"):
            await asyncio.wait_for(ask(caller), 60)
    looked, waiting = asked_again.queries.unanswered, asyncio.Event()

    def look(*place: Any, **asked: Any) -> Any:
        waiting.set()
        return looked(*place, **asked)

    monkeypatch.setattr(asked_again.queries, "unanswered", look)
    second = asyncio.create_task(ask(caller))
    await asyncio.wait_for(waiting.wait(), 60)
    go_on.set()
    assert [(await one).again for one in (first, second)] == [False, False]
    assert caller.standing().net == 2


async def test_of_two_repeats_at_once_one_is_the_repeat(caller: Till) -> None:
    await ask_in_vain(caller)
    await later(caller)
    answers = await asyncio.gather(ask(caller), ask(caller))
    assert sorted(one.again for one in answers) == [False, True]


async def test_a_first_try_that_the_database_gets_to_after_the_repeat_changes_nothing(caller: Till) -> None:
    names = {"merchant_id": caller.shop.merchant_id, "live": False, "payment_id": caller.payment_id}
    await ask(caller)
    stuck = await movements.queries.begin_refund(
        caller.database, **names, amount=Decimal(4), seen=Decimal(0), most_of_payment=None, most_of_day=None,
        requested_by="api", request_key="drawn-1", drawn=True, pads=bytes(128), lookup_at=utc_now(), now=utc_now(),
    )  # fmt: skip
    assert stuck is None
    assert caller.standing().net == 6


async def test_the_words_say_how_to_ask_again(caller: Till) -> None:
    said = await ask_in_vain(caller)
    key = await caller.database.fetchval("select request_key from movement where payment_id = $1", caller.payment_id)
    assert f'with the header "Idempotency-Key: {key}" or, within a day, as it is' in said
    by_key = await refund(
        caller.desk, caller.shop, caller.payment_id, Decimal(4), requested_by="api", request_key=key,
        now=utc_now(),
    )  # fmt: skip
    assert by_key.again
    await later(caller)
    assert (await ask(caller)).again is False, "it was told of under its key"


async def test_a_key_of_the_caller_s_own_is_not_looked_for_by_amount(caller: Till) -> None:
    await ask_in_vain(caller)
    await later(caller)
    keyed = await refund(
        caller.desk, caller.shop, caller.payment_id, Decimal(4), requested_by="api", request_key="mine",
        now=utc_now(),
    )  # fmt: skip
    assert keyed.again is False
    with pytest.raises(Conflict, match="another request"):
        await refund(
            caller.desk, caller.shop, caller.payment_id, Decimal(3), requested_by="api", request_key="mine",
            now=utc_now(),
        )  # fmt: skip


async def test_nobody_is_told_of_one_that_a_failover_may_forget(caller: Till, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken_off(*_: Any, **__: Any) -> None:
        raise Unconfirmed

    async def ask() -> Refund:
        return await refund(
            caller.desk, caller.shop, caller.payment_id, Decimal(4), requested_by="api", request_key="mine",
            now=utc_now(),
        )  # fmt: skip

    await ask()
    with monkeypatch.context() as without_standby:
        without_standby.setattr(refunding, "make_durable", broken_off)
        with pytest.raises(Unconfirmed):
            await ask()
    assert (await ask()).again
    assert caller.standing().net == 6
