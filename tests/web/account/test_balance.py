import csv
import io
from datetime import date, timedelta
from decimal import Decimal

import pytest
from tests.domain.ledger.paying_out import record_payout
from tests.web.account.conftest import Join, SignUp, Visitor, text_of
from tests.web.account.selling import Seller, seller_of

from paydesk.core.clock import utc_now
from paydesk.domain.accounts.roles import Role
from paydesk.domain.ledger.balances import Balance, Release
from paydesk.domain.ledger.settling import settle_due
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.refunding import refund
from paydesk.web.account.balance import by_month, parts_of


@pytest.fixture
def seller(desk: Desk, owner: Visitor) -> Seller:
    return seller_of(desk, owner)


def url(visitor: Visitor, page: str = "") -> str:
    return f"{visitor.merchant_path}/balance{page}"


async def settle(seller: Seller, days: int = 8) -> None:
    at = utc_now() + timedelta(days=days)
    while await settle_due(seller.database, real_now=utc_now(), merchant_id=seller.shop.merchant_id, at=at):
        pass


async def test_a_new_merchant_has_no_money_yet(owner: Visitor) -> None:
    assert "No money yet." in text_of(await owner.see(url(owner)))


async def test_the_page_says_what_is_pending_available_and_reserved(owner: Visitor, seller: Seller) -> None:
    await seller.sell("A-1")
    shown = text_of(await owner.see(url(owner)))
    assert "Available 0.00 USD" in shown
    assert "Pending 8.90 USD" in shown
    assert "Reserve 0.50 USD" in shown
    assert "Reserve calendar" in shown
    await settle(seller)
    shown = text_of(await owner.see(url(owner)))
    assert "Available 8.90 USD" in shown
    assert "Became available" in shown


async def test_payouts_refunds_and_what_is_owed_are_shown(owner: Visitor, seller: Seller) -> None:
    payment_id = await seller.sell("A-1")
    await settle(seller)
    await record_payout(
        seller.database, seller.shop, Decimal("8.00"), "USD", reference="TRF-77", recorded_by="op", now=utc_now()
    )
    await refund(seller.desk, seller.shop, payment_id, None, requested_by="api", now=utc_now())
    shown = text_of(await owner.see(url(owner)))
    assert "TRF-77" in shown
    assert "Available −8.60 USD" in shown
    assert "Refund" in shown


async def test_the_next_payout_stands_on_top(owner: Visitor, seller: Seller) -> None:
    await seller.sell("A-1")
    assert "Next payout Nothing yet" in text_of(await owner.see(url(owner)))
    await settle(seller)
    await record_payout(
        seller.database, seller.shop, Decimal("8.00"), "USD", reference="TRF-77", recorded_by="op", now=utc_now()
    )
    shown = text_of(await owner.see(url(owner)))
    assert "Next payout 0.90 USD" in shown
    assert "The last one, of 8.00 USD, was on" in shown


async def test_lines_stand_by_days_and_say_who_paid_for_what(owner: Visitor, seller: Seller) -> None:
    await seller.sell("A-1")
    await seller.sell("A-2")
    await settle(seller)
    answer = await owner.see(url(owner))
    assert answer.text.count('class="day-lines"') == 2
    shown = text_of(answer)
    assert shown.index("Became available") < shown.index("Gross"), "the newest day comes first"
    assert shown.count("· A-1") == shown.count("· A-2") == 2
    assert "Gross 10.00 USD Fees −0.60 USD Pending 8.90 USD Reserve 0.50 USD" in shown
    assert "9.40 USD" in shown, "what the payment changed of the balance"


def test_the_calendar_of_the_reserve_is_one_of_months() -> None:
    days = [
        Release(date(2027, 3, 31), "USD", Decimal(2)),
        Release(date(2027, 4, 1), "EUR", Decimal(1)),
        Release(date(2027, 3, 1), "USD", Decimal("0.5")),
        Release(date(2027, 3, 9), "EUR", Decimal(4)),
    ]
    assert [(one.month, list(one.amounts.items())) for one in by_month(days)] == [
        (date(2027, 3, 1), [("EUR", Decimal(4)), ("USD", Decimal("2.5"))]),
        (date(2027, 4, 1), [("EUR", Decimal(1))]),
    ]


def test_a_bar_shows_what_is_not_negative() -> None:
    parts = parts_of(Balance("USD", Decimal(30), Decimal(-5), Decimal(10)))
    assert [(one.amount, one.begins, one.width) for one in parts] == [
        (Decimal(-5), Decimal(0), Decimal(0)),
        (Decimal(30), Decimal(0), Decimal(75)),
        (Decimal(10), Decimal(75), Decimal(25)),
    ]
    assert [one.width for one in parts_of(Balance("USD", Decimal(0), Decimal(0), Decimal(0)))] == [0, 0, 0]


async def test_the_statement_is_a_file_too_and_its_lines_add_up(owner: Visitor, seller: Seller) -> None:
    for _ in range(3):
        await seller.sell()
    await settle(seller)
    answered = await owner.see(url(owner, "/statement"))
    rows = list(csv.DictReader(io.StringIO(answered.text)))
    assert len(rows) == 6
    for row in rows:
        amounts = {name: Decimal(row[name]) for name in ("gross", "fees", "pending", "available", "reserve")}
        assert amounts["gross"] + amounts["fees"] == amounts["pending"] + amounts["available"] + amounts["reserve"]
    assert sum(Decimal(row["available"]) for row in rows) == Decimal("26.70")
    assert await seller.audited("exported") == ["statement"]


async def test_days_narrow_the_statement(owner: Visitor, seller: Seller) -> None:
    await seller.sell()
    shown = text_of(await owner.see(url(owner, "?until=2020-01-01")))
    assert "Nothing in these days." in shown
    assert "Pending 8.90 USD" in shown, "the balances are those of now"


async def test_a_long_statement_is_read_page_by_page(
    owner: Visitor, seller: Seller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("paydesk.web.account.balance.ROWS", 2)
    for _ in range(3):
        await seller.sell()
    first = (await owner.see(url(owner))).text
    assert 'rel="next"' in first


async def test_who_may_not_see_money_is_told_so(owner: Visitor, seller: Seller, join: Join) -> None:
    for role, status in ((Role.developer, 403), (Role.support, 403), (Role.viewer, 200)):
        member = await join(owner, role)
        assert (await member.see(url(owner))).status_code == status
        assert (await member.see(url(owner, "/statement"))).status_code == status


async def test_another_merchants_balance_is_not_found(owner: Visitor, seller: Seller, sign_up: SignUp) -> None:
    stranger = await sign_up()
    assert (await stranger.see(url(owner))).status_code == 404


@pytest.mark.parametrize(
    "query", ["?before=x", "?since=yesterday", "?until=9999-99-99", "?before=1-99999999999999999999"]
)
async def test_nonsense_in_the_address_counts_as_nothing(owner: Visitor, seller: Seller, query: str) -> None:
    await seller.sell()
    assert "Payment" in text_of(await owner.see(url(owner, query)))
