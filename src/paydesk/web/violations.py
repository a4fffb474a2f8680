"""What browsers report of pages whose policy was violated: read with suspicion, kept as kinds,
told once per kind.

Anybody can send such a report. So nothing of it is stored or logged but words of our own and the
name of a host; what is read is limited in size and number before it is read, in this process's
memory alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from urllib.parse import SplitResult, urlsplit

import msgspec
import structlog
from prometheus_client import Counter
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from paydesk.core.card_numbers import masked
from paydesk.core.clock import utc_now
from paydesk.core.errors import PaydeskError
from paydesk.core.wording import noted, noted_as
from paydesk.database.pool import Database
from paydesk.domain.alarms.kinds import AlarmKind
from paydesk.domain.alarms.raising import Alarm, raise_alarms
from paydesk.web.minute_budgets import MinuteBudget
from paydesk.web.page_headers import REPORTS
from paydesk.web.visits import Network, client_address, read_body

log = structlog.get_logger()

VIOLATIONS = Counter(
    "paydesk_policy_violations_total",
    "Violations of a page's Content-Security-Policy that browsers reported",
    ["page", "directive", "blocked"],
)
UNREAD = Counter("paydesk_policy_reports_unread_total", "Reports of violations that were not read", ["why"])

LARGEST_BODY = 16 * 1024
A_MINUTE, ADDRESS_A_MINUTE = 240, 20
"""Requests that one process reads a minute, of everybody and of one address."""

TOLD_AGAIN = timedelta(hours=1)
"""How long a kind that goes on is not told again by this process."""

_HOST = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,98}[a-z0-9])?")
_DIRECTIVES = frozenset(
    ["default-src", "script-src", "script-src-elem", "script-src-attr", "style-src", "style-src-elem",
     "style-src-attr", "img-src", "font-src", "media-src", "connect-src", "frame-src", "child-src", "worker-src",
     "object-src", "manifest-src", "base-uri", "form-action", "frame-ancestors"]
)  # fmt: skip
_HARMLESS = frozenset(["img-src", "font-src", "media-src", "manifest-src", "frame-ancestors"])
"""Violations that let nobody read what a customer types."""

_PAGES = frozenset(["checkout", "buy", "portal", "account", "operator"])
_WITH_CARDS = frozenset(["checkout", "portal"])


class Blocked(StrEnum):
    """What was kept from being used."""

    inline = "inline"
    eval = "eval"
    data = "data"
    own = "own"
    other_site = "other_site"
    extension = "extension"
    unknown = "unknown"


_SUBJECTS: Mapping[Blocked, str] = {
    Blocked.inline: noted_as("%(page)s: %(directive)s, inline"),
    Blocked.eval: noted_as("%(page)s: %(directive)s, eval"),
    Blocked.data: noted_as("%(page)s: %(directive)s, data"),
    Blocked.own: noted_as("%(page)s: %(directive)s, own"),
    Blocked.other_site: noted_as("%(page)s: %(directive)s, other site"),
}
"""What alarms are about, by what was blocked; the rest is only logged."""


@dataclass(frozen=True, slots=True)
class Violation:
    """One kind of violation, made of our own words;
    `host` is the other site's, as far as it is a host's name.
    """

    page: str
    directive: str
    blocked: Blocked
    host: str = ""

    @property
    def kind(self) -> str:
        """What an alarm is about: there are few kinds, however many reports."""
        pattern = _SUBJECTS.get(self.blocked, f"%(page)s: %(directive)s, {self.blocked}")
        return noted(pattern, page=self.page, directive=self.directive)

    @property
    def is_alarming(self) -> bool:
        """Whether a card may have been about to be read;
        browsers' own extensions are their customers' business.
        """
        harmless = self.directive in _HARMLESS or self.blocked in (Blocked.extension, Blocked.unknown)
        return self.page in _WITH_CARDS and not harmless


@dataclass(slots=True)
class ReportBudget(MinuteBudget):
    """How many reports may still be read in this minute, and which kinds were told lately."""

    everybody: int = A_MINUTE
    each: int = ADDRESS_A_MINUTE
    told: dict[str, datetime] = field(default_factory=dict)

    def is_news(self, violation: Violation, *, now: datetime) -> bool:
        """Whether its kind was not told lately; remembers that it is told now."""
        if now - self.told.get(violation.kind, now - TOLD_AGAIN) < TOLD_AGAIN:
            return False
        self.told[violation.kind] = now
        return True


def report_routes(addresses: Iterable[str], trusted_proxies: tuple[Network, ...]) -> list[Route]:
    """The route that browsers report to; `addresses` are our own bases:
    reports about other sites are dropped.
    """
    hosts = frozenset(urlsplit(address).netloc.lower() for address in addresses)
    budget = ReportBudget()

    async def take(request: Request) -> Response:
        now = utc_now()
        if not budget.take(client_address(request.scope, trusted_proxies), now=now):
            return _unread("rate", 429)
        try:
            found = _violation(_report(request, await read_body(request, LARGEST_BODY)), hosts)
        except PaydeskError as error:
            return _unread("size" if error.status == 413 else "shape", error.status)
        except (msgspec.DecodeError, RecursionError, ValueError):
            return _unread("shape", 400)
        if found is not None:
            VIOLATIONS.labels(found.page, found.directive, found.blocked).inc()
            if budget.is_news(found, now=now):
                await _tell(request.state.database, found, now=now)
        return Response(status_code=204)

    return [Route(REPORTS, take, methods=["POST"])]


_WORDS = {
    "rate": "too many reports just now; this one was not read, try again in a minute",
    "size": f"a report has at most {LARGEST_BODY // 1024} KiB; this one was not read",
    "shape": "this is no report of a violated policy, as browsers send it (application/csp-report)",
}


def _unread(why: str, status: int) -> Response:
    UNREAD.labels(why).inc()
    headers = {"Retry-After": "60"} if status == 429 else {}
    return PlainTextResponse(_WORDS[why], status, headers=headers)


def _report(request: Request, body: bytes) -> Mapping[str, object]:
    """What a report says. Raises: ValueError if it is none."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    content = msgspec.json.decode(body) if media_type in ("application/csp-report", "application/json") else None
    said = content.get("csp-report") if isinstance(content, dict) else None
    if not isinstance(said, dict):
        raise ValueError("no report")
    return said


def _violation(report: Mapping[str, object], hosts: frozenset[str]) -> Violation | None:
    """What a report says, in our own words; None if it is about no page of ours."""
    document = _url(report.get("document-uri"))
    if document is None or document.netloc.lower() not in hosts:
        return None
    parts = [part for part in document.path.split("/") if part]
    page = next((part for part in parts[:2] if part in _PAGES), "other")
    directive = str(report.get("effective-directive") or report.get("violated-directive") or "").partition(" ")[0]
    blocked, host = _blocked(report, hosts)
    return Violation(page, directive if directive in _DIRECTIVES else "unknown", blocked, host)


def _blocked(report: Mapping[str, object], hosts: frozenset[str]) -> tuple[Blocked, str]:
    """What kind of thing was blocked, and the name of its host."""
    text, source = str(report.get("blocked-uri") or ""), str(report.get("source-file") or "")
    if "extension" in source.partition(":")[0] or "extension" in text.partition(":")[0]:
        return Blocked.extension, ""
    if text in ("inline", "eval", "wasm-eval", "trusted-types-policy", "trusted-types-sink"):
        return Blocked.inline if text == "inline" else Blocked.eval, ""
    if text in ("data", "blob") or text.startswith(("data:", "blob:")):
        return Blocked.data, ""
    url = _url(text)
    if url is None:
        return Blocked.unknown, ""
    if url.netloc.lower() in hosts:
        return Blocked.own, ""
    name = (url.hostname or "").lower()
    return Blocked.other_site, masked(name) if _HOST.fullmatch(name) else ""


def _url(text: object) -> SplitResult | None:
    """The parts of a web address, None for what is none."""
    try:
        url = urlsplit(text) if isinstance(text, str) and len(text) < 4000 else None
        return url if url is not None and url.scheme in ("http", "https", "ws", "wss") and url.hostname else None
    except ValueError:
        return None


async def _tell(database: Database, one: Violation, *, now: datetime) -> None:
    """Log a kind, and raise an alarm if it is where cards are typed."""
    log.warning("browsers report that a page's policy was violated", kind=one.kind, host=one.host)
    if one.is_alarming:
        await raise_alarms(database, [Alarm(AlarmKind.policy_violated, one.kind, _reason(one))], now=now)


def _reason(one: Violation) -> str:
    if not one.host:
        return noted(
            "a browser reports that a page with a card form tried to use what its policy forbids (%(directive)s)",
            directive=one.directive,
        )
    return noted(
        "a browser reports that a page with a card form tried to use what its policy forbids from %(host)s "
        "(%(directive)s)",
        host=one.host,
        directive=one.directive,
    )
