"""The processes that `paydesk run` is made of: `python -m paydesk.commands.parts web|worker …`,
started by it alone.
"""

from __future__ import annotations

import sys
from importlib import import_module

from paydesk.commands import loading

PARTS = {"web": ("web_part", "serve_web"), "worker": ("worker_part", "do_work")}
"""Where the work of each is: a process loads its own alone."""


def main(name: str, *descriptors: str) -> None:
    """Be one of the processes; the last descriptor is the channel to the parent."""
    module, work = PARTS[name]
    with loading.for_good():
        part = getattr(import_module(f"paydesk.commands.{module}"), work)
        work_for_parent = import_module("paydesk.commands.part").work_for_parent
    work_for_parent(part, *map(int, descriptors))


if __name__ == "__main__":
    main(*sys.argv[1:])
