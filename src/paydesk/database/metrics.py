"""What an operator watches about connections to the database (Prometheus)."""

from __future__ import annotations

from collections import Counter
from weakref import WeakKeyDictionary

from asyncpg import Pool
from prometheus_client import Gauge

CONNECTIONS = Gauge(
    "paydesk_database_connections",
    "Connections to the database that are in use, and idle, and how many there may be",
    ["pool", "state"],
    multiprocess_mode="livesum",
)

_pools: WeakKeyDictionary[Pool, str] = WeakKeyDictionary()
"""The open pools of this process that have a name."""


def watch_pool(pool: Pool, name: str) -> None:
    """Have a pool measured under a name for as long as it is open."""
    _pools[pool] = name


def measure_pools() -> None:
    """Measure the pools of this process; called by a thread beside the event loop,
    which may stand still.
    """
    counted: Counter[tuple[str, str]] = Counter()
    for pool, name in list(_pools.items()):
        counted[name, "in_use"] += pool.get_size() - pool.get_idle_size()
        counted[name, "idle"] += pool.get_idle_size()
        counted[name, "most"] += 0 if pool.is_closing() else pool.get_max_size()
    for (name, state), count in counted.items():
        CONNECTIONS.labels(name, state).set(count)
