"""deploy/Containerfile and deploy/compose.yaml, as an operator starts them:
built and run, with nothing left out.

The tests share one composition, which starts in a minute or two; the last of them stops it.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import ssl
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import psutil
import pytest
from tests.deploy.composing import PATIENCE, Composition, read
from tests.deploy.images import HERE, ROOT, build_all
from tests.deploy.podman import Podman, podman_in
from tests.faults.customers import APPROVED, SECURE, Customer, Plan
from tests.processes import free_port

from paydesk_client import Gateway

pytestmark = pytest.mark.containers

SUBNET = "10.213.77.0/24"
SERVE, WORK = ("serve1", "serve2"), ("work1", "work2")
SHOP = "paydesk-test-shop"

READ_RECORD = (
    "import sqlite3, sys;"
    "sys.stdout.buffer.write(sqlite3.connect('/var/lib/paydesk/simulator/record.sqlite').serialize())"
)
WRITE_RECORD = (
    "import os, sys; os.makedirs('/var/lib/paydesk/simulator', 0o700);"
    "open('/var/lib/paydesk/simulator/record.sqlite', 'wb').write(sys.stdin.buffer.read())"
)
"""Programs that copy the simulated bank's record, whose last pages may be beside its file."""


@dataclass(frozen=True, slots=True)
class Town:
    """A running composition with a shop in its network, which has an account."""

    podman: Podman
    composition: Composition
    settings: Mapping[str, str]
    secrets: Path
    gateway: Gateway

    def acknowledged(self) -> set[str]:
        """The orders of whose payment the shop has heard."""
        lines = [json.loads(line) for line in self.podman.tell("logs", SHOP).splitlines()]
        assert not [line for line in lines if "refused" in line], lines
        return {line["order"] for line in lines if line["event"] == "payment"}

    def processes(self, service: str) -> list[psutil.Process]:
        """A service's processes, as this machine sees them."""
        first = psutil.Process(self.podman.inspect("inspect", self.composition.container(service))["State"]["Pid"])
        return [first, *first.children(recursive=True)]

    async def sell(self, orders: Sequence[str], meanwhile: Callable[[], None] = lambda: None) -> None:
        """Have a customer pay for each order through the proxy, while something happens;
        they try until they have.
        """
        trusted = ssl.create_default_context(cafile=self.secrets / "tls.pem")
        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=trusted), timeout=aiohttp.ClientTimeout(total=10)
        ) as web:
            plans = [Plan((SECURE,), ("approve",)) if n % 5 == 4 else Plan((APPROVED,)) for n in range(len(orders))]
            customers = [
                Customer(order, f"10.{n % 100:02}", plan, self.gateway, web)
                for n, (order, plan) in enumerate(zip(orders, plans, strict=True))
            ]
            async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as going_on:
                for customer in customers:
                    going_on.create_task(_until_paid(customer))
                going_on.create_task(asyncio.to_thread(meanwhile))
        assert [wrong for customer in customers for wrong in customer.wrong] == []

    async def hears_of(self, orders: Iterable[str]) -> None:
        """Wait until the shop has acknowledged these orders."""
        async with asyncio.timeout(PATIENCE):
            while not set(orders) <= self.acknowledged():  # noqa: ASYNC110 (a log sends no event)
                await asyncio.sleep(0.2)


async def _until_paid(customer: Customer) -> None:
    while not await customer.visit():  # noqa: ASYNC110 (a customer comes back after a while)
        await asyncio.sleep(0.5)


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    """Everything from an empty disk: images, secrets, composition,
    and a merchant whose pingbacks the shop takes.
    """
    folder = tmp_path_factory.mktemp("containers")
    deploy = folder / "deploy"
    shutil.copytree(ROOT / "deploy", deploy, ignore=shutil.ignore_patterns("secrets"))
    subprocess.run([deploy / "make-secrets.sh", "localhost"], check=True)
    with podman_in(folder / "podman") as podman:
        began = time.monotonic()
        settings = {**build_all(podman, folder / "images"), **_settings()}
        built = podman.inspect("image", "inspect", settings["PAYDESK_IMAGE"])
        _say(f"built in {time.monotonic() - began:.0f} s; Paydesk's image has {built['Size'] / 1e6:.0f} MB")
        composition = Composition(podman, deploy / "compose.yaml", settings)
        began = time.monotonic()
        composition.make_networks()
        composition.up()
        for service in (*SERVE, *WORK):
            composition.wait_until(service, healthy=True)
        _say(f"up in {time.monotonic() - began:.0f} s")
        gateway = _open_shop(podman, composition, settings)
        yield Town(podman, composition, settings, deploy / "secrets", gateway)


def _settings() -> dict[str, str]:
    """What an operator writes into .env."""
    port = free_port()
    return {
        "PAYDESK_BASE_URL": f"https://localhost:{port}",
        "PAYDESK_HTTPS_PORT": f"127.0.0.1:{port}",
        "PAYDESK_HTTP_PORT": f"127.0.0.1:{free_port()}",
        "PAYDESK_SUBNET": SUBNET,
        "PAYDESK_OUTBOUND_ALLOW": SUBNET,
        "PAYDESK_OPEN_FILES": "1024",
    }


def _open_shop(podman: Podman, composition: Composition, settings: Mapping[str, str]) -> Gateway:
    """Make an account, and start what takes its pingbacks in the inner network."""
    who = ("--name=Shop", "--email=owner@shop.example", f"--pingback-url=http://{SHOP}:8000/")
    made = json.loads(composition.command("merchant", "create", *who, "--json"))
    keys = made["public_key"], made["private_key"]
    where = f"--network={composition.project}_paydesk:alias={SHOP}", f"--volume={HERE / 'shop.py'}:/shop.py:ro"
    podman.run(
        *("run", "--detach", f"--name={SHOP}", "--no-healthcheck", *where, "--entrypoint=python"),
        *(settings["PAYDESK_IMAGE"], "/shop.py", *keys),
    )
    return Gateway(*keys, base_url=settings["PAYDESK_BASE_URL"])


def _say(text: str) -> None:
    """Tell whoever reads the test's output (`pytest -s`) what was measured."""
    print(f"\n{text}")


async def test_what_is_paid_through_the_proxy_reaches_the_shop(town: Town) -> None:
    orders = [f"first-{number}" for number in range(5)]
    await town.sell(orders)
    await town.hears_of(orders)


def test_no_process_is_root_or_may_do_what_others_may_not(town: Town) -> None:
    for service in town.composition.services.keys() - {"migrate"}:
        for process in town.processes(service):
            status = dict(
                line.split(":\t", 1)
                for line in Path(f"/proc/{process.pid}/status").read_text().splitlines()
                if ":\t" in line
            )
            assert "0" not in status["Uid"].split(), (service, process.cmdline())
            assert {int(status[name], 16) for name in ("CapPrm", "CapEff", "CapBnd", "CapAmb")} == {0}, service
            assert status["NoNewPrivs"] == "1", service
            assert status["Seccomp"] == "2", service


def test_root_file_systems_are_read_only(town: Town) -> None:
    for service in town.composition.services.keys() - {"migrate"}:
        mounts = Path(f"/proc/{town.processes(service)[0].pid}/mountinfo").read_text().splitlines()
        (root,) = [line.split() for line in mounts if line.split()[4] == "/"]
        assert "ro" in root[5].split(","), service


def test_no_secret_is_in_the_image_the_environment_or_the_log(town: Town) -> None:
    values = {part for file in town.secrets.iterdir() for part in _secret_parts(file.read_text())}
    assert len(values) >= 6
    image = town.podman.inspect("inspect", town.composition.container("serve1"))["ImageName"]
    shown = town.podman.tell("history", "--no-trunc", image) + town.podman.tell("image", "inspect", image)
    for service in town.composition.services:
        shown += town.podman.tell("inspect", town.composition.container(service)) + town.composition.logs(service)
        if service != "migrate":
            shown += "".join(str(process.environ()) + str(process.cmdline()) for process in town.processes(service))
    assert [value for value in values if value in shown] == []
    assert "PAYDESK_SECRET_KEY_FILE" in shown


def _secret_parts(text: str) -> list[str]:
    """What nobody may see of a file of secrets: its lines, of an address the password,
    of a key its second half.
    """
    return [line.split("@")[0].rpartition(":")[2] for line in text.splitlines() if line and "-----" not in line]


def test_metrics_are_for_the_inner_network_alone(town: Town) -> None:
    ask = "import sys, urllib.request as u; print(u.urlopen(sys.argv[1]).read().decode())"
    for service, metric in (("serve2", "paydesk_request_seconds"), ("work2", "paydesk_loop_last_turn")):
        said = town.podman.tell("exec", SHOP, "python", "-c", ask, f"http://{service}:8002/metrics")
        assert metric in said
    published = {
        service
        for service in town.composition.services
        if town.podman.tell("port", town.composition.container(service))
    }
    assert published == {"proxy"}


async def test_killed_containers_lose_nothing(town: Town) -> None:
    orders = [f"killed-{number}" for number in range(40)]

    def kill() -> None:
        time.sleep(1)
        for service in ("serve1", "work1"):
            # As the kernel does it when memory ends: podman has not asked for it.
            town.processes(service)[0].kill()

    await town.sell(orders, meanwhile=kill)
    await town.hears_of(orders)
    for service in ("serve1", "work1"):
        # Mostly podman has done so by itself.
        town.podman.run("start", town.composition.container(service))
        town.composition.wait_until(service, healthy=True)
    town.composition.command("check")


def test_health_is_lost_while_the_database_is_away(town: Town) -> None:
    database = town.composition.container("database")
    assert town.composition.is_healthy("serve1")
    town.podman.run("stop", database)
    town.composition.wait_until("serve1", healthy=False)
    town.podman.run("start", database)
    town.composition.wait_until("serve1", healthy=True)


async def test_everybody_pays_while_services_are_replaced_one_after_another(town: Town) -> None:
    def replace() -> None:
        for service in (*WORK, *SERVE):
            town.podman.run("restart", town.composition.container(service))
            town.composition.wait_until(service, healthy=True)

    orders = [f"replaced-{number}" for number in range(20)]
    await town.sell(orders, meanwhile=replace)
    await town.hears_of(orders)


def test_a_backup_is_restored_beside_by_one_off_commands(town: Town) -> None:
    # Debian's server is older than our pg_dump, which refuses it, so it is dumped by its own.
    dumping = "PGPASSWORD=$(cat /run/secrets/superuser_password) pg_dump --username=postgres --no-owner paydesk"
    dump = town.podman.run("exec", town.composition.container("database"), "sh", "-c", dumping).stdout
    settings = {**town.settings, "PAYDESK_SUBNET": "10.213.78.0/24"}
    beside = Composition(town.podman, town.secrets.parent / "compose.yaml", settings, project="restored")
    beside.make_networks()
    beside.start("database")
    beside.wait_until("database", healthy=True)
    beside.command("postgres", "psql", "--quiet", "--single-transaction", "--set=ON_ERROR_STOP=1", stdin=dump)
    # The bank goes on, whatever becomes of the database: its record is what the restored books are
    # compared with.
    record = town.composition.command("-c", READ_RECORD, entrypoint="python")
    beside.command("-c", WRITE_RECORD, entrypoint="python", stdin=record)
    erased = "/var/lib/paydesk/erasures.jsonl"
    beside.command(erased, entrypoint="tee")
    beside.command("customer", "erase", "--again-from", erased)
    beside.command("restored", "--since", "7d")
    beside.command("check")
    (shop,) = json.loads(beside.command("merchant", "list", "--json"))
    assert shop["public_key"] == town.gateway.public_key
    town.podman.run("rm", "--force", beside.container("database"))


def test_everything_stops_gracefully(town: Town) -> None:
    names = [name for name in town.composition.services if name != "migrate"]
    for service in sorted(names, key=["proxy", *SERVE, *WORK, "database"].index):
        name = town.composition.container(service)
        town.podman.run("stop", name)
        assert town.podman.inspect("inspect", name)["State"]["ExitCode"] == 0, town.composition.logs(service)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("read_only: true", "readonly: true"),
        ("secrets: [tls.pem]", "secrets: [tls.key]"),
        ("serve1: {condition: service_healthy}", "serve3: {condition: service_healthy}"),
        ("    start_period: 60s", "    start_time: 60s"),
        ("- data:/var", "- date:/var"),
    ],
)
def test_a_slip_in_the_composition_is_found(right: str, wrong: str, tmp_path: Path) -> None:
    written = (ROOT / "deploy" / "compose.yaml").read_text()
    assert right in written
    file = tmp_path / "compose.yaml"
    environment = {"PAYDESK_BASE_URL": "https://pay.example"}
    file.write_text(written)
    read(file, environment)
    file.write_text(written.replace(right, wrong, 1))
    with pytest.raises(ValueError):
        read(file, environment)


def test_an_address_must_be_given() -> None:
    with pytest.raises(ValueError, match="PAYDESK_BASE_URL"):
        read(ROOT / "deploy" / "compose.yaml", {})
