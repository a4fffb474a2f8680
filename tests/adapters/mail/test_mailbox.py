from __future__ import annotations

import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest

from paydesk.adapters.mail import FolderMailbox, Letter, Mailbox


def letter(number: int) -> Letter:
    return Letter(
        reference=f"mail-{number}",
        sender_name="Corner Shop",
        reply_to="owner@shop.example",
        recipient="ada@example.com",
        subject=f"Receipt {number} für Zoë",
        language="de",
        at=datetime(2026, 3, 1, 12, 0, tzinfo=UTC),
        text="Danke",
        html="<p>Danke</p>",
    )


@pytest.fixture(params=["memory", "folder"])
def mailbox(request: pytest.FixtureRequest, tmp_path: Path) -> Mailbox | FolderMailbox:
    return Mailbox() if request.param == "memory" else FolderMailbox(tmp_path / "mailbox")


async def test_letters_are_shown_newest_first_as_they_were_sent(mailbox: Mailbox | FolderMailbox) -> None:
    assert list(mailbox.letters()) == []
    for number in range(1, 13):
        await mailbox.send(letter(number))
    assert [kept.letter for kept in mailbox.letters()] == [letter(number) for number in range(12, 0, -1)]
    for kept in mailbox.letters():
        assert mailbox.find(kept.number) == kept
    assert mailbox.find(99) is None


async def test_a_second_copy_changes_nothing(mailbox: Mailbox | FolderMailbox) -> None:
    for number in (1, 2, 1):
        await mailbox.send(letter(number))
    assert [kept.letter.reference for kept in mailbox.letters()] == ["mail-2", "mail-1"]


async def test_the_newest_two_hundred_are_kept(mailbox: Mailbox | FolderMailbox) -> None:
    for number in range(203):
        await mailbox.send(letter(number))
    kept = [one.letter.reference for one in mailbox.letters()]
    assert (len(kept), kept[0], kept[-1]) == (200, "mail-202", "mail-3")


async def test_a_folder_is_read_by_another_process_and_by_nobody_else(tmp_path: Path) -> None:
    folder = tmp_path / "mailbox"
    await FolderMailbox(folder).send(letter(1))
    assert [kept.letter for kept in FolderMailbox(folder).letters()] == [letter(1)]
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert [stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()] == [0o600]
    FolderMailbox(folder).clear()
    assert not folder.exists()
