"""`make bench-smoke` fails for each bench that fails, hangs or measures nothing, and says which."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.lengths import long

BENCH = Path(__file__).parents[2] / "bench"
KEEPS = """
from pathlib import Path
folder = Path(__file__).parent / "results" / "smoke"
folder.mkdir(parents=True, exist_ok=True)
(folder / Path(__file__).name.replace(".py", ".json")).write_text("{}")
"""


def smoke(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(BENCH / "smoke"), "--benches", str(folder), *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_benches_that_end_well_pass(tmp_path: Path) -> None:
    (tmp_path / "good.py").write_text(KEEPS)
    assert (ran := smoke(tmp_path)).returncode == 0, ran.stderr


@pytest.mark.parametrize(
    ("program", "limit", "says"),
    [
        # It never gives way to anything that could end it from within.
        (f"{KEEPS}\nwhile True: pass", "1", "hangs"),
        (f"{KEEPS}\nraise SystemExit('99 rows in payment')", "300", "failed with status 1"),
        ("pass", "300", "has kept no result"),
    ],
)
def test_a_bench_that_does_not_end_well_is_named_and_the_others_run(
    tmp_path: Path, program: str, limit: str, says: str
) -> None:
    (tmp_path / "bad.py").write_text(program)
    (tmp_path / "good.py").write_text(KEEPS)
    ran = smoke(tmp_path, "--limit", limit)
    assert ran.returncode == 1
    assert "bench/bad.py" in ran.stderr
    assert says in ran.stderr
    assert "bench/good.py" in ran.stdout


def test_no_bench_at_all_is_a_failure(tmp_path: Path) -> None:
    assert smoke(tmp_path).returncode == 1


def test_a_result_of_an_earlier_smoke_does_not_count(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text(KEEPS)
    assert smoke(tmp_path).returncode == 0
    (tmp_path / "one.py").write_text("pass")
    assert smoke(tmp_path).returncode == 1


@long
@pytest.mark.parametrize("bench", sorted(BENCH.glob("*.py")), ids=lambda bench: str(bench.stem))
def test_each_bench_says_what_it_measures_and_has_a_smoke(bench: Path) -> None:
    ran = subprocess.run([sys.executable, str(bench), "--help"], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "--smoke" in ran.stdout
    assert "xample" in ran.stdout
