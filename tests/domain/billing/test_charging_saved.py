"""A shop charges a saved card without its customer: as they agreed, once for each key, and never
more.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest
from tests import breaking, set_back
from tests.banks import live_bank_of
from tests.domain.billing.charges import Charges, charge, power, taken
from tests.proving import check
from tests.shopfront import GOOD, LATER, become_known, save_card

from paydesk.adapters.acquirers.interface import Approved, OutcomeUnknown
from paydesk.adapters.acquirers.purchases import Purchase
from paydesk.adapters.acquirers.simulator import Bank, SimulatedAcquirer
from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict, Forbidden, NotFound
from paydesk.domain.billing.charging_saved import LIMITED, Charged, NotCharged
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.janitor import settle_due
from paydesk.domain.shoppers.instruments import remove, take_back
from paydesk.domain.shoppers.sessions import Shopper

FAILS_LATER = "4000000000000341"
ANSWER_LOST = "4000000000009987"


@pytest.fixture(autouse=True)
async def _nothing_left(desk: Desk) -> None:
    await set_back.no_codes_counted(desk.database)
    await set_back.nothing_to_look_up(desk.database)


async def test_a_charge_is_a_payment_with_its_pingback(desk: Desk, shop: Shop, card: int, charges: Charges) -> None:
    charged = await charge(desk, shop, power(card))
    assert not charged.is_open
    assert taken(charges) == [Decimal(20)]
    told = await desk.database.fetchval("select payload from pingback where payment_id = $1", charged.payment_id)
    assert '"merchant_order_id":"power-1"' in told
    assert '"email":"ada@example.com"' in told
    booked = await desk.database.fetchval(
        "select sum(amount) from ledger_entry where payment_id = $1", charged.payment_id
    )
    assert booked == 0


async def test_it_names_the_first_payments_network_transaction(
    desk: Desk, shop: Shop, card: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Purchase] = []
    honest = SimulatedAcquirer.charge_stored

    async def listened(acquirer: SimulatedAcquirer, purchase: Purchase) -> object:
        asked.append(purchase)
        return await honest(acquirer, purchase)

    monkeypatch.setattr(SimulatedAcquirer, "charge_stored", listened)
    await charge(desk, shop, power(card))
    first = await desk.database.fetchval(
        "select a.network_reference from saved_instrument s join payment_attempt a on a.id = s.attempt_id"
        " where s.merchant_id = $1",
        shop.merchant_id,
    )
    assert [(one.network_reference, one.card.cvc) for one in asked] == [(first, None)]
    assert first


async def test_twenty_at_once_under_one_key_take_money_once(
    desk: Desk, shop: Shop, card: int, charges: Charges
) -> None:
    answers = await asyncio.gather(*(charge(desk, shop, power(card)) for _ in range(20)), return_exceptions=True)
    assert all(isinstance(answer, Charged) for answer in answers), answers
    assert taken(charges) == [Decimal(20)]
    assert len({answer.payment_id for answer in answers if isinstance(answer, Charged)}) == 1


async def test_twenty_at_once_never_take_more_than_was_agreed(
    desk: Desk, shop: Shop, card: int, charges: Charges
) -> None:
    answers = await asyncio.gather(
        *(charge(desk, shop, power(card, f"power-{one}"), f"key-{one}") for one in range(20)), return_exceptions=True
    )
    assert [str(answer) for answer in answers if not isinstance(answer, Charged | Conflict)] == []
    assert taken(charges) == [Decimal(20), Decimal(20)], "two of 20 are all that 50 allow"


async def test_the_limit_is_of_thirty_days(desk: Desk, shop: Shop, card: int, charges: Charges) -> None:
    await charge(desk, shop, power(card, amount="50.00"))
    with pytest.raises(Conflict, match="of which 0 are left"):
        await charge(desk, shop, power(card, "power-2", "0.01"), "key-2")
    await charge(desk, shop, power(card, "power-2", "50.00"), "key-2", days=LIMITED.days + 1)
    assert taken(charges) == [Decimal(50), Decimal(50)]


async def test_the_same_key_for_another_charge_is_refused(desk: Desk, shop: Shop, card: int, charges: Charges) -> None:
    await charge(desk, shop, power(card))
    for other in (power(card, amount="21.00"), power(card, "power-2"), power(card, description="Other")):
        with pytest.raises(Conflict, match="another request"):
            await charge(desk, shop, other)
    assert taken(charges) == [Decimal(20)]


async def test_an_order_is_paid_once_whatever_the_key(desk: Desk, shop: Shop, card: int, charges: Charges) -> None:
    await charge(desk, shop, power(card))
    with pytest.raises(Conflict, match="an order of its own"):
        await charge(desk, shop, power(card), "key-2")
    assert taken(charges) == [Decimal(20)]


async def test_who_has_not_agreed_is_not_charged(
    desk: Desk, shop: Shop, bank: Bank, shopper: Shopper, charges: Charges
) -> None:
    card = await save_card(desk, bank, shopper, later=None)
    with pytest.raises(Forbidden, match="has not agreed"):
        await charge(desk, shop, power(card))
    assert taken(charges) == []


async def test_who_takes_it_back_is_not_charged(
    desk: Desk, shop: Shop, shopper: Shopper, card: int, charges: Charges
) -> None:
    assert await take_back(desk.database, shop, shopper.id, card, now=utc_now())
    with pytest.raises(Forbidden, match="taken that back"):
        await charge(desk, shop, power(card))
    assert taken(charges) == []


async def test_a_removed_card_is_not_charged(
    desk: Desk, shop: Shop, shopper: Shopper, card: int, charges: Charges
) -> None:
    await remove(desk.database, shop, shopper.id, card, now=utc_now())
    with pytest.raises(NotFound):
        await charge(desk, shop, power(card))
    assert taken(charges) == []


async def test_without_the_banks_authentication_nothing_is_charged(
    desk: Desk, shop: Shop, bank: Bank, shopper: Shopper, charges: Charges, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = SimulatedAcquirer.authorize

    async def waves_through(acquirer: SimulatedAcquirer, purchase: Purchase) -> object:
        return await honest(acquirer, replace(purchase, authenticate=False))

    monkeypatch.setattr(SimulatedAcquirer, "authorize", waves_through)
    card = await save_card(desk, bank, shopper)
    with pytest.raises(Forbidden, match="not authenticated"):
        await charge(desk, shop, power(card))
    assert taken(charges) == []


async def test_another_currency_is_refused(desk: Desk, shop: Shop, card: int, charges: Charges) -> None:
    with pytest.raises(Forbidden, match="in USD, not in EUR"):
        await charge(desk, shop, power(card, currency="EUR"))
    assert taken(charges) == []


async def test_another_shop_and_the_live_side_know_no_such_card(
    desk: Desk, shop: Shop, other_shop: Shop, card: int, charges: Charges
) -> None:
    for stranger in (other_shop, Shop(shop.merchant_id, live=True)):
        with pytest.raises(NotFound):
            await charge(desk, stranger, power(card))
    assert taken(charges) == []


async def test_a_decline_takes_nothing_of_the_limit_and_another_key_may_try_again(
    desk: Desk, shop: Shop, bank: Bank, shopper: Shopper, charges: Charges
) -> None:
    card = await save_card(desk, bank, shopper, FAILS_LATER)
    for _ in range(2):
        with pytest.raises(NotCharged, match="declined"):
            await charge(desk, shop, power(card, amount="50.00"))
    with pytest.raises(NotCharged):
        await charge(desk, shop, power(card, amount="50.00"), "key-2")
    assert taken(charges) == []
    kept = await desk.database.fetchval(
        "select count(*) from card where merchant_id = $1 and number_sealed is not null", shop.merchant_id
    )
    assert kept == 1, "a decline of one charge erases no saved number"


async def test_a_lost_answer_is_found_out_and_told_once(
    desk: Desk, shop: Shop, card: int, charges: Charges, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = SimulatedAcquirer.charge_stored

    async def lost(acquirer: SimulatedAcquirer, purchase: Purchase) -> Approved:
        await honest(acquirer, purchase)
        raise OutcomeUnknown("the answer was lost")

    monkeypatch.setattr(SimulatedAcquirer, "charge_stored", lost)
    assert (await charge(desk, shop, power(card))).is_open
    assert (await charge(desk, shop, power(card))).is_open
    await settle_due(desk, now=utc_now() + timedelta(seconds=10))
    charged = await charge(desk, shop, power(card))
    assert not charged.is_open
    assert taken(charges) == [Decimal(20)]
    told = await desk.database.fetchval("select count(*) from pingback where payment_id = $1", charged.payment_id)
    assert told == 1


async def test_what_never_reached_the_bank_is_given_up_and_takes_nothing(
    desk: Desk, shop: Shop, card: int, charges: Charges, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: object) -> Approved:
        raise OutcomeUnknown("the bank does not answer")

    monkeypatch.setattr(SimulatedAcquirer, "charge_stored", away)
    assert (await charge(desk, shop, power(card))).is_open
    await settle_due(desk, now=utc_now() + timedelta(minutes=3))
    with pytest.raises(NotCharged):
        await charge(desk, shop, power(card))
    monkeypatch.undo()
    await charge(desk, shop, power(card), "key-2")
    assert taken(charges) == [Decimal(20)]


async def test_a_bank_that_asks_for_the_customer_has_declined(
    desk: Desk, shop: Shop, bank: Bank, shopper: Shopper, monkeypatch: pytest.MonkeyPatch
) -> None:
    card = await save_card(desk, bank, shopper, GOOD)
    honest = SimulatedAcquirer.authorize

    async def asks(acquirer: SimulatedAcquirer, purchase: Purchase) -> object:
        return await honest(acquirer, replace(purchase, authenticate=True, network_reference=None))

    monkeypatch.setattr(SimulatedAcquirer, "charge_stored", asks)
    with pytest.raises(NotCharged, match="authentication_failed"):
        await charge(desk, shop, power(card))


async def test_the_books_are_right_afterwards(desk: Desk, shop: Shop, bank: Bank, card: int) -> None:
    await charge(desk, shop, power(card))
    found = await check(desk.database, now=utc_now(), merchant_id=shop.merchant_id, record=bank.record)
    assert [finding for finding in found if finding.found] == []


async def test_a_card_that_was_saved_twice_is_charged_no_more_than_was_agreed(
    desk: Desk, shop: Shop, bank: Bank, shopper: Shopper, card: int, charges: Charges
) -> None:
    again = await save_card(desk, bank, shopper)
    await charge(desk, shop, power(card, amount="30.00"))
    with pytest.raises(Conflict, match="of which 20 are left"):
        await charge(desk, shop, power(again, "power-2", "30.00"), "key-2")
    answers = await asyncio.gather(
        *(charge(desk, shop, power(one, f"power-{one}", "20.00"), f"key-{one}") for one in (card, again)),
        return_exceptions=True,
    )
    assert {type(answer) for answer in answers} == {Charged, Conflict}
    assert [one for one in taken(charges) if one != 10] == [Decimal(30), Decimal(20)]


async def test_another_purpose_has_a_limit_of_its_own(
    desk: Desk, shop: Shop, bank: Bank, shopper: Shopper, card: int, charges: Charges
) -> None:
    again = await save_card(desk, bank, shopper, later=replace(LATER, purpose="parking"))
    await charge(desk, shop, power(card, amount="50.00"))
    await charge(desk, shop, power(again, "parking-1", "50.00"), "key-2")
    assert sum(taken(charges)) == 110


async def test_who_is_suspended_charges_nothing(desk: Desk, shop: Shop, card: int, charges: Charges) -> None:
    whose = {"merchant_id": shop.merchant_id}
    for table in ("saved_instrument", "shopper", "card", "customer", "payment", "payment_attempt"):
        await breaking.say(desk.database, table, whose, live=True)
    await breaking.say(desk.database, "merchant", {"id": shop.merchant_id}, suspended_at=utc_now())
    with pytest.raises(Conflict, match="takes no payments"):
        await charge(desk, replace(shop, live=True), power(card))
    assert len(charges()) == 1


async def test_a_live_charge_with_more_decimals_than_acquirers_take_is_refused_before_it_is_begun(
    desk: Desk, shop: Shop, bank: Bank, charges: Charges
) -> None:
    live_bank = live_bank_of(bank)
    acquirers = {**desk.acquirers, live_bank.name: live_bank}
    live, side = replace(desk, acquirers=acquirers, live_acquirer=live_bank.name), replace(shop, live=True)
    dinars = replace(LATER, currency="KWD")
    card = await save_card(live, bank, await become_known(live, side), later=dinars)
    wanted = power(card, amount="10.125", currency="KWD")
    with pytest.raises(Conflict, match=r"acquirers don't take 10\.125 KWD, .*; ask for 10\.13"):
        await charge(live, side, wanted)
    assert taken(charges) == []
    assert not (await charge(live, side, replace(wanted, amount=Decimal("10.130")))).is_open
    assert taken(charges) == [Decimal("10.13")]
    await live_bank.close()


async def test_a_test_charge_is_taken_with_all_its_decimals(
    desk: Desk, shop: Shop, bank: Bank, shopper: Shopper, charges: Charges
) -> None:
    card = await save_card(desk, bank, shopper, later=replace(LATER, currency="KWD"))
    await charge(desk, shop, power(card, amount="10.125", currency="KWD"))
    assert taken(charges) == [Decimal("10.125")]
