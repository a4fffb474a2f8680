"""A secret may stand in a file; whoever gets that wrong is told which setting and file,
never what is in it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from structlog.testing import capture_logs
from tests.lengths import long
from tests.processes import Kept, environment, eventually, free_port

from paydesk.adapters.vault import generate_key_setting, generate_secret
from paydesk.commands.settings_table import settings_table
from paydesk.commands.starting import warn_of_open_secrets
from paydesk.core.errors import SetupError
from paydesk.settings import FILE, Settings, load_settings

SECRET = "a-secret-that-no-message-may-show"


@pytest.fixture(autouse=True)
def data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A deployment whose environment names a data directory and nothing else."""
    for name in os.environ:
        if name.startswith("PAYDESK_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PAYDESK_DATA_DIR", str(tmp_path))
    return tmp_path


def written(path: Path, content: str | bytes = f"{SECRET}\n", *, mode: int = 0o600) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    path.chmod(mode)
    return path


def test_each_secret_may_stand_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = {
        "secret_key",
        "idempotency_secret",
        "vault_keys",
        "database_url",
        "smtp_url",
        "stripe_secret_key",
        "stripe_webhook_secret",
    }
    assert secrets <= Settings.secrets()
    for name in Settings.secrets():
        content = "postgresql://paydesk:pass@127.0.0.1/paydesk" if name == "database_url" else f"{name}-value"
        monkeypatch.setenv(f"PAYDESK_{name.upper()}_FILE", str(written(tmp_path / name, f"{content}\n")))
        assert f"| `PAYDESK_{name.upper()}` or `…_FILE` |" in settings_table()
    settings = load_settings()
    assert settings.database_url == "postgresql://paydesk:pass@127.0.0.1/paydesk"
    assert settings.home_database_url == "home_database_url-value"
    for name in Settings.secrets() - {"database_url", "home_database_url"}:
        assert getattr(settings, name).get_secret_value() == f"{name}-value"
    assert "pass@" not in repr(settings)
    assert "-value" not in repr(settings)


@pytest.mark.parametrize(("content", "value"), [("x\n", "x"), ("x", "x"), ("x\r\n", "x"), ("x \n", "x ")])
def test_the_end_of_the_line_is_no_part_of_a_secret(
    content: str, value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAYDESK_SECRET_KEY_FILE", str(written(tmp_path / "key", content)))
    assert load_settings().secret_key.get_secret_value() == value


def test_a_secret_given_twice_is_refused_by_both_its_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAYDESK_SECRET_KEY_FILE", str(written(tmp_path / "key")))
    monkeypatch.setenv("PAYDESK_SECRET_KEY", "another")
    with pytest.raises(SetupError, match="PAYDESK_SECRET_KEY and PAYDESK_SECRET_KEY_FILE are both set"):
        load_settings()
    monkeypatch.setenv("PAYDESK_SECRET_KEY", "")
    assert load_settings().secret_key.get_secret_value() == SECRET, "an empty one is none"


def test_settings_env_may_name_files_and_the_environment_wins_over_it(
    data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, mail = written(tmp_path / "key"), written(tmp_path / "mail", "smtp://u:p@mail.test")
    (data_dir / FILE).write_text(f"PAYDESK_SECRET_KEY_FILE={key}\nPAYDESK_SMTP_URL_FILE={mail}\n")
    monkeypatch.setenv("PAYDESK_SECRET_KEY", "of the environment")
    settings = load_settings()
    assert settings.secret_key.get_secret_value() == "of the environment"
    assert settings.smtp_url.get_secret_value() == "smtp://u:p@mail.test"
    assert load_settings(smtp_url="smtp://handed-over").smtp_url.get_secret_value() == "smtp://handed-over"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "No such file or directory; name a file"),
        ("", "is empty"),
        (" \n", "is empty"),
        (f"{SECRET}\nsecond\n", "more than one line"),
        (SECRET * 4000, "longer than 64 KiB"),
        (SECRET.encode("utf-16"), "not text in UTF-8"),
    ],
)
def test_a_file_that_can_not_be_meant_is_named_and_not_shown(
    content: str | bytes | None, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "key"
    if content is not None:
        written(path, content)
    monkeypatch.setenv("PAYDESK_SECRET_KEY_FILE", str(path))
    with pytest.raises(SetupError) as raised:
        load_settings()
    assert raised.value.message.startswith("PAYDESK_SECRET_KEY_FILE: ")
    assert f"{path}" in raised.value.message
    assert says in raised.value.message
    assert SECRET not in raised.value.message


def test_what_is_no_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        monkeypatch.setenv("PAYDESK_VAULT_KEYS_FILE", str(path))
        with pytest.raises(SetupError, match=r"PAYDESK_VAULT_KEYS_FILE.*is no regular file"):
            load_settings()


def test_a_file_that_may_not_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path / "key")
    monkeypatch.setenv("PAYDESK_SECRET_KEY_FILE", str(path))

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(SetupError, match=f"PAYDESK_SECRET_KEY_FILE: cannot read {path}: Permission denied"):
        load_settings()


def test_a_start_warns_of_secrets_that_everybody_may_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Whether everybody may pass the directories above is the machine's affair; the root's
    # are passable.
    monkeypatch.setattr(Path, "parents", property(lambda _: ()))
    closed, opened = written(tmp_path / "closed"), written(tmp_path / "opened", mode=0o644)
    monkeypatch.setenv("PAYDESK_SECRET_KEY_FILE", str(closed))
    monkeypatch.setenv("PAYDESK_SMTP_URL_FILE", str(opened))
    with capture_logs() as logs:
        warn_of_open_secrets(load_settings())
    assert [(line["setting"], line["file"], line["log_level"]) for line in logs] == [
        ("PAYDESK_SMTP_URL_FILE", str(opened), "warning")
    ]


def test_a_closed_directory_closes_the_files_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "secrets"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("PAYDESK_SECRET_KEY_FILE", str(written(folder / "key", mode=0o644)))
    with capture_logs() as logs:
        warn_of_open_secrets(load_settings())
    assert logs == []


def test_commands_end_with_one_line(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "paydesk", "work"],
        env={**os.environ, "PAYDESK_SECRET_KEY_FILE": str(tmp_path / "none")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1
    assert ran.stderr == (
        f"paydesk: PAYDESK_SECRET_KEY_FILE: cannot read {tmp_path / 'none'}: No such file or directory; "
        "name a file that holds the value and nothing else, and that the user may read who runs Paydesk\n"
    )


@long
async def test_a_service_of_many_processes_takes_all_its_secrets_from_files(
    own_database_url: str, tmp_path: Path
) -> None:
    secrets = {
        "SECRET_KEY": generate_secret(),
        "VAULT_KEYS": generate_key_setting(),
        "DATABASE_URL": own_database_url,
    }
    files = {f"{name}_FILE": written(tmp_path / name, f"{value}\n") for name, value in secrets.items()}
    others = {"DATA_DIR": tmp_path, "PORT": free_port(), "METRICS_PORT": 0, "LOG_LEVEL": "info"}
    command = [sys.executable, "-m", "paydesk", "serve", "--workers", "2"]
    async with Kept("serve", command, environment({**files, **others}), "ready to answer").running() as serving:
        await eventually(lambda: len(serving.ready) == 2, "both processes serve", serving.tail)
        assert await serving.stop() == 0
    assert not any(value in "\n".join(serving.lines) for value in secrets.values())
