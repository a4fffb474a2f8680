"""Every way in which an attempt can fail has a reason, whatever words the client has for it."""

from __future__ import annotations

import errno
import socket
import ssl

import pytest

from paydesk.adapters.outbound import AddressNotAllowed
from paydesk.adapters.outbound.client import parse_endpoint
from paydesk.adapters.outbound.problems import Broke, EndedEarly, LookUpFailed, NotConnected, NotHttp, Unanswered
from paydesk.adapters.outbound.wording import in_words
from paydesk.domain.pingbacks.reasons import Why, why
from paydesk.domain.pingbacks.stamping import IN_CLEAR


def certificate_expired() -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, "x")
    error.verify_message = "certificate has expired"
    return error


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (TimeoutError(), Why.TIMEOUT),
        (LookUpFailed("shop.example", socket.gaierror(socket.EAI_NONAME, "x")), Why.NAME),
        (LookUpFailed("shop.example", socket.gaierror(socket.EAI_AGAIN, "x")), Why.NAME),
        (NotConnected(certificate_expired()), Why.TLS),
        (NotConnected(ssl.SSLError(1, "wrong version number")), Why.TLS),
        (NotConnected(AddressNotAllowed("address not allowed: 10.0.0.1 (private)")), Why.ADDRESS),
        (NotConnected(ConnectionRefusedError()), Why.REFUSED),
        (NotConnected(OSError(errno.EHOSTUNREACH, "x")), Why.UNREACHABLE),
        (EndedEarly(), Why.BROKEN),
        (Unanswered(), Why.BROKEN),
        (Broke(), Why.BROKEN),
        (ValueError("?"), Why.OTHER),
    ],
    ids=str,
)
def test_what_ends_a_call_early_has_a_reason(error: Exception, expected: Why) -> None:
    assert why(None, in_words(error, 15.0), "") is expected


def test_a_key_that_was_not_shown_has_a_reason() -> None:
    assert why(None, IN_CLEAR, "") is Why.IN_CLEAR


def test_an_answer_that_is_not_http_has_a_reason() -> None:
    assert why(None, in_words(NotHttp("Bad status line"), 15.0), "") is Why.NOT_HTTP


@pytest.mark.parametrize("url", ["ftp://shop.example/", "http://", "https://a:b@shop.example/", "http://x:99999/"])
def test_a_url_that_can_not_be_called_has_a_reason(url: str) -> None:
    with pytest.raises(ValueError, match="not a usable URL") as wrong:
        parse_endpoint(url)
    assert why(None, str(wrong.value), "") is Why.URL


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (200, "ok", None),
        (200, " OK\r\n", None),
        (200, "", Why.EMPTY),
        (200, "NOK", Why.REJECTED),
        (200, "<!doctype html>", Why.BODY),
        (200, '{"ok":true}', Why.BODY),
        (201, "ok", Why.OTHER_STATUS),
        (204, "", Why.OTHER_STATUS),
        (301, "", Why.REDIRECT),
        (308, "ok", Why.REDIRECT),
        (400, "", Why.CLIENT_ERROR),
        (401, "", Why.FORBIDDEN),
        (403, "", Why.FORBIDDEN),
        (404, "", Why.MISSING),
        (405, "", Why.METHOD),
        (410, "", Why.MISSING),
        (429, "", Why.TOO_MANY),
        (500, "ok", Why.SERVER_ERROR),
        (501, "NOK", Why.SERVER_ERROR),
        (999, "", Why.OTHER_STATUS),
        (None, "", Why.OTHER),
    ],
)
def test_an_answer_has_a_reason_unless_it_is_ok(status: int | None, body: str, expected: Why | None) -> None:
    assert why(status, "", body) is expected


def test_an_answer_that_broke_off_is_no_ok() -> None:
    assert why(200, "the answer ended early", "ok") is Why.BROKEN
