from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import asyncpg
import pytest
from tests.banks import HeardBank, answering, ending_in
from tests.shopfront import payer

from paydesk.adapters.acquirers.interface import AcquirerRefused, KeyUsed
from paydesk.adapters.acquirers.simulator.purchase_state import Standing
from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict, Gone, Unavailable
from paydesk.database.pool import Database
from paydesk.domain.payments import results
from paydesk.domain.payments.card_guard import Limits
from paydesk.domain.payments.checkouts import LIFETIME
from paydesk.domain.payments.checkouts import Standing as CheckoutStanding
from paydesk.domain.payments.paying import pay
from paydesk.domain.payments.results import Paid, Refused, Unsettled

Charges = Callable[[], list[Standing]]

VISA, DECLINED, ASKS_CUSTOMER = "4242424242424242", "4000000000000002", "4000000000003220"
NO_FUNDS = "4000000000009995"


@pytest.fixture
def held(till: Any) -> HeardBank:
    return HeardBank(till.honest, held=True)


async def test_the_intent_is_committed_before_the_bank_is_called(
    till: Any, held: HeardBank, database: Database
) -> None:
    slow = till.at(held)
    paid = asyncio.create_task(slow.pay(await till.order(), VISA))
    await held.asked.wait()
    (attempt,) = await till.attempts()
    assert (attempt["state"], await till.state()) == ("processing", "processing")
    (operation,) = held.honest.bank.record.operations()  # type: ignore[attr-defined]
    assert operation.key == attempt["idempotency_key"]
    held.let_go.set()
    assert isinstance(await paid, Paid)


async def test_a_customer_who_goes_away_does_not_stop_the_outcome_from_being_recorded(
    till: Any, held: HeardBank
) -> None:
    slow = till.at(held)
    paying_ = asyncio.create_task(slow.pay(await till.order(), VISA))
    await held.asked.wait()
    paying_.cancel()
    with pytest.raises(asyncio.CancelledError):
        await paying_
    assert await till.state() == "processing"
    finishing = asyncio.create_task(slow.desk.finish())
    held.let_go.set()
    await finishing
    assert await till.state() == "captured"
    assert not slow.desk.under_way


async def test_a_database_that_is_away_when_the_bank_answers_leaves_the_attempt_to_the_janitor(
    till: Any, charges: Charges, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: Any, **__: Any) -> set[int]:
        raise asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation")

    with monkeypatch.context() as patch:
        patch.setattr(results, "record_approvals", away)
        assert isinstance(await till.pay(await till.order(), VISA), Unsettled)
    assert await till.attempt_states() == ["processing"]
    await till.settle(seconds=6)
    assert await till.attempt_states() == ["approved"]
    assert len(charges()) == 1


async def test_a_bank_that_fails_in_an_unforeseen_way_leaves_the_attempt_to_the_janitor(till: Any) -> None:
    broken = till.at(answering(till.desk.acquirers["simulator"], authorize=ending_in(ZeroDivisionError())))
    assert isinstance(await broken.pay(await till.order(), VISA), Unsettled)
    assert await till.attempt_states() == ["processing"]


async def test_a_refused_request_is_told_to_the_customer_at_once_and_to_the_operator(till: Any) -> None:
    refusal = AcquirerRefused("Amount must be at least 50 cents")
    choosy = till.at(answering(till.desk.acquirers["simulator"], authorize=ending_in(refusal)))
    token = await till.order()
    assert await choosy.pay(token, VISA) == Refused("request_refused")
    assert (await till.find(token)).standing is CheckoutStanding.OPEN
    (attempt,) = await till.attempts()
    assert (attempt["state"], attempt["decline_reason"], attempt["lookup_at"]) == ("declined", "request_refused", None)
    (alarm,) = await till.desk.database.fetch("select * from alarm where merchant_id = $1", till.shop.merchant_id)
    assert (alarm["kind"], alarm["subject"]) == ("request_refused", "requests to simulator")
    assert alarm["reason"] == f"attempt {attempt['id']}: Amount must be at least 50 cents"
    assert await till.pay(token, VISA) == Paid()


async def test_a_key_that_was_used_before_is_looked_up_and_never_declined(till: Any) -> None:
    refusal = KeyUsed("the key was used for another purchase before")
    used = answering(till.desk.acquirers["simulator"], authorize=ending_in(refusal))
    assert isinstance(await till.at(used).pay(await till.order(), VISA), Unsettled)
    assert await till.attempt_states() == ["processing"]


async def test_what_the_janitor_recorded_first_stands(till: Any, held: HeardBank, charges: Charges) -> None:
    paid = asyncio.create_task(till.at(held).pay(await till.order(), VISA))
    await held.asked.wait()
    await till.settle(seconds=6)
    assert await till.state() == "captured"
    held.let_go.set()
    assert isinstance(await paid, Unsettled), "the page that waits will find the result at once"
    assert len(charges()) == 1


async def test_an_expired_checkout_takes_no_payment(till: Any) -> None:
    token = await till.order()
    later = utc_now() + LIFETIME
    expired = await till.find(token, now=later)
    with pytest.raises(Conflict):
        await pay(till.desk, expired, payer(), return_url="https://pay.test/back", now=later)
    await till.pay(token, ASKS_CUSTOMER)
    with pytest.raises(Gone):
        await pay(till.desk, await till.find(token), payer(), return_url="https://pay.test/back", now=later)
    assert await till.attempt_states() == ["abandoned"]


async def test_a_second_press_on_a_page_that_is_older_than_a_decline_tries_nothing(till: Any) -> None:
    token = await till.order()
    seen_before = await till.find(token)
    await till.pay(token, DECLINED)
    with pytest.raises(Conflict):
        await pay(till.desk, seen_before, payer(), return_url="https://pay.test/back", now=utc_now())
    assert await till.attempt_states() == ["declined"]


async def test_without_a_live_acquirer_nothing_live_is_tried(till: Any) -> None:
    checkout = await till.find(await till.order())
    live = replace(checkout, shop=replace(checkout.shop, live=True))
    with pytest.raises(Unavailable):
        await pay(till.desk, live, payer(), return_url="", now=utc_now())
    assert await till.attempts() == []


async def test_guards_count_what_they_should(till: Any, database: Database) -> None:
    till = replace(till, desk=replace(till.desk, test_limits=Limits()))
    token = await till.order()
    for _ in range(10):
        assert await till.pay(token, DECLINED) != Refused("too_many_attempts")
        await till.desk.finish()
    assert await till.pay(token, VISA) == Refused("too_many_attempts")
    tokens = [await till.order() for _ in range(3)]
    for _ in range(10):
        for one, card in zip(tokens, (DECLINED, NO_FUNDS), strict=False):
            assert await till.pay(one, card) != Refused("too_many_attempts")
            # What was no wrong security code is taken back a moment later.
            await till.desk.finish()
    assert await till.pay(tokens[2], VISA) == Refused("too_many_attempts"), "30 declines in an hour"
    await database.execute(
        "update payment_attempt set finished_at = finished_at - $2::interval where merchant_id = $1",
        till.shop.merchant_id,
        timedelta(hours=1),
    )
    await database.execute(
        "update card_try set until = until - interval '1 hour' where merchant_id = $1", till.shop.merchant_id
    )
    assert isinstance(await till.pay(tokens[2], VISA), Paid)


async def test_a_card_rests_without_its_number(till: Any, database: Database) -> None:
    await till.pay(await till.order(), VISA)
    await till.pay(await till.order(), VISA)
    first, second = await database.fetch("select * from card where merchant_id = $1 order by id", till.shop.merchant_id)
    assert (first["bin"], first["last4"], first["brand"]) == ("424242", "4242", "visa")
    assert (first["fingerprint"], second["fingerprint"]) == (b"", b""), "nor with what would confirm a guess of it"
    assert (first["number_sealed"], second["number_sealed"]) == (None, None)


async def test_a_retry_with_another_card_and_another_checkout_takes_over_the_order(
    till: Any, database: Database
) -> None:
    first = await till.order("A-1", sign_version="v1", pingback_url="https://shop.example/old")
    await till.pay(first, DECLINED)
    second = await till.order("A-1", sign_version="v2", pingback_url="https://shop.example/new")
    await till.pay(second, VISA)
    pingback = await database.fetchrow("select * from pingback where merchant_id = $1", till.shop.merchant_id)
    assert (pingback["sign_version"], pingback["url"]) == ("v2", "https://shop.example/new")
