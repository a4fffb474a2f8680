"""Control groups: processes that may use a part of a core, so that one machine stands for many.

Writing them needs root, or a group that was delegated to you.
"""

from __future__ import annotations

import os
from pathlib import Path

PERIOD = 20_000
"""Microseconds in which a group gets its part: short, so that nobody stands still for long."""
GROUPS = Path("/sys/fs/cgroup")


class Group:
    """A control group, of whichever version, with a part of a core's time."""

    def __init__(self, name: str, part: float) -> None:
        old = GROUPS / "cpu"
        self.path = (old if old.is_dir() else GROUPS) / name
        self.path.mkdir()
        quota = int(PERIOD * part)
        if old.is_dir():
            (self.path / "cpu.cfs_period_us").write_text(str(PERIOD))
            (self.path / "cpu.cfs_quota_us").write_text(str(quota))
        else:
            (self.path / "cpu.max").write_text(f"{quota} {PERIOD}")

    def enter(self) -> None:
        """Put this process in, and with it all that it starts."""
        self.take(os.getpid())

    def take(self, *pids: int) -> None:
        """Put processes in, and with them all that they start from now on."""
        for pid in pids:
            (self.path / "cgroup.procs").write_text(str(pid))

    def remove(self) -> None:
        """Take the group away again; whoever was in it has ended."""
        self.path.rmdir()
