"""What tests stand on: a database of their own, merchants, a vault and a bank with its own record."""

from __future__ import annotations

import os
import secrets
from collections.abc import AsyncIterator
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest

from paydesk.adapters.vault import Vault, generate_key_setting, generate_secret
from paydesk.core.clock import utc_now
from paydesk.database.embedded import EmbeddedServer
from paydesk.database.migrating import migrate
from paydesk.database.pool import Database, connected
from paydesk.domain.merchants.accounts import Merchant, Shop, create_merchant, shop_of


@pytest.fixture(scope="session")
async def server_url(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[str]:
    """A server where databases may be created: the one in PAYDESK_DATABASE_URL, else an embedded one."""
    given = os.environ.get("PAYDESK_DATABASE_URL")
    if given:
        yield given
        return
    server = EmbeddedServer(tmp_path_factory.mktemp("data"))
    await server.start()
    try:
        yield server.admin_url
    finally:
        await server.stop()


def database_at(url: str, name: str) -> str:
    """The same server's address, another database of it."""
    return urlunsplit(urlsplit(url)._replace(path=f"/{name}"))


@pytest.fixture(scope="session")
async def database_url(server_url: str) -> AsyncIterator[str]:
    """An empty, migrated database that this test run has to itself."""
    name = f"paydesk_test_{secrets.token_hex(6)}"
    admin = await asyncpg.connect(server_url)
    await admin.execute(f"create database {name} template template0")
    url = database_at(server_url, name)
    try:
        async with connected(url, most=2) as pool:
            await migrate(pool)
        yield url
    finally:
        await admin.execute(f"drop database if exists {name} with (force)")
        await admin.close()


@pytest.fixture(scope="session")
async def database(database_url: str) -> AsyncIterator[Database]:
    async with connected(database_url) as pool:
        yield pool


@pytest.fixture(scope="session")
def vault() -> Vault:
    return Vault.from_settings(generate_key_setting(), generate_secret())


@pytest.fixture
async def merchant(database: Database, vault: Vault) -> Merchant:
    """A merchant of this test's own, in test mode, with the default fee plan and no pingback URL."""
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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs a database, so that it can be run on another server: `pytest -m database`."""
    for item in items:
        if "server_url" in getattr(item, "fixturenames", ()):
            item.add_marker("database")


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """On a machine that must be able to run everything (CI is set), a skipped test is a failure."""
    if _skipped(session.config) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(config: pytest.Config, terminalreporter: pytest.TerminalReporter) -> None:
    if count := _skipped(config):
        terminalreporter.write_line(f"FAILED: {count} skipped, and with CI set every test must run", red=True)


def _skipped(config: pytest.Config) -> int:
    """How many tests were skipped where none may be; the workers of pytest-xdist leave the counting to their master."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    must_run = bool(os.environ.get("CI")) and not hasattr(config, "workerinput")
    return len(reporter.stats.get("skipped", [])) if must_run and reporter is not None else 0
