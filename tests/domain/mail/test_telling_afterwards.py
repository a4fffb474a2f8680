"""Mails about what happens after a payment: refunds, shipments, reminders, chargebacks."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest
from tests import set_back
from tests.domain.deliveries.conftest import warehouse
from tests.domain.mail.test_telling import buy, tell
from tests.shopfront import choose_mails, go_on
from tests.till import Till
from tests.web.mails.every_mail import ADDRESSES, mail_of

from paydesk.adapters.acquirers.simulator.own_pages import Way
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.chargebacks.reading_acquirers import read_disputes
from paydesk.domain.mail.kinds import MailKind
from paydesk.domain.mail.telling import TOLD_FOR
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.refunding import refund
from paydesk.domain.payments.results import ConfirmWithBank
from paydesk.web.mails.writing import write

__all__ = ["warehouse"]

CHARGED_BACK = "4000000000000259"


@pytest.fixture(autouse=True)
async def _a_bank_that_nobody_has_read(database: Database) -> None:
    """Each test's bank counts its disputes from one."""
    await set_back.banks_tell_again(database)


async def told(database: Database, shop: Shop, kind: MailKind) -> list[Mapping[str, Any]]:
    """The facts of the shop's mails of a kind, each with its recipient."""
    rows = await database.fetch(
        "select recipient, facts from mail where merchant_id = $1 and kind = $2 order by id", shop.merchant_id, kind
    )
    return [{**json.loads(row["facts"]), "recipient": row["recipient"]} for row in rows]


async def test_each_refund_is_told_to_the_customer_once(warehouse: Till) -> None:
    database = warehouse.desk.database
    payment_id = await warehouse.sell("A1")
    await warehouse.confirm(payment_id)
    for amount in (Decimal("2.50"), None):
        await refund(warehouse.desk, warehouse.shop, payment_id, amount, requested_by="api", now=utc_now())
    await asyncio.gather(*(tell(database, most_events=1) for _ in range(8)))
    await tell(database)
    mails = await told(database, warehouse.shop, MailKind.refund)
    assert sorted(mail["amount"] for mail in mails) == ["2.5", "7.5"]
    assert {mail["merchant_order_id"] for mail in mails} == {"A1"}
    assert (mails[0]["recipient"], mails[0]["last4"]) == ("ada@example.com", "4242")


async def test_a_void_is_no_refund(warehouse: Till) -> None:
    payment_id = await warehouse.sell()
    await refund(warehouse.desk, warehouse.shop, payment_id, None, requested_by="api", now=utc_now())
    await tell(warehouse.desk.database)
    assert await told(warehouse.desk.database, warehouse.shop, MailKind.refund) == []


async def test_an_order_to_be_shipped_is_confirmed_as_reserved_and_then_as_shipped(warehouse: Till) -> None:
    database = warehouse.desk.database
    payment_id = await warehouse.sell("A1")
    await tell(database)
    (reserved,) = await told(database, warehouse.shop, MailKind.receipt)
    assert reserved["reserved"] is True
    await warehouse.confirm(payment_id)
    await warehouse.confirm(payment_id)
    await tell(database)
    await tell(database)
    (shipped,) = await told(database, warehouse.shop, MailKind.shipment)
    assert (shipped["tracking_id"], shipped["amount"]) == ("00340434161094021501", "10")
    text = write(mail_of(MailKind.shipment, facts=shipped), ADDRESSES).text
    assert "00340434161094021501" in text
    assert "10.00" in text


async def test_a_shop_that_tells_its_customers_itself_is_left_to_it(warehouse: Till) -> None:
    payment_id = await warehouse.sell()
    await warehouse.confirm(payment_id, notify_user=False)
    await tell(warehouse.desk.database)
    assert await told(warehouse.desk.database, warehouse.shop, MailKind.shipment) == []


async def test_the_reminder_that_deliveries_queue_can_be_read(warehouse: Till) -> None:
    await warehouse.sell("A1")
    await warehouse.act(days=6, hours=1)
    (facts,) = await told(warehouse.desk.database, warehouse.shop, MailKind.void_reminder)
    assert facts["recipient"] == "owner@mugs.example"
    written = write(mail_of(MailKind.void_reminder, facts=facts), ADDRESSES)
    assert written.subject == "Order A1 must be shipped soon"
    assert "Ship by: " in written.text


async def test_a_void_for_want_of_a_shipment_is_told_to_the_owners_once(warehouse: Till) -> None:
    database = warehouse.desk.database
    payment_id = await warehouse.sell("A1")
    await warehouse.act(days=7, hours=1)
    await asyncio.gather(*(tell(database) for _ in range(4)))
    await tell(database)
    (facts,) = await told(database, warehouse.shop, MailKind.authorization_voided)
    assert (facts["recipient"], facts["merchant_order_id"], facts["amount"]) == ("owner@mugs.example", "A1", "10")
    written = write(mail_of(MailKind.authorization_voided, facts=facts), ADDRESSES)
    assert "A1" in written.subject
    assert f"/account/{warehouse.shop.merchant_id}/payments/{payment_id}" in written.text


async def test_a_void_that_somebody_asked_for_needs_no_mail(warehouse: Till) -> None:
    payment_id = await warehouse.sell()
    await refund(warehouse.desk, warehouse.shop, payment_id, None, requested_by="api", now=utc_now())
    await tell(warehouse.desk.database)
    assert await told(warehouse.desk.database, warehouse.shop, MailKind.authorization_voided) == []


async def test_a_chargeback_alerts_the_merchant_once(desk: Desk, shop: Shop) -> None:
    await buy(desk, shop, "A1", number=CHARGED_BACK)
    await read_disputes(desk, now=utc_now())
    await asyncio.gather(*(tell(desk.database) for _ in range(4)))
    (facts,) = await told(desk.database, shop, MailKind.chargeback_alert)
    assert (facts["recipient"], facts["merchant_order_id"], facts["amount"]) == ("owner@shop.example", "A1", "10")
    assert "A1" in write(mail_of(MailKind.chargeback_alert, facts=facts), ADDRESSES).subject


async def test_a_merchant_that_writes_its_own_mails_still_hears_of_chargebacks(desk: Desk, shop: Shop) -> None:
    await choose_mails(desk.database, shop, customer_mails=False, test_mails=True)
    await buy(desk, shop, "A1", number=CHARGED_BACK)
    await read_disputes(desk, now=utc_now())
    await tell(desk.database, keep_test=False)
    assert len(await told(desk.database, shop, MailKind.chargeback_alert)) == 1
    assert await told(desk.database, shop, MailKind.receipt) == []


@pytest.mark.parametrize("late", [True, False])
async def test_test_data_and_old_events_are_marked_and_told_to_nobody(warehouse: Till, *, late: bool) -> None:
    database = warehouse.desk.database
    payment_id = await warehouse.sell()
    await warehouse.confirm(payment_id)
    await refund(warehouse.desk, warehouse.shop, payment_id, None, requested_by="api", now=utc_now())
    if late:
        await tell(database, real_now=utc_now() + TOLD_FOR * 2)
    else:
        await tell(database, keep_test=False)
    await tell(database)
    assert await told(database, warehouse.shop, MailKind.refund) == []
    assert await told(database, warehouse.shop, MailKind.shipment) == []


@pytest.mark.parametrize("tried_anew", [False, True])
async def test_whose_transfer_came_to_nothing_hears_so_once(subscriber: Till, tried_anew: bool) -> None:
    till = await subscriber.offering_slow_methods()
    database, link = till.database, await till.order("A1")
    led = await go_on(till.desk, link)
    assert isinstance(led, ConfirmWithBank)
    till.bank.pages.pay(led.url.rpartition("/")[2], Way.FAILING_TRANSFER, "")
    await till.settle(minutes=2)
    await tell(database)
    assert await told(database, till.shop, MailKind.payment_failed) == []
    await till.settle(hours=49)
    if tried_anew:
        await till.pay(link)
    await asyncio.gather(*(tell(database) for _ in range(4)))
    mails = await told(database, till.shop, MailKind.payment_failed)
    assert [(mail["recipient"], mail["merchant_order_id"], mail["amount"]) for mail in mails] == (
        [] if tried_anew else [("ada@example.com", "A1", "10")]
    )
