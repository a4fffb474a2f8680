"""Why an attempt failed: what was recorded of it, sorted into the few things that a merchant can do
something about.
"""

from __future__ import annotations

from enum import StrEnum

from paydesk.domain.pingbacks.stamping import IN_CLEAR


class Why(StrEnum):
    """Why the merchant's server did not acknowledge a pingback (interface.md §4.5)."""

    URL = "url"
    """The URL can't be called at all."""
    IN_CLEAR = "in_clear"
    """The private key would have gone over plain http."""
    NAME = "name"
    """The host's name was not found."""
    ADDRESS = "address"
    """The name leads into a network that pingbacks never reach."""
    REFUSED = "refused"
    """Nothing listens there."""
    UNREACHABLE = "unreachable"
    TLS = "tls"
    TIMEOUT = "timeout"
    BROKEN = "broken"
    """The connection ended before the answer was complete."""
    NOT_HTTP = "not_http"
    REDIRECT = "redirect"
    """Redirects are not followed: they would take a signed body elsewhere."""
    FORBIDDEN = "forbidden"
    """401, 403 or 407: something before the shop's program asks for a log-in, or blocks us."""
    MISSING = "missing"
    METHOD = "method"
    TOO_MANY = "too_many"
    CLIENT_ERROR = "client_error"
    SERVER_ERROR = "server_error"
    OTHER_STATUS = "other_status"
    """Neither 200 nor an error, such as 204."""
    EMPTY = "empty"
    """200 without a body."""
    REJECTED = "rejected"
    """200 and `NOK`: the shop's program found the pingback invalid (interface.md §4.7)."""
    BODY = "body"
    """200 and some other body."""
    OTHER = "other"


_BY_WORDS = (
    ("timed out", Why.TIMEOUT),
    ("name not found", Why.NAME),
    ("name look-up failed", Why.NAME),
    ("address not allowed", Why.ADDRESS),
    ("TLS:", Why.TLS),
    ("connection refused", Why.REFUSED),
    ("no connection", Why.UNREACHABLE),
    ("not a usable URL", Why.URL),
    (IN_CLEAR, Why.IN_CLEAR),
    ("the answer is not HTTP", Why.NOT_HTTP),
    ("the answer ended early", Why.BROKEN),
    ("the server closed the connection", Why.BROKEN),
    ("the connection broke", Why.BROKEN),
)
"""How a recorded error begins (`adapters/outbound/wording.py`); a test holds the two together."""

_BY_STATUS = {
    401: Why.FORBIDDEN,
    403: Why.FORBIDDEN,
    407: Why.FORBIDDEN,
    404: Why.MISSING,
    410: Why.MISSING,
    405: Why.METHOD,
    429: Why.TOO_MANY,
}
_BY_CLASS = {3: Why.REDIRECT, 4: Why.CLIENT_ERROR, 5: Why.SERVER_ERROR}


def why(status: int | None, error: str, body: str) -> Why | None:
    """Why an attempt failed, or None if it was acknowledged (interface.md §4.5).

    Args: status is None if no answer came; error is one line of `outbound.wording`, empty for none;
    body is the start of the answer.
    """
    if error:
        return next((reason for words, reason in _BY_WORDS if error.startswith(words)), Why.OTHER)
    if status is None:
        return Why.OTHER
    if status != 200:
        return _BY_STATUS.get(status) or _BY_CLASS.get(status // 100, Why.OTHER_STATUS)
    said = body.strip().lower()
    if said == "ok":
        return None
    return Why.EMPTY if not said else Why.REJECTED if said == "nok" else Why.BODY
