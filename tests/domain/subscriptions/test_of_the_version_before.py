"""A subscription in a database of the version before, whose card was typed, renews after the
upgrade as ever.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.sweeping import database, database_url
from tests.till import Till

from paydesk.adapters.acquirers.simulator.purchase_state import Standing
from paydesk.database.migrating import migrate
from paydesk.database.pool import Database

__all__ = ["database", "database_url"]

AS_BEFORE = """
alter table card drop column stored_reference, drop column acquirer;
alter table card_change drop column page_asked, drop column page_reference, drop column page_currency,
                        drop column page_ends_at;
delete from schema_migration where number in (180, 181)
"""
"""What takes back the steps by which instruments are kept."""


async def test_a_typed_card_is_charged_after_the_upgrade(
    subscriber: Till, database: Database, charges: Callable[[], list[Standing]]
) -> None:
    subscription = await subscriber.subscribe()
    await database.execute(AS_BEFORE)
    assert await migrate(database) == ["0180_stored_references", "0181_card_change_pages"]
    await database.expire_connections()
    subscription = await subscriber.charge_due(subscription)
    assert subscription.counter == 2
    assert [charge.last4 for charge in charges()] == ["4242", "4242"]
    sealed = await database.fetchval(
        "select number_sealed is not null and stored_reference = '' from card d join subscription s on s.card_id = d.id"
        " where s.id = $1",
        subscription.id,
    )
    assert sealed
