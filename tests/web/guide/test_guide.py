"""The guide in a browser: for everybody, and with their own key for who is logged in."""

from __future__ import annotations

import re
from urllib.parse import quote_plus

from tests.web.account.conftest import OpenVisitor, Visitor, leads_to, text_of

from paydesk.database.pool import Database

CURL = "/docs/a-first-checkout-with-curl"


async def key_of(database: Database, visitor: Visitor) -> str:
    return str(
        await database.fetchval(
            "select public_key from merchant_key where merchant_id = $1 order by id desc limit 1",
            int(visitor.merchant_path.split("/")[2]),
        )
    )


async def test_a_stranger_reads_from_the_first_chapter_to_the_last(stranger: OpenVisitor) -> None:
    visitor = await stranger()
    page = leads_to(await visitor.see("/docs"))
    read = []
    while page:
        answered = await visitor.see(page)
        assert answered.status_code == 200
        assert answered.text.count("<h1") == 1
        read.append(page)
        following = re.search(r'href="([^"]+)" rel="next"', answered.text)
        page = following[1] if following else ""
    assert len(read) == len(set(read)) > 20
    assert "your-public-key" in (await visitor.see(CURL)).text
    assert "Log in" in text_of(await visitor.see(CURL))


async def test_who_is_logged_in_finds_their_own_key(owner: Visitor, database: Database) -> None:
    key = await key_of(database, owner)
    answered = await owner.see(CURL)
    assert f"PUBLIC_KEY:-{key}}}" in answered.text
    assert f"your public key {key}" in text_of(answered)
    assert "your public key" not in text_of(await owner.see("/docs/test-cards"))


async def test_words_are_looked_for_and_answered_as_they_are(stranger: OpenVisitor) -> None:
    visitor = await stranger()
    found = await visitor.see("/docs/search?q=test+cards")
    assert 'href="/docs/test-cards#test-cards"' in found.text
    hostile = await visitor.see("/docs/search?q=%22%3E%3Cscript%3Ealert(1)%3C/script%3E")
    assert hostile.status_code == 200
    assert "<script>" not in hostile.text
    assert "Nothing in the guide has all of these words" in text_of(hostile)
    assert "Write what you look for" in text_of(await visitor.see("/docs/search"))


async def test_the_search_leads_to_a_call_in_the_api_reference(stranger: OpenVisitor) -> None:
    visitor = await stranger()
    reference = (await visitor.see("/api/docs")).text
    charging, refunding = "POST /api/v1/charges", "POST /payment/{payment_id}/refund"
    for words, call in (("refunds", refunding), (charging, charging)):
        answered = await visitor.see(f"/docs/search?q={quote_plus(words)}")
        places = re.findall(r'href="/api/docs#(\w+)">([^<]+)</a>\s*<small>API reference, <code>([^<]+)', answered.text)
        [(anchor, summary)] = [(anchor, summary) for anchor, summary, line in places if line == call]
        assert f'<h3 id="{anchor}">{summary}</h3>' in reference


async def test_an_address_without_a_chapter_tells_where_its_words_stand(stranger: OpenVisitor) -> None:
    visitor = await stranger()
    answered = await visitor.see("/docs/slow-methods")
    assert answered.status_code == 404
    assert 'href="/docs/test-cards#test-cards"' in answered.text
    nowhere = await visitor.see("/docs/%22%3E%3Cscript%3E")
    assert nowhere.status_code == 404
    assert "<script>" not in nowhere.text


async def test_the_account_leads_to_the_guide(owner: Visitor) -> None:
    for page in ("overview", "developers", "developers/code", "developers/refused"):
        assert 'href="/docs' in (await owner.see(f"{owner.merchant_path}/{page}")).text, page
