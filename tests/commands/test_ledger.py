from __future__ import annotations

import asyncio
import csv
import errno
import io
import json
import os
import stat
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any, NoReturn

import asyncpg
import pytest
from tests import set_back

from paydesk.adapters.vault import Vault
from paydesk.commands import ledger as exporting
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.business.profiles import PURPOSE
from paydesk.domain.ledger.balances import Posting
from paydesk.domain.ledger.payouts import Payout, record_payout_on


async def test_the_balance_of_a_merchant_is_shown(paydesk: Any, account: dict[str, Any], subscription: int) -> None:
    said = await paydesk("balance", account["id"], "--json")
    assert [(one["currency"], one["pending"]) for one in said.result["balances"]] == [("USD", 8.9)]
    assert len(said.result["reserve_releases"]) == 1
    table = (await paydesk("balance", account["id"])).out
    assert "8.90 " in table
    assert "reserve released on" in table


async def test_an_advance_of_the_clock_settles_and_releases(
    paydesk: Any, account: dict[str, Any], subscription: int
) -> None:
    await paydesk("subscription", "cancel", subscription)
    summary = (await paydesk("clock", "advance", account["id"], "8d", "--json")).result
    assert summary["counts"]["settlement"] == 1
    (balance,) = (await paydesk("balance", account["id"], "--json")).result["balances"]
    assert (balance["pending"], balance["available"], balance["reserve"]) == (0, 8.9, 0.5)
    summary = (await paydesk("clock", "advance", account["id"], "180d", "--json")).result
    assert summary["counts"]["reserve_release"] == 1
    (balance,) = (await paydesk("balance", account["id"], "--json")).result["balances"]
    assert (balance["available"], balance["reserve"]) == (9.4, 0)


async def test_a_payout_is_recorded_once_there_is_money(
    paydesk: Any, account: dict[str, Any], subscription: int
) -> None:
    words = ("payout", "record", account["id"], "5.00", "USD", "--reference", "TRF-1")
    said = await paydesk(*words)
    assert (said.status, said.out) == (1, "")
    assert said.err == "paydesk: only 0 USD are available, not 5.00\n"
    await paydesk("clock", "advance", account["id"], "8d")
    assert (await paydesk(*words, "--json")).result["reference"] == "TRF-1"
    (listed,) = (await paydesk("payout", "list", account["id"], "--json")).result
    assert (listed["amount"], listed["currency"], listed["recorded_by"]) == (5.0, "USD", "command")


async def test_the_same_payout_again_counts_once(paydesk: Any, account: dict[str, Any], subscription: int) -> None:
    def words(amount: str, reference: str, *more: str) -> tuple[object, ...]:
        return ("payout", "record", account["id"], amount, "USD", "--reference", reference, "--json", *more)

    await paydesk("clock", "advance", account["id"], "8d")
    first, again = await paydesk(*words("2.00", "TRF-1")), await paydesk(*words("2.00", " TRF-1 "))
    assert (first.err, again.result["id"], again.result["again"]) == ("", first.result["id"], True)
    assert "recorded before" in again.err
    other = await paydesk(*words("3.00", "TRF-1"))
    assert (other.status, other.out) == (1, "")
    assert f"payout {first.result['id']} of 2.00 USD" in other.err
    assert "has this reference already; another transfer needs a reference of its own" in other.err
    keyed = [await paydesk(*words("2.00", "TRF-1", "--key", "june")) for _ in range(2)]
    assert {one.result["id"] for one in keyed} != {first.result["id"]}
    assert len({one.result["id"] for one in keyed}) == 1
    changed = await paydesk(*words("3.00", "TRF-1", "--key", "june"))
    assert (changed.status, "has this key already" in changed.err) == (1, True)
    assert len((await paydesk("payout", "list", account["id"], "--json")).result) == 2


async def test_a_payout_whose_answer_is_lost_counts_once(
    paydesk: Any, account: dict[str, Any], subscription: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    await paydesk("clock", "advance", account["id"], "8d")
    honest = record_payout_on
    lost: list[Payout] = []

    async def commit_and_lose(connection: Any, *args: Any, **named: Any) -> Any:
        payout = await honest(connection, *args, **named)
        if not lost:
            lost.append(payout)
            # What the transaction has written stands, and its answer does not arrive.
            await connection.execute("commit; begin")
            raise asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation")
        return payout

    monkeypatch.setattr("paydesk.domain.operations.payouts.record_payout_on", commit_and_lose)
    said = await paydesk("payout", "record", account["id"], "2.00", "USD", "--reference", "TRF-1", "--json")
    assert (said.status, len(lost)) == (0, 1)
    (listed,) = (await paydesk("payout", "list", account["id"], "--json")).result
    assert listed["id"] == lost[0].id


async def test_a_payout_to_a_new_bank_account_waits_unless_the_command_says_why(
    paydesk: Any, account: dict[str, Any], subscription: int, database: Database
) -> None:
    await database.execute(
        "insert into ledger_entry (merchant_id, live, posting_id, kind, payment_id, account, currency, amount, at)"
        " select merchant_id, true, 1, 'settlement', id, e.account, 'USD', e.amount, now()"
        "   from payment cross join (values ('available', -9), ('acquirer', 9)) e (account, amount)"
        "  where merchant_id = $1",
        account["id"],
    )
    await set_back.profile(database, account["id"], "accepted", payouts_from=utc_now() + timedelta(days=1))
    words = ("payout", "record", account["id"], "2.00", "USD", "--reference", "TRF-1", "--live")
    refused = await paydesk(*words)
    assert (refused.status, "has a new bank account" in refused.err, refused.out) == (1, True, "")
    assert (await paydesk(*words, "--despite-wait", "The owner called")).status == 0
    (entry,) = await database.fetch(
        "select details from audit_entry where merchant_id = $1 and action = 'payout_changed'", account["id"]
    )
    assert json.loads(entry["details"])["despite_wait"] == "The owner called"


async def test_what_the_bank_has_sent_to_who_is_suspended_is_recorded_and_nothing_else_is(
    paydesk: Any, account: dict[str, Any], database: Database
) -> None:
    assert (await paydesk("merchant", "suspend", account["id"], "--reason", "Under review")).status == 0
    words = ("payout", "record", account["id"], "2.00", "USD", "--reference", "TRF-2", "--live")
    for more in ((), ("--despite-wait", "The owner called"), ("--has-left", " ")):
        refused = await paydesk(*words, *more)
        assert (refused.status, "is suspended" in refused.err) == (1, True)
    known = "The file was dropped by mistake; statement of 3 May"
    assert (await paydesk(*words, "--has-left", known)).status == 0
    assert "recorded before" in (await paydesk(*words, "--has-left", known)).err
    (listed,) = (await paydesk("payout", "list", account["id"], "--live", "--json")).result
    assert (listed["reference"], listed["amount"]) == ("TRF-2", 2)
    (entry,) = await database.fetch(
        "select details from audit_entry where merchant_id = $1 and action = 'payout_changed'", account["id"]
    )
    assert json.loads(entry["details"])["despite_wait"] == known


async def test_an_operator_reads_where_to_pay_to_and_the_log_keeps_it(
    paydesk: Any, account: dict[str, Any], database: Database, environment: dict[str, str]
) -> None:
    none = await paydesk("payout", "account", account["id"])
    assert (none.status, none.err) == (
        1,
        f"paydesk: merchant {account['id']} has no accepted bank account; see: paydesk profile show {account['id']}\n",
    )
    vault = Vault.from_settings(environment["PAYDESK_VAULT_KEYS"], environment["PAYDESK_SECRET_KEY"])
    iban = "DE89370400440532013000"
    sealed = vault.seal(iban.encode(), purpose=PURPOSE, merchant_id=account["id"], row_id=account["id"])
    of_shop = {"account_holder": "Corner Shop Ltd", "iban_sealed": sealed.blob, "vault_key_id": sealed.key_id}
    await set_back.profile(database, account["id"], "accepted", **of_shop, iban_last4="3000")
    said = await paydesk("payout", "account", account["id"])
    assert said.out.splitlines()[1:] == [
        "account holder     Corner Shop Ltd",
        "IBAN               DE89 3704 0044 0532 0130 00",
    ]
    assert (await paydesk("payout", "account", account["id"], "--json")).result["iban"] == iban
    entries = await database.fetch(
        "select action, details from audit_entry where merchant_id = $1 and action = 'bank_account_read'", account["id"]
    )
    assert [json.loads(entry["details"]) for entry in entries] == [{"last4": "3000"}] * 2


@pytest.mark.parametrize(
    ("amount", "currency", "complaint"),
    [("0", "USD", "greater than 0"), ("1.001", "USD", "has 3 decimals"), ("1", "XXX", "not an ISO 4217 currency")],
)
async def test_a_payout_of_nonsense_is_refused(
    paydesk: Any, account: dict[str, Any], amount: str, currency: str, complaint: str
) -> None:
    said = await paydesk("payout", "record", account["id"], amount, currency, "--reference", "T")
    assert said.status == 1
    assert complaint in said.err


async def test_the_export_is_the_statement_as_csv_or_as_json_lines(
    paydesk: Any, account: dict[str, Any], subscription: int, tmp_path: Path
) -> None:
    await paydesk("clock", "advance", account["id"], "8d")
    said = await paydesk("ledger", "export", account["id"])
    rows = list(csv.DictReader(io.StringIO(said.out)))
    assert [row["kind"] for row in rows] == ["capture", "settlement"]
    assert (rows[0]["gross"], rows[0]["fees"], rows[0]["pending"], rows[0]["reserve"]) == ("10", "-0.6", "8.9", "0.5")
    assert said.err == "paydesk: 2 postings written\n"
    path = tmp_path / "january.jsonl"
    await paydesk("ledger", "export", account["id"], "--format", "jsonl", "--output", path)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["available"] for line in lines] == [0, 8.9]


async def test_an_export_of_a_period_holds_that_period_alone(
    paydesk: Any, account: dict[str, Any], subscription: int
) -> None:
    said = await paydesk("ledger", "export", account["id"], "--to", "2020-01-01")
    assert len(said.out.splitlines()) == 1
    said = await paydesk("ledger", "export", account["id"], "--from", "yesterday")
    assert (said.status, "--from" in said.err) == (1, True)


async def test_a_file_that_cannot_be_written_is_said_so(paydesk: Any, account: dict[str, Any], tmp_path: Path) -> None:
    said = await paydesk("ledger", "export", account["id"], "--output", tmp_path / "none" / "x.csv")
    assert said.status == 1
    assert "cannot write" in said.err


def beside(path: Path) -> dict[str, str]:
    """The files of a folder that begin as a file's name does, and what they hold."""
    return {one.name: one.read_text() for one in path.parent.glob(f"{path.stem}*")}


async def test_an_export_that_ends_half_way_leaves_what_was_there(
    paydesk: Any, account: dict[str, Any], subscription: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> NoReturn:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = tmp_path / "january.csv"
    path.write_text("of before")
    monkeypatch.setattr("paydesk.commands.ledger._cells", full)
    said = await paydesk("ledger", "export", account["id"], "--output", path)
    assert said.status == 1
    assert "make room" in said.err
    assert beside(path) == {"january.csv": "of before"}


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="every file has a name here")
async def test_an_export_that_is_killed_leaves_nothing_behind(
    paydesk: Any, account: dict[str, Any], subscription: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, cells, seen = tmp_path / "january.csv", exporting._cells, []

    def watched(posting: Posting) -> list[object]:
        seen.append(beside(path))
        return cells(posting)

    monkeypatch.setattr(exporting, "_cells", watched)
    assert (await paydesk("ledger", "export", account["id"], "--output", path)).status == 0
    assert seen
    assert not any(seen), "what has no name is gone with whoever writes it"
    assert list(beside(path)) == ["january.csv"]


async def test_an_export_to_what_stdout_is_goes_into_its_pipe(
    paydesk: Any, account: dict[str, Any], subscription: int, tmp_path: Path
) -> None:
    whole = (await paydesk("ledger", "export", account["id"])).out
    reads, writes = os.pipe()
    try:
        said = await paydesk("ledger", "export", account["id"], "--output", f"/proc/self/fd/{writes}")
        assert (said.status, said.out) == (0, "")
        os.close(writes)
        with os.fdopen(reads, closefd=False) as pipe:
            assert pipe.read() == whole
    finally:
        os.close(reads)


async def test_an_export_into_a_file_of_before_is_read_by_no_others(
    paydesk: Any, account: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "january.csv"
    path.touch(mode=0o600)
    assert (await paydesk("ledger", "export", account["id"], "--output", path)).status == 0
    assert (stat.S_IMODE(path.stat().st_mode), path.stat().st_size > 0) == (0o600, True)


@pytest.mark.parametrize("name", ["x" * 255, "x" * 256, "loop/january.csv", "file/january.csv"])
async def test_a_file_by_any_name_is_written_or_said_not_to_be(
    paydesk: Any, account: dict[str, Any], tmp_path: Path, name: str
) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "file").touch()
    said = await paydesk("ledger", "export", account["id"], "--output", tmp_path / name)
    if len(name) == 255:
        assert (said.status, (tmp_path / name).stat().st_size > 0) == (0, True)
    else:
        assert said.status == 1
        assert said.err.startswith(f"paydesk: cannot write {tmp_path / name}: ")


async def test_an_export_that_the_disk_does_not_keep_leaves_what_was_there(
    paydesk: Any, account: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a disk is that tells of an error, or of no room, only once it writes."""

    def broken(*_: object) -> NoReturn:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    path = tmp_path / "january.csv"
    path.write_text("of before")
    monkeypatch.setattr(os, "fsync", broken)
    said = await paydesk("ledger", "export", account["id"], "--output", path)
    assert (said.status, said.err) == (1, f"paydesk: cannot write {path}: Input/output error\n")
    assert beside(path) == {"january.csv": "of before"}


@pytest.fixture(params=["", "EOPNOTSUPP", "EISDIR"], ids=["nameless", "nfs", "old kernel"])
def _folder(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that takes files without a name, or, as many file systems, none."""
    honest, nameless = os.open, getattr(os, "O_TMPFILE", 0)

    def opened(path: Any, flags: int, *args: Any, **more: Any) -> int:
        if request.param and flags & nameless == nameless:
            number = getattr(errno, request.param)
            raise OSError(number, os.strerror(number))
        return honest(path, flags, *args, **more)

    monkeypatch.setattr(os, "open", opened)


@pytest.mark.usefixtures("_folder")
@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
async def test_an_export_whose_disk_fails_amid_it_is_whole_or_absent_and_no_missing_database(
    paydesk: Any,
    account: dict[str, Any],
    subscription: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
) -> None:
    def broken(*_: object) -> NoReturn:
        raise OSError(number, os.strerror(number))

    whole = (await paydesk("ledger", "export", account["id"])).out
    path = tmp_path / "january.csv"
    with monkeypatch.context() as failing:
        failing.setattr("paydesk.commands.ledger._cells", broken)
        said = await paydesk("ledger", "export", account["id"], "--output", path)
    assert (said.status, said.err.count("\n"), "database" in said.err) == (1, 1, False)
    assert os.strerror(number) in said.err
    assert (str(path) in said.err, "make room" in said.err) == (number == errno.EIO, number == errno.ENOSPC)
    assert beside(path) == {}
    assert (await paydesk("ledger", "export", account["id"], "--output", path)).status == 0
    assert beside(path) == {"january.csv": whole}


async def test_an_export_to_what_stdout_is_is_added_to_its_file(
    paydesk: Any, account: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "all.csv"
    path.write_text("of before")
    kept = os.dup(1)
    try:
        with path.open("a") as added:
            os.dup2(added.fileno(), 1)
        said = await paydesk("ledger", "export", account["id"], "--output", "/dev/stdout")
    finally:
        os.dup2(kept, 1)
        os.close(kept)
    assert (said.status, path.read_text()) == (0, "of before")
    assert said.out.startswith('"id"')


async def test_two_exports_into_one_file_are_both_whole(
    paydesk: Any, account: dict[str, Any], subscription: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = (await paydesk("ledger", "export", account["id"])).out
    path, cells, first = tmp_path / "january.csv", exporting._cells, [True]
    begun, other_done = threading.Event(), threading.Event()

    def slowly(posting: Posting) -> list[object]:
        if first and first.pop():
            begun.set()
            other_done.wait()
        return cells(posting)

    monkeypatch.setattr(exporting, "_cells", slowly)
    slow = asyncio.create_task(paydesk("ledger", "export", account["id"], "--output", path))
    await asyncio.to_thread(begun.wait)
    try:
        said = await paydesk("ledger", "export", account["id"], "--output", path)
        assert said.status == 0
        assert beside(path) == {"january.csv": whole} | {one: "" for one in beside(path) if one.endswith(".part")}
    finally:
        other_done.set()
    assert (await slow).status == 0
    assert beside(path) == {"january.csv": whole}


class TestChargebacks:
    @pytest.fixture(autouse=True)
    async def _from_the_start(self, database: Database) -> None:
        """Each test has a bank of its own, whose disputes nobody has read."""
        await set_back.banks_tell_again(database)

    @pytest.fixture
    async def payment(self, subscription: int, database: Database) -> int:
        return int(await database.fetchval("select init_payment_id from subscription where id = $1", subscription))

    async def test_one_is_opened_answered_and_won(self, paydesk: Any, account: dict[str, Any], payment: int) -> None:
        opened = (await paydesk("chargeback", "open", payment, "--reason", "product_not_received", "--json")).result
        assert (opened["state"], opened["amount"], opened["reason"]) == ("open", 10, "product_not_received")
        said = await paydesk("chargeback", "evidence", opened["id"], "Signed for", "--json")
        assert said.result["evidence"] == "Signed for"
        assert (await paydesk("chargeback", "win", opened["id"], "--json")).result["state"] == "won"
        (listed,) = (await paydesk("chargeback", "list", account["id"], "--json")).result
        assert listed["state"] == "won"
        assert "Signed for" in (await paydesk("chargeback", "show", opened["id"])).out

    async def test_one_that_is_lost_stays_lost(self, paydesk: Any, payment: int) -> None:
        opened = (await paydesk("chargeback", "open", payment, "--json")).result
        assert (await paydesk("chargeback", "lose", opened["id"], "--json")).result["state"] == "lost"
        assert (await paydesk("chargeback", "win", opened["id"])).status == 1
        assert (await paydesk("chargeback", "open", payment)).status == 1

    async def test_what_is_not_there_is_not_found(self, paydesk: Any) -> None:
        for words in (("show", 10**12), ("open", 10**12), ("win", 10**12), ("evidence", 10**12, "x")):
            said = await paydesk("chargeback", *words)
            assert (said.status, "there is no" in said.err) == (1, True)
