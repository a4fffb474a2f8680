from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import httpx
import pytest

from paydesk.adapters.acquirers.interface import Challenged
from paydesk.adapters.acquirers.purchases import CardDetails, Purchase
from paydesk.adapters.acquirers.simulator import Bank, Record, challenge_app

NOON = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
BACK = 'http://shop.test/checkout/abc?a=1&b="><script>'


@pytest.fixture
def bank(record: Record) -> Bank:
    return Bank(record, now=lambda: NOON)


@pytest.fixture
def browser(bank: Bank) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(challenge_app(bank)), base_url="http://bank.test")


@pytest.fixture
def page(bank: Bank) -> str:
    outcome = bank.purchase(
        Purchase(
            key="one",
            amount=Decimal("1234.5"),
            currency="USD",
            card=CardDetails("4000000000003220", 12, 2030, "Ada Lovelace", "123"),
            capture=True,
            not_after=NOON + timedelta(minutes=10),
            return_url=BACK,
        ),
        stored=False,
    )
    assert isinstance(outcome, Challenged)
    return f"/challenge/{outcome.reference}"


async def test_the_page_shows_amount_and_card_and_three_choices(browser: httpx.AsyncClient, page: str) -> None:
    answer = await browser.get(page)
    assert answer.status_code == 200
    assert "1,234.50\u00a0USD" in answer.text
    assert "3220" in answer.text
    assert "400000" not in answer.text
    assert [answer.text.count(f'value="{choice}"') for choice in ("approve", "reject", "close")] == [1, 1, 1]


async def test_the_page_runs_no_script_and_lets_the_way_back_lead_anywhere(
    browser: httpx.AsyncClient, page: str
) -> None:
    answer = await browser.get(page)
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "form-action" not in policy
    assert "frame-ancestors 'none'" in policy
    assert "style=" not in answer.text
    assert "<script" not in answer.text
    assert answer.headers["X-Robots-Tag"] == "noindex"
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["Referrer-Policy"] == "no-referrer"


async def test_the_style_sheet_is_found_from_the_page(browser: httpx.AsyncClient, page: str) -> None:
    assert 'href="../bank.css"' in (await browser.get(page)).text
    answer = await browser.get("/bank.css")
    assert answer.status_code == 200
    assert answer.headers["Content-Type"].startswith("text/css")


@pytest.mark.parametrize(
    ("decision", "note"),
    [("approve", "You have approved this payment"), ("reject", "You have rejected this payment")],
)
async def test_an_answered_challenge_says_so_and_leads_back(
    browser: httpx.AsyncClient, page: str, decision: str, note: str
) -> None:
    assert (await browser.post(page, data={"decision": decision})).status_code == 303
    answer = await browser.get(page)
    assert answer.status_code == 410
    assert note in answer.text
    assert 'href="http://shop.test/checkout/abc?a=1&amp;b=&#34;&gt;&lt;script&gt;"' in answer.text
    assert "<button" not in answer.text


async def test_an_ended_challenge_says_so_and_leads_back(browser: httpx.AsyncClient, page: str, bank: Bank) -> None:
    bank.end_challenge("one")
    for answer in (await browser.get(page), await browser.post(page, data={"decision": "approve"})):
        assert answer.status_code in {410, 409}
        assert "was cancelled" in answer.text
        assert "Back to the checkout" in answer.text


async def test_closing_leads_back_however_the_challenge_stands(
    browser: httpx.AsyncClient, page: str, bank: Bank
) -> None:
    assert (await browser.post(page, data={"decision": "close"})).status_code == 303
    bank.end_challenge("one")
    assert (await browser.post(page, data={"decision": "close"})).status_code == 303


async def test_an_unknown_challenge_is_not_found(browser: httpx.AsyncClient) -> None:
    assert (await browser.get("/challenge/challenge_guess")).status_code == 404
    assert (await browser.post("/challenge/challenge_guess", data={"decision": "approve"})).status_code == 404


async def test_an_unknown_decision_decides_nothing(browser: httpx.AsyncClient, page: str) -> None:
    for form in ({"decision": "maybe"}, {}):
        answer = await browser.post(page, data=form)
        assert answer.status_code == 400
        assert 'value="approve"' in answer.text


async def test_a_huge_form_is_refused(browser: httpx.AsyncClient, page: str) -> None:
    assert (await browser.post(page, data={"decision": "approve" * 1000})).status_code == 413


def test_references_can_not_be_guessed(tmp_path: Path) -> None:
    bank = Bank(Record(tmp_path / "other.sqlite"), now=lambda: NOON)
    card = CardDetails("4000000000003220", 12, 2030, "Ada Lovelace", "123")
    references = set()
    for number in range(50):
        asked = Purchase(str(number), Decimal(1), "USD", card, True, NOON, return_url="http://shop.test/")
        outcome = bank.purchase(asked, stored=False)
        assert isinstance(outcome, Challenged)
        references.add(outcome.reference)
    assert len(references) == 50
    assert min(map(len, references)) >= len("challenge_") + 24
