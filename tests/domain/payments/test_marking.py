"""Every purchase says at the bank what it is for."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from tests.shopfront import MONTHLY
from tests.till import Till

from paydesk.adapters.acquirers.marks import Mark, PurchaseKind
from paydesk.adapters.acquirers.purchases import CardDetails
from paydesk.adapters.acquirers.simulator import Bank
from paydesk.core.clock import utc_now
from paydesk.domain.billing.replacing_cards import NewCard, replace_card
from paydesk.domain.payments.marking import digest_of

VISA, DECLINED = "4242424242424242", "4000000000000002"


async def _deployment(till: Till) -> dict[str, Any]:
    row = await till.desk.database.fetchrow(
        "select d.tag as deployment, d.epoch, m.key_tag as merchant from deployment d, merchant m where m.id = $1",
        till.shop.merchant_id,
    )
    return dict(row)


def _mark(bank: Bank, key: str) -> Mark:
    kept = bank.record.mark(key)
    assert kept is not None
    assert kept[1] is not None
    return kept[1]


async def test_an_order_with_the_number_of_its_attempt(till: Till, bank: Bank) -> None:
    token = await till.order("注" * 255)
    await till.pay(token, DECLINED)
    await till.pay(token, VISA)
    _, second = await till.attempts()
    assert _mark(bank, second["idempotency_key"]) == Mark(
        **await _deployment(till),
        live=False,
        kind=PurchaseKind.ORDER,
        order="注" * 255,
        payment_id=second["payment_id"],
        attempt=2,
    )


async def test_a_subscription_with_its_terms_and_its_renewal_with_the_period(till: Till, bank: Bank) -> None:
    club = Till(till.desk, till.shop)
    subscription = await club.subscribe()
    await club.charge_due(subscription)
    first, renewal = await till.attempts()
    assert _mark(bank, first["idempotency_key"]).terms == digest_of(MONTHLY)
    assert _mark(bank, renewal["idempotency_key"]) == Mark(
        **await _deployment(till),
        live=False,
        kind=PurchaseKind.RENEWAL,
        order="club-1",
        payment_id=renewal["payment_id"],
        attempt=1,
        subscription_id=subscription.id,
        period=2,
        terms=digest_of(MONTHLY),
    )


async def test_a_new_card_with_its_subscription(till: Till, bank: Bank) -> None:
    subscription = await Till(till.desk, till.shop).subscribe()
    new = NewCard(CardDetails(VISA, 12, 2041, "Ada", "123"), "192.0.2.1", "https://pay.test/back")
    await replace_card(till.desk, subscription, None, new, now=utc_now() + timedelta(seconds=1))
    key = await till.desk.database.fetchval(
        "select idempotency_key from card_change where merchant_id = $1", till.shop.merchant_id
    )
    mark = _mark(bank, key)
    assert (mark.kind, mark.order, mark.subscription_id) == (PurchaseKind.CARD, "club-1", subscription.id)
