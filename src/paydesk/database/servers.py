"""The servers of one database: the one that takes writes is spoken to,
and one that hangs costs seconds.
"""

from __future__ import annotations

from urllib.parse import parse_qs, parse_qsl, unquote, urlencode, urlsplit, urlunsplit

import asyncpg

PATIENCE = 3.0
"""Seconds that each of several servers has to take a connection."""

PATIENCE_WITH_ONE = 10.0
"""Seconds that the only one has."""

NO_WRITES = "the database takes no writes: this server is a standby, or read-only"


class Servers:
    """The servers of a database as a pool's way to connect:
    the one that took the last connection is asked first.
    """

    def __init__(self, url: str) -> None:
        self._urls = each_server(url)

    async def connect(self, _url: str, **options: object) -> asyncpg.Connection:
        """A connection to the first server that takes writes.

        Raises: what the last one raised; CannotConnectNowError if it takes none.
        """
        patience = PATIENCE if len(self._urls) > 1 else PATIENCE_WITH_ONE
        error: Exception | None = None
        for url in list(self._urls):
            try:
                connection = await asyncpg.connect(url, timeout=patience, **options)
            except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError) as failed:
                error = failed
                continue
            if takes_writes(connection):
                self._urls.sort(key=lambda other: other != url)
                return connection
            connection.terminate()
            error = asyncpg.CannotConnectNowError(NO_WRITES)
        assert error is not None, "a database has a server"
        raise error


def takes_writes(connection: asyncpg.Connection) -> bool:
    """Whether a server said so, as far as it has told: it reports each change by itself,
    a pooler may keep it back.
    """
    told = connection.get_settings()
    return "on" not in (getattr(told, "in_hot_standby", "off"), getattr(told, "default_transaction_read_only", "off"))


def each_server(url: str) -> list[str]:
    """The addresses of the servers that a postgresql:// address names,
    in its authority or its query.
    """
    parts = urlsplit(url)
    people, at, servers = parts.netloc.rpartition("@")
    asked = parse_qs(parts.query)
    hosts = asked.get("host", [""])[-1].split(",")
    if "," in unquote(servers):
        return [urlunsplit(parts._replace(netloc=f"{people}{at}{one}")) for one in unquote(servers).split(",")]
    if len(hosts) == 1:
        return [url]
    ports = asked.get("port", ["5432"])[-1].split(",")
    others = [(name, value) for name, value in parse_qsl(parts.query) if name not in ("host", "port")]
    return [
        urlunsplit(parts._replace(query=urlencode([*others, ("host", host), ("port", ports[number % len(ports)])])))
        for number, host in enumerate(hosts)
    ]
