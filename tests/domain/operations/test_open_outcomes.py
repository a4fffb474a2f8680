"""What an operator sees of questions that banks have not answered, and asking at once."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest
from tests import set_back, shopfront
from tests.adapters.acquirers.simulator.lying import Lies, LyingAcquirer

from paydesk.adapters.acquirers.simulator import Bank
from paydesk.core.clock import utc_now
from paydesk.core.errors import NotFound
from paydesk.core.paging import Place
from paydesk.database.pool import Database
from paydesk.domain.accounts.audit import COMMAND_LINE
from paydesk.domain.billing.charging_saved import Wanted, charge_saved
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.operations.open_outcomes import OpenKind, OpenOutcome, ask_now, open_outcomes
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.janitor import settle_due
from paydesk.domain.payments.movements import finish_movements
from paydesk.domain.payments.refunding import RefundStatus, refund
from paydesk.domain.payments.results import Unsettled

ALL = 100_000
"""Outcomes of a list: more than other tests have left behind."""


async def waiting(database: Database, shop: Shop, *, after: Place | None = None) -> list[OpenOutcome]:
    found = await open_outcomes(database, begun_before=utc_now() + timedelta(minutes=1), most=ALL, after=after)
    return [one for one in found if one.merchant_id == shop.merchant_id]


@pytest.fixture
def deaf(desk: Desk) -> Desk:
    """A desk that hears no answer of its bank, which does what it is asked."""
    return replace(desk, acquirers={"simulator": LyingAcquirer(desk.acquirers["simulator"], Lies(lose_answers=1.0))})


async def test_a_purchase_without_an_answer_is_listed_until_the_bank_was_asked(
    desk: Desk, deaf: Desk, database: Database, shop: Shop
) -> None:
    await set_back.nothing_to_look_up(database)
    assert isinstance(await shopfront.pay(deaf, await shopfront.order(database, shop, "A-1")), Unsettled)
    [one] = await waiting(database, shop)
    assert (one.merchant_name, one.kind) == ("Corner Shop", OpenKind.PAYMENT)
    assert (one.amount, one.currency) == (Decimal(10), "USD")
    assert (one.live, one.acquirer, one.lookups) == (False, "simulator", 0)
    assert await open_outcomes(database, begun_before=one.since, most=ALL, after=Place(one.since, one.id)) == []
    await settle_due(desk, now=utc_now() + timedelta(minutes=1))
    assert await waiting(database, shop) == []


async def test_who_asks_at_once_makes_it_due_and_stands_in_the_log(deaf: Desk, database: Database, shop: Shop) -> None:
    await shopfront.pay(deaf, await shopfront.order(database, shop))
    [before], now = await waiting(database, shop), utc_now()
    await ask_now(database, COMMAND_LINE, shop, before.kind, before.id, now=now)
    [after] = await waiting(database, shop)
    assert (before.lookup_at > now, after.lookup_at, after.lookups) == (True, now, 0)
    [noted] = await database.fetch("select * from audit_entry where merchant_id = $1", shop.merchant_id)
    assert (noted["action"], noted["subject"]) == ("outcome_asked", f"payment {before.payment_id}")


async def test_what_has_an_outcome_by_now_is_not_asked_about(
    desk: Desk, deaf: Desk, database: Database, shop: Shop, other_shop: Shop
) -> None:
    await set_back.nothing_to_look_up(database)
    await shopfront.pay(deaf, await shopfront.order(database, shop))
    [one] = await waiting(database, shop)
    with pytest.raises(NotFound):
        await ask_now(database, COMMAND_LINE, other_shop, one.kind, one.id, now=utc_now())
    await settle_due(desk, now=utc_now() + timedelta(minutes=1))
    with pytest.raises(NotFound, match="has an outcome by now"):
        await ask_now(database, COMMAND_LINE, shop, one.kind, one.id, now=utc_now())


async def test_a_refund_without_an_answer_is_listed_and_asked_about_like_a_purchase(
    desk: Desk, deaf: Desk, database: Database, shop: Shop
) -> None:
    payment_id = await shopfront.buy(desk, shop)
    given = await refund(deaf, shop, payment_id, Decimal(4), requested_by="api", now=utc_now())
    assert given.status is RefundStatus.PROCESSING
    [one] = await waiting(database, shop)
    assert (one.kind, one.payment_id, one.amount) == (OpenKind.REFUND, payment_id, Decimal(4))
    assert not one.kind.is_attempt
    now = utc_now()
    await ask_now(database, COMMAND_LINE, shop, one.kind, one.id, now=now)
    assert [one.lookup_at for one in await waiting(database, shop)] == [now]
    await finish_movements(desk, now=now + timedelta(seconds=1))
    assert await waiting(database, shop) == []


async def test_a_charge_of_a_saved_card_is_called_so(
    desk: Desk, deaf: Desk, bank: Bank, database: Database, shop: Shop
) -> None:
    await set_back.no_codes_counted(database)
    card = await shopfront.save_card(desk, bank, await shopfront.become_known(desk, shop))
    wanted = Wanted(card, "power-1", Decimal(20), "USD", "Power for your car")
    assert (await charge_saved(deaf, shop, wanted, request_key="key-1", now=utc_now())).is_open
    [one] = await waiting(database, shop)
    assert (one.kind, one.kind.is_attempt, one.amount) == (OpenKind.CHARGE, True, Decimal(20))
    await ask_now(database, COMMAND_LINE, shop, one.kind, one.id, now=utc_now())
