"""Bodies of calls: empty, JSON, or form-encoded with bracket names; each client picks one of them (wire.md §3)."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Any

import msgspec
from starlette.requests import Request

from paydesk.core.errors import Malformed
from paydesk.web.visits import FORM_TYPE, read_body
from paydesk_client.parameters import MalformedForm
from paydesk_client.signature import parse_form

LARGEST_BODY = 64 * 1024
_NOTHING = (b"", b"[]", b"{}")
_MOST_DIGITS = 40
_ABSURD = Decimal("Infinity")


def _exact(text: str) -> Decimal:
    """A JSON number with a fraction or an exponent as it was written: no float comes near an amount.

    One with absurdly many digits is infinite, which nothing accepts.
    """
    try:
        number = Decimal(text)
    except InvalidOperation:
        return _ABSURD
    return number if abs(number.adjusted()) <= _MOST_DIGITS and len(text) <= 2 * _MOST_DIGITS else _ABSURD


_decoder = msgspec.json.Decoder(dict[str, Any], float_hook=_exact)


async def raw_body(request: Request) -> bytes:
    """The body as it was sent; it is read once, however often it is asked for.

    Raises: TooLarge, Malformed.
    """
    state = request.scope.setdefault("state", {})
    if "raw_body" not in state:
        state["raw_body"] = await read_body(request, LARGEST_BODY)
    body: bytes = state["raw_body"]
    return body


async def read_fields(request: Request) -> dict[str, Any]:
    """The fields of a call's body, none if it is empty, `[]` or `{}`, whatever its content type says.

    Numbers that are no integers are decimals, as they were written.
    Raises: Malformed for anything else that is neither a JSON object nor form-encoded; TooLarge.
    """
    body = (await raw_body(request)).strip()
    if body in _NOTHING:
        return {}
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type == FORM_TYPE:
        try:
            return dict(parse_form(body))
        except MalformedForm as error:
            raise Malformed(str(error)) from error
    try:
        return _decoder.decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise Malformed(f"the body is no JSON object and not {FORM_TYPE}: {error}") from error
