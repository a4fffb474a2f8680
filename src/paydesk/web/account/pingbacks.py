"""Pingbacks: the log with its filters, how endpoints stand, each attempt as it was sent,
and sending them again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from decimal import Decimal
from functools import partial

import msgspec
from babel.numbers import format_decimal, format_percent
from starlette.responses import Response

from paydesk.core.errors import Malformed, PaydeskError
from paydesk.domain.accounts.roles import Permission
from paydesk.domain.business import pingback_acting
from paydesk.domain.business.made_up_events import EVENTS
from paydesk.domain.business.test_events import find_target
from paydesk.domain.pingbacks.for_api import (
    PingbackFilter,
    find_with_attempts,
    list_pingbacks,
    why_failed,
)
from paydesk.domain.pingbacks.health import MOST_COUNTED, SOON, ArrivedShare, read_health
from paydesk.domain.pingbacks.reasons import why
from paydesk.domain.pingbacks.resending_by_hand import MOST_AT_ONCE, Exhausted, Pingback, count_exhausted, goes_to
from paydesk.domain.pingbacks.schedule import MOST_ATTEMPTS
from paydesk.domain.pingbacks.states import PingbackState
from paydesk.web.account.face import FACE
from paydesk.web.account.pingback_words import REASONS, RETRIED, STATES
from paydesk.web.console.guards import Section, field_errors
from paydesk.web.console.list_parameters import ROWS, days_asked, list_address, mark_of, page_asked
from paydesk.web.console.return_paths import own_path
from paydesk.web.console.visit import Visit
from paydesk.web.texts import mark

section = Section(FACE)
_PINGBACKS = "/account/{merchant_id}/pingbacks"
_ONE = f"{_PINGBACKS}/{{pingback_id}}"


_NONE_LEFT = mark("No failed pingback of these could be sent again.")


@section.page(_PINGBACKS, needs=Permission.view_pingbacks)
async def show_pingbacks(visit: Visit) -> Response:
    """A page of the log, newest first, below how the endpoints stand;
    it renews itself while something is sent.
    """
    now = await visit.shop_now()
    asked = _asked(visit)
    path, before = visit.url("pingbacks"), visit.form.text("before", 60)
    wanted = PingbackFilter(
        PingbackState(asked.state) if asked.state else None,
        asked.reference or None,
        asked.email or None,
        asked.event or None,
    )
    found = await list_pingbacks(visit.database, visit.shop, wanted, page_asked(visit))
    shown = found[:ROWS]
    failed = [one.id for one in shown if one.attempts and one.state in (PingbackState.DUE, PingbackState.EXHAUSTED)]
    older = mark_of(shown[-1].created_at, shown[-1].id) if len(found) > ROWS else ""
    fields = asdict(asked)
    return visit.part(
        "pingbacks.html",
        "log",
        pingbacks=shown,
        asked=asked,
        filtered=any(fields.values()),
        states=STATES,
        state_of=lambda one: _state(one, now),
        reasons=REASONS,
        why=await why_failed(visit.database, visit.shop, failed) if failed else {},
        events=list(EVENTS),
        moving=any(_is_moving(one, now) for one in shown),
        here=list_address(path, {**fields, "before": before}),
        resend_all=""
        if asked.reference or asked.email
        else list_address(visit.url("pingbacks/resend"), asked.narrowed),
        **await _health(visit, now),
        newest=list_address(path, fields) if before else "",
        older=list_address(path, {**fields, "before": older}) if older else "",
    )


@section.page(f"{_PINGBACKS}/health", needs=Permission.view_pingbacks)
async def show_health(visit: Visit) -> Response:
    """How the endpoints stand, for a page of the log that asks for news of it."""
    if "hx-request" not in visit.request.headers:
        return visit.go(visit.url("pingbacks"))
    return visit.part("pingbacks.html", "health", reasons=REASONS, **await _health(visit, await visit.shop_now()))


async def _health(visit: Visit, now: datetime) -> dict[str, object]:
    """What the card needs; the shop's `now`."""
    return {
        "health": await read_health(visit.database, visit.shop, now=now),
        "now": now,
        "share": lambda one: _share(visit, one),
        "count": partial(format_decimal, locale=visit.texts.locale),
        "counted": lambda number: _counted(visit, number),
    }


def _counted(visit: Visit, number: int) -> str:
    """A number that is not counted beyond a bound: `5,000+`."""
    return f"{format_decimal(number, locale=visit.texts.locale)}{'+' if number >= MOST_COUNTED else ''}"


@dataclass(frozen=True, slots=True)
class _Asked:
    """What the log is filtered by, as an address writes it: empty for what is no filter."""

    state: str
    event: str
    reference: str
    email: str
    since: str
    until: str

    @property
    def narrowed(self) -> dict[str, str]:
        """The filters that sending all failed ones again goes by."""
        return {"event": self.event, "since": self.since, "until": self.until}


def _asked(visit: Visit) -> _Asked:
    text = visit.form.text
    state, event = text("state", 20), text("event", 40)
    return _Asked(
        state=state if state in set(PingbackState) else "",
        event=event if event in EVENTS else "",
        reference=text("reference", 300),
        email=text("email", 300),
        **days_asked(visit),
    )


def _state(pingback: Pingback, now: datetime) -> tuple[str, str]:
    """What a pingback's state is called, and the tone of its badge."""
    again = pingback.state is PingbackState.DUE and pingback.attempts and pingback.due_at > now
    return RETRIED if again else STATES[pingback.state]


def _is_moving(pingback: Pingback, now: datetime) -> bool:
    return pingback.state is PingbackState.DUE and pingback.due_at < now + SOON


def _share(visit: Visit, share: ArrivedShare) -> str:
    """Which share was acknowledged; rounded down, so that 100 % means all."""
    if not share.sent:
        return "–"
    per_mille = share.acknowledged * 1000 // share.sent
    return str(format_percent(Decimal(per_mille) / 1000, "#,##0.#%", locale=visit.texts.locale))


@section.page(_ONE, needs=Permission.view_pingbacks)
async def show_pingback(visit: Visit) -> Response:
    """One pingback with its attempts, newest first, and why each failed;
    the private key in headers is masked.
    """
    return await _pingback_page(visit)


async def _pingback_page(visit: Visit, typed: str = "", error: PaydeskError | None = None) -> Response:
    """The page, with the URL that was typed and what is wrong with it, if anything is."""
    pingback, attempts = await find_with_attempts(visit.database, visit.shop, visit.number("pingback_id"))
    now = await visit.shop_now()
    asked = {"status": error.status} if error is not None else {}
    return visit.part(
        "pingback.html",
        "news",
        **asked,
        goes_to=await goes_to(visit.database, visit.shop, pingback.id),
        typed=typed,
        errors=field_errors(visit, error, "url") if error is not None else {},
        pingback=pingback,
        subscription_id=pingback.subscription_id,
        state=_state(pingback, now),
        content=msgspec.json.format(pingback.payload, indent=2),
        attempts=[(one, why(one.status, one.error, one.response_body)) for one in reversed(attempts)],
        reasons=REASONS,
        attempts_left=max(MOST_ATTEMPTS - pingback.attempts, 0),
        now=now,
        moving=_is_moving(pingback, now),
    )


@section.action(f"{_ONE}/resend", needs=Permission.resend_pingback)
async def resend(visit: Visit) -> Response:
    """Send one again, and go back to where the button was."""
    pingback_id, url = visit.number("pingback_id"), visit.form.text("url", 4000)
    times = {"shop_now": await visit.shop_now(), "now": visit.now}
    try:
        sent = await pingback_acting.resend_pingback(visit.database, visit.session, pingback_id, url=url, **times)
    except Malformed as error:
        return await _pingback_page(visit, url, error)
    page, back = visit.url("pingbacks"), own_path(visit.form.text("back", 1000))
    goal = back if back == page or back.startswith(f"{page}?") else f"{page}/{pingback_id}"
    return visit.go(
        goal, visit.texts.get("Pingback %(id)s is sent again now, to %(url)s.") % {"id": pingback_id, "url": sent.url}
    )


@section.page(f"{_PINGBACKS}/resend", needs=Permission.resend_pingback)
async def ask_to_resend(visit: Visit) -> Response:
    """Whether to send all failed ones of the filter again, and how many those are."""
    asked = _asked(visit)
    failed = await count_exhausted(visit.database, visit.shop, _exhausted(visit))
    back = list_address(visit.url("pingbacks"), {"state": PingbackState.EXHAUSTED, **asked.narrowed})
    if not failed:
        return visit.go(back, visit.texts.get(_NONE_LEFT), "info")
    return visit.ask(
        visit.texts.get("Send the failed pingbacks again?"),
        text=" ".join(_explained(visit, asked, failed, (await find_target(visit.database, visit.shop)).url)),
        button=visit.texts.get("Send again"),
        back=back,
        fields=asked.narrowed,
        danger=False,
    )


def _exhausted(visit: Visit) -> Exhausted:
    page = page_asked(visit)
    return Exhausted(_asked(visit).event or None, page.since, page.until)


def _explained(visit: Visit, asked: _Asked, failed: int, url: str | None) -> Sequence[str]:
    """What will happen, as sentences."""
    number = str(format_decimal(min(failed, MOST_AT_ONCE), locale=visit.texts.locale))
    said = [visit.texts.get("Pingbacks that are sent again: %(number)s.") % {"number": number}]
    if url:
        text = visit.texts.get("Each gets one attempt more, at the account's URL of now, %(url)s.") % {"url": url}
        said.extend([text, visit.texts.get("One whose form named a URL of its own goes there.")])
    else:
        said.append(visit.texts.get("Each gets one attempt more, at the URL that its form named or it went to before."))
    if asked.event:
        said.append(visit.texts.get("Only those of the event %(event)s.") % {"event": asked.event})
    if asked.since or asked.until:
        said.append(visit.texts.get("Only those of the days that you chose."))
    if failed > MOST_AT_ONCE:
        said.append(visit.texts.get("These are the oldest; when they are through, send the rest."))
    said.append(visit.texts.get("Make sure that your server works again: what fails stays failed."))
    return said


@section.action(f"{_PINGBACKS}/resend", needs=Permission.resend_pingback)
async def resend_all(visit: Visit) -> Response:
    """Send all failed ones of the filter again."""
    resent = await pingback_acting.resend_failed(
        visit.database, visit.session, _exhausted(visit), shop_now=await visit.shop_now(), now=visit.now
    )
    if not resent:
        return visit.go(visit.url("pingbacks"), visit.texts.get(_NONE_LEFT), "info")
    number = str(format_decimal(resent, locale=visit.texts.locale))
    said = visit.texts.get("Pingbacks that are sent again now: %(number)s.") % {"number": number}
    return visit.go(list_address(visit.url("pingbacks"), _asked(visit).narrowed), said)
