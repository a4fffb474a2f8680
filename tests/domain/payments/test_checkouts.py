from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from paydesk.core.clock import utc_now
from paydesk.core.errors import NotFound
from paydesk.database.pool import Database
from paydesk.domain.merchants.customer_links import Link
from paydesk.domain.payments import checkout_rows
from paydesk.domain.payments.checkout_rows import Behind, CheckoutRow
from paydesk.domain.payments.checkouts import LIFETIME, Standing, standing
from paydesk.domain.payments.requests import CheckoutRequest
from paydesk.domain.payments.states import REVERSED, PaymentState
from paydesk.domain.payments.storing import open_checkout

VISA, DECLINED = "4242424242424242", "4000000000000002"


@pytest.mark.parametrize("state", list(PaymentState))
@pytest.mark.parametrize("own", [True, False])
def test_a_checkout_stands_as_its_orders_payment_does(state: PaymentState, own: bool) -> None:
    now = utc_now()
    stands: dict[str, Any] = {
        **dict.fromkeys(CheckoutRow.__struct_fields__),
        "id": 1,
        "expires_at": now,
        "suspended": False,
    }
    paid: dict[str, Any] = {
        **dict.fromkeys(Behind.__struct_fields__),
        "payment_state": state,
        "paying_checkout_id": 1 if own else 2,
    }
    row, behind = CheckoutRow(**stands), Behind(**paid)
    expected = {
        PaymentState.PROCESSING: Standing.PROCESSING,
        PaymentState.CHALLENGED: Standing.CHALLENGED,
        PaymentState.PENDING: Standing.PENDING,
        PaymentState.DECLINED: Standing.EXPIRED,
    }.get(state, (Standing.REVERSED if state in REVERSED else Standing.PAID) if own else Standing.CLOSED)
    assert standing(row, behind, now) is expected
    if state is PaymentState.DECLINED:
        before = now - timedelta(seconds=1)
        assert standing(row, behind, before) is Standing.OPEN
        assert standing(msgspec.structs.replace(row, suspended=True), behind, before) is Standing.SUSPENDED


async def test_a_checkout_that_was_never_tried_is_open_for_24_hours(till: Any) -> None:
    token = await till.order()
    opened = await till.find(token)
    assert (opened.standing, opened.attempt) == (Standing.OPEN, None)
    assert (await till.find(token, now=opened.expires_at - timedelta(seconds=1))).standing is Standing.OPEN
    assert (await till.find(token, now=opened.expires_at)).standing is Standing.EXPIRED
    assert timedelta(hours=24) == LIFETIME


async def test_the_same_request_at_once_opens_one_checkout(till: Any, database: Database) -> None:
    shop, now = till.shop, utc_now()
    request = replace(_request_of(await till.find(await till.order())), merchant_order_id="at once")
    key_id = await database.fetchval("select id from merchant_key where merchant_id = $1", shop.merchant_id)

    async def ask(form: dict[str, str], at: Any = now) -> Link:
        return await open_checkout(database, shop, request, form=form, key_id=key_id, now=at)

    tokens = await asyncio.gather(*(ask({"a": "1", "hash": "h"}) for _ in range(8)))
    assert len(set(tokens)) == 1
    assert await ask({"hash": "h", "a": "1"}) == tokens[0]
    assert await ask({"a": "2", "hash": "h"}) != tokens[0]
    assert await ask({"a": "1", "hash": "other"}) != tokens[0]
    assert await ask({"a": "1", "hash": "h"}, now + timedelta(hours=1)) == tokens[0]
    assert (await till.find(tokens[0])).expires_at == now + LIFETIME, "asking again while it is open prolongs nothing"
    await ask({"a": "1", "hash": "h"}, now + timedelta(hours=25))
    assert (await till.find(tokens[0])).expires_at == now + timedelta(hours=25) + LIFETIME


def _request_of(checkout: Any) -> CheckoutRequest:
    return CheckoutRequest(
        merchant_order_id=checkout.merchant_order_id,
        amount=checkout.amount,
        currency=checkout.currency,
        description=checkout.description,
        success_url=checkout.success_url,
        pingback_url=None,
        sign_version="v1",
        email="",
        first_name="",
        last_name="",
        country="",
        wants_qr_code=False,
    )


async def test_what_was_typed_comes_back_in_that_checkout_only(till: Any) -> None:
    typed_in = await till.order("A-1", first_name="Grace", last_name="Hopper", email="grace@example.com")
    other = await till.order("A-1", first_name="Grace", last_name="Hopper", email="grace@example.com")
    await till.pay(typed_in, DECLINED)
    entered = (await till.find(typed_in)).entered
    assert (entered.email, entered.name, entered.country, entered.expiry) == (
        "ada@example.com",
        "Ada Lovelace",
        "GB",
        "12 / 40",
    )
    entered = (await till.find(other)).entered
    assert (entered.email, entered.name, entered.expiry) == ("grace@example.com", "Grace Hopper", "")


async def test_a_checkout_that_is_deleted_while_it_is_read_is_not_found(
    till: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would be shown without what it sells, as if nobody had paid it."""
    tried = await till.order("A-1")
    await till.pay(tried, DECLINED)

    async def deleted(*_: object, **__: object) -> None:
        return None

    monkeypatch.setattr(checkout_rows.queries, "find_behind_checkout", deleted)
    with pytest.raises(NotFound):
        await till.find(tried)


async def test_the_request_is_kept_as_it_was_posted_but_for_its_hash(till: Any, database: Database) -> None:
    await till.order()
    kept = await database.fetchval("select parameters from checkout where merchant_id = $1", till.shop.merchant_id)
    assert '"nonce"' in kept
    assert '"hash"' not in kept
