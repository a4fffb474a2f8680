"""How long a request waits for a database connection: briefly before it has done anything,
however long after that.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

PATIENCE = 2.0
"""Seconds that a request waits for its first connection; then it is told to come back."""

LONGEST_STATEMENT = 30.0
"""Seconds that a statement may take for which a customer waits: a proxy gives up after a minute,
without words."""


class NoConnection(TimeoutError):
    """All connections were in use for as long as this request may wait;
    nothing of it was sent to the database.
    """

    def __init__(self) -> None:
        super().__init__(f"every connection was in use for {PATIENCE:g} s")


@dataclass(slots=True)
class Waiting:
    """What one request has come to: once it had a connection,
    a write of its may have been sent over it.

    Its later waits have no end then: a bank's answer must be written down, however long that takes.
    `only_reads` says that nothing is lost whenever it gives up.
    """

    served: bool = False
    only_reads: bool = False

    @property
    def patience(self) -> float | None:
        """Seconds to wait for the next connection, None for as long as it takes."""
        return None if self.served and not self.only_reads else PATIENCE


_current: ContextVar[Waiting | None] = ContextVar("waiting", default=None)


def current() -> Waiting | None:
    """The request that is being answered; None in workers and commands,
    which wait as long as it takes.
    """
    return _current.get()


def may_wait_only_briefly(*, only_reads: bool) -> None:
    """Say of the request that is being answered whether it may give up at any time,
    since it only reads.
    """
    waiting = _current.get()
    if waiting is not None:
        waiting.only_reads = only_reads


@contextmanager
def one_request() -> Iterator[Waiting]:
    """Answer one request within a block; what it starts and leaves running is part of it."""
    waiting = Waiting()
    token = _current.set(waiting)
    try:
        yield waiting
    finally:
        _current.reset(token)
