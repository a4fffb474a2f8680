"""What went wrong with a call, in words for the merchant's programmer."""

from __future__ import annotations

import os
import socket
import ssl

from paydesk.adapters.outbound.addresses import AddressNotAllowed
from paydesk.adapters.outbound.problems import Broke, EndedEarly, LookUpFailed, NotConnected, NotHttp, Unanswered

_NO_SUCH_NAME = {socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)}


def in_words(error: Exception, timeout: float) -> str:
    """One line without class names; `timeout` (seconds) is what the whole call was given."""
    if isinstance(error, TimeoutError):
        return f"timed out after {timeout:g} s"
    if isinstance(error, LookUpFailed):
        return _of_a_name(error)
    if isinstance(error, NotConnected):
        return _of_a_connection(error.cause)
    if isinstance(error, EndedEarly):
        return "the answer ended early"
    if isinstance(error, NotHttp):
        return f"the answer is not HTTP as it should be: {str(error)[:200]}"
    if isinstance(error, Unanswered):
        return "the server closed the connection without an answer"
    if isinstance(error, (Broke, OSError)):
        return "the connection broke before the answer was complete"
    return f"the call could not be made: {error}"[:300]


def _of_a_name(error: LookUpFailed) -> str:
    """Tell a name that does not exist from a look-up that failed."""
    cause = error.cause
    if isinstance(cause, socket.gaierror) and cause.errno in _NO_SUCH_NAME:
        return f"name not found: {error.host}"
    return f"name look-up failed: {error.host} ({cause.strerror or cause})"


def _of_a_connection(cause: OSError) -> str:
    """Why no connection came about."""
    if isinstance(cause, ssl.SSLError):
        return _of_tls(cause)
    if isinstance(cause, AddressNotAllowed):
        return str(cause)
    if isinstance(cause, ConnectionRefusedError):
        return "connection refused"
    why = os.strerror(cause.errno) if cause.errno else str(cause)
    return f"no connection: {why or 'the server closed it'}"[:300]


def _of_tls(cause: ssl.SSLError) -> str:
    """What TLS found wrong, without OpenSSL's file names and line numbers."""
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"TLS: certificate not accepted: {cause.verify_message}"
    reason = getattr(cause, "reason", None) or str(cause)
    return f"TLS: {str(reason).replace('_', ' ').lower()}"
