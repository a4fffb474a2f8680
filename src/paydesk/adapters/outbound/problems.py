"""What can end a call early; wording.py has the words for the merchant's programmer."""

from __future__ import annotations


class CallFailed(Exception):
    """A call came to no whole answer."""


class LookUpFailed(CallFailed):
    """The name system gave no address for `host`."""

    def __init__(self, host: str, cause: OSError) -> None:
        super().__init__(host)
        self.host = host
        self.cause = cause


class NotConnected(CallFailed):
    """No connection came about to any of the addresses; `cause` is the last one's."""

    def __init__(self, cause: OSError) -> None:
        super().__init__(str(cause))
        self.cause = cause


class NotHttp(CallFailed):
    """What came is no answer that can be told from others by its own words (RFC 9112)."""


class Unanswered(CallFailed):
    """The server closed the connection before an answer's head was whole."""


class Broke(CallFailed):
    """The connection broke: it was reset, and what came of the answer can't be told from a part."""


class EndedEarly(CallFailed):
    """The answer's head said that more of it would come."""
