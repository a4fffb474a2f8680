"""The processes that `paydesk run` is made of: `python -m paydesk.commands.parts web|worker …`,
started by it alone.

Each ends with the process that started it, however that one ends.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from importlib import import_module

import structlog
import typer

from paydesk.commands.connecting import command
from paydesk.commands.starting import raise_file_limit
from paydesk.commands.supervising import Channel
from paydesk.logs import set_up_logs
from paydesk.settings import load_settings

PARTS = {"web": ("web_part", "serve_web"), "worker": ("worker_part", "do_work")}
"""Where the work of each is: a process loads its own alone."""

ORPHAN_GRACE = 10.0
"""Seconds that a process without its parent gets to finish;
the embedded database went with the parent."""

log = structlog.get_logger()


def _end_with_parent(channel: Channel) -> None:
    """End this process once its parent is gone: gently, then for sure. For a thread of its own."""
    channel.wait_for_the_end()
    log.warning("the process that started this one is gone; stopping", pid=os.getpid())
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(ORPHAN_GRACE)
    os._exit(1)


def main(name: str, *descriptors: str) -> None:
    """Be one of the processes; the last descriptor is the channel to the parent."""
    channel = Channel(int(descriptors[-1]))
    threading.Thread(target=_end_with_parent, args=(channel,), name="parent", daemon=True).start()

    module, work = PARTS[name]
    part = getattr(import_module(f"paydesk.commands.{module}"), work)

    @command
    async def run() -> None:
        raise_file_limit()
        settings = load_settings()
        set_up_logs(settings)
        await part(settings, channel, *map(int, descriptors[:-1]))

    try:
        run()
    except typer.Exit as ended:
        sys.exit(ended.exit_code)


if __name__ == "__main__":
    main(*sys.argv[1:])
