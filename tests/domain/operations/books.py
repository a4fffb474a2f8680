"""Our books and the bank's, of one merchant and one payment, to compare with each other."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

from tests import breaking, shopfront
from tests.till import Till

from paydesk.core.clock import utc_now
from paydesk.core.paging import Page
from paydesk.domain.alarms.kinds import AlarmKind
from paydesk.domain.operations.alarms import list_alarms
from paydesk.domain.operations.differences import Difference, Reconciled
from paydesk.domain.operations.reconciling import SETTLED, reconcile

FOUR, TEN = Decimal(4), Decimal(10)

BOOKS = {
    "payments": """
        select id, merchant_order_id, state, amount, currency, net, reserve, fees, refunded, refunding, subscription_id,
               period_number, renewal, ship_by is not null as waits
          from payment order by id
    """,
    "attempts": """
        select payment_id, state, idempotency_key, acquirer_reference, network_reference, number
          from payment_attempt where state = 'approved' order by payment_id
    """,
    "movements": """
        select case when kind = 'refund' then id end as id, payment_id, kind, state, amount, idempotency_key
          from movement order by idempotency_key
    """,
    "ledger": """
        select payment_id, kind, account, sum(amount) as amount
          from ledger_entry group by payment_id, kind, account order by payment_id, kind, account
    """,
    "subscriptions": """
        select id, state, init_payment_id, next_period, counter, paid_number_counter, date_next::date, anchor::date,
               failures, network_reference, charging_attempt_id
          from subscription order by id
    """,
}
"""What two databases must say alike of the same events."""


@dataclass(frozen=True, slots=True)
class Books(Till):
    """A till whose books are compared with the bank's, some minutes after all was written down."""

    async def compare(self, *, fix: bool = False) -> Reconciled:
        now = utc_now()
        return await reconcile(self.desk, "simulator", since=now - timedelta(hours=1), now=now + 2 * SETTLED, fix=fix)

    async def differences(self) -> list[Difference]:
        """What differs of this test's own merchant, or of nobody's."""
        found = (await self.compare()).differences
        return [one for one in found if one.merchant_id in (None, self.shop.merchant_id)]

    async def reasons(self) -> list[str]:
        return [one.reason for one in await self.differences()]

    async def listed(self) -> list[str]:
        """What the operator's list of alarms says of it."""
        found = await list_alarms(self.database, Page(100), kind=AlarmKind.not_reconciled)
        return [one.subject for one in found]

    async def say(self, **columns: Any) -> None:
        """Our books say something else of the payment than what came to pass."""
        await breaking.say(self.database, "payment", {"id": self.payment_id}, **columns)

    async def forget(self) -> None:
        """Our books have forgotten all that this shop was paid."""
        await breaking.forget_payments(self.database, self.shop)

    async def draw_ids(self) -> None:
        """Ids are drawn that nobody uses, so that those which were forgotten come again only
        if they are told.
        """
        for of in ("payment", "subscription", "movement"):
            await self.database.execute(f"select nextval('{of}_id_seq')")

    async def attempt(self) -> Any:
        (only,) = await self.rows("payment_attempt", self.payment_id)
        return only

    async def another(self, reference: str = "", **asked: Any) -> Books:
        """The same of one more order, which `asked` may describe."""
        return replace(self, payment_id=await self.sell(reference, **asked))

    async def named(self, order: str) -> int:
        """The id of an order's payment."""
        return await shopfront.payment_of(self.database, self.shop, order)

    async def states(self) -> Sequence[str]:
        """How the shop's payments stand in our books."""
        return [row["state"] for row in await self.payments() if row["live"] == self.shop.live]

    async def written(self) -> dict[str, list[Any]]:
        """All that the books of a database say, and what its pingbacks tell of which payment."""
        rows = {name: [dict(row) for row in await self.database.fetch(asked)] for name, asked in BOOKS.items()}
        sent = await self.database.fetch("select event, payment_id, payload from pingback order by payment_id, event")
        told = [
            (row["event"], row["payment_id"], json.loads(row["payload"])["payment_order"]["merchant_order_id"])
            for row in sent
        ]
        return {**rows, "told": sorted(told)}

    def taken(self) -> list[tuple[Decimal, Decimal]]:
        """What the bank took, and gave back of it, purchase by purchase."""
        return [(one.captured, one.refunded) for one in self.standings().values() if one.captured]
