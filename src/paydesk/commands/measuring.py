"""The metrics of several processes, served together by their parent."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead
from prometheus_client.registry import Collector

from paydesk.loops.metrics import HEARTBEAT, STARTS

FOLDER = "PROMETHEUS_MULTIPROC_DIR"
"""Where a process finds in its environment that it shall leave its metrics in a folder."""


class AllProcesses(Collector):
    """What the processes have left in a folder, together with the parent's own metrics;
    what died counts no more.
    """

    def __init__(self, folder: Path, own: Iterable[Collector] = ()) -> None:
        self._folder = folder
        self._own = tuple(own)
        self._others = MultiProcessCollector(None, path=str(folder))  # type: ignore[no-untyped-call]

    def collect(self) -> Iterator[Metric]:
        """All metrics, each once."""
        self._bury()
        found = {metric.name: metric for metric in self._others.collect()}  # type: ignore[no-untyped-call]
        for own in self._own:
            for metric in own.collect():
                found.setdefault(metric.name, metric)
                if found[metric.name] is not metric:
                    found[metric.name].samples.extend(metric.samples)
        yield from found.values()

    def heartbeats(self) -> tuple[tuple[str, float], ...]:
        """When each living process was last seen to go round, by its pid."""
        self._bury()
        return tuple(
            sorted(
                (sample.labels["pid"], sample.value)
                for metric in self._others.collect()  # type: ignore[no-untyped-call]
                for sample in metric.samples
                if metric.name == "paydesk_heartbeat_timestamp_seconds"
            )
        )

    def _bury(self) -> None:
        """Forget the gauges of processes that are gone."""
        for pid in {file.stem.rpartition("_")[2] for file in self._folder.glob("gauge_live*.db")}:
            if not _lives(int(pid)):
                # A scrape beside this one may have done it.
                with suppress(FileNotFoundError):
                    mark_process_dead(int(pid), path=str(self._folder))  # type: ignore[no-untyped-call]


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


@contextmanager
def metrics_folder() -> Iterator[tuple[Path, AllProcesses, CollectorRegistry]]:
    """A folder where processes leave their metrics, and what reads it,
    for the length of a block.
    """
    with tempfile.TemporaryDirectory(prefix="paydesk-metrics-", ignore_cleanup_errors=True) as name:
        registry = CollectorRegistry()
        everybody = AllProcesses(Path(name), own=(HEARTBEAT, STARTS))
        registry.register(everybody)
        yield Path(name), everybody, registry
