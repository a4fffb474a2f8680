"""Subscriptions that are due at once, and the worker processes that charge them
while things die.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import asyncpg
from tests.faults.fail_points import FailPoints
from tests.faults.settling import KEYS_ARE_VOID, hereafter
from tests.faults.stage import CONNECTIONS, Cast, as_environment, bank_open, bank_process, planted_env
from tests.processes import PATIENCE, Kept, environment, free_port
from tests.proving import check
from tests.standings import standings

from paydesk.adapters.acquirers.simulator import Record
from paydesk.adapters.vault import generate_key_setting, generate_secret
from paydesk.core.clock import utc_now
from paydesk.core.periods import Period
from paydesk.database.embedded import EmbeddedServer
from paydesk.database.migrating import migrate
from paydesk.database.pool import AWAY, Database, connected
from paydesk.domain.billing.charging import BillingRun
from paydesk.domain.merchants.merchant import create_merchant, shop_of
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.stored_cards import CARD_NUMBER
from paydesk.domain.subscriptions.packages import agree_package
from paydesk.domain.subscriptions.retry_times import UNREACHED_PAUSES
from paydesk.domain.subscriptions.subscription_terms import Terms, Trial
from paydesk.equipment import vault_of
from paydesk.settings import Settings, load_settings
from paydesk_client import Gateway

CLUB = Terms(
    "Coffee club", "club", "USD", Decimal("10.00"), Period(1, "month"), Trial(Decimal(0), Period(14, "day")), 0
)
CARD = "4242424242424242"
BATCH = 4
ROUNDS = 5

SUBSCRIBE = """
with fresh as materialized (
    select n, nextval('customer_id_seq') as customer_id, nextval('card_id_seq') as card_id,
           nextval('payment_id_seq') as payment_id, nextval('payment_attempt_id_seq') as attempt_id,
           nextval('subscription_id_seq') as subscription_id,
           (select max(id) from merchant_key where merchant_id = $1) as key_id
      from generate_series(1, $3) n
), customers as (
    insert into customer (merchant_id, live, id, email, first_name, last_name, username, country, created_at)
    select $1, false, customer_id, 'ada@example.com', 'Ada', 'Lovelace', 'ada', 'GB', $4::timestamptz from fresh
), cards as (
    insert into card (merchant_id, live, id, vault_key_id, fingerprint, bin, last4, brand, exp_month, exp_year, holder,
                      created_at)
    select $1, false, card_id, '', '', '424242', '4242', 'visa', 12, 2040, 'Ada', $4 from fresh
), payments as (
    insert into payment (merchant_id, live, id, merchant_order_id, state, amount, currency, attempt_id, customer_id,
                         card_id, sign_version, key_id, created_at, paid_at, subscription_id, period_number,
                         net, reserve, fees)
    select $1, false, payment_id, 'order-' || n, 'captured', 0, 'USD', attempt_id, customer_id, card_id, 'v2', key_id,
           $4, $4, subscription_id, 0, 0, 0, 0
      from fresh
), attempts as (
    insert into payment_attempt (merchant_id, live, id, payment_id, state, idempotency_key, acquirer, capture, amount,
                                 currency, card_id, client_address, not_after, created_at, finished_at)
    select $1, false, attempt_id, payment_id, 'approved', 'first-' || n, 'simulator', true, 0, 'USD', card_id, '', $4,
           $4, $4
      from fresh
), told as (
    insert into pingback (merchant_id, live, event, payment_id, sign_version, key_id, format, payload, state, due_at,
                          created_at)
    select $1, false, 'payment', payment_id, 'v2', key_id, 'json',
           jsonb_build_object('event', 'payment', 'subscription', jsonb_build_object('id', subscription_id),
                              'payment_order', jsonb_build_object(
                                  'id', payment_id, 'merchant_order_id', 'order-' || n, 'paid_amount', 0,
                                  'paid_currency', 'USD', 'merchant_net_revenue', 0, 'merchant_rolling_reserve', 0,
                                  'fees', 0)), 'waiting', $4, $4
      from fresh
), counted as (
    update subscription_package set subscriptions_count = $3 where merchant_id = $1
), counted_by_terms as (
    update package_version set subscriptions_count = $3 where merchant_id = $1 and id = $2
)
insert into subscription (merchant_id, live, id, state, package_version_id, init_payment_id, init_merchant_order_id,
                          customer_id, card_id, acquirer, network_reference, terms_agreed, portal_seed, sign_version,
                          key_id, time_zone, anchor, next_period, date_next, paid_number_counter, date_start, date_paid,
                          created_at)
select $1, false, subscription_id, 'Trial', $2, payment_id, 'order-' || n, customer_id, card_id, 'simulator',
       'network-' || n, 'yes', 't-' || n, 'v2', key_id, 'UTC', $4::timestamptz + interval '14 days', 1,
       $4::timestamptz + interval '14 days', 1, $4, $4, $4
  from fresh
returning card_id
"""


@dataclass(frozen=True, slots=True)
class Club:
    """A merchant whose customers' free trials are all over;
    `record` is the file of the bank's own record.
    """

    settings: Settings
    cast: Cast
    postgres: EmbeddedServer
    worker: Kept
    env: Mapping[str, str]
    shop: Shop
    gateway: Gateway
    points: FailPoints
    record: Path

    def another_worker(self) -> Kept:
        """A worker to start once the first one has stopped."""
        return Kept("worker", [*self.cast.command, "work"], self.env, ready_event="working")


@asynccontextmanager
async def club_staged(folder: Path, members: int, cast: Cast, seed: int = 0) -> AsyncIterator[Club]:
    """Everything in place for the length of a block:
    the bank in its own process, the worker about to start.
    """
    async with AsyncExitStack() as stack:
        postgres = EmbeddedServer(folder / "data")
        await postgres.start()
        stack.push_async_callback(postgres.stop)
        bank_port = free_port()
        settings = load_settings(
            data_dir=folder / "data",
            database_url=postgres.url,
            database_connections=CONNECTIONS,
            metrics_port=0,
            secret_key=generate_secret(),
            vault_keys=generate_key_setting(),
            simulator_url=f"http://127.0.0.1:{bank_port}",
            billing_batch=BATCH,
            billing_in_flight=BATCH,
            outbound_allow="127.0.0.0/8",
        )
        shop, gateway = await _open_club(settings, members)
        points = FailPoints(folder / "points")
        env = environment(as_environment(settings)) | points.env | planted_env(cast) | {"TMPDIR": str(folder)}
        record = folder / "bank.sqlite"
        await stack.enter_async_context(bank_process(bank_port, record, env, cast, seed).running())
        await bank_open(settings.simulator_url)
        worker = Kept("worker", [*cast.command, "work"], env, ready_event="working")
        yield Club(settings, cast, postgres, worker, env, shop, gateway, points, record)


async def _open_club(settings: Settings, members: int) -> tuple[Shop, Gateway]:
    """So many members whose trial ended an hour ago,
    and what their shop verifies pingbacks with.
    """
    vault, began = vault_of(settings), utc_now() - timedelta(days=14, hours=1)
    async with connected(settings.database_url, most=2) as database:
        await migrate(database)
        merchant = await create_merchant(database, vault, name="Club", email="owner@shop.example", now=began)
        shop = shop_of(merchant, live=False)
        version = await agree_package(database, shop, CLUB, now=began)
        rows = await database.fetch(SUBSCRIBE, merchant.id, version, members, began)
        sealed = [
            vault.seal(CARD.encode(), purpose=CARD_NUMBER, merchant_id=merchant.id, row_id=row["card_id"])
            for row in rows
        ]
        await database.execute(
            "update card set number_sealed = o.sealed, vault_key_id = $4"
            " from unnest($2::bigint[], $3::bytea[]) as o (id, sealed) where merchant_id = $1 and card.id = o.id",
            merchant.id,
            [row["card_id"] for row in rows],
            [one.blob for one in sealed],
            vault.current_key_id,
        )
    return shop, Gateway(merchant.public_key, merchant.private_key, base_url=settings.address)


async def until_nothing_is_due(club: Club) -> None:
    """Let the workers charge until nothing is due any more."""
    async with asyncio.timeout(PATIENCE):
        while True:
            with suppress(*AWAY, asyncpg.PostgresError):
                if not await _due(club):
                    return
            await asyncio.sleep(0.1)


async def _due(club: Club) -> int:
    """How many are due and not in flight, and how many changes are."""
    connection = await asyncpg.connect(club.settings.database_url)
    try:
        return int(
            await connection.fetchval(
                "select (select count(*) from subscription where date_next <= now() and charging_attempt_id is null)"
                " + (select count(*) from subscription_change where state = 'open' and due_at <= now())"
            )
        )
    finally:
        await connection.close()


async def settle_renewals(club: Club) -> None:
    """Let the time pass that settling needs, and charge again what turns out never
    to have reached the bank.
    """
    async with hereafter(club.settings) as later:
        run = BillingRun(later.desk)
        for _ in range(ROUNDS):
            # The bank's memory is the one thing that keeps real time.
            await asyncio.sleep(club.cast.hides_for)
            await later.ask_the_bank(KEYS_ARE_VOID)
            at = utc_now() + 2 * KEYS_ARE_VOID + UNREACHED_PAUSES[-1]
            if not await run.charge_due(merchant_id=club.shop.merchant_id, at=at):
                break
        await asyncio.sleep(club.cast.hides_for)
        await later.ask_the_bank(KEYS_ARE_VOID + timedelta(hours=200))


async def renewal_contradictions(club: Club, members: int) -> list[str]:
    """What the bank's record says against one approved charge for each,
    and what `paydesk check` finds.
    """
    async with connected(club.settings.database_url, most=2) as database:
        return [*await _of_the_bank(club, database, members), *await _of_the_books(club, database)]


async def _of_the_bank(club: Club, database: Database, members: int) -> list[str]:
    charged = {
        row["idempotency_key"]: row["subscription_id"]
        for row in await database.fetch(
            "select a.idempotency_key, p.subscription_id from payment_attempt a"
            " join payment p on p.merchant_id = a.merchant_id and p.id = a.payment_id where p.period_number = 1"
        )
    }
    taken = [key for key, purchase in standings(Record(club.record).operations()).items() if purchase.net]
    strays = [f"lost: the bank took money under {key}, which nobody knows" for key in taken if key not in charged]
    times = Counter(charged[key] for key in taken if key in charged)
    doubled = [f"doubled: subscription {one} was charged {count} times" for one, count in times.items() if count > 1]
    missing = [f"{members - len(times)} were never charged"] if len(times) != members else []
    return strays + doubled + missing


async def _of_the_books(club: Club, database: Database) -> list[str]:
    found = await check(database, now=utc_now(), record=Record(club.record))
    wrong = [f"{finding.rule.statement}: {one.detail}" for finding in found for one in finding.differences]
    others = await database.fetch(
        "select state, counter, failures, count(*) from subscription"
        " where (state, counter, failures) is distinct from ('Active', 1, 0) group by 1, 2, 3"
    )
    return wrong + [f"subscriptions are not active and paid once: {dict(row)}" for row in others]
