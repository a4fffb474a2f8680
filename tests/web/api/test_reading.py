from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import asyncpg
import pytest
from tests import breaking, set_back
from tests.lengths import long
from tests.links import newest_portal
from tests.web.api.conftest import subscribe

from paydesk.adapters.vault import Vault
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.database.table_statistics import TableStatistics
from paydesk.domain.merchants.merchant import Merchant
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments import for_api as payments
from paydesk.domain.pingbacks import for_api as pingbacks
from paydesk.domain.subscriptions import for_api as subscriptions

DECLINED = "4000000000009995"
LISTS = ["/api/v1/payments", "/api/v1/subscriptions", "/api/v1/pingbacks"]


def name_of(row: dict[str, Any]) -> int:
    return int(row["payment_order"]["id"] if "payment_order" in row else row["id"])


async def names(server: Any, path: str, **query: Any) -> list[int]:
    return [name_of(row) async for page in server.pages(path, **query) for row in page]


class TestPages:
    @long
    async def test_all_rows_come_once_while_rows_are_added(self, server: Any, customers: Any) -> None:
        for _ in range(250):
            await subscribe(customers)
        # As a worker does each second: what is known may be of other shops, with a row each.
        await TableStatistics(customers.database).look()
        for path in LISTS:
            known = set(await names(server, path, limit=100))
            assert len(known) >= 250
            read: list[int] = []
            sizes = []
            async for page in server.pages(path, limit=7):
                read += [name_of(row) for row in page]
                sizes.append(len(page))
                if len(sizes) % 12 == 0:
                    await subscribe(customers)
            assert len(read) == len(set(read))
            assert set(read) == known
            assert set(sizes[:-1]) == {7}
            assert read == sorted(read, reverse=True)

    async def test_rows_of_one_moment_are_not_lost_between_pages(
        self, server: Any, customers: Any, database: Database, shop: Shop
    ) -> None:
        for _ in range(5):
            await subscribe(customers)
        for table in ("payment", "subscription", "pingback"):
            await database.execute(
                f"update {table} set created_at = '2026-01-01' where merchant_id = $1", shop.merchant_id
            )
        for path in LISTS:
            assert len(set(await names(server, path, limit=2))) == 5

    async def test_the_last_page_says_so_even_if_it_is_full(self, server: Any, customers: Any) -> None:
        for _ in range(2):
            await subscribe(customers)
        for path in LISTS:
            assert [len(page) async for page in server.pages(path, limit=1)] == [1, 1]
            assert (await server.get(path, limit=2))["next_cursor"] is None


class TestPayments:
    async def test_a_paid_one_is_as_its_pingback_says(
        self, server: Any, customers: Any, database: Database, shop: Shop
    ) -> None:
        await customers.buy("A-1", amount="0.01")
        (told,) = await database.fetch("select payload from pingback where merchant_id = $1", shop.merchant_id)
        answered = await server.call("GET", "/api/v1/payments")
        assert '"merchant_net_revenue":-0.2908' in answered.text
        (payment,) = answered.json()["data"]
        payload = json.loads(told["payload"])
        assert payment["payment_order"] == payload["payment_order"]
        assert payment["user"] == payload["user"]
        assert payment["card"] == {"brand": "visa", "last4": "4242"}
        assert (payment["amount"], payment["currency"], payment["captured"], payment["live"]) == (
            0.01,
            "USD",
            True,
            False,
        )
        assert (payment["subscription_id"], payment["decline_reason"]) == (None, "")
        assert payment["paid_at"] >= payment["created_at"] > 0

    async def test_one_shows_every_attempt(self, server: Any, customers: Any) -> None:
        await customers.buy("A-1", number=DECLINED)
        await customers.buy("A-1")
        (payment,) = (await server.get("/api/v1/payments"))["data"]
        shown = (await server.get(f"/api/v1/payments/{name_of(payment)}"))["data"]
        attempts = shown.pop("attempts")
        assert (shown.pop("deliveries"), shown.pop("delivery_status"), shown.pop("refunds")) == ([], "", [])
        assert shown == payment
        assert [one["status"] for one in attempts] == ["declined", "approved"]
        assert [one["decline_reason"] for one in attempts] == ["insufficient_funds", ""]
        assert [one["card"]["last4"] for one in attempts] == ["9995", "4242"]
        assert all(one["finished_at"] >= one["created_at"] > 0 and one["amount"] == 10 for one in attempts)

    async def test_a_declined_one_took_nothing(self, server: Any, customers: Any) -> None:
        await customers.buy("A-1", number=DECLINED)
        (payment,) = (await server.get("/api/v1/payments", status="declined"))["data"]
        order = payment["payment_order"]
        assert (order["status"], order["paid_amount"], order["fees"]) == ("declined", 0, 0)
        assert (payment["amount"], payment["paid_at"]) == (10, 0)
        assert payment["decline_reason"] == "insufficient_funds"
        assert await names(server, "/api/v1/payments", status="successful") == []

    @pytest.mark.parametrize(
        ("number", "status"),
        [
            ("4242424242424242", "successful"),
            (DECLINED, "declined"),
            ("4000000000003220", "challenged"),
            ("4000000000009987", "processing"),
        ],
    )
    async def test_a_status_finds_its_own(self, server: Any, customers: Any, number: str, status: str) -> None:
        await customers.buy("A-1", number=number)
        for asked in ("successful", "declined", "challenged", "processing", "reversal_refunded"):
            for narrower in ({}, {"email": "ada@example.com"}, {"merchant_order_id": "A-1"}):
                found = (await server.get("/api/v1/payments", status=asked, **narrower))["data"]
                assert [one["payment_order"]["status"] for one in found] == [status] * (asked == status)

    async def test_an_authorized_one_is_successful_and_not_captured(
        self, server: Any, customers: Any, database: Database, shop: Shop
    ) -> None:
        await customers.buy("A-1")
        await breaking.say(database, "payment", {"merchant_id": shop.merchant_id}, state="authorized")
        for query in ({}, {"status": "successful"}):
            (payment,) = (await server.get("/api/v1/payments", **query))["data"]
            assert (payment["payment_order"]["status"], payment["captured"]) == ("successful", False)
            assert payment["payment_order"]["paid_amount"] == 10


class TestFilters:
    async def test_an_order_reference_finds_what_came_of_that_order(self, server: Any, customers: Any) -> None:
        subscription = await subscribe(customers, "club-1")
        await customers.charge(subscription.date_next)
        await customers.buy("club-2")
        await customers.buy("club-1:3")
        assert await names(server, "/api/v1/payments", merchant_order_id="club-1") == [subscription.init_payment_id]
        (renewal,) = (await server.get("/api/v1/payments", merchant_order_id="club-1:2"))["data"]
        assert renewal["subscription_id"] == subscription.id
        (own,) = (await server.get("/api/v1/payments", merchant_order_id="club-1:3"))["data"]
        assert own["subscription_id"] is None
        assert await names(server, "/api/v1/subscriptions", merchant_order_id="club-1") == [subscription.id]
        assert await names(server, "/api/v1/subscriptions", merchant_order_id="club-2") == []
        told = (await server.get("/api/v1/pingbacks", merchant_order_id="club-1:2"))["data"]
        assert [one["payload"]["payment_order"]["merchant_order_id"] for one in told] == ["club-1:2"]
        for path in LISTS:
            assert await names(server, path, merchant_order_id="club") == []
            assert await names(server, path, merchant_order_id="%") == []

    async def test_an_order_reference_finds_the_end_of_its_subscription(self, server: Any, customers: Any) -> None:
        subscription = await subscribe(customers, "club-1")
        await server.call("POST", f"/api/subscription/{subscription.id}/cancel")
        told = (await server.get("/api/v1/pingbacks", merchant_order_id="club-1"))["data"]
        assert [one["event"] for one in told] == ["subscription_cancelled", "payment"]
        assert told[0]["subscription_id"] == subscription.id

    async def test_an_e_mail_address_finds_its_customer_in_any_case(self, server: Any, customers: Any) -> None:
        hers = await subscribe(customers, "club-1", email="Grace@Example.com")
        await customers.charge(hers.date_next)
        await subscribe(customers, "club-2")
        mine = await names(server, "/api/v1/payments", email="grace@example.COM")
        assert len(mine) == 2
        assert hers.init_payment_id in mine
        assert await names(server, "/api/v1/subscriptions", email="GRACE@example.com") == [hers.id]
        assert len(await names(server, "/api/v1/pingbacks", email="grace@example.com")) == 2
        for path in LISTS:
            assert await names(server, path, email="grace") == []

    async def test_filters_narrow_one_another(self, server: Any, customers: Any) -> None:
        await subscribe(customers, "club-1", email="grace@example.com")
        await subscribe(customers, "club-2")
        for path in LISTS:
            both = {"email": "grace@example.com", "merchant_order_id": "club-1"}
            assert len(await names(server, path, **both)) == 1
            assert await names(server, path, **{**both, "merchant_order_id": "club-2"}) == []
            assert await names(server, path, **both, to="2001-01-01") == []
        for path, status in zip(LISTS, ("declined", "Cancelled", "exhausted"), strict=True):
            assert await names(server, path, **both, status=status) == []
            assert await names(server, path, email="grace@example.com", status=status) == []

    async def test_a_subscription_finds_its_payments(self, server: Any, customers: Any) -> None:
        subscription = await subscribe(customers, "club-1")
        await customers.charge(subscription.date_next)
        await customers.buy()
        found = await names(server, "/api/v1/payments", subscription_id=subscription.id)
        assert len(found) == 2
        assert found[1] == subscription.init_payment_id
        for narrower in ({"status": "declined"}, {"email": "x@example.com"}, {"merchant_order_id": "club-9"}):
            assert await names(server, "/api/v1/payments", subscription_id=subscription.id, **narrower) == []

    async def test_dates_include_from_and_exclude_to(
        self, server: Any, customers: Any, database: Database, shop: Shop
    ) -> None:
        await subscribe(customers)
        for table in ("payment", "subscription", "pingback"):
            await database.execute(
                f"update {table} set created_at = '2026-01-31T10:00:00Z' where merchant_id = $1", shop.merchant_id
            )
        inside = [
            "from=2026-01-31&to=2026-02-01",
            "from=2026-01-31T10:00:00Z",
            "from=2026-01-31T11:00:00%2B01:00",
            "from=2026-01-31T11:00:00+01:00",
            "from=1769853600&to=1769853601",
            "from=20260131",
        ]
        outside = [
            "from=2026-02-01",
            "to=2026-01-31",
            "to=2026-01-31T10:00:00Z",
            "from=1769853601",
            "to=1769853600",
            "from=2026-02-01&to=2026-01-01",
        ]
        for path in LISTS:
            for query in inside:
                assert len((await server.get(f"{path}?{query}"))["data"]) == 1, query
            for query in outside:
                assert (await server.get(f"{path}?{query}"))["data"] == [], query


class TestSubscriptions:
    async def test_one_is_as_its_pingback_says_and_has_its_portal(
        self, server: Any, customers: Any, database: Database, shop: Shop, vault: Vault
    ) -> None:
        subscription = await subscribe(customers, "club-1")
        (told,) = await database.fetch("select payload from pingback where merchant_id = $1", shop.merchant_id)
        token = (await newest_portal(database, shop.merchant_id)).token(vault)
        shown = (await server.get(f"/api/v1/subscriptions/{subscription.id}"))["data"]
        assert (await server.get("/api/v1/subscriptions"))["data"] == [shown]
        assert shown.pop("missed_periods") == 0
        assert shown.pop("portal_url") == f"http://pay.test/sandbox/portal/{token}"
        assert shown == json.loads(told["payload"])["subscription"]
        assert shown["init_merchant_order_id"] == "club-1"

    async def test_the_portal_opens(self, server: Any, customers: Any) -> None:
        subscription = await subscribe(customers)
        shown = (await server.get(f"/api/v1/subscriptions/{subscription.id}"))["data"]
        assert (await server.web.get(shown["portal_url"])).status_code == 200

    async def test_a_status_finds_its_own(self, server: Any, customers: Any) -> None:
        kept, ended = await subscribe(customers, "club-1"), await subscribe(customers, "club-2")
        await server.call("POST", f"/api/subscription/{ended.id}/cancel")
        for status, found in (("Active", [kept.id]), ("Cancelled", [ended.id]), ("Trial", []), ("Expired", [])):
            assert await names(server, "/api/v1/subscriptions", status=status) == found


class TestPingbacks:
    @pytest.fixture
    async def pingback(self, customers: Any, database: Database, shop: Shop) -> int:
        """One that failed once; its attempt is as the sender writes it."""
        await customers.buy("A-1")
        found = await database.fetchval("select id from pingback where merchant_id = $1", shop.merchant_id)
        await breaking.say(
            database,
            "pingback",
            {"id": found},
            state="exhausted",
            url="https://shop.example/p",
            attempts=1,
            finished_at=utc_now(),
        )
        await database.execute(
            "insert into pingback_attempt (merchant_id, live, pingback_id, number, at, url, request_headers,"
            " request_body, status, response_body, duration_ms) values ($1, false, $2, 1, now(),"
            " 'https://shop.example/p', $3, '{}', 200, 'NOK', 12)",
            shop.merchant_id,
            found,
            json.dumps({"X-ApiKey": "***"}),
        )
        return int(found)

    async def test_one_shows_what_was_sent_and_answered(self, server: Any, pingback: int) -> None:
        shown = (await server.get(f"/api/v1/pingbacks/{pingback}"))["data"]
        (attempt,) = shown.pop("attempts")
        assert (attempt["request_headers"], attempt["status"]) == ({"X-ApiKey": "***"}, 200)
        assert (attempt["response_body"], attempt["duration_ms"]) == ("NOK", 12)
        assert (shown["event"], shown["status"], shown["attempts_count"]) == ("payment", "exhausted", 1)
        assert shown["payload"]["payment_order"]["id"] == shown["payment_id"]
        assert (await server.get("/api/v1/pingbacks", status="exhausted"))["data"] == [shown]

    async def test_its_payload_is_told_to_the_digit(self, server: Any, pingback: int, database: Database) -> None:
        payload = await database.fetchval("select payload from pingback where id = $1", pingback)
        for path in ("/api/v1/pingbacks", f"/api/v1/pingbacks/{pingback}"):
            assert payload in (await server.call("GET", path)).text

    async def test_resending_makes_it_due_now(self, server: Any, pingback: int) -> None:
        answered = await server.call("POST", f"/api/v1/pingbacks/{pingback}/resend")
        assert answered.json()["data"]["status"] == "due"
        assert await names(server, "/api/v1/pingbacks", status="due") == [pingback]
        assert await names(server, "/api/v1/pingbacks", status="exhausted") == []

    async def test_it_may_be_sent_to_another_url_with_the_same_guards(
        self, server: Any, pingback: int, database: Database, merchant: Merchant
    ) -> None:
        path, there = f"/api/v1/pingbacks/{pingback}/resend", {"url": "https://other.example/pay"}
        for wrong in ({"url": "ftp://x.example"}, {"url": 1}, {"url": "https://me:x@y.example/"}):
            assert (await server.call("POST", path, json=wrong)).status_code == 400
        await breaking.say(database, "pingback", {"id": pingback}, sign_version="v1")
        refused = await server.call("POST", path, json=there)
        assert (refused.status_code, "carries the private key" in refused.json()["message"]) == (403, True)
        await breaking.say(database, "pingback", {"id": pingback}, sign_version="v2")
        await breaking.say(database, "merchant_key", {"merchant_id": merchant.id}, scopes=["move"])
        assert (await server.call("POST", path, json=there)).status_code == 403, "what it says is to be read there"
        await breaking.say(database, "merchant_key", {"merchant_id": merchant.id}, scopes=["move", "read"])
        assert await database.fetchval("select state from pingback where id = $1", pingback) == "exhausted"
        assert (await server.call("POST", path, json=there)).json()["data"]["url"] == there["url"]
        kept = await database.fetchrow("select * from audit_entry where merchant_id = $1", merchant.id)
        assert (kept["action"], kept["client_address"][:5]) == ("pingback_resent", "API, ")
        await set_back.went_live(database, merchant.id, test_mode=True)
        assert (await server.call("POST", path, json={"url": "https://third.example/"})).status_code == 409

    async def test_one_without_an_address_cannot_be_resent(self, server: Any, customers: Any) -> None:
        await customers.buy("A-1", pingback_url=None)
        (waiting,) = await names(server, "/api/v1/pingbacks", status="waiting")
        answered = await server.call("POST", f"/api/v1/pingbacks/{waiting}/resend")
        assert answered.status_code == 409
        assert "test pingback URL" in answered.json()["message"]


STATEMENTS = [
    (module, name)
    for module, names in (
        (payments, ("by_time", "in_states", "of_reference", "of_subscription", "of_email")),
        (subscriptions, ("by_time", "in_state", "of_reference", "of_email")),
        (pingbacks, ("by_time", "in_state", "about")),
    )
    for name in names
]


class TestStatements:
    @pytest.mark.parametrize(("module", "name"), STATEMENTS, ids=lambda one: getattr(one, "__name__", one))
    async def test_an_index_serves_each_list(self, database: Database, module: Any, name: str) -> None:
        statement = getattr(module.queries, name).sql
        async with database.acquire() as connection, connection.transaction():
            # What is forbidden here still happens where there is no other way: then no
            # index serves.
            await connection.execute("set local enable_seqscan = off; set local plan_cache_mode = force_generic_plan")
            if name in ("by_time", "in_state"):
                await connection.execute("set local enable_sort = off; set local enable_bitmapscan = off")
            await connection.execute(f"prepare listed as {statement}")
            given = await connection.fetchval(
                "select cardinality(parameter_types) from pg_prepared_statements where name = 'listed'"
            )
            rows = await connection.fetch(f"explain execute listed({', '.join(['null'] * given)})")
            await connection.execute("deallocate listed")
        plan = "\n".join(row[0] for row in rows)
        assert "Seq Scan" not in plan, plan
        if name in ("by_time", "in_state"):
            assert "Sort" not in plan[plan.index("Limit") :], plan

    @pytest.mark.parametrize("path", LISTS)
    async def test_a_page_asks_the_database_as_often_for_many_rows_as_for_one(
        self, server: Any, customers: Any, path: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for _ in range(12):
            await subscribe(customers)
        asked: list[str] = []
        fetch = asyncpg.Connection._execute

        def counted(self: Any, statement: str, *rest: Any, **options: Any) -> Any:
            if "beaten_at" not in statement:  # the witness of a second server looks when it is due, whoever asks
                asked.append(statement)
            return fetch(self, statement, *rest, **options)

        async def questions(limit: int) -> int:
            asked.clear()
            assert len((await server.get(path, limit=limit))["data"]) == limit
            return len(asked)

        monkeypatch.setattr(asyncpg.Connection, "_execute", counted)
        # The fewest of three: what a connection is asked when it is new is not the page's.
        counts = [min([await questions(limit) for _ in range(3)]) for limit in (1, 12)]
        # One finds the merchant, one the rows.
        assert counts == [2, 2]


async def test_a_test_clock_dates_what_is_cancelled(
    server: Any, customers: Any, database: Database, shop: Shop
) -> None:
    subscription = await subscribe(customers)
    await set_back.clock_runs_ahead(database, shop.merchant_id, timedelta(days=10))
    answered = await server.call("POST", f"/api/subscription/{subscription.id}/cancel")
    ahead = answered.json()["data"]["date_cancelled"] - subscription.created_at.timestamp()
    assert timedelta(days=10).total_seconds() <= ahead + 1 < timedelta(days=11).total_seconds()
