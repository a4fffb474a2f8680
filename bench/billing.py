"""How fast renewals are charged, and how much memory that takes.

Paydesk's billing run claims N due subscriptions, charges each stored card at an acquirer that
approves at once (or after 200 ms), and writes payment, attempt, ledger and pingback; one process,
embedded PostgreSQL, durable. The floor beside it moves the same rows in the same tables by one bare
set-based statement per 500, without any calendar, card or call. The memory is the peak of the
billing process, which is fresh for each size. "A tenth bent" is the same run where every tenth
subscription is on another plan, or of three instead of one, from this charge on, was moved to
one at once and owes the difference, or has a coupon. It and the run with none bent take turns,
now one first, now the other, and the ratio is the middle one of their pairs, so that what else
the machine does weighs on both alike.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import uvloop

import smoke
from approving import Approving
from paydesk.adapters.vault import Vault, generate_key_setting, generate_secret
from paydesk.commands import loading
from paydesk.core.clock import utc_now
from paydesk.core.periods import Period
from paydesk.database.embedded import EmbeddedServer
from paydesk.database.migrating import migrate
from paydesk.database.pool import Database, connected
from paydesk.database.table_statistics import TableStatistics
from paydesk.domain.billing.charging import run_billing
from paydesk.domain.billing.pacing import Pace
from paydesk.domain.merchants.merchant import create_merchant, shop_of
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.stored_cards import CARD_NUMBER
from paydesk.domain.subscriptions.changing_plans import Plan, Prorating, change_plan
from paydesk.domain.subscriptions.discounting import agree_discounted
from paydesk.domain.subscriptions.packages import agree_package
from paydesk.domain.subscriptions.subscription_terms import Discount, Terms

DURABILITY = ("fsync", "synchronous_commit", "full_page_writes")
AIM = 10_000
AIM_OVER_BARE, AIM_BENT = 0.6, 0.9
"""Of the rate without."""
PACE = Pace()
SLOW_PACE = Pace(in_flight=2000)
MERCHANTS = 20
TERMS = Terms("Coffee club", "club", "USD", Decimal("10.00"), Period(1, "month"), None, 0)
DEARER = Terms("Coffee club, large", "large", "USD", Decimal("30.00"), Period(1, "month"), None, 0)
REDUCED = replace(TERMS, price=Decimal("8.00"), discount=Discount(TERMS.price, 6))
CARD = "4242424242424242"
_LOAD = 2000
_AT_ONCE = 16
"""Changes that are made side by side before the measurement."""

SUBSCRIBE = """
with fresh as (
    select n, nextval('customer_id_seq') as customer_id, nextval('payment_id_seq') as payment_id,
           nextval('payment_attempt_id_seq') as attempt_id, nextval('subscription_id_seq') as subscription_id,
           (select max(id) from merchant_key where merchant_id = $1) as key_id
      from generate_series(1, cardinality($3::bigint[])) n
), customers as (
    insert into customer (merchant_id, live, id, email, first_name, last_name, username, country, created_at)
    select $1, false, customer_id, 'c' || n || '@shop.example', 'Ada', 'Lovelace', 'ada', 'GB', $5 from fresh
), cards as (
    insert into card (merchant_id, live, id, number_sealed, vault_key_id, fingerprint, bin, last4, brand, exp_month,
                      exp_year, holder, created_at)
    select $1, false, ($3::bigint[])[n], ($4::bytea[])[n], $6, '', '424242', '4242', 'visa', 12, 2040, 'Ada', $5
      from fresh
), first_payments as (
    insert into payment (merchant_id, live, id, merchant_order_id, state, amount, currency, attempt_id, customer_id,
                         card_id, sign_version, key_id, pingback_url, created_at, net, reserve, fees, paid_at,
                         subscription_id, period_number)
    select $1, false, payment_id, 'order-' || payment_id, 'captured', 10, 'USD', attempt_id, customer_id,
           ($3::bigint[])[n], 'v2', key_id, 'https://shop.example/pingback', $5, 8.9, 0.5, 0.6, $5,
           subscription_id, 1
      from fresh
), first_attempts as (
    insert into payment_attempt (merchant_id, live, id, payment_id, state, idempotency_key, acquirer, capture, amount,
                                 currency, card_id, client_address, not_after, created_at, finished_at)
    select $1, false, attempt_id, payment_id, 'approved', 'first-' || attempt_id, 'bench', true, 10,
           'USD', ($3::bigint[])[n], '', $5, $5, $5
      from fresh
)
insert into subscription (merchant_id, live, id, state, package_version_id, init_payment_id, init_merchant_order_id,
                          customer_id, card_id, acquirer, network_reference, terms_agreed, portal_seed, sign_version,
                          key_id, pingback_url, time_zone, anchor, next_period, date_next, counter,
                          paid_number_counter, date_start, date_active, date_paid, created_at)
select $1, false, subscription_id, 'Active', ($2::bigint[])[n], payment_id, 'order-' || payment_id, customer_id,
       ($3::bigint[])[n], 'bench', '', 'yes', 't-' || payment_id, 'v2', key_id, 'https://shop.example/pingback', 'UTC',
       $5::timestamptz, 2, now() - random() * interval '1 day', 1, 1, $5, $5, $5, $5
  from fresh
"""

FLOOR = """
with due as materialized (
    select s.*, nextval('payment_attempt_id_seq') as attempt_id, nextval('payment_id_seq') as payment_id,
           nextval('ledger_posting_id_seq') as posting_id
      from subscription s
     where s.merchant_id = $1 and not s.live and s.date_next <= $2 and s.charging_attempt_id is null
       and s.charge_takes_long is null
     order by s.date_next
     limit 500
       for update skip locked
), paid as (
    insert into payment (merchant_id, live, id, merchant_order_id, state, amount, currency, attempt_id, customer_id,
                         card_id, sign_version, key_id, pingback_url, created_at, subscription_id, period_number,
                         renewal, net, reserve, fees, paid_at)
    select merchant_id, live, payment_id, init_merchant_order_id || ':' || next_period, 'captured', 10, 'USD',
           attempt_id, customer_id, card_id, sign_version, key_id, pingback_url, $2, id, next_period, true,
           8.9, 0.5, 0.6, $2
      from due
), tried as (
    insert into payment_attempt (merchant_id, live, id, payment_id, state, idempotency_key, acquirer, capture, amount,
                                 currency, card_id, client_address, not_after, created_at, finished_at)
    select merchant_id, live, attempt_id, payment_id, 'approved', attempt_id::text, acquirer, true, 10, 'USD', card_id,
           '', $2, $2, $2
      from due
), posted as (
    insert into ledger_posting (merchant_id, live, posting_id, kind, payment_id, currency, acquirer, pending, reserve,
                                fees, at)
    select merchant_id, live, posting_id, 'capture', payment_id, 'USD', 10, -8.9, -0.5, -0.6, $2
      from due
), told as (
    insert into pingback (merchant_id, live, event, payment_id, url, sign_version, key_id, format, payload, state,
                          due_at, created_at)
    select merchant_id, live, 'payment', payment_id, pingback_url, sign_version, key_id, 'json', $3, 'due', $2, $2
      from due
), moved as (
    update subscription s
       set next_period = s.next_period + 1, date_next = s.date_next + interval '1 month', counter = s.counter + 1,
           paid_number_counter = s.paid_number_counter + 1, date_paid = $2, revision = s.revision + 1
      from due
     where s.merchant_id = due.merchant_id and s.id = due.id
 returning s.id
)
select count(*) from moved
"""


@dataclass(frozen=True, slots=True)
class Task:
    """What one fresh process measures: how many subscriptions, and which way."""

    kind: str
    due: int
    latency: float


@asynccontextmanager
async def embedded_database() -> AsyncIterator[Database]:
    """A new embedded server with our schema, as `paydesk run` makes it."""
    with tempfile.TemporaryDirectory(prefix="paydesk-bench-") as folder:
        server = EmbeddedServer(Path(folder))
        await server.start()
        try:
            async with connected(server.url) as database:
                await migrate(database)
                yield database
        finally:
            await server.stop()


async def subscribe(database: Database, vault: Vault, number: int, *, bent: bool = False) -> list[int]:
    """So many subscriptions, due within the last day, spread over some merchants, and every tenth
    of them bent if that is wanted; returns the merchants' ids.
    """
    began = utc_now() - timedelta(days=31)
    merchants = []
    share = -(-number // MERCHANTS)
    for start in range(0, number, share):
        merchant = await create_merchant(database, vault, name="Club", email="c@shop.example", now=began)
        shop = shop_of(merchant, live=False)
        version = await agree_package(database, shop, TERMS, now=began)
        reduced = await agree_discounted(database, shop, version, REDUCED, now=began) if bent else version
        merchants.append(merchant.id)
        left = total = min(share, number - start)
        while left:
            size = min(left, _LOAD)
            first = await database.fetchval("select setval('card_id_seq', nextval('card_id_seq') + $1) - $1", size)
            cards = list(range(first, first + size))
            sealed = [
                vault.seal(CARD.encode(), purpose=CARD_NUMBER, merchant_id=merchant.id, row_id=card).blob
                for card in cards
            ]
            # By their place among all of the merchant's, as `bend` takes others.
            versions = [reduced if (total - left + row) % 30 == 0 else version for row in range(size)]
            await database.execute(SUBSCRIBE, merchant.id, versions, cards, sealed, began, vault.current_key_id)
            left -= size
        if bent:
            await bend(database, shop, now=began + timedelta(days=1))
    # Autovacuum does this on a database that was filled in the usual way.
    await database.execute("vacuum analyze subscription, card, customer, payment, payment_attempt")
    await database.execute("analyze")
    await database.execute("checkpoint") if await _may_checkpoint(database) else None
    return merchants


async def bend(database: Database, shop: Shop, *, now: datetime) -> None:
    """Change every fifteenth of a shop's subscriptions: by turns from the next charge on, to
    another plan or to three of the same, and at once with the difference in that charge.
    """
    await agree_package(database, shop, DEARER, now=now)
    dearer, three = Plan(sku_id=DEARER.sku_id, name=DEARER.name, price=str(DEARER.price)), Plan(quantity="3")
    gate = asyncio.Semaphore(_AT_ONCE)

    async def change(subscription_id: int, plan: Plan, *, at_once: bool) -> None:
        prorating = Prorating.NEXT_CHARGE if at_once else Prorating.NONE
        how: dict[str, Any] = {"by": "merchant", "now": now, "at_once": at_once, "prorating": prorating}
        async with gate:
            await change_plan(database, shop, subscription_id, plan, **how)

    found = await database.fetch("select id from subscription where merchant_id = $1 order by id", shop.merchant_id)
    ids = [row["id"] for row in found]
    await asyncio.gather(
        *(change(one, dearer, at_once=False) for one in ids[10::60]),
        *(change(one, three, at_once=False) for one in ids[40::60]),
        *(change(one, dearer, at_once=True) for one in ids[20::30]),
    )


async def _may_checkpoint(database: Database) -> bool:
    """Whether the role may force a checkpoint, so that none of the loading is paid for later."""
    return bool(await database.fetchval("select pg_has_role(current_user, 'pg_checkpoint', 'member')"))


async def charged(database: Database, vault: Vault, number: int, latency: float) -> float:
    """Seconds that a billing run takes to charge everybody and write it all down."""
    acquirer = Approving(latency)
    desk = Desk(database, vault, {acquirer.name: acquirer})
    stop = asyncio.Event()
    began = time.monotonic()
    pace = SLOW_PACE if latency else PACE
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(run_billing(desk, stop, pace))
        tasks.create_task(TableStatistics(database).run(stop))  # beside it, as in every worker
        while acquirer.calls < number:
            await asyncio.sleep(0.02)
        stop.set()
    return time.monotonic() - began


async def moved(database: Database, merchants: list[int]) -> float:
    """Seconds that the bare statement takes for the same rows."""
    payload = json.dumps({"event": "payment", "padding": "x" * 1500})
    began = time.monotonic()
    for merchant in merchants:
        while await database.fetchval(FLOOR, merchant, utc_now(), payload):
            pass
    return time.monotonic() - began


async def measure(task: Task) -> dict[str, object]:
    """Load, run, and look whether everything is written."""
    vault = Vault.from_settings(generate_key_setting(), generate_secret())
    async with embedded_database() as database:
        merchants = await subscribe(database, vault, task.due, bent=task.kind == "bent")
        before, cpu = peak_memory(), time.process_time()
        if task.kind == "floor":
            seconds = await moved(database, merchants)
        else:
            seconds = await charged(database, vault, task.due, task.latency)
        for table, expected in (("payment", 2), ("payment_attempt", 2), ("pingback", 1), ("ledger_posting", 1)):
            count = await database.fetchval(f"select count(*) from {table}")
            assert count == expected * task.due, f"{count} rows in {table}"
        assert await database.fetchval("select count(*) from payment where state <> 'captured'") == 0
        others = await database.fetchval("select count(*) from payment where renewal and amount <> 10")
        assert (others > 0.09 * task.due) == (task.kind == "bent"), f"{others} charges of another amount"
        durability = {name: await database.fetchval(f"show {name}") for name in DURABILITY}
    return {
        "kind": task.kind,
        "due": task.due,
        "latency": task.latency,
        "seconds": seconds,
        "per_second": task.due / seconds,
        "cpu_seconds": time.process_time() - cpu,
        "peak_mb_before": before,
        "peak_mb": peak_memory(),
        "postgresql": durability,
    }


def peak_memory() -> float:
    """The most memory that this process has had so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


async def in_a_process_of_its_own(task: Task) -> dict[str, object]:
    """Measure in a fresh process, so that its memory is its own."""
    arguments = ["--measure", task.kind, str(task.due), str(task.latency)]
    process = await asyncio.create_subprocess_exec(sys.executable, __file__, *arguments, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    said = await process.stdout.read()
    if await process.wait():
        raise SystemExit(f"measuring {task} failed")
    result: dict[str, object] = json.loads(said)
    return result


def show(results: list[dict[str, Any]]) -> None:
    """Print one table."""
    print(f"PostgreSQL: {results[0]['postgresql']}; one billing process; aim: at least {AIM} charges per second")
    names = {"floor": "bare statement per 500", "ours": "Paydesk", "bent": "Paydesk, a tenth bent"}
    print(f"  {'':<40}{'due':>10}{'seconds':>10}{'per second':>12}{'peak MB':>10}")
    for one in results:
        label = names[str(one["kind"])] + (f", bank takes {one['latency']:.1f} s" if one["latency"] else "")
        print(f"  {label:<40}{one['due']:>10}{one['seconds']:>10.1f}{one['per_second']:>12.0f}{one['peak_mb']:>10.0f}")
    for ratios, aim in ((over_bare(results), AIM_OVER_BARE), (bent_over_none(results), AIM_BENT)):
        for name, ratio in ratios.items():
            print(f"  {name}: {ratio:.2f} (aim: at least {aim})")


async def measure_all(sizes: list[int], pairs: int) -> list[dict[str, Any]]:
    """All sizes, each way, and so many pairs of runs without and with a tenth bent."""
    tasks = [
        Task(kind, due, latency) for due in sizes for kind, latency in (("floor", 0.0), *in_turns(pairs), ("ours", 0.2))
    ]
    return [await in_a_process_of_its_own(task) for task in tasks]


def in_turns(pairs: int) -> list[tuple[str, float]]:
    """The runs of each pair one after the other; which comes first changes, since a machine that
    gets busier would favour it.
    """
    order = ("ours", "bent", "bent", "ours") * pairs
    return [(kind, 0.0) for kind in order[: 2 * pairs]]


def ratios_of(results: list[dict[str, Any]]) -> dict[str, float]:
    """What goes into the history: each size against the bare statement, and bent against not."""
    return over_bare(results) | bent_over_none(results)


def over_bare(results: list[dict[str, Any]]) -> dict[str, float]:
    """How fast renewals are for each size, against the bare statement."""
    return {
        f"{due} renewals over the bare statement": statistics.median(rates_of(results, "ours", due))
        / statistics.median(rates_of(results, "floor", due))
        for due in sizes_of(results)
    }


def bent_over_none(results: list[dict[str, Any]]) -> dict[str, float]:
    """How fast renewals are of which a tenth is bent, for each size against none: the middle one
    of the pairs of runs that followed each other.
    """
    return {
        f"{due} renewals, a tenth bent, over none": statistics.median(
            bent / none
            for bent, none in zip(rates_of(results, "bent", due), rates_of(results, "ours", due), strict=True)
        )
        for due in sizes_of(results)
    }


def rates_of(results: list[dict[str, Any]], kind: str, due: int) -> list[float]:
    """Charges a second in each run of a kind and size, in turn, if the bank answers at once."""
    return [one["per_second"] for one in results if (one["kind"], one["due"], one["latency"]) == (kind, due, 0.0)]


def sizes_of(results: list[dict[str, Any]]) -> list[int]:
    """How many were due in a run, each number once."""
    return sorted({int(one["due"]) for one in results})


def main() -> None:
    """Read the arguments, measure, print, and keep the result as JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="example: bench/billing.py --sizes 100000 1000000",
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=[20_000], help="subscriptions due (default 20000)")
    parser.add_argument("--measure", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--pairs", type=int, default=5, help="runs with a tenth bent, each beside one with none (5)")
    arguments = smoke.read(parser, sizes=[400], pairs=1)
    if arguments.measure:
        kind, due, latency = arguments.measure
        loading.stay()  # as in every process of ours
        print(json.dumps(uvloop.run(measure(Task(kind, int(due), float(latency))))))
        return
    results = uvloop.run(measure_all(arguments.sizes, arguments.pairs))
    show(results)
    smoke.keep("billing", results, ratios_of(results), smoke=arguments.smoke)


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        main()
