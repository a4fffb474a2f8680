from __future__ import annotations

import csv
import io
import re
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest
from tests import set_back
from tests.banks import ObedientBank
from tests.shopfront import MONTHLY
from tests.till import Till
from tests.web.account.conftest import SignUp, Visitor, text_of
from tests.web.account.selling import seller_of

from paydesk.adapters.acquirers.interface import DeclineReason
from paydesk.core.clock import utc_now
from paydesk.core.periods import Period
from paydesk.domain.business.revenue_for_team import monthly, revenue
from paydesk.domain.ledger.figures import Span, period_of
from paydesk.domain.payments.desk import Desk
from paydesk.domain.subscriptions.changing import pause, resume
from paydesk.domain.subscriptions.changing_plans import Plan, change_plan
from paydesk.domain.subscriptions.ending import cancel
from paydesk.domain.subscriptions.folding import fold_movements
from paydesk.domain.subscriptions.subscription_terms import Terms, Trial

TRIAL = replace(MONTHLY, trial=Trial(Decimal(0), Period(14, "day")))
YEARLY = replace(MONTHLY, price=Decimal("100.00"), period=Period(1, "year"))
YEN = Terms("Tea letter", "tea", "JPY", Decimal(900), Period(1, "month"), None, 0)


@pytest.fixture
async def club(desk: Desk, owner: Visitor) -> Till:
    return Till(desk, seller_of(desk, owner).shop).at(ObedientBank())


def url(owner: Visitor, below: str = "") -> str:
    return f"{owner.merchant_path}/subscriptions/revenue{below}"


async def figures(owner: Visitor, query: str = "") -> dict[str, str]:
    page = (await owner.see(url(owner, query))).text
    found = re.findall(r'subheader">([^<]+)</p>\s*<p class="value[^"]*">\s*(?:<a[^>]*>)?([^<]+?)\s*<', page)
    return {name: value.replace("\xa0", " ") for name, value in found}


async def rows(owner: Visitor, below: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO((await owner.see(url(owner, below))).text)))


async def test_what_counts_is_shown_by_how_it_moved(owner: Visitor, club: Till) -> None:
    await club.subscribe(order="stays")
    await club.subscribe(YEARLY, order="yearly")
    await club.subscribe(YEN, order="tea")
    tried = await club.subscribe(TRIAL, order="tried")
    left = await club.subscribe(order="left")
    away = await club.subscribe(order="away")
    await cancel(club.database, club.shop, left.id, by="customer", now=utc_now())
    await pause(club.database, club.shop, away.id, until=None, by="customer", now=utc_now())
    await cancel(club.database, club.shop, tried.id, by="customer", now=utc_now())
    before = await figures(owner)
    assert before["MRR"] == "18.33 USD"
    assert (before["Subscriptions that count"], before["Trial conversion"]) == ("2", "0%")
    assert (await figures(owner, "?currency=JPY"))["MRR"] == "900 JPY"
    await fold_movements(club.database)
    assert await figures(owner) == before, "folded or not, it is the same"
    page = text_of(await owner.see(url(owner)))
    assert "Churn 2 -20.00" in page.replace("\xa0", " ").replace("−", "-")


async def test_what_subscriptions_bring_in_a_month_is_what_the_report_ends_with(owner: Visitor, club: Till) -> None:
    for number, terms in enumerate((YEARLY, YEARLY, YEN, TRIAL)):
        await club.subscribe(terms, order=f"S-{number}")
    left = await club.subscribe(order="left")
    later = utc_now() + timedelta(days=20)
    await set_back.clock_runs_ahead(club.database, club.shop.merchant_id, timedelta(days=20))
    await cancel(club.database, club.shop, left.id, by="customer", now=later)
    for folded in (False, True):
        if folded:
            await fold_movements(club.database)
        for span in Span:
            for now in (later, later - timedelta(days=10), later - timedelta(days=400)):
                period = period_of(span, ZoneInfo("UTC"), now=now)
                ends = {one.currency: one.total.after for one in await revenue(club.database, club.shop, period)}
                assert await monthly(club.database, club.shop, until=period.last) == ends
    assert await monthly(club.database, club.shop, until=later.date()) == {"USD": Decimal("16.67"), "JPY": Decimal(900)}


async def test_what_the_range_began_with_is_what_churn_is_a_share_of(owner: Visitor, club: Till) -> None:
    first, _ = await club.subscribe(order="first"), await club.subscribe(order="second")
    later = utc_now() + timedelta(days=60)
    await set_back.clock_runs_ahead(club.database, club.shop.merchant_id, timedelta(days=60))
    await cancel(club.database, club.shop, first.id, by="customer", now=later)
    found = await figures(owner)
    assert (found["MRR"], found["Customer churn"], found["Revenue churn"]) == ("10.00 USD", "50%", "50%")
    (cohort,) = await rows(owner, "/cohorts/export")
    assert (cohort["subscriptions"], cohort["month_0"]) == ("2", "2")
    assert "1" in cohort.values()


async def test_the_files_add_up(owner: Visitor, club: Till) -> None:
    left = await club.subscribe(YEARLY, order="left")
    await club.subscribe(YEARLY, order="stays")
    await cancel(club.database, club.shop, left.id, by="customer", now=utc_now())
    days = await rows(owner, "/export?period=30d")
    assert len(days) == 30
    moved = sum(
        Decimal(day[kind]) for day in days for kind in ("new", "expansion", "reactivation", "contraction", "churn")
    )
    assert Decimal(days[0]["mrr_before"]) + moved == Decimal(days[-1]["mrr_after"]) == Decimal("8.33")
    single = await rows(owner, "/movements/export")
    assert [row["kind"] for row in single] == ["new", "churn", "new"]
    assert sum(Decimal(row["amount"]) for row in single) == Decimal("8.3333")


async def test_each_way_to_move_is_shown_and_what_dunning_brought_back(owner: Visitor, club: Till) -> None:
    bank = club.desk.acquirers["simulator"]
    assert isinstance(bank, ObedientBank)
    failing = await club.subscribe(order="fails")
    paying, lost = await club.subscribe(TRIAL, order="pays"), await club.subscribe(TRIAL, order="lost")
    known = {
        name: (club.database, club.shop, (await club.subscribe(order=name)).id) for name in ("dear", "less", "away")
    }
    begun = utc_now()
    await cancel(club.database, club.shop, lost.id, by="customer", now=begun)
    await change_plan(*known["dear"], Plan(price="30.00"), by="api", at_once=True, now=begun)
    await change_plan(*known["less"], Plan(price="4.00"), by="api", at_once=True, now=begun)
    await pause(*known["away"], by="customer", now=begun)
    await resume(*known["away"], now=begun + timedelta(days=9))
    assert (await club.charge_due(paying)).state == "Active"
    bank.refuse = DeclineReason.INSUFFICIENT_FUNDS
    await club.charge_due(failing)
    bank.refuse = None
    await club.charge((await club.now(failing)).date_next)
    assert (await club.now(failing)).paid_number_counter == 2
    await set_back.clock_runs_ahead(club.database, club.shop.merchant_id, timedelta(days=40))
    found = await figures(owner, "?period=12m")
    assert (found["MRR"], found["Subscriptions that count"]) == ("64.00 USD", "5")
    assert (found["Trial conversion"], found["Recovered by dunning"]) == ("50%", "10.00 USD")
    page = text_of(await owner.see(url(owner, "?period=12m"))).replace("\xa0", " ").replace("−", "-")
    for line in ("New 5 50.00", "Expansion 1 20.00", "Reactivation 1 10.00", "Contraction 1 -6.00", "Churn 1 -10.00"):
        assert line in page
    assert sum(Decimal(row["amount"]) for row in await rows(owner, "/movements/export?period=12m")) == Decimal(64)


async def test_without_subscriptions_the_page_says_so(owner: Visitor, club: Till, sign_up: SignUp) -> None:
    await club.subscribe()
    other = await sign_up()
    assert "No recurring revenue yet" in text_of(await other.see(url(other)))
    assert (await other.see(url(owner))).status_code == 404
