from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests import breaking

from paydesk.database.pool import Database


@pytest.fixture
async def told(account: dict[str, Any], subscription: int, database: Database) -> int:
    """The shop was told of the payment."""
    await breaking.say(database, "pingback", {"merchant_id": account["id"]}, state="waiting", url=None)
    return int(account["id"])


async def test_a_customer_is_handed_out_and_erased(
    told: int, subscription: int, paydesk: Any, database: Database, environment: dict[str, str]
) -> None:
    handed = (await paydesk("customer", "export", told, "--email", "ADA@example.com")).result
    assert [one["email"] for one in handed["customers"]] == ["ada@example.com"]
    refused = await paydesk("customer", "erase", told, "--email", "ada@example.com", "--yes")
    assert refused.status == 1
    assert f"still running: subscription {subscription}" in refused.err
    asked = await paydesk("customer", "erase", told, "--email", "ada@example.com", "--end", stdin="n\n")
    assert asked.status == 1
    done = await paydesk("customer", "erase", told, "--email", "ada@example.com", "--end", "--yes", "--json")
    assert done.status == 0, done.err
    assert done.result["rows"]["customers"] == 1
    assert await database.fetchval("select email from customer where merchant_id = $1", told) == "erased"
    (line,) = (Path(environment["PAYDESK_DATA_DIR"]) / "erasures.jsonl").read_text().splitlines()
    assert set(json.loads(line)) == {"at", "merchant_id", "fingerprint"}
    gone = await paydesk("customer", "export", told, "--email", "ada@example.com")
    assert (gone.status, "has nothing of this customer" in gone.err) == (1, True)


async def test_an_erasure_that_broke_off_before_it_said_anything_is_run_again(
    told: int, paydesk: Any, environment: dict[str, str]
) -> None:
    wish = ("customer", "erase", told, "--end", "--yes")
    for _ in range(2):
        stranger = await paydesk(*wish, "--email", "nobody@example.com")
        assert (stranger.status, "has nothing of this customer" in stranger.err) == (1, True)
    assert (await paydesk(*wish, "--email", "ada@example.com")).status == 0
    again = await paydesk(*wish, "--email", "ADA@example.com", "--json")
    assert (again.status, again.result["rows"]) == (0, {})
    assert "nothing is left of this customer, who was erased on " in again.err
    lines = (Path(environment["PAYDESK_DATA_DIR"]) / "erasures.jsonl").read_text().splitlines()
    assert len(lines) == 1, "of whom there was nothing is not in the list"


async def test_a_restored_database_is_rid_of_them_again(
    told: int, paydesk: Any, database: Database, environment: dict[str, str], tmp_path: Path
) -> None:
    environment["PAYDESK_ERASURE_LIST"] = str(tmp_path / "kept-elsewhere.jsonl")
    erased = await paydesk("customer", "erase", told, "--order", "club-1", "--end", "--yes")
    assert "customers" in erased.out
    await breaking.say(database, "customer", {"merchant_id": told}, email="ada@example.com", erased_at=None)
    again = await paydesk("customer", "erase", "--again-from", environment["PAYDESK_ERASURE_LIST"])
    assert "erased again: 1 customer" in again.out
    assert await database.fetchval("select email from customer where merchant_id = $1", told) == "erased"
    missing = await paydesk("customer", "erase", "--again-from", str(tmp_path / "nowhere"))
    assert (missing.status, "cannot read" in missing.err) == (1, True)
    both = await paydesk("customer", "erase", told, "--again-from", "x")
    assert (both.status, "give either" in both.err) == (1, True)
