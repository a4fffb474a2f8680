from __future__ import annotations

import ast
import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import paydesk
from paydesk.database.pool import Database, connected
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.pingbacks import sending, waking
from paydesk.domain.pingbacks.sending import PingbackSender
from paydesk.domain.pingbacks.waking import Listening, Paced, heard_by, passed_on

DOMAIN = Path(paydesk.__file__).parent / "domain"
LISTENERS = (
    "select pid from pg_stat_activity"
    " where datname = current_database() and application_name = 'paydesk words' and state = 'idle'"
)


@asynccontextmanager
async def listening(database_url: str, hear: Any) -> AsyncIterator[Listening]:
    """Listens as a worker does; `hear` is called when it begins to, too."""
    began, stop = asyncio.Event(), asyncio.Event()

    def heard() -> None:
        began.set()
        hear()

    async with connected(database_url, most=1, least=0, name="words") as words:
        ear = Listening(words, heard)
        running = asyncio.ensure_future(ear.run(stop))
        await began.wait()
        yield ear
        stop.set()
        await running


async def test_a_word_of_another_process_ends_the_senders_rest(
    database: Database, database_url: str, shop: Shop, make_sender: Any, run_sender: Any, receiver: Any, queue: Any,
    eventually: Any,
) -> None:  # fmt: skip
    sender: PingbackSender = make_sender(poll=3600.0)
    async with passed_on(database), listening(database_url, sender.wake):
        run_sender(sender)
        for number in (1, 2, 3):
            await queue(shop, receiver.url)
            waking.told()
            await eventually(lambda number=number: len(receiver.received) == number)


ALWAYS, SELDOM = 0.01, 3600.0


@pytest.mark.parametrize(
    ("hears", "is_told", "poll", "quiet"),
    [
        pytest.param(False, False, ALWAYS, SELDOM, id="nobody's words come"),
        pytest.param(True, True, ALWAYS, SELDOM, id="a word came lately"),
        pytest.param(True, False, SELDOM, ALWAYS, id="words come, and there was none"),
    ],
)
async def test_more_is_looked_for_often_while_words_may_be_missed(
    hears: bool, is_told: bool, poll: float, quiet: float,
    shop: Shop, make_sender: Any, run_sender: Any, receiver: Any, queue: Any, eventually: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(sending, "_LATELY", SELDOM)
    sender: PingbackSender = make_sender(poll=poll, quiet=quiet)
    look, looks = sender._claim_once, []

    async def counted() -> bool:
        looks.append(await look())
        return looks[-1]

    monkeypatch.setattr(sender, "_claim_once", counted)
    if is_told:
        sender._look_at_once()
    run_sender(sender, hears=lambda: hears)
    await eventually(lambda: len(looks) > 2)
    await queue(shop, receiver.url)
    await eventually(lambda: receiver.received)


async def test_nothing_is_claimed_while_nothing_is_due_to_anybody(
    shop: Shop, make_sender: Any, run_sender: Any, receiver: Any, queue: Any, eventually: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    sender: PingbackSender = make_sender(poll=ALWAYS)
    claim, look, seen = sender._claim, sender._claims.is_any_due, list[object]()

    async def seen_claim(now: Any, merchant_id: int | None = None) -> int:
        seen.append("claim")
        return await claim(now, merchant_id)

    async def seen_look() -> bool:
        seen.append(await look())
        return bool(seen[-1])

    monkeypatch.setattr(sender, "_claim", seen_claim)
    monkeypatch.setattr(sender._claims, "is_any_due", seen_look)
    run_sender(sender)
    await eventually(lambda: len(seen) > 3)
    assert seen[:4] == ["claim", False, False, False]
    await queue(shop, receiver.url)
    await eventually(lambda: receiver.received)
    assert seen[seen.index(True) + 1] == "claim"


async def test_a_word_that_comes_while_due_ones_are_claimed_is_not_lost(
    shop: Shop, make_sender: Any, run_sender: Any, receiver: Any, queue: Any, eventually: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    sender: PingbackSender = make_sender(poll=3600.0)
    claim, claims = sender._claim, []

    async def late(now: Any, merchant_id: int | None = None) -> int:
        found = await claim(now, merchant_id)
        claims.append(found)
        if len(claims) == 1:
            await queue(shop, receiver.url)
            sender._look_at_once()
        return found

    monkeypatch.setattr(sender, "_claim", late)
    run_sender(sender)
    await eventually(lambda: receiver.received)


async def test_a_worker_that_lost_its_connection_listens_again(
    database: Database, database_url: str, eventually: Any
) -> None:
    heard: list[int] = []
    async with listening(database_url, lambda: heard.append(1)) as ear:
        assert ear.hears
        [before] = await database.fetch(LISTENERS)
        heard.clear()
        await database.fetchval("select pg_terminate_backend($1)", before["pid"])
        while ear.hears and not heard:  # noqa: ASYNC110 (what ends it tells nobody)
            await asyncio.sleep(0)

        async def listens_anew() -> bool:
            return [row["pid"] for row in await database.fetch(LISTENERS)] not in ([], [before["pid"]])

        await eventually(listens_anew)
        heard.clear()
        async with passed_on(database):
            waking.told()
            await eventually(lambda: heard)


async def test_many_words_are_one_and_none_is_forgotten() -> None:
    calls: list[int] = []
    paced = Paced(lambda: calls.append(1))
    with heard_by(paced):
        for _ in range(1000):
            waking.told()
    assert calls == []
    while not calls:  # noqa: ASYNC110 (nothing else tells)
        await asyncio.sleep(0.001)
    assert len(calls) == 1
    paced()
    while len(calls) < 2:  # noqa: ASYNC110
        await asyncio.sleep(0.001)
    waking.told()
    await asyncio.sleep(0)
    assert len(calls) == 2


async def test_while_the_database_is_away_a_word_is_nobodys_failure(database_url: str) -> None:
    async with connected(database_url, most=1, least=0) as gone, passed_on(gone):
        await gone.close()
        waking.told()
        await asyncio.sleep(0.01)


def writers() -> Iterator[tuple[Path, str]]:
    """The statements that write a pingback, each with the folder of its file."""
    for file in DOMAIN.rglob("*.sql"):
        for name, text in re.findall(r"^-- name: (\w+)(.*?)(?=^-- name: |\Z)", file.read_text(), re.S | re.M):
            if re.search(r"insert into pingback\b(?!_)", text):
                yield file.parent, name


def says_so(name: str, functions: dict[str, str]) -> bool:
    """Whether a function of a module tells the senders, or, where it writes within a transaction of
    its caller's, all that call it there do.
    """
    callers = [one for one, text in functions.items() if one != name and f"{name}(" in text]
    return "waking.told()" in functions[name] or (bool(callers) and all(says_so(one, functions) for one in callers))


def test_whoever_writes_a_pingback_says_so() -> None:
    silent, callers = [], 0
    for folder, name in writers():
        for file in folder.glob("*.py"):
            nodes = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.AsyncFunctionDef)]
            functions = {node.name: "\n".join(map(ast.unparse, node.body)) for node in nodes}
            for function, text in functions.items():
                if f"queries.{name}(" in text:
                    callers += 1
                    if not says_so(function, functions):
                        silent.append(f"{file.name}: {function}")
    assert callers >= 7
    assert silent == []
