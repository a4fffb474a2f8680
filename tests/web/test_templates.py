"""Templates are to be read: lines that fit a screen, one cell on a line,
and each of them compiles.
"""

from __future__ import annotations

import re
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


@each_template
def test_no_line_is_wider_than_code_may_be(path: Path) -> None:
    lines = enumerate(path.read_text().splitlines(), 1)
    assert [(number, len(line)) for number, line in lines if len(line) > WIDEST] == []


@each_template
def test_a_line_holds_one_cell(path: Path) -> None:
    lines = enumerate(path.read_text().splitlines(), 1)
    assert [number for number, line in lines if len(re.findall(r"<t[dh]\b(?=[^>]*>)", line)) > 1] == []


@each_template
def test_it_compiles(path: Path) -> None:
    ENVIRONMENT.compile(path.read_text(), path.name)
