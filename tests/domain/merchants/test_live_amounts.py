"""What acquirers would refuse is refused before somebody is to pay it."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest
from tests.shopfront import MONTHLY

from paydesk.core.clock import utc_now
from paydesk.core.currencies import minor_digits
from paydesk.core.errors import Conflict
from paydesk.database.pool import Database
from paydesk.domain.coupons.coupons import read_terms
from paydesk.domain.coupons.keeping import make_coupon
from paydesk.domain.merchants.live_amounts import require_taken, taken
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.subscriptions.packages import find_version, make_package
from paydesk.domain.subscriptions.subscription_terms import Terms

LIVE, TEST = Shop(1, live=True), Shop(1, live=False)
DINARS = replace(MONTHLY, currency="KWD", price=Decimal("17.777"))


@pytest.mark.parametrize(
    ("amount", "currency", "rounded"), [("17.777", "KWD", "17.78"), ("0.001", "BHD", "0.01"), ("1.2", "MGA", "2")]
)
def test_what_has_more_decimals_than_acquirers_take(amount: str, currency: str, rounded: str) -> None:
    with pytest.raises(Conflict, match=rf"don't take {amount}\d* {currency}, .*; ask for {rounded}"):
        require_taken(LIVE, currency, Decimal(1), Decimal(amount))
    require_taken(TEST, currency, Decimal(1), Decimal(amount))


@pytest.mark.parametrize(("amount", "currency"), [("17.770", "KWD"), ("17.77", "USD"), ("500", "JPY"), ("3", "MGA")])
def test_what_acquirers_take(amount: str, currency: str) -> None:
    require_taken(LIVE, currency, Decimal(amount))


@pytest.mark.parametrize("currency", ["USD", "JPY", "KWD", "MGA", "ISK", "CLF"])
@pytest.mark.parametrize("live", [True, False])
async def test_the_schema_takes_of_an_amount_what_is_said_of_it_here(
    database: Database, currency: str, *, live: bool
) -> None:
    units = [0, 1, 4, 9, 10, 99, 100, 101, 999, 10_125, 17_777, 99_999_990, 10**12 + 5]
    amounts = [Decimal(each).scaleb(-minor_digits(currency)) for each in units]
    asked = "select taken(amount, $2, $3) from unnest($1::numeric[]) with ordinality as a (amount, n) order by n"
    there = [row[0] for row in await database.fetch(asked, amounts, currency, live)]
    assert there == [taken(amount, currency, live=live) for amount in amounts]


async def test_a_live_package_has_a_price_that_can_be_charged(database: Database, shop: Shop) -> None:
    async def made(terms: Terms, *, live: bool) -> bool:
        side = Shop(shop.merchant_id, live=live)
        async with database.acquire() as connection:
            await make_package(connection, side, terms, now=utc_now())
        return await find_version(database, side, terms) is not None

    with pytest.raises(Conflict, match=r"17\.777 KWD"):
        await made(DINARS, live=True)
    assert await find_version(database, Shop(shop.merchant_id, live=True), DINARS) is None
    assert await made(DINARS, live=False)
    assert await made(replace(DINARS, price=Decimal("17.770")), live=True)


async def test_a_live_coupon_leaves_a_price_that_can_be_charged(database: Database, shop: Shop) -> None:
    async def made(amount: str, *, live: bool) -> Decimal | None:
        asked = {"code": f"OFF{int(Decimal(amount) * 1000)}", "amount": amount, "currency": "KWD"}
        terms = read_terms(asked, (), valid_from=None, valid_until=None)
        async with database.acquire() as connection:
            return (await make_coupon(connection, Shop(shop.merchant_id, live=live), terms, now=utc_now())).amount

    with pytest.raises(Conflict, match=r"1\.005 KWD"):
        await made("1.005", live=True)
    assert await made("1.005", live=False) == Decimal("1.005")
    assert await made("1.01", live=True) == Decimal("1.01")
