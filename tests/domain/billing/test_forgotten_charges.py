"""A shop charges a saved card, the database is put back to before that, and the shop asks again:
money moves once, and the shop learns what became of it.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest
from tests import breaking, set_back
from tests.domain.billing.charges import Charges, charge, taken
from tests.domain.operations.books import Books
from tests.shopfront import become_known, save_card

from paydesk.adapters.acquirers.simulator import Bank, remembering
from paydesk.core.errors import Conflict
from paydesk.domain.billing.charging_saved import Wanted
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk


@pytest.fixture
async def wanted(desk: Desk, bank: Bank, shop: Shop) -> Wanted:
    await set_back.no_codes_counted(desk.database)
    await breaking.paid_elsewhere(desk.database)
    await breaking.no_alarms(desk.database)
    card = await save_card(desk, bank, await become_known(desk, shop))
    return Wanted(card, "power-1", Decimal(20), "USD", "Power for your car")


async def forget(desk: Desk, shop: Shop, payment_id: int) -> None:
    """The database is put back to before a charge: it knows the card alone."""
    tables = ("pingback", "ledger_entry", "instrument_charge", "payment_attempt")
    await breaking.forget(desk.database, shop.merchant_id, *tables, payment_id=payment_id)
    await breaking.forget(desk.database, shop.merchant_id, "payment", id=payment_id)


async def test_asked_again_it_is_taken_up(desk: Desk, shop: Shop, wanted: Wanted, charges: Charges) -> None:
    before = await charge(desk, shop, wanted)
    await forget(desk, shop, before.payment_id)
    assert await charge(desk, shop, wanted) == before, "under the id that the shop was told"
    assert taken(charges) == [Decimal(20)]
    with pytest.raises(Conflict, match="of which 30 are left"):
        await charge(desk, shop, replace(wanted, merchant_order_id="power-2", amount=Decimal(31)), "key-2")


async def test_asked_again_when_the_bank_has_forgotten_the_key_nothing_is_taken_twice(
    desk: Desk, shop: Shop, wanted: Wanted, charges: Charges, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = await charge(desk, shop, wanted)
    await forget(desk, shop, before.payment_id)
    monkeypatch.setattr(remembering, "KEY_LIFETIME", timedelta(0))
    assert await charge(desk, shop, wanted, days=2) == before
    assert taken(charges) == [Decimal(20)]


async def test_asked_again_once_it_was_adopted_the_shop_is_told_of_it(
    desk: Desk, shop: Shop, bank: Bank, wanted: Wanted, charges: Charges
) -> None:
    before = await charge(desk, shop, wanted)
    await forget(desk, shop, before.payment_id)
    books = Books(desk, shop)
    assert [one.payment_id for one in (await books.compare(fix=True)).adopted] == [before.payment_id]
    with pytest.raises(Conflict, match="an order of its own"):
        await charge(desk, shop, replace(wanted, amount=Decimal(21)))
    assert await charge(desk, shop, wanted) == before
    assert await charge(desk, shop, wanted) == before
    with pytest.raises(Conflict, match="an order of its own"):
        await charge(desk, shop, wanted, "key-2")
    assert taken(charges) == [Decimal(20)]
    with pytest.raises(Conflict, match="of which 30 are left"):
        await charge(desk, shop, replace(wanted, merchant_order_id="power-2", amount=Decimal(31)), "key-3")
    assert await books.problems() == []


async def test_what_was_paid_at_a_checkout_is_no_charge(
    desk: Desk, shop: Shop, wanted: Wanted, charges: Charges
) -> None:
    await Books(desk, shop).sell("power-1", amount="20.00")
    with pytest.raises(Conflict, match="an order of its own"):
        await charge(desk, shop, wanted)
    assert taken(charges) == [Decimal(20)]


async def test_what_was_adopted_counts_within_the_limit_before_the_shop_asks_again(
    desk: Desk, shop: Shop, wanted: Wanted, charges: Charges
) -> None:
    most = replace(wanted, amount=Decimal(40))
    before = await charge(desk, shop, most)
    await forget(desk, shop, before.payment_id)
    await Books(desk, shop).compare(fix=True)
    other = replace(wanted, merchant_order_id="power-2", amount=Decimal("10.01"))
    with pytest.raises(Conflict, match="of which 10 are left"):
        await charge(desk, shop, other, "key-2")
    assert await charge(desk, shop, most) == before, "it is no second one"
    await charge(desk, shop, replace(other, amount=Decimal(10)), "key-3")
    assert taken(charges) == [Decimal(40), Decimal(10)]
