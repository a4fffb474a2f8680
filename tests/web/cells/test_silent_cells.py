"""A cell whose web server is frozen takes connections, and answers nothing: who needs it is told so
soon, and one that is only slow is waited for.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
from tests import breaking
from tests.shopfront import open_page, press_pay
from tests.web.cells.two_cells import HOME, SECOND, Cells, form_of

from paydesk.core.errors import Unsure
from paydesk.domain.cells.directory import Cell
from paydesk.web.cells import calling, pulses
from paydesk.web.cells.calling import CellAway, OtherCells, other_cells
from paydesk.web.cells.places import AT_ONCE, Asker
from paydesk.web.cells.pulses import Pulse

PAYMENTS = "/api/v1/payments"
HEALTH = "GET /healthz"
HALF = "/half"
"""What is answered half before it freezes."""
SOMEBODY = Asker("address 203.0.113.1")


class Frozen:
    """A web server that takes connections, and reads what comes: it answers nothing before it
    thaws, but for its health page if it is only slow.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.came: Counter[str] = Counter()
        self.inside = ""
        self._thawed = asyncio.Event()
        self._is_slow = False
        self._server: asyncio.Server | None = None
        self._monkeypatch = monkeypatch

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        self._server = await asyncio.start_server(self._take, "127.0.0.1", 0)
        self.inside = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        try:
            yield
        finally:
            self.thaw()
            self.ends()

    def ends(self) -> None:
        """It takes no connections any more, as one that ends once it has answered what has come."""
        assert self._server is not None
        self._server.close()

    def slow(self) -> None:
        """It answers its health page from here on; on a machine that has other work that may take
        as long as it likes.
        """
        self._is_slow = True
        self._monkeypatch.setattr(calling, "HEALTH", 30.0)

    def thaw(self) -> None:
        """It answers all from here on, also what has come before."""
        self.slow()
        self._thawed.set()

    @property
    def cell(self) -> Cell:
        return Cell(SECOND, "", self.inside)

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        what = (await reader.readline()).decode().rpartition(" ")[0]
        if not what:
            # A busy machine has left it no time to ask.
            writer.close()
            return
        self.came[what] += 1
        head, body = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n", b"ok"
        if what.endswith(HALF):
            writer.write(head + body[:1])
            head, body = b"", body[1:]
        if not (self._is_slow and what == HEALTH):
            await self._thawed.wait()
        writer.write(head + body)
        writer.close()


@pytest.fixture
async def frozen(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Frozen]:
    monkeypatch.setattr(pulses, "QUIET", 0.05)
    monkeypatch.setattr(pulses, "PAUSE", 0.02)
    monkeypatch.setattr(calling, "HEALTH", 0.1)
    monkeypatch.setattr(calling, "CONNECT", 30.0)
    monkeypatch.setattr(pulses, "STALE", 600.0)
    monkeypatch.setattr(pulses, "GIVEN_UP", 600.0)
    made = Frozen(monkeypatch)
    async with made.serving():
        yield made


@pytest.fixture
async def others() -> AsyncIterator[OtherCells]:
    async with other_cells() as made:
        yield made


async def ask(others: OtherCells, frozen: Frozen, path: str, *, method: str = "GET", asker: Asker = SOMEBODY) -> bytes:
    """What is answered."""
    async with others.asked(frozen.cell, method, path, [], b"", asker=asker) as answer:
        return b"".join([part async for part in answer.parts()])


async def comes(frozen: Frozen, what: str, times: int = 1) -> None:
    while frozen.came[what] < times:  # noqa: ASYNC110 (it sends no event)
        await asyncio.sleep(0.005)


async def is_silent(others: OtherCells, frozen: Frozen) -> None:
    """Somebody has waited for it in vain."""
    with pytest.raises(CellAway):
        await ask(others, frozen, "/first")


async def until_it_answers(others: OtherCells, frozen: Frozen) -> bytes:
    """Ask as a client does that is told to come back."""
    for _ in range(500):
        try:
            return await ask(others, frozen, "/again")
        except CellAway:
            await asyncio.sleep(0.02)
    raise AssertionError("it is taken as silent for good")


async def test_a_silent_cell_is_sent_nothing_more(frozen: Frozen, others: OtherCells) -> None:
    await is_silent(others, frozen)
    for _ in range(20):
        for method in ("GET", "POST"):
            with pytest.raises(CellAway):
                await ask(others, frozen, "/more", method=method)
    assert set(frozen.came) <= {"GET /first", HEALTH}
    assert frozen.came["GET /first"] <= 1


async def test_it_is_looked_for_by_one_question_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pulses, "PAUSE", 0.0)
    asked, answer = 0, asyncio.Event()

    async def look() -> None:
        nonlocal asked
        asked += 1
        await answer.wait()
        raise TimeoutError

    pulse = Pulse(SECOND, look)
    for missed in range(1, pulses.MISSED + 2):
        looking = [pulse.look() for _ in range(20)]
        assert looking[0] is not None
        assert set(looking) == {looking[0]}
        answer.set()
        await looking[0]
        answer.clear()
        assert (asked, pulse.is_silent) == (missed, missed >= pulses.MISSED)


async def test_it_is_served_again_once_it_answers(frozen: Frozen, others: OtherCells) -> None:
    await is_silent(others, frozen)
    frozen.thaw()
    assert await until_it_answers(others, frozen) == b"ok"


async def test_who_comes_long_after_it_thawed_is_not_refused_for_what_was_then(
    frozen: Frozen, others: OtherCells, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody asks it meanwhile, so nobody has heard that it answers again."""
    await is_silent(others, frozen)
    frozen.thaw()
    await asyncio.sleep(2 * pulses.PAUSE)
    monkeypatch.setattr(pulses, "STALE", 0.0)
    assert await ask(others, frozen, "/first") == b"ok"


async def test_one_that_ends_in_good_order_answers_what_has_come(
    frozen: Frozen, others: OtherCells, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes no connection of whoever asks for its health page, and answers all the same."""
    monkeypatch.setattr(pulses, "GIVEN_UP", 0.0)
    frozen.slow()
    waiting = [asyncio.create_task(ask(others, frozen, "/slow", method=method)) for method in ("GET", "POST")]
    await comes(frozen, "GET /slow")
    await comes(frozen, "POST /slow")
    frozen.ends()
    await asyncio.sleep(pulses.QUIET + 20 * pulses.PAUSE)
    frozen.thaw()
    assert await asyncio.gather(*waiting) == [b"ok"] * 2


async def test_a_slow_one_is_waited_for(frozen: Frozen, others: OtherCells) -> None:
    """As a bank may take its time, and an export."""
    frozen.slow()
    waiting = [asyncio.create_task(ask(others, frozen, "/slow", method=method)) for method in ("GET", "POST")]
    await comes(frozen, HEALTH, 5)
    more = asyncio.create_task(ask(others, frozen, "/slow"))
    await comes(frozen, "GET /slow", 2)
    frozen.thaw()
    assert await asyncio.gather(*waiting, more) == [b"ok"] * 3


async def test_what_may_have_written_waits_on_for_one_that_comes_back(frozen: Frozen, others: OtherCells) -> None:
    paying = asyncio.create_task(ask(others, frozen, "/pay", method="POST"))
    await comes(frozen, "POST /pay")
    await is_silent(others, frozen)
    frozen.thaw()
    assert await paying == b"ok"
    assert frozen.came["POST /pay"] == 1


async def test_nobody_claims_to_know_what_became_of_a_write_that_is_given_up(
    frozen: Frozen, others: OtherCells, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pulses, "GIVEN_UP", 0.1)
    with pytest.raises(Unsure, match="not known whether this was done"):
        await ask(others, frozen, "/pay", method="POST")
    assert frozen.came["POST /pay"] == 1


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_what_is_half_answered_is_waited_for_no_longer(
    frozen: Frozen, others: OtherCells, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    monkeypatch.setattr(pulses, "GIVEN_UP", 0.1)
    with pytest.raises(TimeoutError, match="it is silent"):
        await ask(others, frozen, HALF, method=method)
    with pytest.raises(CellAway):
        await ask(others, frozen, "/more")
    frozen.thaw()
    assert await until_it_answers(others, frozen) == b"ok"


async def test_what_may_have_written_and_is_half_answered_waits_on_for_one_that_comes_back(
    frozen: Frozen, others: OtherCells
) -> None:
    paying = asyncio.create_task(ask(others, frozen, HALF, method="POST"))
    await comes(frozen, f"POST {HALF}")
    await is_silent(others, frozen)
    frozen.thaw()
    assert await paying == b"ok"


async def test_the_other_half_of_a_slow_one_is_waited_for(frozen: Frozen, others: OtherCells) -> None:
    frozen.slow()
    waiting = [asyncio.create_task(ask(others, frozen, HALF, method=method)) for method in ("GET", "POST")]
    await comes(frozen, HEALTH, 5)
    frozen.thaw()
    assert await asyncio.gather(*waiting) == [b"ok"] * 2


async def test_what_came_before_it_froze_is_no_sign_of_life(frozen: Frozen, others: OtherCells) -> None:
    """Whoever reads it late would have others wait for a cell that is silent."""
    async with others.asked(frozen.cell, "GET", HALF, [], b"", asker=SOMEBODY) as answer:
        await is_silent(others, frozen)
        assert await anext(answer.parts()) == b"o"
        with pytest.raises(CellAway):
            await ask(others, frozen, "/more")
        assert frozen.came["GET /more"] == 0


async def test_nobody_holds_a_place_of_a_silent_cell(
    frozen: Frozen, others: OtherCells, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pulses, "GIVEN_UP", 0.1)

    def all_places() -> list[Awaitable[bytes]]:
        return [
            ask(others, frozen, "/many", method="POST" if one % 2 else "GET", asker=Asker(f"address {one}"))
            for one in range(AT_ONCE)
        ]

    said = await asyncio.gather(*all_places(), return_exceptions=True)
    assert Counter(type(one) for one in said) == {CellAway: AT_ONCE // 2, calling.AnswerLost: AT_ONCE // 2}
    frozen.thaw()
    await until_it_answers(others, frozen)
    assert await asyncio.gather(*all_places()) == [b"ok"] * AT_ONCE


async def test_who_goes_while_it_is_silent_leaves_nothing_behind(frozen: Frozen, others: OtherCells) -> None:
    async with AsyncExitStack() as stack:
        asked = others.asked(frozen.cell, "POST", "/pay", [], b"", asker=SOMEBODY)
        entering = asyncio.create_task(stack.enter_async_context(asked))
        await comes(frozen, HEALTH)
        entering.cancel()
        with pytest.raises(asyncio.CancelledError):
            await entering
    frozen.thaw()
    assert await until_it_answers(others, frozen) == b"ok"


async def test_its_customers_are_told_to_come_back_and_nobody_else_notices(cells: Cells, frozen: Frozen) -> None:
    await cells.know(HOME, SECOND)
    await breaking.say(cells.databases[HOME], "cell", {"number": SECOND}, inside=frozen.inside)
    key = {"X-ApiKey": cells.merchants[SECOND].private_key}
    for _ in range(3):
        call = await cells.web[HOME].get(PAYMENTS, headers=key)
        assert (call.status_code, call.headers["retry-after"]) == (503, "3")
        assert "nothing was done" in call.json()["message"]
        page = await cells.web[HOME].post("/payment/form", data=form_of(cells.merchants[SECOND]))
        assert (page.status_code, page.headers["retry-after"]) == (503, "3")
        path = await open_page(cells.web[HOME], form_of(cells.merchants[HOME]))
        assert (await press_pay(cells.web[HOME], path)).status_code == 303
    assert set(frozen.came) <= {f"GET {PAYMENTS}", HEALTH}
    assert frozen.came[f"GET {PAYMENTS}"] <= 1
