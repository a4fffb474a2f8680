import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").glob("*.md")),
    ROOT / "src" / "paydesk_client" / "README.md",
]
WIDEST, LONGEST_CELL = 90, 160

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
    """Whether prose too wide could have gone on in the next line:
    code and links have no place to break.
    """
    whole = re.sub(r"`[^`]*`", lambda code: "x" * len(code[0]), line)
    return " " in re.sub(r"^ *(?:[-*]|\d+\.)? *", "", whole)


@every_page
def test_prose_wraps(page: Path) -> None:
    wide = [f"{page.name}:{number}" for number, line in unfenced(page) if len(line) > WIDEST and line[0] not in "|#!"]
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


FILES = [str(file) for room in ("src", "tests", "bench", "deploy", "docs") for file in (ROOT / room).rglob("*")]
FILES += [str(file) for file in ROOT.iterdir()]
MADE_ELSEWHERE = {
    "dist/",  # by `make dist`
    "database/migrations/NNNN_name.sql",
    "checkout-v1.sh",  # on the page itself
    "checkout-v2.sh",
    "club.py",
    "pg_hba.conf",  # PostgreSQL's
    "accounts.json",  # in the data directory
    "history.json",  # in the data directory
    "keys.cfg",  # by `paydesk cell maps`
}


@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "CHANGELOG.md"], ids=lambda page: page.name)
def test_every_file_that_is_named_exists(page: Path) -> None:
    named = re.findall(r"`((?:[\w.-]+/)*[\w.-]+\.[a-z]{2,5}|(?:[\w.-]+/)+)`", prose_of(page))
    looked_for = {
        name for name in named if re.search(r"(/|\.(py|sql|md|toml|js|css|html|ya?ml|json|cfg|sh|conf))$", name)
    }
    missing = [name for name in looked_for - MADE_ELSEWHERE if not is_there(name)]
    assert missing == []


@every_page
def test_every_module_that_is_run_exists(page: Path) -> None:
    run = re.findall(r"python -m ((?:paydesk|paydesk_client|tests|bench)[\w.]*)", page.read_text())
    assert [name for name in run if find_spec(name) is None] == []


def prose_of(page: Path) -> str:
    """The text of a page without its code blocks."""
    return "\n".join(line for _, line in unfenced(page))


def is_there(name: str) -> bool:
    """Whether a file or folder has a path that ends like this."""
    return any(file.endswith("/" + name.rstrip("/")) for file in FILES)
