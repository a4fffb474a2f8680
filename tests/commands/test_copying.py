"""`paydesk restored --copy`, as its user meets it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests import set_back
from tests.commands.conftest import Refusal

from paydesk.adapters.vault import generate_key_setting, generate_secret
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database, connected


@pytest.fixture
def database_url(own_database_url: str) -> str:
    """A copy is a copy for good, so each test has a database of its own."""
    return own_database_url


@pytest.fixture
async def database(own_database_url: str) -> AsyncIterator[Database]:
    async with connected(own_database_url, most=2) as pool:
        yield pool


async def test_it_asks_first_and_says_what_is_not_sent(account: dict[str, Any], paydesk: Any) -> None:
    refused = await paydesk("restored", "--copy", stdin="n\n")
    assert (refused.status, "nothing takes that back" in refused.err) == (1, True)
    made = await paydesk("restored", "--copy", stdin="y\n")
    assert made.status == 0
    assert "a copy from now on: 0 pingbacks and 0 mails are not sent, 0 live merchants suspended\n" in made.out
    again = await paydesk("restored", "--copy")
    assert (again.status, again.out) == (0, "it was made a copy before; nothing was changed\n")


async def test_a_script_agrees_beforehand_and_reads_json(account: dict[str, Any], paydesk: Any) -> None:
    made, again = [await paydesk("restored", "--copy", "--yes", "--json") for _ in range(2)]
    assert made.result == {"tag": again.result["tag"], "declared": True, "pingbacks": 0, "mails": 0, "merchants": 0}
    assert again.result["declared"] is False


async def test_with_the_settings_of_a_live_deployment_it_is_refused(
    account: dict[str, Any], paydesk: Any, environment: dict[str, str]
) -> None:
    live = {"PAYDESK_LIVE_ACQUIRER": "stripe", "PAYDESK_STRIPE_SECRET_KEY": "sk_live_of_nobody"}
    environment |= live
    said = await paydesk("restored", "--copy", "--yes")
    assert (said.status, said.out) == (1, "")
    assert "PAYDESK_LIVE_ACQUIRER=stripe is set" in said.err
    for name in live:
        del environment[name]
    assert (await paydesk("restored", "--copy", "--yes", "--json")).result["declared"] is True
    environment |= live
    assert "takes no live payments" in (await paydesk("merchant", "list")).err


@pytest.mark.parametrize("command", ["serve", "work"])
async def test_on_a_copy_no_service_starts_with_a_live_acquirer(
    own_database_url: str, tmp_path: Path, command: str, refusal: Refusal
) -> None:
    async with connected(own_database_url, most=1) as database:
        await set_back.times(database, "deployment", {}, copied_at=utc_now())
    keys = {"SECRET_KEY": generate_secret(), "VAULT_KEYS": generate_key_setting(), "IDEMPOTENCY_SECRET": "i" * 40}
    live = {"LIVE_ACQUIRER": "stripe", "STRIPE_SECRET_KEY": "sk_live_of_nobody", "ALLOW_ASYNC": "1"}
    line = await refusal(command, DATABASE_URL=own_database_url, DATA_DIR=tmp_path / "data", **keys, **live)
    assert "takes no live payments" in line
    assert "PAYDESK_LIVE_ACQUIRER=stripe" in line
