"""What tests stand on: a database of their own, merchants,
a vault and a bank with its own record.
"""

from __future__ import annotations

import gc
import os
import secrets
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from shutil import disk_usage
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch
from urllib.parse import urlsplit, urlunsplit
from zlib import crc32

import asyncpg
import httpx
import pytest
import structlog
from hypothesis import HealthCheck, is_hypothesis_test
from hypothesis import settings as hypothesis_settings
from psutil import virtual_memory
from starlette.types import Receive, Scope, Send
from tests import set_back
from tests.databases import drop_database
from tests.lengths import WHOLE
from tests.standings import standings
from tests.together import scope_of
from tests.warm_connections import WarmConnections, warm_connections
from xdist.scheduler import LoadFileScheduling

from paydesk.adapters.acquirers.simulator import Bank, Record, SimulatedAcquirer
from paydesk.adapters.acquirers.simulator.purchase_state import Standing
from paydesk.adapters.vault import Sealed, Vault, generate_key_setting, generate_secret
from paydesk.app import create_app
from paydesk.core.clock import utc_now
from paydesk.database import programs
from paydesk.database.embedded import EmbeddedServer
from paydesk.database.migrating import migrate
from paydesk.database.pool import Database, connected
from paydesk.domain.accounts.audit import COMMAND_LINE
from paydesk.domain.business.profile_changes import accept, seen_now
from paydesk.domain.cells.numbers import begin_cell
from paydesk.domain.merchants.merchant import Merchant, create_merchant, shop_of
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk
from paydesk.equipment import payment_desk
from paydesk.settings import Settings, load_settings
from paydesk.web.checkout.services import CheckoutServices
from paydesk_client import Gateway

# A property holds or not, however long a busy machine takes for one example of it; and its
# examples may share a merchant.
hypothesis_settings.register_profile(
    "whole", deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
hypothesis_settings.register_profile(
    "short", hypothesis_settings.get_profile("whole"), max_examples=12, derandomize=True, database=None
)
hypothesis_settings.load_profile("whole" if WHOLE else "short")

# An error that is logged would else be shown with all values around it, which takes a second.
structlog.configure(
    processors=[
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.format_exc_info,
        structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback),
    ]
)

# Until all tests are collected there is nothing but what stays.
gc.disable()
SELDOM = (20_000, 20, 20)
"""When the garbage collector runs: its usual 700 objects are a small part of one request."""

LONGEST = (
    *("tests/commands/test_running.py", "tests/e2e/test_console_pages.py", "tests/upgrade/test_upgrading.py"),
    *("tests/faults/test_plays.py", "tests/faults/test_afterwards.py", "tests/e2e/test_account_getting_in.py"),
)
"""The files that take longest."""
LONG = ("tests/upgrade/*", "tests/faults/*", "tests/e2e/*", "tests/web/api/test_fuzzing.py")
"""The files that follow them: what is left for the end is short, so that all processes end
at about the same time."""
EXAMPLES, EVERY = 1, 4
"""Of more examples of one test that needs a database, where all tests are run, `make test` takes
one of so many, not the first of each test, and leaves the others to `make test-long`.
"""
PART, PARTS = map(int, os.environ.get("PART_OF_TESTS", "0/1").split("/"))
"""`2/4` where there is time for a quarter of the tests alone: the third of the four."""
APART = ("long", "soak", "ha", "containers")
"""The marks of what is run by those who ask for it."""

CARELESS = ("-c", "fsync=off", "-c", "full_page_writes=off", "-c", "autovacuum_naptime=60s", "-c", "max_wal_size=96MB")
"""Nothing here outlives its server; what does is proven under tests/faults, on a server that waits
for the disk. It has many databases that are gone soon, which need no vacuum.
"""
MEMORY, ROOM = Path("/dev/shm"), 2 * 2**30
"""Where files may be kept in memory, and the bytes that must be free there and of memory itself."""
CELL = load_settings().cell
_templates: dict[tuple[str, str], str] = {}
"""The name of a migrated database that others are copied from, by its server's address and its
locale.
"""


@pytest.fixture(scope="session")
async def server_url(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[str]:
    """A server where databases may be created: the one in PAYDESK_DATABASE_URL,
    else an embedded one.
    """
    given = os.environ.get("PAYDESK_DATABASE_URL")
    if given:
        yield given
        await _drop_templates(given)
        return
    with fast_place(tmp_path_factory) as place:
        server = EmbeddedServer(place)
        command = programs.server_command
        with patch.object(programs, "server_command", lambda *where: [*command(*where), *CARELESS]):
            await server.start()
        try:
            yield server.admin_url
        finally:
            await server.stop()


@contextmanager
def fast_place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A directory for a server's data, in memory if there is room.

    A database has a thousand files, and a disk's file system takes long to make them where as many
    were removed a moment ago.
    """
    if MEMORY.is_dir() and min(disk_usage(MEMORY).free, virtual_memory().available) > ROOM:
        with TemporaryDirectory(prefix="paydesk_test_", dir=MEMORY) as place:
            yield Path(place)
    else:
        yield tmp_path_factory.mktemp("data")


def database_at(url: str, name: str) -> str:
    """The same server's address, another database of it."""
    return urlunsplit(urlsplit(url)._replace(path=f"/{name}"))


@asynccontextmanager
async def migrated_database(server_url: str, *, cell: int | None = CELL, locale: str = "") -> AsyncIterator[str]:
    """The address of an empty, migrated database, for the length of a block; that of a `cell`,
    whose ids are large, where PAYDESK_CELL names one; of the server's locale, or another.
    """
    name = f"paydesk_test_{secrets.token_hex(6)}"
    admin = await asyncpg.connect(server_url)
    try:
        template = await template_at(admin, server_url, locale)
        # The other way writes each page to the log, too.
        await admin.execute(f"create database {name} template {template} strategy file_copy")
        await admin.execute(f"alter database {name} set synchronous_commit = off")
        if cell is not None:
            async with connected(database_at(server_url, name), most=1) as pool:
                await begin_cell(pool, cell)
        yield database_at(server_url, name)
    finally:
        await drop_database(admin, name)
        await admin.close()


async def template_at(admin: asyncpg.Connection, server_url: str, locale: str = "") -> str:
    """The name of a database that is migrated, and that nobody is connected to:
    a copy takes no time, the steps do.
    """
    if (server_url, locale) not in _templates:
        name = f"paydesk_test_{secrets.token_hex(6)}"
        await admin.execute(f"create database {name} template template0 {locale}")
        _templates[server_url, locale] = name
        async with connected(database_at(server_url, name), most=2) as pool:
            await migrate(pool)
    return _templates[server_url, locale]


async def _drop_templates(server_url: str) -> None:
    """Leave nothing behind on a server that is not ours."""
    admin = await asyncpg.connect(server_url)
    for name in _templates.values():
        await drop_database(admin, name)
    await admin.close()
    _templates.clear()


@pytest.fixture(scope="session")
async def database_url(server_url: str) -> AsyncIterator[str]:
    """A database that this test run has to itself."""
    async with migrated_database(server_url) as url:
        yield url


@pytest.fixture
async def own_database_url(server_url: str) -> AsyncIterator[str]:
    """A database that one test has to itself: nothing rests in it under another's keys."""
    async with migrated_database(server_url) as url:
        yield url


@pytest.fixture(scope="session")
async def database(database_url: str) -> AsyncIterator[Database]:
    async with connected(database_url) as pool:
        yield pool


@pytest.fixture(scope="session")
def deployment_keys() -> dict[str, str]:
    """The two secrets of this test run's deployment, by the names of their settings."""
    return {"vault_keys": generate_key_setting(), "secret_key": generate_secret()}


@pytest.fixture(scope="session")
def vault(deployment_keys: dict[str, str]) -> Vault:
    return Vault.from_settings(**deployment_keys)


@pytest.fixture
async def merchant(database: Database, vault: Vault) -> Merchant:
    """A merchant of this test's own, in test mode, with the default fee plan
    and no pingback URL.
    """
    return await create_merchant(database, vault, name="Corner Shop", email="owner@shop.example", now=utc_now())


@pytest.fixture
def shop(merchant: Merchant) -> Shop:
    """The merchant's test side."""
    return shop_of(merchant, live=False)


@pytest.fixture
async def other_shop(database: Database, vault: Vault) -> Shop:
    """Another merchant's test side."""
    return shop_of(
        await create_merchant(database, vault, name="Other Shop", email="other@shop.example", now=utc_now()), live=False
    )


@pytest.fixture(scope="session")
def usual_settings(deployment_keys: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """What the deployments of all tests have in common, read once: that takes longer than
    many a test.
    """
    return load_settings(
        base_url="http://pay.test",
        data_dir=tmp_path_factory.mktemp("no_settings"),
        database_connections=8,
        simulator_latency=0.0,
        vault_keys=deployment_keys["vault_keys"],
        secret_key=deployment_keys["secret_key"],
    )


@pytest.fixture
def settings(usual_settings: Settings, database_url: str, tmp_path: Path) -> Settings:
    """The settings of a deployment of this test's own, at http://pay.test,
    whose bank answers at once.
    """
    return usual_settings.model_copy(update={"data_dir": tmp_path, "database_url": database_url})


@pytest.fixture
async def _back_to_the_present(database: Database) -> AsyncIterator[None]:
    """A test that told another time leaves no pingback from the future to those who look
    for the newest; what an earlier test's bank was read up to says nothing of this one's.
    """
    await set_back.banks_tell_again(database)
    await set_back.banks_tell_of_refunds_again(database)
    yield
    await database.execute("update pingback set created_at = now(), due_at = now() where created_at > now()")


@pytest.fixture
def bank(settings: Settings, _back_to_the_present: None) -> Iterator[Bank]:
    """The simulated bank of `settings`, over its own record;
    the web application of `web` shares that record.
    """
    settings.simulator_record.parent.mkdir()
    opened = Bank(Record(settings.simulator_record))
    yield opened
    opened.record.close()


@pytest.fixture
def desk(settings: Settings, database: Database, vault: Vault, bank: Bank) -> Desk:
    """What taking payments needs, over the bank's record, without a web application."""
    return payment_desk(settings, database, vault, SimulatedAcquirer(bank, base_url=settings.address))


@pytest.fixture
def charges(bank: Bank) -> Callable[[], list[Standing]]:
    """The bank's own word on which purchases took money and kept it."""
    return lambda: [standing for standing in standings(bank.record.operations()).values() if standing.net]


OpenWeb = Callable[..., Awaitable[httpx.AsyncClient]]


@pytest.fixture(scope="session")
async def warm(server_url: str) -> AsyncIterator[WarmConnections]:
    """Connections that one test's service leaves to the next one's."""
    async with warm_connections() as stock:
        yield stock


@pytest.fixture
async def open_web(settings: Settings, bank: Bank, warm: WarmConnections) -> AsyncIterator[OpenWeb]:
    """Start a web application and give a browser in front of it, which follows no redirect
    and keeps no cookie.

    `address` is where the browser calls from, `wire` may change the application's services (to lie,
    or to tell another time), what is left are settings. An error that the application does not
    answer fails the test.
    """
    async with AsyncExitStack() as stack:

        async def start(
            *,
            address: str = "192.0.2.10",
            wire: Callable[[CheckoutServices], CheckoutServices] = lambda services: services,
            **changed: Any,
        ) -> httpx.AsyncClient:
            app = create_app(settings.model_copy(update=changed))
            lifespan: AbstractAsyncContextManager[Any] = app.router.lifespan_context(app)
            with warm.given():
                state = dict(await stack.enter_async_context(lifespan))
            state["checkout"] = wire(state["checkout"])

            async def with_state(scope: Scope, receive: Receive, send: Send) -> None:
                await app({**scope, "state": dict(state)}, receive, send)

            transport = httpx.ASGITransport(app=with_state, client=(address, 50000))
            return await stack.enter_async_context(
                httpx.AsyncClient(transport=transport, base_url=settings.address, timeout=30)
            )

        yield start


@pytest.fixture
async def web(open_web: OpenWeb) -> httpx.AsyncClient:
    """A browser in front of the web application of `settings`."""
    return await open_web()


@pytest.fixture
def gateway(merchant: Merchant, settings: Settings) -> Gateway:
    """The merchant's side: builds and signs forms."""
    return Gateway(merchant.public_key, merchant.private_key, base_url=settings.address)


async def submit_profile(database: Database, merchant_id: int) -> None:
    """A merchant has filled in its business profile and asks to go live."""
    await database.execute(
        """
        insert into business_profile (merchant_id, status, legal_name, street, postal_code, city, country, website,
               support_email, description, goods, account_holder, iban_last4, changed_at, submitted_at)
        values ($1, 'submitted', 'Corner Shop Ltd', 'High Street 1', 'N1', 'London', 'GB', 'https://shop.example',
                'help@shop.example', 'We sell mugs', 'Mugs, by post', 'Corner Shop Ltd', '3000', now(), now())
        """,
        merchant_id,
    )


async def propose_change(
    database: Database, merchant_id: int, legal_name: str = "Other Shop Ltd", iban: Sealed | None = None
) -> None:
    """A live merchant wants another profile, with another bank account if one is given."""
    await database.execute(
        """
        insert into profile_change (merchant_id, legal_name, street, postal_code, city, country, registration,
               vat_number, website, support_email, support_phone, description, goods, account_holder, iban_sealed,
               vault_key_id, iban_last4, proposed_at, proposed_by)
        values ($1, $2, '', '', '', 'GB', '', '', '', '', '', '', '', '', $3, $4, '', now(), 1)
        """,
        merchant_id,
        legal_name,
        iban.blob if iban else None,
        iban.key_id if iban else "",
    )


async def accept_waiting(
    database: Database, merchant_id: int, *, seen: datetime | None = None, now: datetime | None = None
) -> None:
    """An operator accepts what waits: a request to go live, or a change;
    another bank account waits three days.
    """
    seen, wait = seen or await seen_now(database, merchant_id), timedelta(days=3)
    await accept(database, COMMAND_LINE, merchant_id, seen=seen, iban_wait=wait, now=now or utc_now())


SignedForm = Callable[..., dict[str, Any]]


@pytest.fixture
def signed_form(gateway: Gateway) -> SignedForm:
    """A signed form for an order of its own; fields given replace the usual ones,
    None leaves one out.
    """

    def build(**fields: Any) -> dict[str, Any]:
        usual = {
            # Twelve digits in a row might be taken for a card's.
            "merchant_order_id": f"order-{secrets.token_hex(3)}-of-{secrets.token_hex(3)}",
            "amount": "10.00",
            "currency": "USD",
            "description": "Golden Ticket",
            "success_url": "https://shop.example/thanks?order=1",
        }
        asked = {name: value for name, value in {**usual, **fields}.items() if value is not None}
        signed = {**asked, "api_key": gateway.public_key}
        return {**signed, "hash": gateway.signature().sign(signed)}

    return build


CountRows = Callable[[str], Awaitable[int]]


@pytest.fixture
def count_rows(database: Database, merchant: Merchant) -> CountRows:
    """How many rows of a table belong to the merchant."""

    async def count(table: str) -> int:
        return int(await database.fetchval(f"select count(*) from {table} where merchant_id = $1", merchant.id))

    return count


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Hand out the tests by file, and files that share something together."""
    if config.option.dist != "loadfile":
        return None
    scheduler = LoadFileScheduling(config, log)
    file_of = scheduler._split_scope
    scheduler._split_scope = lambda nodeid: scope_of(file_of(nodeid))
    return scheduler


def pytest_collection_finish() -> None:
    """What is loaded by now stays: the garbage collector need not look through it again during
    the tests.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*SELDOM)
    gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what needs a database, so that it can be run on another server: `pytest -m database`.

    The files that take longest come first. What takes long, depends on chance, or on more of a
    machine than most may touch, is run by those who ask for it: `pytest -m long`, `pytest -m soak`,
    `pytest -m ha`, `pytest -m containers`.
    """
    if [Path(given).resolve() for given in config.args] == [config.rootpath / "tests"]:
        for test, examples in _by_test(items):
            taken = crc32(test.encode()) % min(EVERY, len(examples))
            for place, item in enumerate(examples if len(examples) > EXAMPLES else ()):
                if place % EVERY != taken:
                    item.add_marker("long")
    for item in items if WHOLE else ():
        if item.get_closest_marker("longer") or is_hypothesis_test(getattr(item, "obj", None)):
            item.add_marker("long")
    unasked = {apart for apart in APART if apart not in config.option.markexpr}
    left_out = {item for item in items if not unasked.isdisjoint(mark.name for mark in item.iter_markers())}
    left_out |= {item for item in items if crc32(item.nodeid.encode()) % PARTS != PART}
    config.hook.pytest_deselected(items=list(left_out))
    items[:] = [item for item in items if item not in left_out]
    items.sort(key=lambda item: _place(item.path))
    for item in items:
        if "server_url" in getattr(item, "fixturenames", ()):
            item.add_marker("database")


def _by_test(items: Iterable[pytest.Item]) -> Iterable[tuple[str, list[pytest.Item]]]:
    """Each test that needs a database, and its examples."""
    found = defaultdict[str, list[pytest.Item]](list)
    for item in items:
        if "server_url" in getattr(item, "fixturenames", ()):
            found[item.nodeid.partition("[")[0]].append(item)
    return found.items()


@cache
def _place(path: Path) -> int:
    """Where in the order of all a file comes: by the first of the lists above that it is in."""
    return next((place for place, one in enumerate((*LONGEST, *LONG)) if path.match(one)), len(LONGEST) + len(LONG))


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """On a machine that must be able to run everything (CI is set), a skipped test is a failure."""
    if _skipped(session.config) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


class _ToldAtOnce:
    """Tells of a failure when it happens: a run that is cut off never comes to its summary."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        terminal = self._config.pluginmanager.get_plugin("terminalreporter")
        if report.failed and terminal is not None:
            crash = getattr(report.longrepr, "reprcrash", None)
            terminal.write_line(f"\n{report.nodeid}: {getattr(crash, 'message', report.longrepr)}"[:600])


def pytest_configure(config: pytest.Config) -> None:
    if "CI" in os.environ and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_ToldAtOnce(config))


def pytest_terminal_summary(config: pytest.Config, terminalreporter: pytest.TerminalReporter) -> None:
    if count := _skipped(config):
        terminalreporter.write_line(f"FAILED: {count} skipped, and with CI set every test must run", red=True)


def _skipped(config: pytest.Config) -> int:
    """How many tests were skipped where none may be;
    the workers of pytest-xdist leave the counting to their master.
    """
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    must_run = bool(os.environ.get("CI")) and not hasattr(config, "workerinput")
    return len(reporter.stats.get("skipped", [])) if must_run and reporter is not None else 0
