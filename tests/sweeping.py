"""A database of each test file's own, for what works through all rows of all merchants;
a file imports its fixtures.

They take the place of the fixtures of the same names, which all files share, so that neither finds
rows of the other.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.conftest import migrated_database

from paydesk.database.pool import Database, connected


@pytest.fixture(scope="module")
async def database_url(server_url: str) -> AsyncIterator[str]:
    async with migrated_database(server_url) as url:
        yield url


@pytest.fixture(scope="module")
async def database(database_url: str) -> AsyncIterator[Database]:
    async with connected(database_url) as pool:
        yield pool
