from __future__ import annotations

from contextlib import closing
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from paydesk.adapters.acquirers.marks import Mark, PurchaseKind
from paydesk.adapters.acquirers.purchases import CardDetails, Purchase
from paydesk.adapters.acquirers.simulator import Bank, Record, SimulatedAcquirer
from paydesk.commands import checking
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.ledger.checking import BANK_RULES, RULES
from paydesk.web.assets import ASSETS, asset_url
from paydesk.web.checkout.page_comparing import FILES, NotReached, Served
from paydesk.web.checkout.pages import texts_for
from paydesk.web.checkout.sample import SAMPLE, sample_page


@pytest.fixture
async def account_with_difference(account: dict[str, Any], add_pingback: Any, database: Database) -> dict[str, Any]:
    """A merchant with three pingbacks that claim an attempt which nobody has recorded."""
    for _ in range(3):
        await add_pingback(account["id"], attempts=1)
    return account


async def test_a_clean_merchant_passes(account: dict[str, Any], paydesk: Any) -> None:
    said = await paydesk("check", "--merchant", account["id"])
    assert (said.status, said.out) == (0, f"clean: {len(RULES)} rules hold\n")
    assert "the simulated bank is not compared" in said.err
    assert "--simulator-record" in said.err


async def test_the_banks_record_in_the_data_directory_is_compared(
    account: dict[str, Any], paydesk: Any, environment: dict[str, str]
) -> None:
    path = Path(environment["PAYDESK_DATA_DIR"], "simulator", "record.sqlite")
    path.parent.mkdir()
    Record(path).close()
    said = await paydesk("check", "--merchant", account["id"], "--json")
    assert said.result["simulator_record"] == str(path)
    assert [rule["rule"] for rule in said.result["rules"]] == [rule.words for rule in (*RULES, *BANK_RULES)]
    assert said.err == ""


async def test_a_bank_of_its_own_needs_its_record_named(
    account: dict[str, Any], paydesk: Any, environment: dict[str, str], tmp_path: Path
) -> None:
    environment["PAYDESK_SIMULATOR_URL"] = "http://127.0.0.1:9"
    said = await paydesk("check", "--merchant", account["id"])
    assert "it runs at http://127.0.0.1:9" in said.err
    path = tmp_path / "elsewhere.sqlite"
    missing = await paydesk("check", "--simulator-record", path)
    assert missing.status == 1
    assert f"there is no record {path}" in missing.err
    path.write_text("this is no database, whatever its name says")
    wrong = await paydesk("check", "--simulator-record", path)
    assert wrong.status == 1
    assert "is not a simulated bank's record" in wrong.err


@pytest.mark.parametrize("mark", [Mark("another", 1, "tag", live=False, kind=PurchaseKind.ORDER, order="A-1"), None])
async def test_what_other_cells_took_at_a_bank_that_they_share_is_left_out(
    account: dict[str, Any], paydesk: Any, tmp_path: Path, mark: Mark | None
) -> None:
    """What has no mark is nobody's, so that all would miss it."""
    record, card = Record(tmp_path / "shared.sqlite"), CardDetails("4242424242424242", 12, 2040, "Ada", "123")
    until = utc_now() + timedelta(minutes=1)
    asked = Purchase(
        key="theirs", amount=Decimal("7.50"), currency="EUR", card=card, capture=True, not_after=until, mark=mark
    )
    with closing(record):
        await SimulatedAcquirer(Bank(record), base_url="http://pay.test").authorize(asked)
    said = await paydesk("check", "--simulator-record", record.path)
    assert ("under a key that no attempt has" in said.out) == (mark is None), said.out
    assert ("serves other cells, or deployments, too; left out: 1 purchase" in said.err) == (mark is not None), said.err
    as_json = await paydesk("check", "--simulator-record", record.path, "--json")
    assert as_json.result["left_out"] == (0 if mark is None else 1)


async def test_differences_are_named_up_to_a_number_and_the_rest_counted(
    account_with_difference: dict[str, Any], paydesk: Any
) -> None:
    merchant_id = account_with_difference["id"]
    said = await paydesk("check", "--merchant", merchant_id, "--most", 2)
    assert said.status == 1
    rule, first, second, rest = said.out.splitlines()
    assert rule == "3 rows against the rule: a pingback's state follows from its attempts"
    assert first.startswith("  pingback ")
    assert first.endswith(f" of merchant {merchant_id}: counts 1 attempts, but 0 are recorded")
    assert second.startswith("  pingback ")
    assert rest == "  and 1 more"


async def test_differences_as_json(account_with_difference: dict[str, Any], paydesk: Any) -> None:
    said = await paydesk("check", "--merchant", account_with_difference["id"], "--json")
    assert said.status == 1
    report = said.result
    assert (report["clean"], report["open_outcomes"], report["simulator_record"]) == (False, 0, None)
    (rule,) = [rule for rule in report["rules"] if rule["found"]]
    assert (rule["name"], rule["found"]) == ("pingbacks_follow", 3)
    assert {difference["table"] for difference in rule["differences"]} == {"pingback"}


async def test_an_unknown_merchant_is_named(paydesk: Any) -> None:
    said = await paydesk("check", "--merchant", 999_999_999)
    assert said.status == 1
    assert "there is no merchant 999999999" in said.err


async def test_the_payment_page_of_the_public_address_is_compared(
    paydesk: Any, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    built = sample_page(texts_for("en"))
    answers = {SAMPLE: Served(200, dict(built.headers), bytes(built.body))}
    answers |= {asset_url(name): Served(200, {}, ASSETS.find(name).content) for name in FILES}

    async def fetch(url: str) -> Served:
        if url.removeprefix("https://pay.example") not in answers:
            raise NotReached(f"{url} can't be reached")
        return answers[url.removeprefix("https://pay.example")]

    monkeypatch.setattr(checking, "fetch", fetch)
    environment["PAYDESK_BASE_URL"] = "https://pay.example"
    said = await paydesk("check", "--pages")
    assert (said.status, said.out) == (
        0, "same: https://pay.example serves the payment page that was built, and 4 files of card pages\n",
    )  # fmt: skip
    answers[asset_url("checkout.js")] = Served(200, {}, b"steal()")
    said = await paydesk("check", "--pages", "--json")
    assert (said.status, said.result["same"]) == (1, False)
    assert "checkout.js has the SHA-256" in said.result["differences"][0]
    answers.clear()
    said = await paydesk("check", "--pages")
    assert (said.status, said.out, said.err.count("\n")) == (1, "", 1)
    assert "PAYDESK_BASE_URL is where customers get it" in said.err
