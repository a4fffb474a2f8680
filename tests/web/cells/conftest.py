"""Two cells for the tests of this folder."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.web.cells.two_cells import Cells, two_cells

from paydesk.adapters.vault import Vault
from paydesk.settings import Settings


@pytest.fixture
async def cells(server_url: str, settings: Settings, vault: Vault) -> AsyncIterator[Cells]:
    """Two cells, whose copies of the directory know no merchant yet."""
    async with two_cells(server_url, settings, vault) as both:
        yield both
