"""The play that every test here stands on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.domain.moving.play import Play, played

from paydesk.settings import Settings


@pytest.fixture
async def play(server_url: str, usual_settings: Settings, tmp_path: Path) -> AsyncIterator[Play]:
    async with played(server_url, usual_settings, tmp_path) as made:
        yield made
