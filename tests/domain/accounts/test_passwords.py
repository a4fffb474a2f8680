from __future__ import annotations

import asyncio
import hashlib
import threading
from pathlib import Path
from random import Random
from string import ascii_letters, ascii_lowercase, digits
from typing import Any

import pytest
from argon2 import PasswordHasher, extract_parameters
from argon2.profiles import CHEAPEST
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.domain.accounts.someone import CountingHasher
from tests.lengths import at_length, longer
from zxcvbn.frequency_lists import FREQUENCY_LISTS

from paydesk.core.errors import Malformed, SetupError, TooMany
from paydesk.domain.accounts import passwords as room
from paydesk.domain.accounts.common_passwords import is_common
from paydesk.domain.accounts.passwords import SHORTEST, BreachedPasswords, Passwords

ADA = "ada@people.example"


def cheap(**given: object) -> Passwords:
    return Passwords(hasher=PasswordHasher.from_parameters(CHEAPEST), **given)  # type: ignore[arg-type]


def sha1(text: str) -> str:
    return hashlib.sha1(text.encode()).hexdigest().upper()


def published(path: Path, leaked: list[str], *, end: str = "\r\n", counts: bool = True) -> Path:
    """A file as it is published: sorted by hash, with counts of any length."""
    lines = [f"{sha1(text)}:{10 ** (n % 8)}" if counts else sha1(text) for n, text in enumerate(leaked)]
    path.write_bytes(end.join(sorted(lines)).encode())
    return path


def test_passwords_are_hashed_as_rfc_9106_recommends() -> None:
    hasher = Passwords().hasher
    assert (hasher.type.name, hasher.memory_cost, hasher.time_cost) == ("ID", 65536, 3)


@pytest.mark.parametrize(
    "guessed",
    [
        "password1234",
        "P@ssw0rd2026!",
        "iloveyou1234",
        "letmeinletmein",
        "111111111111",
        "ababababababab",
        "123456789012",
        "qwertyuiop12",
        "1q2w3e4r5t6y",
        "Summer2026!!!",
        "administrator",
        "ada.people.2024",
        "Welcome to Paydesk",
        "0987654321098",
        "gfhjkmgfhjkm",
        "needforspeed",
        "jennifer.martinez1987",
        "Steelers-Broncos9",
        "PurpleMonkey12",
        "Tinkerbell!2024",
    ],
)
async def test_what_everybody_guesses_first_is_refused_however_long(guessed: str) -> None:
    with pytest.raises(Malformed, match="attackers try first"):
        await cheap().choose(guessed, email=ADA)


@longer
def test_the_common_passwords_of_the_list_are_refused_whole_and_nearly_all_with_a_year_behind() -> None:
    listed = FREQUENCY_LISTS["passwords"][:: at_length(1, 10)]
    assert [word for word in listed if len(word) >= SHORTEST and not is_common(word, email=ADA)] == []
    refused = sum(is_common(f"{word.capitalize()}2024!!", email=ADA) for word in listed)
    assert refused > 0.9 * len(listed)


def test_what_chance_draws_is_no_common_password() -> None:
    chance = Random(11)
    for letters in (ascii_lowercase, ascii_letters + digits):
        drawn = ["".join(chance.choices(letters, k=SHORTEST)) for _ in range(2000)]
        assert [word for word in drawn if is_common(word, email=ADA)] == []


@pytest.mark.parametrize(
    "own",
    [
        "correct horse battery staple",
        "a long enough sentence",
        "kettle-marble-fjord",
        "x7Qp!m2Vz9Lk",
        "horse 83 keg 92047162",
        "密码是一句很长的中文句子",
    ],
)
async def test_words_of_ones_own_are_taken(own: str) -> None:
    passwords = cheap()
    assert (await passwords.verify(own, await passwords.choose(own, email=ADA))).right


async def test_a_password_fits_however_its_letters_were_composed() -> None:
    passwords = cheap()
    stored = await passwords.choose("crème brûlée ﬁn", email=ADA)
    assert (await passwords.verify("cre\u0300me bru\u0302le\u0301e fin", stored)).right
    assert not (await passwords.verify("creme brulee fin", stored)).right


@pytest.mark.parametrize("stored", ["", "nonsense", "$argon2id$v=19$m=8", "\x00"])
async def test_what_is_no_hash_is_never_right(stored: str) -> None:
    assert not (await cheap().verify("a long enough sentence", stored)).right


async def test_a_log_in_without_an_account_costs_what_one_with_an_account_costs() -> None:
    hasher = CountingHasher(time_cost=2, memory_cost=128, parallelism=1, hash_len=24, salt_len=20)
    assert not (await Passwords(hasher=hasher).verify("correct horse battery", "")).right
    assert not (await Passwords(hasher=hasher).verify("correct horse battery", "")).right
    assert [extract_parameters(one) for one in hasher.compared] == [extract_parameters(hasher.hash("known"))] * 2
    assert hasher.compared[0] != hasher.compared[1], "nobody can learn what it is"


@pytest.mark.parametrize("text", ["", "eleven char", "x" * 1025, ADA.upper()])
async def test_weak_passwords_are_refused(text: str) -> None:
    with pytest.raises(Malformed) as refused:
        await cheap().choose(text, email=ADA)
    assert refused.value.fields == ("password",)


async def test_twelve_characters_are_enough_in_any_script() -> None:
    passwords = cheap()
    for text in (
        "kqzjwmtvhgpd",
        "моя бабушка спит",
        "長い合言葉はとても強いのだ",
        "🔑🎩🌋🦜🍋🚲🎻🪁🧭🐙🌵🛶",
        "half an odd \ud83d character",
    ):
        assert (await passwords.verify(text, await passwords.choose(text, email=ADA))).right


async def test_leaked_passwords_are_refused_with_the_reason(tmp_path: Path) -> None:
    leaked = BreachedPasswords(published(tmp_path / "leaked", [f"three odd pigeons {n}" for n in range(100)]))
    with pytest.raises(Malformed, match="leaked passwords"):
        await cheap(breached=leaked).choose("three odd pigeons 7", email=ADA)
    await cheap(breached=leaked).choose("three odd pigeons 777", email=ADA)


@settings(deadline=None)
@given(
    st.sets(st.text(st.characters(codec="utf-8"), min_size=1), min_size=1, max_size=60), st.booleans(), st.booleans()
)
def test_the_search_finds_every_line_and_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, leaked: set[str], counts: bool, windows: bool
) -> None:
    path = tmp_path_factory.mktemp("leaked") / "file"
    listed = BreachedPasswords(published(path, sorted(leaked), end="\r\n" if windows else "\n", counts=counts))
    assert all(listed.contains(text) for text in leaked)
    assert not any(listed.contains(text + "\x01") for text in leaked if text + "\x01" not in leaked)


@pytest.mark.parametrize("content", [b"", b"password\n", b"\x00" * 100, b"0" * 39 + b":1\n"])
def test_a_file_of_something_else_is_refused_at_the_start(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "leaked"
    path.write_bytes(content)
    with pytest.raises(SetupError, match="PAYDESK_BREACHED_PASSWORDS"):
        BreachedPasswords(path)
    with pytest.raises(SetupError, match="cannot read"):
        BreachedPasswords(tmp_path / "nowhere")


async def test_few_hash_at_once_and_too_long_a_queue_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "MOST_WAITING", 5)
    go_on, inside, at_once = threading.Event(), set[int](), list[int]()

    def wait(*_: Any) -> bool:
        inside.add(threading.get_ident())
        at_once.append(len(inside))
        go_on.wait(30)
        inside.discard(threading.get_ident())
        return True

    passwords = cheap()
    stored = await passwords.choose("a long enough sentence", email=ADA)
    monkeypatch.setattr(PasswordHasher, "verify", wait)
    waiting = [asyncio.create_task(passwords.verify("a long enough sentence", stored)) for _ in range(10)]
    done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    go_on.set()
    ended = await asyncio.gather(*waiting, return_exceptions=True)
    assert sum(isinstance(one, TooMany) for one in ended) == 3
    assert all(task in waiting for task in done)
    assert max(at_once) <= 2
    assert (await passwords.verify("a long enough sentence", stored)).right
