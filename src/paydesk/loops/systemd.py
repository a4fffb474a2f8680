"""Telling systemd that a service is ready and alive, where it was started with `Type=notify`."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from dataclasses import dataclass

_SHARE = 3
"""So many times is systemd told within the time after which it would lose patience."""


@dataclass(frozen=True, slots=True)
class Notifier:
    """A service manager that wants to hear of this process, every `interval` seconds at least."""

    address: str
    interval: float

    def say(self, *words: str) -> None:
        """Say words like `READY=1`; who does not listen does not stop the one who speaks."""
        name = f"\0{self.address[1:]}" if self.address.startswith("@") else self.address
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as speaking:
            speaking.setblocking(False)
            speaking.sendto("\n".join(words).encode(), name)


def service_manager() -> Notifier | None:
    """Who wants to hear of this process by its environment, if anybody;
    its own children are not to speak for it.
    """
    address = os.environ.pop("NOTIFY_SOCKET", "")
    microseconds = os.environ.pop("WATCHDOG_USEC", "")
    pid = os.environ.pop("WATCHDOG_PID", str(os.getpid()))
    if not address:
        return None
    is_meant = microseconds.isdecimal() and pid == str(os.getpid())
    return Notifier(address, int(microseconds) / 1e6 / _SHARE if is_meant else float("inf"))
