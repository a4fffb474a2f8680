"""What a shop has sold in three days, written in a few statements:
payments whose books agree in every point.
"""

from __future__ import annotations

import asyncpg

ROWS_EACH = 7
"""Rows of a payment: itself, attempt, three entries of the ledger, pingback, attempt to send it."""
_AT_ONCE = 50_000

_BUYER = """
with buyer as (
    insert into customer (merchant_id, live, email, first_name, last_name, username, country, created_at)
    values ($1, true, 'ada@example.com', 'Ada', 'Lovelace', '', 'GB', now() - interval '4 days')
 returning id
), card as (
    insert into card (merchant_id, live, vault_key_id, bin, last4, brand, exp_month, exp_year, holder, created_at)
    values ($1, true, '', '424242', '4242', 'visa', 12, 2039, 'Ada', now() - interval '4 days')
 returning id
)
select buyer.id as customer_id, card.id as card_id, (select max(id) from merchant_key where merchant_id = $1) as key_id
  from buyer cross join card
"""

_SELL = """
with sold as materialized (
    select n, 'past-' || n as name, n % 90 + 10.5 as amount, round((n % 90 + 10.5) * 0.05, 2) as fees,
           now() - interval '3 days' + n * (interval '3 days' / $7) as at, nextval('payment_id_seq') as payment_id,
           nextval('payment_attempt_id_seq') as attempt_id, nextval('pingback_id_seq') as pingback_id,
           nextval('ledger_posting_id_seq') as posting_id
      from generate_series($5::bigint, $6::bigint) n
), paid as (
    insert into payment (merchant_id, live, id, merchant_order_id, state, amount, currency, net, fees, attempt_id,
                         customer_id, card_id, sign_version, key_id, created_at, paid_at, captured_at, funds_due_at)
    select $1, true, payment_id, name, 'captured', amount, 'USD', amount - fees, fees, attempt_id, $2, $3, 'v2', $4,
           at, at, at, at + interval '7 days'
      from sold
), tried as (
    insert into payment_attempt (merchant_id, live, id, payment_id, state, idempotency_key, acquirer, capture, amount,
                                 currency, card_id, client_address, not_after, created_at, finished_at)
    select $1, true, attempt_id, payment_id, 'approved', name, 'stripe', true, amount, 'USD', $3, '192.0.2.1', at, at,
           at
      from sold
), posted as (
    insert into ledger_entry (merchant_id, live, posting_id, kind, payment_id, account, currency, amount, at)
    select $1, true, posting_id, 'capture', payment_id, e.account, 'USD', e.amount, at
      from sold
     cross join lateral (values ('acquirer', sold.amount), ('pending', fees - sold.amount), ('fees', -fees))
        as e (account, amount)
), told as (
    insert into pingback (merchant_id, live, id, event, payment_id, url, sign_version, key_id, format, payload, state,
                          attempts, due_at, created_at, finished_at)
    select $1, true, pingback_id, 'payment', payment_id, 'https://shop.example/pingback', 'v2', $4, 'json',
           jsonb_build_object('event', 'payment', 'payment_order', jsonb_build_object(
               'id', payment_id, 'merchant_order_id', name, 'paid_amount', amount, 'paid_currency', 'USD',
               'merchant_net_revenue', amount - fees, 'merchant_rolling_reserve', 0, 'fees', fees)),
           'acknowledged', 1, at, at, at
      from sold
)
insert into pingback_attempt (merchant_id, live, pingback_id, number, at, url, request_headers, request_body, status,
                              response_body, duration_ms)
select $1, true, pingback_id, 1, at, 'https://shop.example/pingback', '{}', '', 200, 'ok', 20 from sold
"""


async def write_history(connection: asyncpg.Connection, merchant_id: int, rows: int) -> None:
    """Give a merchant so many rows of live payments; the connection is a superuser's.

    None was made at the simulated bank, which knows nothing of them.
    """
    buyer = await connection.fetchrow(_BUYER, merchant_id)
    payments = rows // ROWS_EACH
    # Foreign keys and triggers would ask row by row what `paydesk check` asks at the end.
    await connection.execute("set session_replication_role = replica")
    for first in range(1, payments + 1, _AT_ONCE):
        last = min(first + _AT_ONCE - 1, payments)
        await connection.execute(_SELL, merchant_id, *buyer.values(), first, last, payments, timeout=600)
    await connection.execute("reset session_replication_role")
    await connection.execute("analyze", timeout=600)
