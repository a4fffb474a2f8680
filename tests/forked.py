"""A test run in several processes: all tests are collected once, by the process that then forks.

Each process plays whole files, one after the other, and tells the first one what came of it.
Processes that were started anew would each import and collect everything for themselves, which
takes as long as a hundred tests.
"""

from __future__ import annotations

import multiprocessing
import warnings
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, pairwise
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from types import SimpleNamespace
from typing import Any

import pytest
from tests.together import scope_of

fork = multiprocessing.get_context("fork")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--processes", type=int, default=0, metavar="N", help="play the files of tests in N processes")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Play all tests, if processes are asked for and the collecting went well."""
    config = session.config
    if not config.option.processes or config.option.collectonly or session.testsfailed:
        return None
    FirstProcess(session).play(config.option.processes)
    if session.shouldfail:
        raise session.Failed(session.shouldfail)
    return True


def shares(items: list[pytest.Item]) -> list[list[int]]:
    """What is handed out at once: the tests of a file, or of files that belong together."""
    found = defaultdict[str, list[int]](list)
    for place, item in enumerate(items):
        found[scope_of(item.nodeid.partition("::")[0])].append(place)
    return list(found.values())


@dataclass(slots=True, eq=False)
class Worker:
    """One of the processes, as the first one knows it."""

    number: int
    process: ForkProcess
    wire: Connection
    playing: tuple[str, Any] | None = None
    """The test that it plays, and where that is written."""
    ended: bool = False


@dataclass(slots=True, eq=False)
class FirstProcess:
    """Hands out the tests, and tells pytest what the others report."""

    session: pytest.Session
    stop: Any = field(default_factory=fork.Event)
    """Set once nothing more is to be begun."""
    workers: list[Worker] = field(default_factory=list)
    waiting: Iterator[list[int]] = field(init=False)

    def play(self, processes: int) -> None:
        """Play everything; however that ends, no process is left behind."""
        self.waiting = iter(shares(self.session.items))
        base = self.session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
        try:
            for number in range(processes):
                self._start(number, base / f"process{number}")
            while living := {worker.wire: worker for worker in self.workers if not worker.ended}:
                for wire in wait(list(living)):
                    self._listen(living[wire])  # type: ignore[index]
        finally:
            self.stop.set()
            for worker in self.workers:
                worker.wire.close()
                worker.process.join()

    def _start(self, number: int, place: Any) -> None:
        ours, theirs = fork.Pipe()
        others = [worker.wire for worker in self.workers]
        process = fork.Process(target=_work, args=(self.session, theirs, self.stop, place, [ours, *others]))
        process.start()
        theirs.close()
        self.workers.append(Worker(number, process, ours))

    def _listen(self, worker: Worker) -> None:
        try:
            kind, *said = worker.wire.recv()
        except (EOFError, OSError):
            self._has_died(worker)
            return
        getattr(self, f"_on_{kind}")(worker, *said)
        if self.session.shouldfail or self.session.shouldstop:
            self.stop.set()

    def _on_asks(self, worker: Worker) -> None:
        worker.wire.send(None if self.stop.is_set() else next(self.waiting, None))

    def _on_begins(self, worker: Worker, nodeid: str, location: Any) -> None:
        worker.playing = (nodeid, location)

    def _on_reports(self, worker: Worker, data: Any) -> None:
        config = self.session.config
        self._report(worker, config.hook.pytest_report_from_serializable(config=config, data=data))

    def _on_warns(self, _worker: Worker, words: Any, when: Any, nodeid: str, location: Any) -> None:
        self.session.config.hook.pytest_warning_recorded.call_historic(
            kwargs={
                "warning_message": warnings.WarningMessage(*words),
                "when": when,
                "nodeid": nodeid,
                "location": location,
            }
        )

    def _on_ends(self, worker: Worker) -> None:
        worker.ended = True

    def _report(self, worker: Worker, report: Any) -> None:
        # By this pytest's terminal knows that files are played beside each other.
        name = f"process {worker.number}"
        report.node = SimpleNamespace(gateway=SimpleNamespace(id=name), _workerinfocache=f"[{name}]")
        self.session.config.hook.pytest_runtest_logreport(report=report)

    def _has_died(self, worker: Worker) -> None:
        """A process that ends without a word fails what it played, and ends the run."""
        worker.ended = True
        worker.process.join()
        nodeid, location = worker.playing or ("tests", ("tests", None, "tests"))
        said = f"process {worker.number} died in {nodeid} with status {worker.process.exitcode}"
        self.session.shouldfail = said
        self._report(worker, pytest.TestReport(nodeid, location, {}, "failed", said, "call"))


def _work(session: pytest.Session, wire: Connection, stop: Any, place: Any, not_ours: list[Connection]) -> None:
    """What a forked process does: play what it is given until nothing is left."""
    for other in not_ours:
        other.close()
    _be_on_ones_own(session.config, place)
    session.config.pluginmanager.register(Telling(session.config, wire), "telling")
    try:
        for item, following in pairwise(chain(_handed_out(session.items, wire), [None])):
            last = following is None or stop.is_set()
            session.config.hook.pytest_runtest_protocol(item=item, nextitem=None if last else following)
            if last:
                break
    except KeyboardInterrupt:
        stop.set()
    finally:
        session._setupstate.teardown_exact(None)
    wire.send(("ends",))


def _be_on_ones_own(config: pytest.Config, place: Any) -> None:
    """Print nothing, capture into files of one's own, and keep temporary files apart."""
    plugins = config.pluginmanager
    plugins.unregister(name="terminalreporter")
    if capturing := plugins.get_plugin("capturemanager"):
        capturing.stop_global_capturing()
        capturing.start_global_capturing()
        capturing.suspend_global_capture()
    place.mkdir(mode=0o700)
    config._tmp_path_factory._basetemp = place  # type: ignore[attr-defined]


def _handed_out(items: list[pytest.Item], wire: Connection) -> Iterator[pytest.Item]:
    """The tests that this process is to play; more are asked for before the last one."""
    while True:
        wire.send(("asks",))
        if (places := wire.recv()) is None:
            return
        for place in places:
            yield items[place]


@dataclass(slots=True, eq=False)
class Telling:
    """Tells the first process what pytest says in this one."""

    config: pytest.Config
    wire: Connection

    def pytest_runtest_logstart(self, nodeid: str, location: Any) -> None:
        self.wire.send(("begins", nodeid, location))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        data = self.config.hook.pytest_report_to_serializable(config=self.config, report=report)
        self.wire.send(("reports", data))

    def pytest_warning_recorded(
        self, warning_message: warnings.WarningMessage, when: str, nodeid: str, location: Any
    ) -> None:
        said = warning_message
        self.wire.send(
            ("warns", (str(said.message), said.category, said.filename, said.lineno), when, nodeid, location)
        )
