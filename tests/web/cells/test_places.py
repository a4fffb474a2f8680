"""Who gets the places of a cell that does not answer: nobody gets all, and each is given back."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, ExitStack, suppress
from dataclasses import dataclass, field
from typing import Any, Final

import aiohttp
import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import REGISTRY
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send
from tests.web.cells.two_cells import HOME, SECOND, Arrived, Cells, Serving, entries_of, form_of

from paydesk.commands.starting import listen
from paydesk.core.clock import utc_now
from paydesk.core.errors import Unavailable, Unsure
from paydesk.domain.cells.directory import Cell, Entry, Kind, enter
from paydesk.domain.merchants.merchant import Merchant, create_merchant
from paydesk.web.cells import calling
from paydesk.web.cells.asking import Asking
from paydesk.web.cells.calling import CellAway, OtherCells, other_cells
from paydesk.web.cells.holding import HOLDING, AskedId, Holds
from paydesk.web.cells.passing_on import BetweenCells
from paydesk.web.cells.places import AT_ONCE, Asker, NoPlace, Places

PAYMENTS = "/api/v1/payments"
PROXY = "192.0.2.99"
MANY = 40
"""More than there are places."""

MOODS: Final = ("/whole", "/whole", "/slow", "/half", "/broken", "/silent")
"""What may become of a request."""


def link_of(merchant_id: int) -> str:
    """A customer's link of a merchant, as anybody can make one up."""
    return f"/checkout/t{merchant_id:x}-{'0' * 48}"


@dataclass
class Slow:
    """A second cell that answers nothing until it is `well`; `web` stands before home, behind a
    proxy that names whoever asks. What it names in the second cell are `merchants`.
    """

    cells: Cells
    home: Serving
    web: httpx.AsyncClient
    merchants: list[int]
    well: asyncio.Event = field(default_factory=asyncio.Event)
    waiting: list[asyncio.Task[httpx.Response]] = field(default_factory=list)

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """For the second cell."""
        await self.well.wait()
        await self.cells.served[SECOND].of_browser(scope, receive, send)

    async def ask(self, asked: Iterable[tuple[str, str]], **how: Any) -> list[httpx.Response]:
        """Send requests, each from an address to a path, one after another; the answers of those
        that don't wait.
        """
        answered = []
        for address, path in asked:
            one = asyncio.create_task(self._ask(address, path, **how))
            before = len(self.arrived)
            while len(self.arrived) == before and not one.done():  # noqa: ASYNC110 (it sends no event)
                await asyncio.sleep(0.002)
            if one.done():
                answered.append(one.result())
            else:
                self.waiting.append(one)
        return answered

    async def _ask(self, address: str, path: str, **how: Any) -> httpx.Response:
        headers = {**how.pop("headers", {}), "X-Forwarded-For": address}
        return await self.web.request(how.pop("method", "GET"), path, headers=headers, **how)

    async def end(self) -> list[int]:
        """The second cell is well again: what all who waited are told."""
        self.well.set()
        said = [one.status_code for one in await asyncio.gather(*self.waiting)]
        self.waiting.clear()
        return said

    @property
    def cell(self) -> Cell:
        """The second one, as home reaches it."""
        return Cell(SECOND, "", self.cells.inside[SECOND])

    @property
    def others(self) -> OtherCells:
        """By which home asks."""
        between: BetweenCells = self.home.state[BetweenCells.key]
        return between.others

    @property
    def arrived(self) -> list[Arrived]:
        """What came to the second cell."""
        return self.cells.served[SECOND].arrived


@pytest.fixture
async def slow(cells: Cells) -> AsyncIterator[Slow]:
    await cells.know(HOME, SECOND)
    there = cells.databases[SECOND]
    made = [
        await create_merchant(there, cells.vault, name=f"Shop {one}", email="many@shop.example", now=utc_now())
        for one in range(MANY)
    ]
    merchants = [one.id for one in made]
    for each in cells.databases.values():
        named = [Entry(Kind.merchant, str(one), one) for one in merchants]
        await enter(each, named, SECOND, now=utc_now())
    home = await cells.serve(HOME, trusted_proxies=f"{PROXY}/32")
    transport = httpx.ASGITransport(app=home.of_browser, client=(PROXY, 50000))
    async with httpx.AsyncClient(transport=transport, base_url="http://pay1.test", timeout=60) as web:
        slow = Slow(cells, home, web, merchants)
        cells.served[SECOND].instead = slow.answer
        yield slow
        await slow.end()


async def another_merchant(cells: Cells) -> Merchant:
    """One more of the second cell."""
    made = await create_merchant(
        cells.databases[SECOND], cells.vault, name="Another", email="another@shop.example", now=utc_now()
    )
    for each in cells.databases.values():
        await enter(each, entries_of(cells.vault, made), SECOND, now=utc_now())
    return made


def key_of(merchant: Merchant) -> dict[str, str]:
    return {"X-ApiKey": merchant.private_key}


def addresses(many: int = MANY) -> list[str]:
    return [f"198.51.100.{one}" for one in range(1, many + 1)]


def refusals(outcome: str) -> float:
    labels = {"cell": str(SECOND), "outcome": outcome}
    return REGISTRY.get_sample_value("paydesk_passed_on_total", labels) or 0.0


class TestWhoTakesMany:
    async def test_one_address_leaves_places_though_it_names_many_merchants(self, slow: Slow) -> None:
        before = refusals("share"), refusals("full"), refusals("away")
        refused = await slow.ask(("198.51.100.1", link_of(one)) for one in slow.merchants)
        assert {(one.status_code, one.headers["retry-after"]) for one in refused} == {(503, "3")}
        assert (refusals("share"), refusals("full"), refusals("away")) == (before[0] + len(refused), *before[1:])
        assert await slow.ask([("198.51.100.2", link_of(slow.merchants[0]))]) == []
        assert await slow.ask([("203.0.113.1", PAYMENTS)], headers=key_of(slow.cells.merchants[SECOND])) == []

    async def test_one_provider_of_ipv6_addresses_leaves_places(self, slow: Slow) -> None:
        await slow.ask((f"2001:db8:1:{one}::7", link_of(slow.merchants[one])) for one in range(MANY))
        assert await slow.ask([("2001:db8:2::7", link_of(slow.merchants[0]))]) == []

    async def test_one_merchant_leaves_places_to_others_though_many_customers_come(self, slow: Slow) -> None:
        await slow.ask((address, link_of(slow.merchants[0])) for address in addresses())
        assert await slow.ask([("203.0.113.1", link_of(slow.merchants[1]))]) == []

    async def test_one_merchants_program_leaves_places_wherever_it_calls_from(self, slow: Slow) -> None:
        await slow.ask([(address, PAYMENTS) for address in addresses()], headers=key_of(slow.cells.merchants[SECOND]))
        other = await another_merchant(slow.cells)
        assert await slow.ask([("203.0.113.1", PAYMENTS)], headers=key_of(other)) == []

    async def test_one_forms_key_leaves_places(self, slow: Slow) -> None:
        form = form_of(slow.cells.merchants[SECOND])
        await slow.ask([(address, "/payment/form") for address in addresses()], method="POST", data=form)
        other = form_of(await another_merchant(slow.cells))
        assert await slow.ask([("203.0.113.1", "/payment/form")], method="POST", data=other) == []

    async def test_four_who_name_a_merchant_again_and_again_do_not_shut_it_out(self, slow: Slow) -> None:
        link = link_of(slow.cells.merchants[SECOND].id)
        for address in addresses(4):
            await slow.ask([(address, link)] * MANY)
        assert await slow.ask([("203.0.113.1", link)]) == []

    async def test_what_strangers_name_takes_nothing_from_its_merchants_own_calls(self, slow: Slow) -> None:
        merchant = slow.cells.merchants[SECOND]
        await slow.ask((address, link_of(merchant.id)) for address in addresses())
        called = [("203.0.113.1", PAYMENTS)] * 4
        assert await slow.ask(called, headers=key_of(merchant)) == []

    async def test_a_few_who_take_what_they_get_leave_a_place(self, slow: Slow) -> None:
        """Where each might take a quarter, four would fill the cell."""
        for one in slow.merchants:
            await slow.ask((address, link_of(one)) for address in addresses(7))
        assert await slow.ask([("203.0.113.1", link_of(slow.merchants[-1]))]) == []

    async def test_questions_of_one_kind_leave_places(self, slow: Slow) -> None:
        asking = Asking(slow.others, slow.cells.vault)

        async def ask(path: str) -> None:
            await asking.ask(slow.cell, path, AskedId(7), Holds, own=HOME, now=utc_now())

        many = [asyncio.create_task(ask(HOLDING)) for _ in range(MANY)]
        while len(slow.arrived) + sum(one.done() for one in many) < MANY:  # noqa: ASYNC110 (it sends no event)
            await asyncio.sleep(0.002)
        assert await slow.ask([("203.0.113.1", link_of(slow.merchants[0]))]) == []
        slow.well.set()
        await asyncio.gather(*many, return_exceptions=True)

    async def test_of_an_idle_cell_one_program_gets_a_quarter_and_one_shops_customers_half(self, slow: Slow) -> None:
        merchant = slow.cells.merchants[SECOND]
        called = [("203.0.113.1", PAYMENTS)] * (AT_ONCE // 4)
        assert await slow.ask(called, headers=key_of(merchant)) == []
        assert await slow.end() == [200] * len(called)
        slow.well.clear()
        assert await slow.ask((address, link_of(merchant.id)) for address in addresses(AT_ONCE // 2)) == []
        assert await slow.end() == [404] * (AT_ONCE // 2)


class TestWhatIsTold:
    async def test_a_program_is_told_that_nothing_was_done_and_nothing_was(self, slow: Slow) -> None:
        merchant = slow.cells.merchants[SECOND]
        asked = {"amount": "12.50", "currency": "USD", "merchant_order_id": "one", "description": "A mug"}
        body = {**asked, "success_url": "https://shop.example/thanks"}
        many = [("203.0.113.1", "/api/v1/checkouts")] * MANY
        refused = await slow.ask(many, method="POST", json=body, headers=key_of(merchant))
        assert {(one.status_code, one.headers["retry-after"]) for one in refused} == {(503, "3")}
        assert all("nothing was done, try again" in one.json()["message"] for one in refused)
        arrived = len(slow.arrived)
        assert arrived == MANY - len(refused)
        assert len(await slow.end()) == arrived

    async def test_a_cell_that_is_full_is_counted_apart(self, slow: Slow) -> None:
        before = refusals("full")
        asked = list(zip(addresses(AT_ONCE + 1), (link_of(one) for one in slow.merchants), strict=False))
        refused = await slow.ask(asked)
        assert [(one.status_code, one.headers["retry-after"]) for one in refused] == [(503, "3")]
        assert refusals("full") == before + 1

    async def test_where_many_were_refused_all_may_come_once_it_answers(self, slow: Slow) -> None:
        await slow.ask([("198.51.100.1", link_of(one)) for one in slow.merchants])
        await slow.end()
        arrived = len(slow.arrived)
        for one in slow.merchants:
            await slow.ask([("198.51.100.1", link_of(one))])
            await slow.end()
        assert len(slow.arrived) == arrived + MANY


class TestWhoHasGone:
    async def test_a_client_who_has_gone_gives_its_place_back_with_the_answer(self, slow: Slow) -> None:
        """Not before: the other cell works on it still."""
        listener = listen("127.0.0.1", 0, "PORT")
        async with slow.home.at(listener):
            for one in slow.merchants:
                await self.ask_and_go(slow, listener, link_of(one))
            taken = len(slow.arrived)
            assert 0 < taken < AT_ONCE
            await self.ask_and_go(slow, listener, link_of(slow.merchants[0]))
            assert len(slow.arrived) == taken
            slow.well.set()
            await all_free(slow.others, slow.cell)

    async def ask_and_go(self, slow: Slow, listener: Any, path: str) -> None:
        """Ask home, and leave once it has refused, or has passed it on."""
        reader, writer = await asyncio.open_connection(*listener.getsockname())
        before = len(slow.arrived)
        writer.write(f"GET {path} HTTP/1.1\r\nHost: pay1.test\r\n\r\n".encode())
        answer = asyncio.create_task(reader.read(1))
        while len(slow.arrived) == before and not answer.done():  # noqa: ASYNC110 (it sends no event)
            await asyncio.sleep(0.002)
        answer.cancel()
        writer.close()


async def all_free(others: OtherCells, cell: Cell) -> None:
    """Whoever was answered just now is given a moment, and so is a cell that a busy machine kept
    from answering in time; then as many as there are places get one.
    """
    for last in (False,) * 50 + (True,):
        try:
            async with AsyncExitStack() as stack:
                for one in range(AT_ONCE):
                    asked = others.asked(cell, "GET", "/healthz", [], b"", asker=Asker(f"address {one}"))
                    await stack.enter_async_context(asked)
                with pytest.raises(NoPlace):
                    await stack.enter_async_context(others.asked(cell, "GET", "/", [], b"", asker=Asker("one more")))
                return
        except (NoPlace, CellAway):
            if last:
                raise
            await asyncio.sleep(0.1)


@dataclass
class Moody:
    """A cell's web server that does to a request what its path says; `arrived` are their bodies."""

    arrived: set[bytes] = field(default_factory=set)

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Whole, slowly, never, half, or not at all."""
        self.arrived.add((await receive()).get("body", b""))
        mood = scope["path"]
        if mood == "/silent":
            await asyncio.Event().wait()
        if mood == "/broken":
            raise RuntimeError("it dies amid the request")
        length = b"9" if mood == "/half" else b"4"
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", length)]})
        await send({"type": "http.response.body", "body": b"he", "more_body": True})
        if mood == "/slow":
            await asyncio.sleep(0.02)
        await send({"type": "http.response.body", "body": b"re"})


class TestGivenBack:
    @pytest.mark.parametrize("seed", range(4))
    async def test_whatever_comes_of_requests_in_the_end_all_places_are_free(
        self, seed: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """And who is told that nothing was done has had nothing sent that writes."""
        monkeypatch.setattr(calling, "ANSWER", 0.2)
        chance, moody, listener = random.Random(seed), Moody(), listen("127.0.0.1", 0, "PORT")
        inside = f"http://127.0.0.1:{listener.getsockname()[1]}"
        dead = Cell(3, "", "http://127.0.0.1:9")
        said, not_done = Counter[str](), set[bytes]()

        async def ask(others: OtherCells, number: int) -> None:
            chance = random.Random(1000 * seed + number)
            cell = chance.choice((Cell(SECOND, "", inside),) * 9 + (dead,))
            mood, method = chance.choice(MOODS), chance.choice(("GET", "POST"))
            asker, body = Asker(f"address {chance.randrange(12)}", f"merchant {chance.randrange(20)}"), b"%d" % number
            leaves = chance.random() < 0.2
            try:
                async with others.asked(cell, method, mood, [], body, asker=asker) as answer:
                    said["head"] += 1
                    if leaves:
                        raise ClientDisconnect
                    assert [part async for part in answer.parts()]
                    said["whole"] += 1
            except Unavailable as error:
                said[type(error).__name__] += 1
                if method == "POST":
                    not_done.add(body)
            except (Unsure, ClientDisconnect, aiohttp.ClientError, TimeoutError) as error:
                said[type(error).__name__] += 1

        async with Serving(moody.answer, {}).at(listener), other_cells() as others:
            asked = []
            for number in range(300):
                asked.append(asyncio.create_task(ask(others, number)))
                # More than there are places come before the first of them is sent.
                if number > 2 * AT_ONCE:
                    await asyncio.sleep(chance.choice((0, 0, 0, 0.002)))
                if chance.random() < 0.1 and (under_way := [one for one in asked if not one.done()]):
                    chance.choice(under_way).cancel()
            done = await asyncio.gather(*asked, return_exceptions=True)
            assert {type(one) for one in done} == {type(None), asyncio.CancelledError}, done
            await all_free(others, Cell(SECOND, "", inside))
        assert not_done
        assert not not_done & moody.arrived
        assert min(said[one] for one in ("whole", "ClientDisconnect", "AnswerLost", "CellAway", "NoPlace")) > 0, said


class TestTheRule:
    """Whoever comes and goes in whatever order."""

    @given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 9), st.booleans()), max_size=200))
    def test_seven_senders_never_fill_a_cell(self, moves: list[tuple[int, int, bool]]) -> None:
        places, held = Places(), list[ExitStack]()
        for sender, named, goes in moves:
            stack = ExitStack()
            with suppress(NoPlace):
                stack.enter_context(places.taken(SECOND, Asker(f"address {sender}", f"merchant {named}")))
                held.append(stack)
            if goes and held:
                held.pop(sender % len(held)).close()
        with places.taken(SECOND, Asker("address of somebody else", "merchant of somebody else")):
            pass
        for stack in held:
            stack.close()
        with ExitStack() as all_of_them:
            for one in range(AT_ONCE):
                all_of_them.enter_context(places.taken(SECOND, Asker(f"address {one}")))

    def test_one_full_cell_takes_no_place_of_another(self) -> None:
        places = Places()
        with ExitStack() as full:
            for one in range(AT_ONCE):
                full.enter_context(places.taken(SECOND, Asker(f"address {one}")))
            with pytest.raises(NoPlace):
                full.enter_context(places.taken(SECOND, Asker("one more")))
            full.enter_context(places.taken(3, Asker("address 1")))
