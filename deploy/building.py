"""Build what is handed out, byte for byte the same wherever it is built: `make dist`.

`dist/` then holds the wheel and the source of the newest commit, and `requirements.txt`: of
requirements.lock what a running Paydesk needs, with its hashes. What is not committed is not in
them. Times are those of the commit.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
VENDOR = Path("src", "paydesk", "web", "console", "static", "vendor")
_LOCKED = re.compile(r"^([A-Za-z0-9._-]+)==[^\n]*(?:\n[ \t]+[^\n]*)*\n", re.M)


def main() -> int:
    """Build into `dist/`, which then holds nothing else."""
    out = ROOT / "dist"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    with tempfile.TemporaryDirectory(prefix="paydesk-dist-") as name:
        tree = Path(name, "tree")
        epoch = export(tree)
        build(tree, out, epoch)
        (out / "requirements.txt").write_text(needed((tree / "requirements.lock").read_text()))
    if _git("status", "--porcelain"):
        sys.stderr.write("What is not committed is not in it.\n")
    for made in sorted(out.iterdir()):
        sys.stdout.write(f"{made.relative_to(ROOT)}\n")
    return 0


def export(tree: Path) -> int:
    """Write the newest commit's files into a folder, and the front-end files with them;
    returns the commit's time.

    The time is in seconds since 1970. The front-end files are those that `make setup` has brought.
    """
    with tarfile.open(fileobj=io.BytesIO(_git("archive", "--format=tar", "HEAD"))) as files:
        files.extractall(tree, filter="data")
    shutil.copytree(ROOT / VENDOR, tree / VENDOR)
    return int(_git("log", "-1", "--format=%ct"))


def build(tree: Path, out: Path, epoch: int) -> None:
    """Build wheel and source of a folder as of a time;
    what they hold depends on nothing else of this machine.
    """
    ran = subprocess.run(  # noqa: S603 (no shell, fixed words)
        [sys.executable, "-m", "hatchling", "build", "-d", str(out)],
        cwd=tree,
        env={**os.environ, "SOURCE_DATE_EPOCH": str(epoch)},
        capture_output=True,
        text=True,
    )
    if ran.returncode:
        sys.exit(f"The build failed.\n{ran.stdout}{ran.stderr}")


def needed(lock: str) -> str:
    """Of a lock file what `paydesk` itself needs, by what the packages of this environment say
    that they need.
    """
    blocks = {canonicalize_name(found[1]): found[0] for found in _LOCKED.finditer(lock)}
    wanted = set(_closure("paydesk"))
    return "".join(block for name, block in blocks.items() if name in wanted)


def _closure(package: str) -> Iterator[str]:
    """What a package needs on whatever system, and what that needs;
    extras only where somebody asks for them.
    """
    seen, ahead = set[tuple[str, str]](), [(canonicalize_name(package), "")]
    while ahead:
        name, extra = ahead.pop()
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        for one in map(Requirement, _requirements(name)):
            if _applies(one, extra):
                ahead += [(canonicalize_name(one.name), asked) for asked in ("", *sorted(one.extras))]
    yield from {name for name, _ in seen}


def _requirements(name: str) -> list[str]:
    """What an installed package needs; one for another system is not here,
    and needs nothing that we could know.
    """
    try:
        return requires(name) or []
    except PackageNotFoundError:
        return []


def _applies(requirement: Requirement, extra: str) -> bool:
    """Whether a requirement counts when this extra (or none) is asked for;
    the lock knows the system's own marks.
    """
    named = re.findall(r"""extra\s*==\s*["']([^"']+)["']""", str(requirement.marker or ""))
    return extra in named if extra else not named


def _git(*words: str) -> bytes:
    # The checkout may be another user's than the build's.
    command = ["git", "-c", "safe.directory=*", *words]
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout  # noqa: S603


if __name__ == "__main__":
    sys.exit(main())
