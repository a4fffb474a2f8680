"""How commands show results: tables and facts for people, JSON alone on stdout for scripts,
notes on stderr.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Protocol

import msgspec
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from paydesk.core.wording import plain

AsJson = Annotated[bool, typer.Option("--json", help="Print the result alone, as JSON.")]


class Advance(Protocol):
    """Moves a progress bar on by one step, or by a part of one."""

    def __call__(self, advance: float = 1) -> None:
        """Move it on by so many steps."""


_WIDTH_OF_A_FILE = 200
_encoder = msgspec.json.Encoder(decimal_format="number", enc_hook=plain)


def show_json(result: object) -> None:
    """Print a result as JSON: decimals as they are, times in ISO 8601, UTC."""
    typer.echo(msgspec.json.format(_encoder.encode(result)))


def show_table(titles: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows under their titles."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in titles:
        table.add_column(title, overflow="fold")
    for row in rows:
        table.add_row(*(shown(value) for value in row))
    width = None if sys.stdout.isatty() else _WIDTH_OF_A_FILE
    Console(width=width, markup=False, highlight=False, emoji=False).print(table)


def show_facts(facts: Iterable[tuple[str, object]]) -> None:
    """Print one fact a line, its name before it."""
    for name, value in facts:
        typer.echo(f"{name:<18} {shown(value)}")


def shown(value: object) -> str:
    """A value in words; what strangers wrote can't steer the terminal."""
    if value is None or value == "":
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%SZ}"
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in str(value))


def counted(number: int, noun: str) -> str:
    """A number of things: `1 pingback`, `2 pingbacks`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def note(message: str) -> None:
    """Say something beside the result."""
    typer.echo(f"paydesk: {message}", err=True)


@contextmanager
def progress(description: str, total: int | None) -> Iterator[Advance]:
    """A progress bar on stderr for the length of a block; call what it gives for each step done.
    None: nobody knows.

    Where stderr is no terminal there is no bar.
    """
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(description, total=total)
        yield partial(bar.advance, task)


@contextmanager
def waiting(what: str, seconds: float) -> Iterator[None]:
    """Say on stderr for the length of a block what is waited for, and for how long at most.

    Where stderr is no terminal that is one line, and no bar.
    """
    console, words = Console(stderr=True), f"{what}, for {math.ceil(seconds)} s at most"
    if not console.is_terminal:
        note(f"{words[0].lower()}{words[1:]}")
        yield
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        bar.add_task(words, total=None)
        yield
