from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from datetime import datetime, timedelta
from typing import Any

import pytest
from tests.conftest import submit_profile
from tests.databases import until_waiting

from paydesk.adapters.acquirers.simulator import SimulatedAcquirer
from paydesk.adapters.acquirers.stripe import StripeAcquirer
from paydesk.adapters.vault import generate_key_setting
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.accounts.audit import COMMAND_LINE
from paydesk.domain.operations.merchants import queries, suspend_merchant

KEYS = ("public_key", "private_key")


async def test_a_created_merchant_has_an_id_and_a_key_pair(account: dict[str, Any], paydesk: Any) -> None:
    assert isinstance(account["id"], int)
    assert all(len(account[key]) >= 16 for key in KEYS)
    created = datetime.fromisoformat(account["created_at"])
    assert created.utcoffset() == timedelta(0)
    shown = (await paydesk("merchant", "show", account["id"], "--with-private-key", "--json")).result
    assert shown == account


async def test_what_a_key_pair_may_do_is_chosen_when_it_is_made(paydesk: Any, account: dict[str, Any]) -> None:
    assert account["key_scopes"] == "sign, read, move"
    made = await paydesk(
        "merchant", "create", "--name", "A", "--email", "a@b.example", "--scope", "read", "--scope", "sign", "--json"
    )
    assert made.result["key_scopes"] == "sign, read"
    assert (await paydesk("merchant", "show", made.result["id"], "--json")).result["key_scopes"] == "sign, read"
    listed = {one["id"]: one["key_scopes"] for one in (await paydesk("merchant", "list", "--json")).result}
    assert (listed[made.result["id"]], listed[account["id"]]) == ("sign, read", "sign, read, move")
    assert "key may" in (await paydesk("merchant", "list")).out


async def test_given_keys_are_kept(paydesk: Any) -> None:
    public, private = f"public-{os.urandom(8).hex()}", f"private-{os.urandom(16).hex()}"
    said = await paydesk(
        "merchant", "create", "--name", "A", "--email", "a@b.example", "--public-key", public, "--private-key", private,
        "--pingback-url", "http://127.0.0.1:9/p",
    )  # fmt: skip
    assert said.status == 0
    facts = dict(line.split(maxsplit=1) for line in said.out.splitlines())
    assert (facts["public_key"], facts["private_key"]) == (public, private)
    assert facts["pingback_url"] == "http://127.0.0.1:9/p"


async def test_shipped_goods_are_stored(paydesk: Any) -> None:
    said = await paydesk("merchant", "create", "--name", "A", "--email", "a@b.example", "--shipped-goods", "--json")
    assert (said.result["shipped_goods"], said.err) == (True, "")


async def test_whether_goods_are_shipped_can_be_changed(paydesk: Any) -> None:
    created = await paydesk("merchant", "create", "--name", "A", "--email", "a@b.example", "--json")
    for option, shipped in (("--shipped-goods", True), ("--no-shipped-goods", False)):
        said = await paydesk("merchant", "set", created.result["id"], option, "--json")
        assert said.result["shipped_goods"] is shipped


async def test_shipped_goods_are_refused_where_holds_are_too_short(
    paydesk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    created = await paydesk("merchant", "create", "--name", "A", "--email", "a@b.example", "--json")
    monkeypatch.setattr(SimulatedAcquirer, "hold_period", timedelta(days=6, hours=12))
    for command in (
        ("create", "--name", "A", "--email", "a@b.example", "--shipped-goods"),
        ("set", created.result["id"], "--shipped-goods"),
    ):
        said = await paydesk("merchant", *command)
        assert said.status == 1
        assert "holds money for 156 hours, and goods that are shipped need 7 days" in said.err
    assert (await paydesk("merchant", "show", created.result["id"], "--json")).result["shipped_goods"] is False


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--email", "nobody"], "is not an e-mail address"),
        (["--pingback-url", "javascript:alert(1)"], "must be an absolute http or https URL"),
        (["--pingback-url", "https://me:secret@shop.example/"], "must not carry a user name"),
        (["--pingback-url", "https://shop.example/" + "a" * 2048], "at most 2048 are accepted"),
        (["--name", " \t"], "--name needs"),
        (["--name", "a" * 101], "--name needs"),
        (["--public-key", "only-one-of-the-pair"], "or neither"),
    ],
)
async def test_what_is_wrong_is_one_line_on_stderr(paydesk: Any, options: list[str], words: str) -> None:
    said = await paydesk("merchant", "create", "--name", "A", "--email", "a@b.example", *options)
    assert (said.status, said.out) == (1, "")
    assert said.err.startswith("paydesk: ")
    assert said.err.count("\n") == 1
    assert words in said.err


async def test_a_list_shows_public_keys_and_no_private_ones(account: dict[str, Any], paydesk: Any) -> None:
    table = (await paydesk("merchant", "list")).out
    assert account["public_key"] in table
    assert account["private_key"] not in table
    listed = (await paydesk("merchant", "list", "--json")).result
    mine = next(merchant for merchant in listed if merchant["id"] == account["id"])
    assert mine["public_key"] == account["public_key"]
    assert "private_key" not in mine


async def test_a_private_key_is_shown_only_on_request(account: dict[str, Any], paydesk: Any) -> None:
    said = await paydesk("merchant", "show", account["id"])
    assert account["public_key"] in said.out
    assert account["private_key"] not in said.out


async def test_a_vault_without_the_right_key_is_one_line(
    account: dict[str, Any], paydesk: Any, environment: dict[str, str]
) -> None:
    environment["PAYDESK_VAULT_KEYS"] = generate_key_setting()
    said = await paydesk("merchant", "show", account["id"])
    assert said.status == 1
    assert said.err.count("\n") == 1
    assert "check PAYDESK_VAULT_KEYS" in said.err


@pytest.mark.parametrize("words", [("show",), ("set", "--test-mode"), ("rejected-forms",)])
async def test_an_unknown_merchant_is_named_with_the_next_step(paydesk: Any, words: tuple[str, ...]) -> None:
    said = await paydesk("merchant", words[0], 999_999_999, *words[1:])
    assert (said.status, said.out) == (1, "")
    assert said.err == "paydesk: there is no merchant 999999999; see: paydesk merchant list\n"


async def test_settings_change_and_what_is_not_named_stays(account: dict[str, Any], paydesk: Any) -> None:
    first = await paydesk(
        "merchant", "set", account["id"], "--pingback-url", "https://a.example/p", "--test-pingback-url",
        "https://t.example/p", "--pingback-format", "form", "--no-test-mode", "--json",
    )  # fmt: skip
    changed = {
        "pingback_url": "https://a.example/p",
        "test_pingback_url": "https://t.example/p",
        "pingback_format": "form",
        "test_mode": False,
    }
    expected = {name: value for name, value in account.items() if name != "private_key"} | changed
    assert first.result == expected
    cleared = await paydesk("merchant", "set", account["id"], "--test-pingback-url", "", "--json")
    assert cleared.result == expected | {"test_pingback_url": None}


async def test_setting_a_url_sends_what_waited_for_one(
    account: dict[str, Any], paydesk: Any, add_pingback: Any, database: Database
) -> None:
    waiting = [await add_pingback(account["id"], state="waiting", url=None) for _ in range(2)]
    said = await paydesk("merchant", "set", account["id"], "--pingback-url", "https://a.example/p")
    assert "waiting for a URL: 2 pingbacks" in said.err
    rows = await database.fetch("select state, url from pingback where id = any($1)", waiting)
    assert {(row["state"], row["url"]) for row in rows} == {("due", "https://a.example/p")}


async def test_a_merchants_apps_are_named_and_forgotten(account: dict[str, Any], paydesk: Any) -> None:
    async def named(*options: str) -> list[str]:
        said = await paydesk("merchant", "set", account["id"], *options, "--json")
        assert said.status == 0, said.err
        schemes: list[str] = said.result["app_schemes"]
        return schemes

    assert account["app_schemes"] == []
    assert await named("--app-scheme", "ShopApp://", "--app-scheme", "com.shop.app") == ["com.shop.app", "shopapp"]
    assert await named("--shipped-goods") == ["com.shop.app", "shopapp"], "what is not given stays"
    assert await named("--app-scheme", "other") == ["other"]
    assert await named("--app-scheme", "") == []
    refused = await paydesk("merchant", "set", account["id"], "--app-scheme", "javascript")
    assert refused.status != 0
    assert '"javascript" is not the scheme of an app' in refused.err


async def test_payments_that_take_days_are_switched_on_and_off(account: dict[str, Any], paydesk: Any) -> None:
    assert account["slow_methods"] is False
    for option, is_on in (("--slow-methods", True), ("--shipped-goods", True), ("--no-slow-methods", False)):
        said = await paydesk("merchant", "set", account["id"], option, "--json")
        assert said.result["slow_methods"] is is_on, option


async def test_pingbacks_beyond_the_spec_s_can_be_muted(account: dict[str, Any], paydesk: Any) -> None:
    async def muted(*options: str) -> list[str]:
        said = await paydesk("merchant", "set", account["id"], *options, "--json")
        assert said.status == 0, said.err
        events: list[str] = said.result["muted_events"]
        return events

    assert account["muted_events"] == []
    assert await muted("--mute-event", "refund", "--mute-event", "chargeback") == ["chargeback", "refund"]
    assert await muted("--mute-event", "refund") == ["chargeback", "refund"]
    both = ("--unmute-event", "refund", "--mute-event", "partial_refund")
    assert await muted(*both) == ["chargeback", "partial_refund"]
    assert await muted("--test-mode") == ["chargeback", "partial_refund"]
    shown = (await paydesk("merchant", "show", account["id"], "--json")).result
    assert shown["muted_events"] == ["chargeback", "partial_refund"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--mute-event", "payment"], "can't be muted; only these can: refund"),
        (["--mute-event", "subscription_expired"], "can't be muted"),
        (["--unmute-event", "x" * 500], "can't be muted"),
        (["--mute-event", "refund", "--unmute-event", "refund"], "give it once"),
    ],
)
async def test_what_the_spec_promises_can_t_be_muted(
    account: dict[str, Any], paydesk: Any, options: list[str], words: str
) -> None:
    said = await paydesk("merchant", "set", account["id"], *options)
    assert (said.status, said.err.count("\n")) == (1, 1)
    assert words in said.err


async def test_the_plan_says_whether_refunds_return_fees(account: dict[str, Any], paydesk: Any) -> None:
    assert account["fees_returned"] is False
    for option, returned in (("--fees-returned", True), ("--test-mode", True), ("--fees-kept", False)):
        said = await paydesk("merchant", "set", account["id"], option, "--json")
        assert said.result["fees_returned"] is returned
        assert (await paydesk("merchant", "show", account["id"], "--json")).result["fees_returned"] is returned
    listed = (await paydesk("merchant", "list", "--json")).result
    assert {one["fees_returned"] for one in listed if one["id"] == account["id"]} == {False}


async def test_customers_may_save_cards_where_it_is_switched_on(account: dict[str, Any], paydesk: Any) -> None:
    assert account["saves_cards"] is False
    for option, saves in (("--saves-cards", True), ("--test-mode", True), ("--no-saves-cards", False)):
        said = await paydesk("merchant", "set", account["id"], option, "--json")
        assert said.result["saves_cards"] is saves
        assert (await paydesk("merchant", "show", account["id"], "--json")).result["saves_cards"] is saves


@pytest.mark.parametrize("read", ["quantities", "line_items"])
async def test_what_a_form_may_bring_is_switched_on_and_off(account: dict[str, Any], paydesk: Any, read: str) -> None:
    assert account[f"signs_{read}"] is False
    option = f"signed-{read.replace('_', '-')}"
    for given, on in ((f"--{option}", True), ("--test-mode", True), (f"--no-{option}", False)):
        said = await paydesk("merchant", "set", account["id"], given, "--json")
        assert said.result[f"signs_{read}"] is on
        assert (await paydesk("merchant", "show", account["id"], "--json")).result[f"signs_{read}"] is on


async def test_a_dunning_plan_is_made_and_taken_back(account: dict[str, Any], paydesk: Any, database: Database) -> None:
    plan = "select dunning_hours, dunning_by_reason, dunning_end from merchant where id = $1"
    for options, kept in (
        (("--dunning-delays", "1d 3d 100", "--dunning-by-reason"), ([24, 72, 100], True, "cancel")),
        (("--no-dunning-by-reason", "--dunning-end", "keep_open"), ([24, 72, 100], False, "keep_open")),
        (("--dunning-delays", ""), (None, False, "keep_open")),
        (("--dunning-end", "cancel"), (None, False, "cancel")),
    ):
        assert (await paydesk("merchant", "set", account["id"], *options, "--json")).status == 0
        assert tuple(await database.fetchrow(plan, account["id"])) == kept
    said = await paydesk("merchant", "set", account["id"], "--dunning-delays", "soon")
    assert said.status == 1
    assert '"soon" is no delay' in said.err


async def test_days_of_notice_are_set_and_taken_back(account: dict[str, Any], paydesk: Any) -> None:
    for given, kept in (("7", 7), ("90", 90), ("0", None)):
        said = await paydesk("merchant", "set", account["id"], "--charge-notice-days", given, "--json")
        assert said.result["charge_notice_days"] == kept
        assert (await paydesk("merchant", "show", account["id"], "--json")).result["charge_notice_days"] == kept
    for wrong in ("91", "-1", "soon"):
        assert (await paydesk("merchant", "set", account["id"], "--charge-notice-days", wrong)).status == 2


async def test_what_is_set_is_shown_and_in_the_audit_log(
    account: dict[str, Any], paydesk: Any, database: Database
) -> None:
    dunning = ("--dunning-delays", "1d 3d", "--dunning-by-reason")
    given = (*dunning, "--portal-cancels", "both", "--portal-plans", "now", "--portal-quantities")
    said = await paydesk("merchant", "set", account["id"], *given, "--json")
    shown = (await paydesk("merchant", "show", account["id"], "--json")).result
    assert shown == said.result
    assert (shown["dunning_hours"], shown["dunning_by_reason"]) == ([24, 72], True)
    assert (shown["portal_cancels"], shown["portal_pauses"]) == ("both", False)
    assert (shown["portal_plans"], shown["portal_quantities"]) == ("now", True)
    noted = (
        "select details::text from audit_entry where merchant_id = $1 and action = 'settings_changed' order by id desc"
    )
    assert json.loads(await database.fetchval(noted, account["id"])) == {
        "dunning_hours": "() → (24, 72)",
        "dunning_by_reason": "False → True",
        "portal_cancels": "now → both",
        "portal_plans": "period_end → now",
        "portal_quantities": "False → True",
    }
    await paydesk("merchant", "set", account["id"], "--dunning-by-reason")
    assert await database.fetchval(f"select count(*) from ({noted}) n", account["id"]) == 1, "nothing had changed"


async def test_changing_nothing_is_a_mistake(account: dict[str, Any], paydesk: Any) -> None:
    said = await paydesk("merchant", "set", account["id"])
    assert said.status == 1
    assert "nothing to change" in said.err


async def test_the_program_prints_json_alone_on_stdout(environment: dict[str, str]) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "paydesk", "merchant", "create", "--name", "A", "--email", "a@b.example", "--json",
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )  # fmt: skip
    out, err = await process.communicate()
    assert (process.returncode, err) == (0, b"")
    assert json.loads(out)["private_key"]


async def test_a_reader_that_has_seen_enough_is_no_outage(environment: dict[str, str], account: dict[str, Any]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = (sys.executable, "-m", "paydesk", "merchant", "show", str(account["id"]))
    process = await asyncio.create_subprocess_exec(
        *command, env={**os.environ, **environment}, stdout=writing, stderr=subprocess.PIPE
    )
    os.close(writing)
    _, err = await process.communicate()
    assert (process.returncode, err) == (1, b"")


LIVE = {
    "PAYDESK_LIVE_ACQUIRER": "stripe",
    "PAYDESK_STRIPE_SECRET_KEY": "sk_test_of_nobody",
    "PAYDESK_IDEMPOTENCY_SECRET": "i" * 40,
}


async def test_nobody_goes_live_without_a_live_acquirer(account: dict[str, Any], paydesk: Any) -> None:
    said = await paydesk("merchant", "go-live", account["id"])
    assert said.status == 1
    assert "PAYDESK_LIVE_ACQUIRER=stripe" in said.err
    shown = (await paydesk("merchant", "show", account["id"], "--json")).result
    assert (shown["went_live_at"], shown["test_mode"]) == (None, True)


async def test_a_live_acquirer_needs_its_key(
    account: dict[str, Any], paydesk: Any, environment: dict[str, str]
) -> None:
    environment |= LIVE | {"PAYDESK_STRIPE_SECRET_KEY": ""}
    said = await paydesk("merchant", "go-live", account["id"])
    assert said.status == 1
    assert "needs PAYDESK_STRIPE_SECRET_KEY" in said.err


@pytest.mark.parametrize("options", [[], ["--shipped-goods"]])
async def test_a_merchant_goes_live_and_the_first_day_stays(
    paydesk: Any, environment: dict[str, str], database: Database, options: list[str]
) -> None:
    environment |= LIVE
    created = await paydesk("merchant", "create", "--name", "A", "--email", "a@b.example", "--json", *options)
    said = await paydesk("merchant", "go-live", created.result["id"])
    assert (said.status, "business profile" in said.err) == (1, True)
    await submit_profile(database, created.result["id"])
    assert (await paydesk("profile", "accept", created.result["id"], "--json")).result["status"] == "accepted"
    first = (await paydesk("merchant", "go-live", created.result["id"], "--json")).result
    assert first["test_mode"] is False
    assert first["went_live_at"] is not None
    await paydesk("merchant", "set", created.result["id"], "--test-mode")
    again = (await paydesk("merchant", "go-live", created.result["id"], "--json")).result
    assert again == first


async def test_shipped_goods_do_not_go_live_where_holds_are_too_short(
    paydesk: Any, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    environment |= LIVE
    created = await paydesk("merchant", "create", "--name", "A", "--email", "a@b.example", "--json", "--shipped-goods")
    monkeypatch.setattr(StripeAcquirer, "hold_period", timedelta(days=5))
    said = await paydesk("merchant", "go-live", created.result["id"])
    assert said.status == 1
    assert "stripe holds money for 5 days" in said.err


async def test_a_merchant_that_is_not_there_does_not_go_live(paydesk: Any) -> None:
    said = await paydesk("merchant", "go-live", 999_999_999)
    assert said.status == 1
    assert "there is no merchant 999999999" in said.err


@pytest.mark.parametrize("options", [[], ["--charge-all-periods"]])
async def test_who_lifts_a_suspension_second_has_no_missed_period_charged(
    paydesk: Any, account: dict[str, Any], database: Database, options: list[str]
) -> None:
    """Another operator, who has just lifted it, chose one period of each."""
    whose = account["id"]
    await suspend_merchant(database, COMMAND_LINE, whose, reason="forged goods", now=utc_now())
    async with database.acquire() as first, first.transaction():
        assert await queries.resume(first, merchant_id=whose) == whose
        second = asyncio.create_task(paydesk("merchant", "resume", whose, *options))
        await until_waiting(database, second)
    said = await second
    assert (said.status, "is not suspended" in said.err) == (1, True)
    assert await database.fetchval("select charge_missed_until from merchant where id = $1", whose) is None
    wanted = "select count(*) from audit_entry where merchant_id = $1 and action = 'missed_periods_wanted'"
    assert await database.fetchval(wanted, whose) == 0
