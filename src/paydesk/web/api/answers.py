"""Answers as JSON, with decimals as plain numbers, and how routes describe them
in the OpenAPI document.
"""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.responses import Response

from paydesk.core.wording import plain
from paydesk.web.api.shapes import Error

_encoder = msgspec.json.Encoder(decimal_format="number", enc_hook=plain)

REFERENCE = "#/components/schemas/{name}"

_REFUSALS: dict[int | str, str] = {
    400: "A parameter or the body is malformed or unknown; the message names it.",
    401: "The private key is missing or wrong.",
    402: "The bank declined; nothing was taken.",
    403: "The body's signature is wrong.",
    404: "There is no such thing among this merchant's, live or test.",
    409: "Not possible in its present state.",
    413: "The body is larger than 64 KiB.",
    429: "Too many calls; the header `Retry-After` says when to try again.",
    "default": "Another refusal, such as 503 while the service starts.",
}


def answer(body: msgspec.Struct, made: type[Response] = Response) -> Response:
    """A success; nothing may keep it."""
    return made(_encoder.encode(body), media_type="application/json", headers={"Cache-Control": "no-store"})


def described(success: type[msgspec.Struct], *refusals: int) -> dict[int | str, dict[str, Any]]:
    """What a route answers: the shape of success, and the statuses of its refusals besides 400,
    401, 403 and 429.
    """
    first_line = " ".join((success.__doc__ or "").split())
    statuses: list[int | str] = [*sorted({400, 401, 403, 429, *refusals}), "default"]
    refused = {status: {"description": _REFUSALS[status], "content": _content(Error)} for status in statuses}
    return {200: {"description": first_line, "content": _content(success)}, **refused}


def _content(shape: type[msgspec.Struct]) -> dict[str, object]:
    return {"application/json": {"schema": {"$ref": REFERENCE.format(name=shape.__name__)}}}
