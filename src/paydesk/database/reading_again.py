"""What is written over the version that was read is read again if others were faster; so often,
and then whoever writes it gives up.
"""

from __future__ import annotations

from typing import Final

READ_AGAIN: Final = 10
"""For one: who asked is told that it changes all the time, or it waits with that as its reason."""

ALL_READ_AGAIN: Final = 5
"""For many at once: the janitor comes back to those that are left."""
