from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from datetime import datetime, timedelta
from typing import Any

import pytest

from paydesk.adapters.vault import generate_key_setting
from paydesk.core.clock import utc_now
from paydesk.core.errors import Forbidden
from paydesk.database.pool import Database
from paydesk.domain.merchants.accounts import Shop
from paydesk.domain.merchants.rejections import log_rejected_form

KEYS = ("public_key", "private_key")


async def test_a_created_merchant_has_an_id_and_a_key_pair(account: dict[str, Any], paydesk: Any) -> None:
    assert isinstance(account["id"], int)
    assert all(len(account[key]) >= 16 for key in KEYS)
    created = datetime.fromisoformat(account["created_at"])
    assert created.utcoffset() == timedelta(0)
    shown = (await paydesk("merchant", "show", account["id"], "--with-private-key", "--json")).result
    assert shown == account


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


async def test_shipped_goods_are_stored_with_a_note_beside_the_result(paydesk: Any) -> None:
    said = await paydesk("merchant", "create", "--name", "A", "--email", "a@b.example", "--shipped-goods", "--json")
    assert said.result["shipped_goods"] is True
    assert "captured at once" in said.err


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


async def test_changing_nothing_is_a_mistake(account: dict[str, Any], paydesk: Any) -> None:
    said = await paydesk("merchant", "set", account["id"])
    assert said.status == 1
    assert "nothing to change" in said.err


async def test_refused_forms_are_listed_newest_first(account: dict[str, Any], paydesk: Any, database: Database) -> None:
    now = utc_now()
    for minutes, amount in ((5, "1"), (1, "2\x1b[31m")):
        await log_rejected_form(
            database,
            Shop(account["id"], live=False),
            Forbidden("hash is wrong"),
            {"amount": amount},
            now - timedelta(minutes=minutes),
        )
    listed = (await paydesk("merchant", "rejected-forms", account["id"], "--json")).result
    assert [form["fields"] for form in listed] == [{"amount": "2\x1b[31m"}, {"amount": "1"}]
    assert (listed[0]["status"], listed[0]["reason"], listed[0]["live"]) == (403, "hash is wrong", False)
    text = (await paydesk("merchant", "rejected-forms", account["id"], "--last", 1)).out
    assert "hash is wrong" in text
    assert "\x1b" not in text
    assert text.count("status") == 1


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
