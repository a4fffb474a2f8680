"""Test events: a made-up pingback to a URL, and what the server there made of it."""

from __future__ import annotations

from starlette.responses import Response

from paydesk.core.errors import PaydeskError
from paydesk.domain.accounts.access_needs import ConfirmationNeeded
from paydesk.domain.accounts.roles import Permission
from paydesk.domain.business import pingback_acting
from paydesk.domain.business.made_up_events import EVENTS, ORDER
from paydesk.domain.business.test_events import SentTestEvent, TestEvent, find_target
from paydesk.web.account.face import FACE
from paydesk.web.account.pingback_words import REASONS
from paydesk.web.console.guards import Section, field_errors
from paydesk.web.console.visit import Visit

section = Section(FACE)
_TEST = "/account/{merchant_id}/pingbacks/test"
_FIELDS = ("url", "event", "sign_version")


@section.page(_TEST, needs=Permission.resend_pingback)
async def show_form(visit: Visit) -> Response:
    """What to send, and where."""
    return await _form(visit)


@section.action(_TEST, needs=Permission.resend_pingback)
async def send(visit: Visit) -> Response:
    """Send it, and show the request and the answer; they are kept nowhere."""
    text = visit.form.text
    wanted = TestEvent(text("event", 40), text("url", 4000), text("sign_version", 4))
    try:
        async with visit.services.sender() as sender:
            sent = await pingback_acting.send_test_event(visit.gate, visit.session, sender, wanted, now=visit.now)
    except ConfirmationNeeded:
        raise
    except PaydeskError as error:
        return await _form(visit, wanted, errors=field_errors(visit, error, *_FIELDS), status=error.status)
    return await _form(visit, wanted, sent)


async def _form(
    visit: Visit,
    wanted: TestEvent | None = None,
    sent: SentTestEvent | None = None,
    *,
    errors: dict[str, str] | None = None,
    status: int = 200,
) -> Response:
    target = await find_target(visit.database, visit.shop)
    return visit.page(
        "test_event.html",
        status=status,
        typed=wanted or TestEvent("payment", target.url or "", target.sign_version),
        target=target,
        events=[(event, event) for event in EVENTS],
        versions=[(version, version) for version in ("v2", "v1")],
        sent=sent,
        order=ORDER,
        reasons=REASONS,
        errors=errors or {},
    )
