"""What follows charges of saved cards: refunds, chargebacks, what customers and shops read of them,
and what is left of one who is erased.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from tests import breaking, set_back
from tests.databases import until_waiting
from tests.domain.billing.charges import Charges, charge, power, taken
from tests.proving import check
from tests.shopfront import give_back, order, pay, save_card

from paydesk.adapters.acquirers.interface import Approved, OutcomeUnknown
from paydesk.adapters.acquirers.purchases import Purchase
from paydesk.adapters.acquirers.simulator import Bank, SimulatedAcquirer
from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict, Forbidden, NotFound
from paydesk.core.paging import Page
from paydesk.database.statements import Connection
from paydesk.domain.billing import calling, charging_saved
from paydesk.domain.billing.charging_saved import NotCharged
from paydesk.domain.business.payments_for_team import find_payment_for_team
from paydesk.domain.chargebacks.reading_acquirers import read_disputes
from paydesk.domain.mail.telling import tell_events
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.checkouts import Standing, find_checkout
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.janitor import settle_due
from paydesk.domain.payments.outcomes import record_approvals
from paydesk.domain.privacy import belongings
from paydesk.domain.privacy.belongings import Subject
from paydesk.domain.privacy.erasing import erase
from paydesk.domain.shoppers.for_api import list_instruments
from paydesk.domain.shoppers.instruments import list_saved, take_back
from paydesk.domain.shoppers.sessions import Shopper

FAILS_LATER = "4000000000000341"


@pytest.fixture(autouse=True)
async def _nothing_left(desk: Desk) -> None:
    await set_back.no_codes_counted(desk.database)
    await set_back.nothing_to_look_up(desk.database)


async def test_what_may_be_charged_is_shown_though_the_card_was_saved_again_without(
    desk: Desk, shop: Shop, bank: Bank, shopper: Shopper, card: int
) -> None:
    await save_card(desk, bank, shopper, later=None)
    (shown,) = await list_saved(desk.database, shop, shopper.id)
    assert shown.charge_wordings == ["charge it"]
    assert await take_back(desk.database, shop, shopper.id, shown.id, now=utc_now())
    (shown,) = await list_saved(desk.database, shop, shopper.id)
    assert shown.charge_wordings == []
    with pytest.raises(Forbidden, match="taken that back"):
        await charge(desk, shop, power(card))


async def test_a_charge_is_given_back_as_any_payment(
    desk: Desk, shop: Shop, bank: Bank, card: int, charges: Charges
) -> None:
    charged = await charge(desk, shop, power(card))
    await give_back(desk, shop, charged.payment_id, "5.00")
    await give_back(desk, shop, charged.payment_id)
    assert taken(charges) == []
    found = await check(desk.database, now=utc_now(), merchant_id=shop.merchant_id, record=bank.record)
    assert [finding for finding in found if finding.found] == []


async def test_an_erased_customer_is_charged_no_more(
    desk: Desk, shop: Shop, shopper: Shopper, card: int, charges: Charges
) -> None:
    first = await charge(desk, shop, power(card))
    await set_back.acknowledged(desk.database, {"merchant_id": shop.merchant_id})
    await erase(desk.database, Subject(shop.merchant_id, "ada@example.com"), now=utc_now())
    with pytest.raises(NotFound):
        await charge(desk, shop, power(card, "power-2"), "key-2")
    assert await charge(desk, shop, power(card)) == first
    assert taken(charges) == [Decimal(20)]


async def test_who_charges_one_back_is_charged_no_more_until_they_agree_anew(
    desk: Desk, shop: Shop, bank: Bank, shopper: Shopper, card: int
) -> None:
    await set_back.no_disputes_left(desk.database)
    charged = await charge(desk, shop, power(card, amount="5.00"))
    key = await desk.database.fetchval(
        "select idempotency_key from payment_attempt where payment_id = $1", charged.payment_id
    )
    bank.open_dispute(key, "fraudulent")
    await read_disputes(desk, now=utc_now())
    with pytest.raises(Forbidden, match="charged back"):
        await charge(desk, shop, power(card, "power-2", "5.00"), "key-2")
    assert [one.charge_agreed_at for one in await list_instruments(desk.database, shop, None, Page(9))] == [None]
    found = await check(desk.database, now=utc_now(), merchant_id=shop.merchant_id, record=bank.record)
    assert [finding for finding in found if finding.found] == []
    anew = await save_card(desk, bank, shopper)
    await charge(desk, shop, power(anew, "power-3", "5.00"), "key-3")
    listed = await list_instruments(desk.database, shop, None, Page(9))
    assert {one.id for one in listed if one.charge_agreed_at} == {anew}
    with pytest.raises(Forbidden, match="charged back"):
        await charge(desk, shop, power(card, "power-4", "5.00"), "key-4")


async def test_a_card_whose_first_payment_is_charged_back_is_not_charged(
    desk: Desk, shop: Shop, bank: Bank, card: int
) -> None:
    await set_back.no_disputes_left(desk.database)
    key = await desk.database.fetchval(
        "select idempotency_key from payment_attempt where merchant_id = $1", shop.merchant_id
    )
    bank.open_dispute(key, "fraudulent")
    await read_disputes(desk, now=utc_now())
    with pytest.raises(Forbidden, match="charged back"):
        await charge(desk, shop, power(card))


async def test_what_it_was_for_is_read_in_the_receipt_the_refunds_mail_and_the_account(
    desk: Desk, shop: Shop, card: int
) -> None:
    charged = await charge(desk, shop, power(card))
    await give_back(desk, shop, charged.payment_id)
    await tell_events(desk.database, real_now=utc_now(), keep_test=True)
    facts = await desk.database.fetch(
        "select kind, facts ->> 'description' as said from mail where merchant_id = $1 and kind <> 'shopper_code'"
        " and facts ->> 'merchant_order_id' = 'power-1' order by kind",
        shop.merchant_id,
    )
    assert [tuple(row) for row in facts] == [
        ("receipt", "Power for your car"),
        ("refund", "Power for your car"),
    ]
    assert (await find_payment_for_team(desk.database, shop, charged.payment_id)).description == "Power for your car"


async def test_whoever_is_at_a_checkout_of_the_order_reads_that_it_was_paid_elsewhere(
    desk: Desk, shop: Shop, card: int, charges: Charges
) -> None:
    link = await order(desk.database, shop, "power-1", amount="20.00")
    await charge(desk, shop, power(card))
    assert (await find_checkout(desk.database, link, now=utc_now())).standing is Standing.CLOSED
    with pytest.raises(Conflict):
        await pay(desk, link)
    assert taken(charges) == [Decimal(20)]


async def test_a_decline_that_is_found_out_later_counts_against_no_customer(
    desk: Desk, shop: Shop, bank: Bank, shopper: Shopper, monkeypatch: pytest.MonkeyPatch
) -> None:
    card = await save_card(desk, bank, shopper, FAILS_LATER)
    honest = SimulatedAcquirer.charge_stored

    async def lost(acquirer: SimulatedAcquirer, purchase: Purchase) -> Approved:
        await honest(acquirer, purchase)
        raise OutcomeUnknown("the answer was lost")

    monkeypatch.setattr(SimulatedAcquirer, "charge_stored", lost)
    assert (await charge(desk, shop, power(card))).is_open
    counted = "select coalesce(sum(declines), 0) from card_guard_minute where merchant_id = $1"
    before = await desk.database.fetchval(counted, shop.merchant_id)
    await settle_due(desk, now=utc_now() + timedelta(seconds=10))
    with pytest.raises(NotCharged):
        await charge(desk, shop, power(card))
    assert await desk.database.fetchval(counted, shop.merchant_id) == before


async def test_who_is_erased_while_a_charge_begins_is_waited_for_and_told_of_it(
    desk: Desk, shop: Shop, card: int, charges: Charges, monkeypatch: pytest.MonkeyPatch
) -> None:
    await breaking.say(desk.database, "pingback", {"merchant_id": shop.merchant_id}, state="acknowledged")
    begun, may_go_on, honest = asyncio.Event(), asyncio.Event(), charging_saved.queries.begin_charge

    async def slowly(connection: Connection, **asked: object) -> object:
        begun.set()
        await may_go_on.wait()
        return await honest(connection, **asked)

    monkeypatch.setattr(charging_saved.queries, "begin_charge", slowly)
    charging = asyncio.create_task(charge(desk, shop, power(card)))
    await begun.wait()
    subject = Subject(shop.merchant_id, email="ada@example.com")
    erasing = asyncio.create_task(erase(desk.database, subject, now=utc_now()))
    await until_waiting(desk.database, erasing, query="%shopper%")
    may_go_on.set()
    with pytest.raises(Conflict):
        await erasing
    assert not (await charging).is_open
    assert taken(charges) == [Decimal(20)]
    left = "select count(*) from customer where merchant_id = $1 and email = 'erased'"
    assert await desk.database.fetchval(left, shop.merchant_id) == 0
    await breaking.say(desk.database, "pingback", {"merchant_id": shop.merchant_id}, state="acknowledged")
    await erase(desk.database, subject, now=utc_now())
    kept = "select count(*) from customer where merchant_id = $1 and email <> 'erased'"
    assert await desk.database.fetchval(kept, shop.merchant_id) == 0, "the charge's own customer is erased with them"


async def test_who_is_erased_while_a_charge_is_written_down_is_told_of_it(
    desk: Desk, shop: Shop, card: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    await breaking.say(desk.database, "pingback", {"merchant_id": shop.merchant_id}, state="acknowledged")
    answered, may_be_told = asyncio.Event(), asyncio.Event()
    honest_record, honest_look = record_approvals, belongings.queries.standing_in_the_way

    async def recorded_late(*given: Any, **asked: Any) -> Any:
        answered.set()
        await may_be_told.wait()
        return await honest_record(*given, **asked)

    async def looked_at_late(*given: Any, **asked: Any) -> Any:
        may_be_told.set()
        await charging
        return await honest_look(*given, **asked)

    monkeypatch.setattr(calling, "record_approvals", recorded_late)
    charging = asyncio.create_task(charge(desk, shop, power(card)))
    await answered.wait()
    monkeypatch.setattr(belongings.queries, "standing_in_the_way", looked_at_late)
    with pytest.raises(Conflict, match="pingbacks still to be sent: 1"):
        await erase(desk.database, Subject(shop.merchant_id, email="ada@example.com"), now=utc_now())
