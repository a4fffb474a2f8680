from __future__ import annotations

import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests import breaking

from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.running_settings import announced
from paydesk.settings import RUNNING_FILE, load_settings


async def shown(paydesk: Any, merchant_id: int) -> dict[str, Any]:
    return dict((await paydesk("clock", "show", merchant_id, "--json")).result)


async def test_a_clock_starts_at_real_time(account: dict[str, Any], paydesk: Any) -> None:
    clock = await shown(paydesk, account["id"])
    assert (clock["ahead_seconds"], clock["moving"]) == (0.0, False)
    said = await paydesk("clock", "show", account["id"])
    assert "nothing: it is real time" in said.out


async def test_advancing_moves_the_clock_and_says_what_happened(
    account: dict[str, Any], paydesk: Any, subscription: int
) -> None:
    before = utc_now()
    said = await paydesk("clock", "advance", account["id"], "3m", "--json")
    assert (said.status, said.err) == (0, "")
    assert said.result["counts"] == {"payment": 3, "settlement": 3}
    assert [event["subscription_id"] for event in said.result["events"]] == [subscription] * 6
    assert datetime.fromisoformat(said.result["now"]) > before + timedelta(days=88)
    clock = await shown(paydesk, account["id"])
    assert clock["ahead_seconds"] > timedelta(days=88).total_seconds()


async def test_a_summary_for_people_is_a_table_and_a_line(
    account: dict[str, Any], paydesk: Any, subscription: int
) -> None:
    said = await paydesk("clock", "advance", account["id"], "2m", "--events", 1)
    titles, row, line = said.out.splitlines()
    assert titles.split() == ["time", "what", "subscription", "payment", "pingback"]
    assert row.split()[2:4] == ["settlement", str(subscription)]
    assert line.endswith("Z: 2 payment, 2 settlement")
    assert "3 more events" in said.err


@pytest.mark.parametrize("period", ["0d", "31", "1h", "11y"])
async def test_a_wrong_period_is_one_line(period: str, account: dict[str, Any], paydesk: Any) -> None:
    said = await paydesk("clock", "advance", account["id"], period)
    assert said.status == 1
    assert re.fullmatch(r"paydesk: PERIOD .*\n", said.err)


@pytest.mark.parametrize("words", [("show",), ("advance", "1d"), ("reset", "--yes")])
async def test_an_unknown_merchant_is_one_line(words: tuple[str, ...], paydesk: Any) -> None:
    said = await paydesk("clock", words[0], 10**12, *words[1:])
    assert (said.status, said.err) == (1, f"paydesk: there is no merchant {10**12}; see: paydesk merchant list\n")


async def test_a_clock_that_is_being_moved_is_one_line(
    account: dict[str, Any], paydesk: Any, database: Database
) -> None:
    await breaking.say(
        database,
        "merchant",
        {"id": account["id"]},
        clock_holder="else",
        clock_held_until=utc_now() + timedelta(hours=1),
    )
    for words in (("advance", account["id"], "1d"), ("reset", account["id"], "--yes")):
        said = await paydesk("clock", *words)
        assert said.status == 1
        assert re.fullmatch(r"paydesk: the test clock of merchant \d+ is being moved; .*\n", said.err)


async def test_a_reset_asks_first(account: dict[str, Any], paydesk: Any, subscription: int, database: Database) -> None:
    await paydesk("clock", "advance", account["id"], "1m")
    said = await paydesk("clock", "reset", account["id"])
    assert said.status == 1
    assert "nothing was deleted" in said.err
    assert await database.fetchval("select count(*) from subscription where id = $1", subscription) == 1
    said = await paydesk("clock", "reset", account["id"], "--yes", "--json")
    assert said.result["deleted"]["payments"] == 2
    assert (await shown(paydesk, account["id"]))["ahead_seconds"] == 0.0


async def test_after_a_reset_the_books_still_agree_with_the_bank(
    account: dict[str, Any], paydesk: Any, subscription: int
) -> None:
    await paydesk("clock", "advance", account["id"], "2m")
    await paydesk("clock", "reset", account["id"], "--yes")
    rules = {rule["name"]: rule["found"] for rule in (await paydesk("check", "--json")).result["rules"]}
    assert rules["bank_money_known"] == 0
    assert subscription


def test_commands_work_with_what_a_running_service_says_it_runs_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "settings.env").write_text("PAYDESK_PORT=1\nPAYDESK_FORMS_PER_MINUTE=7\n")
    running = load_settings(data_dir=tmp_path, port=81, outbound_allow="127.0.0.0/8,::1/128", secret_key="s" * 40)
    with announced(running):
        assert (tmp_path / RUNNING_FILE).stat().st_mode & 0o077 == 0
        assert "ssss" not in (tmp_path / RUNNING_FILE).read_text()
        seen = load_settings(as_running=True, data_dir=tmp_path)
        assert (seen.port, seen.outbound_allow, seen.forms_per_minute) == (81, "127.0.0.0/8,::1/128", 7)
        monkeypatch.setenv("PAYDESK_PORT", "99")
        assert load_settings(as_running=True, data_dir=tmp_path).port == 99
        monkeypatch.setenv("PAYDESK_PORT", "0")
        assert load_settings(as_running=True, data_dir=tmp_path).port == 81
        monkeypatch.delenv("PAYDESK_PORT")
        assert load_settings(data_dir=tmp_path).port == 1, "serve and work never read it"
    assert load_settings(as_running=True, data_dir=tmp_path).port == 1, "nobody runs any more"


def test_a_running_service_tells_nobody_of_its_live_acquirer(tmp_path: Path) -> None:
    running = load_settings(data_dir=tmp_path, live_acquirer="stripe", stripe_secret_key="sk_live_secret")
    with announced(running):
        assert "stripe" not in (tmp_path / RUNNING_FILE).read_text().lower()
        assert "sk_live" not in (tmp_path / RUNNING_FILE).read_text()
        assert load_settings(as_running=True, data_dir=tmp_path).live_acquirer == ""
