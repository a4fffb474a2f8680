"""What happens to the machine of the primary: it is killed, cut off or stands still,
as a whole or in part.
"""

from __future__ import annotations

import random
import signal
from collections.abc import Callable
from dataclasses import dataclass
from itertools import cycle, islice

from tests.ha.cluster import Cluster
from tests.ha.machines import Machine


@dataclass(frozen=True, slots=True)
class Blow:
    """One thing that goes wrong with a machine, and how it is mended;
    whether another machine leads meanwhile.
    """

    kind: str
    whole: str
    strike: Callable[[Machine], None]
    mend: Callable[[Cluster, Machine], None]
    fails_over: bool = True


def _kill(*programs: str) -> Callable[[Machine], None]:
    return lambda machine: machine.signal(signal.SIGKILL, *programs)


def _cut(*lines: str) -> Callable[[Machine], None]:
    def strike(machine: Machine) -> None:
        for line in lines:
            machine.line(line, "down")

    return strike


def _freeze(*programs: str) -> Callable[[Machine], None]:
    return lambda machine: machine.signal(signal.SIGSTOP, *programs)


def _started(cluster: Cluster, machine: Machine) -> None:
    """What its systemd would do."""
    cluster.start(machine)


def _plugged_in(cluster: Cluster, machine: Machine) -> None:
    for line in ("front", "back"):
        machine.line(line, "up")


def _thawed(cluster: Cluster, machine: Machine) -> None:
    """It goes on where it stood, and knows of nothing yet:
    its clients' connections and its lead are still there.
    """
    machine.signal(signal.SIGCONT)


KINDS = {
    "killed": [
        Blow("killed", "PostgreSQL and Patroni", _kill("patroni", "postgres"), _started),
        Blow("killed", "the whole machine", _kill(), _started),
        Blow("killed", "PostgreSQL alone", _kill("postgres"), _started, fails_over=False),
    ],
    "partitioned": [
        Blow("partitioned", "from the other machines", _cut("back"), _plugged_in),
        Blow("partitioned", "from everybody", _cut("front", "back"), _plugged_in),
    ],
    "frozen": [
        Blow("frozen", "the whole machine", _freeze(), _thawed),
        Blow("frozen", "PostgreSQL alone", _freeze("postgres"), _thawed),
    ],
}


def blows(of_each: int, chance: random.Random) -> list[Blow]:
    """So many of each kind, whose sorts take turns, in an order of chance."""
    drawn = [blow for sorts in KINDS.values() for blow in islice(cycle(sorts), of_each)]
    chance.shuffle(drawn)
    return drawn
