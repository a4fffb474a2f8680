"""`paydesk` that stops at fail points, with whatever bug is planted:
run as `python -m tests.faults.stoppable serve`.

Without a command it takes one after the other from its standard input.

Everything is loaded once, and each process is a fork of that: whoever is killed is back in no time.
uvicorn's workers import this module too (as the main module of their parent), so the fail points
are in each of them.
"""

from __future__ import annotations

import gc
import inspect
import json
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from itertools import count
from pathlib import Path
from typing import Any

from tests.faults.fail_points import BANK, come_by, room_of, stand_at
from tests.faults.planting import PROCESSES, planted, settled

import paydesk.app
import paydesk.worker  # noqa: F401 (loaded here, once, for all forks)
from paydesk.adapters.acquirers.simulator import RemoteSimulator
from paydesk.adapters.outbound import OutboundClient
from paydesk.cli import main
from paydesk.commands import ledger, moving_merchants
from paydesk.database import statements
from paydesk.domain.moving.moving import move_merchant
from paydesk.domain.moving.tables import THEIRS
from paydesk.domain.operations.payouts import pay_out

_PAUSE = 0.05
_read = statements._read


class StoppingStatements:
    """The statements of a file, each with a point before it and one after it
    (when what it did is committed).
    """

    def __init__(self, path: Path) -> None:
        self._queries = _read(path)
        self._room = room_of(path)

    def __getattr__(self, name: str) -> Any:
        statement = getattr(self._queries, name)
        if not inspect.ismethod(statement):
            return statement
        point = f"{self._room}.{name}"
        return with_points(point, planted(point, statement))


def with_points(point: str, run: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, with a fail point before and after it."""
    if inspect.isasyncgenfunction(run):

        @wraps(run)
        async def rows(*named: Any, **names: Any) -> AsyncIterator[Any]:
            await come_by(f"before {point}")
            found = [row async for row in run(*named, **names)]
            await come_by(f"after {point}")
            for row in found:
                yield row

        return rows

    @wraps(run)
    async def result(*named: Any, **names: Any) -> Any:
        await come_by(f"before {point}")
        found = await run(*named, **names)
        await come_by(f"after {point}")
        return found

    return result


def at_points(acquirer: type[Any]) -> None:
    """Have an acquirer's calls stop at their points."""
    for call in [call for call in BANK if hasattr(acquirer, call)]:
        setattr(acquirer, call, settled(with_points(f"bank.{call}", getattr(acquirer, call))))


statements._read = cache(StoppingStatements)
at_points(RemoteSimulator)
match os.environ.get("PAYDESK_LIVE_ACQUIRER"):
    case "stripe":
        from paydesk.adapters.acquirers.stripe import StripeAcquirer

        at_points(StripeAcquirer)
    case "mollie":
        from paydesk.adapters.acquirers.mollie import MollieAcquirer, pages

        at_points(MollieAcquirer)
        # It refuses to tell an address of loopback, the one that the stand-in can reach.
        pages.tells = bool  # type: ignore[assignment]
OutboundClient.post = with_points("merchant.post", OutboundClient.post)  # type: ignore[method-assign]
ledger.pay_out = with_points("operations.pay_out", pay_out)  # type: ignore[attr-defined]


def at_steps(move: Callable[..., Any]) -> Callable[..., Any]:
    """A move of a merchant, with a point after each step, and one amid each pass, when half of the
    tables are there.
    """

    @wraps(move)
    async def moved(asked: Any, *, passed: Callable[[Any], None], watch: Any, **others: Any) -> Any:
        def stepped(step: Any) -> None:
            passed(step)
            stand_at(f"after step {step}")

        @contextmanager
        def half_way(one: Any) -> Iterator[Callable[[], None]]:
            tables = count(1)

            def report() -> None:
                done()
                if next(tables) == len(THEIRS) // 2:
                    stand_at(f"amid pass {one}")

            with watch(one) as done:
                yield report

        return await move(asked, passed=stepped, watch=half_way, **others)

    return moved


moving_merchants.move_merchant = at_steps(move_merchant)  # type: ignore[attr-defined]


def keep(processes: int) -> None:
    """Run the command in so many forks, each again whenever it dies, until asked to stop;
    fail if one of them does.
    """
    children: set[int] = set()
    stopping = False

    def stop(number: int, _frame: object) -> None:
        nonlocal stopping
        stopping = True
        for child in children:
            os.kill(child, number)

    def say(event: str, child: int) -> None:
        # In one write: the forks say something there, too.
        os.write(2, f"{json.dumps({'event': event, 'level': 'info', 'pid': child})}\n".encode())

    def fork() -> None:
        # A signal that comes meanwhile waits for the fork.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        child = os.fork()
        children.add(child)
        signal.signal(signal.SIGTERM, stop if child else signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        if not child:
            main()
            sys.exit()
        say("forked", child)

    gc.freeze()
    for _ in range(processes):
        fork()
    failed = False
    while children:
        child, status = os.wait()
        children.discard(child)
        say("ended", child)
        failed |= stopping and status != 0
        time.sleep(_PAUSE)
        if not stopping:
            fork()
    sys.exit(failed)


def obey() -> None:
    """Run each command that comes as a line, in a fork of its own, and say how it ended,
    by its number.

    What commands print goes elsewhere, and an answer is one write, so that two that end at once are
    told apart.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    answers = os.dup(1)
    os.dup2(2, 1)
    gc.freeze()
    for line in sys.stdin:
        number, words = json.loads(line)
        if not os.fork():
            sys.argv[1:], status = words, 1
            try:
                main()
            except SystemExit as end:
                status = 1 if end.code else 0
            finally:
                os.write(answers, f"{json.dumps([number, status])}\n".encode())
                os._exit(0)


if __name__ == "__main__":
    keep(int(os.environ.get(PROCESSES, "1"))) if sys.argv[1:] else obey()
