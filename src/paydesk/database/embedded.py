"""The private PostgreSQL that `paydesk run` brings along
(docs/operate.md says how to use a real one instead).

Only the *programs* of the wheel are used, under a small supervisor of our own. One process at a
time owns the server of a data directory, by holding a file lock that the kernel releases however
the process ends; the others attach to it. The server dies with its owner, and what a kill -9 leaves
behind is cleared at the next start.
"""

import asyncio
import fcntl
import os
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from urllib.parse import quote

import asyncpg
import structlog

from paydesk.database import cluster, programs
from paydesk.database.cluster import EmbeddedServerError, Layout, ServerUser
from paydesk.database.pool import AWAY
from paydesk.database.programs import binary
from paydesk.loops.repeating import repeat

__all__ = ["EmbeddedServer", "EmbeddedServerError", "binary", "server_for"]

POLL = 0.02  # seconds between two looks while something is about to happen
WATCH = 0.2  # seconds between two looks while all is well
STARTER_PATIENCE = 60.0  # seconds that another process may take to start the server
RECOVERY_PATIENCE = 600.0  # seconds that the server itself may take, to replay its log after a crash
LEFTOVER_PATIENCE = 30.0  # seconds that the children of a killed server may take to finish
FAST_STOP, IMMEDIATE_STOP = 8.0, 4.0  # seconds until the next harder signal

log = structlog.get_logger()


class EmbeddedServer:
    """The PostgreSQL server of one data directory:
    ours, or attached to while another process owns it.
    """

    def __init__(self, data_dir: Path) -> None:
        self.layout = Layout(data_dir.resolve())
        self.attached = False
        self._lock: int | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The DSN of the database and role `paydesk`;
        the role owns the database and is no superuser.
        """
        return self.dsn()

    @property
    def admin_url(self) -> str:
        """The DSN of the superuser `postgres`, for tests that make databases of their own."""
        return self.dsn("postgres", role="postgres")

    def dsn(self, database: str = "paydesk", *, role: str = "paydesk") -> str:
        """Return a DSN that asyncpg and libpq both understand;
        the server must have been started.
        """
        sockets = quote(str(cluster.socket_directory(self.layout)), safe="")
        return f"postgresql://{role}@/{quote(database, safe='')}?host={sockets}&port={cluster.PORT}"

    async def start(self) -> None:
        """Start the server, or attach to the one that another process of ours runs,
        and wait until it answers.

        Call it from a thread that lives as long as the process: the server ends with it.

        Raises: EmbeddedServerError
        """
        cluster.prepare_data_dir(self.layout.data_dir)
        patience = time.monotonic() + STARTER_PATIENCE
        while not self._claim():
            if await self._answers():
                self.attached = True
                return
            if time.monotonic() > patience:
                raise EmbeddedServerError(
                    f"another process ({self._owner()}) is still starting PostgreSQL in {self.layout.data_dir}: "
                    "wait for it, or end it"
                )
            await asyncio.sleep(WATCH / 2)
        try:
            await self._run()
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Stop the server if it is ours, and let go of the data directory;
        a server of another process runs on.
        """
        self.attached = False
        await self._end_process()
        if self._lock is not None:
            cluster.forget_socket_directory(self.layout)
            os.close(self._lock)
            self._lock = None

    async def supervise(self) -> None:
        """Keep the server running until cancelled:
        start it again when it dies, or when the process that owned it ends.

        A start that fails is logged and tried again, since the reason (a full disk, say) may pass.
        """
        await repeat("embedded database", self._look_after, asyncio.Event(), rest=WATCH)

    async def _look_after(self) -> None:
        """Start the server again if it is ours and does not run."""
        if self.attached:
            if not self._claim():
                return
            self.attached = False
        elif self._process is not None and self._process.poll() is None:
            return
        log.warning("embedded_postgres_restarting", data_dir=str(self.layout.data_dir))
        try:
            await self._run()
            log.warning("embedded_postgres_restarted", data_dir=str(self.layout.data_dir))
        except (EmbeddedServerError, *AWAY) as error:
            # It may be killed again while we talk to it for the first time.
            log.error("embedded_postgres_down", reason=str(error))
            await asyncio.sleep(1)

    def _claim(self) -> bool:
        """Become the owner of the data directory, unless another process is."""
        if self._lock is None:
            try:
                self._lock = os.open(self.layout.lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
            except OSError as error:
                raise cluster.unusable(self.layout.data_dir, error) from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock)
            self._lock = None
            return False
        os.truncate(self._lock, 0)
        os.pwrite(self._lock, f"pid {os.getpid()}\n".encode(), 0)
        return True

    def _owner(self) -> str:
        """Return what the owner of the data directory says about itself."""
        return self.layout.lock.read_text().strip() or "unknown"

    async def _answers(self) -> bool:
        """Tell whether the owner's server is ready for us."""
        if not cluster.is_private(cluster.socket_directory(self.layout), cluster.server_user()):
            return False
        try:
            connection = await asyncpg.connect(self.url, timeout=5)
        except asyncpg.TooManyConnectionsError:
            return True
        except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
            return False
        await connection.close()
        return True

    async def _run(self) -> None:
        """Bring the server up from whatever state the data directory is in; the lock is ours."""
        user = cluster.server_user()
        try:
            if not self.layout.cluster.exists():
                await self._create(user)
            cluster.restrict(self.layout.cluster, user)
            cluster.check_version(self.layout)
            await self._end_previous()
            cluster.write_access_rules(self.layout, user)
            sockets = cluster.prepare_socket_directory(self.layout, user)
            await self._launch(programs.server_command(self.layout, user, sockets))
        except OSError as error:
            raise cluster.unusable(self.layout.data_dir, error) from error
        await self._ensure_database()

    async def _create(self, user: ServerUser) -> None:
        """Make the cluster under another name and rename it,
        so that half a cluster never looks like one.
        """
        unfinished = cluster.clear_unfinished(self.layout)
        cluster.restrict(unfinished, user)
        seen = self._log_size()
        self._process = self._spawn(programs.initdb_command(unfinished, user))
        process = self._process
        await wait_until(lambda: process.poll() is not None, RECOVERY_PATIENCE)
        await self._end_process()
        if process.returncode != 0:
            raise self._failure(f"cannot make a database in {self.layout.data_dir}", self._logged_since(seen))
        cluster.publish(unfinished, self.layout)

    async def _end_previous(self) -> None:
        """Wait out, or end, a server whose owner was killed
        (the lock is ours, so it is nobody's).
        """
        lines = cluster.pid_file(self.layout)
        if not lines or not lines[0].isdecimal():
            return
        pid = int(lines[0])
        for number, patience in ((signal.SIGINT, FAST_STOP), (signal.SIGQUIT, IMMEDIATE_STOP)):
            if is_server(pid, self.layout.cluster):
                with suppress(ProcessLookupError):
                    os.kill(pid, number)
                await wait_until(lambda: not is_server(pid, self.layout.cluster), patience)
        if is_server(pid, self.layout.cluster):
            raise EmbeddedServerError(
                f"an earlier PostgreSQL (pid {pid}) in {self.layout.cluster} does not stop: end it"
            )
        cluster.disown_pid_file(self.layout, cluster.server_user())

    async def _launch(self, command: list[str]) -> None:
        """Start the server and wait until it is ready;
        try again while children of a killed one hold its memory.
        """
        patience = time.monotonic() + LEFTOVER_PATIENCE
        while True:
            seen = self._log_size()
            self._process = self._spawn(command)
            if await self._ready(self._process):
                return
            said = self._logged_since(seen)
            await self._end_process()
            if "shared memory block" not in said or time.monotonic() > patience:
                raise self._failure(f"PostgreSQL does not start in {self.layout.data_dir}", said)
            await asyncio.sleep(WATCH)

    async def _ready(self, process: subprocess.Popen[bytes]) -> bool:
        """Wait until the server takes connections (its pid file says so);
        false if it ended or took too long.
        """

        def ready() -> bool:
            lines = cluster.pid_file(self.layout)
            return len(lines) > 7 and lines[0] == str(process.pid) and lines[7].strip() == "ready"

        await wait_until(lambda: process.poll() is not None or ready(), RECOVERY_PATIENCE)
        return process.poll() is None and ready()

    async def _ensure_database(self) -> None:
        """Make the role and the database `paydesk`, unless they are there;
        a killed first start is completed here.

        As on a real server, the role sees what others' sessions and standbys do.
        """
        try:
            connection = await asyncpg.connect(self.admin_url, timeout=10)
            try:
                if not await connection.fetchval("select 1 from pg_roles where rolname = 'paydesk'"):
                    await connection.execute("create role paydesk login")
                if not await connection.fetchval("select pg_has_role('paydesk', 'pg_read_all_stats', 'member')"):
                    await connection.execute("grant pg_read_all_stats to paydesk")
                if not await connection.fetchval("select 1 from pg_database where datname = 'paydesk'"):
                    await connection.execute("create database paydesk owner paydesk")
            finally:
                await connection.close()
        except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
            raise self._failure(f"PostgreSQL in {self.layout.data_dir} does not answer", str(error)) from error

    async def _end_process(self) -> None:
        """End the program that we started, gently first:
        fast shutdown, immediate shutdown, kill.
        """
        process = self._process
        if process is None:
            return
        for number, patience in (
            (signal.SIGINT, FAST_STOP),
            (signal.SIGQUIT, IMMEDIATE_STOP),
            (signal.SIGKILL, IMMEDIATE_STOP),
        ):
            if process.poll() is None:
                process.send_signal(number)
                await wait_until(lambda: process.poll() is not None, patience)
        self._process = None

    def _spawn(self, command: list[str]) -> subprocess.Popen[bytes]:
        """Start a program whose output goes to the log."""
        output = cluster.open_log(self.layout)
        try:
            return programs.spawn(command, output)
        finally:
            os.close(output)

    def _log_size(self) -> int:
        """Return how much of the log there is."""
        return self.layout.log.stat().st_size if self.layout.log.exists() else 0

    def _logged_since(self, seen: int) -> str:
        """Return what the log says beyond this size."""
        return self.layout.log.read_bytes()[seen:].decode(errors="replace")

    def _failure(self, what: str, said: str) -> EmbeddedServerError:
        """Return an error with the line of the output that tells most, and where the rest is."""
        lines = [line.strip() for line in said.splitlines() if line.strip()] or ["it gave no reason"]
        fatal = [line.partition("FATAL:")[2].strip() for line in lines if "FATAL:" in line]
        errors = [line for line in lines if "error:" in line]
        return EmbeddedServerError(f"{what}: {[*fatal, *errors, lines[-1]][0]}; see {self.layout.log}")


@asynccontextmanager
async def server_for(data_dir: Path) -> AsyncIterator[EmbeddedServer]:
    """Give the running server of a data directory: another process's if there is one,
    else our own during the block.

    Raises: EmbeddedServerError
    """
    server = EmbeddedServer(data_dir)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


async def wait_until(condition: Callable[[], bool], patience: float) -> None:
    """Return as soon as the condition holds, or after so many seconds."""
    end = time.monotonic() + patience
    while not condition() and time.monotonic() < end:  # noqa: ASYNC110 (processes and files send no event)
        await asyncio.sleep(POLL)


def is_server(pid: int, directory: Path) -> bool:
    """Tell whether this process is a live server of this cluster,
    not another program that was given its pid.
    """
    if Path("/proc/self/cwd").exists():
        try:
            return Path(f"/proc/{pid}/cwd").samefile(directory)
        except OSError:
            return False
    listed = subprocess.run(["/bin/ps", "-o", "command=", "-p", str(pid)], capture_output=True, text=True, check=False)  # noqa: S603
    return f"-D {directory}" in listed.stdout
