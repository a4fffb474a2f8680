"""What acquirers keep and pay out, as an operator sees it."""

from __future__ import annotations

import re
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from decimal import Decimal

import pytest
from tests.web.account.conftest import Visitor, text_of
from tests.web.account.test_errors_in_every_language import OTHERS, english_in, speak

from paydesk.adapters.acquirers.balance import BalanceLine, BankPayout, LineKind, PayoutState
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.database.statements import Connection
from paydesk.domain.proceeds import entering
from paydesk.domain.proceeds.entering import enter_lines, enter_payouts
from paydesk.domain.proceeds.matching import examine_payouts

PROCEEDS = "/operator/proceeds"


@pytest.fixture
async def payout(database: Database) -> str:
    """A payout of 9.60 EUR, whose one line comes to 9.61."""
    name, now = f"po_{secrets.token_hex(6)}", utc_now()
    made = BankPayout(name, now - timedelta(hours=1), Decimal("9.60"), "EUR", PayoutState.ARRIVED, True, "REF-7")
    line = BalanceLine(f"txn_{name}", LineKind.CAPTURE, now, Decimal(10), Decimal("0.39"), "EUR", is_ours=False)
    await enter_lines(database, "other", [line])
    await enter_payouts(database, "other", [made])
    await entering.queries.place_lines(database, acquirer="other", payout=name, lines=[line.id])
    await entering.queries.all_placed(database, acquirer="other", payout=name)

    @asynccontextmanager
    async def within() -> AsyncIterator[Connection]:
        async with database.acquire() as connection, connection.transaction():
            yield connection

    await examine_payouts(database, "other", within=within, now=now)
    return name


async def test_a_payout_that_differs_is_named_with_what_to_do(operator: Visitor, payout: str) -> None:
    shown = text_of(await operator.see(PROCEEDS))
    assert "it is of 9.60 EUR, and the sum of its lines (1) is 9.61 EUR" in shown
    assert "ask for what is missing" in shown
    assert payout in shown
    assert "REF-7" in shown


@pytest.mark.parametrize("language", OTHERS)
async def test_what_differs_and_what_to_do_is_said_in_the_operators_language(
    operator: Visitor, payout: str, language: str
) -> None:
    pages = (PROCEEDS, f"{PROCEEDS}/payout?acquirer=other&payout={payout}")
    assert [page for page in pages if not english_in(text_of(await operator.see(page)))] == []
    await speak(operator, language)
    for page in pages:
        said = text_of(await operator.see(page))
        assert "9.60 EUR" in said
        assert english_in(said) == [], page


async def test_payouts_of_another_time_are_left_out(operator: Visitor, payout: str) -> None:
    days = [f"{utc_now() + timedelta(days=off):%Y-%m-%d}" for off in (-2, 2)]
    assert f"payout={payout}" in (await operator.see(f"{PROCEEDS}?since={days[0]}&until={days[1]}")).text
    assert f"payout={payout}" not in (await operator.see(f"{PROCEEDS}?since={days[1]}")).text
    assert f"payout={payout}" not in (await operator.see(f"{PROCEEDS}?until={days[0]}")).text


async def test_what_an_account_cost_stands_beside_our_fees(operator: Visitor, payout: str) -> None:
    months = "|".join(f"{at:%Y-%m}" for at in (utc_now() - timedelta(hours=1), utc_now()))
    row = rf"−€[\d.]+ ({months}) other €0\.00 €\d+\.\d\d"
    assert re.search(row, text_of(await operator.see(PROCEEDS))), "nothing was earned, and something kept"


async def test_a_payout_shows_its_lines(operator: Visitor, payout: str) -> None:
    shown = text_of(await operator.see(f"{PROCEEDS}/payout?acquirer=other&payout={payout}"))
    for text in (f"txn_{payout}", "10.00", "0.39", "9.61", "Other software", "Differs"):
        assert text in shown


async def test_a_finding_is_accepted_with_a_reason(operator: Visitor, payout: str, database: Database) -> None:
    found = await database.fetchval("select id from proceeds_finding where subject = $1", payout)
    refused = await operator.send(PROCEEDS, f"{PROCEEDS}/accept", id=str(found), note=" ")
    assert refused.status_code == 400
    assert "Say why in a note" in text_of(refused)
    accepted = await operator.send(PROCEEDS, f"{PROCEEDS}/accept", id=str(found), note="rounded by them")
    assert accepted.status_code == 303
    assert f"{payout}:" not in text_of(await operator.see(PROCEEDS))
    again = await operator.see(f"{PROCEEDS}/payout?acquirer=other&payout={payout}")
    assert "comes to" not in text_of(again)
    assert "rounded by them" in text_of(await operator.see("/operator/audit"))


async def test_nobody_else_sees_or_accepts_anything(owner: Visitor, payout: str) -> None:
    assert (await owner.see(f"{PROCEEDS}/payout?acquirer=other&payout={payout}")).status_code == 404
    assert (await owner.web.post(f"{PROCEEDS}/accept", data={"id": "1", "note": "x"})).status_code == 404


async def test_a_payout_that_nobody_knows_is_no_page(operator: Visitor) -> None:
    assert (await operator.see(f"{PROCEEDS}/payout?acquirer=%00&payout=%F0%9F%98%80")).status_code == 404
