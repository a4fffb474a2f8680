"""Bodies of calls: empty, JSON, or form-encoded with bracket names (interface.md §8.1)."""

from __future__ import annotations

import json
import re
from decimal import Decimal, InvalidOperation

import msgspec
from starlette.requests import Request

from paydesk.core.errors import Malformed
from paydesk.web.visits import FORM_TYPE, read_body
from paydesk_client.parameters import MalformedForm
from paydesk_client.signature import parse_form

LARGEST_BODY = 64 * 1024
JSON_TYPE = "application/json"
_NOTHING = (b"", b"[]", b"{}")
_MOST_DIGITS = 40
_ABSURD = Decimal("Infinity")
_DEEPEST = 8
_LONGEST_NUMBER = 2 * _MOST_DIGITS
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*+"?|[\[{]|[\]}]|[-+.0-9eE]{%d,}' % (_LONGEST_NUMBER + 1), re.DOTALL)
"""What JSON's size depends on: texts (in which nothing counts), what opens and closes,
numbers that are too long."""


def _exact(text: str) -> Decimal:
    """A JSON number with a fraction or an exponent as it was written:
    no float comes near an amount.

    One with absurdly many digits is infinite, which nothing accepts.
    """
    try:
        number = Decimal(text)
    except InvalidOperation:
        return _ABSURD
    return number if abs(number.adjusted()) <= _MOST_DIGITS and len(text) <= _LONGEST_NUMBER else _ABSURD


_decoder = msgspec.json.Decoder(dict[str, object], float_hook=_exact)


async def raw_body(request: Request) -> bytes:
    """The body as it was sent; it is read once, however often it is asked for.

    Raises: TooLarge, Malformed.
    """
    state = request.scope.setdefault("state", {})
    if "raw_body" not in state:
        state["raw_body"] = await read_body(request, LARGEST_BODY)
    body: bytes = state["raw_body"]
    return body


async def read_fields(request: Request) -> dict[str, object]:
    """The fields of a call's body, none if it is empty, `[]` or `{}`,
    whatever its content type says.

    Numbers that are no integers are decimals, as they were written.
    Raises: Malformed for anything else that is neither a JSON object nor form-encoded, or names a
        field twice; TooLarge.
    """
    body = (await raw_body(request)).strip()
    if body in _NOTHING:
        return {}
    return _form_fields(body) if media_type(request) == FORM_TYPE else _json_fields(body)


async def read_strictly(request: Request, *known: str) -> dict[str, object] | None:
    """The fields of a call that moves money, None for a body of zero bytes;
    nothing that was meant goes unseen.

    Parameters in the address, fields that are not `known` or stand there twice, a body that its
    content type doesn't name, and one that holds no field at all (`{}`, `[]`, `null`) are refused:
    each may be a mistyped or misplaced amount.
    Raises: Malformed, TooLarge.
    """
    if request.query_params:
        name = next(iter(request.query_params))
        raise Malformed(f'"{name[:40]}" stands in the address; send {" and ".join(known)} in the body', name)
    body = await raw_body(request)
    if not body:
        return None
    fields = _typed_fields(request, body)
    unknown = [name for name in fields if name not in known]
    if unknown:
        raise Malformed(f'there is no field "{unknown[0][:40]}", only {" and ".join(known)}', unknown[0])
    if not fields:
        shown = body[:40].decode("utf-8", "replace").strip()
        raise Malformed(f'the body "{shown}" holds no field; send {" and ".join(known)}, or no body at all', *known)
    return fields


def _typed_fields(request: Request, body: bytes) -> dict[str, object]:
    """The fields of a body that is what its content type says.

    Raises: Malformed.
    """
    given = media_type(request)
    if given == JSON_TYPE:
        return {} if body.strip() in (*_NOTHING, b"null") else _json_fields(body)
    if given != FORM_TYPE:
        said = f'the content type is "{given[:60]}"' if given else "the content type is missing"
        raise Malformed(f"{said}; send the body as {JSON_TYPE} or {FORM_TYPE}, and name it in the header")
    if body.lstrip()[:1] in (b"{", b"["):
        raise Malformed(f"the body is JSON, but its content type is {FORM_TYPE}; send {JSON_TYPE}")
    return _form_fields(body)


def _unrepeated(body: bytes, fields: dict[str, object]) -> dict[str, object]:
    """The fields of a JSON body that names none twice:
    which of two amounts is meant would be a guess.

    Raises: Malformed.
    """

    def refuse(pairs: list[tuple[str, object]]) -> None:
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise Malformed(f'field "{name[:40]}" is given twice; send it once', name)
            seen.add(name)

    try:
        json.loads(body, object_pairs_hook=refuse, parse_int=str, parse_float=str)
    except RecursionError as error:
        raise Malformed(f"the body is nested too deep: {error}") from error
    return fields


def media_type(request: Request) -> str:
    """The content type without its parameters, in lower case; empty if there is none."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def _form_fields(body: bytes) -> dict[str, object]:
    try:
        return dict(parse_form(body))
    except MalformedForm as error:
        raise Malformed(str(error)) from error


def _json_fields(body: bytes) -> dict[str, object]:
    _limit(body)
    try:
        fields = _decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Malformed(f"the body is no JSON object and not {FORM_TYPE}: {error}") from error
    return _unrepeated(body, fields)


def _limit(body: bytes) -> None:
    """Refuse JSON that is nested deep or holds a number of hundreds of digits,
    before anything is made of it.

    Raises: Malformed.
    """
    depth = 0
    for found in _TOKEN.finditer(body):
        token = found[0]
        if token in (b"{", b"["):
            depth += 1
        elif token in (b"}", b"]"):
            depth -= 1
        elif token[:1] != b'"':
            raise Malformed(f"the body holds a number of more than {_LONGEST_NUMBER} digits; no amount has so many")
        if depth > _DEEPEST:
            raise Malformed(f"the body is nested deeper than {_DEEPEST} levels; nothing that is asked for is")
