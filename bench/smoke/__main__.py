"""Runs every bench from end to end with small numbers:
a measurement that can't run any more is a failure.

Each bench checks its own counts. The limit is no measurement: it only ends what would never end
by itself.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
from pathlib import Path

LIMIT = 300
"""Seconds until a bench counts as hanging; on an idle machine each takes less than twenty."""


def main() -> int:
    """Run them all, even if one fails; the exit status says whether all did well."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--benches", type=Path, default=Path(__file__).parents[1], help="the folder of the benches")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds until a bench hangs (default %(default)s)")
    asked = parser.parse_args()
    benches = sorted(asked.benches.glob("*.py"))
    failed = {bench.name: why for bench in benches if (why := wrong_with(bench, asked.limit))}
    for name, why in failed.items():
        print(f"bench/{name} {why}", file=sys.stderr)
    if not benches:
        print(f"there is no bench in {asked.benches}", file=sys.stderr)
    return int(bool(failed) or not benches)


def wrong_with(bench: Path, limit: float) -> str:
    """What is wrong with a bench, in words; empty if nothing is."""
    print(f"== bench/{bench.name} --smoke", flush=True)
    kept = bench.parent / "results" / "smoke" / f"{bench.stem}.json"
    kept.unlink(missing_ok=True)
    # In a group of its own, so that nothing that it started is left if it has to be ended.
    with subprocess.Popen([sys.executable, str(bench), "--smoke"], start_new_session=True) as process:
        try:
            status = process.wait(limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return f"has not ended after {limit:g} s: it hangs"
    if status:
        return f"failed with status {status}"
    return "" if kept.exists() else f"has kept no result in {kept.relative_to(bench.parent)}"


if __name__ == "__main__":
    sys.exit(main())
