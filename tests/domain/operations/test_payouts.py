from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from tests import shopfront

from paydesk.adapters.vault import Vault
from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict, NotFound
from paydesk.core.paging import Page
from paydesk.database.pool import Database
from paydesk.domain.accounts.audit import COMMAND_LINE
from paydesk.domain.ledger.payouts import Sent
from paydesk.domain.ledger.settling import settle_due
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.operations.payouts import (
    Payable,
    every_payout,
    list_all_payouts,
    pay_out,
    payable,
    read_bank_account,
)
from paydesk.domain.payments.desk import Desk


async def payable_to(database: Database, shop: Shop, *, live: bool = False) -> list[Payable]:
    return await payable(database, live=live, most=10, merchant_id=shop.merchant_id, now=utc_now())


def sent(amount: str, reference: str = "T-1") -> Sent:
    return Sent(Decimal(amount), "USD", reference, "command")


@pytest.fixture
def settle(database: Database) -> Callable[[Shop], Awaitable[Any]]:
    """A shop's money that was captured by now becomes available, a week and a day from now."""

    async def become_available(shop: Shop) -> None:
        at = utc_now() + timedelta(days=8)
        await settle_due(database, real_now=utc_now(), merchant_id=shop.merchant_id, at=at)

    return become_available


async def test_what_is_settled_may_be_sent_and_what_was_sent_may_not_be_sent_again(
    desk: Desk, database: Database, shop: Shop, settle: Any
) -> None:
    await shopfront.buy(desk, shop)
    assert await payable_to(database, shop) == [], "a payment of today is not available yet"
    await settle(shop)
    [whole] = await payable_to(database, shop)
    assert (whole.merchant_name, whole.currency, whole.waits, whole.suspended) == ("Corner Shop", "USD", False, False)
    await pay_out(database, COMMAND_LINE, shop, sent("2.00"), now=utc_now())
    [rest] = await payable_to(database, shop)
    assert rest.available == whole.available - 2
    with pytest.raises(Conflict):
        await pay_out(database, COMMAND_LINE, shop, sent("500.00", "T-2"), now=utc_now())
    assert await payable_to(database, shop, live=True) == [], "test money is no live money"


async def test_the_list_goes_on_behind_the_last_merchant_of_a_page(
    desk: Desk, database: Database, shop: Shop, other_shop: Shop, settle: Any
) -> None:
    for one in (shop, other_shop):
        await shopfront.buy(desk, one)
        await settle(one)
    first, second = sorted(one.merchant_id for one in (shop, other_shop))
    page = await payable(database, live=False, most=1, after=(first, ""), now=utc_now())
    assert [one.merchant_id for one in page] == [first]
    page = await payable(database, live=False, most=1, after=(first, page[0].currency), now=utc_now())
    assert [one.merchant_id for one in page] == [second]


async def test_a_payout_stands_in_the_list_of_all_and_in_the_log_once(
    desk: Desk, database: Database, shop: Shop, settle: Any
) -> None:
    await shopfront.buy(desk, shop)
    await settle(shop)
    for _ in range(2):
        await pay_out(database, COMMAND_LINE, shop, sent("1.50"), now=utc_now())
    listed = await list_all_payouts(database, Page(50), live=False)
    mine = [one for one in listed if one.merchant_id == shop.merchant_id]
    assert [(one.merchant_name, one.amount, one.reference) for one in mine] == [("Corner Shop", Decimal("1.50"), "T-1")]
    assert mine == [one async for one in every_payout(database, live=False) if one.merchant_id == shop.merchant_id]
    noted = await database.fetch(
        "select subject, details->>'amount' as amount from audit_entry where merchant_id = $1 and action = $2",
        shop.merchant_id,
        "payout_changed",
    )
    assert [(row["subject"], row["amount"]) for row in noted] == [(f"payout {mine[0].id}", "1.50")]


async def test_a_bank_account_that_was_never_given_is_not_found_and_not_logged(
    database: Database, vault: Vault, shop: Shop
) -> None:
    with pytest.raises(NotFound):
        await read_bank_account(database, vault, COMMAND_LINE, shop.merchant_id, now=utc_now())
    assert not await database.fetchval("select count(*) from audit_entry where merchant_id = $1", shop.merchant_id)
