"""Two cells behind HAProxy as `deploy/haproxy/cells.cfg` has it, by maps of `paydesk cell maps`:
each customer's payment is made where their merchant is, also when one cell is dead, and when their
merchant moves.

And without it, in a browser: an operator sees all cells, and goes from one to the other.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pyotp
import pytest
from playwright.async_api import Page, expect
from tests.conftest import migrated_database
from tests.e2e.looks import flaws
from tests.e2e.running import PATIENCE_MS, OpenPage
from tests.lengths import long
from tests.processes import Kept, environment, eventually, free_port
from tests.shopfront import open_page, press_pay
from tests.web.account.conftest import CHEAP, PASSWORD
from tests.web.cells.people import enter_both, open_in
from tests.web.cells.two_cells import HOME, SECOND, entries_of, form_of

from paydesk.adapters.vault import Vault
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database, connected
from paydesk.domain.accounts.access_needs import Client, Gate
from paydesk.domain.accounts.passwords import Passwords
from paydesk.domain.alarms.kinds import AlarmKind
from paydesk.domain.alarms.raising import Alarm, raise_alarms
from paydesk.domain.cells.adding import add_cell, follow
from paydesk.domain.cells.directory import Cell, Entry, Kind, enter, name_of
from paydesk.domain.merchants.merchant import Merchant, create_merchant
from paydesk.domain.moving.copying import Side
from paydesk.domain.moving.moving import move_merchant
from paydesk.domain.moving.steps import Move
from paydesk.web.cells.marks import HEADER

CONFIGURATION = Path(__file__).parents[2] / "deploy" / "haproxy" / "cells.cfg"
PAYMENTS = "/api/v1/payments"
UNLIMITED, MANY = ("FORMS_PER_MINUTE", "CALLS_PER_MINUTE", "TRIES_PER_CARD"), 1_000_000
"""All come from one address, with one card."""


HOSTS = {HOME: "127.0.0.1", SECOND: "localhost"}
"""Names that lead to this machine; a browser keeps the cookies of each apart."""


@dataclass
class Fleet:
    """Both cells by their numbers, and a browser before HAProxy."""

    databases: dict[int, Database]
    merchants: dict[int, Merchant]
    serving: dict[int, Kept]
    ports: dict[int, int]
    web: httpx.AsyncClient
    maps: Callable[[], None]
    folder: Path

    async def orders_and_pays(self, cell: int) -> str:
        """A customer of a cell's merchant comes to HAProxy; where the shop gets them back."""
        path = await open_page(self.web, form_of(self.merchants[cell]))
        assert "Golden Ticket" in (await self.web.get(path)).text
        paid = await press_pay(self.web, path)
        assert paid.status_code == 303, paid.text
        return paid.headers["location"]

    async def paid(self) -> dict[int, int]:
        """How many payments were made in each cell."""
        return {
            number: await each.fetchval("select count(*) from payment where state = 'captured'")
            for number, each in self.databases.items()
        }

    async def hears_on_a_page_that_it_is_away(self, cell: int) -> None:
        """A customer of a cell's merchant is told to come back, from the first moment on; on a page
        once HAProxy has seen that the cell is down.
        """
        for _ in range(600):
            page = await self.web.post("/payment/form", data=form_of(self.merchants[cell]))
            assert (page.status_code, page.headers.get("retry-after")) == (503, "3")
            if "<html" in page.text:
                return
            await asyncio.sleep(0.05)
        raise AssertionError(page.text)

    async def tries_to_log_in(self, cell: int) -> None:
        """Who knows an address of a cell's, and no password, comes to that cell, and learns by no
        cookie that the address is known.
        """
        tries = self.tries()
        entry = await self.web.post("/account/login", data={"email": f"Owner{cell}@shop.example"})
        assert entry.status_code != 303
        assert "paydesk_cell" not in entry.headers.get("set-cookie", "")
        wanted = {number: count + (number == cell) for number, count in tries.items()}
        await eventually(lambda: self.tries() == wanted, "it came there", self.serving[cell].tail)

    def tries(self) -> dict[int, int]:
        """How many forms have come to each cell, of log-ins too."""
        return {
            number: sum(one.get("method") == "POST" for one in kept.events) for number, kept in self.serving.items()
        }

    def passed_on(self, cell: int) -> int:
        """How often a cell has had another one answer."""
        return sum(one["event"] == "passed on" for one in self.serving[cell].events)


@contextmanager
def haproxy(folder: Path, ports: dict[int, int]) -> Iterator[str]:
    """HAProxy by the documented configuration, with other places; its address."""
    said, port = CONFIGURATION.read_text(), free_port()
    said = said.replace("/etc/haproxy/cells", str(folder))
    said = re.sub(r"bind :8443 .*", f"bind 127.0.0.1:{port}", said)
    for number in (HOME, SECOND):
        said = said.replace(f"10.0.{number}.1:8000", f"127.0.0.1:{ports[number]}")
    file = folder / "cells.cfg"
    file.write_text(said)
    command = ["haproxy", "-db", "-f", str(folder / "keys.cfg"), "-f", str(file)]
    process = subprocess.Popen(command)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


@pytest.fixture
async def fleet(server_url: str, vault: Vault, deployment_keys: dict[str, str], tmp_path: Path) -> AsyncIterator[Fleet]:
    if shutil.which("haproxy") is None:
        pytest.skip("NO HAPROXY: CELLS BEHIND IT WERE NOT TRIED. Install Debian's haproxy.")
    async with AsyncExitStack() as stack:
        urls = {
            number: await stack.enter_async_context(migrated_database(server_url, cell=number))
            for number in (HOME, SECOND)
        }
        databases = {number: await stack.enter_async_context(connected(url, most=4)) for number, url in urls.items()}
        ports = {number: free_port() for number in urls}
        merchants = await _joined(databases, vault, ports)
        serving = {
            number: await stack.enter_async_context(_serving(number, urls, ports, deployment_keys, tmp_path))
            for number in urls
        }
        maps = partial(_write_maps, urls[HOME], deployment_keys, tmp_path)
        maps()
        address = stack.enter_context(haproxy(tmp_path, ports))
        web = await stack.enter_async_context(httpx.AsyncClient(base_url=address, timeout=60))
        fleet = Fleet(databases, merchants, serving, ports, web, maps, tmp_path)
        await _answers(web)
        yield fleet
        for each in serving.values():
            await each.stop()


@dataclass
class Walked:
    """Both cells by their numbers, as browsers reach them, and an operator of both."""

    databases: dict[int, Database]
    serving: dict[int, Kept]
    addresses: dict[int, str]
    email: str
    secret: str


@pytest.fixture
async def walked(
    server_url: str, vault: Vault, deployment_keys: dict[str, str], tmp_path: Path
) -> AsyncIterator[Walked]:
    async with AsyncExitStack() as stack:
        urls = {
            number: await stack.enter_async_context(migrated_database(server_url, cell=number))
            for number in (HOME, SECOND)
        }
        databases = {number: await stack.enter_async_context(connected(url, most=2)) for number, url in urls.items()}
        ports = {number: free_port() for number in urls}
        addresses = {number: f"http://{HOSTS[number]}:{port}" for number, port in ports.items()}
        await _joined(databases, vault, ports, addresses)
        email = "ops@pay.example"
        secret = ""
        for number, database in databases.items():
            gate, client = Gate(database, vault, Passwords(hasher=CHEAP)), Client("192.0.2.10")
            made = await open_in(gate, email, client, shop=f"Tea in {number}", operator=True, second_factor=True)
            secret = made.secret if number == HOME else secret
        await enter_both(databases.values(), vault, email)
        serving = {}
        for number in urls:
            begun = _serving(number, urls, ports, deployment_keys, tmp_path, BASE_URL=addresses[number])
            serving[number] = await stack.enter_async_context(begun)
        yield Walked(databases, serving, addresses, email, secret)
        for each in serving.values():
            await each.stop()


async def _joined(
    databases: dict[int, Database], vault: Vault, ports: dict[int, int], addresses: dict[int, str] | None = None
) -> dict[int, Merchant]:
    """A merchant in each cell, known in both."""
    merchants = {
        number: await create_merchant(each, vault, name=f"Shop {number}", email="owner@shop.example", now=utc_now())
        for number, each in databases.items()
    }
    for each in databases.values():
        for number, port in ports.items():
            person = Entry(Kind.email, name_of(vault, Kind.email, f"owner{number}@shop.example"))
            address = addresses[number] if addresses else f"http://pay{number}.test"
            cell = Cell(number, address, f"http://127.0.0.1:{port}")
            await add_cell(each, cell, database_id=f"database of {number}", now=utc_now())
            await enter(each, [*entries_of(vault, merchants[number]), person], number, now=utc_now())
        await follow(each, HOME)
    return merchants


@asynccontextmanager
async def _serving(
    number: int, urls: dict[int, str], ports: dict[int, int], keys: dict[str, str], folder: Path, **more: str
) -> AsyncIterator[Kept]:
    settings = {
        "CELL": number,
        "DATABASE_URL": urls[number],
        "DATA_DIR": folder / str(number),
        "PORT": ports[number],
        "METRICS_PORT": 0,
        "TRUSTED_PROXIES": "127.0.0.1/32",
        "SIMULATOR_LATENCY": 0,
        **dict.fromkeys(UNLIMITED, MANY),
        **({"HOME_DATABASE_URL": urls[HOME]} if number != HOME else {}),
        **{name.upper(): value for name, value in keys.items()},
        **more,
    }
    (folder / str(number)).mkdir()
    command = [sys.executable, "-m", "paydesk", "serve"]
    async with Kept(f"serve {number}", command, environment(settings), "ready to answer").running() as kept:
        await eventually(lambda: bool(kept.ready), "it serves", kept.tail)
        yield kept


async def until_it_is_done(ask: Callable[[], Awaitable[httpx.Response]], wanted: int) -> httpx.Response:
    """Ask again for as long as we are told to; no answer but that and what is `wanted` comes."""
    for _ in range(600):
        answer = await ask()
        if answer.status_code == wanted:
            return answer
        assert (answer.status_code, "retry-after" in answer.headers) == (503, True), answer.text
        await asyncio.sleep(0.05)
    raise AssertionError("it never ends")


@dataclass
class Custom:
    """Who comes to a merchant all the time, by HAProxy: customers who order and pay, and a program
    that reads.
    """

    web: httpx.AsyncClient
    merchant: Merchant
    orders: int = 0
    paid: int = 0
    read: int = 0
    closed: bool = False

    async def buy(self) -> None:
        while not self.closed:
            self.orders += 1
            form = form_of(self.merchant)
            ordered = await until_it_is_done(partial(self.web.post, "/payment/form", data=form), 303)
            pay = partial(press_pay, self.web, ordered.headers["location"])
            assert (await until_it_is_done(pay, 303)).headers["location"].startswith("https://shop.example/thanks")
            self.paid += 1

    async def look(self) -> None:
        while not self.closed:
            headers = {"X-ApiKey": self.merchant.private_key}
            await until_it_is_done(partial(self.web.get, PAYMENTS, headers=headers), 200)
            self.read += 1

    async def goes_on(self) -> None:
        """Wait until each of them has got what they want, from here on."""
        paid, read = self.paid, self.read
        for _ in range(600):
            if self.paid > paid + 1 and self.read > read + 1:
                return
            await asyncio.sleep(0.05)
        raise AssertionError("nobody gets through")


def _write_maps(url: str, keys: dict[str, str], folder: Path) -> None:
    settings = {"DATABASE_URL": url, "DATA_DIR": folder, **{name.upper(): value for name, value in keys.items()}}
    command = [sys.executable, "-m", "paydesk", "cell", "maps", str(folder)]
    subprocess.run(command, env=environment(settings), check=True)


async def _answers(web: httpx.AsyncClient) -> None:
    for _ in range(600):
        try:
            if (await web.get("/healthz")).status_code == 200:
                return
        except httpx.TransportError:
            pass
        await asyncio.sleep(0.05)
    raise AssertionError("HAProxy does not answer")


async def test_haproxy_leads_each_to_their_cell_and_cells_what_it_missed(fleet: Fleet) -> None:
    for cell in (HOME, SECOND):
        assert await fleet.orders_and_pays(cell) == "https://shop.example/thanks?order=1"
        key = {"X-ApiKey": fleet.merchants[cell].private_key}
        called = await fleet.web.get(PAYMENTS, headers={**key, HEADER: "1 203.0.113.5 live 00"})
        assert (called.status_code, len(called.json()["data"])) == (200, 1)
        assert (await fleet.web.get(f"/brand/{fleet.merchants[cell].id}/1/logo")).status_code == 404
        await fleet.tries_to_log_in(cell)
    assert await fleet.paid() == {HOME: 1, SECOND: 1}
    assert (fleet.passed_on(HOME), fleet.passed_on(SECOND)) == (0, 0)

    key = {"X-ApiKey": fleet.merchants[SECOND].private_key}
    async with httpx.AsyncClient(timeout=60, headers=key) as direct:
        there, here = [await direct.get(f"http://127.0.0.1:{fleet.ports[one]}{PAYMENTS}") for one in (SECOND, HOME)]
    assert (here.status_code, here.content) == (there.status_code, there.content)
    await eventually(lambda: fleet.passed_on(HOME) == 1, "it was passed on", fleet.serving[HOME].tail)

    await fleet.serving.pop(SECOND).stop()
    await fleet.hears_on_a_page_that_it_is_away(SECOND)
    entry = await fleet.web.post("/account/login", data={"email": f"owner{SECOND}@shop.example"})
    assert (entry.status_code, entry.headers.get("retry-after")) == (503, "3"), "its password is not said to be wrong"
    for path in ("/account/password/none", "/account/invitation/none", "/account/1/overview", "/operator/overview"):
        theirs = {"Host": f"pay{SECOND}.test", "Cookie": f"paydesk_cell=cell{SECOND}"}
        page = await fleet.web.get(path, headers=theirs)
        assert (page.status_code, page.headers.get("retry-after")) == (503, "3"), "no link is said to be used"
    assert await fleet.orders_and_pays(HOME) == "https://shop.example/thanks?order=1"
    assert await fleet.paid() == {HOME: 2, SECOND: 1}


async def test_haproxy_leads_who_follows_a_link_to_the_cell_that_made_it(fleet: Fleet) -> None:
    """So an operator of both cells logs in in the second one for the first time."""
    name = {"Host": f"pay{SECOND}.test"}
    login = partial(fleet.web.post, "/account/login", data={"email": f"owner{HOME}@shop.example"})
    tries = fleet.tries()
    await login(headers=name)
    await eventually(lambda: fleet.tries()[HOME] == tries[HOME] + 1, "by the address", fleet.serving[HOME].tail)
    elsewhere = {**name, "Cookie": f"paydesk_cell=cell{HOME}"}
    for path in ("/account/password/none", "/account/invitation/none", "/account/arrive"):
        came = await fleet.web.get(path, headers=elsewhere)
        assert f"paydesk_cell=cell{SECOND};" in came.headers["set-cookie"], path
        assert "paydesk_here=1;" in came.headers["set-cookie"], path
    stays = await login(headers={**name, "Cookie": f"paydesk_cell=cell{HOME}; paydesk_here=1"})
    assert f"paydesk_cell=cell{SECOND};" in stays.headers["set-cookie"]
    page = await fleet.web.get("/account/login", headers=elsewhere)
    assert "paydesk_here" not in page.headers.get("set-cookie", "")


@long
async def test_a_merchant_moves_while_customers_and_programs_come(fleet: Fleet, vault: Vault) -> None:
    merchant, home = fleet.merchants[HOME], fleet.databases[HOME]
    custom = Custom(fleet.web, merchant)
    there = Side(fleet.databases[SECOND], vault)
    async with asyncio.TaskGroup() as tasks:
        for who in (custom.buy, custom.buy, custom.look):
            tasks.create_task(who())
        await custom.goes_on()
        assert fleet.passed_on(HOME) == 0
        await move_merchant(Move(Side(home, vault), there, home, merchant.id, SECOND, same_simulator=True))
        await custom.goes_on()
        custom.closed = True
    assert custom.paid == custom.orders
    assert await fleet.paid() == {HOME: 0, SECOND: custom.paid}
    assert fleet.passed_on(HOME) > 0

    fleet.maps()
    passed_on = fleet.passed_on(HOME)
    with haproxy(fleet.folder, fleet.ports) as address:
        async with httpx.AsyncClient(base_url=address, timeout=60) as web:
            await _answers(web)
            assert await replace(fleet, web=web).orders_and_pays(HOME) == "https://shop.example/thanks?order=1"
            assert (await web.get(PAYMENTS, headers={"X-ApiKey": merchant.private_key})).status_code == 200
    assert await fleet.paid() == {HOME: 0, SECOND: custom.paid + 1}
    assert fleet.passed_on(HOME) == passed_on


async def _logged_in(walked: Walked, open_page: OpenPage, **options: Any) -> Page:
    """The console of the first cell, in the operator's browser."""
    page = await open_page(f"{walked.addresses[HOME]}/account/login?next=/operator/cells", **options)
    page.set_default_timeout(PATIENCE_MS)
    await page.get_by_label("E-mail address").fill(walked.email)
    await page.get_by_label("Password").fill(PASSWORD)
    await page.get_by_role("button", name="Log in").click()
    await page.get_by_label("Code").fill(pyotp.TOTP(walked.secret).at(utc_now() + timedelta(seconds=30)))
    await page.get_by_role("button", name="Go on").click()
    await page.wait_for_url("**/operator/cells")
    return page


@pytest.mark.browser
@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
async def test_an_operator_logs_in_once_and_walks_to_another_cell(
    walked: Walked, open_page: OpenPage, script: bool
) -> None:
    alarm = Alarm(AlarmKind.set_aside, "payment 8", "no such currency")
    await raise_alarms(walked.databases[SECOND], [alarm], now=utc_now())
    page = await _logged_in(walked, open_page, java_script_enabled=script)
    cell = page.get_by_role("region", name="Cell 2")
    await expect(cell).to_contain_text("Answers")
    await expect(cell.locator(".lines > div").filter(has_text="Alarms")).to_contain_text("1")
    if script:
        assert await flaws(page) == []

    there = walked.addresses[SECOND]
    await cell.get_by_role("button", name="Open in cell 2").click()
    if not script:
        await page.get_by_role("button", name="Go on").click()
    await page.wait_for_url(f"{there}/operator/overview")
    await expect(page.get_by_text(f"You are logged in here as {walked.email}")).to_be_visible()
    await expect(page.get_by_text("Operator's console").first).to_be_visible()
    await page.goto(f"{there}/operator/alarms")
    await expect(page.get_by_text("payment 8").first).to_be_visible()

    await walked.serving.pop(SECOND).stop()
    for _ in range(600):
        await page.goto(f"{walked.addresses[HOME]}/operator/cells")
        if await page.get_by_text("Does not answer").count():
            break
        await asyncio.sleep(0.1)
    await expect(page.get_by_role("region", name="Cell 2")).to_contain_text("Asked in vain since")
    await expect(page.get_by_role("region", name="Cell 1")).to_contain_text("Answers")
