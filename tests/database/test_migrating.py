from __future__ import annotations

import pytest

from paydesk.database import migrating
from paydesk.database.migrating import Migration, migrate
from paydesk.database.pool import Database


async def test_a_step_has_a_patience_of_its_own(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step over a big table outlasts what a statement of the service may take."""
    assert migrating.PATIENCE > 3600
    known = migrating.known_migrations()
    slow = Migration(9999, "9999_slow", "select pg_sleep(50)")
    monkeypatch.setattr(migrating, "known_migrations", lambda: [*known, slow])
    monkeypatch.setattr(migrating, "PATIENCE", 0.1)
    with pytest.raises(TimeoutError):
        await migrate(database)
    assert await database.fetchval("select count(*) from schema_migration where number = 9999") == 0
