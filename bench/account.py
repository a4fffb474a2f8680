"""How quick the lists of the business account are for a merchant with many payments.

One merchant gets so many payments in bulk (each with customer, card, attempt, pingback and ledger
entries; every tenth with a subscription). Then each list is asked for over and over through the
whole web application, logged in as the owner: what is measured is queries and rendering, without
a network.
"""

from __future__ import annotations

import argparse
import logging
import re
import secrets
import sys
import tempfile
import time
from decimal import Decimal
from http import HTTPStatus
from pathlib import Path
from typing import Any

import httpx
import structlog
import uvloop

import smoke
from paydesk.adapters.vault import generate_key_setting, generate_secret
from paydesk.app import create_app
from paydesk.core.clock import utc_now
from paydesk.core.periods import Period
from paydesk.database.embedded import EmbeddedServer
from paydesk.database.migrating import migrate
from paydesk.database.pool import Database, connected
from paydesk.domain.ledger.closing import close_ledger
from paydesk.domain.ledger.reserves import fold_reserves
from paydesk.domain.ledger.summing_sales import sum_sales
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.subscriptions.folding import fold_movements
from paydesk.domain.subscriptions.packages import agree_package
from paydesk.domain.subscriptions.subscription_terms import Terms
from paydesk.settings import Settings, load_settings

ADDRESS = "http://127.0.0.1:8000"
AIM_MS = 50
AT_ONCE = 20_000
ROUNDS = 40
LISTS = {
    "payments": "payments",
    "payments, declined": "payments?status=declined",
    "payments, captured": "payments?status=captured",
    "payments, refunded (none)": "payments?status=refunded",
    "payments by order": "payments?q=order-77",
    "payments by e-mail": "payments?q=c77%40shop.example",
    "payments by last four": "payments?q=0077",
    "payments, nothing found": "payments?q=nothing",
    "payments of a day": "payments?since={day}&until={day}",
    "subscriptions": "subscriptions",
    "subscriptions, cancelled": "subscriptions?status=Cancelled",
    "subscriptions by e-mail": "subscriptions?q=c70%40shop.example",
    "pingbacks": "pingbacks",
    "pingbacks, failed": "pingbacks?state=exhausted",
    "pingbacks, refunds": "pingbacks?event=refund",
    "pingbacks, failed refunds": "pingbacks?state=exhausted&event=refund",
    "pingbacks, seldom event": "pingbacks?event=chargeback",
    "pingbacks by order": "pingbacks?reference=order-77",
    "pingbacks by e-mail": "pingbacks?email=c77%40shop.example",
    "deliveries": "deliveries",
    "deliveries, confirmed": "deliveries/confirmed",
    "overview": "overview",
    "balance": "balance",
    "developers, rejected forms": "developers",
    "audit log": "settings/audit",
}

FILL = """
with rows as (
    select n, now() - n * interval '20 seconds' as at,
           case when n % 20 = 0 then 'declined' when n % 500 = 7 then 'authorized' else 'captured' end as state
      from generate_series($2::bigint, $3::bigint) n
), customers as (
    insert into customer (merchant_id, live, id, email, first_name, last_name, username, country, created_at)
    select $1, true, n, 'c' || n || '@shop.example', 'Ada', 'Lovelace', '', 'GB', at from rows
), cards as (
    insert into card (merchant_id, live, id, vault_key_id, fingerprint, bin, last4, brand, exp_month, exp_year, holder,
                      created_at)
    select $1, true, n, '', '', '424242', lpad((n % 10000)::text, 4, '0'), 'visa', 12, 2040, 'Ada', at from rows
), payments as (
    insert into payment (merchant_id, live, id, merchant_order_id, state, amount, currency, net, reserve, fees,
                         attempt_id, customer_id, card_id, sign_version, key_id, pingback_url, created_at, paid_at,
                         captured_at, settled_at, funds_due_at, funds_look_at, rare_state, ship_by, subscription_id,
                         period_number)
    select $1, true, n, 'order-' || n, state, 10, 'USD', 8.9, 0.5, 0.6, n, n, n, 'v2',
           (select max(id) from merchant_key where merchant_id = $1), 'https://shop.example/pingback', at,
           case when state <> 'declined' then at end, case when state = 'captured' then at end,
           case when state = 'captured' and n > 30000 then at + interval '7 days' end,
           funds_due_at, funds_due_at, rare_state(state),
           case when state = 'authorized' then at + interval '7 days' end,
           case when n % 10 = 0 and n % 20 <> 0 then n end, case when n % 10 = 0 and n % 20 <> 0 then 1 end
      from rows
     cross join lateral (
         select case when state = 'captured' and n < 30000 then at + interval '7 days'
                     when state = 'captured' and n < 780000 then at + interval '180 days' end as funds_due_at) money
), attempts as (
    insert into payment_attempt (merchant_id, live, id, payment_id, state, idempotency_key, acquirer, capture, amount,
                                 currency, card_id, client_address, not_after, decline_reason, created_at, finished_at)
    select $1, true, n, n, case when state = 'declined' then 'declined' else 'approved' end,
           $1 || '-' || n, 'simulator',
           true, 10, 'USD', n, '', at, case when state = 'declined' then 'insufficient_funds' else '' end, at, at
      from rows
), pingbacks as (
    insert into pingback (merchant_id, live, id, event, payment_id, url, sign_version, key_id, format, payload, state,
                          attempts, due_at, created_at)
    select $1, true, n,
           case when n % 50 = 3 then 'refund' when n % 5000 = 9 then 'chargeback' else 'payment' end, n,
           'https://shop.example/pingback', 'v2',
           (select max(id) from merchant_key where merchant_id = $1), 'json', '{"event": "payment"}',
           case when n % 100 = 3 then 'exhausted' else 'acknowledged' end, 1, at, at
      from rows where state <> 'declined'
), postings as (
    insert into ledger_posting (merchant_id, live, posting_id, kind, payment_id, currency, acquirer, pending, reserve,
                                fees, at)
    select $1, true, n, 'capture', n, 'USD', 10, -8.9, -0.5, -0.6, at
      from rows
     where state = 'captured'
), subscriptions as (
    insert into subscription (merchant_id, live, id, state, package_version_id, init_payment_id, init_merchant_order_id,
                              customer_id, card_id, acquirer, network_reference, terms_agreed, portal_seed,
                              sign_version, key_id, time_zone, anchor, next_period, date_next, date_start, created_at)
    select $1, true, n, case when n % 100 = 30 then 'Cancelled' else 'Active' end, $4, n, 'order-' || n, n, n,
           'simulator', '', 'yes', 'bench-' || n, 'v2', (select max(id) from merchant_key where merchant_id = $1),
           'UTC',
           at, 2, case when n % 100 <> 30 then now() + interval '1 day' end, at, at
      from rows where n % 10 = 0 and n % 20 <> 0
), refused as (
    insert into rejected_form (merchant_id, live, at, status, reason, fields)
    select $1, true, at, 400, 'amount is missing', '{}' from rows where n % 100 = 0
)
insert into audit_entry (merchant_id, at, operator, client_address, action, subject, details)
select $1, at, false, '192.0.2.1', 'test_mode_changed', '', '{}' from rows where n % 10 = 0
"""


async def fill(database: Database, merchant_id: int, rows: int) -> None:
    """So many payments of a merchant, the newest now, one every twenty seconds."""
    version = await _package(database, merchant_id)
    for first in range(1, rows + 1, AT_ONCE):
        last = min(first + AT_ONCE - 1, rows)
        await database.execute(FILL, merchant_id, first, last, version)
        print(f"\r  filled {last:>9} of {rows} [{'#' * (30 * last // rows):<30}]", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    await database.execute("analyze")


async def work_meanwhile(database: Database) -> None:
    """What workers do from time to time: the sums that pages read are kept."""
    for _ in range(2):
        await close_ledger(database)
    await fold_reserves(database, now=utc_now())
    await fold_movements(database)
    while await sum_sales(database):
        pass
    await database.execute("analyze")


async def _package(database: Database, merchant_id: int) -> int:
    """Terms that all subscriptions have."""
    terms = Terms("Coffee club", "club", "USD", Decimal("10.00"), Period(1, "month"), None, 0)
    return int(await agree_package(database, Shop(merchant_id, live=True), terms, now=utc_now()))


async def sign_up(web: httpx.AsyncClient) -> int:
    """Open an account; the id of its merchant."""
    page = (await web.get("/account/signup")).text
    token = re.search(r'name="csrf" value="([^"]+)"', page)
    assert token is not None
    fields = {"shop_name": "Bench", "name": "Ada", "email": "ada@shop.example", "password": secrets.token_urlsafe(20)}
    answer = await web.post("/account/signup", data={"csrf": token[1], **fields})
    assert answer.status_code == 303, answer.text
    found = re.search(r'href="/account/(\d+)"', (await web.get("/account/security")).text)
    assert found is not None
    return int(found[1])


async def time_list(web: httpx.AsyncClient, path: str) -> dict[str, float | int]:
    """How long a list takes, in milliseconds; the status says whether there is such a list."""
    await web.get(path)
    taken = []
    status = 0
    for _ in range(ROUNDS):
        began = time.monotonic()
        status = (await web.get(path)).status_code
        taken.append((time.monotonic() - began) * 1000)
    taken.sort()
    return {"status": status, "p50_ms": taken[ROUNDS // 2], "p95_ms": taken[int(ROUNDS * 0.95) - 1]}


async def measure(rows: int) -> list[dict[str, Any]]:
    """Fill a fresh database and ask for every list."""
    with tempfile.TemporaryDirectory(prefix="paydesk-bench-") as folder:
        server = EmbeddedServer(Path(folder))
        await server.start()
        try:
            async with connected(server.url) as database:
                await migrate(database)
                settings = load_settings(
                    base_url=ADDRESS, data_dir=Path(folder) / "data", database_url=server.url,
                    vault_keys=generate_key_setting(), secret_key=generate_secret(),
                )  # fmt: skip
                return await _ask(settings, database, rows)
        finally:
            await server.stop()


async def _ask(settings: Settings, database: Database, rows: int) -> list[dict[str, Any]]:
    app = create_app(settings)
    async with app.router.lifespan_context(app) as state:

        async def with_state(scope: object, receive: object, send: object) -> None:
            await app({**scope, "state": dict(state)}, receive, send)  # type: ignore[dict-item, arg-type]

        transport = httpx.ASGITransport(app=with_state)
        async with httpx.AsyncClient(transport=transport, base_url=ADDRESS, timeout=120) as web:
            merchant_id = await sign_up(web)
            await database.execute(
                "update merchant set went_live_at = now(), test_mode = false where id = $1", merchant_id
            )
            await database.execute("update account_session set live = true, merchant_id = $1", merchant_id)
            await fill(database, merchant_id, rows)
            await work_meanwhile(database)
            day = str(await database.fetchval("select (now() - interval '3 hours')::date"))
            return [
                {"list": name, **await time_list(web, f"/account/{merchant_id}/{path.format(day=day)}")}
                for name, path in LISTS.items()
            ]


def show(rows: int, results: list[dict[str, Any]]) -> None:
    """Print one table."""
    print(f"A merchant with {rows} payments; aim: p95 of at most {AIM_MS} ms")
    print(f"  {'list':<32}{'status':>8}{'p50 ms':>10}{'p95 ms':>10}")
    for one in results:
        late = "  over the aim" if float(str(one["p95_ms"])) > AIM_MS else ""
        print(f"  {one['list']:<32}{one['status']:>8}{one['p50_ms']:>10.1f}{one['p95_ms']:>10.1f}{late}")


def main() -> None:
    """Read the arguments, measure, print, and keep the result as JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="example: bench/account.py --rows 100000",
    )
    parser.add_argument("--rows", type=int, default=1_000_000, help="payments of the merchant (default 1000000)")
    arguments = smoke.read(parser, rows=2000)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    results = uvloop.run(measure(arguments.rows))
    show(arguments.rows, results)
    if missing := [str(one["list"]) for one in results if one["status"] != HTTPStatus.OK]:
        raise SystemExit(f"no such lists: {', '.join(missing)}")
    ratios = {f"p95 of {one['list']} of the most that is aimed at": one["p95_ms"] / AIM_MS for one in results}
    kept = {"rows": arguments.rows, "aim_ms": AIM_MS, "lists": results}
    smoke.keep("account", kept, ratios, smoke=arguments.smoke)


if __name__ == "__main__":
    main()
