"""The settings that the embedded PostgreSQL server runs with."""

from __future__ import annotations

import os
from pathlib import Path

from paydesk.database.cluster import PORT

SMALLEST_SHARED_MEMORY = 256 * 2**20  # bytes; containers often have 64 MiB, too few for a parallel query


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
        # A small machine, short statements.
        "shared_buffers": "128MB",
        "max_connections": "200",
        "max_wal_size": "2GB",  # fewer checkpoints under load, still seconds to recover
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


def roomy_shared_memory() -> bool:
    """Tell whether POSIX shared memory is worth using:
    always, but in a container with a tiny /dev/shm.
    """
    devices = Path("/dev/shm")  # noqa: S108 (only measured)
    if not devices.is_dir():
        return os.uname().sysname != "Linux"
    measured = os.statvfs(devices)
    return measured.f_frsize * measured.f_blocks >= SMALLEST_SHARED_MEMORY
