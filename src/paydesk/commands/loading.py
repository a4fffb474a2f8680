"""Loading code without looking for garbage in it: it stays as long as the process does."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

GARBAGE_AFTER: Final = 50_000
"""Objects that may come to stay between two looks for garbage. A batch of renewals has more than
Python's 700 alive at once by far, so that each look would go through them and find nothing.
"""


@contextmanager
def for_good() -> Iterator[None]:
    """What is loaded in the block is never looked through by the garbage collector:
    neither now, which takes a tenth of a start, nor while customers wait.
    """
    gc.disable()
    try:
        yield
    finally:
        stay()
        gc.enable()


def stay() -> None:
    """What there is now is never looked through again, and what comes only after many."""
    gc.freeze()
    gc.set_threshold(GARBAGE_AFTER)
