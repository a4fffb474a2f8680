"""`paydesk serve` speaks TLS itself where a certificate is named:
for a proxy on another machine.
"""

from __future__ import annotations

import ssl
import sys
from pathlib import Path

import httpx
import pytest
from tests.certificates import own_certificate
from tests.lengths import long, one_of
from tests.processes import Kept, environment, eventually, free_port

from paydesk.adapters.vault import generate_key_setting, generate_secret
from paydesk.commands.serving import tls_options
from paydesk.core.errors import SetupError
from paydesk.settings import load_settings


@long
@pytest.mark.parametrize("workers", one_of(2, ["1", "2"]))
async def test_with_a_certificate_it_speaks_tls_within_its_limits_and_nothing_else(
    own_database_url: str, tmp_path: Path, workers: str
) -> None:
    own_certificate(tmp_path, "localhost")
    port = free_port()
    settings = {
        "SECRET_KEY": generate_secret(),
        "VAULT_KEYS": generate_key_setting(),
        "DATABASE_URL": own_database_url,
        "DATA_DIR": tmp_path / "data",
        "PORT": port,
        "METRICS_PORT": 0,
        "TLS_CERTIFICATE": tmp_path / "certificate.pem",
        "TLS_PRIVATE_KEY": tmp_path / "key.pem",
    }
    trusting = ssl.create_default_context(cafile=tmp_path / "certificate.pem")
    command = [sys.executable, "-m", "paydesk", "serve", "--workers", workers]
    async with (
        Kept("serve", command, environment(settings), "ready to answer").running() as serving,
        httpx.AsyncClient(verify=trusting) as proxy,
    ):
        await eventually(lambda: len(serving.ready) == int(workers), "it serves", serving.tail)
        assert (await proxy.get(f"https://localhost:{port}/readyz")).text == "ok"
        assert (await proxy.get(f"https://localhost:{port}/{'x' * 9000}")).status_code == 414
        with pytest.raises(httpx.RemoteProtocolError):
            await proxy.get(f"http://localhost:{port}/readyz")
        assert await serving.stop() == 0


def test_files_that_are_no_certificate_with_its_key_are_refused_in_one_line(tmp_path: Path) -> None:
    own_certificate(tmp_path, "localhost")
    other = tmp_path / "other"
    other.mkdir()
    own_certificate(other, "localhost")
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    for pair in (
        (tmp_path / "none", key),
        (certificate, tmp_path / "none"),
        ("", key),
        (certificate, other / "key.pem"),
    ):
        with pytest.raises(
            SetupError, match=r"PAYDESK_TLS_CERTIFICATE and PAYDESK_TLS_PRIVATE_KEY can.t be used"
        ) as why:
            tls_options(load_settings(tls_certificate=str(pair[0]), tls_private_key=str(pair[1])))
        assert "\n" not in why.value.message


def test_certificate_and_key_may_stand_in_one_file(tmp_path: Path) -> None:
    own_certificate(tmp_path, "localhost")
    both = tmp_path / "both.pem"
    both.write_bytes((tmp_path / "certificate.pem").read_bytes() + (tmp_path / "key.pem").read_bytes())
    assert tls_options(load_settings(tls_certificate=str(both))) == {"ssl_certfile": str(both), "ssl_keyfile": None}
    assert tls_options(load_settings()) == {}
