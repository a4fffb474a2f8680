from __future__ import annotations

import asyncio
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from tests import set_back
from tests.web.api.conftest import subscribe

from paydesk.core.clock import utc_now
from paydesk.core.errors import Busy, Conflict, Malformed
from paydesk.database.pool import Database
from paydesk.domain.merchants.idempotent_calls import ApiCall, KeptAnswer, begin_call, forget_calls
from paydesk.domain.merchants.keys import pairs_of
from paydesk.domain.merchants.merchant import Merchant
from paydesk.domain.merchants.shop import Shop
from paydesk.web.api import test_clock

KEY = "Idempotency-Key"
DAY = {"advance": "1d"}


async def advance(server: Any, key: str | None = "k-1", body: Any = DAY) -> Any:
    headers = {KEY: key.encode("latin-1")} if key is not None else {}
    return await server.call("POST", "/sandbox/api/v1/test_clock", json=body, headers=headers)


async def ahead(database: Database, merchant: Merchant) -> timedelta:
    gone: timedelta = await database.fetchval("select test_clock from merchant where id = $1", merchant.id)
    return gone


async def test_the_same_call_again_gets_the_first_answer_and_does_nothing(
    server: Any, database: Database, merchant: Merchant
) -> None:
    first, second = await advance(server), await advance(server)
    assert (first.status_code, second.status_code) == (200, 200)
    assert first.content == second.content
    assert "idempotent-replayed" not in first.headers
    assert second.headers["idempotent-replayed"] == "true"
    assert second.headers["content-type"] == first.headers["content-type"]
    assert await ahead(database, merchant) < timedelta(days=1, hours=1)


async def test_without_a_key_every_call_counts(server: Any, database: Database, merchant: Merchant) -> None:
    for _ in range(2):
        assert (await advance(server, None)).status_code == 200
    assert await ahead(database, merchant) > timedelta(days=1, hours=1)


async def test_the_same_call_many_times_at_once_is_made_once(
    server: Any, database: Database, merchant: Merchant
) -> None:
    answers = await asyncio.gather(*(advance(server) for _ in range(8)))
    assert {one.status_code for one in answers} == {200}
    assert len({one.content for one in answers}) == 1
    assert await ahead(database, merchant) < timedelta(days=1, hours=1)


@pytest.mark.parametrize("body", [{"advance": "2d"}, {"advance": "1d", "more": 1}, {}])
async def test_another_body_under_a_known_key_is_refused(server: Any, body: Any) -> None:
    assert (await advance(server)).status_code == 200
    refused = await advance(server, body=body)
    assert refused.status_code == 409
    assert set(refused.json()) == {"success", "type", "message", "code"}
    assert "another request" in refused.json()["message"]


async def test_another_path_under_a_known_key_is_refused(server: Any, customers: Any) -> None:
    kept, ended = await subscribe(customers, "club-1"), await subscribe(customers, "club-2")
    headers = {KEY: "k-1"}
    assert (await server.call("POST", f"/api/subscription/{ended.id}/cancel", headers=headers)).status_code == 200
    assert (await server.call("POST", f"/api/subscription/{kept.id}/cancel", headers=headers)).status_code == 409
    assert (await server.get(f"/api/v1/subscriptions/{kept.id}"))["data"]["status"] == "Active"


async def test_a_refusal_is_answered_again_too(server: Any) -> None:
    first, second = await advance(server, body={}), await advance(server, body={})
    assert (first.status_code, second.status_code) == (400, 400)
    assert first.content == second.content
    assert second.headers["idempotent-replayed"] == "true"


@pytest.mark.parametrize("key", ["", " ", "a b", "x" * 256, "caf\u00e9", "tab\tbed"])
async def test_a_key_that_is_none_is_refused(server: Any, key: str) -> None:
    refused = await advance(server, key)
    assert refused.status_code == 400
    assert "Idempotency-Key" in refused.json()["message"]


async def test_two_keys_are_refused(web: Any, merchant: Merchant) -> None:
    headers = [("X-ApiKey", merchant.private_key), (KEY, "a"), (KEY, "b")]
    refused = await web.post("/sandbox/api/v1/test_clock", json=DAY, headers=headers)
    assert (refused.status_code, "more than once" in refused.json()["message"]) == (400, True)


async def test_a_wrong_private_key_is_not_remembered(web: Any, server: Any) -> None:
    refused = await web.post("/sandbox/api/v1/test_clock", json=DAY, headers={"X-ApiKey": "wrong", KEY: "k-1"})
    assert refused.status_code == 401
    assert (await advance(server)).status_code == 200


async def test_two_merchants_may_use_the_same_key(
    server: Any, server_of: Any, other_shop: Shop, desk: Any, database: Database
) -> None:
    ((_, private), *_) = await pairs_of(database, desk.vault, other_shop.merchant_id)
    assert (await advance(server)).status_code == 200
    other = await advance(server_of(private), body={"advance": "2d"})
    assert (other.status_code, other.headers.get("idempotent-replayed")) == (200, None)


async def test_a_failure_of_ours_is_not_kept(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as broken:

        async def fail(*_: Any, **__: Any) -> None:
            raise OSError("the database is away")

        broken.setattr(test_clock, "advance", fail)
        assert (await advance(server)).status_code == 503
    again = await advance(server)
    assert (again.status_code, "idempotent-replayed" in again.headers) == (200, False)


@pytest.mark.parametrize("error", [Busy, Conflict, partial(Malformed, passing=True)])
async def test_a_refusal_that_speaks_of_the_moment_is_not_kept(
    server: Any, monkeypatch: pytest.MonkeyPatch, error: Any
) -> None:
    with monkeypatch.context() as busy:

        async def refuse(*_: Any, **__: Any) -> None:
            raise error("somebody else has it in hand; ask anew in a moment")

        busy.setattr(test_clock, "advance", refuse)
        assert (await advance(server)).status_code in (400, 409)
    again = await advance(server)
    assert (again.status_code, "idempotent-replayed" in again.headers) == (200, False)


class TestInTheDatabase:
    async def test_whoever_asks_while_the_first_runs_is_told_so(self, database: Database, shop: Shop) -> None:
        first = await begin_call(database, shop, "k", b"1", real_now=utc_now())
        assert isinstance(first, ApiCall)
        with pytest.raises(Conflict, match="still being made"):
            await begin_call(database, shop, "k", b"1", real_now=utc_now(), patience=0)
        with pytest.raises(Conflict, match="another request"):
            await begin_call(database, shop, "k", b"2", real_now=utc_now(), patience=0)
        await first.keep(KeptAnswer(200, "{}"))
        assert await begin_call(database, shop, "k", b"1", real_now=utc_now(), patience=0) == KeptAnswer(200, "{}")

    async def test_the_first_answer_stands(self, database: Database, shop: Shop) -> None:
        first = await begin_call(database, shop, "k", b"1", real_now=utc_now())
        assert isinstance(first, ApiCall)
        await first.keep(KeptAnswer(200, "first"))
        await first.keep(KeptAnswer(409, "second"))
        await first.give_up()
        assert await begin_call(database, shop, "k", b"1", real_now=utc_now()) == KeptAnswer(200, "first")

    async def test_a_call_whose_process_died_may_be_made_again(self, database: Database, shop: Shop) -> None:
        await begin_call(database, shop, "k", b"1", real_now=utc_now())
        await set_back.times(
            database, "api_call", {"merchant_id": shop.merchant_id}, leased_until=utc_now() - timedelta(seconds=1)
        )
        with pytest.raises(Conflict, match="another request"):
            await begin_call(database, shop, "k", b"2", real_now=utc_now(), patience=0)
        both = await asyncio.gather(
            *(begin_call(database, shop, "k", b"1", real_now=utc_now(), patience=0) for _ in range(2)),
            return_exceptions=True,
        )
        assert sorted(type(one).__name__ for one in both) == ["ApiCall", "Conflict"]

    async def test_a_call_that_takes_long_keeps_its_lease(
        self, database: Database, shop: Shop, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("paydesk.domain.merchants.idempotent_calls.RENEWAL", timedelta(milliseconds=5))
        first = await begin_call(database, shop, "k", b"1", real_now=utc_now())
        assert isinstance(first, ApiCall)
        mine = "select leased_until from api_call where merchant_id = $1"
        began = await database.fetchval(mine, shop.merchant_id)
        async with first.held():
            for _ in range(1000):
                await asyncio.sleep(0.005)
                if await database.fetchval(mine, shop.merchant_id) > began:
                    return
        pytest.fail("the lease was not renewed")

    async def test_answers_are_kept_for_seven_days(self, database: Database, shop: Shop) -> None:
        long_ago = utc_now() - timedelta(days=7)
        for key, at in (("old", long_ago - timedelta(minutes=1)), ("young", long_ago + timedelta(minutes=1))):
            begun = await begin_call(database, shop, key, b"1", real_now=at)
            assert isinstance(begun, ApiCall)
            await begun.keep(KeptAnswer(200, "{}"))
        await forget_calls(database, before=long_ago)
        rows = await database.fetch("select request_key from api_call where merchant_id = $1", shop.merchant_id)
        assert [row["request_key"] for row in rows] == ["young"]

    async def test_an_answer_that_is_too_old_counts_no_more_even_before_it_is_gone(
        self, database: Database, shop: Shop
    ) -> None:
        begun = await begin_call(database, shop, "k", b"1", real_now=utc_now() - timedelta(days=7, minutes=1))
        assert isinstance(begun, ApiCall)
        await begun.keep(KeptAnswer(200, "{}"))
        assert isinstance(await begin_call(database, shop, "k", b"2", real_now=utc_now()), ApiCall)
