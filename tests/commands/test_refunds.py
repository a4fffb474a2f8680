from __future__ import annotations

import errno
import os
import shlex
from datetime import timedelta
from decimal import Decimal
from typing import Any, NoReturn

import asyncpg
import pytest
import typer
from tests import set_back
from tests.standings import standings

from paydesk.adapters.acquirers.simulator import Bank, Record
from paydesk.commands import refunds
from paydesk.core.clock import utc_now
from paydesk.database import surely
from paydesk.database.pool import Database
from paydesk.domain.cells.fencing import Fenced
from paydesk.domain.payments import asked_again, movements, refunding
from paydesk.settings import load_settings


@pytest.fixture
async def payment(subscription: int, account: dict[str, Any], database: Database) -> int:
    """The id of a payment of 10 USD."""
    return int(await database.fetchval("select id from payment where merchant_id = $1", account["id"]))


def kept(environment: dict[str, str]) -> Decimal:
    """What the bank says that it took and kept."""
    given: dict[str, Any] = {name.removeprefix("PAYDESK_").lower(): value for name, value in environment.items()}
    bank = Bank(Record(load_settings(**given).simulator_record))
    try:
        return sum((one.net for one in standings(bank.record.operations()).values()), Decimal(0))
    finally:
        bank.record.close()


def no_room(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


async def test_a_part_then_the_rest(paydesk: Any, payment: int, environment: dict[str, str]) -> None:
    first = await paydesk("refund", payment, "--amount", "4.00", "--json")
    assert (first.status, first.err) == (0, "")
    assert (first.result["payment_id"], first.result["status"]) == (payment, "reversal_refunded_partially")
    assert (first.result["amount"], first.result["total"], first.result["currency"]) == (4, 4, "USD")
    assert kept(environment) == 6
    rest = await paydesk("refund", payment)
    assert rest.status == 0
    assert "reversal_refunded\n" in rest.out
    assert kept(environment) == 0
    again = await paydesk("refund", payment)
    assert (again.status, again.err) == (1, "paydesk: This transaction was already refunded\n")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--amount", "0"], "must be greater than 0"),
        (["--amount", "10.01"], "10.01 USD is too much, 10.00 USD are left"),
        (["--amount", ""], "not a plain decimal number"),
        (["--key", "a b"], "--key needs 1 to 255 visible ASCII characters"),
        (["--amount", "4.001"], "USD allows 2"),
        (["--amount", "4.000"], "may mean thousands"),
        (["--amount", "x"], "not a plain decimal number"),
        (["--merchant", "99999999"], "is another one"),
        (["--live"], "is another one: a test payment"),
    ],
)
async def test_what_can_t_be_done_is_one_line(
    paydesk: Any, payment: int, options: list[str], words: str, environment: dict[str, str]
) -> None:
    said = await paydesk("refund", payment, *options)
    assert (said.status, said.out, said.err.count("\n")) == (1, "", 1)
    assert words in said.err
    assert kept(environment) == 10


async def test_under_one_key_money_moves_once(paydesk: Any, payment: int, environment: dict[str, str]) -> None:
    wish = ("refund", payment, "--amount", "6.00", "--key", "r-1", "--json")
    first, again = await paydesk(*wish), await paydesk(*wish)
    assert (first.status, again.status) == (0, 0)
    assert again.result == first.result
    assert "begun before" in again.err
    assert "needs another key" in again.err
    assert kept(environment) == 4
    other = await paydesk("refund", payment, "--amount", "1.00", "--key", "r-1")
    assert (other.status, "another request" in other.err) == (1, True)
    assert kept(environment) == 4


async def test_who_can_t_be_told_whether_it_was_done_is_told_how_to_ask_again(
    paydesk: Any, payment: int, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = movements.queries.begin_refund

    async def begin_and_lose(connection: Any, **asked: Any) -> None:
        await honest(connection, **asked)
        raise asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation")

    async def lose(_connection: Any, **_: Any) -> None:
        raise OSError("the database is away")

    with monkeypatch.context() as broken:
        broken.setattr(movements.queries, "begin_refund", begin_and_lose)
        broken.setattr(movements.queries, "find_intent", lose)
        broken.setattr(surely, "PATIENCE", 0)
        said = await paydesk("refund", payment, "--amount", "4.00")
    assert (said.status, "not known whether" in said.err) == (1, True)
    again = shlex.split(said.err.rsplit("run: paydesk ", 1)[1])
    assert again[:-1] == ["refund", str(payment), "--amount", "4.00", "--key"]
    assert (await paydesk(*again)).status == 0
    begun = "select count(*) from movement where payment_id = $1"
    assert await database.fetchval(begun, payment) == 1


@pytest.mark.parametrize("after", ["begun", "recorded"])
async def test_one_that_was_killed_before_it_told_is_the_same_run_again(
    paydesk: Any,
    payment: int,
    environment: dict[str, str],
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
    after: str,
) -> None:
    wish = ("refund", payment, "--amount", "4.00", "--json")

    def die(*_: Any, **__: Any) -> NoReturn:
        raise SystemExit(137)

    with monkeypatch.context() as killed:
        killed.setattr(refunding if after == "begun" else refunds, "carry_out" if after == "begun" else "_show", die)
        assert (await paydesk(*wish)).status == 137
    # It died a while ago: none is still at work on it.
    a_while_ago = utc_now() - timedelta(minutes=1)
    await set_back.times(database, "movement", {"payment_id": payment}, unanswered_since=a_while_ago)
    again = await paydesk(*wish)
    assert (again.status, again.result["amount"]) == (0, 4)
    assert "begun before" in again.err
    begun = "select count(*) from movement where payment_id = $1"
    assert await database.fetchval(begun, payment) == 1
    other = await paydesk(*wish)
    assert (other.status, other.err, other.result["total"] >= 4) == (0, "", True)
    assert await database.fetchval(begun, payment) == 2
    assert kept(environment) == (6 if after == "begun" else 2)


@pytest.mark.parametrize("breaks", ["looking", "making sure", "telling"])
async def test_a_repeat_that_breaks_off_too_is_the_same_however_it_is_asked_again(
    paydesk: Any,
    payment: int,
    environment: dict[str, str],
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
    breaks: str,
) -> None:
    wish = ("refund", payment, "--amount", "4.00")

    async def lose(*_: Any, **__: Any) -> None:
        raise OSError("the database is away")

    with monkeypatch.context() as full:
        full.setattr(typer, "echo", no_room)
        assert (await paydesk(*wish)).status == 1
    a_while_ago = utc_now() - timedelta(minutes=1)
    await set_back.times(database, "movement", {"payment_id": payment}, unanswered_since=a_while_ago)
    with monkeypatch.context() as broken:
        if breaks == "looking":
            broken.setattr(asked_again, "find_unanswered", lose)
        elif breaks == "making sure":
            broken.setattr(asked_again, "make_durable", lose)
        else:
            broken.setattr(typer, "echo", no_room)
        said = await paydesk(*wish)
    assert (said.status, "it is safe" in said.err) == (1, True)
    again = await paydesk(*shlex.split(said.err.rsplit("run: paydesk ", 1)[1]))
    assert (again.status, "begun before" in again.err) == (0, True)
    assert kept(environment) == 6
    assert (await paydesk(*wish)).status == 0
    assert kept(environment) == 2


async def test_a_refund_that_was_told_while_its_shop_was_closed_for_a_move_is_one(
    paydesk: Any, payment: int, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: object, **__: object) -> NoReturn:
        raise Fenced("merchant 1 is on its way to cell 2")

    monkeypatch.setattr(asked_again.queries, "mark_answered", refuse)
    said = await paydesk("refund", payment, "--amount", "4.00", "--json")
    assert (said.status, said.err, said.result["amount"]) == (0, "", 4)
    assert kept(environment) == 6


async def test_on_a_full_disk_a_refund_that_was_made_is_not_told_as_one_that_was_not(
    paydesk: Any, payment: int, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as full:
        full.setattr(typer, "echo", no_room)
        said = await paydesk("refund", payment, "--amount", "4.00")
    assert said.err.startswith("paydesk: what was done can't be written, the disk is full: make room; it is safe")
    assert kept(environment) == 6
    again = await paydesk(*shlex.split(said.err.rsplit("run: paydesk ", 1)[1]))
    assert (again.status, "reversal_refunded_partially" in again.out) == (0, True)
    assert kept(environment) == 6


async def test_on_a_full_disk_no_command_blames_the_database(
    paydesk: Any, account: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(typer, "echo", no_room)
    said = await paydesk("merchant", "show", account["id"])
    assert (said.status, said.err.count("\n"), "DATABASE_URL" in said.err) == (1, 1, False)
    assert "No space left on device; make room" in said.err


async def test_an_unknown_payment_is_one_line(paydesk: Any) -> None:
    said = await paydesk("refund", 10**12)
    assert (said.status, said.err) == (1, f"paydesk: there is no payment {10**12}\n")


async def test_live_money_is_asked_for_first(
    paydesk: Any, payment: int, account: dict[str, Any], database: Database, environment: dict[str, str]
) -> None:
    for table in ("payment", "payment_attempt", "customer", "card"):
        await database.execute(f"update {table} set live = true where merchant_id = $1", account["id"])
    asked = await paydesk("refund", payment, "--amount", "4.00", "--live")
    assert asked.status == 1
    assert f"Give back 4.00 USD of live payment {payment}, order 'club-1'" in asked.err
    assert kept(environment) == 10
    done = await paydesk(
        "refund", payment, "--amount", "4.00", "--live", "--yes", "--merchant", account["id"], "--json"
    )
    assert (done.status, done.result["total"]) == (0, 4)
    assert kept(environment) == 6
