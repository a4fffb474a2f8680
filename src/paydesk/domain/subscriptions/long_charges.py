"""Charges that take long, such as direct debits: what looks for subscriptions that are due passes
them over by its index alone.

A charge that just began stands among what is due until it is recorded, so that it costs no index an
entry. A bank that takes days would leave thousands there, to be looked at in every round.
"""

from __future__ import annotations

from collections.abc import Sequence

from paydesk.database.statements import Connection, load_statements
from paydesk.domain.merchants.shop import Shop

queries = load_statements(__package__ or "", "long_charges.sql")


async def note_long_charges(database: Connection, attempts: Sequence[tuple[Shop, int]]) -> None:
    """Note of the attempts in flight that are charges of subscriptions that they take long; what
    ends such a charge ends the note. Moves no money.
    """
    if attempts:
        await queries.note_long_charges(
            database,
            merchant_ids=[shop.merchant_id for shop, _ in attempts],
            lives=[shop.live for shop, _ in attempts],
            attempt_ids=[attempt_id for _, attempt_id in attempts],
        )
