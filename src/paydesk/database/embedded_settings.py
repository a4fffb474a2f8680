"""The settings that the embedded PostgreSQL server runs with."""

from __future__ import annotations

import os
from pathlib import Path

from paydesk.database.cluster import PORT
from paydesk.database.machine_memory import usable_memory

SMALLEST_SHARED_MEMORY = 256 * 2**20  # bytes; containers often have 64 MiB, too few for a parallel query


_MEBIBYTE = 2**20
LEAST_BUFFERS, MOST_BUFFERS = 128, 2048
"""MiB of pages that the server keeps in memory."""

_BUFFERS_OF_MEMORY = 16
"""One part in so many: web processes, workers and the system's own cache of files need theirs."""


def embedded_settings(sockets: Path) -> dict[str, str]:
    """Its settings, said on its command line; `sockets` is the directory of its only door."""
    return {
        # One private door.
        "listen_addresses": "",
        "port": str(PORT),
        "unix_socket_directories": str(sockets),
        "unix_socket_permissions": "0700",
        # A payment that was answered is on the disk, whatever dies: said here, so that no
        # configuration file undoes it.
        "fsync": "on",
        "synchronous_commit": "on",
        "full_page_writes": "on",
        # Short statements, and what is changed again and again stays in memory.
        "shared_buffers": f"{buffers_of(usable_memory())}MB",
        "max_connections": "200",
        "max_wal_size": "2GB",  # fewer checkpoints under load, still seconds to recover
        "checkpoint_timeout": "15min",  # after each one, the first change of a page logs all of it
        # A young database must learn soon that one merchant has many rows, or plans pick the
        # wrong index.
        "autovacuum_naptime": "5s",
        "jit": "off",
        "huge_pages": "off",
        "dynamic_shared_memory_type": "posix" if roomy_shared_memory() else "mmap",
        "timezone": "UTC",
        "log_timezone": "UTC",
        # The log never shows a statement, its parameters or a row: these hold personal data.
        "log_statement": "none",
        "log_min_error_statement": "panic",
        "log_parameter_max_length": "0",
        "log_parameter_max_length_on_error": "0",
        "log_error_verbosity": "terse",
        "log_checkpoints": "off",
        "logging_collector": "off",
    }


def buffers_of(memory: int) -> int:
    """MiB of pages that a server keeps in memory, on a machine with so many bytes."""
    return min(max(memory // _BUFFERS_OF_MEMORY // _MEBIBYTE, LEAST_BUFFERS), MOST_BUFFERS)


def roomy_shared_memory() -> bool:
    """Tell whether POSIX shared memory is worth using:
    always, but in a container with a tiny /dev/shm.
    """
    devices = Path("/dev/shm")  # noqa: S108 (only measured)
    if not devices.is_dir():
        return os.uname().sysname != "Linux"
    measured = os.statvfs(devices)
    return measured.f_frsize * measured.f_blocks >= SMALLEST_SHARED_MEMORY
