"""The plays that the tests here stand on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
from tests import shopfront
from tests.domain.moving.owning import Owning, owning
from tests.domain.moving.play import HERE, THERE, Play, played
from tests.domain.moving.putting_back import Past, with_a_past

from paydesk.core.clock import utc_now
from paydesk.domain.cells import directory
from paydesk.domain.cells.adding import add_cell
from paydesk.domain.cells.directory import Entry, Kind, enter
from paydesk.domain.moving import accounts
from paydesk.settings import Settings


@pytest.fixture
async def play(server_url: str, usual_settings: Settings, tmp_path: Path) -> AsyncIterator[Play]:
    async with played(server_url, usual_settings, tmp_path) as made:
        yield made


@pytest.fixture
async def past(play: Play, server_url: str) -> AsyncIterator[Past]:
    async with with_a_past(play, server_url) as made:
        yield made


@pytest.fixture
async def joined(play: Play) -> Play:
    """Both cells stand in the directory, which the first one keeps, and the merchants, too."""
    home = play.here.database
    for number in (HERE, THERE):
        cell = directory.Cell(number, f"https://pay{number}.test", "http://inside")
        await add_cell(home, cell, database_id=str(number), now=utc_now())
    ids = (play.merchant.id, play.beside.merchant_id)
    await enter(home, [Entry(Kind.merchant, str(one), one) for one in ids], HERE, now=utc_now())
    await shopfront.choose_mails(home, play.shop, customer_mails=True, test_mails=True)
    return play


@pytest.fixture
async def own(joined: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Owning]:
    """Processes open accounts faster than in earnest."""
    monkeypatch.setattr(accounts, "OPENED_AFTER", timedelta(0))
    async with owning(joined, tmp_path) as made:
        yield made
