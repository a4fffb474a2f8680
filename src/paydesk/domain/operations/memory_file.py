"""What a process remembers of the database, in a file, for the process after it;
where no file can be, it forgets.
"""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path

import msgspec

from paydesk.domain.operations.history import Memory

NAME = "history.json"
_LONGEST = 1000
"""Bytes; what is longer is none of ours."""


def memory_file(data_dir: Path) -> Path:
    """Where the processes of a data directory remember."""
    return data_dir / NAME


def recall(file: Path) -> Memory | None:
    """What was remembered; None if there is nothing, or nothing that can be read."""
    with suppress(OSError, msgspec.MsgspecError), file.open("rb") as opened:
        memory = msgspec.json.decode(opened.read(_LONGEST), type=Memory)
        return memory if memory.place.count("/") == 1 else None
    return None


def remember(file: Path, memory: Memory) -> None:
    """Keep this, whole or not at all (0600), unless the file has something newer
    of this deployment.

    A file that can't be written is no error: a process that knows nothing looks through acquirers'
    lists first.
    """
    known = recall(file)
    if known is not None and known.deployment == memory.deployment and known.beat >= memory.beat:
        return
    unfinished = file.with_name(f"{NAME}.{secrets.token_hex(4)}")
    try:
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(msgspec.json.encode(memory))
        unfinished.replace(file)
    except OSError:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
