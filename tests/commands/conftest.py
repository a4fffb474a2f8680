"""Runs commands against the test database, each in a thread with an event loop of its own."""

from __future__ import annotations

import asyncio
import json
import os
import resource
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import structlog
import typer
import typer.testing
from tests import breaking
from tests.cell_servers import home as home
from tests.cell_servers import other as other
from tests.processes import free_port
from tests.shopfront import subscribe
from typer.main import get_command
from typer.testing import CliRunner

from paydesk.adapters.vault import generate_key_setting, generate_secret
from paydesk.cli import command_line
from paydesk.commands import (
    acquirers,
    alarms,
    cells,
    chargebacks,
    checking,
    coupons,
    customers,
    fees,
    holding,
    ledger,
    mail,
    merchants,
    operators,
    packages,
    pingbacks,
    proceeds,
    profiles,
    reconciling,
    refunds,
    restoring,
    subscriptions,
    test_clock,
    undoing,
    vault,
)
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.merchants.shop import Shop
from paydesk.equipment import payment_desk, test_acquirer, vault_of
from paydesk.settings import load_settings


@dataclass(frozen=True, slots=True)
class Said:
    """What a command printed, and its exit status."""

    status: int
    out: str
    err: str

    @property
    def result(self) -> Any:
        return json.loads(self.out)


Paydesk = Callable[..., Awaitable[Said]]


@pytest.fixture
def environment(database_url: str, tmp_path: Path) -> dict[str, str]:
    """The settings of a deployment on the test database, with a data directory of its own."""
    return {
        "PAYDESK_DATABASE_URL": database_url,
        "PAYDESK_SECRET_KEY": generate_secret(),
        "PAYDESK_VAULT_KEYS": generate_key_setting(),
        "PAYDESK_DATA_DIR": str(tmp_path),
    }


@pytest.fixture
async def _nothing_stays_held(database: Database) -> AsyncIterator[None]:
    """What a command has held is held for no other test."""
    yield
    await breaking.say(database, "history", {}, held_at=None, held_because="", held_since=None, judged_at=utc_now())


@cache
def _commands() -> typer.Typer:
    """All that is called here, put together once: that takes longer than what most of them do."""
    app = typer.Typer(rich_markup_mode=None)
    app.add_typer(merchants.app, name="merchant")
    app.add_typer(operators.app, name="operator")
    app.add_typer(pingbacks.app, name="pingback")
    app.add_typer(alarms.app, name="alarm")
    app.add_typer(mail.app, name="mail")
    app.add_typer(subscriptions.app, name="subscription")
    app.add_typer(packages.app, name="package")
    app.add_typer(coupons.app, name="coupon")
    app.add_typer(test_clock.app, name="clock")
    app.add_typer(chargebacks.app, name="chargeback")
    app.add_typer(ledger.ledger, name="ledger")
    app.add_typer(ledger.payouts, name="payout")
    app.command()(ledger.balance)
    app.add_typer(profiles.app, name="profile")
    app.add_typer(vault.app, name="vault")
    app.add_typer(acquirers.app, name="acquirer")
    app.add_typer(proceeds.app, name="proceeds")
    app.add_typer(customers.app, name="customer")
    app.add_typer(fees.app, name="fees")
    app.command()(refunds.refund)
    app.command(epilog=checking.EXAMPLE)(checking.check)
    app.command(epilog=reconciling.EXAMPLE)(reconciling.reconcile)
    app.command(epilog=undoing.EXAMPLE)(undoing.undo)
    app.command(epilog=restoring.EXAMPLE)(restoring.restored)
    app.add_typer(holding.app, name="hold")
    app.add_typer(cells.app, name="cell")
    return app


_built = cache(get_command)
"""Makes a command line of them, which can be called again and again."""


@pytest.fixture
def paydesk(
    environment: dict[str, str], _nothing_stays_held: None, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Paydesk]:
    """`await paydesk("merchant", "list")` runs the command."""
    monkeypatch.setattr(typer.testing, "_get_command", _built)

    async def run(*words: object, stdin: str | None = None) -> Said:
        arguments = [str(word) for word in words]
        done = await asyncio.to_thread(CliRunner().invoke, _commands(), arguments, input=stdin, env=environment)
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return Said(done.exit_code, done.stdout, done.stderr)

    logs = structlog.get_config()
    yield run
    structlog.configure(**logs)


@pytest.fixture
async def account(paydesk: Paydesk) -> dict[str, Any]:
    """A merchant that was opened by the command."""
    said = await paydesk("merchant", "create", "--name", "Corner Shop", "--email", "o@shop.example", "--json")
    return dict(said.result)


@pytest.fixture
async def subscription(account: dict[str, Any], environment: dict[str, str], database: Database) -> int:
    """The id of a monthly subscription that a customer of the account took out in test mode."""
    given: dict[str, Any] = {name.removeprefix("PAYDESK_").lower(): value for name, value in environment.items()}
    settings = load_settings(**given, simulator_latency=0)
    acquirer = test_acquirer(settings)
    desk = payment_desk(settings, database, vault_of(settings), acquirer)
    taken_out = await subscribe(desk, Shop(account["id"], live=False), pingback_url=None, sign_version="v1")
    await acquirer.close()
    return taken_out.id


AddPingback = Callable[..., Awaitable[int]]


@pytest.fixture
def add_pingback(database: Database) -> AddPingback:
    """Stores a pingback of an account in a state, and returns its id."""

    async def add(
        merchant_id: int, *, state: str = "due", url: str | None = "https://shop.example/p", attempts: int = 0
    ) -> int:
        return int(
            await database.fetchval(
                """
                insert into pingback (merchant_id, live, event, url, sign_version, key_id, format, payload, state,
                                      attempts, due_at, created_at)
                values ($1, false, 'test', $2, 'v1', 1, 'json', '{"event":"test","paid_amount":-0.2608}', $3, $4, $5,
                        $5)
                returning id
                """,
                merchant_id,
                url,
                state,
                attempts,
                utc_now(),
            )
        )

    return add


def one_line(said: list[str]) -> str:
    """One clear line on stderr, nothing else."""
    (line,) = said
    assert line.startswith("paydesk: ")
    return line


Refusal = Callable[..., Awaitable[str]]


@pytest.fixture
def refusal() -> Iterator[Refusal]:
    """`await refusal("serve", PORT=1)`: the one line that a command ends with before it begins;
    so early that it needs no process of its own.
    """

    async def call(*words: str, **settings: object) -> str:
        given = {"PORT": free_port(), "DEMO_PORT": free_port(), "METRICS_PORT": 0} | settings
        unwanted = {name: None for name in os.environ if name.startswith("PAYDESK_")}
        env = unwanted | {f"PAYDESK_{name}": str(value) for name, value in given.items()}
        done = await asyncio.to_thread(CliRunner().invoke, command_line(words[:1]), words, env=env)
        assert isinstance(done.exception, SystemExit), done.exception
        assert done.exit_code == 1, done.output
        assert done.stdout == ""
        return one_line(done.stderr.splitlines())

    logs, files = structlog.get_config(), resource.getrlimit(resource.RLIMIT_NOFILE)
    yield call
    structlog.configure(**logs)
    resource.setrlimit(resource.RLIMIT_NOFILE, files)
