"""Keep a picture of everything that people are promised to see:
`python -m tests.e2e.walks FOLDER [NAME …]` (needs Chromium).
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from pathlib import Path

from playwright.async_api import async_playwright
from tests.e2e.conftest import FLAGS, chromium_path
from tests.e2e.live_month import run_live
from tests.e2e.walking import Step, load, walk


async def take(steps: list[Step], folder: Path, data: Path) -> int:
    """Take the picture of each step; how many did not come to what they show."""
    wrong = 0
    with run_live(data) as (running, mollie):
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=chromium_path(), args=list(FLAGS))
            async with walk(browser, running, mollie) as walking:
                for one in steps:
                    try:
                        print(await walking.take(one, folder))
                    except Exception as error:  # every other picture is worth having
                        wrong += 1
                        print(f"{one.name}: {type(error).__name__}: {str(error)[:600]}")
            await browser.close()
    return wrong


def main() -> None:
    """Walk through all steps, or those that are named."""
    reading = argparse.ArgumentParser(description=(__doc__ or "").partition(":")[0])
    reading.add_argument("folder", type=Path, help="where the pictures go")
    reading.add_argument("names", nargs="*", help="how the names of steps begin, such as traps or brand-portal")
    given = reading.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    steps = [one for one in load().values() if one.name.startswith(tuple(given.names) or "")]
    with tempfile.TemporaryDirectory() as data:
        raise SystemExit(asyncio.run(take(steps, given.folder, Path(data))) > 0)


if __name__ == "__main__":
    main()
