"""Templates are to be read: lines that fit a screen, one cell on a line,
and each of them compiles.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from jinja2 import Environment

from paydesk import adapters, web

ROOMS = [Path(room.__path__[0]) for room in (web, adapters)]
TEMPLATES = sorted(path for room in ROOMS for path in room.glob("**/templates/**/*.html"))
WIDEST = 120
ENVIRONMENT = Environment(extensions=["jinja2.ext.i18n"], autoescape=True)

each_template = pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: f"{path.parts[-3]}-{path.stem}")


def test_templates_are_found() -> None:
    assert {"account", "operator", "console", "checkout", "portal", "demo", "mails", "api", "web", "simulator"} <= {
        path.parts[-3] for path in TEMPLATES
    }


def numbered_lines() -> Iterator[tuple[str, int, str]]:
    """Every line of every template, after where it stands."""
    for path in TEMPLATES:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            yield f"{path.parts[-3]}/{path.name}", number, line


def test_no_line_is_wider_than_code_may_be() -> None:
    assert [(name, number) for name, number, line in numbered_lines() if len(line) > WIDEST] == []


def test_a_line_holds_one_cell() -> None:
    cell = re.compile(r"<t[dh]\b(?=[^>]*>)")
    assert [(name, number) for name, number, line in numbered_lines() if len(cell.findall(line)) > 1] == []


@each_template
def test_it_compiles(path: Path) -> None:
    ENVIRONMENT.compile(path.read_text(), path.name)


BY_HAND = re.compile(
    r"(?<!value=\")\{\{ *(-? *[\w.]+\.(amount|price|fee|net|available|pending|reserve|paid|refunded|taken)) *\}\}"
    r"|\}\} *\{\{ *[\w.]*currency *\}\}"
    r"|[-−](<bdi[^>]*>)?\{\{ *(kit\.|visit\.|texts\.)*(money|exact)"
)
"""An amount that no formatter has written, one with its currency put behind it,
or a sign put before it.
"""


@pytest.mark.parametrize(
    "line",
    ["{{ one.told.amount }} {{ one.told.currency }}", "<b>{{ view.price }}</b>", '−<bdi class="money">{{ exact(x) }}'],
)
def test_an_amount_written_by_hand_is_seen(line: str) -> None:
    assert BY_HAND.search(line)


def test_every_amount_is_written_by_the_one_formatter() -> None:
    # A count of customers; a price that its view has written.
    seemingly = {("account/package.html", "one.taken"), ("portal/pay.html", "view.price")}
    found = [
        (name, number, hit[0])
        for name, number, line in numbered_lines()
        for hit in BY_HAND.finditer(line)
        if (name, hit[1]) not in seemingly
    ]
    assert found == []
