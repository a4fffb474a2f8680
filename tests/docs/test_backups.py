"""A real server's backups, by Debian's own programs and the commands of the page:
what was paid since comes back.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import pytest
from tests import set_back
from tests.docs.test_operate import blocks, run
from tests.lengths import long
from tests.processes import eventually, free_port
from tests.shopfront import buy
from tests.standings import standings

from paydesk.adapters.acquirers.simulator import Record
from paydesk.adapters.vault import generate_key_setting, generate_secret
from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict
from paydesk.database.migrating import migrate
from paydesk.database.pool import Database, connected
from paydesk.domain.merchants.merchant import create_merchant, shop_of
from paydesk.domain.merchants.shop import Shop
from paydesk.equipment import payment_desk, vault_of
from paydesk.equipment import test_acquirer as open_bank
from paydesk.settings import Settings, load_settings

ROOT = os.geteuid() == 0
VERSION = max((int(one.name) for one in Path("/usr/lib/postgresql").glob("*")), default=0)
SUPERUSER = "postgres" if ROOT else pwd.getpwuid(os.geteuid()).pw_name
SECRETS = ("secret_key", "idempotency_secret", "vault_keys")
MOMENT, BASE_OF = "2026-01-17 14:05:00+00", "2026-01-10"  # of the page
(ARCHIVE, BASE, DUMP, FROM_BASE, FROM_DUMP, AFTERWARDS) = blocks("sh", "Backups of a real server")

pytestmark = pytest.mark.skipif(
    not VERSION or not shutil.which("pg_createcluster"), reason="Debian's PostgreSQL is missing: apt install postgresql"
)


@dataclass(frozen=True, slots=True)
class Server:
    """Debian's cluster `main`, with all its files in a folder;
    its cluster `restored` gets the second port.
    """

    folder: Path
    ports: tuple[int, int]

    def run(self, script: str, port: int = 0) -> str:
        """Run a script of the page as the database's own user, with our places."""
        places = {
            "/var/backups": f"{self.folder}/backups",
            "/var/lib/postgresql/15": f"{self.folder}/lib",
            "pg_createcluster ": f"pg_createcluster --port={self.ports[1]} --socketdir={self.folder}"
            f" --logfile={self.folder}/restored.log ",
            " 15 ": f" {VERSION} ",
        }
        for there, here in places.items():
            script = script.replace(there, here)
        known = {"PGHOST": str(self.folder), "PGPORT": str(port or self.ports[0]), "PGDATABASE": "postgres"}
        own = {"PG_CLUSTER_CONF_ROOT": f"{self.folder}/etc", "HOME": str(self.folder), "PATH": "/usr/bin:/bin"}
        become = ["setpriv", f"--reuid={SUPERUSER}", f"--regid={SUPERUSER}", "--init-groups", "--"] if ROOT else []
        ran = subprocess.run(
            [*become, "sh", "-e", "-c", script], env=own | known, cwd=self.folder, capture_output=True, text=True
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout

    def url(self, port: int, database: str = "paydesk") -> str:
        """The address of a database of the operator's role."""
        return f"postgresql://paydesk:choose-one@127.0.0.1:{port}/{database}"


@pytest.fixture
def server() -> Iterator[Server]:
    """A server with an empty database, whose log is archived as the page says."""
    made = Server(Path(tempfile.mkdtemp(prefix="paydesk-backups-")), (free_port(), free_port()))
    for name in ("lib", "etc", "backups", "backups/paydesk-wal", "backups/paydesk-base"):
        (made.folder / name).mkdir()
    if ROOT:
        for path in (made.folder, *made.folder.rglob("*")):
            shutil.chown(path, SUPERUSER, SUPERUSER)
    try:
        main = f"--datadir={made.folder}/lib/main --port={made.ports[0]}"
        made.run(f"pg_createcluster {main} 15 main".replace(f"--port={made.ports[1]}", ""))
        made.run("pg_ctlcluster 15 main start")
        role, *_ = blocks("sql", "What there is to start")
        for statement in filter(None, role.split("\n")):
            made.run(f'psql --command="{statement}"')
        made.run(ARCHIVE)
        yield made
    finally:
        for name in ("main", "restored"):
            made.run(f"pg_ctlcluster 15 {name} stop --mode immediate || true")
        shutil.rmtree(made.folder)


@dataclass(frozen=True, slots=True)
class Deployment:
    """A shop on a server, whose bank keeps its own record."""

    settings: Settings
    shop: Shop

    async def buy(self, database: Database, order: str) -> int:
        """A customer pays 10 USD; the payment's id, as the shop is told.

        Raises: Conflict if the order is paid.
        """
        bank = open_bank(self.settings)
        desk = payment_desk(self.settings, database, vault_of(self.settings), bank)
        try:
            return await buy(desk, self.shop, order)
        finally:
            await bank.close()

    async def payments(self, database: Database) -> dict[str, int]:
        """The ids of captured payments by order."""
        rows = await database.fetch("select merchant_order_id, id from payment where state = 'captured'")
        return {row["merchant_order_id"]: row["id"] for row in rows}

    def taken(self) -> list[Decimal]:
        """What the bank took, by its own record."""
        record = Record(self.settings.simulator_record)
        try:
            return [standing.net for standing in standings(record.operations()).values() if standing.net]
        finally:
            record.close()

    def environment(self, url: str, erasures: Path) -> dict[str, str]:
        """The settings, as an operator's shell has them, with a database that was restored."""
        secret = {name: getattr(self.settings, name).get_secret_value() for name in SECRETS}
        named = secret | {"data_dir": str(self.settings.data_dir), "database_url": url, "erasure_list": str(erasures)}
        return {f"PAYDESK_{name.upper()}": value for name, value in named.items()}


@pytest.fixture
async def deployment(server: Server, tmp_path: Path) -> Deployment:
    """A shop on the server, with a customer who will want to be forgotten."""
    settings = load_settings(
        data_dir=tmp_path,
        database_url=server.url(server.ports[0]),
        simulator_latency=0.0,
        secret_key=generate_secret(),
        idempotency_secret=generate_secret(),
        vault_keys=generate_key_setting(),
    )
    async with connected(settings.database_url, most=2) as database:
        await migrate(database)
        vault = vault_of(settings)
        merchant = await create_merchant(database, vault, name="Shop", email="owner@shop.example", now=utc_now())
        await set_back.customer(database, merchant.id, "grace@example.com")
    return Deployment(settings, shop_of(merchant, live=False))


async def go_on(deployment: Deployment, url: str, told: dict[str, int], erasures: Path) -> None:
    """Do what the page says after a restore, and see that nothing which was told is lost,
    and nothing is paid twice.
    """
    said = run(
        AFTERWARDS.replace("/var/backups/paydesk-keys/erasures.jsonl", str(erasures)),
        **deployment.environment(url, erasures),
    )
    assert "go on behind a gap" in said
    assert f"the payment of 10.00 USD for order after, captured there, as payment {told['after']}\n" in said
    async with connected(url, most=2) as database:
        assert await deployment.payments(database) == told, "what the bank knows is adopted, as the shop was told"
        with pytest.raises(Conflict, match="paid"):
            await deployment.buy(database, "after")
        assert await deployment.buy(database, "next") > 10_000_000 + max(told.values()), "no id comes twice"
        emails = await database.fetch("select email from customer where first_name = 'G' or email = 'erased'")
    assert [row["email"] for row in emails] == ["erased"], "who was erased since is erased again"
    assert deployment.taken() == [Decimal("10.00")] * 3


@long
async def test_a_server_is_put_back_to_a_moment_and_what_was_paid_since_is_adopted(
    server: Server, deployment: Deployment, tmp_path: Path
) -> None:
    erasures = tmp_path / "erasures.jsonl"
    server.run(BASE)
    async with connected(deployment.settings.database_url, most=2) as database:
        told = {"before": await deployment.buy(database, "before")}
        moment = await database.fetchval("select clock_timestamp()")
        told |= {"after": await deployment.buy(database, "after")}
    erase(deployment, erasures)
    await archived(server)
    server.run("pg_ctlcluster 15 main stop --mode immediate")
    (base,) = (server.folder / "backups" / "paydesk-base").iterdir()
    server.run(FROM_BASE.replace(MOMENT, moment.isoformat(sep=" ")).replace(BASE_OF, base.name))
    url = server.url(server.ports[1])
    async with connected(url, most=1) as database:
        assert await deployment.payments(database) == {"before": told["before"]}
    await go_on(deployment, url, told, erasures)


@long
async def test_a_dump_is_restored_and_what_was_paid_since_is_adopted(
    server: Server, deployment: Deployment, tmp_path: Path
) -> None:
    erasures, dumps = tmp_path / "erasures.jsonl", server.folder / "backups" / "paydesk"
    dumps.mkdir()
    async with connected(deployment.settings.database_url, most=2) as database:
        told = {"before": await deployment.buy(database, "before")}
        environment = deployment.environment(server.url(server.ports[0]), erasures)
        run(DUMP.replace("/var/backups/paydesk", str(dumps)), **environment)
        told |= {"after": await deployment.buy(database, "after")}
    erase(deployment, erasures)
    if ROOT:
        shutil.chown(dumps / "paydesk.dump", SUPERUSER)
    server.run(FROM_DUMP)
    await go_on(deployment, server.url(server.ports[0], "paydesk_restored"), told, erasures)


def erase(deployment: Deployment, erasures: Path) -> None:
    """A customer is forgotten, after the backup was made."""
    run(
        f"paydesk customer erase {deployment.shop.merchant_id} --email grace@example.com --yes",
        **deployment.environment(deployment.settings.database_url, erasures),
    )


async def archived(server: Server) -> None:
    """Wait until all that was written so far is in the archive."""
    segment = server.run("psql --tuples-only --no-align --command='select pg_walfile_name(pg_switch_wal())'").strip()
    archive = server.folder / "backups" / "paydesk-wal"
    await eventually(lambda: (archive / segment).exists(), "the log is archived")
