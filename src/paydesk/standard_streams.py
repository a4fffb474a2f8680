"""What a command is given to read and write: made whole before anything else is opened, so that
its result is written to the end, or said not to be.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from contextlib import suppress
from pathlib import Path

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_BROKEN = (errno.EIO, errno.EROFS, errno.ESTALE, errno.ENXIO, errno.ENODEV)
_STREAMS = {0: ("stdin", "r"), 1: ("stdout", "w"), 2: ("stderr", "w")}


def is_full(error: BaseException) -> bool:
    """Whether a file found no room, or may not grow any more, stdout for one; what the database's
    disk is said of is another error.
    """
    return isinstance(error, OSError) and error.errno in _NO_ROOM


def is_unwritten(error: BaseException) -> bool:
    """Whether a file can't be written, for want of room or since its disk is not well: no
    connection breaks off with such an error.
    """
    return is_full(error) or (isinstance(error, OSError) and error.errno in _BROKEN)


def to_mend(error: BaseException) -> str:
    """What to do about an error that `is_unwritten`."""
    return "make room" if is_full(error) else "see what is wrong with its disk"


def make_whole() -> None:
    """Open what was closed (`>&-`) on nothing, lest the database's connection take its place; have
    an unbuffered stdout (`PYTHONUNBUFFERED`) write what a full disk took only a part of.
    """
    for number, (name, mode) in _STREAMS.items():
        try:
            os.fstat(number)
        except OSError:
            # The lowest number that is free is this one.
            opened = os.open(os.devnull, os.O_RDWR)
            os.set_inheritable(opened, True)
            setattr(sys, name, os.fdopen(opened, mode, closefd=False))
    raw = getattr(sys.stdout, "buffer", None)
    if isinstance(sys.stdout, io.TextIOWrapper) and isinstance(raw, io.RawIOBase):
        encoding, errors = sys.stdout.encoding, sys.stdout.errors
        sys.stdout = io.TextIOWrapper(
            io.BufferedWriter(raw), encoding=encoding, errors=errors, line_buffering=True, write_through=True
        )


def give_up_stdout() -> None:
    """Let what is left to be written go nowhere, since it was said that it can't be."""
    with suppress(io.UnsupportedOperation), Path(os.devnull).open("wb") as nothing:
        os.dup2(nothing.fileno(), sys.stdout.fileno())
