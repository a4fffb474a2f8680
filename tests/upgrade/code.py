"""The code of a release before this one, as the repository's history has it."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RELEASE = Path(__file__).with_name("release")
"""Names the commit of the release from which upgrades are tried; moved on with each release."""

FRONT_END = "src/paydesk/web/console/static/vendor"


@dataclass(frozen=True, slots=True)
class Code:
    """Some version of Paydesk; `source` is where its packages are.
    All versions run on this environment's libraries.
    """

    name: str
    source: Path

    @property
    def env(self) -> dict[str, str]:
        """What makes a process run this code."""
        return {"PYTHONPATH": str(self.source)}


NEW = Code("new", ROOT / "src")
PAYDESK = (sys.executable, "-m", "paydesk")


def code_before(folder: Path) -> Code:
    """The code of the release before, unpacked into a folder;
    from UPGRADE_FROM, a checkout of it, if that is set.
    """
    return code_of(RELEASE.read_text().strip(), folder)


def code_of(commit: str, folder: Path) -> Code:
    """The code of a commit, unpacked into a folder;
    from UPGRADE_FROM if that is a checkout of it.
    """
    given = os.environ.get("UPGRADE_FROM")
    if given and commit == RELEASE.read_text().strip():
        return Code("old", Path(given, "src").resolve())
    archive = ["git", "-c", f"safe.directory={ROOT}", "-C", str(ROOT), "archive", commit, "src"]
    try:
        packed = subprocess.run(archive, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        why = error.stderr.decode().strip() if isinstance(error, subprocess.CalledProcessError) else str(error)
        pytest.fail(
            f"the code of commit {commit} is not here ({why}): bring the whole history (git fetch --unshallow), or set "
            f"UPGRADE_FROM to a checkout of the release that {RELEASE} names"
        )
    with tarfile.open(fileobj=io.BytesIO(packed)) as packed_files:
        packed_files.extractall(folder, filter="data")
    # Built by `make setup`, and no part of the history.
    (folder / FRONT_END).symlink_to(ROOT / FRONT_END)
    return Code("old", folder / "src")
