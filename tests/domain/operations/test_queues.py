"""What an operator's metrics say of what is due."""

from collections.abc import Awaitable, Callable
from datetime import timedelta

from prometheus_client import REGISTRY

from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.operations.machinery import watch_queues


def measured(what: str, queue: str) -> float:
    value = REGISTRY.get_sample_value(f"paydesk_queue_{what}", {"queue": queue})
    assert value is not None
    return value


async def test_a_pingback_that_waits_is_measured_with_its_age(
    database: Database, shop: Shop, buy: Callable[[], Awaitable[int]]
) -> None:
    payment_id = await buy()
    await database.execute(
        "update pingback set due_at = now() - interval '2 hours'"
        " where merchant_id = $1 and payment_id = $2 and state = 'due'",
        shop.merchant_id,
        payment_id,
    )
    now = utc_now()
    await watch_queues(database, now=now)
    due, oldest = measured("due", "pingbacks"), measured("oldest_seconds", "pingbacks")
    assert due >= 1
    assert oldest >= timedelta(hours=1, minutes=59).total_seconds()
    await database.execute("delete from pingback where merchant_id = $1", shop.merchant_id)
    await watch_queues(database, now=now)
    assert measured("due", "pingbacks") == due - 1


async def test_every_queue_is_measured_also_an_empty_one(database: Database) -> None:
    await watch_queues(database, now=utc_now())
    queues = ("pingbacks", "renewals", "outcomes", "movements", "shipping", "settlements", "mails")
    assert all(measured("due", queue) >= 0 and measured("in_hand", queue) >= 0 for queue in queues)
    assert (REGISTRY.get_sample_value("paydesk_subscriptions_failing") or 0) >= 0
