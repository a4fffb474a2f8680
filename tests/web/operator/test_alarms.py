"""The operator's list of alarms."""

from __future__ import annotations

from typing import Any

import pytest
from tests import breaking
from tests.sweeping import database, database_url
from tests.web.account.conftest import Visitor, fields_of, leads_to, text_of
from tests.web.account.test_errors_in_every_language import OTHERS, english_in, speak

from paydesk.core.clock import utc_now
from paydesk.core.wording import noted
from paydesk.database.pool import Database
from paydesk.domain.accounts.audit import COMMAND_LINE
from paydesk.domain.alarms.kinds import AlarmKind
from paydesk.domain.alarms.raising import Alarm, raise_alarms, settle_alarms
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.operations.accepting import accept_difference
from paydesk.domain.operations.comparing import UNKNOWN_HERE
from paydesk.domain.operations.history import RESTORED
from paydesk.web.operator.face import FACE

__all__ = ["database", "database_url"]

PAGE, SETTLE = "/operator/alarms", "/operator/alarms/settle"


@pytest.fixture(autouse=True)
async def _nothing_wrong_yet(database: Database) -> None:
    # Settled ones too: some are of their test clocks' future, and would stand before all of now.
    await breaking.no_alarms(database)


async def raised(database: Database, shop: Shop, subject: str = "payment 8") -> int:
    alarm = Alarm(AlarmKind.set_aside, subject, "<b>no such currency</b>", shop, {"attempt": 18})
    await raise_alarms(database, [alarm], now=utc_now())
    return int(await database.fetchval("select max(id) from alarm where merchant_id = $1", shop.merchant_id))


async def test_an_alarm_waits_with_its_reason_until_it_is_settled(
    operator: Visitor, database: Database, shop: Shop
) -> None:
    assert "Nothing is wrong." in text_of(await operator.see(PAGE))
    alarm_id = await raised(database, shop)
    shown = await operator.see(PAGE)
    assert "<b>no such" not in shown.text
    for words in ("Set aside", "payment 8", "Corner Shop", "<b>no such currency</b>", "Attempt: 18", "1 time"):
        assert words in text_of(shown).replace("&lt;", "<").replace("&gt;", ">"), words
    assert "Alarms 1" in text_of(await operator.see("/operator/overview"))
    assert leads_to(await operator.send(PAGE, SETTLE)) == PAGE
    assert "Nothing is wrong." in text_of(await operator.see(PAGE))
    assert "Ada Lovelace" in text_of(await operator.see(f"{PAGE}?view=settled"))
    audited: Any = await database.fetchrow(
        "select operator, subject from audit_entry where merchant_id = $1 and action = 'alarm_settled'",
        shop.merchant_id,
    )
    assert (audited["operator"], audited["subject"]) == (True, f"alarm {alarm_id}")


async def test_the_list_is_of_one_kind_if_asked_which_then_says_what_it_means(
    operator: Visitor, database: Database, shop: Shop
) -> None:
    await raised(database, shop)
    assert "payment 8" in text_of(await operator.see(f"{PAGE}?kind=set_aside"))
    other = text_of(await operator.see(f"{PAGE}?kind=clock_off"))
    assert "payment 8" not in other
    assert "Set the machine's time" in other.replace("&#39;", "'")


async def test_pages_of_the_list_go_on_where_the_last_ended(operator: Visitor, database: Database, shop: Shop) -> None:
    alarms = [Alarm(AlarmKind.set_aside, f"payment {number}8", "x", shop) for number in range(100, 170)]
    await raise_alarms(database, alarms, now=utc_now())
    first = await operator.see(PAGE)
    [older] = {
        part.partition('"')[0].replace("&amp;", "&") for part in first.text.split('href="')[1:] if "before=" in part
    }
    second = await operator.see(older.replace("&amp;", "&"))
    on_pages = [sum(f"payment {number}8" in text_of(page) for number in range(100, 170)) for page in (first, second)]
    assert on_pages == [50, 20]


async def test_what_is_settled_by_now_is_said_to(operator: Visitor, database: Database, shop: Shop) -> None:
    alarm_id = await raised(database, shop)
    form = fields_of((await operator.see(PAGE)).text, SETTLE)
    assert form["id"] == str(alarm_id)
    await settle_alarms(database, AlarmKind.set_aside, ["payment 8"], shop=shop, by="itself", now=utc_now())
    assert leads_to(await operator.web.post(SETTLE, data=form)) == PAGE
    assert "This is settled by now." in text_of(await operator.see(PAGE))


@pytest.mark.parametrize("fields", [{}, {"id": "x"}, {"id": "-1"}])
async def test_an_incomplete_wish_to_settle_is_refused(operator: Visitor, fields: dict[str, str]) -> None:
    token = fields_of((await operator.see("/account/security")).text, "/account/logout")["csrf"]
    assert (await operator.web.post(SETTLE, data={"csrf": token, **fields})).status_code == 400


async def test_nobody_else_settles(owner: Visitor, database: Database, shop: Shop) -> None:
    alarm_id = await raised(database, shop)
    token = fields_of((await owner.see("/account/security")).text, "/account/logout")["csrf"]
    answer = await owner.web.post(SETTLE, data={"csrf": token, "id": str(alarm_id)})
    assert answer.status_code == 404
    assert await database.fetchval("select settled_at from alarm where id = $1", alarm_id) is None


async def test_an_accepted_difference_is_listed_apart_with_who_and_why(operator: Visitor, database: Database) -> None:
    subject = "purchase 7-abc at simulator"
    await raise_alarms(database, [Alarm(AlarmKind.not_reconciled, subject, "10.00 USD there")], now=utc_now())
    alarm_id = int(await database.fetchval("select max(id) from alarm"))
    assert "No difference was accepted." in text_of(await operator.see(f"{PAGE}?view=accepted"))
    await accept_difference(database, COMMAND_LINE, alarm_id, "back by <b>bank</b> transfer", now=utc_now())
    assert "Nothing is wrong." in text_of(await operator.see(PAGE))
    assert "Alarms 1" not in text_of(await operator.see("/operator/overview"))
    shown = await operator.see(f"{PAGE}?view=accepted")
    assert "<b>bank" not in shown.text
    assert subject in text_of(shown)
    assert "command line: back by <b>bank</b> transfer" in text_of(shown)


@pytest.mark.parametrize("language", OTHERS)
async def test_what_to_do_about_each_kind_is_said_in_the_operators_language(operator: Visitor, language: str) -> None:
    pages = [f"{PAGE}?kind={kind}" for kind in AlarmKind]
    assert [page for page in pages if not english_in(text_of(await operator.see(page)))] == []
    await speak(operator, language)
    assert [page for page in pages if english_in(text_of(await operator.see(page)))] == []


@pytest.mark.parametrize("language", OTHERS)
async def test_an_alarm_is_said_in_the_operators_language_with_all_that_is_known(
    operator: Visitor, database: Database, shop: Shop, language: str
) -> None:
    end = noted("its end can't be recorded")
    why = noted("the list of %(acquirer)s can't be read: %(error)s", acquirer="bank-7", error="no route to host")
    told = [
        Alarm(AlarmKind.held, "this deployment", f"{RESTORED}. {why}"),
        Alarm(AlarmKind.set_aside, "payment 13330", f"{end}: no row 77", shop),
        Alarm(
            AlarmKind.not_reconciled, "refund r-8 at bank-7", UNKNOWN_HERE, None, {"reference": "re-9", "payment": 5}
        ),
    ]
    await raise_alarms(database, told, now=utc_now())
    shown = text_of(await operator.see(PAGE))
    kept = ("bank-7", "no route to host", "13330", "no row 77", "r-8", "re-9")
    assert [one for one in kept if one not in shown] == []
    assert english_in(shown)
    await speak(operator, language)
    said = text_of(await operator.see(PAGE))
    assert [one for one in kept if one not in said] == []
    assert english_in(said) == []
    texts = FACE.catalogues.texts_for(language)
    for name in ("Payment", "Refund", "Reference", "This deployment"):
        assert texts.get(name) in said
