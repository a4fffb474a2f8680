"""Runs the simulated bank; with a bad line some questions and answers get lost,
and it is slow to know what it did.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import cast

import uvicorn
from tests.adapters.acquirers.simulator.lying import Lies, LyingAcquirer

from paydesk.adapters.acquirers.simulator import Bank, Record, SimulatedAcquirer
from paydesk.adapters.acquirers.simulator.server import bank_app


class LyingBank(LyingAcquirer):
    """A lying acquirer whose bank shows its challenge pages all the same."""

    def __init__(self, honest: SimulatedAcquirer, lies: Lies) -> None:
        super().__init__(honest, lies)
        self.bank = honest.bank


def main(port: str, record: str, latency: str, hide_for: str, loses: str, seed: str) -> None:
    """Serve on loopback until stopped."""
    honest = SimulatedAcquirer(Bank(Record(Path(record))), base_url=f"http://127.0.0.1:{port}", latency=float(latency))
    lies = Lies(float(loses), float(loses), hide_for=float(hide_for), seed=int(seed))
    uvicorn.run(
        bank_app(cast("SimulatedAcquirer", LyingBank(honest, lies))),
        host="127.0.0.1",
        port=int(port),
        log_level="warning",
        access_log=False,
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
