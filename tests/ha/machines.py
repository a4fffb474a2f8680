"""Three machines on one: network namespaces, each with a line to those who pay and one
to the other machines.
"""

from __future__ import annotations

import grp
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

NAMES = ("db1", "db2", "db3")
OWNER = "postgres"
"""PostgreSQL and Patroni refuse to be root."""


def ip(*words: str) -> str:
    """Change the network as root, or look at it."""
    done = subprocess.run(["ip", *words], capture_output=True, text=True)
    assert done.returncode == 0, f"ip {' '.join(words)}: {done.stderr}"
    return done.stdout


@dataclass(frozen=True, slots=True)
class Machine:
    """A network namespace with the processes in it.

    `front` is its address for those who pay, reached over the line `window`; `back` the one for the
    other machines, plugged into the switch by the line `plug`. `folder` holds its files and belongs
    to its user.
    """

    name: str
    namespace: str
    switch: str
    front: str
    back: str
    window: str
    plug: str
    folder: Path

    def start(self, program: Sequence[str], env: Mapping[str, str]) -> None:
        """Start a program there, in a session of its own;
        what it says is kept in a file named after it.
        """
        words, known = self._there(program, env)
        with self.log(program[0]).open("a") as log:
            # Nobody waits for it: the machine is asked what runs there.
            subprocess.Popen(
                words,
                env=known,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def run(self, script: str, env: Mapping[str, str]) -> None:
        """Run a script of the page's there, as its user. Raises: CalledProcessError."""
        words, known = self._there(["sh", "-e", "-c", script], env)
        subprocess.run(words, env=known, cwd=self.folder, stdin=subprocess.DEVNULL, check=True, capture_output=True)

    def _there(self, program: Sequence[str], env: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
        """A command that runs there as the machine's user, and its environment."""
        user = pwd.getpwnam(OWNER)
        become = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--init-groups", "--"]
        known = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "LANG": "C.UTF-8", **env}
        return ["ip", "netns", "exec", self.namespace, *become, *program], known

    def log(self, program: str) -> Path:
        """The file with what a program said."""
        return self.folder / f"{Path(program).name}.log"

    def tail(self) -> str:
        """What its programs said last."""
        logs = sorted(self.folder.glob("*.log"))
        return "\n".join(f"{log.stem} on {self.name}: {line}" for log in logs for line in _last(log))

    def processes(self, *programs: str) -> list[int]:
        """The processes that run there, of these programs (by the names of their files), or all."""
        pids = [int(pid) for pid in ip("netns", "pids", self.namespace).split()]
        return [pid for pid in pids if not programs or _program(pid) in programs]

    def signal(self, number: signal.Signals, *programs: str) -> None:
        """Send a signal to each process of these programs, or to all."""
        for pid in self.processes(*programs):
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def end(self) -> None:
        """Kill all that runs there, and return once nothing does."""
        while self.processes():
            self.signal(signal.SIGKILL)
            time.sleep(0.05)

    def line(self, name: str, state: str) -> None:
        """Cut the `front` or the `back` line (`down`) or mend it (`up`):
        what is sent meanwhile is lost unheard.
        """
        where = ("link", "set", self.window) if name == "front" else ("-n", self.switch, "link", "set", self.plug)
        ip(*where, state)


def _last(log: Path) -> list[str]:
    return log.read_text(errors="replace").splitlines()[-25:]


def _program(pid: int) -> str:
    """The program of a process: the script, if it is Python that runs it;
    empty if the process is gone.
    """
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").replace("\0", " ").split()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    script = words[1] if len(words) > 1 and "python" in words[0] else " ".join(words[:1])
    return Path(script.rstrip(":")).name


@contextmanager
def machines() -> Iterator[list[Machine]]:
    """Three machines with their lines up, for the length of a block;
    then all that runs there is killed.
    """
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="paydesk-ha-"))
        stack.callback(shutil.rmtree, folder)
        folder.chmod(0o711)
        mark, network = f"pd{os.getpid()}", _free_network()
        switch = f"{mark}-switch"
        _namespace(stack, switch)
        ip("-n", switch, "link", "add", "bridge", "type", "bridge")
        ip("-n", switch, "link", "set", "bridge", "up")
        yield [
            _machine(stack, name, f"{mark}-{name}", switch, (network, number), folder)
            for number, name in enumerate(NAMES, start=1)
        ]


def _namespace(stack: ExitStack, name: str) -> None:
    ip("netns", "add", name)
    stack.callback(ip, "netns", "delete", name)
    ip("-n", name, "link", "set", "lo", "up")


def _machine(stack: ExitStack, name: str, namespace: str, switch: str, place: tuple[int, int], folder: Path) -> Machine:
    """One machine, with a front address 198.18.… (networks for trials of network devices)
    and a back one 198.19.….
    """
    network, number = place
    window, plug = f"{namespace}f", f"{namespace}b"
    machine = Machine(
        name,
        namespace,
        switch,
        front=f"198.18.{network}.{4 * number + 2}",
        back=f"198.19.{network}.{number}",
        window=window,
        plug=plug,
        folder=folder / name,
    )
    _namespace(stack, namespace)
    stack.callback(machine.end)
    ip("link", "add", window, "type", "veth", "peer", "name", "front", "netns", namespace)
    # Namespaces that are deleted let go of their lines some time later.
    stack.callback(ip, "link", "delete", window)
    ip("addr", "add", f"198.18.{network}.{4 * number + 1}/30", "dev", window)
    ip("-n", namespace, "addr", "add", f"{machine.front}/30", "dev", "front")
    ip("-n", switch, "link", "add", plug, "type", "veth", "peer", "name", "back", "netns", namespace)
    ip("-n", switch, "link", "set", plug, "master", "bridge")
    ip("-n", namespace, "addr", "add", f"{machine.back}/24", "dev", "back")
    for line in ("front", "back"):
        ip("-n", namespace, "link", "set", line, "up")
        machine.line(line, "up")
    machine.folder.mkdir(mode=0o700)
    os.chown(machine.folder, pwd.getpwnam(OWNER).pw_uid, grp.getgrnam(OWNER).gr_gid)
    return machine


def _free_network() -> int:
    """The third part of addresses that nobody on this machine has."""
    taken = ip("-4", "addr", "show")
    return next(number for number in range(os.getpid() % 200, 256) if f"inet 198.18.{number}." not in taken)
