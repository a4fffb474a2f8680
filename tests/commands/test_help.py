"""Every command says what it is for, and how it is called."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer.main
from typer.core import TyperCommand, TyperGroup

from paydesk.cli import command_line

OF_HAPROXY = "/etc/haproxy/cells"
"""A folder of examples that has to be there."""


def commands(group: TyperGroup, path: str = "paydesk") -> Iterator[tuple[str, TyperCommand | TyperGroup]]:
    """Every command below a group, and every group, by what is typed for it."""
    yield path, group
    for name, command in group.commands.items():
        if isinstance(command, TyperGroup):
            yield from commands(command, f"{path} {name}")
        else:
            assert isinstance(command, TyperCommand)
            yield f"{path} {name}", command


def whole() -> TyperGroup:
    made = typer.main.get_command(command_line())
    assert isinstance(made, TyperGroup)
    return made


EVERY = dict(commands(whole()))


def examples(of: TyperCommand | TyperGroup) -> list[list[str]]:
    """The words of each, without what belongs to the shell around it."""
    said = re.sub(r"^Examples?: ", "", of.epilog or "")
    found = [shlex.split(re.sub(r" [<>] .*", "", one)) for one in said.split("; ")]
    return [[word for word in one if not word.startswith("PAYDESK_")] for one in found]


@pytest.mark.parametrize("path", EVERY)
def test_every_command_says_what_it_is_for(path: str) -> None:
    assert re.match(r"[A-Z].*\.", EVERY[path].help or "", re.DOTALL)
    for parameter in EVERY[path].params:
        assert getattr(parameter, "help", "x"), parameter.name


@pytest.mark.parametrize("path", [path for path, command in EVERY.items() if isinstance(command, TyperCommand)])
def test_every_example_calls_its_command_in_words_that_it_takes(path: str, tmp_path: Path) -> None:
    typed = path.split()
    for words in examples(EVERY[path]):
        assert words[: len(typed)] == typed
        there = [str(tmp_path) if word == OF_HAPROXY else word for word in words]
        EVERY[path].make_context(path, there[len(typed) :])
