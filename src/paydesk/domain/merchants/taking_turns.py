"""Who changes what only one at a time may change of a merchant holds its row until the end of the
transaction; checkouts and payments don't wait for it.
"""

from __future__ import annotations

from paydesk.database.statements import Connection, load_statements

queries = load_statements(__package__ or "")


async def take_turn(connection: Connection, *merchant_ids: int) -> None:
    """Wait until nobody else has the turn of a merchant, and have it; several in one same order.

    What is read of them is asked for after it, by a statement of its own: one that waits for a lock
    sees other rows as they were before.
    """
    await queries.hold_merchants(connection, merchant_ids=list(merchant_ids))
