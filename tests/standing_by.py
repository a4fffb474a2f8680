"""Second servers: what a primary's commits wait for, real or not,
and two servers of which either takes over.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import asyncpg
import psutil
from tests.processes import PATIENCE, free_port

from paydesk.database.cluster import pid_file, prepare_data_dir, restrict, server_user, user_name
from paydesk.database.embedded import EmbeddedServer
from paydesk.database.pool import AWAY, Database, connected
from paydesk.database.programs import binary, launch, spawn

SECOND = "second"
"""The name of the standby that commits wait for."""

_STREAMS = "select count(*) from pg_stat_replication where sync_state = 'sync'"


_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "60",
    "shared_buffers": "32MB",
    "fsync": "off",  # whole servers are stopped here, never the machine
    "full_page_writes": "off",
    "hot_standby": "on",
    "max_wal_senders": "6",
    "wal_keep_size": "256MB",
    "wal_receiver_timeout": "2s",
    "wal_retrieve_retry_interval": "100ms",
    "dynamic_shared_memory_type": "mmap",
    "jit": "off",
}


@asynccontextmanager
async def replicated(folder: Path) -> AsyncIterator[EmbeddedServer]:
    """A server whose commits wait for the standby `second`, and that lets its log be received;
    for a block.
    """
    server = EmbeddedServer(folder)
    await server.start()
    try:
        with (server.layout.cluster / "pg_hba.conf").open("a") as rules:
            rules.write("local replication all peer map=owner\n")
        with (server.layout.cluster / "pg_ident.conf").open("a") as rules:
            rules.write(f'owner "{user_name(server_user().uid)}" postgres\n')
        async with connected(server.admin_url, most=1) as admin:
            await admin.execute(f"alter system set synchronous_standby_names = '{SECOND}'")
            await admin.execute("select pg_reload_conf()")
        yield server
    finally:
        await server.stop()


def replication_url(primary: EmbeddedServer, name: str) -> str:
    """The address at which a primary gives out its log to a standby of this name."""
    return f"{primary.admin_url.replace('/postgres?', '/?')}&application_name={name}"


async def received(
    primary: EmbeddedServer, admin: Database, folder: Path, name: str = SECOND
) -> subprocess.Popen[bytes]:
    """Begin to receive the log under a name, as a standby would;
    returns once the server knows of it.
    """
    url = replication_url(primary, name)
    program = [str(binary("pg_receivewal")), "--synchronous", "--no-loop", f"--directory={folder}", f"--dbname={url}"]
    receiver = await asyncio.to_thread(subprocess.Popen, program, stderr=subprocess.DEVNULL)
    async with asyncio.timeout(PATIENCE):
        while not await admin.fetchval("select count(*) from pg_stat_replication where state = 'streaming'"):
            assert receiver.poll() is None
            await asyncio.sleep(0.05)
    return receiver


async def ended(receiver: subprocess.Popen[bytes], admin: Database) -> None:
    """End what receives the log; returns once the server knows of it."""
    receiver.kill()
    receiver.wait()
    await _until(lambda: admin.fetchval("select count(*) = 0 from pg_stat_replication"))


@asynccontextmanager
async def standing_by(primary: EmbeddedServer, folder: Path) -> AsyncIterator[EmbeddedServer]:
    """A standby that commits on the primary wait for; promoted, it waits for nobody itself;
    for a block.
    """
    server, user = EmbeddedServer(folder), server_user()
    layout = prepare_data_dir(folder)
    restrict(layout.cluster, user)
    await _copied(layout.cluster, layout.cluster, replication_url(primary, SECOND))
    with (layout.cluster / "postgresql.auto.conf").open("a") as settings:
        settings.write("synchronous_standby_names = ''\n")
    await server.start()
    try:
        async with connected(primary.admin_url, most=1) as admin:
            await _until(lambda: admin.fetchval(_STREAMS))
        yield server
    finally:
        await server.stop()


def processes(server: EmbeddedServer) -> list[psutil.Process]:
    """All processes of a server that runs."""
    postmaster = psutil.Process(int(pid_file(server.layout)[0]))
    return [postmaster, *postmaster.children(recursive=True)]


async def promoted_without_what_it_had_not_written(standby: EmbeddedServer) -> None:
    """Let a frozen standby go on as primary; what its machine has received
    and not written is lost.
    """
    stopped = processes(standby)
    for process in stopped:
        if "walreceiver" in " ".join(process.cmdline()):
            process.kill()
    for process in stopped:
        with suppress(psutil.NoSuchProcess):
            process.resume()
    async with asyncio.timeout(PATIENCE):
        while True:
            with suppress(*AWAY, asyncpg.PostgresError):
                # No pool of ours: these speak to none that takes no writes.
                admin = await asyncpg.connect(standby.admin_url, timeout=5)
                if await admin.fetchval("select pg_promote()"):
                    await admin.close()
                    return
            await asyncio.sleep(0.1)


@contextmanager
def frozen(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """A process that stands still for the length of a block, as on a machine that hangs."""
    process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        process.send_signal(signal.SIGCONT)


@dataclass(slots=True)
class Server:
    """One of the two; its directory is made anew each time that it can't follow the other."""

    folder: Path
    port: int = field(default_factory=free_port)
    number: int = 0
    process: subprocess.Popen[bytes] | None = None

    @property
    def data(self) -> Path:
        """The cluster."""
        return self.folder / f"{self.port}-{self.number}"

    @property
    def admin_url(self) -> str:
        """Its superuser."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    async def start(self) -> None:
        """Start it, and wait until it answers; it ends with this test run."""
        settings = _SETTINGS | {"port": str(self.port)}
        options = [argument for name, value in settings.items() for argument in ("-c", f"{name}={value}")]
        command = launch(server_user(), [self.folder], ["postgres", "-D", str(self.data), *options])
        log = os.open(f"{self.data}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self.process = spawn(command, log)
        os.close(log)
        async with asyncio.timeout(PATIENCE):
            while True:
                assert self.process.poll() is None, f"see {self.data}.log"
                with suppress(OSError, asyncpg.PostgresError):
                    await self.say("select 1")
                    return
                await asyncio.sleep(0.02)

    async def stop(self, how: signal.Signals) -> None:
        """End it: SIGINT is a fast shutdown in good order, SIGQUIT leaves everything as it is."""
        if self.process is not None:
            self.process.send_signal(how)
            await asyncio.wait_for(asyncio.to_thread(self.process.wait), PATIENCE)

    async def say(self, statement: str) -> object:
        """The one value that a statement of the superuser's gives."""
        connection = await asyncpg.connect(self.admin_url, timeout=10)
        try:
            return await connection.fetchval(statement)
        finally:
            await connection.close()


@dataclass(slots=True)
class Pair:
    """The two servers: the first one takes writes, the other follows it, and may be behind."""

    primary: Server
    standby: Server

    @property
    def url(self) -> str:
        """The database, by the names of both."""
        ports = f"127.0.0.1:{self.primary.port},127.0.0.1:{self.standby.port}"
        return f"postgresql://paydesk@{ports}/paydesk"

    async def switch_over(self) -> None:
        """Stop the primary in good order, promote the standby, and let the old one follow."""
        await self.primary.stop(signal.SIGINT)
        await self._promote()
        old = self.standby
        connection = f"primary_conninfo = 'host=127.0.0.1 port={self.primary.port} user=postgres'\n"
        with (old.data / "postgresql.auto.conf").open("a") as settings:
            settings.write(connection)
        (old.data / "standby.signal").touch()
        user = server_user()
        os.chown(old.data / "standby.signal", user.uid, user.gid)
        await old.start()
        await self.caught_up()

    async def cut(self) -> None:
        """The standby hears nothing of the primary any more."""
        await self.standby.say("alter system set primary_conninfo = ''")
        await self.standby.say("select pg_reload_conf()")
        await _until(lambda: self.primary.say("select count(*) = 0 from pg_stat_replication"))

    async def fail_over(self) -> None:
        """Kill the primary and promote the standby, whatever it has not heard of;
        the old one is lost.
        """
        await self.primary.stop(signal.SIGQUIT)
        await self._promote()

    async def renew_standby(self) -> None:
        """Make the standby anew from the primary."""
        self.standby.number += 1
        source = f"host=127.0.0.1 port={self.primary.port} user=postgres"
        await _copied(self.standby.folder, self.standby.data, source)
        await self.standby.start()
        await self.caught_up()

    async def caught_up(self) -> None:
        """Wait until the standby has all that the primary has."""
        has_all = "select count(*) from pg_stat_replication where replay_lsn >= pg_current_wal_lsn()"
        await _until(lambda: self.primary.say(has_all))

    async def _promote(self) -> None:
        assert await self.standby.say("select pg_promote()")
        self.primary, self.standby = self.standby, self.primary


@asynccontextmanager
async def pair_of_servers(folder: Path) -> AsyncIterator[Pair]:
    """A primary with the empty database `paydesk`, and a standby that follows it,
    for the length of a block.
    """
    home = folder / "servers"
    restrict(home, server_user())
    pair = Pair(Server(home), Server(home))
    await _run(
        home, "initdb", f"--pgdata={pair.primary.data}", "--username=postgres", "--auth=trust", "--encoding=UTF8",
        "--locale=C", "--no-sync", "--no-instructions",
    )  # fmt: skip
    try:
        await pair.primary.start()
        await pair.primary.say("create role paydesk login")
        await pair.primary.say("create database paydesk owner paydesk")
        await pair.renew_standby()
        yield pair
    finally:
        for server in (pair.standby, pair.primary):
            await server.stop(signal.SIGQUIT)


async def _until(ask: Callable[[], Awaitable[object]]) -> None:
    """Wait until a server's answer is what must come."""
    async with asyncio.timeout(PATIENCE):
        while not await ask():  # noqa: ASYNC110 (a server sends no event)
            await asyncio.sleep(0.02)


async def _copied(folder: Path, data: Path, source: str) -> None:
    """Make the cluster of a standby from its primary at `source`;
    `folder` is where the programs' user may write.
    """
    await _run(
        folder, "pg_basebackup", f"--pgdata={data}", f"--dbname={source}", "--checkpoint=fast", "--wal-method=stream",
        "--write-recovery-conf", "--no-sync",
    )  # fmt: skip


async def _run(folder: Path, *command: str) -> None:
    """Run one of PostgreSQL's programs to its end, as a user that is not root."""
    told = launch(server_user(), [folder], list(command))
    environment = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}
    process = await asyncio.create_subprocess_exec(
        *told, env=environment, cwd="/", stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE
    )
    _, said = await asyncio.wait_for(process.communicate(), PATIENCE)
    assert process.returncode == 0, f"{command[0]}: {said.decode(errors='replace')}"
