"""What `paydesk run` runs with, said to the commands beside it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from paydesk.announcing import announcing
from paydesk.settings import PREFIX, RUNNING_FILE, Settings


@contextmanager
def announced(settings: Settings) -> Iterator[None]:
    """Say in `running.env`, for the length of a block, what this process runs with.

    Keys and database are left out, and the live acquirer, which is of no use without its key.
    """
    secret = {"data_dir", "live_acquirer", *Settings.secrets()}
    lines = [
        f"{PREFIX}{name.upper()}={str(getattr(settings, name))!r}\n"
        for name in sorted(settings.model_fields_set - secret)
        if getattr(settings, name) != ""
    ]
    with announcing(settings.data_dir / RUNNING_FILE, ["# What paydesk run runs with, while it runs.\n", *lines]):
        yield
