"""Stripe's own lists, page by page, as its documents show them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from tests.adapters.acquirers.stripe.stub import INTENTS, NOON, NOTHING, Stub, intent, listed

from paydesk.adapters.acquirers.interface import AcquirerRefused
from paydesk.adapters.acquirers.listing import PurchaseState
from paydesk.adapters.acquirers.stripe import StripeAcquirer

REFUNDS = "/v1/refunds"
MADE = 1_777_896_000
DECLINED = {"code": "card_declined", "decline_code": "generic_decline"}


def refund(number: int, **changes: Any) -> dict[str, Any]:
    made = {
        "id": f"re_{number}",
        "object": "refund",
        "amount": 400,
        "currency": "usd",
        "created": MADE,
        "status": "succeeded",
        "metadata": {"paydesk_key": f"refund-{number}"},
        "payment_intent": "pi_1",
    }
    return made | changes


async def test_pages_follow_each_other_from_a_time_on(acquirer: StripeAcquirer, stub: Stub) -> None:
    stub.will("GET", INTENTS, listed(intent(id="pi_2", created=MADE), intent(created=MADE), more=True))
    stub.will("GET", INTENTS, listed(intent(id="pi_0", created=MADE)))
    since = NOON - timedelta(days=1)
    first = await acquirer.list_purchases(since, "")
    last = await acquirer.list_purchases(since, first.next)
    assert ([one.reference for one in (*first.purchases, *last.purchases)], last.next) == (["pi_2", "pi_1", "pi_0"], "")
    asked = [one.params for one in stub.to("GET", INTENTS)]
    assert [one.get("starting_after") for one in asked] == [None, "pi_1"]
    assert {one["created[gte]"] for one in asked} == {str(int(since.timestamp()))}
    assert first.purchases[0].at == datetime.fromtimestamp(MADE, UTC)


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({}, PurchaseState.CAPTURED),
        ({"status": "requires_capture", "amount_received": 0}, PurchaseState.AUTHORIZED),
        ({"status": "canceled", "amount_received": 0}, PurchaseState.ENDED),
        ({"status": "requires_payment_method", "last_payment_error": DECLINED}, PurchaseState.DECLINED),
        ({"status": "requires_payment_method"}, PurchaseState.OPEN),
        ({"status": "requires_action"}, PurchaseState.OPEN),
        ({"status": "processing"}, PurchaseState.OPEN),
        ({"status": "a state of next year"}, PurchaseState.OPEN),
    ],
)
async def test_each_status_has_its_meaning(
    acquirer: StripeAcquirer, stub: Stub, changes: dict[str, Any], state: PurchaseState
) -> None:
    stub.will("GET", INTENTS, listed(intent(**changes)))
    (found,) = (await acquirer.list_purchases(NOON, "")).purchases
    assert found.state is state


async def test_amounts_are_in_main_units_and_a_part_that_was_captured_is_no_refund(
    acquirer: StripeAcquirer, stub: Stub
) -> None:
    part = {"id": "ch_1", "object": "charge", "amount_refunded": 600}
    stub.will(
        "GET",
        INTENTS,
        listed(
            intent(currency="jpy", amount=500, amount_received=500),
            intent(status="canceled", amount_received=0, latest_charge=part),
            intent(latest_charge=part),
        ),
    )
    yen, let_go, given_back = (await acquirer.list_purchases(NOON, "")).purchases
    assert (yen.amount, yen.currency, yen.captured) == (Decimal(500), "JPY", Decimal(500))
    assert let_go.captured == let_go.refunded == 0
    assert (given_back.captured, given_back.refunded) == (Decimal("10.00"), Decimal("6.00"))


async def test_what_a_capture_in_part_let_go_of_was_never_taken_and_not_given_back(
    acquirer: StripeAcquirer, stub: Stub
) -> None:
    # Stripe: the part that was not captured is reversed just as if it had been refunded later, and
    # is in the charge's `amount_refunded`: of 10.00 here 4.50 were captured, then 1.00 refunded.
    part = {"id": "ch_1", "object": "charge", "amount": 1000, "amount_captured": 450, "amount_refunded": 550}
    more = part | {"amount_refunded": 650}
    stub.will("GET", INTENTS, listed(*(intent(amount_received=450, latest_charge=charge) for charge in (part, more))))
    taken, given_back = (await acquirer.list_purchases(NOON, "")).purchases
    assert (taken.captured, taken.refunded) == (Decimal("4.50"), Decimal(0))
    assert (given_back.captured, given_back.refunded) == (Decimal("4.50"), Decimal(1))


async def test_what_was_given_back_of_a_capture_in_part_is_told_whichever_way_stripe_writes_the_rest(
    acquirer: StripeAcquirer, stub: Stub
) -> None:
    # Stripe: since version 2025-03-31 a capture in part makes no refund of the rest, and
    # `amount_refunded` is what was given back alone. Who captures in Stripe's own pages does so by
    # the account's own version.
    rest = {"id": "re_1", "object": "refund", "amount": 300, "status": "succeeded", "metadata": {}}
    back = rest | {"id": "re_2", "amount": 200}
    charges: list[dict[str, Any]] = [
        {"amount_refunded": 0, "refunds": NOTHING},
        {"amount_refunded": 200, "refunds": listed(back)},
        {"amount_refunded": 500, "refunds": listed(back, rest)},
        {"amount_refunded": 700, "refunds": listed(rest | {"amount": 700})},
        {"amount_refunded": 1000, "refunds": listed(back | {"amount": 700}, rest)},
        {"amount_refunded": 100},
    ]
    made = [intent(amount_received=700, latest_charge={"id": "ch_1", "object": "charge"} | one) for one in charges]
    stub.will("GET", INTENTS, listed(*made))
    purchases = (await acquirer.list_purchases(NOON, "")).purchases
    assert [one.refunded for one in purchases] == [0, 2, 2, 7, 7, 1]
    (asked,) = stub.to("GET", INTENTS)
    assert "data.latest_charge.refunds" in asked.params.values()


async def test_the_card_that_is_kept_and_its_last_digits_are_told(acquirer: StripeAcquirer, stub: Stub) -> None:
    charge = {"id": "ch_1", "object": "charge", "payment_method_details": {"card": {"last4": "4242"}}}
    stub.will("GET", INTENTS, listed(intent(customer="cus_1", payment_method="pm_1", latest_charge=charge), intent()))
    kept, other = (await acquirer.list_purchases(NOON, "")).purchases
    assert (kept.network_reference, kept.last4) == ("cus_1/pm_1", "4242")
    assert other.last4 == ""


async def test_a_refund_names_its_purchase_by_our_key_and_what_our_books_call_it(
    acquirer: StripeAcquirer, stub: Stub
) -> None:
    ours = intent(metadata={"paydesk_key": "the purchase"})
    numbered = refund(1, payment_intent=ours, metadata={"paydesk_key": "the refund", "paydesk_refund": "4711"})
    theirs = refund(2, payment_intent=ours, metadata={"paydesk_refund": "no number"})
    stub.will("GET", REFUNDS, listed(numbered, theirs))
    first, second = (await acquirer.list_refunds(NOON, "")).refunds
    assert (first.key, first.of_key, first.of_reference, first.number) == ("the refund", "the purchase", "pi_1", 4711)
    assert (second.key, second.of_key, second.number) == ("", "the purchase", 0)


async def test_what_other_software_made_has_no_key_and_no_mark(acquirer: StripeAcquirer, stub: Stub) -> None:
    stub.will("GET", INTENTS, listed(intent(metadata={"order": "7"}), intent(metadata={"paydesk_mark": "[nonsense"})))
    assert {(one.key, one.mark) for one in (await acquirer.list_purchases(NOON, "")).purchases} == {("", None)}


async def test_a_refund_of_which_nobody_wrote_anything_keeps_no_other_from_being_read(
    acquirer: StripeAcquirer, stub: Stub
) -> None:
    # Stripe's types: the metadata of a refund may be null.
    ours = intent(metadata={"paydesk_key": "the purchase"})
    stub.will("GET", REFUNDS, listed(refund(2), refund(1, metadata=None, payment_intent=ours)))
    told, theirs = (await acquirer.list_refunds(NOON, "")).refunds
    assert (told.key, theirs.key, theirs.of_key, theirs.number) == ("refund-2", "", "the purchase", 0)


async def test_a_refund_that_is_on_its_way_or_failed_is_not_made(acquirer: StripeAcquirer, stub: Stub) -> None:
    states = ("succeeded", "pending", "requires_action", "failed", "canceled")
    stub.will("GET", REFUNDS, listed(*(refund(number, status=state) for number, state in enumerate(states))))
    page = await acquirer.list_refunds(NOON, "")
    assert [one.made for one in page.refunds] == [True, False, False, False, False]
    assert (page.refunds[0].key, page.refunds[0].of_reference) == ("refund-0", "pi_1")


async def test_a_refund_of_stripe_s_own_pages_is_made_while_it_waits_for_the_balance(
    acquirer: StripeAcquirer, stub: Stub
) -> None:
    # Stripe holds a refund as pending until the balance is topped up: long after it is listed.
    states = ("pending", "requires_action", "failed", "canceled")
    stub.will("GET", REFUNDS, listed(*(refund(place, status=state, metadata={}) for place, state in enumerate(states))))
    page = await acquirer.list_refunds(NOON, "")
    assert [one.made for one in page.refunds] == [True, True, False, False]


async def test_what_a_canceled_payment_held_was_never_given_back(acquirer: StripeAcquirer, stub: Stub) -> None:
    # Stripe: of a payment that requires a capture, what was held is automatically refunded when it
    # is canceled, by us or since its time was over: a refund without our key, in the list.
    ended = intent(status="canceled", amount_received=0)
    stub.will("GET", REFUNDS, listed(refund(2), refund(1, amount=1000, metadata={}, payment_intent=ended), more=True))
    stub.will("GET", REFUNDS, listed(refund(0, amount=1000, metadata={}, payment_intent=ended)))
    first = await acquirer.list_refunds(NOON, "")
    last = await acquirer.list_refunds(NOON, first.next)
    assert ([one.reference for one in (*first.refunds, *last.refunds)], last.next) == (["re_2"], "")
    assert [one.params.get("starting_after") for one in stub.to("GET", REFUNDS)] == [None, "re_1"]


async def test_a_key_that_may_not_list_is_refused_with_words(acquirer: StripeAcquirer, stub: Stub) -> None:
    stub.will("GET", INTENTS, {"error": {"type": "invalid_request_error", "message": "no"}}, status=403)
    with pytest.raises(AcquirerRefused, match="PAYDESK_STRIPE_SECRET_KEY"):
        await acquirer.list_purchases(NOON, "")


async def test_what_is_given_back_of_a_hold_that_is_taken_in_parts_is_a_refund(
    acquirer: StripeAcquirer, stub: Stub
) -> None:
    # Stripe: a payment of which more may be captured still requires that, and has received money.
    taken_in_parts = intent(status="requires_capture", amount_received=400)
    held = intent(status="requires_capture", amount_received=0)
    stub.will("GET", REFUNDS, listed(refund(2, payment_intent=taken_in_parts), refund(1, payment_intent=held)))
    assert [one.reference for one in (await acquirer.list_refunds(NOON, "")).refunds] == ["re_2"]
