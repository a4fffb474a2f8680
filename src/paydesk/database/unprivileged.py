"""Launch a PostgreSQL program so that it never outlives us and never runs as root.

PostgreSQL refuses to run as root, so root hands it to an unprivileged user. That user may be unable
to reach the programs or the data: a clone below a 0700 directory is the ordinary case, and
loosening somebody's parent directories is out of the question. So the program gets the one
capability that lets it read past them, if it can't do without.

This file is also the script that does it, run as a process of its own that then becomes the
program: changing user in a forked copy of a threaded Python process isn't safe. It imports the
standard library only (``-I -S``).
"""

import ctypes
import os
import signal
import sys
from collections.abc import Sequence

SET_DEATH_SIGNAL, SET_KEEP_CAPABILITIES, SET_SECURE_BITS, AMBIENT = 1, 8, 28, 47  # <linux/prctl.h>
AMBIENT_RAISE = 2
NO_SETUID_FIXUP = 1 << 2  # <linux/securebits.h>
DAC_OVERRIDE, DAC_READ_SEARCH, SETPCAP = 1, 2, 8  # <linux/capability.h>
CAPABILITY_VERSION_3 = 0x20080522


def launch_command(uid: int, gid: int, needs: Sequence[str], command: Sequence[str]) -> list[str]:
    """Return the command that runs `command` as this user, once it can read everything in `needs`.

    The program ends when the *thread* that started it ends, so start it from one that lives as long
    as the process.
    """
    orders = [str(uid), str(gid), str(os.getpid()), *needs, "--", *command]
    return [sys.executable, "-I", "-S", __file__, *orders]


def main(orders: list[str]) -> None:
    """Become the program that the orders name; see `launch_command`."""
    split = orders.index("--")
    uid, gid, parent = (int(each) for each in orders[:3])
    needs, command = orders[3:split], orders[split + 1 :]
    if os.geteuid() == 0 and uid != 0:
        drop_root(uid, gid, needs)
    os.umask(0o077)
    for ignored_by_python in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(ignored_by_python, signal.SIG_DFL)
    die_with(parent)
    os.execv(command[0], command)  # noqa: S606 (the very purpose)


def die_with(parent: int) -> None:
    """Have the kernel shut this process down fast (SIGINT) when its parent dies,
    where the kernel can do that.

    Comes after the change of user, which would clear it.
    """
    if sys.platform == "linux":
        prctl(SET_DEATH_SIGNAL, signal.SIGINT)
        if os.getppid() != parent:
            sys.exit("the starting process is gone")


def drop_root(uid: int, gid: int, needs: list[str]) -> None:
    """Change to this user, without other groups, keeping at most one capability:
    the weakest that reaches the needs.
    """
    linux = sys.platform == "linux"
    held = 0
    if linux:
        held = permitted_capabilities()
        prctl(SET_KEEP_CAPABILITIES, 1)
    os.setgroups([])
    os.setgid(gid)
    os.setuid(uid)
    if linux:
        prctl(SET_KEEP_CAPABILITIES, 0)
        keep_weakest(held, needs)
    missing = unreachable(needs)
    if missing:
        sys.exit(f"FATAL:  user id {uid} cannot reach {missing}: move it, or give that user access")


def keep_weakest(held: int, needs: list[str]) -> None:
    """Keep no capability, else reading past permissions, else
    (a program that others can't execute) all access.
    """
    if unreachable(needs):
        for capability in (1 << DAC_READ_SEARCH, 1 << DAC_OVERRIDE):
            if held & capability and held & (1 << SETPCAP):
                keep_over_exec(capability, held & (1 << DAC_OVERRIDE))
                if not unreachable(needs):
                    set_capabilities(capability, capability, capability)
                    prctl(AMBIENT, AMBIENT_RAISE, capability.bit_length() - 1)
                    return
    set_capabilities(0, 0, 0)


def keep_over_exec(capability: int, next_one: int) -> None:
    """Make one capability effective, keeping in reserve what a next attempt needs.

    Without the secure bit access() would ignore capabilities of a user other than root, and
    PostgreSQL looks for its own executable with access().
    """
    admin = 1 << SETPCAP
    set_capabilities(admin, capability | next_one | admin, capability)
    prctl(SET_SECURE_BITS, NO_SETUID_FIXUP)
    set_capabilities(capability, capability | next_one | admin, capability)


def unreachable(needs: list[str]) -> str | None:
    """Return the first of these paths that this process can't read and enter (or execute),
    as the kernel sees it.
    """
    return next((need for need in needs if not os.access(need, os.R_OK | os.X_OK)), None)


class CapabilityHeader(ctypes.Structure):
    """``struct __user_cap_header_struct``: the version, and 0 for this process."""

    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class CapabilityWord(ctypes.Structure):
    """``struct __user_cap_data_struct``: 32 bits of each set; two words make one set."""

    _fields_ = (("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32))


def permitted_capabilities() -> int:
    """Return the low word of the capabilities that this process may use;
    all that matter here are in it.
    """
    words = (CapabilityWord * 2)()
    call("capget", ctypes.byref(CapabilityHeader(CAPABILITY_VERSION_3, 0)), words)
    return int(words[0].permitted)


def set_capabilities(effective: int, permitted: int, inheritable: int) -> None:
    """Replace all three capability sets of this process."""
    words = (CapabilityWord * 2)(CapabilityWord(effective, permitted, inheritable), CapabilityWord(0, 0, 0))
    call("capset", ctypes.byref(CapabilityHeader(CAPABILITY_VERSION_3, 0)), words)


def prctl(option: int, *arguments: int) -> None:
    """Call prctl with all five arguments, as the variadic function wants full-width ones."""
    padded = [*arguments, 0, 0, 0, 0][:4]
    call("prctl", ctypes.c_int(option), *(ctypes.c_ulong(each) for each in padded))


def call(function: str, *arguments: object) -> None:
    """Call a function of the C library that returns -1 for failure; raises OSError."""
    library = ctypes.CDLL(None, use_errno=True)
    if getattr(library, function)(*arguments) == -1:
        number = ctypes.get_errno()
        raise OSError(number, f"{function}: {os.strerror(number)}")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except OSError as error:
        sys.exit(f"FATAL:  cannot launch PostgreSQL: {error}")
