"""Shows what each bench reached at each commit: the median of its runs, how far they lay apart,
and how busy the machine was.

A ratio is against a peer, a floor or an aim of the same run; more is better, except where the
measure says "of the most", where less is.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import history

NEWEST = 8


def main() -> int:
    """Print a table for each measure; the exit status is 1 where nothing was measured yet."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="example: make bench-history ARGS='--bench checkout'",
    )
    parser.add_argument("--bench", default="", help="only this one, such as checkout (default all)")
    parser.add_argument("--commits", type=int, default=NEWEST, help="the newest so many (default %(default)s)")
    parser.add_argument("--kept", type=Path, default=history.KEPT, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    tables = [one for one in history.by_commit(history.read(asked.kept)) if asked.bench in ("", one[0])]
    for bench, measure, reached in tables:
        print(f"\n{bench}: {measure}")
        print(f"  {'day':<12}{'commit':<12}{'runs':>5}{'median':>9}{'lowest':>9}{'highest':>9}{'load':>7}")
        for one in reached[-asked.commits :]:
            spread = f"{one.lowest:>9.2f}{one.highest:>9.2f}"
            print(f"  {one.day:<12}{one.commit:<12}{one.runs:>5}{one.median:>9.2f}{spread}{one.load:>7.1f}")
    if not tables:
        print("nothing was measured yet: python bench/checkout.py writes its ratios down", file=sys.stderr)
    return int(not tables)


if __name__ == "__main__":
    sys.exit(main())
