"""Search over everything: one box above every page of the console, and what it finds."""

from __future__ import annotations

import secrets
from datetime import timedelta
from decimal import Decimal
from urllib.parse import quote

import pytest
from tests import breaking
from tests.domain.ledger.paying_out import record_payout
from tests.shopfront import MONTHLY
from tests.web.account.conftest import Visitor, text_of
from tests.web.account.selling import POOR, Seller, seller_of

from paydesk.core.clock import utc_now
from paydesk.domain.alarms.kinds import AlarmKind
from paydesk.domain.alarms.raising import Alarm, raise_alarms
from paydesk.domain.chargebacks.reading_acquirers import read_disputes
from paydesk.domain.ledger.settling import settle_due
from paydesk.domain.operations.searching_cells import has_id
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.refunding import refund

SEARCH = "/operator/search"


@pytest.fixture
def seller(desk: Desk, owner: Visitor) -> Seller:
    return seller_of(desk, owner)


async def found(operator: Visitor, text: object) -> str:
    answer = await operator.see(f"{SEARCH}?q={quote(str(text), safe='')}")
    assert answer.status_code == 200, answer.text
    return answer.text


def page_of(seller: Seller, kind: str, one: int) -> str:
    return f'href="/operator/merchants/{seller.shop.merchant_id}/{kind}/{one}"'


async def only(seller: Seller, column: str, table: str) -> int:
    """A value of the merchant's only row of a table."""
    asked = f"select {column} from {table} where merchant_id = $1"
    return int(await seller.database.fetchval(asked, seller.shop.merchant_id))


async def paid_out(seller: Seller, reference: str) -> None:
    """The operator has sent the merchant two dollars of what has settled."""
    await seller.sell(amount="100.00")
    later = utc_now() + timedelta(days=8)
    await settle_due(seller.database, real_now=utc_now(), merchant_id=seller.shop.merchant_id, at=later)
    await record_payout(
        seller.database,
        seller.shop,
        Decimal(2),
        "USD",
        reference=reference,
        recorded_by="operator",
        now=utc_now(),
    )


async def test_a_payment_is_found_by_all_that_it_is_called(operator: Visitor, seller: Seller) -> None:
    name = secrets.token_hex(6)
    payment_id = await seller.sell(f"shoes-{name}", email=f"Kim-{name}@example.com")
    await refund(seller.desk, seller.shop, payment_id, Decimal(4), requested_by="test", now=utc_now())
    charge = f"ch_{secrets.token_hex(8)}"
    whose = {"merchant_id": seller.shop.merchant_id}
    await breaking.say(seller.database, "payment_attempt", whose, acquirer_reference=charge)
    await breaking.say(seller.database, "movement", whose, acquirer_reference=f"re_{charge}")
    meanings = (payment_id, f"#{payment_id}", f"shoes-{name}", f"kim-{name}@EXAMPLE.com", charge, f"re_{charge}")
    for text in (*meanings, f"  {payment_id} "):
        assert page_of(seller, "payments", payment_id) in await found(operator, text), text
    await breaking.say(seller.database, "card", whose, last4="0731")
    assert page_of(seller, "payments", payment_id) in await found(operator, "0731")
    for text in (f"shoes-{name[:-1]}", f"hoes-{name}", f"kim-{name}", "9" * 40, "%", "_" * 4):
        assert page_of(seller, "payments", payment_id) not in await found(operator, text), text


async def test_everything_else_is_found_by_its_names(operator: Visitor, owner: Visitor, seller: Seller) -> None:
    merchant_id, name = seller.shop.merchant_id, secrets.token_hex(6)
    payment_id = await seller.sell(f"club-{name}", terms=MONTHLY, email=f"{name}@example.com")
    subscription_id = await only(seller, "id", "subscription")
    for text in (subscription_id, f"club-{name}", f"{name}@example.com"):
        assert page_of(seller, "subscriptions", subscription_id) in await found(operator, text), text
    checkout_id = await only(seller, "id", "checkout")
    for text in (checkout_id, f"club-{name}"):
        assert page_of(seller, "checkouts", checkout_id) in await found(operator, text), text
    pingback_id = await only(seller, "min(id)", "pingback")
    told = f'href="/operator/merchants/{merchant_id}/payments/{payment_id}#pingbacks"'
    assert told in await found(operator, pingback_id)
    alarm = Alarm(AlarmKind.set_aside, f"payment {payment_id}", "no such currency", seller.shop, {})
    await raise_alarms(seller.database, [alarm], now=utc_now())
    alarm_id = await only(seller, "id", "alarm")
    for text in (alarm_id, payment_id):
        assert 'href="/operator/alarms?kind=set_aside"' in await found(operator, text), text
    for text in (merchant_id, owner.email, owner.email[:12].upper()):
        assert f'href="/operator/merchants/{merchant_id}"' in await found(operator, text), text
    team = await found(operator, owner.email)
    assert f'href="/operator/merchants/{merchant_id}#team"' in team


async def test_what_was_paid_out_and_charged_back_is_found(operator: Visitor, seller: Seller) -> None:
    payment_id = await seller.sell(number="4000000000000259")
    await read_disputes(seller.desk, now=utc_now())
    chargeback_id = await only(seller, "id", "chargeback")
    reference = f"TRF-{secrets.token_hex(6)}"
    await paid_out(seller, reference)
    payout_id = await only(seller, "id", "payout")
    for text in (payout_id, reference):
        assert 'href="/operator/payouts/past?since=' in await found(operator, text), text
    page = f'href="/operator/chargebacks/{seller.shop.merchant_id}/{chargeback_id}"'
    name = await seller.database.fetchval("select acquirer_reference from chargeback where id = $1", chargeback_id)
    for text in (chargeback_id, payment_id, name):
        assert page in await found(operator, text), text
    shown = await operator.see(f"/operator/merchants/{seller.shop.merchant_id}/payments/{payment_id}")
    assert page in shown.text


@pytest.mark.parametrize("kind", ["payment", "subscription", "checkout", "payout", "chargeback", "pingback", "alarm"])
async def test_another_cell_is_told_of_each_kind_that_is_found_by_an_id(seller: Seller, kind: str) -> None:
    payment_id = await seller.sell(terms=MONTHLY, number="4000000000000259")
    await read_disputes(seller.desk, now=utc_now())
    await paid_out(seller, "TRF")
    alarm = Alarm(AlarmKind.set_aside, f"payment {payment_id}", "no such currency", seller.shop, {})
    await raise_alarms(seller.database, [alarm], now=utc_now())
    own, number = await only(seller, "min(id)", kind), 5 * 10**13 + 8
    assert not await has_id(seller.database, number)
    async with seller.database.acquire() as connection:
        trying = connection.transaction()
        await trying.start()
        await connection.execute("set local session_replication_role = replica")
        await breaking.say(connection, kind, {"merchant_id": seller.shop.merchant_id, "id": own}, id=number)
        assert await has_id(connection, number)
        await trying.rollback()


async def test_a_search_finds_no_secret_and_shows_none(operator: Visitor, seller: Seller, owner: Visitor) -> None:
    payment_id = await seller.sell(email="grace@example.com")
    shown = await found(operator, payment_id)
    for hidden in ("grace@example.com", "Grace", "4242424242424242"):
        assert hidden not in shown
    assert "Nothing is called so." in await found(operator, "4242424242424242")
    assert "What do you look for?" in await found(operator, "")
    assert (await owner.see(f"{SEARCH}?q=x")).status_code == 404


async def test_who_looks_for_customers_stands_in_the_log_without_the_words(
    operator: Visitor, owner: Visitor, seller: Seller
) -> None:
    address = f"{secrets.token_hex(6)}@example.com"
    payment_id = await seller.sell(email=address)
    await found(operator, address)
    await found(operator, "1234")
    await found(operator, "no order is called so")
    log = text_of(await operator.see("/operator/audit?action=searched"))
    assert "an e-mail address" in log
    assert "Payments: 1" in log
    assert "a card's last digits" in log
    assert address not in log
    page = f"/operator/merchants/{seller.shop.merchant_id}/payments/{payment_id}"
    assert address in text_of(await operator.see(page)), "who helps a customer sees whom"
    assert await seller.audited("customer_looked_at") == [f"payment {payment_id}"]
    assert "Looked at what a customer did" in text_of(await owner.see(f"{owner.merchant_path}/settings/audit"))


async def test_the_pages_behind_tell_what_the_acquirer_knows(operator: Visitor, seller: Seller) -> None:
    merchant, name = f"/operator/merchants/{seller.shop.merchant_id}", secrets.token_hex(6)
    payment_id = await seller.sell(f"club-{name}", terms=MONTHLY)
    subscription_id, checkout_id = await only(seller, "id", "subscription"), await only(seller, "id", "checkout")
    reference = await seller.database.fetchval(
        "select acquirer_reference from payment_attempt where payment_id = $1", payment_id
    )
    payment = text_of(await operator.see(f"{merchant}/payments/{payment_id}"))
    assert all(text in payment for text in (f"club-{name}", "Approved", "simulator", reference, "Test", "•••• 4242"))
    subscription = await operator.see(f"{merchant}/subscriptions/{subscription_id}")
    assert page_of(seller, "payments", payment_id).removeprefix("href=") in subscription.text
    assert page_of(seller, "payments", payment_id) in (await operator.see(f"{merchant}/checkouts/{checkout_id}")).text
    declined = await seller.sell(number=POOR)
    assert "Not enough money on the card" in text_of(await operator.see(f"{merchant}/payments/{declined}"))
    for kind in ("payments", "subscriptions", "checkouts"):
        assert (await operator.see(f"{merchant}/{kind}/7777777")).status_code == 404
        assert (await operator.see(f"/operator/merchants/7777777/{kind}/{payment_id}")).status_code == 404


async def test_the_box_stands_above_every_page_of_the_console_alone(operator: Visitor, owner: Visitor) -> None:
    for page in ("overview", "alarms", "merchants", "nowhere"):
        assert f'action="{SEARCH}"' in (await operator.see(f"/operator/{page}")).text, page
    account = (await operator.see("/account/security")).text
    assert 'class="operators"' not in account
    assert f'action="{SEARCH}"' not in account
    refused = (await owner.see("/operator/overview")).text
    assert "Operator's console" not in refused
    assert f'action="{SEARCH}"' not in refused
