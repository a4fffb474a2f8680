"""The benches' control groups hold a program back, and are gone afterwards."""

from __future__ import annotations

from tests.bench.test_history import python

PROGRAM = r"""
import os, subprocess, sys
from groups import GROUPS, Group, can_be_written

busy = "import time\nwhile time.process_time() < 0.3: pass"
if can_be_written():
    group = Group(f"paydesk-bench-{os.getpid()}-held", 0.1)
    subprocess.run([sys.executable, "-c", busy], check=True, preexec_fn=group.enter)
    words = (group._limited / "cpu.stat").read_text().split()
    assert int(words[words.index("nr_throttled") + 1]) > 0, words
    assert group.used() >= 0.3
    group.remove()
print([str(left) for left in GROUPS.glob(f"**/paydesk-bench-{os.getpid()}-*")])
"""


def test_a_group_holds_its_programs_back_where_groups_can_be_written() -> None:
    ran = python("-c", PROGRAM)
    assert (ran.stdout.strip(), ran.stderr) == ("[]", "")
