"""Runs the simulated bank as a process of its own:
`python -m paydesk.adapters.acquirers.simulator --port 9000`.
"""

from __future__ import annotations

import argparse
from datetime import timedelta
from pathlib import Path

import uvicorn

from paydesk.adapters.acquirers.simulator.acquirer import SimulatedAcquirer
from paydesk.adapters.acquirers.simulator.balance_record import Terms, parse_terms
from paydesk.adapters.acquirers.simulator.bank import Bank
from paydesk.adapters.acquirers.simulator.record import Record
from paydesk.adapters.acquirers.simulator.server import bank_app


def main() -> None:
    """Serve on loopback until stopped; access is not logged."""
    asked = _parser().parse_args()
    bank = Bank(Record(asked.record))
    bank.balance.agree(asked.fees, timedelta(minutes=asked.payout_minutes))
    acquirer = SimulatedAcquirer(bank, base_url=f"http://127.0.0.1:{asked.port}", latency=asked.latency)
    uvicorn.run(bank_app(acquirer), host="127.0.0.1", port=asked.port, log_level="warning", access_log=False)


def _parser() -> argparse.ArgumentParser:
    """The command's arguments."""
    parser = argparse.ArgumentParser(prog="python -m paydesk.adapters.acquirers.simulator", description=__doc__)
    parser.add_argument("--port", type=int, required=True, help="port on 127.0.0.1")
    parser.add_argument("--record", type=Path, required=True, help="the bank's record, a SQLite file; made if missing")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds that the bank takes to answer (default 0)")
    fees = "percent and a sum that are kept of a payment, then a sum for a refund and for a dispute (default: nothing)"
    parser.add_argument("--fees", type=parse_terms, default=Terms(), help=fees)
    parser.add_argument("--payout-minutes", type=int, default=24 * 60, help="how often it pays out (default: daily)")
    return parser


if __name__ == "__main__":
    main()
