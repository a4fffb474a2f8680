from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import breaking, set_back
from tests.web.api.conftest import subscribe

from paydesk.adapters.vault import Vault
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.merchants.merchant import Merchant, change_merchant, create_merchant

CALLS = [
    ("GET", "/api/v1/payments"),
    ("GET", "/api/v1/payments/{payment}"),
    ("GET", "/api/v1/subscriptions"),
    ("GET", "/api/v1/subscriptions/{subscription}"),
    ("GET", "/api/v1/pingbacks"),
    ("GET", "/api/v1/pingbacks/{pingback}"),
    ("POST", "/api/v1/pingbacks/{pingback}/resend"),
    ("POST", "/api/subscription/{subscription}/cancel"),
]
LISTS = [path for method, path in CALLS if "{" not in path]
SINGLE = [(method, path) for method, path in CALLS if "{" in path]

Ids = dict[str, int]


def is_refusal(response: httpx.Response, status: int) -> bool:
    """Whether an answer is an error of exactly the fixed shape (interface.md §8.2)."""
    body = response.json()
    assert response.status_code == status, response.text
    assert set(body) == {"success", "type", "message", "code"}
    assert (body["success"], body["type"], body["code"]) == (False, "error", status)
    return bool(body["message"])


@pytest.fixture
async def ids(customers: Any, database: Database, shop: Any) -> Ids:
    """One of each, of the merchant's test side; its pingback has an address to go to."""
    subscription = await subscribe(customers)
    await breaking.say(
        database, "pingback", {"merchant_id": shop.merchant_id}, state="due", url="https://shop.example/pingback"
    )
    pingback = await database.fetchval("select max(id) from pingback where merchant_id = $1", shop.merchant_id)
    return {"payment": subscription.init_payment_id, "subscription": subscription.id, "pingback": pingback}


@pytest.fixture
async def other(database: Database, vault: Vault) -> Merchant:
    return await create_merchant(database, vault, name="Other", email="other@shop.example", now=utc_now())


@pytest.mark.parametrize(("method", "path"), CALLS)
class TestWhoMayCall:
    async def test_the_merchant_may(self, server: Any, ids: Ids, method: str, path: str) -> None:
        for base in ("", "/sandbox"):
            answered = await server.call(method, base + path.format(**ids))
            assert answered.status_code == 200, answered.text
            assert answered.json()["success"] is True
            assert answered.headers["cache-control"] == "no-store"

    @pytest.mark.parametrize("key", ["", "wrong", "\xe9" * 40, "x" * 4000])
    async def test_a_wrong_key_is_refused(
        self, web: httpx.AsyncClient, ids: Ids, method: str, path: str, key: str
    ) -> None:
        headers = {"X-ApiKey": key.encode("latin-1")} if key else None
        for base in ("", "/sandbox"):
            answered = await web.request(method, base + path.format(**ids), headers=headers)  # type: ignore[arg-type]
            assert is_refusal(answered, 401)

    async def test_the_public_key_is_no_key(
        self, server_of: Callable[[str], Any], merchant: Merchant, ids: Ids, method: str, path: str
    ) -> None:
        assert is_refusal(await server_of(merchant.public_key).call(method, path.format(**ids)), 401)

    async def test_a_key_that_has_run_out_is_refused(
        self, server: Any, database: Database, ids: Ids, merchant: Merchant, method: str, path: str
    ) -> None:
        set_end = "update merchant_key set valid_until = $2 where merchant_id = $1"
        await database.execute(set_end, merchant.id, utc_now() + timedelta(minutes=5))
        assert (await server.call(method, path.format(**ids))).status_code == 200
        await database.execute(set_end, merchant.id, utc_now() - timedelta(seconds=1))
        assert is_refusal(await server.call(method, path.format(**ids)), 401)

    async def test_another_merchant_sees_nothing(
        self, server_of: Callable[[str], Any], other: Merchant, ids: Ids, method: str, path: str
    ) -> None:
        answered = await server_of(other.private_key).call(method, path.format(**ids))
        if "{" in path:
            assert is_refusal(answered, 404)
        else:
            assert (answered.json()["data"], answered.json()["next_cursor"]) == ([], None)

    async def test_test_data_is_not_seen_from_the_live_side(
        self, server: Any, database: Database, ids: Ids, merchant: Merchant, method: str, path: str
    ) -> None:
        await set_back.went_live(database, merchant.id)
        await change_merchant(database, merchant.id, test_pingback_url="https://t.example/p")
        answered = await server.call(method, path.format(**ids))
        assert answered.status_code == (404 if "{" in path else 200)
        assert answered.json().get("data", []) == []
        assert (await server.call(method, "/sandbox" + path.format(**ids))).status_code == 200
        await change_merchant(database, merchant.id, test_mode=True)
        assert (await server.call(method, path.format(**ids))).status_code == 200


async def test_a_merchant_that_is_not_live_calls_its_test_side(
    server: Any, database: Database, merchant: Merchant, ids: Ids
) -> None:
    await change_merchant(database, merchant.id, test_mode=False)
    assert (await server.get(f"/api/v1/payments/{ids['payment']}"))["data"]["live"] is False


@pytest.mark.parametrize("odd", ["0", "-1", "abc", "9" * 16, "9" * 400, "1.5", "%00", "１", "1_0", "+1", "%ff"])
@pytest.mark.parametrize(("method", "path"), SINGLE)
async def test_an_id_that_nothing_has_is_not_found(server: Any, method: str, path: str, odd: str) -> None:
    assert is_refusal(await server.call(method, re.sub(r"\{\w+\}", odd, path)), 404)


@pytest.mark.parametrize("path", ["/api/nothing", "/api/v1/", "/api/v1/payments/", "/api/v1/payments/1/2", "/api/"])
async def test_an_unknown_path_is_refused_in_the_fixed_shape(server: Any, path: str) -> None:
    for base in ("", "/sandbox"):
        assert is_refusal(await server.call("GET", base + path, headers={"Accept": "text/html"}), 404)


@pytest.mark.parametrize(("method", "path"), CALLS)
async def test_a_wrong_method_is_refused_in_the_fixed_shape(server: Any, method: str, path: str) -> None:
    answered = await server.call("DELETE", re.sub(r"\{\w+\}", "1", path))
    assert is_refusal(answered, 405)
    assert answered.headers["allow"] == method


@pytest.mark.parametrize("path", ["/api/v1/pingbacks/{pingback}/resend", "/api/subscription/{subscription}/cancel"])
class TestBodies:
    @pytest.mark.parametrize("type_", ["application/json", "application/x-www-form-urlencoded", "text/plain", ""])
    @pytest.mark.parametrize("body", [b"", b"[]", b"{}", b" {}\n"])
    async def test_a_body_that_says_nothing_is_fine(
        self, server: Any, ids: Ids, path: str, body: bytes, type_: str
    ) -> None:
        headers = {"Content-Type": type_} if type_ else {}
        answered = await server.call("POST", path.format(**ids), content=body, headers=headers)
        assert answered.status_code == 200, answered.text

    async def test_fields_may_be_json_or_form_encoded(self, server: Any, ids: Ids, path: str) -> None:
        for options in ({"json": {"reason": {"text": ["x"]}}}, {"data": {"reason[text]": "x"}}):
            assert (await server.call("POST", path.format(**ids), **options)).status_code == 200

    @pytest.mark.parametrize(
        "body",
        [
            *(b"{", b'{"a":}', b"7", b'[{"a": 1}]', b"\xff", b"[" * 9000, b'{"a": ' * 9000),
            *(b'{"a": "\xff"}', b'{"a\xed\xa0\x80": 1}', b'{"a": 1, "a": 2}', b'{"a": {"b": 1, "\\u0062": 1}}'),
        ],
    )
    async def test_malformed_json_is_refused(self, server: Any, ids: Ids, path: str, body: bytes) -> None:
        headers = {"Content-Type": "application/json"}
        assert is_refusal(await server.call("POST", path.format(**ids), content=body, headers=headers), 400)

    async def test_a_malformed_form_is_refused(self, server: Any, ids: Ids, path: str) -> None:
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        answered = await server.call("POST", path.format(**ids), content=b"a=1&a=2", headers=headers)
        assert is_refusal(answered, 400)

    async def test_a_body_over_the_limit_is_refused(self, server: Any, ids: Ids, path: str) -> None:
        answered = await server.call("POST", path.format(**ids), content=b" " * (64 * 1024 + 1))
        assert is_refusal(answered, 413)


@pytest.mark.parametrize("path", LISTS)
class TestParameters:
    @pytest.mark.parametrize(
        ("query", "name"),
        [
            ("limit=0", "limit"),
            ("limit=101", "limit"),
            ("limit=x", "limit"),
            ("limit=", "limit"),
            ("limit=1&limit=2", "limit"),
            ("cursor=", "cursor"),
            ("cursor=abc", "cursor"),
            ("cursor=" + "A" * 32, "cursor"),
            ("cursor=" + "_" * 32, "cursor"),
            ("status=paid", "status"),
            ("from=yesterday", "from"),
            ("to=2026-13-01", "to"),
            ("to=99999999999999999999", "to"),
            ("from=0001-01-01T00:00:00%2B14:00", "from"),
            ("email=", "email"),
            ("email=" + "a" * 256, "email"),
            ("email=%00", "email"),
            ("merchant_order_id=a%00b", "merchant_order_id"),
            ("page=2", "page"),
            ("since=2026-01-01", "since"),
        ],
    )
    async def test_what_is_malformed_or_unknown_is_refused_by_its_name(
        self, server: Any, path: str, query: str, name: str
    ) -> None:
        answered = await server.call("GET", f"{path}?{query}")
        assert is_refusal(answered, 400)
        assert name in answered.json()["message"]

    async def test_a_key_is_asked_for_before_anything_is_explained(self, web: httpx.AsyncClient, path: str) -> None:
        assert is_refusal(await web.get(f"{path}?page=2"), 401)

    async def test_a_cursor_serves_no_other_filter(self, server: Any, customers: Any, path: str) -> None:
        for _ in range(2):
            await subscribe(customers)
        cursor = (await server.get(path, limit=1))["next_cursor"]
        assert (await server.get(path, limit=9, cursor=cursor))["next_cursor"] is None
        answered = await server.call("GET", path, params={"cursor": cursor, "email": "ada@example.com"})
        assert is_refusal(answered, 400)
        others = [one for one in LISTS if one != path]
        for one in others:
            assert is_refusal(await server.call("GET", one, params={"cursor": cursor}), 400)

    async def test_no_parameter_ever_breaks_it(self, server: Any, path: str) -> None:
        names = ["limit", "cursor", "from", "to", "status", "email", "merchant_order_id", "subscription_id", "x\x00"]
        values = st.one_of(
            st.text(max_size=40),
            st.integers().map(str),
            st.datetimes().map(lambda at: at.isoformat()),
            st.sampled_from(["successful", "Active", "due", "1", "a:2", "-0", "1e9", "٣", "2026-W01-1", "24:00"]),
        )
        query = st.lists(st.tuples(st.sampled_from(names), values), max_size=5)
        seen: list[list[tuple[str, str]]] = []
        given(query)(lambda pairs: seen.append(pairs))()
        for pairs in seen:
            answered = await server.call("GET", path, params=httpx.QueryParams(urlencode(pairs)))
            assert answered.status_code in (200, 400, 429), (pairs, answered.text)


async def test_too_many_calls_are_refused_for_a_while(open_web: Any, server_of: Any, merchant: Merchant) -> None:
    web = await open_web(calls_per_minute=3)
    statuses: set[int] = set()
    for _ in range(8):
        answered = await web.get("/api/v1/payments", headers={"X-ApiKey": merchant.private_key})
        statuses.add(answered.status_code)
        if answered.status_code == 429:
            assert is_refusal(answered, 429)
            assert 1 <= int(answered.headers["retry-after"]) <= 60
    assert statuses == {200, 429}


async def test_guessing_keys_is_limited_too(open_web: Any) -> None:
    web = await open_web(calls_per_minute=3, address="198.51.100.77")
    statuses = {(await web.get("/api/v1/payments", headers={"X-ApiKey": f"guess {n}"})).status_code for n in range(8)}
    assert statuses == {401, 429}


async def test_the_key_is_nowhere_in_an_answer(server: Any, merchant: Merchant, ids: Ids) -> None:
    for method, path in CALLS:
        assert merchant.private_key not in (await server.call(method, path.format(**ids))).text


async def test_while_the_database_is_away_it_says_so(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: object, **__: object) -> Awaitable[None]:
        raise ConnectionRefusedError

    monkeypatch.setattr("paydesk.web.api.services.identify", away)
    answered = await server.call("GET", "/api/v1/payments")
    assert is_refusal(answered, 503)
    assert answered.headers["retry-after"] == "3"
