"""Bodies of calls: empty, JSON, or form-encoded with bracket names; each client picks one of them (wire.md §3)."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.requests import Request

from paydesk.core.errors import Malformed
from paydesk.web.visits import FORM_TYPE, read_body
from paydesk_client.parameters import MalformedForm
from paydesk_client.signature import parse_form

LARGEST_BODY = 64 * 1024
_NOTHING = (b"", b"[]", b"{}")


async def read_fields(request: Request) -> dict[str, Any]:
    """The fields of a call's body, none if it is empty, `[]` or `{}`, whatever its content type says.

    Raises: Malformed for anything else that is neither a JSON object nor form-encoded; TooLarge.
    """
    body = (await read_body(request, LARGEST_BODY)).strip()
    if body in _NOTHING:
        return {}
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type == FORM_TYPE:
        try:
            return dict(parse_form(body))
        except MalformedForm as error:
            raise Malformed(str(error)) from error
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError) as error:
        raise Malformed(f"the body is no JSON object and not {FORM_TYPE}: {error}") from error
