"""Whether what is committed survives the database's own server:
a synchronous standby has it before anybody hears.
"""

from __future__ import annotations

from dataclasses import dataclass

import structlog
from prometheus_client import Gauge

from paydesk.core.errors import SetupError
from paydesk.core.wording import noted
from paydesk.database.pool import Database
from paydesk.database.records import record_of
from paydesk.database.statements import load_statements

SYNCHRONOUS = Gauge(
    "paydesk_synchronous_standbys",
    "Standbys that have what is committed before its committer hears of it",
    multiprocess_mode="mostrecent",
)

_queries = load_statements("paydesk.database", "standbys.sql")
log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Standbys:
    """The standbys of a database: how many in all, how many of them commits wait for,
    how many we may not look at.
    """

    commits_wait: bool
    standbys: int
    synchronous: int
    hidden: int
    role: str
    warns: bool
    """Whether the server says that a commit's wait was broken off (durability.py)."""

    @property
    def keep_all(self) -> bool:
        """Whether what counts as committed is on a second server."""
        return self.commits_wait and self.synchronous > 0 and self.warns

    @property
    def lack(self) -> str:
        """What is missing, in words."""
        if self.hidden:
            return noted("its standbys can't be seen: `grant pg_read_all_stats to %(role)s`", role=self.role)
        if not self.standbys:
            return noted("the database has no standby")
        if not self.synchronous:
            return noted("its standbys lag behind: name them in synchronous_standby_names")
        if not self.commits_wait:
            return noted("commits don't wait for it: set synchronous_commit to on")
        return noted("the server keeps warnings to itself: set client_min_messages to warning")


async def standbys_of(database: Database) -> Standbys:
    """The standbys as the database sees them now."""
    return record_of(Standbys, await _queries.standbys(database))


async def require_synchronous_standby(database: Database, *, allow_async: bool) -> None:
    """Refuse live payments where a failover would forget some of them,
    unless the operator takes that.

    Raises: SetupError, naming what is missing.
    """
    found = await standbys_of(database)
    if found.keep_all:
        return
    if not allow_async:
        raise SetupError(
            f"live payments need a synchronous standby, and {found.lack}. Without one a failover or a broken disk "
            "forgets payments that customers were told of; if you take that, set PAYDESK_ALLOW_ASYNC=1"
        )
    log.warning("live payments without a synchronous standby: a failover or a broken disk forgets some", why=found.lack)


async def watch_standbys(database: Database) -> Standbys:
    """Measure how many standbys commits wait for, for the operator."""
    found = await standbys_of(database)
    SYNCHRONOUS.set(found.synchronous if found.commits_wait else 0)
    return found
