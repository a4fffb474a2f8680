"""Chargebacks as an older version writes them, beside this one until all are restarted."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from decimal import Decimal
from typing import Any

import pytest
from tests.proving import check

from paydesk.adapters.acquirers.disputes import Dispute, DisputeStatus
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.acquirers.leases import Unleased
from paydesk.domain.chargebacks.booking import record_dispute
from paydesk.domain.chargebacks.for_api import purchase_of
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk

TEN, NOTHING = Decimal(10), Decimal(0)

OPEN_ONE = """
with charged_back as (
    update payment
       set state = 'charged_back', rare_state = 'charged_back', revision = revision + 1, charged_back = amount
     where merchant_id = $1 and id = $2
 returning *
), posting as (
    select *, nextval('ledger_posting_id_seq') as posting_id from charged_back
), posted as (
    insert into ledger_entry (merchant_id, live, posting_id, kind, payment_id, account, currency, amount, at)
    select merchant_id, live, posting_id, 'chargeback', posting.id, e.account, currency, e.amount, now()
      from posting
     cross join lateral (values ('acquirer', -posting.amount), ('available', posting.amount)) as e (account, amount)
)
insert into chargeback (merchant_id, live, payment_id, state, acquirer, acquirer_reference, amount, currency, fee,
                        reason, muted, opened_at)
select merchant_id, live, id, 'open', 'simulator', 'dp_of_' || id, amount, currency, 0, 'fraudulent',
       array['chargeback'], now()
  from charged_back
"""
"""What the version before does when a dispute is opened, of an account that muted it
and pays no fee."""

WIN_IT = """
with won as (
    update payment set state = 'captured', rare_state = null, revision = revision + 1, charged_back = 0
     where merchant_id = $1 and id = $2
 returning *
), posting as (
    select *, nextval('ledger_posting_id_seq') as posting_id from won
), posted as (
    insert into ledger_entry (merchant_id, live, posting_id, kind, payment_id, account, currency, amount, at)
    select merchant_id, live, posting_id, 'chargeback_reversal', posting.id, e.account, currency, e.amount, now()
      from posting
     cross join lateral (values ('acquirer', posting.amount), ('available', -posting.amount)) as e (account, amount)
)
update chargeback c
   set state = 'won', closed_at = now(), muted = c.muted || array['chargeback_reversed']
  from won
 where c.merchant_id = won.merchant_id and c.payment_id = won.id
"""


async def differences(database: Database, shop: Shop) -> dict[str, Any]:
    """What `paydesk check` finds, by rule."""
    found = await check(database, now=utc_now(), merchant_id=shop.merchant_id)
    return {one.rule.statement: one.differences for one in found if one.found}


async def sums(database: Database, shop: Shop) -> tuple[Any, ...]:
    """A chargeback's state, sums and steps, and what its payment lacks."""
    row = await database.fetchrow(
        "select c.state, c.taken, c.returned, c.takes, c.returns, p.charged_back"
        "  from chargeback c join payment p on p.merchant_id = c.merchant_id and p.id = c.payment_id"
        " where c.merchant_id = $1",
        shop.merchant_id,
    )
    return tuple(row)


@pytest.mark.parametrize(
    ("told", "after"),
    [
        (DisputeStatus.OPEN, ("open", TEN, NOTHING, 1, 0, TEN)),
        (DisputeStatus.WON, ("won", TEN, TEN, 1, 1, NOTHING)),
        (DisputeStatus.LOST, ("lost", TEN, NOTHING, 1, 0, TEN)),
    ],
)
async def test_what_a_process_of_the_version_before_opened_is_not_taken_twice(
    desk: Desk, shop: Shop, database: Database, buy: Callable[[], Awaitable[int]], told: DisputeStatus, after: Any
) -> None:
    payment_id = await buy()
    await database.execute(OPEN_ONE, shop.merchant_id, payment_id)
    assert await differences(database, shop) == {}
    key = (await purchase_of(database, shop, payment_id)).key
    dispute = Dispute(f"dp_of_{payment_id}", key, TEN, "USD", "fraudulent", told, utc_now())
    for _ in range(2):
        await record_dispute(Unleased(database).holding, "simulator", dispute, now=utc_now())
    assert await sums(database, shop) == after
    assert await differences(database, shop) == {}


async def test_what_a_process_of_the_version_before_won_is_returned_once(
    desk: Desk, shop: Shop, database: Database, buy: Callable[[], Awaitable[int]]
) -> None:
    payment_id = await buy()
    await database.execute(OPEN_ONE, shop.merchant_id, payment_id)
    await database.execute(WIN_IT, shop.merchant_id, payment_id)
    assert await differences(database, shop) == {}
    key = (await purchase_of(database, shop, payment_id)).key
    dispute = Dispute(f"dp_of_{payment_id}", key, TEN, "USD", "fraudulent", DisputeStatus.WON, utc_now())
    await record_dispute(Unleased(database).holding, "simulator", dispute, now=utc_now())
    assert await sums(database, shop) == ("won", TEN, TEN, 1, 1, NOTHING)
    assert await differences(database, shop) == {}
