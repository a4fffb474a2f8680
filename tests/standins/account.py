"""A stand-in that runs in a process of its own, as a test sees it: what its customers do, and what
stands there.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

_HERE = Path(__file__).parents[2]


@dataclass(frozen=True)
class Account:
    """An account at the stand-in."""

    base_url: str

    def do(self, what: str, *given: Any, **named: Any) -> Any:
        """Call a method of the stand-in's."""
        asked = json.dumps({"do": what, "with": given, "by": named}).encode()
        headers = {"Content-Type": "application/json"}
        with urlopen(Request(f"{self.base_url}/control", asked, headers)) as answer:
            return json.load(answer)

    def see(self) -> dict[str, Any]:
        """All that stands there."""
        found: dict[str, Any] = self.do("see")
        return found

    def taken(self, key: str) -> float:
        """What the payments under a key of ours have taken and not given back."""
        seen = self.see()
        of_key = {
            name
            for name, one in seen["payments"].items()
            if one["status"] in {"paid", "authorized"} and (one["metadata"] or {}).get("paydesk_key") == key
        }
        back = (one for one in seen["refunds"].values() if one["paymentId"] in of_key)
        lost = sum(float(one["amount"]["value"]) for one in back if one["status"] not in {"failed", "canceled"})
        paid = (seen["payments"][name].get("amountCaptured") or seen["payments"][name]["amount"] for name in of_key)
        return sum(float(one["value"]) for one in paid) - lost


@contextmanager
def running(module: str, *words: str) -> Iterator[Account]:
    """A stand-in in a process of its own, on a free port of loopback."""
    started = subprocess.Popen(
        [sys.executable, "-m", module, *words], cwd=_HERE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert started.stdin is not None
    assert started.stdout is not None
    try:
        yield Account(started.stdout.readline().strip())
    finally:
        started.stdin.close()
        started.wait()
