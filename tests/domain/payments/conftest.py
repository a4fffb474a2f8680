"""A till to pay at, without a web application, over a database that refuses transitions the tables
don't allow.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from tests import set_back, shopfront

from paydesk.adapters.acquirers.interface import Acquirer
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.merchants.customer_links import Link
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.checkouts import Checkout, find_checkout
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.janitor import settle_due
from paydesk.domain.payments.paying import Result
from paydesk.domain.payments.states import ATTEMPT_TRANSITIONS, MOVEMENT_TRANSITIONS, PAYMENT_TRANSITIONS

GUARDED = (
    ("payment", PAYMENT_TRANSITIONS),
    ("payment_attempt", ATTEMPT_TRANSITIONS),
    ("movement", MOVEMENT_TRANSITIONS),
)


@dataclass(frozen=True, slots=True)
class Till:
    """One merchant's test side, a desk, and what its customers do."""

    desk: Desk
    shop: Shop

    def at(self, acquirer: Acquirer) -> Till:
        """The same till with another acquirer behind it."""
        return replace(self, desk=replace(self.desk, acquirers={"simulator": acquirer}))

    async def order(self, reference: str = "", **changes: Any) -> Link:
        """Open a checkout for a new order, or for the one named; its link."""
        return await shopfront.order(self.desk.database, self.shop, reference, **changes)

    async def find(self, token: Link, now: datetime | None = None) -> Checkout:
        """The checkout as it stands."""
        return await find_checkout(self.desk.database, token, now=now or utc_now())

    async def pay(self, token: Link, number: str, **who: Any) -> Result:
        """A customer types a card and presses the button."""
        return await shopfront.pay(self.desk, token, number, **who)

    async def settle(self, **later: float) -> int:
        """The janitor's round, some time from now."""
        return await settle_due(self.desk, now=utc_now() + timedelta(**later))

    async def attempts(self) -> list[Any]:
        """The merchant's attempts, oldest first."""
        return list(
            await self.desk.database.fetch(
                "select * from payment_attempt where merchant_id = $1 order by id", self.shop.merchant_id
            )
        )

    async def attempt_states(self) -> list[str]:
        """The states of the merchant's attempts, oldest first."""
        return [row["state"] for row in await self.attempts()]

    async def state(self) -> str:
        """The state of the merchant's only payment."""
        (row,) = await self.desk.database.fetch(
            "select state from payment where merchant_id = $1", self.shop.merchant_id
        )
        return str(row["state"])


@pytest.fixture
def till(desk: Desk, shop: Shop) -> Till:
    return Till(desk, shop)


@pytest.fixture(autouse=True)
async def _no_other_lookups(database: Database) -> None:
    """A janitor asks for all merchants, so that what other tests have left would be in the way."""
    await set_back.nothing_to_look_up(database)
    await database.execute(
        "update movement set lookup_at = lookup_at + interval '100 years' where lookup_at < now() + interval '1 year'"
    )


@pytest.fixture(autouse=True)
async def _guarded_transitions(database: Database) -> AsyncIterator[None]:
    """Make the database refuse transitions that the tables of states.py don't know,
    and remember those that it made.
    """
    await database.execute(
        """
        create table transition (row_of text, was text, became text, made boolean not null default false);
        create function guard_transition() returns trigger language plpgsql as $$
        begin
            if old.state <> new.state then
                update transition set made = true where (row_of, was, became) = (tg_table_name, old.state, new.state);
                if not found then
                    raise exception '% may not go from % to %', tg_table_name, old.state, new.state;
                end if;
            end if;
            return new;
        end $$;
        create trigger guarded before update on payment for each row execute function guard_transition();
        create trigger guarded before update on payment_attempt for each row execute function guard_transition();
        create trigger guarded before update on movement for each row execute function guard_transition();
        """
    )
    await database.executemany(
        "insert into transition (row_of, was, became) values ($1, $2, $3)",
        [
            (table, str(was), str(became))
            for table, transitions in GUARDED
            for was, reached in transitions.items()
            for became in reached
        ],
    )
    try:
        yield
    finally:
        await database.execute("drop function guard_transition cascade; drop table transition")
