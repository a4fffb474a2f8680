import os
import subprocess
import sys
import time
from urllib.parse import urlsplit

import pytest
from tests.processes import free_port
from tests.servers import answering


def probe(role: str, **settings: object) -> tuple[int, str]:
    """Exit status and error line of a probe."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PAYDESK_")}
    given = {f"PAYDESK_{name.upper()}": str(value) for name, value in settings.items()}
    # A proxy for everything must not be asked for what is on this machine.
    environment |= {"http_proxy": "http://127.0.0.1:1", **given}
    command = [sys.executable, "-m", "paydesk.commands.probing", role]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True)
    return ran.returncode, ran.stderr.strip()


@pytest.mark.parametrize(("status", "expected"), [(200, (0, "")), (503, (1, "/readyz: 503 no writes"))])
def test_a_web_service_is_as_healthy_as_it_says(status: int, expected: tuple[int, str]) -> None:
    with answering(status, b"no writes", at="/readyz") as (address, _):
        assert probe("serve", port=urlsplit(address).port) == expected


@pytest.mark.parametrize(("seconds", "expected"), [(5, ""), (900, "the event loop stands still for 90")])
def test_a_worker_is_healthy_while_its_heart_beats(seconds: int, expected: str) -> None:
    beat = f'paydesk_heartbeat_timestamp_seconds{{process="work"}} {time.time() - seconds}\n'
    page = f"# HELP paydesk_heartbeat_timestamp_seconds When\n{beat}".encode()
    with answering(200, page, at="/metrics") as (address, _):
        status, said = probe("work", metrics_port=urlsplit(address).port)
    assert (status, bool(said)) == (int(bool(expected)), bool(expected))
    assert said.startswith(expected)


def test_nobody_there_is_not_healthy() -> None:
    for role in ("serve", "work"):
        status, said = probe(role, port=(port := free_port()), metrics_port=port)
        assert status == 1
        assert said.startswith("no answer: ")


def test_a_worker_without_a_heartbeat_is_not_healthy() -> None:
    with answering(200, b"", at="/metrics") as (address, _):
        assert probe("work", metrics_port=urlsplit(address).port) == (1, "/metrics: 200, without a heartbeat")


def test_a_role_that_there_is_not_is_refused() -> None:
    assert probe("rest") == (1, "usage: python -m paydesk.commands.probing serve|work")
