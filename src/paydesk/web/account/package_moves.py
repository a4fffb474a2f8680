"""Moving what runs on one version of a package to another: what would come of it, how far it is,
and back.
"""

from __future__ import annotations

from starlette.responses import Response

from paydesk.core.errors import Conflict, Malformed, NotFound
from paydesk.domain.accounts.roles import Permission
from paydesk.domain.business.package_moves import move_subscriptions, take_move_back
from paydesk.domain.business.subscriptions_for_team import PackageVersion, list_package_versions, list_packages
from paydesk.domain.subscriptions.moving import MovePreview, MoveState, find_move, preview_move
from paydesk.domain.subscriptions.subscription_terms import Package
from paydesk.web.account.face import FACE
from paydesk.web.account.subscription_words import MOVE_STATES, STAYS, price_words, sum_words
from paydesk.web.console.guards import Section, field_errors
from paydesk.web.console.visit import Visit

section = Section(FACE)
_MOVE = "/account/{merchant_id}/subscriptions/packages/{package_id}/move"
_ONE = "/account/{merchant_id}/subscriptions/moves/{move_id}"
_MOST_PACKAGES = 200
"""How many other packages there are to choose from, the newest."""


@section.page(_MOVE, needs=Permission.manage_settings)
async def ask_where(visit: Visit) -> Response:
    """From which version to which; once both are chosen, what would come of it."""
    if not visit.form.has("to"):
        return await _page(visit)
    try:
        seen = await preview_move(visit.database, visit.shop, *_chosen(visit), now=await visit.shop_now())
    except (Malformed, NotFound) as error:
        return await _page(visit, error=error)
    return await _page(visit, seen)


@section.action(_MOVE, needs=Permission.manage_settings)
async def move(visit: Visit) -> Response:
    """Begin it, and show how far it is."""
    try:
        begun = await move_subscriptions(
            visit.gate, visit.session, visit.shop, *_chosen(visit), shop_now=await visit.shop_now(), now=visit.now
        )
    except (Malformed, NotFound, Conflict) as error:
        return await _page(visit, error=error)
    return visit.go(visit.url(f"subscriptions/moves/{begun.id}"))


def _chosen(visit: Visit) -> tuple[int, int]:
    return visit.form.number("from") or 0, visit.form.number("to") or 0


async def _page(
    visit: Visit, seen: MovePreview | None = None, error: Malformed | NotFound | Conflict | None = None
) -> Response:
    """The form, and below it what would come of what was chosen."""
    versions = await list_package_versions(visit.database, visit.shop, visit.number("package_id"))
    others = await list_packages(visit.database, visit.shop, most=_MOST_PACKAGES)
    from_id, to_id = _chosen(visit)
    from_id, newest_id = from_id or versions[-1].package.version_id, versions[0].package.version_id
    to_id = to_id or (newest_id if newest_id != from_id else 0)
    return visit.page(
        "package_move.html",
        status=error.status if error else 200,
        newest=versions[0].package,
        sources=[_option(visit, one.package, one) for one in versions],
        targets=[
            *([] if to_id else [("", "–")]),
            *(_option(visit, one.package) for one in versions),
            *(_option(visit, one.package) for one in others if one.package.id != versions[0].package.id),
        ],
        from_id=from_id,
        to_id=to_id or "",
        seen=seen,
        sum_of=lambda terms, amount: sum_words(visit, terms, amount),
        price_of=lambda terms: price_words(visit, terms),
        stays=STAYS,
        errors=field_errors(visit, error, "from", "to") if error else {},
    )


def _option(visit: Visit, package: Package, version: PackageVersion | None = None) -> tuple[int, str]:
    """A version to choose."""
    said = f"{package.version_id}: {package.terms.name}, {price_words(visit, package.terms)}"
    if version is not None:
        told = visit.texts.translations.ngettext(
            "%(version)s (%(taken)s subscription)", "%(version)s (%(taken)s subscriptions)", version.taken
        )
        said = told % {"version": said, "taken": version.taken}
    return package.version_id, said


@section.page(_ONE, needs=Permission.view)
async def show_move(visit: Visit) -> Response:
    """How far a move is, and what has come of it."""
    found = await find_move(visit.database, visit.shop, visit.number("move_id"))
    return visit.part(
        "package_moved.html",
        "news",
        move=found,
        state=MOVE_STATES[found.state],
        under_way=found.state in {MoveState.MOVING, MoveState.TAKING_BACK},
        may_go_back=found.state in {MoveState.MOVING, MoveState.MOVED},
    )


@section.action(f"{_ONE}/back", needs=Permission.manage_settings)
async def take_back(visit: Visit) -> Response:
    """Have what is still to come of it not come."""
    move_id = visit.number("move_id")
    await take_move_back(visit.gate, visit.session, visit.shop, move_id, now=visit.now)
    return visit.go(
        visit.url(f"subscriptions/moves/{move_id}"), visit.texts.get("What is still to come of it is taken back.")
    )
