"""Pingbacks as the merchant receives them: is it genuine, and what does it say
(interface.md §4.7).
"""

import hmac
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Protocol

from paydesk_client.parameters import parse_form
from paydesk_client.signature import pingback_signature

OLDEST_SECONDS = 300
"""How old a pingback may be, and how far its clock may run ahead, before it counts as a replay
(interface.md §4.3)."""


class Headers(Protocol):
    """Request headers of any framework: a dict, Flask's, Starlette's,
    Django's `request.headers`.
    """

    def items(self) -> Iterable[tuple[str, str]]:
        """Return pairs of name and value."""


class InvalidPingback(ValueError):
    """Raised for a pingback that must not be acted on; the message says why and what to check.
    Answer NOK.
    """


@dataclass(frozen=True, slots=True)
class Pingback:
    """Verifies and reads pingbacks; get one from `Gateway.pingback()`."""

    private_key: str = field(repr=False)
    header_prefix: str
    clock: Callable[[], float] = field(repr=False)

    def validate(self, raw_body: bytes, headers: Headers) -> bool:
        """Tell whether a pingback is genuine and fresh; if not, answer NOK and do nothing else.

        Args: raw_body is the body exactly as received; headers are those of the request, names in
            any case.
        """
        try:
            self.parse(raw_body, headers)
        except InvalidPingback:
            return False
        return True

    def parse(self, raw_body: bytes, headers: Headers) -> dict[str, Any]:
        """Return the payload of a genuine, fresh pingback (interface.md §5.1).

        JSON fractions are Decimal. A form-encoded body (v1 only, an account setting) has
        text throughout.

        Raises: InvalidPingback for an unknown signature version, an empty body, a wrong key or
            signature, a body that can't be read, or a stale `pingback_ts` (for v2 a missing
            one too).
        """
        if not isinstance(raw_body, bytes):
            raise TypeError("give the raw body as bytes: request.get_data() in Flask, await request.body() in FastAPI")
        if not raw_body:
            raise InvalidPingback("the body is empty; read the raw body before anything else consumes it")
        received = {name.lower(): value for name, value in headers.items()}
        version = received.get(f"{self.header_prefix}-Signature-Version".lower()) or "v1"
        self._check_sender(version, raw_body, received)
        payload = _payload(raw_body, received.get("content-type", ""))
        self._check_age(version, payload)
        return payload

    def _check_sender(self, version: str, raw_body: bytes, received: dict[str, str]) -> None:
        """Compare key or signature in constant time (rules 1 to 4)."""
        if version == "v1":
            name, expected = "X-ApiKey", self.private_key
        elif version == "v2":
            name, expected = f"{self.header_prefix}-Signature", pingback_signature(raw_body, self.private_key)
        else:
            raise InvalidPingback(f'signature version "{version[:20]}" is unknown; this library knows v1 and v2')
        given = received.get(name.lower())
        if given is None:
            raise InvalidPingback(
                f"header {name} is missing; let your web server pass it on, "
                f"and set header_prefix if the service's headers begin otherwise"
            )
        if not hmac.compare_digest(_bytes(given), _bytes(expected)):
            raise InvalidPingback(
                f"header {name} is wrong for this body; check the private key, and pass on the body exactly as received"
            )

    def _check_age(self, version: str, payload: dict[str, Any]) -> None:
        """Refuse a replay: the service stamps each resend anew,
        so a genuine pingback is never old.
        """
        stamp = payload.get("pingback_ts")
        if stamp is None and version == "v1":
            return
        try:
            age = self.clock() - float(stamp or 0)
        except (TypeError, ValueError, OverflowError):
            raise InvalidPingback("pingback_ts is no Unix time in seconds") from None
        if not abs(age) <= OLDEST_SECONDS:  # this way round, no NaN gets through
            raise InvalidPingback(
                f"pingback_ts is {age:.0f} s away from this machine's time, at most {OLDEST_SECONDS} are accepted; "
                f"check the clock; the service will resend it with a new one"
            )


def _bytes(header: str) -> bytes:
    return header.encode("utf-8", "surrogateescape")


def _payload(raw_body: bytes, content_type: str) -> dict[str, Any]:
    """Read the body by its content type: a form if it says so, else JSON."""
    try:
        if content_type.partition(";")[0].strip().lower() == "application/x-www-form-urlencoded":
            return dict(parse_form(raw_body))
        payload = json.loads(raw_body, parse_float=Decimal)
    except ValueError:
        raise InvalidPingback("the body is neither JSON nor a form; check the header Content-Type") from None
    if not isinstance(payload, dict):
        raise InvalidPingback("the body is no JSON object")
    return payload
