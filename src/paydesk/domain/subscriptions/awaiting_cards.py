"""What began without a card ends with its trial, until its customer gives one."""

from __future__ import annotations

from datetime import datetime

from paydesk.database.statements import Connection, load_statements
from paydesk.domain.merchants.shop import Shop

queries = load_statements(__package__ or "", "awaiting_cards.sql")


async def await_card(connection: Connection, shop: Shop, init_payment_id: int, *, now: datetime) -> None:
    """Have the trial that a payment began just now end with it, within the same transaction.
    Moves no money.
    """
    names = {"merchant_id": shop.merchant_id, "live": shop.live, "init_payment_id": init_payment_id}
    waits = await queries.await_card(connection, **names, now=now)
    assert waits is not None, "it is a trial that has no account of an acquirer"
