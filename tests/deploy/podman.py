"""podman with a storage, networks and settings of its own, all in one folder,
so that a test leaves nothing behind.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree
from typing import Any

SETTINGS = """\
[containers]
# A machine that is a container itself may not raise these, as podman else would.
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
log_driver = "k8s-file"
[engine]
# Neither asks for systemd.
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
[network]
network_backend = "netavark"
network_config_dir = "{folder}/networks"
"""

STORAGE = """\
[storage]
driver = "overlay"
graphroot = "{folder}/graph"
runroot = "{folder}/run"
"""


class Podman:
    """The program, working in one folder."""

    def __init__(self, folder: Path) -> None:
        (folder / "containers.conf").write_text(SETTINGS.format(folder=folder))
        (folder / "storage.conf").write_text(STORAGE.format(folder=folder))
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("PAYDESK_")},
            "CONTAINERS_CONF": str(folder / "containers.conf"),
            "CONTAINERS_STORAGE_CONF": str(folder / "storage.conf"),
            # Its health checks are timers of systemd; here the test asks for them itself.
            "DISABLE_HC_SYSTEMD": "true",
        }

    def run(self, *arguments: str, fails: bool = False, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        """Run one command of podman; unless it `fails` as it should, its failure is the test's."""
        ran = subprocess.run(
            ["podman", *arguments], env=self._environment, input=stdin, capture_output=True, timeout=600, check=False
        )
        said = f"podman {' '.join(arguments)}: {ran.returncode}\n{_end(ran.stdout)}\n{_end(ran.stderr)}"
        assert fails or ran.returncode == 0, said
        return ran

    def tell(self, *arguments: str) -> str:
        """What a command says on its standard output."""
        return self.run(*arguments).stdout.decode()

    def inspect(self, *arguments: str) -> Any:
        """What `podman … inspect` says of one thing."""
        return json.loads(self.tell(*arguments))[0]


def _end(said: bytes) -> str:
    return said.decode(errors="replace")[-4000:]


@contextmanager
def podman_in(folder: Path) -> Iterator[Podman]:
    """Use podman for the length of a block; at its end nothing runs and nothing is left
    on the disk.
    """
    folder.mkdir()
    podman = Podman(folder)
    try:
        yield podman
    finally:
        podman.run("rm", "--all", "--force", "--time=0", "--volumes", fails=True)
        podman.run("network", "prune", "--force", fails=True)
        podman.run("image", "umount", "--all", "--force", fails=True)
        subprocess.run(["umount", str(folder / "graph" / "overlay")], capture_output=True, check=False)
        rmtree(folder, ignore_errors=True)
