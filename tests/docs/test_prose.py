import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").glob("*.md")),
    ROOT / "src" / "paydesk_client" / "README.md",
]
WIDEST, LONGEST_CELL = 90, 160
PAGES = [page for page in PAGES if page.name not in ("CHANGELOG.md", "architecture.md", "security.md")]

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.parent.name + "/" + page.name)


def unfenced(page: Path) -> Iterator[tuple[int, str]]:
    """The lines of a page outside its code blocks, with their numbers."""
    fenced = False
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced:
            yield number, line


def could_break(line: str) -> bool:
    """Whether prose too wide could have gone on in the next line: code and links have no place to break."""
    whole = re.sub(r"`[^`]*`", lambda code: "x" * len(code[0]), line)
    return " " in re.sub(r"^ *(?:[-*]|\d+\.)? *", "", whole)


@every_page
def test_prose_wraps(page: Path) -> None:
    wide = [f"{page.name}:{number}" for number, line in unfenced(page) if len(line) > WIDEST and line[0] not in "|#"]
    lines = page.read_text().splitlines()
    assert [where for where in wide if could_break(lines[int(where.split(":")[1]) - 1])] == []


@every_page
def test_no_cell_of_a_table_holds_a_paragraph(page: Path) -> None:
    cells = [
        (f"{page.name}:{number}", cell.strip())
        for number, line in unfenced(page)
        if line.startswith("|")
        for cell in re.split(r"(?<!\\)\|", line)
    ]
    assert [(where, cell) for where, cell in cells if len(cell) > LONGEST_CELL] == []
