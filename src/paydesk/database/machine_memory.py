"""How much memory this process may use: the machine's, or less where it runs in a container or a
unit with a limit.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

_GROUPS = Path("/proc/self/cgroup")
_MOUNTS = Path("/sys/fs/cgroup")


def usable_memory(groups: Path = _GROUPS, mounts: Path = _MOUNTS) -> int:
    """Bytes; `groups` names the control groups of this process, whose trees are below `mounts`."""
    return min([_machine(), *_limits(groups, mounts)])


def _machine() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _limits(groups: Path, mounts: Path) -> Iterator[int]:
    """The limits of its groups and of all above them, of either version (cgroups(7)).

    In a container the names may be those outside, of which nothing is seen but the top: its own.
    """
    lines = groups.read_text().splitlines() if groups.is_file() else []
    for line in lines:
        _, controllers, name = line.split(":", 2)
        if not controllers:
            tree, limit = mounts, "memory.max"
        elif "memory" in controllers.split(","):
            tree, limit = mounts / "memory", "memory.limit_in_bytes"
        else:
            continue
        group = PurePosixPath(name.lstrip("/"))
        for each in (group, *group.parents):
            if number := _number(tree / each / limit):
                yield number


def _number(file: Path) -> int | None:
    """What a limit says; None if there is none."""
    try:
        said = file.read_text().strip()
    except OSError:
        return None
    return int(said) if said.isdigit() else None
