"""The cluster of `docs/highly-available.md` on three machines:
its own files, with our addresses and folders.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from shutil import which
from typing import Any

import aiohttp
import asyncpg
from tests.ha.machines import OWNER, Machine
from tests.processes import PATIENCE, Kept, environment, free_port

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
PAGE = (ROOT / "docs" / "highly-available.md").read_text()
PASSWORD = "choose-one"  # of the page
CERTIFICATES, DATABASE, COMMANDS = "Certificates", "The database", "Commands"
VERSION = max((int(one.name) for one in Path("/usr/lib/postgresql").glob("*")), default=15)
NEEDED = "patroni, etcd-server, haproxy, iproute2 and postgresql"
HURRIED = aiohttp.ClientTimeout(total=2)


def blocks(language: str, heading: str) -> list[str]:
    """The code blocks of a language under a heading of the page."""
    section = re.split(r"^## ", PAGE.split(f"\n## {heading}\n", 1)[1], maxsplit=1, flags=re.M)[0]
    return re.findall(rf"^```{language}\n(.*?)^```$", section, re.M | re.S)


@dataclass(frozen=True, slots=True)
class Cluster:
    """Three machines with etcd, Patroni and PostgreSQL;
    `proxy` is where HAProxy leads to the primary.
    """

    machines: list[Machine]
    authority: Path
    proxy: int

    def url(self, *, through_proxy: bool) -> str:
        """What PAYDESK_DATABASE_URL says: HAProxy on this machine, or all servers."""
        servers = f"localhost:{self.proxy}" if through_proxy else ",".join(f"{one.front}:5432" for one in self.machines)
        return f"postgresql://paydesk:{PASSWORD}@{servers}/paydesk?sslmode=verify-full&sslrootcert={self.authority}"

    async def members(self, asked: Sequence[Machine] = ()) -> dict[str, Any]:
        """What the first Patroni that answers, of those asked or all, says:
        members by name, empty if none answers.
        """
        trusted = ssl.create_default_context(cafile=str(self.authority))
        async with aiohttp.ClientSession(timeout=HURRIED) as browser:
            for machine in asked or self.machines:
                try:
                    async with browser.get(f"https://{machine.front}:8008/cluster", ssl=trusted) as answer:
                        said = await answer.json()
                except (aiohttp.ClientError, OSError, TimeoutError):
                    continue
                return {member["name"]: member for member in said["members"]}
        return {}

    async def led_by_another(self, former: Machine) -> None:
        """Wait until the other machines say that one of them leads."""
        others = [machine for machine in self.machines if machine != former]

        async def led() -> bool:
            members = await self.members(others)
            return any(members.get(one.name, {}).get("role") == "leader" for one in others)

        await self.eventually(led, f"another than {former.name} leads")

    async def primary(self) -> Machine:
        """The machine that leads, once every machine follows it and one has all that it commits."""
        found: list[Machine] = []

        async def whole() -> bool:
            members = await self.members()
            found[:] = [one for one in self.machines if members.get(one.name, {}).get("role") == "leader"]
            roles = sorted(member["role"] for member in members.values())
            return roles == ["leader", "replica", "sync_standby"] and await self._all_receive(found[0])

        await self.eventually(whole, "all machines are there")
        return found[0]

    async def _all_receive(self, leader: Machine) -> bool:
        """Whether the others receive what the leader writes,
        and one of them before it is answered.
        """
        try:
            connection = await asyncpg.connect(self._at(leader), timeout=2)
        except (OSError, TimeoutError, asyncpg.PostgresError):
            return False
        try:
            states = await connection.fetch("select sync_state from pg_stat_replication where state = 'streaming'")
        finally:
            await connection.close(timeout=2)
        return sorted(row["sync_state"] for row in states) == ["async", "sync"]

    async def is_led_to(self) -> bool:
        """Whether HAProxy leads to the primary, as often as it is asked;
        it trusts all servers until it knows them.
        """
        try:
            for _ in self.machines:
                connection = await asyncpg.connect(self.url(through_proxy=True), timeout=2)
                follows = await connection.fetchval("select pg_is_in_recovery()")
                await connection.close(timeout=2)
                if follows:
                    return False
        except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
            return False
        return True

    def _at(self, machine: Machine) -> str:
        return f"postgresql://postgres:choose-another@{machine.front}/postgres?sslmode=verify-full&sslrootcert={self.authority}"

    async def eventually(self, condition: Callable[[], Awaitable[bool]], what: str) -> None:
        """Wait for what must come of the cluster, in whatever time a busy machine takes."""
        try:
            async with asyncio.timeout(PATIENCE):
                while not await condition():  # noqa: ASYNC110 (other processes send no event)
                    await asyncio.sleep(0.5)
        except TimeoutError:
            said = f"it never came to this: {what}\n{await self.members()}\n{self.tail()}"
            raise AssertionError(said) from None

    def tail(self) -> str:
        """What the machines' programs said last."""
        return "\n".join(machine.tail() for machine in self.machines)

    async def make_database(self) -> None:
        """Make the role and the database by the statements of the page."""
        (script,) = blocks("sql", DATABASE)
        connection = await asyncpg.connect(self._at(await self.primary()))
        try:
            for statement in filter(None, map(str.strip, script.split(";"))):
                await connection.execute(statement)
        finally:
            await connection.close()

    async def switch_over(self, primary: Machine) -> None:
        """Have another machine lead, by the commands of the page."""
        passwords, switchover = blocks("sh", COMMANDS)
        script = passwords.replace(". /etc/patroni_env.conf", ":") + switchover.replace("db1", primary.name)
        script = script.replace("/etc/patroni/config.yml", str(primary.folder / "config.yml"))
        await asyncio.to_thread(primary.run, script, _settings("patroni_env.conf", primary, self.machines))

    def start(self, machine: Machine) -> None:
        """Start what does not run on a machine, as its systemd would."""
        for program, words, env in (
            ("etcd", [], _settings("etcd", machine, self.machines)),
            ("patroni", [str(machine.folder / "config.yml")], _settings("patroni_env.conf", machine, self.machines)),
        ):
            if not machine.processes(program):
                machine.start([_found(program), *words], env)


def _found(program: str) -> str:
    """Where a program of Debian's is."""
    found = which(program, path="/usr/bin:/usr/sbin:/bin:/sbin")
    assert found, f"{program} is missing: `make test-ha` needs Debian's {NEEDED}, and root"
    return found


def _settings(file: str, machine: Machine, machines: list[Machine]) -> dict[str, str]:
    """A file of `deploy/patroni` as this machine has it:
    what names the first one alone is its own.
    """
    lines = (line for line in (DEPLOY / "patroni" / file).read_text().splitlines() if line and not line.startswith("#"))
    said = dict(line.split("=", 1) for line in lines)
    own = {name: value if "db2" in value else value.replace("db1", machine.name) for name, value in said.items()}
    return {name: _here(value, machine, machines) for name, value in own.items()}


def _here(text: str, machine: Machine, machines: list[Machine]) -> str:
    """A text of the files with the addresses and folders that it has here;
    nobody's hardware is reset.
    """
    places = {
        "/etc/paydesk-db": machine.folder / "keys",
        "/var/lib/postgresql/15/paydesk": machine.folder / "data",
        "/var/lib/postgresql/paydesk.pgpass": machine.folder / "pgpass",
        "/usr/lib/postgresql/15/bin": f"/usr/lib/postgresql/{VERSION}/bin",
        "/var/run/postgresql": machine.folder,
        "/var/lib/etcd/paydesk": machine.folder / "etcd",
        "mode: automatic": "mode: 'off'",
    }
    places |= {f"{one.name}.internal": one.back for one in machines}
    for there, here in places.items():
        text = text.replace(there, str(here))
    return text


def _make_certificates(machines: list[Machine], folder: Path) -> None:
    """An authority, and a certificate and key on each machine, by the commands of the page."""
    (script,) = blocks("sh", CERTIFICATES)
    addresses = ",".join(f"IP:{address}" for one in machines for address in (one.front, one.back))
    here = script.replace("DNS:localhost", f"DNS:localhost,{addresses}")
    subprocess.run(["sh", "-e", "-c", here], cwd=folder, check=True, capture_output=True)
    for machine in machines:
        keys = machine.folder / "keys"
        keys.mkdir()
        own = {f"{machine.name}.pem": "machine.pem", f"{machine.name}.key": "machine.key"}
        for made, name in ({"authority.pem": "authority.pem"} | own).items():
            shutil.copy(folder / made, keys / name)
            shutil.chown(keys / name, OWNER)
            (keys / name).chmod(0o600)
        shutil.chown(keys, OWNER)


@asynccontextmanager
async def clustered(machines: list[Machine], folder: Path) -> AsyncIterator[Cluster]:
    """The cluster at work, with an empty database and HAProxy in front,
    for the length of a block.
    """
    _make_certificates(machines, folder)
    cluster = Cluster(machines, folder / "authority.pem", free_port())
    for machine in machines:
        config = machine.folder / "config.yml"
        config.write_text(_here((DEPLOY / "patroni" / "config.yml").read_text(), machine, machines))
        config.chmod(0o644)
        cluster.start(machine)
    await cluster.make_database()
    async with _proxy(cluster, folder).running():
        await cluster.eventually(cluster.is_led_to, "HAProxy leads to the primary alone")
        yield cluster


def _proxy(cluster: Cluster, folder: Path) -> Kept:
    """HAProxy on this machine, by its file."""
    said = (DEPLOY / "haproxy" / "haproxy.cfg").read_text()
    for machine in cluster.machines:
        said = said.replace(f"{machine.name}.internal", machine.front)
    said = said.replace("/etc/paydesk-db/authority.pem", str(cluster.authority))
    said = said.replace("bind 127.0.0.1:5432", f"bind 127.0.0.1:{cluster.proxy}")
    (folder / "haproxy.cfg").write_text(said)
    command = [_found("haproxy"), "-db", "-f", str(folder / "haproxy.cfg")]
    return Kept("haproxy", command, environment({}), ready_event="")
