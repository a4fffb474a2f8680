"""Files stay small enough to be read in one go."""

from __future__ import annotations

from pathlib import Path

import pytest

import paydesk

ROOM = Path(paydesk.__file__).parents[1]
MOST = {".py": 400, ".sql": 500, ".html": 400}
"""Lines of a file, by its ending."""


@pytest.mark.parametrize("ending", MOST)
def test_no_file_is_longer_than_one_reads_in_one_go(ending: str) -> None:
    files = [path for path in ROOM.rglob(f"*{ending}") if "vendor" not in path.parts]
    assert files
    long = {path.relative_to(ROOM).as_posix(): len(path.read_text().splitlines()) for path in files}
    assert {name: lines for name, lines in long.items() if lines > MOST[ending]} == {}
