"""For a merchant's programmers: keys, settings of the integration, code to copy, test clock,
refused forms.
"""

from __future__ import annotations

from datetime import timedelta
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.responses import Response

from paydesk.adapters.outbound import refusal
from paydesk.core.errors import Malformed, PaydeskError, Unavailable
from paydesk.core.periods import parse_period
from paydesk.core.wording import worded
from paydesk.domain.accounts.access_needs import ConfirmationNeeded
from paydesk.domain.accounts.roles import Permission
from paydesk.domain.business import key_pairs, pingback_settings, test_clock
from paydesk.domain.business.pingback_settings import EXTRA_EVENTS, PingbackSettings
from paydesk.domain.merchants.ignored_fields import SentWith, ignored_fields
from paydesk.domain.merchants.keys import KeyScope
from paydesk.domain.merchants.merchant import MUTABLE_EVENTS
from paydesk.domain.merchants.refused_forms import list_rejected_forms
from paydesk.domain.merchants.test_clock import read_clock
from paydesk.domain.test_clock.advancing import Summary, What
from paydesk.web.account.face import FACE
from paydesk.web.account.sample_programs import programs
from paydesk.web.console.guards import Section, field_errors
from paydesk.web.console.list_parameters import ROWS, list_address, mark_of, page_asked
from paydesk.web.console.problems import with_retry
from paydesk.web.console.visit import Visit
from paydesk.web.texts import Texts, mark

section = Section(FACE)
_DEVELOPERS = "/account/{merchant_id}/developers"
_FIELDS = ("pingback_url", "test_pingback_url", "pingback_format", "sign_version", "extra_events", "muted_events")
_MOST_EVENTS = 100

_VIEWS = (
    ("developers", mark("Keys and settings"), Permission.manage_integration),
    ("developers/code", mark("Code"), Permission.manage_integration),
    ("developers/clock", mark("Test clock"), Permission.move_test_clock),
    ("developers/refused", mark("Refused forms"), Permission.view_pingbacks),
    ("developers/ignored", mark("Ignored fields"), Permission.view_pingbacks),
)

EVENTS = {
    "subscription_expired": mark("A subscription has run for the time that was agreed"),
    "subscription_paused": mark("A subscription is paused or resumed; its status is then Paused"),
    "refund": mark("All of a payment was given back"),
    "partial_refund": mark("A part of a payment was given back"),
    "refund_failed": mark("A refund came back: the customer's bank did not take it"),
    "chargeback": mark("A customer's bank has taken a payment back"),
    "chargeback_reversed": mark("A chargeback was decided for you"),
    "subscription_cancelled": mark("A subscription was cancelled"),
    "subscription_stopped": mark("A subscription was stopped, since its card failed too often"),
}

_HAPPENED = {
    What.PAYMENT: (mark("Renewed"), "green"),
    What.DECLINED: (mark("Renewal declined"), "yellow"),
    What.FAILED: (mark("Bank not reached"), "yellow"),
    What.ARRIVED: (mark("Pending payment arrived"), "green"),
    What.NOT_ARRIVED: (mark("Pending payment did not arrive"), "yellow"),
    What.STOPPED: (mark("Subscription stopped"), "red"),
    What.EXPIRED: (mark("Subscription ended as agreed"), "secondary"),
    What.CANCELLED: (mark("Subscription ended with its period"), "secondary"),
    What.RESUMED: (mark("Pause over"), "blue"),
    What.CHARGEBACK: (mark("Chargeback"), "red"),
    What.VOIDED: (mark("Not shipped in time, let go"), "yellow"),
    What.SETTLED: (mark("Money became available"), "blue"),
    What.RELEASED: (mark("Reserve released"), "blue"),
    What.PINGBACK_ACKNOWLEDGED: (mark("Pingback acknowledged"), "green"),
    What.PINGBACK_FAILED: (mark("Pingback failed"), "red"),
}
"""What is said of something that happened while the clock was moved, and the tone of its badge."""

SCOPES = {
    KeyScope.sign: mark("Sign checkout forms"),
    KeyScope.read: mark("Read by the API"),
    KeyScope.move: mark("Move money and change things by the API"),
}

_SENT_WITH = {SentWith.FORM: mark("Checkout form"), SentWith.DELIVERY: mark("Delivery")}


def _views(visit: Visit) -> list[tuple[str, str]]:
    """The tabs that this person may open."""
    return [(visit.url(page), visit.texts.get(name)) for page, name, needs in _VIEWS if visit.can(needs)]


@section.page(_DEVELOPERS, needs=Permission.manage_integration)
async def show_integration(visit: Visit) -> Response:
    """The public key, and what is set."""
    return await _integration(visit)


async def _integration(
    visit: Visit, wanted: PingbackSettings | None = None, errors: dict[str, str] | None = None, status: int = 200
) -> Response:
    return visit.page(
        "developers.html",
        status=status,
        views=_views(visit),
        keys=await key_pairs.public_keys(visit.database, visit.merchant_id),
        unseen=await key_pairs.unseen_key(visit.database, visit.session) is not None,
        scopes=SCOPES,
        chosen=wanted or await pingback_settings.find_pingback_settings(visit.database, visit.merchant_id),
        extra=EXTRA_EVENTS,
        mutable=MUTABLE_EVENTS,
        events=EVENTS,
        signs_with_v1=await pingback_settings.signs_with_v1(visit.database, visit.shop),
        errors=errors or {},
    )


@section.action(_DEVELOPERS, needs=Permission.manage_integration)
async def save(visit: Visit) -> Response:
    """Take new settings."""
    form = visit.form
    wanted = PingbackSettings(
        form.text("pingback_url", 4000) or None,
        form.text("test_pingback_url", 4000) or None,
        "form" if form.text("pingback_format") == "form" else "json",
        "v1" if form.text("sign_version") == "v1" else "v2",
        tuple(event for event in EXTRA_EVENTS if event in form.all("event")),
        tuple(event for event in MUTABLE_EVENTS if event not in form.all("event")),
    )
    try:
        sent = await pingback_settings.save_pingback_settings(visit.gate, visit.session, wanted, now=visit.now)
    except Malformed as error:
        return await _integration(visit, wanted, field_errors(visit, error, *_FIELDS), error.status)
    said = visit.texts.get("Saved. Pingbacks that waited for the URL are sent now.")
    private = sorted(filter(None, (_private(visit, url) for url in (wanted.pingback_url, wanted.test_pingback_url))))
    said = said if sent else visit.texts.get("Saved.")
    if not private:
        return visit.go(visit.url("developers"), said)
    text = visit.texts.get(
        "%(hosts)s is no public address, so no pingback is sent there unless the operator allows its network "
        "(PAYDESK_OUTBOUND_ALLOW)."
    )
    return visit.go(visit.url("developers"), f"{said} {text % {'hosts': private[0]}}", "warning")


def _private(visit: Visit, url: str | None) -> str:
    """The host of a URL to which no pingback is sent, as far as its name tells; else empty."""
    host = (urlsplit(url or "").hostname or "").rstrip(".")
    name_of_this_machine = host == "localhost" or host.endswith(".localhost")
    try:
        address = "127.0.0.1" if name_of_this_machine else str(ip_address(host))
    except ValueError:
        return ""
    return host if refusal(address, visit.services.outbound_allow) else ""


@section.page(f"{_DEVELOPERS}/keys", needs=Permission.manage_keys, recent=True)
async def ask_for_keys(visit: Visit) -> Response:
    """Whether to make new keys, and how long the old ones may go on."""
    keys = await key_pairs.public_keys(visit.database, visit.merchant_id)
    may_move = visit.can(Permission.refund) or not visit.session.went_live_at
    return visit.page(
        "developers_keys.html", newest=keys[0], scopes=SCOPES, may_move=may_move, periods=_grace_periods(visit.texts)
    )


def _grace_periods(texts: Texts) -> list[tuple[int, str]]:
    """How long old keys may go on, in hours, with its words;
    the shortest first, but at once is the last.
    """
    periods = sorted(key_pairs.GRACE_PERIODS, key=lambda period: (not period, period))
    return [(hours := round(period / timedelta(hours=1)), _ending(hours, texts)) for period in periods]


def _ending(hours: int, texts: Texts) -> str:
    """`In 24 hours`, `In 7 days`: the first day is told in hours."""
    days = hours // 24
    if not hours:
        return texts.get("At once, if somebody else may know them")
    if days > 1 and hours % 24 == 0:
        return texts.translations.ngettext("In %(num)s day", "In %(num)s days", days) % {"num": days}
    return texts.translations.ngettext("In %(num)s hour", "In %(num)s hours", hours) % {"num": hours}


_FIRST = f"{_DEVELOPERS}/keys/first"


@section.page(_FIRST, needs=Permission.manage_keys, recent=True)
async def offer_first_keys(visit: Visit) -> Response:
    """The way to the pair that the shop was opened with, until somebody has seen it."""
    if await key_pairs.unseen_key(visit.database, visit.session) is None:
        return visit.go(visit.url("developers"))
    return visit.page("developers_first.html")


@section.action(_FIRST, needs=Permission.manage_keys, recent=True)
async def show_first_keys(visit: Visit) -> Response:
    """Show the pair this once: the answer is kept nowhere."""
    public, private = await key_pairs.show_first_keys(visit.gate, visit.session, now=visit.now)
    return visit.page("developers_made.html", public=public, private=private, others_until=None)


@section.action(f"{_DEVELOPERS}/keys", needs=Permission.manage_keys, recent=True)
async def make_keys(visit: Visit) -> Response:
    """Make them, and show the private key this once: the answer is kept nowhere."""
    hours = visit.form.number("grace")
    if hours is None:
        raise Malformed(worded("choose how long the old keys may go on"), "grace")
    pair = await key_pairs.rotate_keys(
        visit.gate,
        visit.session,
        replaces=visit.form.number("replaces") or 0,
        grace=timedelta(hours=min(hours, 10_000)),
        now=visit.now,
        scopes=frozenset(scope for scope in KeyScope if scope in visit.form.all("scope")),
    )
    return visit.page("developers_made.html", public=pair.public, private=pair.private, others_until=pair.others_until)


_END = f"{_DEVELOPERS}/keys/{{key_id}}/end"


@section.page(_END, needs=Permission.manage_keys, recent=True)
async def ask_to_end(visit: Visit) -> Response:
    """Whether to end an old key before its time."""
    key = await key_pairs.old_key(visit.database, visit.merchant_id, visit.number("key_id"), now=visit.now)
    text = visit.texts.get(
        "Forms and calls with the key %(key)s are refused at once, on every server that still has it. What was paid "
        "with it goes on; its pingbacks are signed with the newest key. This can't be taken back."
    )
    return visit.ask(
        visit.texts.get("End the old key now?"),
        text=text % {"key": key.public_key},
        button=visit.texts.get("End it now"),
        back=visit.url("developers"),
    )


@section.action(_END, needs=Permission.manage_keys, recent=True)
async def end_key(visit: Visit) -> Response:
    """End it."""
    await key_pairs.end_key(visit.gate, visit.session, visit.number("key_id"), now=visit.now)
    return visit.go(visit.url("developers"), visit.texts.get("The old key has ended."))


@section.page(f"{_DEVELOPERS}/code", needs=Permission.manage_integration)
async def show_code(visit: Visit) -> Response:
    """Programs to copy, with the merchant's own public key."""
    keys = await key_pairs.public_keys(visit.database, visit.merchant_id)
    chosen = await pingback_settings.find_pingback_settings(visit.database, visit.merchant_id)
    asked = visit.form.text("version", 2)
    version = asked if asked in ("v1", "v2") else chosen.sign_version
    services = visit.services
    base = services.address if visit.shop.live else services.sandbox_address
    path = visit.url("developers/code")
    return visit.page(
        "developers_code.html",
        views=_views(visit),
        programs=programs(base, keys[0].public_key, version),
        base=base,
        version=version,
        versions=[(f"{path}?version={one}", one) for one in ("v2", "v1")],
        chosen_version=f"{path}?version={version}",
    )


@section.page(f"{_DEVELOPERS}/clock", needs=Permission.move_test_clock)
async def show_clock(visit: Visit) -> Response:
    """The test side's time, and what moves it."""
    return await _clock(visit)


async def _clock(
    visit: Visit, summary: Summary | None = None, errors: dict[str, str] | None = None, status: int = 200
) -> Response:
    clock = await read_clock(visit.database, visit.merchant_id, real_now=visit.now)
    return visit.page(
        "developers_clock.html",
        status=status,
        views=_views(visit),
        clock=clock,
        summary=summary,
        happened=_HAPPENED,
        events=summary.events[:_MOST_EVENTS] if summary else (),
        errors=errors or {},
    )


@section.action(f"{_DEVELOPERS}/clock", needs=Permission.move_test_clock)
async def move_clock(visit: Visit) -> Response:
    """Let time pass, and say what happened on the way."""
    try:
        by = parse_period(visit.form.text("period", 20) or visit.form.text("by", 20), "by")
        async with visit.services.sender() as sender:
            summary = await test_clock.move_clock(
                visit.services.desk, sender, visit.session, by, client_address=visit.client.address, now=visit.now
            )
    except (ConfirmationNeeded, Unavailable):
        raise
    except PaydeskError as error:
        page = await _clock(visit, errors=field_errors(visit, error, "by"), status=error.status)
        return with_retry(page, error)
    return await _clock(visit, summary)


@section.page(f"{_DEVELOPERS}/clock/reset", needs=Permission.move_test_clock)
async def ask_to_reset(visit: Visit) -> Response:
    """Whether to begin anew."""
    return visit.ask(
        visit.texts.get("Delete all test data?"),
        text=visit.texts.get(
            "Every test payment, subscription and pingback goes, and the test clock returns to real time. Live data, "
            "keys and settings stay."
        ),
        button=visit.texts.get("Delete all test data"),
        back=visit.url("developers/clock"),
    )


@section.action(f"{_DEVELOPERS}/clock/reset", needs=Permission.move_test_clock)
async def reset(visit: Visit) -> Response:
    """Begin anew."""
    await test_clock.start_anew(visit.database, visit.session, now=visit.now)
    return visit.go(visit.url("developers/clock"), visit.texts.get("The test side is empty, its time is real time."))


@section.page(f"{_DEVELOPERS}/refused", needs=Permission.view_pingbacks)
async def show_refused(visit: Visit) -> Response:
    """Forms that were refused, newest first; the first page brings news of itself."""
    found = await list_rejected_forms(visit.database, visit.shop, page_asked(visit))
    shown, path, deep = found[:ROWS], visit.url("developers/refused"), bool(visit.form.text("before", 60))
    before = mark_of(shown[-1].at, shown[-1].id) if len(found) > ROWS else ""
    return visit.part(
        "developers_refused.html",
        "news",
        views=_views(visit),
        refused=shown,
        first=not deep,
        newest=path if deep else "",
        older=list_address(path, {"before": before}) if before else "",
    )


@section.page(f"{_DEVELOPERS}/ignored", needs=Permission.view_pingbacks)
async def show_ignored(visit: Visit) -> Response:
    """Names of fields that the shop sends in vain: one of them may be mistyped."""
    return visit.page(
        "developers_ignored.html",
        views=_views(visit),
        ignored=await ignored_fields(visit.database, visit.shop),
        kinds=_SENT_WITH,
    )
