"""Runs commands against the test database, each in a thread with an event loop of its own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from paydesk.adapters.vault import generate_key_setting, generate_secret
from paydesk.commands import checking, merchants, pingbacks
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database


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
def paydesk(environment: dict[str, str]) -> Paydesk:
    """`await paydesk("merchant", "list")` runs the command."""
    app = typer.Typer(rich_markup_mode=None)
    app.add_typer(merchants.app, name="merchant")
    app.add_typer(pingbacks.app, name="pingback")
    app.command(epilog=checking.EXAMPLE)(checking.check)

    async def run(*words: object) -> Said:
        arguments = [str(word) for word in words]
        done = await asyncio.to_thread(CliRunner().invoke, app, arguments, env=environment)
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return Said(done.exit_code, done.stdout, done.stderr)

    return run


@pytest.fixture
async def account(paydesk: Paydesk) -> dict[str, Any]:
    """A merchant that was opened by the command."""
    said = await paydesk("merchant", "create", "--name", "Corner Shop", "--email", "o@shop.example", "--json")
    return dict(said.result)


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
