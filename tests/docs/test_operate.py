import os
import re
import shlex
import stat
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from shutil import which
from typing import Any

import pytest
from prometheus_client import REGISTRY
from tests import set_back
from tests.lengths import long
from tests.shopfront import buy

import paydesk.app  # for the metrics that it, the server around it and the worker register
import paydesk.commands.serving
import paydesk.worker
from paydesk.adapters.vault import Vault, generate_key_setting, generate_secret
from paydesk.commands.settings_table import settings_table
from paydesk.core.clock import utc_now
from paydesk.database.embedded import server_for
from paydesk.database.migrating import migrate
from paydesk.database.pool import Database, connected
from paydesk.domain.merchants.keys import pairs_of
from paydesk.domain.merchants.merchant import Merchant, create_merchant, shop_of
from paydesk.domain.operations.remembered_accounts import (
    RememberedAccount,
    accounts_file,
    recall_accounts,
    remember_accounts,
)
from paydesk.equipment import payment_desk, vault_of
from paydesk.equipment import test_acquirer as open_bank
from paydesk.settings import FILE, Settings, load_settings
from paydesk.web.connections.limits import LARGEST_BODY, PROXY_IDLE_SECONDS

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
PAGE = (ROOT / "docs" / "operate.md").read_text()
BACKUPS = "/var/backups"
DATA, RESTORED = "/var/lib/paydesk", "/var/lib/paydesk-restored"
TABLE = settings_table()
SERVED = RememberedAccount("stripe", True, "acct_1", utc_now())


def blocks(language: str, heading: str) -> list[str]:
    """The code blocks of a language under a heading."""
    section = re.split(r"^## ", PAGE.split(f"\n## {heading}\n", 1)[1], maxsplit=1, flags=re.M)[0]
    return re.findall(rf"^```{language}\n(.*?)^```$", section, re.M | re.S)


def run(script: str, **environment: str) -> str:
    """Run a block as an operator's shell would, with the environment's programs first."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PAYDESK_")}
    ran = subprocess.run(
        ["sh", "-e", "-c", script], env={**kept, "PATH": path, **environment}, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def test_the_settings_table_is_what_the_settings_say() -> None:
    assert TABLE in PAGE, f"replace the table in docs/operate.md by:\n\n{TABLE}\n"


def test_every_metric_is_explained_and_no_other() -> None:
    registered = {
        f"{family.name}_total" if family.type == "counter" else family.name
        for family in REGISTRY.collect()
        if family.name.startswith("paydesk_")
    }
    assert (paydesk.app.__name__, paydesk.worker.__name__) == ("paydesk.app", "paydesk.worker")
    assert set(re.findall(r"^\| `(paydesk_\w+)", PAGE, re.M)) == registered


def test_alerts_and_dashboard_name_metrics_that_exist() -> None:
    explained = set(re.findall(r"^\| `(paydesk_\w+)", PAGE, re.M))
    for file in ("prometheus/paydesk.rules.yml", "grafana/paydesk.json"):
        named = set(re.findall(r"paydesk_\w+", (DEPLOY / file).read_text()))
        assert {re.sub(r"_(count|bucket|sum)$", "", name) for name in named} <= explained


def test_each_alert_has_its_page_and_each_page_its_alert() -> None:
    rules = (DEPLOY / "prometheus" / "paydesk.rules.yml").read_text()
    alerts = re.findall(r"alert: (\w+)", rules)
    assert re.findall(r"^## (\w+)$", (ROOT / "docs" / "runbooks.md").read_text(), re.M) == alerts
    assert re.findall(r"runbook: docs/runbooks.md#(\w+)", rules) == [alert.lower() for alert in alerts]


@long
@pytest.mark.skipif(not which("promtool"), reason="promtool is missing: install Debian's prometheus to test the alerts")
def test_each_alert_rises_for_what_is_wrong_and_none_while_all_is_well() -> None:
    tested = (DEPLOY / "prometheus" / "paydesk.rules.test.yml").read_text()
    alerts = re.findall(r"alert: (\w+)", (DEPLOY / "prometheus" / "paydesk.rules.yml").read_text())
    assert re.findall(r"alertname: (\w+)", tested) == alerts * 2, "each is tried once quiet and once raised"
    ran = subprocess.run(
        ["promtool", "test", "rules", "paydesk.rules.test.yml"],
        cwd=DEPLOY / "prometheus",
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_the_proxies_let_go_of_connections_before_the_service_does() -> None:
    proxies = [*blocks("caddy", "Reverse proxy and TLS"), (DEPLOY / "haproxy" / "web.cfg").read_text()]
    kept = [int(seconds) for one in proxies for seconds in re.findall(r"(?:keepalive|pool-purge-delay) ([0-9]+)s", one)]
    assert len(kept) == 2
    assert max(kept) < PROXY_IDLE_SECONDS


def test_the_proxies_let_through_whatever_the_service_takes() -> None:
    """A file that proves a delivery to a bank is larger than all else."""
    told = [(DEPLOY / "haproxy" / name).read_text() for name in ("web.cfg", "cells.cfg")]
    told += blocks("nginx", "Reverse proxy and TLS") + blocks("caddy", "Reverse proxy and TLS")
    limits = {r"req\.body_size gt ([0-9]+)": 1, r"client_max_body_size ([0-9]+)m": 2**20, r"max_size ([0-9]+)MB": 10**6}
    found = [int(size) * unit for limit, unit in limits.items() for one in told for size in re.findall(limit, one)]
    assert len(found) == 4
    assert min(found) > LARGEST_BODY


def test_debians_haproxy_is_told_of_both_files_and_keeps_its_own_options() -> None:
    unit = Path("/lib/systemd/system/haproxy.service")
    if not unit.exists():
        pytest.skip("install Debian's haproxy to read its unit")
    said = unit.read_text()
    (its_own,) = re.findall(r"^Environment=(.*)", said, re.M)
    variables = dict(one.split("=", 1) for one in shlex.split(its_own))
    (told,) = re.findall(r"^ +```ini\n(.*?)^ +```$", PAGE, re.M | re.S)
    kept = variables["EXTRAOPTS"]
    variables |= dict(one.split("=", 1) for one in shlex.split(told))
    (start,) = re.findall(r"^ExecStart=(.*)", said, re.M)
    words = re.sub(r"\$(\w+)", lambda name: variables[name[1]], start).split()
    files = [after for word, after in pairwise(words) if word == "-f"]
    assert files == ["/etc/haproxy/cells/keys.cfg", "/etc/haproxy/cells.cfg"]
    assert kept in " ".join(words)


def test_the_commands_that_install_the_units_install_all_of_them(tmp_path: Path) -> None:
    install, secrets, start = blocks("sh", "systemd")
    for folder in ("systemd/system", "paydesk/secrets"):
        (tmp_path / "etc" / folder).mkdir(parents=True)
    (tmp_path / "usr" / "local" / "sbin").mkdir(parents=True)
    here = re.sub(r"^system\S+.*\n", "", install, flags=re.M).replace("/etc/", f"{tmp_path}/etc/")
    run(f"cd {ROOT}\n" + here.replace("/usr/", f"{tmp_path}/usr/"))
    run(secrets.replace("/etc/", f"{tmp_path}/etc/").replace("/opt/paydesk/bin/python", sys.executable))

    units = DEPLOY / "systemd"
    placed = {file.name: file.read_text() for file in tmp_path.rglob("*") if file.is_file()}
    kept = {"paydesk.sysusers": "paydesk.conf", "paydesk.tmpfiles": "paydesk.conf"}
    assert {kept.get(file.name, file.name) for file in units.rglob("*") if file.is_file()} <= set(placed)
    keys = Vault.from_settings(placed["vault_keys"].strip(), placed["secret_key"].strip())
    assert keys.current_key_id
    assert all(stat.S_IMODE(file.stat().st_mode) == 0o600 for file in (tmp_path / "etc/paydesk/secrets").iterdir())
    named = re.findall(r"^LoadCredential=\w+:/etc/paydesk/secrets/(\w+)$", placed["secrets.conf"], re.M)
    assert set(named) == {file.name for file in (tmp_path / "etc/paydesk/secrets").iterdir()}
    started = re.findall(r"(paydesk-\w+@?)\w*", start)
    assert {f"{name}.service" for name in started} == {unit.name for unit in units.glob("*.service")}


def test_the_commands_that_make_keys_make_working_ones() -> None:
    (script,) = blocks("sh", "Settings")
    settings = dict(line.split("=", 1) for line in run(script).splitlines())
    vault = Vault.from_settings(settings["PAYDESK_VAULT_KEYS"], settings["PAYDESK_SECRET_KEY"])
    sealed = vault.seal(b"secret", purpose="test", merchant_id=1, row_id=1)
    assert vault.open(sealed, purpose="test", merchant_id=1, row_id=1) == b"secret"


EMPTIES_ITS_FILE = """#!/bin/sh
for each; do case $each in --file=*) : > "${each#--file=}" ;; esac; done
echo half of it
exit 1
"""
"""A dump that fails after it has begun its file, as pg_dump does before it reaches the server."""


@pytest.mark.parametrize("heading", ["In containers", "Backups", "Backups of a real server"])
def test_a_dump_that_fails_leaves_the_one_before(heading: str, tmp_path: Path) -> None:
    (script,) = [each for each in blocks("sh", heading) if "pg_dump" in each]
    for name in ("paydesk", "paydesk-keys", "secrets", "bin"):
        (tmp_path / name).mkdir()
    for program in ("paydesk", "pg_dump", "docker"):
        (tmp_path / "bin" / program).write_text(EMPTIES_ITS_FILE)
        (tmp_path / "bin" / program).chmod(0o755)
    of_before = [tmp_path / "paydesk" / "paydesk.dump", tmp_path / "paydesk-keys" / "erasures.jsonl"]
    for file in (*of_before, tmp_path / FILE):
        file.write_text("of before")
    here = script.replace(DATA, str(tmp_path)).replace(BACKUPS, str(tmp_path))
    environment = {"PATH": f"{tmp_path}/bin:{os.environ['PATH']}", "PAYDESK_DATABASE_URL": ""}
    assert subprocess.run(["sh", "-c", here], cwd=tmp_path, env=environment, capture_output=True).returncode == 1
    assert [file.read_text() for file in of_before] == ["of before"] * 2


async def paid_in_test_mode(database: Database, settings: Settings, merchant: Merchant, order: str) -> dict[str, int]:
    """A customer pays an order at the simulated bank; its payment's id by the order."""
    bank = open_bank(settings)
    try:
        desk = payment_desk(settings, database, vault_of(settings), bank)
        return {order: await buy(desk, shop_of(merchant, live=False), order, email="eve@example.com")}
    finally:
        await bank.close()


@long
async def test_a_backup_made_while_it_runs_is_restored_with_its_keys(tmp_path: Path) -> None:
    backup, restore = (
        block.replace(RESTORED, str(tmp_path / "restored"))
        .replace(DATA, str(tmp_path / "data"))
        .replace(BACKUPS, f"{tmp_path}")
        for block in blocks("sh", "Backups")[:2]
    )
    for folder in ("data", "paydesk", "paydesk-keys"):
        (tmp_path / folder).mkdir(mode=0o700)
    secret, key = generate_secret(), generate_key_setting()
    kept: dict[str, Any] = {"secret_key": secret, "vault_keys": key, "idempotency_secret": generate_secret()}
    vault = Vault.from_settings(key, secret)
    lines = [f"PAYDESK_{name.upper()}={value}\n" for name, value in kept.items()]
    (tmp_path / "data" / FILE).write_text("".join(lines))
    settings = load_settings(data_dir=tmp_path / "data", simulator_latency=0.0, **kept)

    async with server_for(tmp_path / "data") as server, connected(server.url, most=4) as database:
        await migrate(database)
        made = await create_merchant(database, vault, name="Shop", email="owner@shop.example", now=utc_now())
        for name in ("ada", "grace"):
            await set_back.customer(database, made.id, f"{name}@example.com")
        paid = await paid_in_test_mode(database, settings, made, "before")
        run(backup)
        paid |= await paid_in_test_mode(database, settings, made, "after")
        remember_accounts(accounts_file(tmp_path / "data"), "a deployment", {"second": SERVED})
        run(
            f"paydesk customer erase {made.id} --email ada@example.com --yes",
            PAYDESK_DATA_DIR=str(tmp_path / "data"),
            PAYDESK_ERASURE_LIST=str(tmp_path / "paydesk-keys" / "erasures.jsonl"),
        )
    run(restore)

    (rotation,) = blocks("sh", "Keys")
    async with server_for(tmp_path / "restored") as server, connected(server.url, most=2) as database:
        assert await pairs_of(database, vault, made.id) == [(made.public_key, made.private_key)]
        emails = [row["email"] for row in await database.fetch("select email from customer where live order by id")]
        rows = await database.fetch("select merchant_order_id, id from payment where state = 'captured'")
        known = await database.fetchval("select count(*) from pg_stats where tablename = 'payment'")
        remembered = recall_accounts(accounts_file(tmp_path / "restored"))
        counted = run(rotation, PAYDESK_DATA_DIR=str(tmp_path / "restored"))
    assert emails == ["erased", "grace@example.com"], "who was erased after the backup is erased again"
    assert dict(map(tuple, rows)) == paid, "what the bank took in test mode is no difference"
    assert known, "the planner knows the tables"
    assert remembered["a deployment"] == {"second": SERVED}, "no account that served is forgotten"
    assert re.search(rf"merchant_key.private_key_sealed +{vault.current_key_id} +1 +newest", counted)
