from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

PAYDESK = f"{sys.executable} -m paydesk"
WITHOUT_BUFFER: Mapping[str, str] = {"PYTHONUNBUFFERED": "1"}
KEYLESS = {name: value for name, value in os.environ.items() if not name.startswith("PAYDESK_")}


def told(line: str, folder: Path, more: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """What a shell's line said, without any setting of ours, and without Python's own buffering."""
    kept = {name: value for name, value in KEYLESS.items() if name != "PYTHONUNBUFFERED"}
    env = kept | {"PAYDESK_DATA_DIR": str(folder)} | dict(more or {})
    return subprocess.run(["sh", "-c", line], env=env, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("more", [WITHOUT_BUFFER, {}], ids=["unbuffered", "buffered"])
@pytest.mark.parametrize("words", ["settings", "settings --help", "--help"])
def test_a_result_that_fits_only_in_part_is_an_error(tmp_path: Path, words: str, more: Mapping[str, str]) -> None:
    file = tmp_path / "result"
    whole = told(f"{PAYDESK} {words}", tmp_path, more).stdout
    # A file may grow by a byte more than there already is, counted in blocks.
    file.write_text("." * (1024 - 1))
    said = told(f"ulimit -f 1 && exec {PAYDESK} {words} >> {file}", tmp_path, more)
    assert len(file.read_text()) < 1023 + len(whole)
    assert (said.returncode, said.stderr.count("\n")) == (1, 1), said.stderr
    assert said.stderr.startswith("paydesk: can't write: ")
    assert "make room" in said.stderr


@pytest.mark.parametrize("closed", ["<&-", ">&-", "<&- >&-"])
def test_who_closes_a_stream_is_told_as_ever(tmp_path: Path, closed: str) -> None:
    said = told(f"exec {PAYDESK} merchant list {closed}", tmp_path)
    assert said.returncode == 1
    assert said.stderr.startswith("paydesk: PAYDESK_SECRET_KEY")
    assert said.stderr.count("\n") == 1


def test_a_result_that_nobody_wants_is_none(tmp_path: Path) -> None:
    assert told(f"exec {PAYDESK} settings <&- >&- 2>&-", tmp_path).returncode == 0


def test_who_breaks_off_while_a_command_is_loaded_sees_no_traceback(tmp_path: Path) -> None:
    broken_off = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler);"
        "from paydesk import cli; sys.argv = ['paydesk', 'settings'];"
        "cli._loaded = lambda _: signal.raise_signal(signal.SIGINT); cli.main()"
    )
    said = subprocess.run([sys.executable, "-c", broken_off], env=KEYLESS, capture_output=True, text=True)
    assert (said.returncode, said.stdout, said.stderr) == (130, "", "")
