"""What the benches reached is kept by commit, and told so that a change is seen."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from pathlib import Path

from tests.bench.test_smoke import BENCH

MEASURED = """day,commit,bench,measure,ratio,load
2026-11-01,bbbb2222,checkout,payments over bare,0.5,0.2
2026-11-02,aaaa1111,checkout,payments over bare,0.8,0.1
2026-11-03,bbbb2222,checkout,payments over bare,0.7,3.1
2026-11-03,bbbb2222,checkout,payments over bare,0.65,0.3
"""


def python(*words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(BENCH)}
    return subprocess.run([sys.executable, *words], env=environment, capture_output=True, text=True, check=False)


def told(kept: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """What `make bench-history` prints."""
    return python("-m", "history", "--kept", str(kept), *options)


def test_runs_of_a_commit_stand_together_in_the_order_in_which_commits_were_measured(tmp_path: Path) -> None:
    kept = tmp_path / "ratios.csv"
    kept.write_text(MEASURED)
    lines = told(kept).stdout.splitlines()
    assert lines[1] == "checkout: payments over bare"
    assert [line.split() for line in lines[3:]] == [
        ["2026-11-01", "bbbb2222", "3", "0.65", "0.50", "0.70", "3.1"],
        ["2026-11-02", "aaaa1111", "1", "0.80", "0.80", "0.80", "0.1"],
    ]
    assert [line.split()[1] for line in told(kept, "--commits", "1").stdout.splitlines()[3:]] == ["aaaa1111"]
    assert told(kept, "--bench", "billing").returncode == 1


def test_a_run_is_that_of_the_commit_that_is_checked_out(tmp_path: Path) -> None:
    kept = tmp_path / "ratios.csv"
    note = "import history, pathlib, sys; history.note('work', {'log': 1.23456}, pathlib.Path(sys.argv[1]))"
    for _ in range(2):
        assert (ran := python("-c", note, str(kept))).returncode == 0, ran.stderr
    command = ["git", "rev-parse", "HEAD"]
    head = subprocess.run(command, cwd=BENCH, capture_output=True, text=True, check=True).stdout
    with kept.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["bench"], row["measure"], row["ratio"]) for row in rows] == [("work", "log", "1.235")] * 2
    assert head.startswith(rows[0]["commit"].rstrip("+"))


def test_where_nothing_was_measured_it_says_what_measures(tmp_path: Path) -> None:
    ran = told(tmp_path / "ratios.csv")
    assert (ran.returncode, ran.stdout) == (1, "")
    assert "bench/checkout.py" in ran.stderr
