"""Card testing at a merchant's side: how tries have gone, what holds, and limits of its own,
which may be lower.
"""

from __future__ import annotations

from starlette.responses import Response

from paydesk.core.errors import Malformed
from paydesk.core.wording import worded
from paydesk.domain.accounts.roles import Permission
from paydesk.domain.business.card_guard import OwnLimits, find_card_guard, forget_test_tries, tighten
from paydesk.domain.payments.card_guard import OUT_OF_THE_WAY, PAUSE_FOR, RATE_WINDOW, Counted
from paydesk.web.account.face import FACE
from paydesk.web.console.guards import Section, field_errors
from paydesk.web.console.visit import Visit
from paydesk.web.texts import mark

section = Section(FACE)
_CARDS = "/account/{merchant_id}/settings/cards"

LIMITS = {
    Counted.CHECKOUT: (mark("Attempts to pay one checkout"), ""),
    Counted.ADDRESS: (
        mark("Failed tries an hour from one address"),
        mark("Networks that share one address need some: offices, phones of one provider."),
    ),
    Counted.CARD: (mark("Failed tries an hour with one card"), ""),
    Counted.WRONG_CVC: (mark("Wrong security codes a day for one card"), ""),
    Counted.CHECK: (
        mark("Trials and changes of cards an hour with one card"),
        mark("Counted although the bank approves; six times as many pass from one address."),
    ),
    Counted.DECLINES: (
        mark("Declines in %(window)s minutes from which all are asked for 3-D Secure"),
        mark("If they are half of all tries. As many again after that, and no cards are taken for %(pause)s minutes."),
    ),
}
"""What each limit is called, and a hint; `window` and `pause` are put in."""


@section.page(_CARDS, needs=Permission.view)
async def show_cards(visit: Visit) -> Response:
    """How tries with cards have gone, and what holds."""
    return await _page(visit)


async def _page(
    visit: Visit, typed: dict[Counted, str] | None = None, errors: dict[str, str] | None = None, status: int = 200
) -> Response:
    limits = visit.services.desk.limits_of(visit.shop)
    guard = await find_card_guard(visit.database, visit.shop, limits, now=visit.now)
    return visit.page(
        "card_guard.html",
        status=status,
        guard=guard,
        limits=LIMITS,
        periods={"window": RATE_WINDOW.seconds // 60, "pause": PAUSE_FOR.seconds // 60},
        typed=typed or {kind: str(guard.own.limits.get(kind, "")) for kind in LIMITS},
        always=visit.form.has("always_authenticate") if typed else guard.own.always_authenticate,
        unlimited=OUT_OF_THE_WAY,
        may_change=visit.can(_needed(visit)),
        errors=errors or {},
    )


def _needed(visit: Visit) -> Permission:
    """Who may change limits: of a test side, whoever programs;
    of a live one, whoever decides its settings.
    """
    return Permission.manage_settings if visit.shop.live else Permission.manage_integration


@section.action(_CARDS, needs=Permission.manage_integration)
async def save(visit: Visit) -> Response:
    """Take limits of the merchant's own; what is wrong stands in the form with the reason."""
    visit.require(_needed(visit))
    typed = {kind: visit.form.text(str(kind), 20).strip() for kind in LIMITS}
    limits = visit.services.desk.limits_of(visit.shop)
    try:
        visit.form.require_only(*LIMITS, boxes=("always_authenticate",))
        wanted = OwnLimits(_parsed(typed), visit.form.has("always_authenticate"))
        await tighten(visit.database, visit.session.actor, visit.shop, wanted, limits, now=visit.now)
    except Malformed as error:
        return await _page(visit, typed, field_errors(visit, error, *LIMITS, "always_authenticate"), error.status)
    return visit.go(visit.url("settings/cards"), visit.texts.get("Saved."))


def _parsed(typed: dict[Counted, str]) -> dict[Counted, int]:
    """The limits that were typed; an empty one is the operator's.

    Raises: Malformed, naming the field.
    """
    for kind, text in typed.items():
        if text and not (text.isascii() and text.isdigit() and len(text) < 8):
            raise Malformed(worded("this must be a whole number, or empty"), kind)
    return {kind: int(text) for kind, text in typed.items() if text}


@section.action(f"{_CARDS}/anew", needs=Permission.manage_integration)
async def begin_anew(visit: Visit) -> Response:
    """Forget what was tried on the test side, and end what it led to."""
    await forget_test_tries(visit.database, visit.session.actor, visit.shop, now=visit.now)
    return visit.go(visit.url("settings/cards"), visit.texts.get("Nothing was tried: the guard begins anew."))
