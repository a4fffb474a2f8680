"""What each process of `paydesk run` does besides its work:
it ends with the process that started it, however that one ends.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Awaitable, Callable

import structlog
import typer

from paydesk.commands.connecting import command
from paydesk.commands.starting import raise_file_limit
from paydesk.commands.supervising import Channel
from paydesk.logs import set_up_logs
from paydesk.settings import load_settings

ORPHAN_GRACE = 10.0
"""Seconds that a process without its parent gets to finish;
the embedded database went with the parent."""

log = structlog.get_logger()


def work_for_parent(part: Callable[..., Awaitable[None]], *descriptors: int) -> None:
    """Do a part's work by the settings of the environment, until told to stop;
    the last descriptor is the channel to the parent.
    """
    *sockets, ours = descriptors
    channel = Channel(ours)
    threading.Thread(target=_end_with_parent, args=(channel,), name="parent", daemon=True).start()

    @command
    async def run() -> None:
        raise_file_limit()
        settings = load_settings()
        set_up_logs(settings)
        await part(settings, channel, *sockets)

    try:
        run()
    except typer.Exit as ended:
        sys.exit(ended.exit_code)


def _end_with_parent(channel: Channel) -> None:
    """End this process once its parent is gone: gently, then for sure. For a thread of its own."""
    channel.wait_for_the_end()
    log.warning("the process that started this one is gone; stopping", pid=os.getpid())
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(ORPHAN_GRACE)
    os._exit(1)
