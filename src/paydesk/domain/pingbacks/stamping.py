"""One attempt's request: the stored payload with this moment's `pingback_ts`, signed
(interface.md §4.3).

Apart from the stamp and the signature every attempt of a pingback is the same, byte for byte.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from urllib.parse import urlsplit

import msgspec

from paydesk_client.parameters import encode_form
from paydesk_client.signature import pingback_signature

_MASKED = "X-ApiKey"

IN_CLEAR = "not sent: version 1 carries the private key, and live it goes over https only"
"""What is recorded of an attempt that was not made because anybody on the way could have read
the key."""

_decoder = msgspec.json.Decoder(float_hook=Decimal)


def stamp(
    payload: str, *, sign_version: str, body_format: str, private_key: str, header_prefix: str, pingback_ts: int
) -> tuple[bytes, dict[str, str]]:
    """The body and the headers to send.

    `payload` is the JSON text of an object without `pingback_ts`; body_format is `json` or, for
    version 1 only, `form`; pingback_ts is real time in Unix seconds, since clients refuse a version
    2 body older than 300 s.
    """
    body = f'{payload[:-1]},"pingback_ts":{pingback_ts}}}'.encode()
    if sign_version == "v2":
        return body, {
            "Content-Type": "application/json",
            f"{header_prefix}-Signature-Version": "v2",
            f"{header_prefix}-Signature": pingback_signature(body, private_key),
        }
    if body_format == "form":
        form = encode_form(_decoder.decode(body)).encode()
        return form, {"Content-Type": "application/x-www-form-urlencoded", "X-ApiKey": private_key}
    return body, {"Content-Type": "application/json", "X-ApiKey": private_key}


def is_in_clear(url: str, *, sign_version: str, live: bool) -> bool:
    """Whether a pingback would show a key that moves real money to everybody on the way."""
    return live and sign_version != "v2" and urlsplit(url).scheme != "https"


def masked(headers: Mapping[str, str]) -> Mapping[str, str]:
    """The headers as they may be kept: without the private key that version 1 carries."""
    if _MASKED not in headers:
        return headers
    return {name: "***" if name == _MASKED else value for name, value in headers.items()}
