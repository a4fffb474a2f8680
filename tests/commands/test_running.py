"""From nothing to a purchase, stopping, starting again, and refusing in one clear line."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import socket
import stat
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import psutil
import pytest
from tests.commands.conftest import Refusal, one_line
from tests.lengths import long
from tests.processes import PATIENCE, environment, eventually, free_port, lives, words_of

from paydesk.adapters.vault import Vault, generate_key_setting, generate_secret
from paydesk.core.clock import utc_now
from paydesk.database.embedded import EmbeddedServer
from paydesk.database.pool import Database, connected
from paydesk.domain.merchants.merchant import create_merchant
from paydesk.settings import RUNNING_FILE
from paydesk_client import Gateway

CARD, CVC = "4242424242424242", "737"
CUSTOMER = {
    "email": "ada@example.com",
    "number": CARD,
    "expiry": "12 / 39",
    "cvc": CVC,
    "holder": "Ada Lovelace",
    "country": "GB",
}
LAST_CARD = "4000000000009987"
"""Ends the start-up block."""


@dataclass
class Program:
    """A running `paydesk` command, and what it said."""

    process: asyncio.subprocess.Process
    address: str
    shop: str
    out: list[str] = field(default_factory=list)
    err: list[str] = field(default_factory=list)

    @property
    def block(self) -> str:
        return "\n".join(self.out)

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.err]

    def key(self, which: str) -> str:
        return self.found(rf"{which} +(\w+)")

    def found(self, pattern: str) -> str:
        match = re.search(pattern, self.block)
        assert match is not None, self.block
        return match[1]

    def family(self) -> list[psutil.Process]:
        """The process and all that it started; PostgreSQL too."""
        here = psutil.Process(self.process.pid)
        return [here, *here.children(recursive=True)]

    async def ready(self) -> None:
        await eventually(
            lambda: any(LAST_CARD in line for line in self.out) or self.process.returncode is not None,
            "paydesk run is ready",
            lambda: "\n".join(self.err),
        )
        assert self.process.returncode is None, "\n".join(self.err)

    async def ended(self) -> int:
        async with asyncio.timeout(PATIENCE):
            return await self.process.wait()

    async def stop(self, number: signal.Signals = signal.SIGINT) -> int:
        """Send a signal, and wait until nothing is left of the family; returns the exit status."""
        family = self.family()
        self.process.send_signal(number)
        status = await self.ended()
        await eventually(lambda: not any(map(lives, family)), "all processes are gone")
        return status

    async def kill(self) -> None:
        """Kill the whole family at once."""
        if self.process.returncode is None:
            for one in self.family():
                with suppress(psutil.NoSuchProcess):
                    one.kill()
        await self.process.wait()


@asynccontextmanager
async def paydesk(*words: str, **settings: object) -> AsyncIterator[Program]:
    """Start a command on free ports; whatever is left of it at the end of the block is killed."""
    ports = {name: free_port() for name in ("PORT", "DEMO_PORT")} | {"METRICS_PORT": 0}
    given = {"LOG_FORMAT": "json"} | ports | settings
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "paydesk",
        *words,
        env=environment(given),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
        limit=2**20,
    )
    program = Program(process, f"http://127.0.0.1:{given['PORT']}", f"http://127.0.0.1:{given['DEMO_PORT']}")
    assert process.stdout is not None
    assert process.stderr is not None
    listening = [
        asyncio.create_task(listen(process.stdout, program.out)),
        asyncio.create_task(listen(process.stderr, program.err)),
    ]
    try:
        yield program
    finally:
        await program.kill()
        await asyncio.gather(*listening)


async def listen(said: asyncio.StreamReader, lines: list[str]) -> None:
    async for line in said:
        lines += [line.decode().rstrip("\n")]


@asynccontextmanager
async def a_browser() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(follow_redirects=True, timeout=PATIENCE) as browser:
        yield browser


async def buy(browser: httpx.AsyncClient, program: Program) -> httpx.Response:
    """Buy a coffee in the sample shop; the answer is the last page, its history the way there."""
    order = await browser.post(f"{program.shop}/buy", data={"article": "coffee", "sign_version": "v2"})
    checkout = await post_form(browser, order)
    assert checkout.status_code == 200, checkout.text
    return await browser.post(f"{checkout.url}/pay", data=CUSTOMER)


async def post_form(browser: httpx.AsyncClient, page: httpx.Response) -> httpx.Response:
    """Submit the page's hidden form, as its button does."""
    form = re.search(r'<form[^>]*action="([^"]+/payment/form)".*?</form>', page.text, re.S)
    assert form is not None, page.text
    fields = re.findall(r'name="([^"]+)" value="([^"]*)"', form[0])
    return await browser.post(unescape(form[1]), data={unescape(name): unescape(value) for name, value in fields})


async def paid_at_the_shop(browser: httpx.AsyncClient, thanks: str | httpx.URL) -> str:
    """Load the shop's thank-you page until the pingback is there; returns the page."""
    async with asyncio.timeout(PATIENCE):
        while "<strong>Paid.</strong>" not in (page := (await browser.get(thanks)).text):  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    return page


@pytest.fixture(scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Program]:
    """`paydesk run` on a data directory of its own; who kills its processes comes last."""
    async with paydesk("run", "--verbose", DATA_DIR=tmp_path_factory.mktemp("running") / "data") as program:
        await program.ready()
        yield program


async def test_the_start_ends_with_addresses_keys_and_test_cards(running: Program) -> None:
    assert running.shop in running.block
    for below in ("/payment/form", "/account", "/docs", "/sandbox"):
        assert f"{running.address}{below}\n" in running.block
    assert len(running.key("public")) >= 32
    assert len(running.key("private")) >= 32
    assert CARD in running.block


async def test_a_command_beside_it_works_as_it_was_started(running: Program) -> None:
    data = Path(running.found(r"Data +(\S+)"))
    assert "127.0.0.0/8" in (data / RUNNING_FILE).read_text()
    merchant_id = (data / "demo" / "merchant").read_text()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "paydesk", "clock", "advance", merchant_id, "31d", "--json"),
        env=environment({"DATA_DIR": data}),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert (process.returncode, err) == (0, b"")
    assert json.loads(out)["counts"] == {}, "nothing was due: nobody has bought anything yet"


async def test_a_purchase_in_the_sample_shop_ends_in_a_verified_pingback(running: Program) -> None:
    async with a_browser() as browser:
        thanks = await buy(browser, running)
        assert str(thanks.url).startswith(f"{running.shop}/thanks")
        assert "payment_order" in await paid_at_the_shop(browser, thanks.url)


@long
async def test_the_customers_receipt_is_in_the_mailbox_for_this_machine_only(running: Program) -> None:
    mailbox = running.found(r"Mailbox +(\S+)")
    async with a_browser() as browser:
        await buy(browser, running)
        async with asyncio.timeout(PATIENCE):
            while "Your receipt from Fern &amp; Kettle" not in (page := (await browser.get(mailbox)).text):  # noqa: ASYNC110
                await asyncio.sleep(0.1)
        assert CUSTOMER["email"] in page
        assert (await browser.get(mailbox, headers={"Host": "pay.example"})).status_code == 421


async def test_the_printed_keys_sign_forms_of_ones_own(running: Program) -> None:
    gateway = Gateway(running.key("public"), running.key("private"), base_url=running.address)
    async with a_browser() as browser:
        page = await browser.post(**order(gateway, "own-1"))
    assert page.status_code == 200
    assert "Pay 12.50" in page.text.replace("$", "").replace("US", "")


def order(gateway: Gateway, reference: str) -> dict[str, Any]:
    """A signed form, as arguments of a post."""
    form = gateway.payment_form()
    fields = {
        "merchant_order_id": reference,
        "amount": "12.50",
        "currency": "USD",
        "description": "Tea",
        "success_url": "https://shop.example/thanks",
    }
    return {"url": form.action, "data": form.build_parameters(fields)}


async def test_keys_and_database_are_private(running: Program) -> None:
    data = Path(running.found(r"Data +(\S+)"))
    assert stat.S_IMODE((data / "settings.env").stat().st_mode) == 0o600
    assert stat.S_IMODE((data / "socket").stat().st_mode) == 0o700
    listening = list[object]()
    for process in running.family():
        # Processes of the server come and go.
        with suppress(psutil.NoSuchProcess):
            if process.name() == "postgres":
                listening.append(process.net_connections(kind="inet"))
    assert listening
    assert listening == [[]] * len(listening)


async def test_metrics_count_payments_pingbacks_and_request_times(running: Program) -> None:
    async with a_browser() as browser:
        await paid_at_the_shop(browser, (await buy(browser, running)).url)
        shown = (await browser.get(running.found(r"Metrics +(\S+)"))).text
    assert re.search(r'paydesk_payments_total\{outcome="approved"\} [1-9]', shown)
    assert "paydesk_pingback_lag_seconds_count" in shown
    assert "paydesk_pingbacks_backlog" in shown
    assert "paydesk_pingbacks_claimed_total" in shown
    assert re.search(r'paydesk_request_seconds_count\{route="/checkout/\{token\}/pay",status="303"\} [1-9]', shown)
    assert 'paydesk_loop_last_turn_timestamp_seconds{loop="pingbacks"}' in shown
    for process in ("web", "worker"):
        assert re.search(rf'paydesk_heartbeat_timestamp_seconds\{{pid="[0-9]+",process="{process}"\}}', shown)
    assert 'paydesk_heartbeat_timestamp_seconds{process="run"}' in shown


async def test_logs_are_json_lines_with_request_ids_and_without_secrets(running: Program) -> None:
    async with a_browser() as browser:
        thanks = await buy(browser, running)
    paying = thanks.history[0]
    request_id, token = paying.headers["X-Request-Id"], paying.url.path.split("/")[2]
    await eventually(lambda: request_id in "".join(running.err), "the request is logged")
    answered = [event for event in running.events if event["event"] == "answered"]
    assert {"/payment/form", "/checkout/{token}/pay"} <= {event["route"] for event in answered}
    assert len({event["request_id"] for event in answered}) == len(answered)
    for secret in (CARD, f'"{CVC}"', token, running.key("private"), "ada@example.com"):
        assert secret not in "\n".join(running.err)


@long
async def test_the_terminal_tells_results_and_refusals_instead_of_requests(tmp_path: Path) -> None:
    async with paydesk("run", DATA_DIR=tmp_path / "data", LOG_FORMAT="console") as program, a_browser() as browser:
        await program.ready()
        await buy(browser, program)
        refused = await browser.post(f"{program.address}/payment/form", data={"api_key": "nobody's"})
        assert refused.status_code == 404
        await eventually(lambda: lines_told(program, "pingback") != [], "the result is told")
        assert "payment " in lines_told(program, "pingback")[0]
        assert ": ok (" in lines_told(program, "pingback")[0]
        assert "404: api_key is unknown" in lines_told(program, "refused form")[0]
        assert not any("answered" in line and "route" in line for line in program.err), "requests are no lines"


def lines_told(program: Program, what: str) -> list[str]:
    return [line for line in program.err if re.match(rf"\d\d:\d\d:\d\d  {what} +", line)]


@long
async def test_two_data_directories_run_side_by_side(running: Program, tmp_path: Path) -> None:
    async with paydesk("run", DATA_DIR=tmp_path / "data") as another, a_browser() as browser:
        await another.ready()
        assert another.key("public") != running.key("public")
        for program in (running, another):
            await paid_at_the_shop(browser, (await buy(browser, program)).url)
        gateway = Gateway(running.key("public"), running.key("private"), base_url=another.address)
        assert (await browser.post(**order(gateway, "elsewhere"))).status_code == 404


@long
async def test_it_recovers_when_everything_was_killed_and_refuses_a_newer_schema(tmp_path: Path) -> None:
    data = tmp_path / "data"
    # A pingback that was being sent is sent again once its lease is over, a while after its answer
    # would be too late.
    async with paydesk("run", DATA_DIR=data, PINGBACK_TIMEOUT=1) as killed, a_browser() as browser:
        await killed.ready()
        thanks = await buy(browser, killed)
        assert thanks.url.path == "/thanks"
        await killed.kill()
    ports = {"PORT": killed.address.rpartition(":")[2], "DEMO_PORT": killed.shop.rpartition(":")[2]}
    async with paydesk("run", DATA_DIR=data, PINGBACK_TIMEOUT=1, **ports) as again, a_browser() as browser:
        await again.ready()
        assert again.key("private") == killed.key("private")
        await paid_at_the_shop(browser, thanks.url)
        await paid_at_the_shop(browser, (await buy(browser, again)).url)
        await from_the_future(data)
        assert await again.stop() == 0
    async with paydesk("run", DATA_DIR=data) as refused:
        assert await refused.ended() == 1
    assert "needs code that knows version 9999" in one_line(refused.err)


def part(program: Program, name: str) -> psutil.Process | None:
    """The web or the worker process of `paydesk run`, while it runs."""
    for process in program.family():
        if {name, "paydesk.commands.parts"} <= {*words_of(process)}:
            return process
    return None


async def is_started_again(program: Program, name: str, killed: psutil.Process) -> psutil.Process:
    """Kill a process of `paydesk run` as no error handler can notice;
    returns the one that took its place.
    """
    killed.kill()

    def has_another() -> bool:
        another = part(program, name)
        return another is not None and another.pid != killed.pid

    await eventually(has_another, f"another {name} process", lambda: "\n".join(program.err))

    def ends() -> list[dict[str, Any]]:
        said = [event for event in program.events if event["event"].startswith("a process has ended")]
        return [event for event in said if event["process"] == name]

    await eventually(lambda: bool(ends()), "it says so")
    (said,) = ends()
    assert (said["ended"], said["level"]) == ("SIGKILL", "error")
    another = part(program, name)
    assert another is not None
    return another


@long
async def test_customers_are_served_while_the_worker_is_gone_and_it_comes_back(running: Program) -> None:
    async with a_browser() as browser:
        worker = part(running, "worker")
        assert worker is not None
        worker.suspend()
        thanks = await buy(browser, running)
        assert str(thanks.url).startswith(f"{running.shop}/thanks")
        assert "<strong>Paid.</strong>" not in (await browser.get(thanks.url)).text, "nobody has sent a pingback"
        await is_started_again(running, "worker", worker)
        await paid_at_the_shop(browser, thanks.url)


@long
async def test_a_web_process_that_dies_is_started_again_on_its_ports(running: Program) -> None:
    async with a_browser() as browser:
        web = part(running, "web")
        assert web is not None
        await is_started_again(running, "web", web)
        # The parent holds the sockets: who comes meanwhile waits, and is not refused.
        await paid_at_the_shop(browser, (await buy(browser, running)).url)


@long
async def test_ctrl_c_ends_all_of_it_and_a_second_run_has_all_the_data(running: Program) -> None:
    # The last one that asks for it.
    data = running.found(r"Data +(\S+)")
    ports = {"PORT": running.address.rpartition(":")[2], "DEMO_PORT": running.shop.rpartition(":")[2]}
    async with a_browser() as browser:
        thanks = await buy(browser, running)
        await paid_at_the_shop(browser, thanks.url)
        assert await running.stop(signal.SIGINT) == 0
    async with paydesk("run", DATA_DIR=data, **ports) as second, a_browser() as browser:
        await second.ready()
        assert (second.key("public"), second.key("private")) == (running.key("public"), running.key("private"))
        await paid_at_the_shop(browser, thanks.url)
        checkout = next(step.url for step in thanks.history if step.url.path.endswith("/pay")).copy_with(query=None)
        page = await browser.get(str(checkout).removesuffix("/pay"))
        assert "This order is paid" in page.text
        assert await second.stop(signal.SIGTERM) == 0


@long
async def test_nothing_is_left_when_the_parent_alone_is_killed(tmp_path: Path) -> None:
    async with paydesk("run", DATA_DIR=tmp_path / "data") as program:
        await program.ready()
        family = program.family()
        assert {"web", "worker"} <= {word for process in family for word in words_of(process)}
        program.process.kill()
        await eventually(lambda: not any(map(lives, family)), "all processes are gone")


async def from_the_future(data: Path) -> None:
    """Pretend that newer code has migrated the database."""
    connection = await asyncpg.connect(EmbeddedServer(data).url)
    await connection.execute("insert into schema_migration (number, name) values (9999, 'from the future')")
    await connection.close()


@pytest.mark.parametrize("setting", ["PORT", "DEMO_PORT", "METRICS_PORT"])
async def test_a_port_in_use_is_one_clear_line(tmp_path: Path, setting: str, refusal: Refusal) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        line = await refusal("run", DATA_DIR=tmp_path / "data", **{setting: port})
    assert f"port {port} is in use" in line
    assert f"PAYDESK_{setting}" in line


async def test_an_address_for_metrics_that_is_not_this_machine_s_is_one_clear_line(
    tmp_path: Path, refusal: Refusal
) -> None:
    line = await refusal("run", DATA_DIR=tmp_path / "data", METRICS_HOST="192.0.2.1")
    assert "cannot listen on 192.0.2.1" in line
    assert "PAYDESK_METRICS_HOST" in line


async def test_a_directory_that_cannot_be_written_is_one_clear_line(tmp_path: Path, refusal: Refusal) -> None:
    (tmp_path / "file").write_text("not a directory")
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        line = await refusal("run", DATA_DIR=place)
        assert str(place) in line
        assert "PAYDESK_DATA_DIR" in line


@pytest.mark.parametrize("command", ["serve", "work"])
async def test_without_keys_a_service_refuses_to_start_and_names_them(
    tmp_path: Path, command: str, refusal: Refusal
) -> None:
    line = await refusal(command, DATA_DIR=tmp_path / "data")
    assert "PAYDESK_SECRET_KEY" in line
    assert "PAYDESK_VAULT_KEYS" in line


async def test_a_refusal_is_all_that_its_process_says(tmp_path: Path) -> None:
    async with paydesk("work", DATA_DIR=tmp_path / "data") as program:
        assert await program.ended() == 1
    assert "PAYDESK_SECRET_KEY" in one_line(program.err)
    assert program.out == []


@pytest.mark.parametrize("command", ["serve", "work"])
async def test_without_its_key_a_live_acquirer_keeps_a_service_from_starting(
    tmp_path: Path, command: str, refusal: Refusal
) -> None:
    keys = {"SECRET_KEY": generate_secret(), "VAULT_KEYS": generate_key_setting(), "LIVE_ACQUIRER": "stripe"}
    line = await refusal(command, DATA_DIR=tmp_path / "data", **keys)
    assert "PAYDESK_STRIPE_SECRET_KEY" in line
    assert "Stripe dashboard" in line


@pytest.mark.parametrize("command", ["serve", "work"])
async def test_without_a_key_that_something_rests_under_a_service_refuses_to_start_and_names_it(
    own_database_url: str, tmp_path: Path, command: str, refusal: Refusal
) -> None:
    keys = {"SECRET_KEY": generate_secret(), "VAULT_KEYS": generate_key_setting()}
    async with connected(own_database_url, most=2) as database:
        vault = Vault.from_settings(keys["VAULT_KEYS"], keys["SECRET_KEY"])
        await create_merchant(database, vault, name="Corner Shop", email="o@shop.example", now=utc_now())
    keys["VAULT_KEYS"] = generate_key_setting()
    line = await refusal(command, DATABASE_URL=own_database_url, DATA_DIR=tmp_path / "data", **keys)
    for part in (vault.current_key_id, "to sign pingbacks", "PAYDESK_VAULT_KEYS", "paydesk vault status"):
        assert part in line


@long
async def test_run_refuses_too(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with paydesk("run", DATA_DIR=data) as program:
        await program.ready()
        await program.stop()
    keys = data / "settings.env"
    old = re.search(r"VAULT_KEYS=(\w+):.*", keys.read_text())
    assert old is not None
    keys.write_text(keys.read_text().replace(old[0], f"VAULT_KEYS={generate_key_setting()}"))
    async with paydesk("run", DATA_DIR=data) as program:
        assert await program.ended() == 1
    assert f'"{old[1]}"' in program.err[-1]
    assert "put them back behind the first key" in program.err[-1]


@pytest.mark.parametrize("command", ["serve", "work"])
@pytest.mark.parametrize("secret", ["", "short"])
async def test_live_payments_need_the_secret_of_their_keys(
    tmp_path: Path, command: str, secret: str, refusal: Refusal
) -> None:
    keys = {"SECRET_KEY": generate_secret(), "VAULT_KEYS": generate_key_setting(), "IDEMPOTENCY_SECRET": secret}
    live = {"LIVE_ACQUIRER": "stripe", "STRIPE_SECRET_KEY": "sk_test_of_nobody"}
    line = await refusal(command, DATA_DIR=tmp_path / "data", **keys, **live)
    for part in ("PAYDESK_IDEMPOTENCY_SECRET", "openssl rand", "never change it"):
        assert part in line


@long
@pytest.mark.parametrize("workers", ["1", pytest.param("2", marks=long)])
async def test_a_payment_in_flight_is_finished_when_the_service_is_stopped(
    own_database_url: str, tmp_path: Path, workers: str
) -> None:
    keys = {"SECRET_KEY": generate_secret(), "VAULT_KEYS": generate_key_setting()}
    vault = Vault.from_settings(keys["VAULT_KEYS"], keys["SECRET_KEY"])
    settings = {"DATABASE_URL": own_database_url, "DATA_DIR": tmp_path / "data", "SIMULATOR_LATENCY": 1, **keys}
    async with (
        connected(own_database_url, most=2) as database,
        paydesk("serve", "--workers", workers, **settings) as program,
        a_browser() as browser,
    ):
        merchant = await create_merchant(database, vault, name="Corner Shop", email="o@shop.example", now=utc_now())
        await eventually(lambda: any('"ready to answer"' in line for line in program.err), "it serves")
        gateway = Gateway(merchant.public_key, merchant.private_key, base_url=program.address)
        checkout = await browser.post(**order(gateway, "in-flight"))

        url = f"{checkout.url}/pay"

        async def pay() -> httpx.Response:
            # A process that remembers nothing looks through the bank's list first, which is slow
            # here, too.
            while (answer := await browser.post(url, data=CUSTOMER, follow_redirects=False)).status_code == 503:
                assert answer.headers["Retry-After"]
                await asyncio.sleep(0.2)
            return answer

        paying = asyncio.create_task(pay())
        await state_of_payment(database, merchant.id, "processing")
        assert await program.stop(signal.SIGTERM) == 0
        assert (await paying).headers["Location"] == "https://shop.example/thanks"
        await state_of_payment(database, merchant.id, "captured")


async def state_of_payment(database: Database, merchant_id: int, state: str) -> None:
    """Wait until the merchant's payment is in this state."""
    async with asyncio.timeout(PATIENCE):
        asked = "select count(*) from payment where merchant_id = $1 and state = $2"
        while not await database.fetchval(asked, merchant_id, state):  # noqa: ASYNC110
            await asyncio.sleep(0.02)


@long
@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("work",), id="work"),
        pytest.param(("serve",), id="serve", marks=long),
        pytest.param(("serve", "--workers", "2"), id="serve --workers 2", marks=long),
    ],
)
async def test_systemd_hears_that_a_service_is_ready_that_it_lives_and_that_it_stops(
    words: tuple[str, ...], own_database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = {"SECRET_KEY": generate_secret(), "VAULT_KEYS": generate_key_setting()}
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(PATIENCE)

        async def said() -> str:
            return (await asyncio.to_thread(manager.recv, 1024)).decode()

        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        monkeypatch.setenv("WATCHDOG_USEC", "1000000")
        async with paydesk(*words, DATABASE_URL=own_database_url, DATA_DIR=tmp_path / "data", **keys) as program:
            assert await said() == "READY=1\nWATCHDOG=1", program.err
            assert [await said() for _ in range(3)] == ["WATCHDOG=1"] * 3
            assert await program.stop(signal.SIGTERM) == 0
        words_of_the_end = ["WATCHDOG=1"]
        while words_of_the_end[-1] == "WATCHDOG=1":
            words_of_the_end.append(await said())
        assert words_of_the_end[-1] == "STOPPING=1"


@long
async def test_all_processes_of_a_service_answer_for_its_metrics_and_end_with_it(
    own_database_url: str, tmp_path: Path
) -> None:
    keys = {"SECRET_KEY": generate_secret(), "VAULT_KEYS": generate_key_setting()}
    settings = {"DATABASE_URL": own_database_url, "DATA_DIR": tmp_path / "data", **keys}
    async with paydesk("serve", "--workers", "2", **settings) as program, a_browser() as browser:
        await eventually(lambda: sum('"ready to answer"' in line for line in program.err) == 2, "both serve")
        for _ in range(40):
            assert (await browser.get(f"{program.address}/readyz", headers={"Connection": "close"})).text == "ok"
        port = next(event["port"] for event in program.events if event["event"] == "metrics")
        counted = 'paydesk_request_seconds_count{route="/readyz",status="200"} 40.0'
        async with asyncio.timeout(PATIENCE):
            # A request is counted once its answer is sent, which its client may read first.
            while counted not in (await browser.get(f"http://127.0.0.1:{port}/metrics")).text:  # noqa: ASYNC110
                await asyncio.sleep(0.1)
        family = program.family()
        program.process.kill()
        await eventually(lambda: not any(map(lives, family)), "all processes are gone")
