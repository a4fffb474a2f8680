"""How long sessions of the service wait for locks, by the database's own account."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg

MIGRATE = "paydesk migrate"
"""How the sessions of `paydesk migrate` call themselves: they may wait for others."""
_EVERY = 0.03

_WAITING = """
select coalesce(max(extract(epoch from clock_timestamp() - l.waitstart)) filter (where a.application_name <> $1), 0)
           ::double precision as longest,
       coalesce(bool_or(a.application_name = $1), false) as held_up
  from pg_locks l
  join pg_stat_activity a on a.pid = l.pid
 where not l.granted and a.application_name like 'paydesk%'
"""
_LOGGED = re.compile(
    r"^(?P<who>paydesk[^|]*)\|.*process [0-9]+ (?:still waiting for|acquired) .* after (?P<ms>[0-9.]+) ms"
)
_DEADLOCK = re.compile(r"^.*deadlock detected\n(?:(?!.*\|LOG:).*\n)*", re.MULTILINE)


class LockWaits:
    """The longest wait of anybody but the migration, in seconds:
    `longest` as seen, and as the server logged it.

    `held_up` counts the looks at which the migration itself was waiting.
    """

    def __init__(self, log: Path) -> None:
        self.longest = 0.0
        self.held_up = 0
        self._log = log

    @asynccontextmanager
    async def watched(self, admin_url: str) -> AsyncIterator[None]:
        """Watch for the length of a block; the server logs every wait of a second
        (its `deadlock_timeout`) and more.
        """
        connection = await asyncpg.connect(admin_url)
        await connection.execute("alter system set log_lock_waits = on")
        await connection.execute("alter system set log_line_prefix = '%a|'")
        await connection.execute("select pg_reload_conf()")
        watching = asyncio.create_task(self._watch(connection))
        try:
            yield
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
            connection.terminate()

    async def _watch(self, connection: asyncpg.Connection) -> None:
        while True:
            seen = await connection.fetchrow(_WAITING, MIGRATE)
            self.longest = max(self.longest, seen["longest"])
            self.held_up += seen["held_up"]
            await asyncio.sleep(_EVERY)

    @property
    def logged(self) -> list[float]:
        """Each wait that the server logged, in seconds."""
        found = (_LOGGED.match(line) for line in self._log.read_text(errors="replace").splitlines())
        return [float(line["ms"]) / 1000 for line in found if line and line["who"] != MIGRATE]

    @property
    def deadlocks(self) -> list[str]:
        """Each deadlock that the server broke at another's cost than the migration's, as its log
        tells it: the migration gives way and tries again.
        """
        found = _DEADLOCK.findall(self._log.read_text(errors="replace"))
        return [each for each in found if not each.startswith(f"{MIGRATE}|")]
