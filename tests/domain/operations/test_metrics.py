"""The figures of the machinery, as an operator's graphs read them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from prometheus_client import REGISTRY
from tests import breaking, set_back, shopfront
from tests.banks import answering, ending_in
from tests.domain.operations.books import Books
from tests.sweeping import database, database_url

from paydesk.adapters.acquirers.interface import OutcomeUnknown
from paydesk.core.clock import utc_now
from paydesk.core.errors import Unavailable
from paydesk.database.pool import Database
from paydesk.domain.accounts.audit import COMMAND_LINE
from paydesk.domain.billing.charging import BillingRun
from paydesk.domain.operations import reconciling
from paydesk.domain.operations.history import History, hold, read
from paydesk.domain.operations.holding import accept
from paydesk.domain.operations.machinery import watch_queues
from paydesk.domain.operations.reconciling import SETTLED, reconcile, watch
from paydesk.domain.payments.desk import Desk

__all__ = ["database", "database_url"]


def measured(name: str, **labels: str) -> float:
    """The last figure of a metric."""
    value = REGISTRY.get_sample_value(f"paydesk_{name}", labels)
    assert value is not None, f"nobody measures {name} of {labels}"
    return value


async def test_an_empty_database_has_nothing_due_and_nothing_old(database: Database) -> None:
    await watch_queues(database, now=datetime(2020, 1, 1, tzinfo=UTC))
    for queue in ("renewals", "outcomes", "movements", "shipping", "settlements", "mails", "pingbacks"):
        figures = [measured(f"queue_{what}", queue=queue) for what in ("due", "oldest_seconds", "in_hand")]
        assert figures == [0, 0, 0], queue


async def test_what_falls_due_is_measured_in_its_own_queue_alone(books: Books) -> None:
    now = utc_now()
    await shopfront.subscribe(books.desk, books.shop)
    for ahead, due in ((timedelta(0), 0), (timedelta(days=32), 1)):
        await watch_queues(books.database, now=now + ahead)
        assert measured("queue_due", queue="renewals") == due
    assert measured("queue_oldest_seconds", queue="renewals") > 0
    assert measured("queue_due", queue="shipping") == 0


@pytest.mark.parametrize(("live", "counted"), [(True, 1), (False, 0)])
async def test_only_live_subscriptions_that_fail_are_counted(books: Books, live: bool, counted: int) -> None:
    desk, shop = replace(books.desk, live_acquirer="simulator"), replace(books.shop, live=live)
    await watch_queues(books.database, now=utc_now())
    before = measured("subscriptions_failing")
    begun = await shopfront.subscribe(desk, shop, number="4000000000000341")
    await set_back.renewal_due(books.database, begun.id)
    assert await BillingRun(desk).charge_due() == 1
    await watch_queues(books.database, now=utc_now())
    assert measured("subscriptions_failing") == before + counted


async def test_a_hold_is_measured_by_each_process_that_has_seen_it(database: Database) -> None:
    process = History()
    await process.refresh(database)
    epoch = (await read(database)).beat.epoch
    await hold(database, epoch=epoch, above=epoch, because="restored", since=utc_now())
    await process.refresh(database)
    assert measured("held") == 1
    await accept(database, COMMAND_LINE, "looked through by hand", is_live=False, now=utc_now())
    await process.refresh(database)
    assert measured("held") == 0


async def test_what_differs_is_measured_until_it_agrees(books: Books) -> None:
    await _read_by_a_worker(books.desk)
    for refunded in (1, 0):
        await books.say(refunded=refunded)
        now = utc_now() + 2 * SETTLED
        await reconcile(books.desk, "simulator", since=now - timedelta(days=2), now=now)
        await watch(books.desk, now=now)
        assert measured("reconciliation_differences", acquirer="simulator") == refunded


async def test_a_list_that_can_not_be_read_only_grows_older(books: Books) -> None:
    await _read_by_a_worker(books.desk)
    silent = books.at(
        answering(books.desk.acquirers["simulator"], list_purchases=ending_in(OutcomeUnknown("no answer")))
    )
    now = utc_now()
    with pytest.raises(Unavailable):
        await silent.compare()
    await watch(silent.desk, now=now)
    before = measured("reconciled_age_seconds", acquirer="simulator")
    await watch(silent.desk, now=now + timedelta(hours=2))
    grown = measured("reconciled_age_seconds", acquirer="simulator") - before
    assert grown == pytest.approx(7200)


async def test_what_was_adopted_is_counted_once(books: Books) -> None:
    def adopted() -> float:
        return REGISTRY.get_sample_value("paydesk_adopted_total", {"acquirer": "simulator"}) or 0

    await books.compare(fix=True)
    before = adopted()
    reference = (await books.attempt())["acquirer_reference"]
    books.bank.refund("in the bank's own pages", reference, (await books.attempt())["amount"], "USD")
    for _ in range(2):
        await books.compare(fix=True)
        assert adopted() == before + 1


async def _read_by_a_worker(desk: Desk) -> None:
    """The hourly reading took place, so that it is known up to when the lists agree."""
    await breaking.never_reconciled(desk.database)
    await reconciling._reconcile_when_due(desk, "simulator", now=utc_now())
