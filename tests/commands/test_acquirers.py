"""Accounts at acquirers by the command line: a key goes in, and never comes out."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from tests import breaking, set_back

from paydesk.adapters.acquirers.disputes import Dispute, DisputeStatus, FailedRefund
from paydesk.adapters.vault import Vault
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.acquirers.accounts import PURPOSE
from paydesk.domain.acquirers.waiting import wait_no_more
from paydesk.domain.chargebacks import waiting_disputes
from paydesk.domain.chargebacks.reckoning import OF_NOBODY
from paydesk.domain.payments import waiting_refunds


async def test_nothing_is_added_yet(paydesk: Any, database: Database) -> None:
    await breaking.no_accounts(database)
    said = await paydesk("acquirer", "list", "--json")
    assert said.status == 0
    assert {one["kind"] for one in said.result} <= {"gone"}, "those of other tests"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("stripe", "--kind", "stripe"), "a name has"),
        (("Second", "--kind", "simulator", "--address", "http://127.0.0.1:1"), "a name has"),
        (("second", "--kind", "bank"), "the kind is one of"),
        (("second", "--kind", "simulator"), "needs its address"),
        (("second", "--kind", "simulator", "--address", "http://127.0.0.1:1", "--currencies", "EUX"), "ISO 4217"),
        (("second", "--kind", "simulator", "--address", "http://127.0.0.1:1"), "does not answer"),
    ],
)
async def test_what_can_not_be_an_account_is_refused_in_one_line(
    paydesk: Any, options: tuple[str, ...], words: str
) -> None:
    said = await paydesk("acquirer", "add", *options, stdin="sk_live_secret\n")
    assert (said.status, said.out, said.err.count("\n")) == (1, "", 1)
    assert words in said.err
    assert "secret" not in said.err


async def test_an_account_that_is_not_there_is_named(paydesk: Any) -> None:
    said = await paydesk("acquirer", "disable", "nowhere")
    assert said.status == 1
    assert "nowhere" in said.err


async def test_an_account_that_was_added_is_verified_by_its_own_key_unless_that_is_a_live_one(
    paydesk: Any, database: Database, environment: dict[str, str]
) -> None:
    vault = Vault.from_settings(environment["PAYDESK_VAULT_KEYS"], environment["PAYDESK_SECRET_KEY"])
    account = await set_back.account(database, vault.current_key_id)
    sealed = vault.seal(b"sk_live_secret", purpose=PURPOSE, merchant_id=0, row_id=account)
    this = {"id": account}
    await breaking.say(
        database, "acquirer_account", this, key_sealed=sealed.blob, webhook_sealed=None, webhook_key_id=None
    )
    try:
        said = await paydesk("acquirer", "verify", f"account-{account}")
        assert (said.status, said.out) == (1, "")
        assert f"the key of account-{account} is a live key" in said.err
        assert "secret" not in said.err
        await breaking.say(
            database,
            "acquirer_account",
            this,
            kind="simulator",
            address="http://127.0.0.1:1",
            key_sealed=None,
            vault_key_id=None,
        )
        tried = (await paydesk("acquirer", "verify", f"account-{account}", "--json")).result["points"]
        assert {one["state"] for one in tried if one["tried"] == "charge a card"} == {"failed"}, "nobody is there"
    finally:
        await breaking.no_accounts(database)


async def test_what_is_no_account_that_was_forgotten_is_not_gone(paydesk: Any) -> None:
    said = await paydesk("acquirer", "gone", "nowhere", "its contract has ended")
    assert (said.status, said.out) == (1, "")
    assert 'no account "nowhere" is missed' in said.err


async def test_an_account_that_can_not_be_read_is_gone_once_it_is_disabled_and_back_once_it_is_enabled(
    paydesk: Any, database: Database, environment: dict[str, str]
) -> None:
    vault = Vault.from_settings(environment["PAYDESK_VAULT_KEYS"], environment["PAYDESK_SECRET_KEY"])
    name = f"account-{await set_back.account(database, vault.current_key_id)}"
    try:
        refused = await paydesk("acquirer", "gone", name, "its key was revoked")
        assert (refused.status, f"paydesk acquirer disable {name}" in refused.err) == (1, True)
        await paydesk("acquirer", "disable", name)
        assert (await paydesk("acquirer", "gone", name, "its key was revoked")).status == 0
        listed = {one["name"]: one for one in (await paydesk("acquirer", "list", "--json")).result}
        assert listed[name]["gone_at"] is not None
        assert "gone" in (await paydesk("acquirer", "list")).out
        assert (await paydesk("acquirer", "enable", name, "--json")).result["gone_at"] is None
    finally:
        await breaking.no_accounts(database)


async def test_what_waits_for_a_merchant_elsewhere_is_listed_with_its_account_and_what_for(
    paydesk: Any, database: Database
) -> None:
    now = utc_now()
    refund = FailedRefund("re_1", "a key", Decimal("4.00"), "USD", "unknown", now)
    dispute = Dispute("dp_1", "another", Decimal("5.00"), "EUR", "fraudulent", DisputeStatus.OPEN, now)
    async with database.acquire() as connection:
        await waiting_refunds.keep(connection, "stripe-eu", [refund], now=now)
        await waiting_disputes.keep_unknown(connection, "stripe-us", [dispute], now=now)
    try:
        said = await paydesk("acquirer", "waiting", "--json")
        found = {one["what"]: one for one in said.result}
        assert (found["failed refund"]["acquirer"], found["failed refund"]["told"]["reference"]) == (
            "stripe-eu",
            "re_1",
        )
        assert (found["dispute"]["reason"], found["dispute"]["alarmed_at"]) == (OF_NOBODY.reason, None)
        one = await paydesk("acquirer", "waiting", "--account", "stripe-us")
        assert ("dp_1" in one.out, "re_1" in one.out) == (True, False)
        assert "paydesk alarm settle" not in one.err
        await breaking.say(database, "dispute_waiting", {"acquirer": "stripe-us"}, alarmed_at=now)
        assert "paydesk alarm settle" in (await paydesk("acquirer", "waiting")).err
    finally:
        async with database.acquire() as connection:
            await wait_no_more(connection, waiting_refunds.REFUNDS, "stripe-eu", ["re_1"], now=now)
            await wait_no_more(connection, waiting_disputes.DISPUTES, "stripe-us", ["dp_1"], now=now)
