"""`/api/v1/subscriptions/{id}/change`, `cancel`, `undo`, `pause` and `resume`:
changes that come later.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Path
from starlette.requests import Request
from starlette.responses import Response

from paydesk.core.errors import Malformed
from paydesk.core.paging import LARGEST_ID, read_moment
from paydesk.domain.billing.charging_differences import AtOnce, change_and_charge
from paydesk.domain.billing.differences import ChangedAtOnce, Difference
from paydesk.domain.merchants.callers import Caller
from paydesk.domain.subscriptions.balances import find_balance
from paydesk.domain.subscriptions.changing import Changed, cancel_later, cancel_now, pause, resume, undo
from paydesk.domain.subscriptions.changing_plans import Plan, Prorating, change_plan
from paydesk.domain.subscriptions.for_api import find_subscription_for_api
from paydesk.web.api.answers import answer, described
from paydesk.web.api.bodies import read_fields
from paydesk.web.api.idempotency import ByIdempotencyKey, Once, Passing
from paydesk.web.api.ids import subscription_in_path
from paydesk.web.api.services import ApiServices, ByPrivateKey, Services
from paydesk.web.api.subscription_change_shapes import OneChangedSubscription, changed_shape

_AT = ("period_end", "now")
PREVIEW = {
    "type": "boolean",
    "default": False,
    "description": "Answer what would come of it, to the cent and the second, and change nothing.",
}
_WHEN = {
    "type": "string",
    "enum": [*_AT],
    "default": _AT[0],
    "description": "With the period that is paid, which can be undone until then, or at once.",
}
_PLAN_WHEN = {
    "type": "string",
    "enum": [*_AT],
    "default": _AT[0],
    "description": "With the next period, which can be undone until then, or at once.",
}
_PRORATING = {
    "type": "string",
    "enum": [*Prorating],
    "default": str(Prorating.NONE),
    "description": "At once: nothing is charged or given back for the period that is paid, or the next charge has what "
    "the rest of it costs more, or less, or that is charged now, and the plan changes once it is paid. In its trial, "
    "and for periods of another length, `charge_now` begins another period, charged with what is unused of the one "
    "before as a credit, and `none`, if it is said, without credit.",
}
_PLAN: Mapping[str, Mapping[str, object]] = {
    "package_version_id": {
        "type": "integer",
        "description": "The `package_version_id` of a subscription that was sold before; left out: its own.",
    },
    "sku_id": {"type": "string", "description": "Another package, with its `name` and `price`."},
    "name": {"type": "string", "description": "What the package is called."},
    "price": {"type": "string", "description": "What a period costs then.", "examples": ["30.00"]},
    "period": {"type": "string", "description": "How long a period is then, as in the form.", "examples": ["1m"]},
    "quantity": {"type": "integer", "description": "Of how many it is then; `price` is that of one."},
}
_UNTIL = {
    "type": ["string", "integer"],
    "description": "When it goes on by itself, Unix seconds or ISO 8601; left out: when it is resumed.",
}


router = APIRouter(tags=["Subscriptions"])
_Id = Annotated[str, Path(description="Its `id`.")]
_ONE = "/api/v1/subscriptions/{subscription_id}"


@dataclass(frozen=True, slots=True)
class _Asked:
    """A call about one subscription, with the fields of its body."""

    caller: Caller
    services: ApiServices
    subscription_id: int
    fields: Mapping[str, object]
    key: str | None = None

    @property
    def preview(self) -> bool:
        """Whether nothing is to be changed."""
        return flag(self.fields.get("preview", False))

    @property
    def named(self) -> dict[str, Any]:
        """What each wish is told besides its own."""
        return {"now": self.caller.now, "preview": self.preview}


Wish = Callable[[_Asked], Awaitable[Changed | ChangedAtOnce]]


def _taking(**properties: Mapping[str, object]) -> dict[str, Any]:
    """How a route describes its body, which may be left out."""
    schema = {"type": "object", "properties": {**properties, "preview": PREVIEW}, "additionalProperties": False}
    kinds = ("application/json", "application/x-www-form-urlencoded")
    return {"requestBody": {"required": False, "content": {kind: {"schema": schema} for kind in kinds}}}


_ANSWERS = described(OneChangedSubscription, 404, 409, 413)


@router.post(
    f"{_ONE}/cancel",
    summary="Cancel with the period",
    operation_id="cancel_subscription_later",
    responses=_ANSWERS,
    openapi_extra=_taking(at=_WHEN),
)
async def post_cancel(
    request: Request, caller: ByPrivateKey, services: Services, once: ByIdempotencyKey, subscription_id: _Id
) -> Response:
    """Have a subscription end with the period that is paid, or with its trial: nothing is charged
    any more, and `subscription_cancelled` is sent when it ends.

    Until then its state stays, `cancel_delay` and `change_request` say when, and it can be undone.
    One whose charge is failing has no period left, and ends at once. 409 while a charge is at the
    bank, while it is paused, and if it runs out by itself. With `"at": "now"` it ends at once.
    """
    return await _once(once, request, caller, services, subscription_id, _cancel, "at")


@router.post(
    f"{_ONE}/change",
    summary="Change the plan",
    operation_id="change_subscription_plan",
    responses={
        **described(OneChangedSubscription, 402, 404, 409, 413),
        202: {**_ANSWERS[200], "description": "The bank has not said yet whether it takes what was to be charged now."},
    },
    openapi_extra=_taking(when=_PLAN_WHEN, proration_behavior=_PRORATING, **_PLAN),
)
async def post_change(
    request: Request, caller: ByPrivateKey, services: Services, once: ByIdempotencyKey, subscription_id: _Id
) -> Response:
    """Have a subscription go on as another package, or at another price or rhythm, from its next
    period on; nothing is charged before that.

    Until then `change_request` says what comes and when, and it can be undone. The trial that it
    had stays its own, its payments count on, and a calendar of other periods begins when the one
    that is paid ends. It takes the place of an end that was to come. 409 while a charge is at the
    bank or failing, while it is paused, if it runs out by itself, and if it has had as many
    payments as the plan has.

    With `"when": "now"` it is of the other plan at once, for what was paid: nothing is charged or
    given back for that, and the next period is the first one at the new price, on the day that it
    was due before. With `"proration_behavior": "next_charge"` that charge has the difference for
    the rest of the period besides, by the second; a credit goes on to the charges after it. It
    can't be undone, but changed again. 409 besides in its trial, and for periods of another length.

    With `"proration_behavior": "charge_now"` the difference is charged now, and the plan changes
    once it is paid. What the bank declines is 402, and nothing has changed; 202 if it has not
    answered: then the plan changes when it turns out paid. Send an `Idempotency-Key`: asked again
    with it, the charge is made once. What is less than acquirers take waits in the balance.

    In its trial (then also for the plan that it has), and for periods of another length, another
    period begins with that, and its price is charged, less the unused share of what was paid for
    the one before; with `"proration_behavior": "none"`, said so, the whole price is.
    """
    known = ("when", "proration_behavior", *_PLAN)
    return await _once(once, request, caller, services, subscription_id, _plan, *known)


@router.post(
    f"{_ONE}/undo",
    summary="Undo a change that is to come",
    operation_id="undo_subscription_change",
    responses=_ANSWERS,
    openapi_extra=_taking(),
)
async def post_undo(
    request: Request, caller: ByPrivateKey, services: Services, once: ByIdempotencyKey, subscription_id: _Id
) -> Response:
    """Have a subscription go on that was to end with its period, or to change its plan: it is
    charged as before.

    Without a change that is open nothing happens. 409 if it has ended or is paused.
    """
    return await _once(once, request, caller, services, subscription_id, _undo)


@router.post(
    f"{_ONE}/pause",
    summary="Pause a subscription",
    operation_id="pause_subscription",
    responses=_ANSWERS,
    openapi_extra=_taking(until=_UNTIL),
)
async def post_pause(
    request: Request, caller: ByPrivateKey, services: Services, once: ByIdempotencyKey, subscription_id: _Id
) -> Response:
    """Charge nothing until a day, or until it is resumed: give the customer nothing meanwhile.
    The rest of what was paid is kept, and the calendar moves on by the pause.

    It takes the place of a cancellation that was to come. 409 while a charge is at the bank, and if
    it has ended.
    """
    return await _once(once, request, caller, services, subscription_id, _pause, "until")


@router.post(
    f"{_ONE}/resume",
    summary="Resume a subscription",
    operation_id="resume_subscription",
    responses=_ANSWERS,
    openapi_extra=_taking(),
)
async def post_resume(
    request: Request, caller: ByPrivateKey, services: Services, once: ByIdempotencyKey, subscription_id: _Id
) -> Response:
    """End a subscription's pause: what was left of its period runs on from now.

    Nothing happens to one that is not paused. 409 if it has ended.
    """
    return await _once(once, request, caller, services, subscription_id, _resume)


async def _once(
    once: Once,
    request: Request,
    caller: Caller,
    services: ApiServices,
    subscription_id: str,
    wish: Wish,
    *known: str,
) -> Response:
    """Carry a wish out once for its Idempotency-Key."""

    async def work(key: str | None) -> Response:
        fields = await _read(request, *known)
        found = await subscription_in_path(services.desk.database, caller.shop, subscription_id)
        asked = _Asked(caller, services, found, fields, key)
        seen = await find_subscription_for_api(services.desk.database, caller.shop, found)
        came = await wish(asked)
        done = came if isinstance(came, ChangedAtOnce) else ChangedAtOnce(came)
        balance = await find_balance(services.desk.database, caller.shop, found)
        portal_url = services.portal_url(seen.portal)
        shape = changed_shape(seen, done, balance, portal_url, preview=asked.preview)
        return _answered(OneChangedSubscription(True, shape), done.difference)

    return await once.answer(caller.shop, work)


def _answered(body: OneChangedSubscription, difference: Difference) -> Response:
    """The answer: 202 while a bank has not said what became of a charge."""
    # Who asks again learns what the bank has said by then.
    response = answer(body, Passing if difference.is_open else Response)
    response.status_code = 202 if difference.is_open else 200
    return response


async def _read(request: Request, *known: str) -> dict[str, object]:
    """The fields of the body; one that is not known may be a mistyped `preview`.

    Raises: Malformed.
    """
    fields = await read_fields(request)
    names = (*known, "preview")
    for name in (*request.query_params, *fields):
        if name in request.query_params or name not in names:
            raise Malformed(f'there is no field "{name[:40]}" here; send {" and ".join(names)} in the body', name)
    return fields


async def _cancel(asked: _Asked) -> Changed:
    at = asked.fields.get("at", _AT[0])
    if at not in _AT:
        raise Malformed(f"at is not one of {', '.join(_AT)}", "at")
    act = partial(cancel_later if at == _AT[0] else cancel_now, asked.services.desk.database, asked.caller.shop)
    return await act(asked.subscription_id, by="api", **asked.named)


async def _plan(asked: _Asked) -> Changed | ChangedAtOnce:
    when = asked.fields.get("when", _AT[0])
    if when not in _AT:
        raise Malformed(f"when is not one of {', '.join(_AT)}", "when")
    said = asked.fields.get("proration_behavior")
    prorating = _prorating(str(Prorating.NONE) if said is None else said, when)
    given = {name: asked.fields[name] for name in _PLAN if name in asked.fields}
    version = given.pop("package_version_id", None)
    if not given and version is None:
        raise Malformed(f"nothing says what it is to become; send {', '.join(_PLAN)}", "package_version_id")
    if type(quantity := given.get("quantity")) is int:
        given |= {"quantity": str(quantity)}
    plan = Plan(_version_id(version), **{name: _text(value, name) for name, value in given.items()})
    # To begin a period, and charge it without credit, has to be said.
    if prorating is Prorating.CHARGE_NOW or (when != _AT[0] and said is not None and prorating is Prorating.NONE):
        charged = partial(AtOnce, by="api", request_key=asked.key, credited=prorating is Prorating.CHARGE_NOW)
        at_once = charged(asked.subscription_id, plan, **asked.named)
        return await change_and_charge(asked.services.desk, asked.caller.shop, at_once)
    act = partial(change_plan, asked.services.desk.database, asked.caller.shop, prorating=prorating)
    return await act(asked.subscription_id, plan, by="api", at_once=when != _AT[0], **asked.named)


def _prorating(given: object, when: object) -> Prorating:
    """What is done about the period that is paid. Raises: Malformed."""
    field = "proration_behavior"
    if given not in [*Prorating]:
        raise Malformed(f"{field} is not one of {', '.join(Prorating)}", field)
    if given != Prorating.NONE and when == _AT[0]:
        raise Malformed(f"{field} is for a change at once; with its period nothing is prorated", field)
    return Prorating(str(given))


async def _undo(asked: _Asked) -> Changed:
    return await undo(asked.services.desk.database, asked.caller.shop, asked.subscription_id, **asked.named)


async def _pause(asked: _Asked) -> Changed:
    until = _moment(asked.fields.get("until"))
    database, shop = asked.services.desk.database, asked.caller.shop
    return await pause(database, shop, asked.subscription_id, until=until, by="api", **asked.named)


async def _resume(asked: _Asked) -> Changed:
    return await resume(asked.services.desk.database, asked.caller.shop, asked.subscription_id, **asked.named)


def flag(value: object) -> bool:
    """A yes or no, as JSON or a form writes it. Raises: Malformed."""
    known = {"true": True, "1": True, "false": False, "0": False}
    text = str(value).lower() if isinstance(value, bool | int | str) else ""
    if text not in known:
        raise Malformed("preview is not true or false", "preview")
    return known[text]


def _version_id(value: object) -> int | None:
    """The id of a package version, or None if none was given. Raises: Malformed."""
    if value is None:
        return None
    text = str(value)
    if isinstance(value, bool) or not isinstance(value, int | str) or not (text.isascii() and text.isdigit()):
        raise Malformed("package_version_id is not a whole number", "package_version_id")
    return min(int(text[:20]), LARGEST_ID)


def _text(value: object, name: str) -> str:
    """A text. Raises: Malformed."""
    if not isinstance(value, str):
        raise Malformed(f"{name} is not text; write it in quotes", name)
    return value


def _moment(value: object) -> datetime | None:
    """A moment, or None if none was given. Raises: Malformed."""
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise Malformed("until is no moment; write it as Unix seconds or ISO 8601", "until")
    try:
        return read_moment(str(value))
    except ValueError as error:
        raise Malformed(f"until {error}", "until") from error
