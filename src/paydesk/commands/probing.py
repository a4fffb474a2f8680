"""The health of the process beside this one: `python -m paydesk.commands.probing serve|work`,
for containers.

It is asked every few seconds on machines that have better things to do, so it imports nothing but
the standard library: `paydesk` itself takes a second of a processor to start.
"""

from __future__ import annotations

import os
import re
import sys
import time
import urllib.error
import urllib.request

PATIENCE = 4.0
"""Seconds that an answer may take."""

STILL = 30.0
"""Seconds without a heartbeat after which an event loop stands still."""

_HEARTBEAT = re.compile(r"^paydesk_heartbeat_timestamp_seconds\{[^}]*\} (\S+)$", re.MULTILINE)


def trouble_of_serve() -> str:
    """What keeps the web service from answering customers, by its own /readyz;
    empty if nothing does.
    """
    status, text = _ask(int(os.environ.get("PAYDESK_PORT") or 8000), "/readyz")
    return "" if status == 200 else f"/readyz: {status} {text.strip()}"


def trouble_of_work() -> str:
    """What keeps the background work from going on, by the heartbeat in its metrics;
    empty if nothing does.
    """
    status, text = _ask(int(os.environ.get("PAYDESK_METRICS_PORT") or 8002), "/metrics")
    beats = [float(beat) for beat in _HEARTBEAT.findall(text)]
    if not beats:
        return f"/metrics: {status}, without a heartbeat"
    age = time.time() - max(beats)
    return "" if age < STILL else f"the event loop stands still for {age:.0f} s"


def _ask(port: int, path: str) -> tuple[int, str]:
    """Status and body of an answer on this machine. Raises: OSError if there is none."""
    # No proxy of the environment leads to loopback.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"http://127.0.0.1:{port}{path}", timeout=PATIENCE) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode(errors="replace")


ROLES = {"serve": trouble_of_serve, "work": trouble_of_work}


def main(arguments: list[str]) -> str | None:
    """The exit of the process: None if all is well, else a line that says what is wrong,
    with status 1.
    """
    if len(arguments) != 1 or arguments[0] not in ROLES:
        return f"usage: python -m paydesk.commands.probing {'|'.join(ROLES)}"
    try:
        return ROLES[arguments[0]]() or None
    except OSError as error:
        return f"no answer: {error}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
