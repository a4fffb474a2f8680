"""What an account shows of failed payments and running subscriptions is what their rows say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from importlib.resources import files
from zoneinfo import ZoneInfo

import pytest
from tests import breaking
from tests.shopfront import MONTHLY
from tests.till import Till

from paydesk.core.clock import utc_now
from paydesk.core.periods import Period
from paydesk.domain.ledger import figures
from paydesk.domain.ledger.figures import Declines, Recurring, Span, declines, period_of, recurring, sales
from paydesk.domain.subscriptions.ending import cancel
from paydesk.domain.subscriptions.subscription_terms import Trial

DECLINED, POOR, EXPIRED = "4000000000000002", "4000000000009995", "4000000000000069"
TRIAL = replace(MONTHLY, sku_id="trial", trial=Trial(Decimal(0), Period(14, "day")))
EURO = replace(MONTHLY, sku_id="euro", currency="EUR")


async def why(till: Till, currency: str = "USD") -> list[Declines]:
    """Why payments of the last week failed."""
    period = period_of(Span.WEEK, ZoneInfo("Europe/Berlin"), now=utc_now())
    return await declines(till.database, till.shop, period, currency)


async def test_a_payment_failed_for_the_reason_of_its_last_attempt(till: Till) -> None:
    again = await till.order("again")
    await till.pay(again, DECLINED)
    await till.pay(again, POOR)
    paid_at_last = await till.order("paid at last")
    await till.pay(paid_at_last, EXPIRED)
    await till.pay(paid_at_last)
    await till.buy("poor", POOR)
    await till.buy("expired", EXPIRED)
    await till.buy("euro", EXPIRED, currency="EUR")
    long_ago = utc_now() - timedelta(days=9)
    await till.pay(await till.order("long ago", now=long_ago), EXPIRED, now=long_ago)
    assert await why(till) == [Declines("insufficient_funds", 2), Declines("expired_card", 1)]
    assert await why(till, "EUR") == [Declines("expired_card", 1)]
    assert await why(till, "JPY") == []


async def test_reasons_are_those_of_the_newest(till: Till, monkeypatch: pytest.MonkeyPatch) -> None:
    now = utc_now()
    for number, card in enumerate((POOR, EXPIRED, DECLINED)):
        at = now - timedelta(hours=number)
        await till.pay(await till.order(f"order-{number}", now=at), card, now=at)
    monkeypatch.setattr(figures, "NEWEST_DECLINES", 2)
    assert {one.reason for one in await why(till)} == {"insufficient_funds", "expired_card"}


def another(zone: str, rules: str) -> ZoneInfo:
    """A time zone whose rules the database knows otherwise, as one of an older release does."""
    with files("tzdata.zoneinfo").joinpath(rules).open("rb") as data:
        return ZoneInfo.from_file(data, key=zone)


@pytest.mark.parametrize(
    "zone_of",
    [
        lambda: ZoneInfo("Australia/Lord_Howe"),
        lambda: ZoneInfo("CET"),
        lambda: another("Asia/Kolkata", "Asia/Kathmandu"),
        lambda: another("localtime", "America/New_York"),
    ],
    ids=["half an hour", "also an abbreviation", "by other rules", "unknown"],
)
async def test_a_payment_is_of_one_day_whatever_the_database_takes_its_zone_for(
    till: Till, zone_of: Callable[[], ZoneInfo]
) -> None:
    zone, now = zone_of(), utc_now()
    summer = datetime(now.year - (now.month < 8), 7, 10, 12, tzinfo=UTC)
    period = period_of(Span.WEEK, zone, now=summer)
    for day in period.days:
        begins = datetime.combine(day, time(), zone).astimezone(UTC)
        for at in (begins - timedelta(microseconds=1), begins):
            await till.sell(f"{at}", amount="3.00", now=at)
    (sold,) = await sales(till.database, till.shop, period, now=summer)
    assert [one.successful for one in sold.by_day] == [2, 2, 2, 2, 2, 2, 1]
    assert (sold.total.successful, sold.total.volume) == (13, Decimal(39))


async def test_subscriptions_run_until_they_end(till: Till) -> None:
    assert await recurring(till.database, till.shop) == []
    stays, ends = await till.subscribe(order="stays"), await till.subscribe(order="ends")
    tried, lost = await till.subscribe(TRIAL, order="tried"), await till.subscribe(TRIAL, order="lost")
    assert await recurring(till.database, till.shop) == [Recurring("USD", active=2, trials=2, failing=0)]
    for one in (ends, lost):
        await cancel(till.database, till.shop, one.id, by="customer", now=utc_now())
    await breaking.say(till.database, "subscription", {"merchant_id": till.shop.merchant_id}, failures=1)
    assert await recurring(till.database, till.shop) == [Recurring("USD", active=1, trials=1, failing=2)]
    for one in (stays, tried):
        await cancel(till.database, till.shop, one.id, by="customer", now=utc_now())
    assert await recurring(till.database, till.shop) == []


async def test_subscriptions_of_several_currencies_are_counted_apart(till: Till) -> None:
    for number, terms in enumerate((MONTHLY, MONTHLY, TRIAL, EURO, EURO, EURO)):
        await till.subscribe(terms, order=f"S-{number}")
    ended = await till.subscribe(EURO, order="ended")
    await cancel(till.database, till.shop, ended.id, by="customer", now=utc_now())
    euros = Recurring("EUR", active=3, trials=0, failing=0)
    assert await recurring(till.database, till.shop) == [euros, Recurring("USD", active=2, trials=1, failing=0)]


async def test_another_side_runs_subscriptions_of_its_own(till: Till) -> None:
    await till.subscribe()
    assert await recurring(till.database, replace(till.shop, live=True)) == []
