"""Everything that people are promised to see is where a walk finds it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from PIL import Image
from playwright.async_api import Browser
from tests.e2e.live_month import run_live
from tests.e2e.walking import SECTIONS, Walk, load, walk
from tests.lengths import long

pytestmark = [pytest.mark.browser, long]


@pytest.fixture(scope="module")
async def walking(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Walk]:
    """A shop with a month behind it, and others with live money."""
    with run_live(tmp_path_factory.mktemp("walking")) as (running, mollie):
        async with walk(browser, running, mollie) as opened:
            yield opened


@pytest.mark.parametrize("name", load())
async def test_a_step_comes_to_what_it_shows(walking: Walk, tmp_path: Path, name: str) -> None:
    with Image.open(await walking.take(load()[name], tmp_path)) as picture:
        assert picture.width == load()[name].screen["width"]


def test_every_section_has_steps() -> None:
    slugs = {section: section.replace("_", "-") for section in SECTIONS}
    assert [one for one, slug in slugs.items() if not any(name.startswith(slug) for name in load())] == []
