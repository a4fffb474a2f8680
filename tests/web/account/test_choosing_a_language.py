"""Account and console speak the language of whoever looks at them."""

from __future__ import annotations

import re
from decimal import Decimal

import pytest
from tests.web.account.conftest import PASSWORD, OpenVisitor, Visitor, leads_to

from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.accounts.people import Person
from paydesk.web.account.face import FACE as ACCOUNT
from paydesk.web.console.shell import Face, texts_for
from paydesk.web.operator.face import FACE as OPERATOR
from paydesk.web.texts import LANGUAGES

SECURITY = "/account/security"


def html_of(page: str) -> tuple[str, str]:
    """The language and direction that a page says it has."""
    found = re.search(r'<html lang="([^"]*)" dir="([^"]*)"', page)
    assert found is not None
    return found[1], found[2]


async def choose(visitor: Visitor, language: str) -> None:
    fields = {"name": "Ada Lovelace", "language": language, "time_zone": "UTC"}
    assert leads_to(await visitor.send(SECURITY, f"{SECURITY}/profile", **fields)) == SECURITY


async def mails_in(database: Database, visitor: Visitor) -> str:
    """The language of the newest mail to somebody."""
    sql = "select language from mail where lower(recipient) = lower($1) order by id desc limit 1"
    return str(await database.fetchval(sql, visitor.email))


@pytest.mark.parametrize("face", [ACCOUNT, OPERATOR], ids=["account", "operator"])
def test_both_consoles_have_all_languages(face: Face) -> None:
    assert set(face.catalogues.languages) == set(LANGUAGES)


@pytest.mark.parametrize(
    ("header", "html"),
    [("de-AT,de;q=0.9", ("de", "ltr")), ("ar-EG", ("ar", "rtl")), ("sv", ("en", "ltr")), ("", ("en", "ltr"))],
)
async def test_before_the_log_in_pages_are_in_the_browsers_language(
    stranger: OpenVisitor, header: str, html: tuple[str, str]
) -> None:
    visitor = await stranger()
    for path in ("/account/login", "/account/signup", "/account/forgotten", "/account/nowhere"):
        assert html_of((await visitor.see(path, **{"accept-language": header})).text) == html


async def test_pages_from_right_to_left_have_a_style_of_their_own(stranger: OpenVisitor) -> None:
    visitor = await stranger()
    arabic = (await visitor.see("/account/login", **{"accept-language": "ar"})).text
    english = (await visitor.see("/account/login", **{"accept-language": "en"})).text
    assert ("tabler-rtl" in arabic, "tabler-rtl" in english) == (True, False)


async def test_until_a_language_is_chosen_pages_follow_the_browser(owner: Visitor) -> None:
    assert html_of((await owner.see(SECURITY, **{"accept-language": "ja"})).text) == ("ja", "ltr")
    assert html_of((await owner.see(SECURITY, **{"accept-language": "ar"})).text) == ("ar", "rtl")


async def test_a_chosen_language_stays_whatever_the_browser_says(owner: Visitor) -> None:
    await choose(owner, "pl")
    page = (await owner.see(SECURITY, **{"accept-language": "ja"})).text
    assert html_of(page) == ("pl", "ltr")
    assert '<option value="pl" selected>' in page
    await choose(owner, "")
    assert html_of((await owner.see(SECURITY, **{"accept-language": "ja"})).text) == ("ja", "ltr")


async def test_an_unknown_language_is_refused_and_changes_nothing(owner: Visitor) -> None:
    await choose(owner, "pl")
    fields = {"name": "Ada Lovelace", "language": "../../etc", "time_zone": "UTC"}
    assert (await owner.send(SECURITY, f"{SECURITY}/profile", **fields)).status_code == 400
    assert html_of((await owner.see(SECURITY)).text) == ("pl", "ltr")


async def test_mails_come_in_the_browsers_language_of_the_last_log_in(
    owner: Visitor, stranger: OpenVisitor, database: Database
) -> None:
    assert await mails_in(database, owner) == "en"
    visitor = await stranger()
    visitor.web.headers["accept-language"] = "de-CH"
    leads_to(await visitor.send("/account/login", email=owner.email, password=PASSWORD))
    assert await mails_in(database, owner) == "de-CH"


async def test_mails_come_in_the_chosen_language(owner: Visitor, stranger: OpenVisitor, database: Database) -> None:
    await choose(owner, "fr")
    visitor = await stranger()
    visitor.web.headers["accept-language"] = "de-CH"
    leads_to(await visitor.send("/account/login", email=owner.email, password=PASSWORD))
    assert await mails_in(database, owner) == "fr"


async def test_who_signs_up_is_written_to_in_the_browsers_language(stranger: OpenVisitor, database: Database) -> None:
    visitor = await stranger()
    visitor.email = f"new-{utc_now().timestamp()}@shop.example"
    visitor.web.headers["accept-language"] = "es-MX"
    fields = {"shop_name": "Shop", "name": "Ada", "email": visitor.email, "password": PASSWORD}
    leads_to(await visitor.send("/account/signup", **fields))
    assert await mails_in(database, visitor) == "es-MX"


PERSON = Person(1, "ada@shop.example", "Ada", None, False, 0, False, "de", True, "UTC", utc_now())


@pytest.mark.parametrize(
    ("header", "written"),
    [("en-GB,de-CH;q=0.5", "1\u2019234.50\u00a0USD"), ("en-US", "1.234,50\u00a0USD"), ("", "1.234,50\u00a0USD")],
)
def test_numbers_are_written_as_in_the_browsers_region_of_the_language(header: str, written: str) -> None:
    texts = texts_for(ACCOUNT.catalogues, header, PERSON)
    assert (texts.language, texts.money(Decimal("1234.5"), "USD")) == ("de", written)
