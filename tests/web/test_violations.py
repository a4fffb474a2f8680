"""What browsers report of violated policies: told once per kind, whatever strangers send."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from structlog.testing import capture_logs
from tests import breaking
from tests.conftest import SignedForm
from tests.sweeping import database, database_url

from paydesk.database.pool import Database
from paydesk.web import violations
from paydesk.web.page_headers import REPORTS
from paydesk.web.violations import A_MINUTE, ADDRESS_A_MINUTE, UNREAD, VIOLATIONS, Blocked, ReportBudget, Violation

__all__ = ["database", "database_url"]

PAGE = "http://pay.test/checkout/t1-0123456789abcdef0123456789abcdef"
PAN = "4242424242424242"


@pytest.fixture(autouse=True)
async def _nothing_told_yet(database: Database) -> None:
    await breaking.no_alarms(database, "policy_violated")


def said(
    page: Any = PAGE, directive: Any = "script-src-elem", blocked: Any = "https://evil.example/x.js", source: Any = ""
) -> Any:
    """A report as a browser sends it."""
    report = {"document-uri": page, "effective-directive": directive, "blocked-uri": blocked, "source-file": source}
    return {"csp-report": report}


async def report(web: httpx.AsyncClient, content: Any, kind: str = "application/csp-report") -> httpx.Response:
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    return await web.post(REPORTS, content=body, headers={"content-type": kind})


async def alarms(database: Database) -> list[tuple[str, str, int]]:
    rows = await database.fetch("select subject, reason, times from alarm where kind = 'policy_violated' order by id")
    return [tuple(row) for row in rows]


def counted(page: str, directive: str, blocked: Blocked) -> float:
    return float(VIOLATIONS.labels(page, directive, blocked)._value.get())


async def test_pages_say_where_violations_are_reported(web: httpx.AsyncClient, signed_form: SignedForm) -> None:
    opened = await web.post("/sandbox/payment/form", data=signed_form())
    for path in (opened.headers["location"], "/account/login", "/checkout/wrong"):
        page = await web.get(path)
        assert f"report-uri {REPORTS};" in page.headers["content-security-policy"]


async def test_a_kind_is_told_once_however_often_it_is_reported(web: httpx.AsyncClient, database: Database) -> None:
    before = counted("checkout", "script-src-elem", Blocked.other_site)
    with capture_logs() as logs:
        for number in range(3):
            assert (await report(web, said(blocked=f"https://evil.example/{number}"))).status_code == 204
            assert (await report(web, said(blocked="inline"))).status_code == 204
    assert counted("checkout", "script-src-elem", Blocked.other_site) == before + 3
    told = await alarms(database)
    assert [(subject, times) for subject, _, times in told] == [
        ("checkout: script-src-elem, other site", 1),
        ("checkout: script-src-elem, inline", 1),
    ]
    assert "evil.example" in told[0][1]
    assert sum(line["event"].startswith("browsers report") for line in logs) == 2
    assert "0123456789abcdef" not in json.dumps(logs, default=str), "the link is a secret"


@pytest.mark.parametrize(
    ("sent", "blocked"),
    [(said(blocked="chrome-extension://abc/x.js"), Blocked.extension),
     (said(blocked="inline", source="moz-extension"), Blocked.extension),
     (said(directive="img-src", blocked="https://tracker.example/x.gif"), Blocked.other_site),
     (said(page="http://pay.test/account/5", blocked="inline"), Blocked.inline)],
)  # fmt: skip
async def test_what_reads_no_card_is_counted_and_wakes_nobody(
    web: httpx.AsyncClient, database: Database, sent: Any, blocked: Blocked
) -> None:
    page = "account" if "/account/" in sent["csp-report"]["document-uri"] else "checkout"
    directive = sent["csp-report"]["effective-directive"]
    before = counted(page, directive, blocked)
    assert (await report(web, sent)).status_code == 204
    assert counted(page, directive, blocked) == before + 1
    assert await alarms(database) == []


async def test_nothing_of_a_report_is_kept_but_our_own_words_and_a_host(
    web: httpx.AsyncClient, database: Database
) -> None:
    hostile = [
        said(blocked=f"https://evil.example/?card={PAN}#{PAN}", directive=f"script-src {PAN}"),
        said(blocked=f"https://{PAN}.evil.example/", directive="connect-src"),
        said(blocked="https://a_b<script>.example/", directive="form-action"),
        said(page=f"{PAGE}?{PAN}", directive=f"x{PAN}", blocked="eval"),
    ]
    with capture_logs() as logs:
        for one in hostile:
            assert (await report(web, one)).status_code == 204
    kept = json.dumps([await alarms(database), logs], default=str)
    assert len(await alarms(database)) == 4
    for word in (PAN, "<script>", "card="):
        assert word not in kept


async def test_reports_about_other_sites_are_dropped(web: httpx.AsyncClient, database: Database) -> None:
    for page in (
        "https://pay.test.evil.example/checkout/x",
        "about:blank",
        "",
        "http://[",
        "http://pay.test:81/checkout/",
    ):
        assert (await report(web, said(page=page))).status_code == 204
    assert await alarms(database) == []


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [(b"", "application/csp-report", 400), (b"{}", "application/csp-report", 400),
     (b"[]", "application/csp-report", 400), (b"[" * 9000, "application/csp-report", 400),
     (b'{"csp-report":' * 900, "application/csp-report", 400), (b'{"csp-report": 1}', "application/csp-report", 400),
     (b"\xff\xfe", "application/csp-report", 400), (b'{"csp-report": {}}', "application/csp-report", 204),
     (json.dumps(said(["x"], {"a": 1}, 5, None)).encode(), "application/csp-report", 204),
     (json.dumps(said(directive=["x"], blocked={"a": 1}, source=5)).encode(), "application/csp-report", 204),
     (b'{"csp-report": {"document-uri":' + b"9" * 5000 + b"}}", "application/csp-report", 400),
     (json.dumps(said()).encode(), "text/html", 400), (b"x" * 17_000, "application/csp-report", 413)],
)  # fmt: skip
async def test_what_is_no_report_is_answered_with_words(
    web: httpx.AsyncClient, database: Database, body: bytes, kind: str, status: int
) -> None:
    answer = await report(web, body, kind)
    assert answer.status_code == status, answer.text
    assert [subject for subject, *_ in await alarms(database) if "unknown" not in subject] == []


async def test_one_address_reports_so_often_and_no_more(open_web: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(violations, "utc_now", lambda: datetime(2026, 11, 22, 5, 0, 30, tzinfo=UTC))
    noisy, other = await open_web(address="192.0.2.7"), await open_web(address="192.0.2.8")
    before = UNREAD.labels("rate")._value.get()
    answers = [(await report(noisy, said())).status_code for _ in range(ADDRESS_A_MINUTE + 3)]
    assert answers == [204] * ADDRESS_A_MINUTE + [429] * 3
    assert UNREAD.labels("rate")._value.get() == before + 3
    assert (await report(other, said())).status_code == 204


def test_a_budget_is_bounded_in_number_and_memory() -> None:
    budget, now = ReportBudget(), datetime(2026, 11, 22, 5, 0, 30, tzinfo=UTC)
    assert [budget.take("one", now=now) for _ in range(25)].count(True) == ADDRESS_A_MINUTE
    assert [budget.take(f"address {n}", now=now) for n in range(1000)].count(True) == A_MINUTE - ADDRESS_A_MINUTE
    assert len(budget.taken) <= A_MINUTE
    assert budget.take("one", now=now + timedelta(minutes=1))


def test_a_kind_that_goes_on_is_told_again_after_a_while() -> None:
    budget, now = ReportBudget(), datetime(2026, 11, 22, 5, 0, 30, tzinfo=UTC)
    one = Violation("checkout", "script-src", Blocked.inline)
    assert budget.is_news(one, now=now)
    assert not budget.is_news(one, now=now + violations.TOLD_AGAIN / 2)
    assert budget.is_news(one, now=now + violations.TOLD_AGAIN)
