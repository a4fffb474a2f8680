import subprocess
import sys
from pathlib import Path

import pytest
from tests.lengths import long

from paydesk.commands import postgres
from paydesk.commands.postgres import DatabaseProgram, _require_no_older_server, without_password
from paydesk.core.errors import SetupError

PAYDESK = [str(Path(sys.executable).with_name("paydesk")), "postgres"]


@pytest.mark.parametrize(
    ("address", "bare", "password"),
    [
        ("postgresql://me:p%40ss@db:5/pay?sslmode=require", "postgresql://me@db:5/pay?sslmode=require", "p@ss"),
        ("postgresql://me@db/pay", "postgresql://me@db/pay", None),
        ("postgresql://paydesk@/paydesk?host=%2Fdata", "postgresql://paydesk@/paydesk?host=%2Fdata", None),
    ],
)
def test_the_password_is_not_in_the_list_of_processes(address: str, bare: str, password: str | None) -> None:
    assert without_password(address) == (bare, {"PGPASSWORD": password} if password else {})


@long
def test_the_programs_exit_status_and_output_come_through(server_url: str) -> None:
    environment = {"PAYDESK_DATABASE_URL": server_url}
    psql = [*PAYDESK, "psql", "--no-psqlrc", "-Atc"]
    right = subprocess.run([*psql, "select 6 * 7"], env=environment, capture_output=True, text=True)
    wrong = subprocess.run([*psql, "select nothing"], env=environment, capture_output=True, text=True)
    assert (right.returncode, right.stdout) == (0, "42\n")
    assert (wrong.returncode, wrong.stdout) == (1, "")


def test_other_programs_are_refused() -> None:
    assert subprocess.run([*PAYDESK, "dropdb"], capture_output=True, text=True).returncode == 2


async def test_an_older_server_is_not_dumped_by_programs_whose_dumps_it_can_not_read(
    server_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "MAJOR_VERSION", "1")
    await _require_no_older_server(DatabaseProgram.PG_DUMP, server_url)
    monkeypatch.setattr(postgres, "MAJOR_VERSION", "99")
    with pytest.raises(SetupError, match="use the pg_dump of PostgreSQL"):
        await _require_no_older_server(DatabaseProgram.PG_DUMP, server_url)
