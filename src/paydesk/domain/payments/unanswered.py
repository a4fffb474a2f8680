"""Calls to acquirers without a trustworthy end: the janitor finds out what became of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import structlog

from paydesk.adapters.acquirers.interface import KeyUsed, OutcomeUnknown
from paydesk.database.pool import AWAY
from paydesk.domain.payments import metrics

log = structlog.get_logger()


@contextmanager
def left_to_the_janitor(**named: object) -> Iterator[None]:
    """Log and count whatever goes wrong within as an outcome that nobody knows, and let it go no
    further; `named` says in the log what was asked for.

    Who is answered returns from within: what comes after it is said of an unknown outcome.
    """
    try:
        yield
        return
    except (OutcomeUnknown, KeyUsed) as error:
        log.warning("outcome unknown", **named, why=str(error))
    except AWAY as error:
        log.warning("outcome not recorded, the database is away", **named, why=type(error).__name__)
    except Exception:
        log.exception("the call to the acquirer failed", **named)
    metrics.UNKNOWN.inc()
