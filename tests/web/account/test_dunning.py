from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from tests import set_back
from tests.banks import ObedientBank
from tests.shopfront import MONTHLY
from tests.till import Till
from tests.web.account.conftest import SignUp, Visitor, text_of
from tests.web.account.selling import Seller, seller_of

from paydesk.adapters.acquirers.interface import DeclineReason
from paydesk.core.clock import utc_now
from paydesk.core.paging import Page
from paydesk.core.periods import Period
from paydesk.domain.business.dunning_for_team import days_looked_at
from paydesk.domain.payments.desk import Desk
from paydesk.domain.subscriptions.ending import cancel
from paydesk.domain.subscriptions.lifecycle import Subscription
from paydesk.domain.subscriptions.subscription_terms import Terms

POOR, STOLEN, TOO_LATE = DeclineReason.INSUFFICIENT_FUNDS, DeclineReason.STOLEN_CARD, DeclineReason.TOO_LATE
YEN = Terms("Tea letter", "tea", "JPY", Decimal(900), Period(1, "month"), None, 0)
NOON = datetime(2028, 6, 15, 12, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Shop:
    """A shop whose renewals go as it is told."""

    seller: Seller
    club: Till
    bank: ObedientBank

    async def renew(self, order: str, *answers: DeclineReason | None, terms: Terms = MONTHLY) -> Subscription:
        """A customer subscribes; then the bank answers the next period's charges, one by one."""
        self.bank.refuse = None
        subscription = await self.club.subscribe(terms, order=order)
        for answer in answers:
            self.bank.refuse = answer
            subscription = await self.club.charge_due(subscription)
        return subscription

    async def later(self) -> None:
        """It is 40 days later by the test clock, so that the first renewals are past."""
        await set_back.clock_runs_ahead(self.club.database, self.seller.shop.merchant_id, timedelta(days=40))


@pytest.fixture
async def selling(desk: Desk, owner: Visitor) -> Shop:
    seller, bank = seller_of(desk, owner), ObedientBank()
    return Shop(seller, Till(desk, seller.shop).at(bank), bank)


def url(owner: Visitor, below: str = "") -> str:
    return f"{owner.merchant_path}/subscriptions/dunning{below}"


def table(page: str, caption: str) -> list[list[str]]:
    """The cells of a table, line by line; none if it has nothing to show."""
    found = re.search(rf"<caption[^>]*>{caption}</caption>.*?<tbody>(.*?)</tbody>", page, re.DOTALL)
    lines = re.findall(r"<tr>(.*?)</tr>", found[1], re.DOTALL) if found else []
    return [[re.sub(r"<[^>]*>?", "", f"<td{cell}").strip() for cell in line.split("<td")[1:]] for line in lines]


def figures(page: str) -> Sequence[str]:
    return re.findall(r'<p class="value">\s*(\d+)\s*</p>', page)


async def test_what_failed_is_shown_by_what_became_of_it(owner: Visitor, selling: Shop) -> None:
    await selling.renew("well", None)
    await selling.renew("first-try", POOR, None)
    await selling.renew("third-try", POOR, POOR, POOR, None)
    await selling.renew("tea", POOR, None, terms=YEN)
    await selling.renew("lost", POOR, POOR, POOR, STOLEN)
    await selling.renew("open", STOLEN)
    left = await selling.renew("left", POOR)
    await cancel(selling.club.database, selling.seller.shop, left.id, by="customer", now=utc_now())
    await selling.later()
    page = (await owner.see(url(owner))).text
    assert figures(page) == ["1", "3", "1", "1"]
    assert [cells[1:] for cells in table(page, "Failing now")] == [["1", "10.00\xa0USD"]]
    assert table(page, "Recovered, by try") == [
        ["Try 1 after the first", "1", "900\xa0JPY"],
        ["Try 1 after the first", "1", "10.00\xa0USD"],
        ["Try 3 after the first", "1", "10.00\xa0USD"],
    ]
    assert [cells[1:] for cells in table(page, "Lost, by reason")] == [["1", "10.00\xa0USD"]]


async def test_what_no_bank_considered_is_no_failure(owner: Visitor, selling: Shop) -> None:
    await selling.renew("late", TOO_LATE, None)
    await selling.later()
    assert figures((await owner.see(url(owner))).text) == ["0", "0", "0", "0"]


async def test_the_file_has_each_charge_that_failed(owner: Visitor, selling: Shop) -> None:
    await selling.renew("well", None)
    paid = await selling.renew("paid", POOR, None)
    await selling.renew("open", POOR, STOLEN)
    await selling.later()
    answer = await owner.see(url(owner, "/export"))
    rows = {row["subscription_id"]: row for row in csv.DictReader(io.StringIO(answer.text))}
    assert len(rows) == 2
    row = rows.pop(str(paid.id))
    assert (row["outcome"], row["failures"], row["decline_reason"]) == ("recovered", "1", "insufficient_funds")
    assert (row["amount"], row["currency"], row["period"]) == ("10", "USD", "2")
    assert row["paid_at"] > row["first_tried_at"]
    (row,) = rows.values()
    assert (row["outcome"], row["failures"], row["decline_reason"], row["paid_at"]) == ("open", "2", "stolen_card", "")
    assert await selling.seller.audited("exported") == ["dunning"]


async def test_days_narrow_it(owner: Visitor, selling: Shop) -> None:
    await selling.renew("paid", POOR, None)
    await selling.later()
    page = (await owner.see(url(owner, "?since=2020-01-01&until=2020-01-31"))).text
    assert figures(page) == ["0", "0", "0", "0"]
    assert "Nothing was recovered in these days." in page


def test_no_period_is_longer_than_a_quarter() -> None:
    now, day = NOON, timedelta(days=1)
    usual = days_looked_at(Page(1), now=now)
    assert now < usual.until
    assert usual.until - usual.since == 30 * day
    assert days_looked_at(Page(1, since=now - 400 * day), now=now).since == usual.until - 92 * day
    asked = days_looked_at(Page(1, since=now - 400 * day, until=now - 390 * day), now=now)
    assert (asked.since, asked.until) == (now - 400 * day, now - 390 * day)
    assert days_looked_at(Page(1, until=now - 390 * day), now=now).since == now - 420 * day


async def test_another_merchants_are_not_shown(owner: Visitor, selling: Shop, sign_up: SignUp) -> None:
    await selling.renew("open", POOR)
    other = await sign_up()
    assert (await other.see(url(owner))).status_code == 404
    assert "Nothing is failing now." in text_of(await other.see(url(other)))
