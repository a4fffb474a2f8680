"""What a start needs before anything runs: ports, the data directory,
the keys that are made once.
"""

from __future__ import annotations

import errno
import os
import resource
import socket
from contextlib import suppress
from ipaddress import ip_network
from pathlib import Path

import structlog
from prometheus_client import CollectorRegistry
from prometheus_client.registry import REGISTRY

from paydesk.adapters.vault import generate_key_setting, generate_secret
from paydesk.commands.scraping import ScrapeServer
from paydesk.core.errors import SetupError
from paydesk.settings import FILE, PREFIX, Settings, load_settings, open_secret_files
from paydesk.web.connections.limits import ConnectionLimits

_LOOPBACK = (ip_network("127.0.0.0/8"), ip_network("::1/128"))

_OTHER_FILES = 200
"""Files that a process opens besides connections: its record, logs, mails, calls to acquirers."""

log = structlog.get_logger()


def listen(host: str, port: int, setting: str) -> socket.socket:
    """A socket that listens on an address; port 0 takes any free one.

    Raises: SetupError, naming the setting that moves the port.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise SetupError(f"port {port} is in use; choose another one with {PREFIX}{setting}") from error
        raise SetupError(f"cannot listen on {host} port {port}: {error.strerror}; see {PREFIX}{setting}") from error
    listener.listen(2048)
    listener.setblocking(False)
    return listener


def raise_file_limit() -> None:
    """Let the process open as many connections as the system allows it;
    the usual soft limit of 1,024 is soon used.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def connection_limits(settings: Settings) -> ConnectionLimits:
    """The limits of clients' connections: as many as are wanted, and leave files for the database
    and all else.

    Whoever is on this machine, and the proxies that are trusted, bring other people's connections.
    """
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = settings.database_connections + settings.console_connections + _OTHER_FILES
    room = settings.connections if files == resource.RLIM_INFINITY else max(files - needed, files // 2)
    return ConnectionLimits(
        head_seconds=settings.head_seconds,
        body_seconds=settings.body_seconds,
        unread_seconds=settings.unread_seconds,
        in_all=min(settings.connections, room),
        per_address=settings.connections_per_address,
        unlimited=(*_LOOPBACK, *settings.proxy_networks()),
    )


def warn_of_missing_proxies(settings: Settings) -> None:
    """Say at the start that the proxy in front is not named:
    limits by address would then hit all customers at once.
    """
    if settings.lacks_proxies:
        log.warning(
            "no reverse proxy is trusted, though the address is https: all customers count as one address",
            setting=f"{PREFIX}TRUSTED_PROXIES",
            address=settings.address,
        )


def warn_of_open_secrets(settings: Settings) -> None:
    """Say at the start which secrets stand in files that any user of this machine may read."""
    for setting, path in open_secret_files(settings).items():
        log.warning(
            "every user of this machine may read a secret: take the file's right to be read from others (chmod o-r)",
            setting=setting,
            file=str(path),
        )


def make_data_dir(path: Path) -> None:
    """Make the data directory, private to its owner.

    Raises: SetupError if it can't be written.
    """
    try:
        # Root's cluster belongs to another user, who has to get through.
        path.mkdir(parents=True, exist_ok=True, mode=0o711 if os.geteuid() == 0 else 0o700)
        probe = path / f".write-{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise SetupError(
            f"cannot write to {path}: {error.strerror}; choose another directory with {PREFIX}DATA_DIR"
        ) from error


def settings_with_keys() -> Settings:
    """The settings, with keys: what is missing is made once and kept in the data directory,
    readable by its owner only.

    Raises: SetupError.
    """
    settings = load_settings()
    make_data_dir(settings.data_dir)
    missing = {
        "SECRET_KEY": (settings.secret_key, generate_secret),
        "IDEMPOTENCY_SECRET": (settings.idempotency_secret, generate_secret),
        "VAULT_KEYS": (settings.vault_keys, generate_key_setting),
    }
    lines = [
        f"{PREFIX}{name}={make()}\n" for name, (value, make) in missing.items() if not value.get_secret_value().strip()
    ]
    if lines:
        _append(settings.data_dir / FILE, "".join(lines))
    return load_settings()


def _append(path: Path, text: str) -> None:
    """Write whole or not at all, so that a crash never leaves half a key."""
    before = (
        path.read_text()
        if path.exists()
        else "# Made by paydesk run. Keep it: without these keys nothing can be decrypted.\n"
    )
    fresh = path.with_suffix(".new")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(before + text)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)


def serve_metrics(settings: Settings, registry: CollectorRegistry = REGISTRY, *, else_any: bool = False) -> int:
    """Serve /metrics in a thread of its own; returns the port. 0 takes any free one.

    `else_any` takes any free port if the given one is in use: several processes may share
    the settings.

    Raises: SetupError if the port is in use, or the address is none of this machine's.
    """
    host, port = settings.metrics_host, settings.metrics_port
    try:
        server = ScrapeServer(host, port, registry)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise SetupError(f"cannot listen on {host} port {port}: {error}; see {PREFIX}METRICS_HOST") from error
        if else_any:
            return serve_metrics(settings.model_copy(update={"metrics_port": 0}), registry)
        raise SetupError(f"port {port} is in use; choose another one with {PREFIX}METRICS_PORT (0: any)") from error
    server.start()
    return int(server.server_port)
