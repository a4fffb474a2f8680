from __future__ import annotations

from decimal import Decimal

import pytest
from tests import set_back, shopfront

from paydesk.core.clock import utc_now
from paydesk.core.errors import NotFound
from paydesk.core.paging import Page
from paydesk.database.pool import Database
from paydesk.domain.chargebacks.reading_acquirers import read_disputes
from paydesk.domain.chargebacks.states import ChargebackState
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.operations.chargebacks_for_operator import (
    chargebacks_without_evidence,
    find_chargeback_for_operator,
    list_all_chargebacks,
)
from paydesk.domain.payments.desk import Desk

CHARGED_BACK = "4000000000000259"


async def test_all_chargebacks_are_listed_by_their_state_and_found_at_their_merchant_only(
    desk: Desk, database: Database, shop: Shop, other_shop: Shop
) -> None:
    await set_back.banks_tell_again(database)
    payment_id = await shopfront.buy(desk, shop, number=CHARGED_BACK)
    await read_disputes(desk, now=utc_now())
    page = Page(50)
    [mine] = [one for one in await list_all_chargebacks(database, page, live=False) if one.payment_id == payment_id]
    assert (mine.merchant_name, mine.state, mine.taken) == ("Corner Shop", ChargebackState.OPEN, Decimal(10))
    in_state = {one: await list_all_chargebacks(database, page, live=False, state=one) for one in ChargebackState}
    assert [state for state, found in in_state.items() if mine in found] == [ChargebackState.OPEN]
    assert await find_chargeback_for_operator(database, shop.merchant_id, mine.id) == mine
    with pytest.raises(NotFound):
        await find_chargeback_for_operator(database, other_shop.merchant_id, mine.id)
    assert mine not in await list_all_chargebacks(database, page, live=True)
    assert await chargebacks_without_evidence(database, most=5) == 0, "test money wants no evidence"
