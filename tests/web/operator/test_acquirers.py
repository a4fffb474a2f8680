"""Accounts at acquirers in the console: password and second factor are asked for again, and a key
is never shown.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests import breaking, set_back
from tests.web.account.conftest import SignUp, Visitor, text_of
from tests.web.account.test_getting_in import log_in, second_factor

from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.accounts.audit import COMMAND_LINE
from paydesk.domain.acquirers.opening import AccountToOpen, OpenAcquirers
from paydesk.domain.acquirers.routing import Rule
from paydesk.domain.operations.acquirer_rules import add_rule, remove_rule

KEY = "sk_live_51OnlyOurs"
NEW = "/operator/acquirers/new"


@pytest.fixture(autouse=True)
async def _no_accounts_left(database: Database) -> AsyncIterator[None]:
    """Accounts are the deployment's: every process would open them."""
    yield
    await breaking.no_accounts(database)


@pytest.fixture(autouse=True)
def _answering(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every key is one that an acquirer answers to; those that begin alike are of one account."""

    async def identify(_: OpenAcquirers, account: AccountToOpen, **__: object) -> str:
        return f"acct_{account.key.removeprefix(KEY[:-1])[:1]} live"

    monkeypatch.setattr(OpenAcquirers, "identify", identify)


@pytest.fixture
async def operator(sign_up: SignUp, database: Database) -> tuple[Visitor, list[str]]:
    """Somebody who runs the deployment, with codes of their second factor."""
    visitor = await sign_up("Own Shop")
    await set_back.runs_the_deployment(database, visitor.email)
    visitor.web.cookies.delete("paydesk")
    await log_in(visitor, visitor.email)
    _, codes = await second_factor(visitor)
    return visitor, codes


async def add(visitor: Visitor, code: str, **more: str) -> Any:
    fields = {
        "name": f"eu-{secrets.token_hex(4)}",
        "kind": "stripe",
        "key": KEY,
        "currencies": "EUR chf",
        "code": code,
        **more,
    }
    return await visitor.send(NEW, **fields)


async def page_of(database: Database) -> str:
    """The page of the only account."""
    return f"/operator/acquirers/{await database.fetchval('select id from acquirer_account where enabled')}"


async def audited(database: Database, visitor: Visitor) -> list[tuple[str, str]]:
    rows = await database.fetch(
        "select e.action, e.details::text from audit_entry e join person p on p.id = e.person_id"
        " where p.email = $1 and e.action like 'acquirer%' order by e.id",
        visitor.email,
    )
    return [tuple(row) for row in rows]


async def test_an_account_is_added_listed_and_written_down_without_its_key(
    operator: tuple[Visitor, list[str]], database: Database, capfd: pytest.CaptureFixture[str]
) -> None:
    visitor, codes = operator
    assert (await add(visitor, codes[0])).status_code == 303
    page = await visitor.see("/operator/acquirers")
    assert await database.fetchval("select name from acquirer_account where kind = 'stripe'") in text_of(page)
    assert "CHF EUR" in text_of(page)
    ((action, details),) = await audited(database, visitor)
    assert action == "acquirer_added"
    one = await visitor.see(await page_of(database))
    stored = await database.fetchval("select a::text from acquirer_account a where kind = 'stripe'")
    for said in (page.text, one.text, details, stored, "".join(capfd.readouterr())):
        assert KEY not in said


async def test_without_a_right_code_nothing_is_added(operator: tuple[Visitor, list[str]], database: Database) -> None:
    visitor, _ = operator
    refused = await add(visitor, "000000")
    assert refused.status_code == 400
    assert KEY not in refused.text
    assert await database.fetchval("select count(*) from acquirer_account where kind = 'stripe'") == 0


async def test_a_password_that_was_given_long_ago_is_asked_for_again(
    operator: tuple[Visitor, list[str]], database: Database
) -> None:
    visitor, codes = operator
    await set_back.password_long_ago(database, visitor.email)
    asked = await visitor.see(NEW)
    assert asked.status_code in (303, 403, 401)
    assert 'name="key"' not in asked.text
    assert codes


async def test_pressed_twice_it_is_added_once(operator: tuple[Visitor, list[str]], database: Database) -> None:
    visitor, codes = operator
    await add(visitor, codes[0])
    again = await add(visitor, codes[1])
    assert again.status_code == 409
    assert await database.fetchval("select count(*) from acquirer_account where kind = 'stripe'") == 1


async def test_another_key_of_the_same_account_adds_no_second_one(
    operator: tuple[Visitor, list[str]], database: Database
) -> None:
    visitor, codes = operator
    await add(visitor, codes[0])
    again = await add(visitor, codes[1], key=f"{KEY}2")
    assert again.status_code == 409
    assert "acct_s live" in text_of(again)
    assert await database.fetchval("select count(*) from acquirer_account where kind = 'stripe'") == 1


async def test_a_key_of_another_account_is_refused(operator: tuple[Visitor, list[str]], database: Database) -> None:
    visitor, codes = operator
    await add(visitor, codes[0])
    refused = await visitor.send(await page_of(database), key=f"{KEY[:-1]}x", code=codes[1], enabled="1")
    assert refused.status_code == 409
    assert "acct_x live" in text_of(refused)
    assert await database.fetchval("select own_id from acquirer_own_id") == "acct_s live"


async def test_an_account_is_disabled_and_gets_another_key(
    operator: tuple[Visitor, list[str]], database: Database
) -> None:
    visitor, codes = operator
    await add(visitor, codes[0])
    before = await database.fetchrow("select id, revision, key_sealed from acquirer_account where kind = 'stripe'")
    page = await page_of(database)
    changed = await visitor.send(page, key=f"{KEY}2", currencies="", code=codes[1])
    assert changed.status_code == 303
    after = await database.fetchrow("select * from acquirer_account where id = $1", before["id"])
    assert after["revision"] > before["revision"]
    assert after["key_sealed"] != before["key_sealed"]
    assert (after["enabled"], after["currencies"]) == (False, [])
    assert [action for action, _ in await audited(database, visitor)] == ["acquirer_added"] + ["acquirer_changed"] * 3


async def test_a_box_that_says_no_switches_nothing_on(operator: tuple[Visitor, list[str]], database: Database) -> None:
    visitor, codes = operator
    refused = await add(visitor, codes[0], hosts_pages="0")
    assert (refused.status_code, 'id="e-hosts_pages"' in refused.text) == (400, True)
    await add(visitor, codes[0])
    refused = await visitor.send(await page_of(database), currencies="", enabled="0", code=codes[1])
    assert (refused.status_code, 'id="e-enabled"' in refused.text) == (400, True)
    assert len(await audited(database, visitor)) == 1, "the code is not used up, and nothing changed"


async def test_the_secret_of_notifications_is_set_and_never_shown(
    operator: tuple[Visitor, list[str]], database: Database
) -> None:
    visitor, codes = operator
    await add(visitor, codes[0], webhook_secrets="whsec_first")
    page = await page_of(database)
    before = await database.fetchrow("select revision, webhook_sealed from acquirer_account where kind = 'stripe'")
    assert before["webhook_sealed"] is not None
    refused = await visitor.send(page, webhook_secrets="sk_live_x", code=codes[1], enabled="1")
    assert (refused.status_code, "begin with whsec_" in text_of(refused)) == (400, True)
    changed = await visitor.send(page, webhook_secrets="whsec_first, whsec_second", code=codes[2], enabled="1")
    assert changed.status_code == 303
    after = await database.fetchrow("select revision, webhook_sealed from acquirer_account where kind = 'stripe'")
    assert after["revision"] > before["revision"]
    assert after["webhook_sealed"] != before["webhook_sealed"]
    shown = await visitor.see(page)
    details = " ".join(details for _, details in await audited(database, visitor))
    for said in (shown.text, details, refused.text):
        assert "whsec_first" not in said
        assert "whsec_second" not in said
    assert '"secrets of notifications": 2' in details


async def test_to_a_merchants_team_there_is_no_such_page(owner: Visitor) -> None:
    for page in (NEW, "/operator/acquirers/1"):
        assert (await owner.see(page)).status_code == 404


async def test_the_rules_stand_on_the_page_as_they_are_tried(
    operator: tuple[Visitor, list[str]], database: Database
) -> None:
    visitor, _ = operator
    swiss = Rule(0, "simulator", None, "CHF", "CH", "", None, None, 30)
    made = await add_rule(database, COMMAND_LINE, swiss, {"simulator"}, now=utc_now())
    assert "CHF, from CH, 30 %" in text_of(await visitor.see("/operator/acquirers"))
    await remove_rule(database, COMMAND_LINE, made.id, now=utc_now())
    assert "CHF, from CH" not in text_of(await visitor.see("/operator/acquirers"))
