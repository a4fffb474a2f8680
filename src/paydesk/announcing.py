"""The file in which a running service tells other processes what it runs with;
a lock proves that it lives.
"""

from __future__ import annotations

import fcntl
import os
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def is_held(path: Path) -> bool:
    """Whether the process lives that announces itself in a file:
    it holds a lock, which the system lets go of.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def announced_ports(path: Path, settings: Iterable[str]) -> dict[str, str]:
    """The ports that a running service has got, by the setting;
    those that it does not tell are left out.
    """
    written = path.read_text()
    found = {setting: re.search(rf"^{setting}='([0-9]+)'$", written, re.MULTILINE) for setting in settings}
    return {setting: match[1] for setting, match in found.items() if match is not None}


@contextmanager
def announcing(path: Path, lines: Iterable[str]) -> Iterator[None]:
    """Keep lines in a file of the owner's for the length of a block,
    unless another process does so.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    with os.fdopen(descriptor, "w") as file:
        if _lock(descriptor):
            file.truncate()
            file.writelines(lines)
            file.flush()
        yield


def _lock(descriptor: int) -> bool:
    """Take the lock, unless another service on this directory has it;
    a command looks at it for a moment only.
    """
    for _ in range(20):
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        time.sleep(0.01)
    return False
