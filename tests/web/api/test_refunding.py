from __future__ import annotations

import asyncio
import re
from datetime import timedelta
from decimal import Decimal
from typing import Any

import asyncpg
import httpx
import pytest
from tests import breaking
from tests.shopfront import ships
from tests.standings import standings

from paydesk.adapters.acquirers.interface import AcquirerRefused, OutcomeUnknown
from paydesk.adapters.acquirers.simulator import Bank
from paydesk.core.clock import utc_now
from paydesk.database import surely
from paydesk.database.pool import Database
from paydesk.domain.merchants.merchant import Merchant, create_merchant
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments import movements, refundable
from paydesk.web.api import test_clock

KEYS = {"success", "type", "message", "code"}
INVALID, NOTHING_LEFT = "Invalid requested amount", "This transaction was already refunded"


@pytest.fixture
async def paid(customers: Any, database: Database, shop: Shop) -> int:
    """The id of a payment of 10 USD for order A-1."""
    await customers.buy("A-1")
    return int(await database.fetchval("select max(id) from payment where merchant_id = $1", shop.merchant_id))


async def refund(server: Any, payment_id: object, **options: Any) -> httpx.Response:
    answered: httpx.Response = await server.call("POST", f"/payment/{payment_id}/refund", **options)
    return answered


def refused(answered: httpx.Response, status: int, message: str = "") -> None:
    body = answered.json()
    assert (answered.status_code, body["code"], body["type"], body["success"]) == (status, status, "error", False)
    assert set(body) == KEYS
    assert message in body["message"]


def kept(bank: Bank) -> Decimal:
    """What the bank says that it took and kept in all."""
    return sum((one.net for one in standings(bank.record.operations()).values()), Decimal(0))


@pytest.mark.parametrize("base", ["", "/sandbox"])
async def test_a_part_is_given_back_with_all_that_clients_read(server: Any, paid: int, base: str, bank: Bank) -> None:
    answered = await server.call("POST", f"{base}/payment/{paid}/refund", json={"amount": "4.00"})
    assert answered.status_code == 200
    body = answered.json()
    assert (set(body), body["success"]) == ({"success", "data"}, True)
    reference = body["data"].pop("reference_id")
    assert isinstance(reference, int)
    assert body["data"] == {
        "id": paid,
        "status": "reversal_refunded_partially",
        "merchant_order_id": "A-1",
        "currency": "USD",
        "refund_amount": 4.0,
        "total_refunded_amount": 4.0,
    }
    assert kept(bank) == 6


JSON, FORM = ({"Content-Type": kind} for kind in ("application/json", "application/x-www-form-urlencoded"))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"content": b""},
        {"headers": JSON},
        {"headers": FORM},
        {"json": {"amount": "10"}},
        {"json": {"amount": 10}},
        {"json": {"amount": 10.0}},
        {"content": b'{"amount": 10.000}', "headers": JSON},
        {"content": b'{"amount": 1e1}', "headers": {"Content-Type": "Application/JSON; charset=utf-8"}},
        {"data": {"amount": "10.00"}},
    ],
)
async def test_all_is_given_back_for_no_body_or_all_of_it(
    server: Any, paid: int, options: dict[str, Any], bank: Bank
) -> None:
    answered = await refund(server, paid, **options)
    assert answered.status_code == 200, answered.text
    assert answered.json()["data"]["status"] == "reversal_refunded"
    assert answered.json()["data"]["total_refunded_amount"] == 10
    assert kept(bank) == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"json": {}}, 'the body "{}" holds no field'),
        ({"json": []}, 'the body "[]" holds no field'),
        ({"content": b"null", "headers": JSON}, 'the body "null" holds no field'),
        ({"content": b" { } ", "headers": JSON}, "holds no field"),
        ({"content": b"\n", "headers": FORM}, "malformed"),
        ({"content": b"&", "headers": FORM}, "holds no field"),
        ({"data": {"amuont": "1"}}, 'there is no field "amuont", only amount'),
        ({"json": {"amuont": 4}}, 'there is no field "amuont", only amount'),
        ({"json": {"amount": "4.00", "reason": "too small"}}, 'there is no field "reason", only amount'),
        ({"data": {"amount": "4.00", "Amount": "4.00"}}, 'there is no field "Amount"'),
        ({"data": {"amount": ["1.00", "4.00"]}}, 'field "amount" is given twice'),
        ({"content": b'{"amount": 1, "amount": 4}', "headers": JSON}, 'field "amount" is given twice'),
        ({"content": b'{"amount": 1, "\\u0061mount": 1}', "headers": JSON}, 'field "amount" is given twice'),
        ({"params": {"amount": "1.00"}}, '"amount" stands in the address'),
        ({"params": {"amount": "1.00"}, "json": {"amount": "1.00"}}, '"amount" stands in the address'),
        ({"params": {"x": ""}}, '"x" stands in the address'),
        ({"content": b'{"amount": 1}'}, "the content type is missing"),
        ({"content": b"amount=1"}, "the content type is missing"),
        ({"content": b'{"amount": 1}', "headers": FORM}, "the body is JSON, but its content type"),
        ({"content": b"amount=1", "headers": JSON}, "the body is no JSON object"),
        ({"content": b"amount=1", "headers": {"Content-Type": "text/plain"}}, 'the content type is "text/plain"'),
        ({"files": {"amount": b"1"}}, 'the content type is "multipart/form-data"'),
    ],
)
async def test_a_body_in_which_an_amount_may_be_overlooked_is_refused(
    server: Any, paid: int, options: dict[str, Any], words: str, bank: Bank
) -> None:
    answered = await refund(server, paid, **options)
    refused(answered, 400, words)
    assert kept(bank) == 10


@pytest.mark.parametrize(
    "options",
    [
        *({"json": {"amount": amount}} for amount in ("0", "0.00", "-1", "10.01", "4.001", "abc", "", " 4", "4,00")),
        *({"json": {"amount": amount}} for amount in ("1e1", "+4", "NaN", "\u0664", "4\x00", "9" * 5000, "0x4", "1_0")),
        *(
            {"json": {"amount": amount}}
            for amount in (0, -1, 10.01, 4.001, None, True, [], {}, ["4"], {"a": 1}, 10**30)
        ),
        *({"data": {"amount": amount}} for amount in ("0", "-1", "10.01", "4.001", "abc", "")),
        *(
            {"content": b'{"amount": %s}' % amount, "headers": JSON}
            for amount in (b"1e999999999", b"1e-30", b"4." + b"0" * 60 + b"1")
        ),
    ],
)
async def test_an_amount_that_can_t_be_given_back_is_told_in_known_words(
    server: Any, paid: int, options: dict[str, Any], bank: Bank
) -> None:
    answered = await refund(server, paid, **options)
    refused(answered, 400)
    assert answered.json()["message"].startswith(f"{INVALID}: ")
    assert len(answered.json()["message"]) < 200
    assert kept(bank) == 10


@pytest.mark.parametrize(
    ("amount", "words"),
    [
        ("10.01", "10.01 USD is too much, 10.00 USD are left"),
        ("", "amount is empty; to give back all that is left send no body at all"),
        (None, "amount is empty"),
        ("4,00", '"4,00" is not a plain decimal number; write it like "4.00"'),
        ("0.00", "0.00 is not above 0"),
        ("4.001", "4.001 has more decimals than USD allows (2)"),
    ],
)
async def test_a_refused_amount_says_which_it_was(server: Any, paid: int, amount: str | None, words: str) -> None:
    refused(await refund(server, paid, json={"amount": amount}), 400, words)


async def test_nothing_left_is_told_in_known_words(server: Any, paid: int) -> None:
    assert (await refund(server, paid)).status_code == 200
    for options in ({}, {"json": {"amount": "1.00"}}, {"json": {"amount": "0"}}):
        again = await refund(server, paid, **options)
        refused(again, 400)
        assert again.json()["message"] == NOTHING_LEFT


async def test_a_customer_can_be_refunded_in_parts_to_the_last_cent(server: Any, paid: int, bank: Bank) -> None:
    answers = [(await refund(server, paid, json={"amount": "3.33"})).json()["data"] for _ in range(3)]
    assert [one["total_refunded_amount"] for one in answers] == [3.33, 6.66, 9.99]
    refused(await refund(server, paid, json={"amount": "0.02"}), 400, INVALID)
    last = (await refund(server, paid)).json()["data"]
    assert (last["refund_amount"], last["status"]) == (0.01, "reversal_refunded")
    assert kept(bank) == 0


async def test_twenty_at_once_never_give_back_more_than_was_paid(server: Any, paid: int, bank: Bank, told: Any) -> None:
    answers = await asyncio.gather(*(refund(server, paid, json={"amount": "0.75"}) for _ in range(20)))
    statuses = [one.status_code for one in answers]
    assert (statuses.count(200), statuses.count(400)) == (13, 7)
    assert kept(bank) == Decimal("0.25")
    assert (await told()).count("partial_refund") == 13
    assert len({one.json()["data"]["reference_id"] for one in answers if one.status_code == 200}) == 13


@pytest.mark.parametrize("payment_id", ["0", "-1", "999999999999", "9" * 30, "abc", "1.0", "%00", "1%20", "\u0661"])
async def test_an_unknown_payment_is_not_found(server: Any, paid: int, payment_id: str, bank: Bank) -> None:
    refused(await refund(server, payment_id, json={"amount": "1"}), 404)
    assert kept(bank) == 10


async def test_another_merchant_s_payment_is_not_found(
    server_of: Any, desk: Any, database: Database, paid: int, bank: Bank
) -> None:
    other = await create_merchant(database, desk.vault, name="Other", email="o@shop.example", now=utc_now())
    refused(await refund(server_of(other.private_key), paid), 404)
    assert kept(bank) == 10


async def test_only_the_private_key_opens_this_door(server_of: Any, merchant: Merchant, paid: int, bank: Bank) -> None:
    for key in ("", "wrong", merchant.public_key):
        refused(await refund(server_of(key), paid), 401)
    assert kept(bank) == 10


async def test_any_other_method_is_answered_in_json(server: Any, paid: int) -> None:
    refused(await server.call("GET", f"/payment/{paid}/refund"), 405)


async def test_a_body_that_is_no_body_is_refused(server: Any, paid: int, bank: Bank) -> None:
    for body in (b"{", b'"4.00"', b"[1]", b"4.00", b"\xff", b"{" * 5000):
        refused(await refund(server, paid, content=body, headers={"Content-Type": "application/json"}), 400)
    refused(await refund(server, paid, content=b"amount=1&amount=2&x=" + b"y" * 70_000, headers=FORM), 413)
    assert kept(bank) == 10


async def test_what_is_not_paid_is_a_conflict(server: Any, customers: Any, database: Database, shop: Shop) -> None:
    await customers.buy("A-2", number="4000000000000002")
    declined = await database.fetchval("select max(id) from payment where merchant_id = $1", shop.merchant_id)
    refused(await refund(server, declined), 409, "not paid")


async def test_what_was_charged_back_is_a_conflict(server: Any, paid: int, database: Database) -> None:
    await breaking.say(database, "payment", {"id": paid}, state="charged_back", charged_back=10)
    refused(await refund(server, paid), 409, "charged back")


async def test_the_bank_s_refusal_is_a_conflict_with_its_reason(
    server: Any, paid: int, desk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: Any) -> str:
        raise AcquirerRefused("the card was closed")

    monkeypatch.setattr(type(desk.acquirer_for(live=False)), "refund", refuse)
    refused(await refund(server, paid), 409, "the card was closed")
    shown = (await server.get(f"/api/v1/payments/{paid}"))["data"]
    assert (shown["payment_order"]["status"], shown["refunded_amount"]) == ("successful", 0)
    assert [one["status"] for one in shown["refunds"]] == ["refused"]


async def test_a_late_answer_is_processing(
    server: Any, paid: int, desk: Any, monkeypatch: pytest.MonkeyPatch, told: Any
) -> None:
    async def lose(*_: Any) -> str:
        raise OutcomeUnknown("lost")

    monkeypatch.setattr(type(desk.acquirer_for(live=False)), "refund", lose)
    body = (await refund(server, paid, json={"amount": "4.00"})).json()["data"]
    assert (body["status"], body["refund_amount"], body["total_refunded_amount"]) == ("processing", 4, 0)
    assert await told() == ["payment"]
    (line,) = (await server.get(f"/api/v1/payments/{paid}"))["data"]["refunds"]
    assert (line["reference_id"], line["status"]) == (body["reference_id"], "processing")


class TestShownAfterwards:
    async def test_a_payment_shows_its_refunds(self, server: Any, paid: int) -> None:
        first = (await refund(server, paid, json={"amount": "4.00"})).json()["data"]
        shown = (await server.get(f"/api/v1/payments/{paid}"))["data"]
        order = shown["payment_order"]
        assert (order["status"], order["paid_amount"]) == ("reversal_refunded_partially", 10)
        assert (shown["refunded_amount"], shown["captured"]) == (4, True)
        (line,) = shown["refunds"]
        assert (line["reference_id"], line["amount"], line["status"]) == (first["reference_id"], 4, "successful")
        assert line["at"] >= shown["paid_at"]

    async def test_the_list_finds_them_by_the_words_of_pingbacks(
        self, server: Any, customers: Any, paid: int, database: Database, shop: Shop
    ) -> None:
        async def found(**query: Any) -> list[int]:
            return [one["payment_order"]["id"] for one in (await server.get("/api/v1/payments", **query))["data"]]

        await customers.buy("A-2")
        second = await database.fetchval("select max(id) from payment where merchant_id = $1", shop.merchant_id)
        await refund(server, paid, json={"amount": "4.00"})
        assert await found(status="reversal_refunded_partially") == [paid]
        await refund(server, paid)
        assert await found(status="reversal_refunded") == [paid]
        assert await found(status="reversal_refunded", merchant_order_id="A-1") == [paid]
        assert await found(status="reversal_refunded_partially") == []
        assert await found(status="successful") == [second]
        await breaking.say(database, "payment", {"id": second}, state="charged_back", rare_state="charged_back")
        assert await found(status="reversal_chargeback") == [second]

    async def test_its_pingbacks_are_found_by_the_order(self, server: Any, customers: Any, paid: int) -> None:
        await customers.buy("A-2")
        await refund(server, paid, json={"amount": "4.00"})
        for query in ({"merchant_order_id": "A-1"}, {"merchant_order_id": "A-1", "email": "ada@example.com"}):
            found = (await server.get("/api/v1/pingbacks", **query))["data"]
            assert [one["event"] for one in found] == ["partial_refund", "payment"]


class TestShippedGoods:
    @pytest.fixture
    async def held(self, customers: Any, database: Database, shop: Shop) -> int:
        """The id of a payment that is authorized and not captured."""
        await ships(database, shop)
        await customers.buy("A-1")
        return int(await database.fetchval("select max(id) from payment where merchant_id = $1", shop.merchant_id))

    async def test_an_order_that_is_not_shipped_yet_is_let_go(self, server: Any, held: int, told: Any) -> None:
        refused(await refund(server, held, json={"amount": "4.00"}), 400, "not captured yet")
        assert (await refund(server, held, json={"amount": "10"})).json()["data"]["status"] == "reversal_refunded"
        assert await told() == ["payment", "refund"]
        shown = (await server.get(f"/api/v1/payments/{held}"))["data"]
        assert (shown["payment_order"]["status"], shown["refunded_amount"]) == ("reversal_refunded", 10)
        assert (shown["captured"], len(shown["refunds"])) == (False, 1)
        refused(await refund(server, held), 400, NOTHING_LEFT)


def broken_after(monkeypatch: pytest.MonkeyPatch, times: int = 1) -> list[int]:
    """The connection breaks right after an intent was committed, so many times."""
    honest = movements.queries.begin_refund
    breaks: list[int] = []

    async def breaking(connection: Any, **asked: Any) -> Any:
        row = await honest(connection, **asked)
        if len(breaks) < times:
            breaks.append(1)
            raise asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation")
        return row

    monkeypatch.setattr(movements.queries, "begin_refund", breaking)
    return breaks


class TestAConnectionThatBreaks:
    @pytest.mark.parametrize("headers", [{}, {"Idempotency-Key": "r-1"}])
    async def test_after_the_intent_was_committed_the_refund_is_made_once_and_told(
        self, server: Any, paid: int, bank: Bank, headers: dict[str, str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        broken = broken_after(monkeypatch)
        answered = await refund(server, paid, json={"amount": "4.00"}, headers=headers)
        assert broken
        assert (answered.status_code, answered.json()["data"]["status"]) == (200, "reversal_refunded_partially")
        assert kept(bank) == 6

    async def test_for_long_never_says_that_nothing_was_changed(
        self, server: Any, paid: int, bank: Bank, desk: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        options = {"json": {"amount": "4.00"}, "headers": {"Idempotency-Key": "r-1"}}
        with monkeypatch.context() as away:

            async def lost(*_: Any, **__: Any) -> None:
                raise OSError("the database is away")

            broken_after(away)
            away.setattr(movements.queries, "find_intent", lost)
            away.setattr(surely, "PATIENCE", 0)
            answered = await refund(server, paid, **options)
            refused(answered, 503, "it is not known whether a refund")
            assert "retry-after" not in answered.headers
        again = await refund(server, paid, **options)
        assert (again.status_code, again.json()["data"]["status"]) == (200, "processing")
        await movements.finish_movements(desk, now=utc_now() + movements.FIRST_LOOK * 2)
        assert kept(bank) == 6

    @pytest.mark.parametrize("amount", ["4.00", None])
    @pytest.mark.parametrize("named", [False, True], ids=["as it was", "by the key that was told"])
    async def test_for_long_leaves_a_call_without_a_key_that_can_simply_be_sent_again(
        self, server: Any, paid: int, bank: Bank, desk: Any, database: Database, amount: str | None, named: bool,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:  # fmt: skip
        options: dict[str, Any] = {} if amount is None else {"json": {"amount": amount}}
        with monkeypatch.context() as away:

            async def lost(*_: Any, **__: Any) -> None:
                raise OSError("the database is away")

            broken_after(away)
            away.setattr(movements.queries, "find_intent", lost)
            away.setattr(surely, "PATIENCE", 0)
            unsure = await refund(server, paid, **options)
        refused(unsure, 503, "it is not known whether a refund")
        if named:
            (key,) = re.findall(r'"Idempotency-Key: (\S+)"', unsure.json()["message"])
            options["headers"] = {"Idempotency-Key": key}
        await movements.finish_movements(desk, now=utc_now() + movements.FIRST_LOOK * 2)
        await database.execute("update movement set unanswered_since = unanswered_since - interval '1 minute'")
        again = await refund(server, paid, **options)
        assert again.status_code == 200
        assert again.headers["idempotent-replayed"] == "true"
        assert again.json()["data"]["refund_amount"] == Decimal(amount or 10)
        assert kept(bank) == 10 - Decimal(amount or 10)

    async def test_before_anything_else_says_that_nobody_knows(
        self, server: Any, paid: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def lost(*_: Any, **__: Any) -> None:
            raise OSError("the database is away")

        monkeypatch.setattr(refundable.queries, "refundable", lost)
        answered = await refund(server, paid, json={"amount": "4.00"})
        refused(answered, 503, "it is not known whether this was done")
        assert "retry-after" not in answered.headers


class TestAKey:
    async def test_under_which_it_was_not_paid_yet_works_once_it_is(
        self, server: Any, paid: int, bank: Bank, database: Database
    ) -> None:
        options = {"json": {"amount": "4.00"}, "headers": {"Idempotency-Key": "r-1"}}
        await breaking.say(database, "payment", {"id": paid}, state="processing")
        refused(await refund(server, paid, **options), 409, "not paid")
        await breaking.say(database, "payment", {"id": paid}, state="captured")
        assert (await refund(server, paid, **options)).status_code == 200
        assert kept(bank) == 6

    async def test_twenty_times_at_once_moves_money_once(self, server: Any, paid: int, bank: Bank, told: Any) -> None:
        options = {"json": {"amount": "4.00"}, "headers": {"Idempotency-Key": "r-1"}}
        answers = await asyncio.gather(*(refund(server, paid, **options) for _ in range(20)))
        assert {one.status_code for one in answers} == {200}
        assert len({one.content for one in answers}) == 1
        assert kept(bank) == 6
        assert await told() == ["payment", "partial_refund"]

    async def test_with_another_amount_is_refused(self, server: Any, paid: int, bank: Bank) -> None:
        headers = {"Idempotency-Key": "r-1"}
        assert (await refund(server, paid, json={"amount": "4.00"}, headers=headers)).status_code == 200
        refused(await refund(server, paid, json={"amount": "5.00"}, headers=headers), 409, "another request")
        assert kept(bank) == 6

    async def test_whose_answer_was_lost_in_a_crash_finds_what_was_done(
        self, server: Any, paid: int, bank: Bank, database: Database, shop: Shop
    ) -> None:
        options = {"json": {"amount": "4.00"}, "headers": {"Idempotency-Key": "r-1"}}
        first = await refund(server, paid, **options)
        await breaking.say(
            database,
            "api_call",
            {"merchant_id": shop.merchant_id},
            status=None,
            answer=None,
            leased_until=utc_now() - timedelta(seconds=1),
        )
        again = await refund(server, paid, **options)
        assert again.json() == first.json()
        assert kept(bank) == 6

    async def test_the_test_clock_knows_it_too(self, server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        headers = {"Idempotency-Key": "c-1"}
        first = await server.call("POST", "/api/v1/test_clock", json={"advance": "1d"}, headers=headers)
        monkeypatch.setattr(test_clock, "advance", None)
        again = await server.call("POST", "/api/v1/test_clock", json={"advance": "1d"}, headers=headers)
        assert again.json() == first.json()
