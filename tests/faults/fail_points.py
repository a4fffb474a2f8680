"""Named places at which a process under test stops, until it is killed or told to go on.

A place is `before` or `after` a statement (`payments.begin_attempt`, `movements.record_movements`),
a call to the bank (`bank.authorize`) or a pingback (`merchant.post`). The test arms one; the first
process that comes by takes it, says so and stands still there, while all else that it does goes on.
Both sides talk by files: it needs nothing that could fail.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from tests.processes import PATIENCE

FOLDER = "FAULTS_POINTS"
"""Where a process finds the folder of its fail points; without it nothing stops."""

BANK = (
    "authorize",
    "charge_stored",
    "capture",
    "void",
    "undo",
    "end_challenge",
    "refund",
    "find",
    "find_movement",
    "open_page",
    "find_page",
    "end_page",
    "pass_time",
    "upload_evidence",
    "submit_evidence",
)
"""What is asked of the bank, with a point before each and one after it."""

_LOOK = 0.01
_numbers = count()


MAIN = ("queries", "one_time")
"""What a folder's main statements are in; those for what is bought once do the same with less."""


def room_of(path: Path) -> str:
    """What a file of statements is called in the names of points: its folder, if it is a main one
    of the folder's.
    """
    return path.parent.name if path.stem in MAIN else path.stem


async def come_by(point: str) -> None:
    """Stop here if the test wants it so: the side of the process under test."""
    folder = os.environ.get(FOLDER)
    if folder is None:
        return
    stopped = Path(folder, "stopped", f"{point}:{os.getpid()}:{next(_numbers)}")
    if _take(Path(folder, "armed", point), stopped):
        while _is_there(stopped):  # noqa: ASYNC110 (the other side is another process)
            await asyncio.sleep(_LOOK)


def stand_at(point: str) -> None:
    """The same where nothing can be waited for: all of the process stands still."""
    folder = os.environ.get(FOLDER)
    if folder is None:
        return
    stopped = Path(folder, "stopped", f"{point}:{os.getpid()}:{next(_numbers)}")
    if _take(Path(folder, "armed", point), stopped):
        while _is_there(stopped):
            time.sleep(_LOOK)


def _take(armed: Path, stopped: Path) -> bool:
    """Whether it was ours to take: of several processes one can rename a file."""
    try:
        armed.rename(stopped)
    except FileNotFoundError:
        return False
    return True


def _is_there(file: Path) -> bool:
    return file.exists()


@dataclass(frozen=True, slots=True)
class Stop:
    """A process, `pid`, that stands still at a point."""

    point: str
    pid: int
    file: Path
    killed: set[int]

    def kill(self) -> None:
        """End the process there; the database and the bank know what it did so far,
        and nobody else does.
        """
        self.killed.add(self.pid)
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def go_on(self) -> None:
        """Let the process go on from there."""
        self.file.unlink(missing_ok=True)


class FailPoints:
    """The test's side: where the processes of one stage are to stop,
    and which of them were killed there.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.killed: set[int] = set()
        self._seen: set[Path] = set()
        for name in ("armed", "stopped"):
            (folder / name).mkdir(parents=True)

    @property
    def env(self) -> dict[str, str]:
        """What a process must find in its environment."""
        return {FOLDER: str(self.folder)}

    def arm(self, point: str) -> None:
        """Whoever comes to this point first stops there."""
        (self.folder / "armed" / point).touch()

    async def stopped(self, point: str) -> Stop:
        """Wait until somebody has stopped there, in whatever time a busy machine takes."""
        try:
            async with asyncio.timeout(PATIENCE):
                while True:
                    for file in set((self.folder / "stopped").glob(f"{point}:*")) - self._seen:
                        self._seen.add(file)
                        return Stop(point, int(file.name.split(":")[1]), file, self.killed)
                    await asyncio.sleep(_LOOK)
        except TimeoutError:
            raise AssertionError(f"nobody ever came {point}") from None
