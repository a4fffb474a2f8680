"""A test run in several processes says what the same run in one would."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TESTS = {
    "test_first.py": """
import pytest

@pytest.fixture(scope="session")
def server():
    yield
    print("stopped")

def test_passes(server, tmp_path): (tmp_path / "file").write_text("")
def test_fails(server):
    print("its own words")
    assert False, "its reason"
""",
    "test_second.py": """
import os, warnings

def test_warns(tmp_path): warnings.warn("careful")
def test_dies_if_asked_to(): os._exit(7) if "DIES" in os.environ else None
""",
}


def played(place: Path, **environment: str) -> tuple[int, str]:
    """The exit status of a run of these tests in two processes, and what it printed."""
    for name, content in TESTS.items():
        (place / name).write_text(content)
    command = (sys.executable, "-m", "pytest", "-p", "tests.forked", "--processes", "2", "-q", "-c", os.devnull)
    without = [word for name in ("cacheprovider", "asyncio", "schemathesis") for word in ("-p", f"no:{name}")]
    run = subprocess.run(
        [*command, *without, "--rootdir", place, place],
        env=os.environ | environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    return run.returncode, run.stdout


def test_each_outcome_is_counted_and_a_failure_is_explained(tmp_path: Path) -> None:
    status, said = played(tmp_path)
    assert status == pytest.ExitCode.TESTS_FAILED
    assert "1 failed, 3 passed, 1 warning" in said
    for words in ("its own words", "its reason", "careful"):
        assert words in said


def test_a_process_that_dies_fails_the_test_that_it_played(tmp_path: Path) -> None:
    status, said = played(tmp_path, DIES="yes")
    assert status == pytest.ExitCode.TESTS_FAILED
    assert "died in test_second.py::test_dies_if_asked_to with status 7" in said
