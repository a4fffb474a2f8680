"""Control groups: processes that may use a part of a core, so that one machine stands for many.

Writing them needs root, or a group that was delegated to you.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

PERIOD = 20_000
"""Microseconds in which a group gets its part: short, so that nobody stands still for long."""
GROUPS = Path("/sys/fs/cgroup")


class Group:
    """A control group, of whichever version, with a part of a core's time."""

    def __init__(self, name: str, part: float) -> None:
        is_old = (GROUPS / "cpu").is_dir()
        self._limited, self._counted = [GROUPS / kind / name for kind in (("cpu", "cpuacct") if is_old else ("", ""))]
        for path in (self._limited, self._counted):
            path.mkdir(exist_ok=True)
        quota = int(PERIOD * part)
        try:
            if is_old:
                (self._limited / "cpu.cfs_period_us").write_text(str(PERIOD))
                (self._limited / "cpu.cfs_quota_us").write_text(str(quota))
            else:
                (self._limited / "cpu.max").write_text(f"{quota} {PERIOD}")
        except OSError:
            self.remove()
            raise

    def enter(self) -> None:
        """Put this process in, and with it all that it starts."""
        self.take(os.getpid())

    def take(self, *pids: int) -> None:
        """Put processes in, and with them all that they start from now on."""
        for path in (self._limited, self._counted):
            for pid in pids:
                (path / "cgroup.procs").write_text(str(pid))

    def used(self) -> float:
        """Seconds of a core that its processes have used, those that ended too."""
        kept = self._counted / "cpuacct.usage"
        if kept.exists():
            return int(kept.read_text()) / 1e9
        words = (self._counted / "cpu.stat").read_text().split()
        return int(words[words.index("usage_usec") + 1]) / 1e6

    def remove(self) -> None:
        """Take the group away again; whoever was in it has ended."""
        for path in {self._limited, self._counted}:
            path.rmdir()


def can_be_written() -> bool:
    """Whether processes can be put into groups here: tried, for rights alone don't say."""
    try:
        group = Group(f"paydesk-bench-{os.getpid()}-tried", 0.5)
        try:
            subprocess.run(["true"], check=True, preexec_fn=group.enter)
        finally:
            group.remove()
    except (OSError, subprocess.SubprocessError):
        return False
    return True
