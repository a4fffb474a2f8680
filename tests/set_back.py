"""What tests put into tables because nothing in the domain does it:
time that has passed, and what others have left.

Each function is named as what is true after it. Whatever a merchant, a customer or an operator can
do is done by the domain instead (`tests/shopfront.py`, `change_merchant`, …).
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from tests.breaking import no_alarms, say

from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.acquirers.accounts import queries as account_queries
from paydesk.domain.payments.desk import Desk
from paydesk.domain.subscriptions.lifecycle import Subscription


async def clock_runs_ahead(database: Database, merchant_id: int, ahead: timedelta) -> None:
    """A merchant's test clock is there already, without anything that falls due
    on the way having happened.
    """
    await database.execute("update merchant set test_clock = $2 where id = $1", merchant_id, ahead)


async def went_live(
    database: Database, merchant_id: int, *, ago: timedelta = timedelta(), test_mode: bool = False
) -> None:
    """A merchant is live without a business profile that an operator has read;
    in test mode if it went back to it.
    """
    await database.execute(
        "update merchant set went_live_at = now() - $2::interval, test_mode = $3 where id = $1",
        merchant_id,
        ago,
        test_mode,
    )


async def called(database: Database, merchant_id: int, name: str) -> None:
    """A merchant has another name."""
    await database.execute("update merchant set name = $2 where id = $1", merchant_id, name)


async def password_long_ago(database: Database, email: str | None = None) -> None:
    """Somebody, or everybody, has last given their password a day ago."""
    await database.execute(
        "update account_session s set confirmed_at = now() - interval '1 day' from person p"
        " where p.id = s.person_id and ($1::text is null or p.email = $1)",
        email,
    )


async def address_confirmed(database: Database, email: str) -> None:
    """Somebody has followed the link in the mail that asks whether the address is theirs."""
    await say(database, "person", {"email": email}, email_confirmed_at=utc_now())


async def runs_the_deployment(database: Database, email: str) -> None:
    """Somebody with an account is an operator as well."""
    await say(database, "person", {"email": email}, operator=True)


async def stands_alone(database: Database) -> None:
    """A database has never joined other cells."""
    await say(database, "deployment", {}, home_cell=None)


async def written_by_code_before(database: Database, merchant_id: int) -> None:
    """What a merchant was paid so far was written by code whose customers and cards name
    no payment.
    """
    for table, column in (("customer", "payment_id"), ("card", "payment_id"), ("payment", "people_of")):
        await say(database, table, {"merchant_id": merchant_id}, **{column: None})


async def tried_again_by_code_before(database: Database, merchant_id: int, payment_id: int, *, people_of: int) -> None:
    """Such code has tried a payment again, with the customer and the card of another one."""
    await database.execute(
        "update payment p set attempt_id = nextval('payment_attempt_id_seq'), customer_id = o.customer_id,"
        " card_id = o.card_id from payment o"
        " where p.merchant_id = $1 and p.id = $2 and o.merchant_id = $1 and o.id = $3",
        merchant_id,
        payment_id,
        people_of,
    )
    await database.execute(
        "insert into payment_attempt (merchant_id, live, id, payment_id, checkout_id, state, idempotency_key, acquirer,"
        " capture, amount, currency, card_id, client_address, not_after, created_at)"
        " select a.merchant_id, a.live, p.attempt_id, p.id, p.checkout_id, a.state, a.idempotency_key || '-again',"
        " a.acquirer, a.capture, a.amount, a.currency, p.card_id, a.client_address, a.not_after, a.created_at"
        " from payment p join payment_attempt a on a.merchant_id = p.merchant_id and a.payment_id = p.id"
        " where p.merchant_id = $1 and p.id = $2",
        merchant_id,
        payment_id,
    )


async def banks_tell_again(database: Database) -> None:
    """Nothing was read of what banks tell of disputes and of refunds that came back, so that a bank
    whose record is new is read from its start.
    """
    for table in ("dispute_reading", "failed_refund_reading"):
        await database.execute(f"delete from {table}")


async def no_disputes_left(database: Database) -> None:
    """No dispute that another test has left is read, tried or asked for again,
    and no alarm is open.
    """
    for table in ("dispute_reading", "dispute_waiting", "alarm"):
        await database.execute(f"delete from {table}")
    await database.execute("update chargeback set asked_at = 'infinity'")


async def banks_tell_of_refunds_again(database: Database) -> None:
    """Nothing was read of what banks tell of refunds that failed, and none waits."""
    for table in ("failed_refund_reading", "failed_refund_waiting"):
        await database.execute(f"delete from {table}")


async def nothing_to_look_up(database: Database) -> None:
    """A janitor, who asks for all merchants, finds no attempt that another test has left."""
    await database.execute("update payment_attempt set lookup_at = null where lookup_at is not null")


async def no_card_to_look_up(database: Database) -> None:
    """The same of cards that were being replaced."""
    await database.execute("update card_change set lookup_at = null where lookup_at is not null")


async def movements_let_go(database: Database) -> None:
    """The leases of those who took captures, voids and refunds to finish them have run out."""
    await database.execute("update movement set leased_until = null where leased_until is not null")


async def renewal_due(
    database: Database, subscription_id: int, at: datetime | None = None, *, ago: timedelta = timedelta(hours=1)
) -> None:
    """A subscription's next charge is due, at a time or for an hour already."""
    await database.execute(
        "update subscription set date_next = coalesce($2, now() - $3::interval) where id = $1", subscription_id, at, ago
    )


async def no_renewal_due(database: Database) -> None:
    """No subscription that other tests have left is due."""
    await database.execute("update subscription set date_next = date_next + interval '100 years'")


async def times(database: Any, table: str, of: Mapping[str, Any], **columns: datetime | None) -> None:
    """Time has passed for rows of which these columns are so (`of`; none: all rows)."""
    await say(database, table, of, **columns)


async def history_begins_here(database: Database) -> None:
    """All was there when somebody looked last, nothing is held, and no alarm is open."""
    await database.execute("delete from history")
    await database.execute("insert into history (number, arrived, whole) values (500, server_place(), server_place())")
    await say(database, "deployment", {}, epoch=1)
    await no_alarms(database)


async def acknowledged(database: Database, of: Mapping[str, Any]) -> None:
    """A shop has said `ok` to pingbacks of which these columns are so."""
    await say(database, "pingback", of, state="acknowledged", attempts=1, finished_at=utc_now())


async def given_up(database: Database, of: Mapping[str, Any]) -> None:
    """Pingbacks of which these columns are so were sent for the last time, and nobody said `ok`."""
    await say(database, "pingback", of, state="exhausted", attempts=11, finished_at=utc_now())


async def all_due_now(database: Database, merchant_id: int) -> None:
    """A merchant's pingbacks that its own time has still to come to are due."""
    await times(database, "pingback", {"merchant_id": merchant_id}, due_at=utc_now(), created_at=utc_now())


async def no_pingbacks(database: Database) -> None:
    """No pingback that another test has left is sent, or was."""
    await database.execute("truncate pingback, pingback_attempt")


async def somebody(
    database: Database, email: str = "", *, name: str = "Ada", language: str = "", confirmed: bool = False
) -> int:
    """Somebody has an account, who never logs in; its id."""
    return int(
        await database.fetchval(
            "insert into person (email, name, language, email_confirmed_at, created_at)"
            " values ($1, $2, $3, case when $4 then now() end, now()) returning id",
            email or f"{secrets.token_hex(8)}@shop.example",
            name,
            language,
            confirmed,
        )
    )


async def member(database: Database, merchant_id: int, person_id: int, role: str = "owner") -> None:
    """Somebody is in a merchant's team, whom nobody has invited."""
    await database.execute("insert into membership values ($1, $2, $3, now())", merchant_id, person_id, role)


async def profile(database: Database, merchant_id: int, status: str, **more: Any) -> None:
    """A merchant has a business profile that nobody has filled in; `more` are its columns."""
    columns = {"status": status, "changed_at": utc_now(), **more}
    marks = ", ".join(f"${place}" for place in range(2, len(columns) + 2))
    names = ", ".join(columns)
    await database.execute(
        f"insert into business_profile (merchant_id, {names}) values ($1, {marks})", merchant_id, *columns.values()
    )


async def customer(database: Database, merchant_id: int, email: str) -> None:
    """A merchant's live side knows a customer who has bought nothing."""
    await database.execute(
        "insert into customer (merchant_id, live, email, first_name, last_name, username, country, created_at)"
        " values ($1, true, $2, 'Ada', 'Byron', '', 'GB', now())",
        merchant_id,
        email,
    )


async def nobody_tried(database: Database) -> None:
    """No card was ever tried anywhere, and no limit is set."""
    await database.execute("delete from card_try")
    await database.execute("delete from card_guard")


async def card_replaced(desk: Desk, subscription: Subscription) -> None:
    """A customer has given another card with the same number
    (a new row, as the portal makes one).
    """
    merchant_id = subscription.merchant_id
    card_id = await desk.database.fetchval("select nextval('card_id_seq')")
    sealed = desk.vault.seal(b"4242424242424242", purpose="card number", merchant_id=merchant_id, row_id=card_id)
    await desk.database.execute(
        "with held as (select card_id, live from subscription"
        " where merchant_id = $1 and id = $2 and (date_next is not null or change_id is not null) for update)"
        ", fresh as (insert into card (merchant_id, live, id, number_sealed, vault_key_id, fingerprint,"
        " bin, last4, brand, exp_month, exp_year, holder, created_at)"
        " select $1, live, $3, $4, $5, '', '424242', '4242', 'visa', 12, 2041, 'Ada', now() from held"
        " returning id), old as (update card c set number_sealed = null from held"
        " where c.merchant_id = $1 and c.id = held.card_id)"
        " update subscription set card_id = fresh.id from fresh where merchant_id = $1 and subscription.id = $2",
        merchant_id, subscription.id, card_id, sealed.blob, sealed.key_id,
    )  # fmt: skip


async def session_used_long_ago(database: Database, merchant_id: int, ago: timedelta) -> None:
    """The browsers that a shop's customers are known in last had a fresh token so long ago."""
    await times(database, "shopper_session", {"merchant_id": merchant_id}, rotated_at=utc_now() - ago)


async def no_codes_counted(database: Database) -> None:
    """Nobody has asked for codes lately."""
    await database.execute("delete from shopper_count")


async def accounts_serve(database: Database) -> None:
    """Every process has known for a while which accounts at acquirers there are."""
    await times(database, "acquirer_account", {}, serves_from=utc_now() - timedelta(minutes=1))


async def account(database: Database, vault_key_id: str) -> int:
    """An account at an acquirer whose key rests under a key of the vault, and can't be opened."""
    account_id: int = await account_queries.next_id(database)
    await account_queries.add_account(
        database,
        id=account_id,
        name=f"account-{account_id}",
        kind="stripe",
        live=True,
        for_merchant_id=None,
        currencies=[],
        address="",
        hosts_pages=False,
        page_domain="",
        key_sealed=b"\0",
        vault_key_id=vault_key_id,
        key_print=None,
        webhook_sealed=b"\0",
        webhook_key_id=vault_key_id,
        now=utc_now(),
    )
    return account_id


_MORE = {
    "checkout": {
        "request_digest": "sha256(convert_to(n::text, 'UTF8'))",
        "merchant_order_id": "merchant_order_id || n",
    },
    "customer": {},
    "card": {},
    "payment": {"merchant_order_id": "merchant_order_id || n"},
    "payment_attempt": {"idempotency_key": "idempotency_key || n"},
}
"""By table, what differs from one payment to the next, besides ids."""


async def sold_more_of_the_same(database: Database, times: int) -> None:
    """The database holds its only payment so many times more, under ids that follow each other."""
    for table, differing in _MORE.items():
        named = await database.fetch(
            "select column_name from information_schema.columns where table_name = $1 and is_generated = 'NEVER'", table
        )
        columns = [str(name) for (name,) in named]
        own = {"id", "payment_id", "checkout_id", "attempt_id", "customer_id", "card_id"}
        values = [differing.get(name, f"{name} + n" if name in own else name) for name in columns]
        await database.execute(
            f"insert into {table} ({', '.join(columns)})"
            f" select {', '.join(values)} from {table} cross join generate_series(1, $1) n",
            times,
        )
