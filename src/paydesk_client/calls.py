"""Calls to the service's API with the standard library:
a timeout, no redirects, and errors that never show the key.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, Request, build_opener

from paydesk_client.parameters import Parameters

_LARGEST_ANSWER = 4 * 1024 * 1024
_LONGEST_MESSAGE = 500


class ApiError(Exception):
    """The service refused a call, or did not answer.

    Attributes: status: the HTTP status; 0 if no answer came, so that what was asked may or may not
        have happened. message: what is wrong, for the log. idempotency_key: the key that the call
        was made under, if it has one: call again with it and nothing is done
            twice.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(status, message)
        self.status = status
        self.message = message
        self.idempotency_key: str | None = None

    def __str__(self) -> str:
        return f"{self.status}: {self.message}" if self.status else self.message


class _NoRedirects(HTTPRedirectHandler):
    """Following a redirect would hand the private key to whoever it leads to."""

    def redirect_request(self, *_: Any) -> None:
        return None


_opener = build_opener(_NoRedirects)


@dataclass(frozen=True, slots=True)
class Calls:
    """Sends calls with the merchant's private key;
    `timeout` is in seconds, for each step of a call.
    """

    base: str
    private_key: str = field(repr=False)
    timeout: float

    def __post_init__(self) -> None:
        # The standard library would show the whole header in its own error.
        if not (self.private_key.isascii() and self.private_key.isprintable()):
            raise ValueError("private_key has characters that no key has; copy it from your account")

    def post(self, path: str, fields: Parameters | None = None, headers: Mapping[str, str] | None = None) -> Any:
        """POST fields as JSON, or without any no body at all; returns the `data` of the answer.
        Decimals become text.

        Raises: ApiError; TypeError for a value that JSON has no form for.
        """
        headers = {
            "X-ApiKey": self.private_key,
            "Content-Type": "application/json",
            "Accept": "application/json",
            **(headers or {}),
        }
        sent = b"" if fields is None else json.dumps(fields, default=_as_text).encode()
        # Gateway has checked that the base is an http(s) address.
        request = Request(self.base + path, sent, headers, method="POST")  # noqa: S310
        try:
            with _opener.open(request, timeout=self.timeout) as response:
                body = response.read(_LARGEST_ANSWER)
        except HTTPError as error:
            with error:
                raise ApiError(error.code, self._message(error)) from None
        except (OSError, HTTPException) as error:
            reason = getattr(error, "reason", None) or error
            raise ApiError(0, self._hidden(f"no answer from {self.base}: {reason}")) from None
        return _data(body)

    def _message(self, error: HTTPError) -> str:
        """The service's own words about an error, or else the status in words."""
        try:
            message = json.loads(error.read(_LARGEST_ANSWER))["message"]
        except (OSError, HTTPException, ValueError, TypeError, KeyError):
            message = f"{error.reason}, and the answer is not Paydesk's: is {self.base} right?"
        return self._hidden(str(message))

    def _hidden(self, text: str) -> str:
        """The text without the private key, whoever put it there."""
        return text.replace(self.private_key, "***")[:_LONGEST_MESSAGE]


def _as_text(value: object) -> str:
    if isinstance(value, Decimal):
        return str(value)
    raise TypeError(f"a {type(value).__name__} can't be sent; give text, an int, a Decimal, a bool or None instead")


def _data(body: bytes) -> Any:
    try:
        answer = json.loads(body)
        if answer["success"] is True:
            return answer["data"]
    except (ValueError, TypeError, KeyError):
        pass
    raise ApiError(0, "the answer is not one of Paydesk's; is base_url right?")
