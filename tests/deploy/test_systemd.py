"""The units of deploy/systemd: systemd takes them, and they start, watch and stop Paydesk
as it is.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command

from paydesk.cli import command_line
from paydesk.commands.supervising import GRACE
from paydesk.loops.watching import STILL
from paydesk.settings import PREFIX, Settings

UNITS = Path(__file__).parents[2] / "deploy" / "systemd"
INSTANCES = ("paydesk-serve@8001.service", "paydesk-work@1.service", "paydesk-migrate.service")
PROGRAM = "/opt/paydesk/bin/paydesk"
EXPOSURE = 15
"""Tenths of what `systemd-analyze security` gives to a service that may do less than most."""

needs_systemd = pytest.mark.skipif(
    not shutil.which("systemd-analyze"), reason="systemd-analyze is missing: install Debian's systemd to test the units"
)


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """The units as they would be installed, with this environment's program in the place
    of theirs.
    """
    folder = tmp_path / "units"
    shutil.copytree(UNITS, folder)
    for unit in folder.glob("*.service"):
        unit.write_text(unit.read_text().replace(PROGRAM, str(Path(sys.executable).with_name("paydesk"))))
    return folder


def analyze(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    # The colon lets systemd's own units stand behind ours.
    environment = {**os.environ, "SYSTEMD_UNIT_PATH": f"{folder}:", "SYSTEMD_COLORS": "0"}
    command = ["systemd-analyze", "--no-pager", *words]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def texts(name: str) -> str:
    """A unit together with what stands in the directory for all."""
    return "\n".join(each.read_text() for each in (UNITS / name, *sorted(UNITS.glob("*/*.conf"))))


def values(text: str, key: str) -> list[str]:
    return re.findall(rf"^#?{key}=(.*)$", text, re.M)


@needs_systemd
def test_systemd_finds_nothing_wrong(installed: Path) -> None:
    ran = analyze(installed, "verify", "--man=no", *(str(installed / name) for name in INSTANCES))
    assert (ran.returncode, ran.stderr) == (0, "")


@needs_systemd
def test_systemd_would_see_a_mistake(installed: Path) -> None:
    drop_in = installed / "paydesk-.service.d" / "hardening.conf"
    drop_in.write_text(drop_in.read_text().replace("ProtectSystem=strict", "ProtectSystems=strict"))
    assert "ProtectSystems" in analyze(installed, "verify", "--man=no", str(installed / INSTANCES[0])).stderr


@needs_systemd
@pytest.mark.parametrize("name", INSTANCES)
def test_a_service_may_do_little_besides_its_work(installed: Path, name: str) -> None:
    ran = analyze(installed, "security", "--offline=true", f"--threshold={EXPOSURE}", str(installed / name))
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_the_units_start_commands_that_exist() -> None:
    context = get_command(command_line()).make_context("paydesk", [], resilient_parsing=True)
    units = list(UNITS.glob("*.service"))
    assert len(units) == 3
    for unit in units:
        (started,) = values(unit.read_text(), "ExecStart")
        program, command = started.split()
        assert program == PROGRAM
        assert get_command(command_line()).get_command(context, command) is not None  # type: ignore[attr-defined]


def test_the_units_set_settings_that_exist_and_each_secret_that_they_load() -> None:
    text = "\n".join(file.read_text() for file in UNITS.rglob("*") if file.is_file())
    given = dict(re.findall(r"(PAYDESK_[A-Z_]+)=(\S+)", text))
    files = {name for name, value in given.items() if value.startswith("%d/")}
    assert files == {f"{PREFIX}{name.upper()}_FILE" for name in Settings.secrets()}
    assert {name.removeprefix(PREFIX).lower() for name in set(given) - files} <= set(Settings.model_fields)
    loaded = {credential.partition(":")[0] for credential in values(text, "LoadCredential")}
    assert loaded == {given[name].removeprefix("%d/") for name in files}


@pytest.mark.parametrize("name", ["paydesk-serve@.service", "paydesk-work@.service"])
def test_the_units_leave_paydesk_the_time_that_it_takes(name: str) -> None:
    text = texts(name)
    (stop,), (watchdog,), (kind,) = (values(text, key) for key in ("TimeoutStopSec", "WatchdogSec", "Type"))
    assert kind == "notify"
    # It finishes requests, then ends the database; and it says where it stands still before it is
    # ended for it.
    assert int(stop) > 2 * GRACE
    assert int(watchdog) > STILL
    assert values(text, "Restart") == ["always"]
    assert values(text, "StartLimitIntervalSec") == ["0"], "a database that is away for long must not end it for good"


def test_the_command_hands_over_its_words_as_they_are(tmp_path: Path) -> None:
    fake = tmp_path / "systemd-run"
    fake.write_text("#!/bin/sh\nprintf '%s\\n' \"$@\"\nexit 3\n")
    fake.chmod(0o755)
    words = ["postgres", "psql", "-c", "select '$HOME',  \"a b\""]
    ran = subprocess.run(
        [UNITS / "paydesk", *words],
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 3
    handed = ran.stdout.splitlines()
    # systemd reads two dollar signs as one.
    assert handed[handed.index(PROGRAM) + 1 :] == [word.replace("$", "$$") for word in words]
    (name,) = (word.removeprefix("--unit=") for word in handed if word.startswith("--unit="))
    assert name.startswith("paydesk-"), "what the services may do is given to all units of that name"
    assert "--pipe" in handed
