import html
import json
import re
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import httpx
import pytest
from tests import breaking
from tests.web.account.conftest import Join, SignUp, Visitor, leads_to, text_of
from tests.web.account.selling import POOR, Seller, seller_of

from paydesk.core.clock import utc_now
from paydesk.core.periods import Period
from paydesk.domain.accounts.roles import Role
from paydesk.domain.ledger.figures import Span, period_of, sales
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.refunding import refund
from paydesk.domain.subscriptions.subscription_terms import Terms, Trial

MONTHLY = Terms("Coffee club", "club", "USD", Decimal("10.00"), Period(1, "month"), None, 0)
BERLIN, UTC_ZONE = ZoneInfo("Europe/Berlin"), ZoneInfo("UTC")


@pytest.fixture
def seller(desk: Desk, owner: Visitor) -> Seller:
    return seller_of(desk, owner)


def url(visitor: Visitor, query: str = "") -> str:
    return f"{visitor.merchant_path}/overview{query}"


def figures(answer: httpx.Response) -> dict[str, tuple[str, str]]:
    """What each figure says, and where it leads; of several with one name the last."""
    assert answer.status_code == 200, text_of(answer)
    found = re.findall(
        r'class="subheader">([^<]+)</p>\s*<p class="value[^"]*">\s*<a href="([^"]+)">([^<]+)</a>',
        html.unescape(answer.text),
    )
    return {label: (value.replace("\u00a0", " "), address) for label, address, value in found}


def plot_of(text: str) -> list[tuple[str, str]]:
    """What the page's large chart says of each step."""
    told = re.search(r'class="plot-area" data-plot="([^"]+)"', text)
    if told is None:
        return []
    plot = json.loads(html.unescape(told[1]))
    assert [len(line["values"]) for line in plot["lines"]] == [len(plot["ticks"])] * 2
    return list(zip(plot["steps"], plot["lines"][0]["said"], strict=True))


async def orders_at(visitor: Visitor, address: str) -> set[str]:
    return set(
        re.findall(
            r"/payments/\d+\"><bdi>[^<]+</bdi><span [^>]*>, <bdi>([^<]+)</bdi>", (await visitor.see(address)).text
        )
    )


async def test_a_new_merchant_is_told_where_to_begin(owner: Visitor, join: Join) -> None:
    assert leads_to(await owner.see(owner.merchant_path)) == url(owner)
    answer = await owner.see(url(owner))
    assert "No payments yet" in text_of(answer)
    assert f'href="{owner.merchant_path}/developers"' in answer.text
    viewer = await join(owner, Role.viewer)
    assert "Copy your keys" not in text_of(await viewer.see(url(owner)))


async def test_figures_are_what_was_bought_declined_and_given_back(owner: Visitor, seller: Seller) -> None:
    await seller.sell("A-1", amount="10.00")
    await seller.sell("A-2", amount="5.50")
    await seller.sell("poor", amount="99.00", number=POOR)
    back = await seller.sell("back", amount="20.00")
    await refund(seller.desk, seller.shop, back, Decimal(4), requested_by="test", now=utc_now())
    answer = await owner.see(url(owner))
    shown = figures(answer)
    assert shown["Volume"][0] == "35.50 USD"
    assert shown["Successful payments"][0] == "3"
    assert shown["Failed payments"][0] == "1"
    assert shown["Refunded"][0] == "4.00 USD"
    for label, orders in {
        "Volume": {"A-1", "A-2", "back"},
        "Successful payments": {"A-1", "A-2", "back"},
        "Failed payments": {"poor"},
        "Refunded": {"back"},
    }.items():
        assert await orders_at(owner, shown[label][1]) == orders, label


async def test_subscriptions_bring_what_they_cost_in_a_month(owner: Visitor, seller: Seller) -> None:
    yearly = replace(MONTHLY, sku_id="year", price=Decimal(120), period=Period(1, "year"))
    weekly = replace(MONTHLY, sku_id="weeks", price=Decimal(7), period=Period(2, "week"))
    trial = replace(MONTHLY, sku_id="trial", trial=Trial(Decimal(0), Period(14, "day")))
    for number, terms in enumerate((MONTHLY, yearly, weekly, trial)):
        await seller.sell(f"S-{number}", amount=str(terms.price), terms=terms)
    shown = figures(await owner.see(url(owner)))
    assert shown["Active subscriptions, USD"] == ("3", f"{owner.merchant_path}/subscriptions?status=Active")
    # 10 + 120 / 12 + 7 * 30.436875 / 14, and nothing of the trial
    revenue = f"{owner.merchant_path}/subscriptions/revenue"
    assert shown["Monthly recurring revenue"] == ("35.22 USD", revenue)
    assert "35.22 USD" in text_of(await owner.see(revenue)).replace("\u00a0", " ")
    assert "Failing renewals" not in shown
    await seller.database.execute(
        "update subscription set failures = 1 where merchant_id = $1 and init_merchant_order_id in ('S-0', 'S-1')",
        seller.shop.merchant_id,
    )
    assert figures(await owner.see(url(owner)))["Failing renewals"][0] == "2"


async def test_pingbacks_are_counted_by_what_became_of_them(owner: Visitor, seller: Seller, join: Join) -> None:
    for state in ("acknowledged", "acknowledged", "exhausted", "due"):
        payment_id = await seller.sell()
        await breaking.say(
            seller.database, "pingback", {"merchant_id": seller.shop.merchant_id, "payment_id": payment_id}, state=state
        )
    shown = figures(await owner.see(url(owner)))
    assert (shown["Acknowledged"][0], shown["Being sent"][0], shown["Failed"][0]) == ("50% of 4", "1", "1")
    for label, rows in {"Acknowledged": 2, "Being sent": 1, "Failed": 1}.items():
        assert len(re.findall(r'/pingbacks/\d+"', (await owner.see(shown[label][1])).text)) == rows, label
    viewer = await join(owner, Role.viewer)
    assert "Acknowledged" not in figures(await viewer.see(url(owner)))


async def test_the_chart_and_its_table_have_the_same_numbers(owner: Visitor, seller: Seller) -> None:
    await seller.sell(amount="12.00")
    for period, steps in {"today": 0, "7d": 7, "30d": 30, "12m": 12}.items():
        text = (await owner.see(url(owner, f"?period={period}"))).text
        drawn = plot_of(text)
        assert len(drawn) == steps, period
        assert text.count("data-spark") == (4 if steps else 0)
        assert ("uplot" in text) == bool(steps), "the library is loaded where it draws something"
        if steps:
            listed = re.findall(
                r'<td class="above plain"><time[^>]*>([^<]+)</time>'
                r'\s*<td class="above plain aside end"><bdi[^>]*>([^<]+)<',
                text,
            )
            assert drawn == listed
            sold = [amount for _, amount in drawn[-2:] if amount != "0.00\u00a0USD"]
            assert sold == ["12.00\u00a0USD"], "in the last step, or the one before if that has ended since"
    assert 'style="' not in text


async def test_the_period_before_stands_beside_up_to_the_same_moment(seller: Seller) -> None:
    now = datetime(2026, 3, 29, 12, tzinfo=UTC)
    for days, hour, amount in ((0, 9, "30.00"), (1, 9, "20.00"), (1, 13, "7.00"), (2, 9, "5.00")):
        at = datetime(2026, 3, 29 - days, hour, tzinfo=UTC)
        await seller.sell(f"{days}-{hour}", amount=amount, now=at)
    [today] = await sales(seller.database, seller.shop, period_of(Span.TODAY, UTC_ZONE, now=now), now=now)
    assert (today.total.volume, today.before.volume) == (Decimal(30), Decimal(20))
    [week] = await sales(seller.database, seller.shop, period_of(Span.WEEK, UTC_ZONE, now=now), now=now)
    assert (week.total.volume, week.before.successful) == (Decimal(62), 0)
    later = now + timedelta(days=7)
    await seller.sell("later", amount="1.00", now=later)
    [after] = await sales(seller.database, seller.shop, period_of(Span.WEEK, UTC_ZONE, now=later), now=later)
    assert [one.volume for one in after.by_day_before] == [0, 0, 0, 0, Decimal(5), Decimal(27), Decimal(30)]
    assert after.by_day_before[-1].day == date(2026, 3, 29)


def test_a_year_is_compared_with_the_year_before() -> None:
    year = period_of(Span.YEAR, UTC_ZONE, now=datetime(2028, 2, 29, 12, tzinfo=UTC))
    assert (year.first, year.last) == (date(2027, 3, 1), date(2028, 2, 29))
    assert (year.before.first, year.before.last) == (date(2026, 3, 1), date(2027, 2, 28))
    assert len(year.before.days) == 12
    assert year.before.until == year.since


async def test_a_figure_says_how_it_moved(owner: Visitor, seller: Seller) -> None:
    now = utc_now()
    for number, at in enumerate((now, now, now, now - timedelta(days=31), now - timedelta(days=31))):
        await seller.sell(f"M-{number}", amount="10.00", now=at)
    await seller.sell("poor", number=POOR, now=now - timedelta(days=31))
    text = text_of(await owner.see(url(owner))).replace("\u00a0", " ")
    assert "30.00 USD +50% to the period before" in text
    assert "Failed payments 0 −100% to the period before" in text


async def test_what_needs_the_team_leads_there(owner: Visitor, seller: Seller) -> None:
    await seller.sell()
    assert "Nothing needs you now." in text_of(await owner.see(url(owner)))
    path = owner.merchant_path
    side = {"merchant_id": seller.shop.merchant_id}
    waits = await seller.sell("to ship")
    await breaking.say(seller.database, "payment", {**side, "id": waits}, state="authorized", ship_by=utc_now())
    subscribed = await seller.sell("S-1", amount="10.00", terms=MONTHLY)
    await breaking.say(seller.database, "subscription", {**side, "init_payment_id": subscribed}, failures=1)
    await breaking.say(
        seller.database,
        "pingback",
        {**side, "payment_id": waits},
        state="exhausted",
        attempts=3,
        url="https://gone.example",
    )
    answer = await owner.see(url(owner))
    shown = text_of(answer)
    assert "1 order to ship until" in shown
    assert "1 failing renewal" in shown
    assert "An address takes no pingbacks since" in shown
    for page in ("deliveries", "subscriptions?status=failing", "pingbacks"):
        assert f'<li><a href="{path}/{page}">' in answer.text
    assert "dispute to answer" not in shown


async def test_why_payments_failed_stands_beside_how_many_did_not(owner: Visitor, seller: Seller) -> None:
    for number in range(3):
        await seller.sell(f"A-{number}")
    await seller.sell("poor", number=POOR)
    text = text_of(await owner.see(url(owner)))
    assert "Success rate 75%" in text
    assert "Why payments failed Not enough money on the card 1" in text


async def test_currencies_are_never_added_up(owner: Visitor, seller: Seller) -> None:
    await seller.sell(amount="12.00")
    other = await seller.sell(amount="900.00")
    await breaking.say(
        seller.database, "payment", {"merchant_id": seller.shop.merchant_id, "id": other}, currency="JPY"
    )
    await seller.sell(amount="3.00")
    first = await owner.see(url(owner))
    assert figures(first)["Volume"][0] == "15.00 USD", "the currency that is used most comes first"
    [other_tab] = re.findall(r'<a href="([^"]+)"[^>]*>\s*JPY\s*</a>', html.unescape(first.text))
    assert figures(await owner.see(other_tab))["Volume"][0] == "900 JPY"
    assert not any(value.startswith(("912", "915")) for value, _ in figures(first).values())


async def test_days_begin_at_the_merchants_midnight(seller: Seller) -> None:
    now = datetime(2026, 3, 29, 12, tzinfo=UTC)
    # In Berlin that day has 23 hours: from 23:00 UTC the day before to 22:00 UTC.
    for reference, at in {
        "before": datetime(2026, 3, 28, 22, 59, 59, tzinfo=UTC),
        "first": datetime(2026, 3, 28, 23, 0, tzinfo=UTC),
        "last": datetime(2026, 3, 29, 21, 59, 59, tzinfo=UTC),
        "after": datetime(2026, 3, 29, 22, 0, tzinfo=UTC),
    }.items():
        await seller.sell(reference, now=at)
    [today] = await sales(seller.database, seller.shop, period_of(Span.TODAY, BERLIN, now=now), now=now)
    assert today.total.successful == 2
    [week] = await sales(seller.database, seller.shop, period_of(Span.WEEK, BERLIN, now=now), now=now)
    assert [one.successful for one in week.by_day] == [0, 0, 0, 0, 0, 1, 2]
    [year] = await sales(seller.database, seller.shop, period_of(Span.YEAR, BERLIN, now=now), now=now)
    assert [(one.day, one.successful) for one in year.by_day][-2:] == [(date(2026, 2, 1), 0), (date(2026, 3, 1), 3)]


async def test_the_other_side_has_figures_of_its_own(owner: Visitor, seller: Seller) -> None:
    await seller.sell(amount="12.00")
    await owner.send(url(owner), f"{owner.merchant_path}/mode", live="1")
    assert "12.00" not in (await owner.see(url(owner))).text


@pytest.mark.parametrize("role", list(Role))
async def test_every_role_sees_the_overview(owner: Visitor, join: Join, role: Role) -> None:
    assert (await (await join(owner, role)).see(url(owner))).status_code == 200


async def test_nobody_sees_another_merchants_figures(owner: Visitor, seller: Seller, sign_up: SignUp) -> None:
    await seller.sell(amount="12.00")
    other = await sign_up("Other Shop")
    answer = await other.see(url(owner))
    assert answer.status_code == 404
    assert "12.00" not in answer.text
    assert "No payments yet" in text_of(await other.see(url(other)))


@pytest.mark.parametrize("hostile", ["1000y", "%00", "'; drop table payment", "<script>alert(1)</script>", "9" * 5000])
async def test_an_unknown_period_is_the_usual_one(owner: Visitor, seller: Seller, hostile: str) -> None:
    await seller.sell()
    answer = await owner.see(url(owner, f"?period={hostile}"))
    assert len(plot_of(answer.text)) == 30
    assert "alert(1)" not in answer.text


@pytest.mark.parametrize("whose", ["person", "merchant"])
@pytest.mark.parametrize("page", ["overview", "payments", "balance", "settings/team"])
async def test_a_page_is_by_utc_where_this_machine_knows_no_time_zone_of_that_name(
    owner: Visitor, seller: Seller, whose: str, page: str
) -> None:
    await seller.sell()
    await breaking.say(seller.database, whose, {}, time_zone="Mars/Olympus")
    assert (await owner.see(f"{owner.merchant_path}/{page}")).status_code == 200
