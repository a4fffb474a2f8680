from __future__ import annotations

import stat
from dataclasses import replace
from pathlib import Path

import pytest

from paydesk.domain.operations.history import Beat, Memory
from paydesk.domain.operations.memory_file import memory_file, recall, remember

HERE = "71/00000002"
MEMORY = Memory("tag", Beat(2, 500), HERE)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where a deployment's processes remember; nothing is there yet."""
    return memory_file(tmp_path)


def test_what_is_remembered_is_found_again_by_nobody_else_than_its_owner(file: Path) -> None:
    assert recall(file) is None
    remember(file, MEMORY)
    assert recall(file) == MEMORY
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(file.parent.iterdir()) == [file], "and nothing unfinished lies about"


@pytest.mark.parametrize("beat", [Beat(2, 499), Beat(1, 900), Beat(2, 500)])
def test_a_database_that_went_back_is_not_what_is_remembered_of_it(file: Path, beat: Beat) -> None:
    remember(file, MEMORY)
    remember(file, replace(MEMORY, beat=beat, place="71/00000009"))
    assert recall(file) == MEMORY


@pytest.mark.parametrize("beat", [Beat(2, 501), Beat(3, 1)])
def test_what_is_newer_takes_its_place(file: Path, beat: Beat) -> None:
    remember(file, MEMORY)
    newer = replace(MEMORY, beat=beat, place="72/00000001")
    remember(file, newer)
    assert recall(file) == newer


def test_another_deployment_begins_anew_however_few_its_beats_are(file: Path) -> None:
    remember(file, MEMORY)
    other = replace(MEMORY, deployment="another", beat=Beat(1, 1))
    remember(file, other)
    assert recall(file) == other


@pytest.mark.parametrize(
    "content",
    [
        *("", "{", "[1, 2]", "null", '{"deployment": 5}', "x" * 2000),
        '{"deployment": "tag", "beat": [2, 500], "place": "nowhere"}',
        '{"deployment": "tag", "beat": {"epoch": 2, "number": 500}, "place": "nowhere"}',
        '{"deployment": "tag", "beat": {"epoch": 2, "number": 500}, "place": "1/2/3"}',
    ],
)
def test_a_broken_file_is_no_memory_and_is_written_anew(file: Path, content: str) -> None:
    file.write_text(content)
    assert recall(file) is None
    remember(file, MEMORY)
    assert recall(file) == MEMORY


def test_bytes_that_are_no_text_are_no_memory(file: Path) -> None:
    file.write_bytes(b"\xff\xfe\x00")
    assert recall(file) is None


def test_where_no_file_can_be_nothing_is_remembered_and_nothing_is_left(file: Path, tmp_path: Path) -> None:
    remember(tmp_path / "nowhere" / "file", MEMORY)
    assert list(tmp_path.iterdir()) == []
    file.mkdir()
    remember(file, MEMORY)
    assert recall(file) is None
    assert list(tmp_path.iterdir()) == [file]
    assert list(file.iterdir()) == []


def test_a_disk_that_is_full_leaves_what_was_remembered_before(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    remember(file, MEMORY)

    def full(*_names: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(Path, "replace", full)
    remember(file, replace(MEMORY, beat=Beat(3, 1)))
    monkeypatch.undo()
    assert recall(file) == MEMORY
    assert list(file.parent.iterdir()) == [file]
