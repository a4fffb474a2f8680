from __future__ import annotations

import ssl

import pytest

from paydesk.core.errors import SetupError
from paydesk.database.pool import connected
from paydesk.database.tls import database_tls


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me@localhost/pay",
        "postgresql://me:p%40ss@127.0.0.1:5432/pay?sslmode=disable",
        "postgresql://me@[::1]:5432/pay",
        "postgresql:///pay",
        "postgresql://me@/pay?host=%2Frun%2Fpostgresql&port=5432",
        "postgresql://me@localhost:5432,127.0.0.1:5433/pay",
    ],
)
def test_over_loopback_the_address_decides(url: str) -> None:
    assert database_tls(url) is None


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:secret@db.internal/pay",
        "postgresql://me@10.1.2.3:5432/pay",
        "postgresql://me@127.0.0.1,db.internal/pay",
        "postgresql://me@localhost/pay?host=db.internal",
        "postgresql://me@localhost.evil.example/pay",
    ],
)
def test_elsewhere_the_server_proves_its_name(url: str) -> None:
    context = database_tls(url)
    assert context is not None
    assert (context.check_hostname, context.verify_mode) == (True, ssl.CERT_REQUIRED)


def test_an_authority_of_the_operators_own_is_the_drivers_business() -> None:
    assert database_tls("postgresql://me@db/pay?sslmode=verify-full&sslrootcert=/etc/ssl/own.pem") is None


@pytest.mark.parametrize("mode", ["disable", "allow", "prefer", "require", "verify-ca"])
async def test_a_mode_that_takes_any_server_is_refused_before_anything_is_sent(mode: str) -> None:
    with pytest.raises(SetupError, match=f"sslmode={mode}, which") as refused:
        async with connected(f"postgresql://me:secret@db.invalid/pay?sslmode={mode}"):
            pass
    assert "secret" not in refused.value.message
