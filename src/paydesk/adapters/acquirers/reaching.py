"""Whether a call to an acquirer can have begun anything there: not if none of its requests ever had
a connection, or was taken.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar

from paydesk.adapters.acquirers.interface import NothingBegun, OutcomeUnknown

_SENT: ContextVar[list[bool]] = ContextVar("requests of this call that may have been sent")


class NoConnection(OutcomeUnknown):
    """One request was not sent: its connection was refused, or not made in time."""


class TurnedAway(OutcomeUnknown):
    """One request was one too many, and was refused before anything of it was done."""


def is_waited_for() -> bool:
    """Whether this is within a call that is not to be put off."""
    return _SENT.get(None) is not None


def may_be_sent() -> None:
    """Take note that a request of the call under way may have reached the acquirer."""
    _SENT.get([]).append(True)


@asynccontextmanager
async def one_call() -> AsyncIterator[None]:
    """Tell a call that never had a connection, or was turned away, from one that was taken, and
    lost. It is not to be put off.

    Raises: NothingBegun for a NoConnection or a TurnedAway if no request of the block can have been
        taken.
    """
    sent: list[bool] = []
    before = _SENT.set(sent)
    try:
        yield
    except (NoConnection, TurnedAway) as error:
        if sent:
            raise
        raise NothingBegun(str(error)) from None
    finally:
        _SENT.reset(before)
