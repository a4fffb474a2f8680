import re
from pathlib import Path

import pytest
from typer.main import get_command

from paydesk.adapters.acquirers.simulator import TEST_CARDS
from paydesk.cli import command_line
from paydesk.secret_files import SUFFIX
from paydesk.settings import PREFIX, Settings

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
README = PAGES[0].read_text()
MAKEFILE = (ROOT / "Makefile").read_text()
TARGETS = set(re.findall(r"^([a-z]+):.*##", MAKEFILE, re.M))
NOT_SETTINGS = {"PAYDESK_CHROMIUM"}  # read by the browser tests alone

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


def test_the_readme_explains_every_make_target() -> None:
    assert set(re.findall(r"^\| `make (\w+)` \|", README, re.M)) == TARGETS - {"help"}


def test_upgrades_are_tried_at_length_and_not_by_the_short_tests_alone() -> None:
    (told,) = re.findall(r"^test-upgrade:.*\n\t@(.*)$", MAKEFILE, re.M)
    assert '-m "long or not long"' in told


def test_the_readme_names_the_ports_and_cards_that_exist() -> None:
    assert f"127.0.0.1:{Settings.model_fields['demo_port'].default}" in README
    named = {number.replace(" ", "") for number in re.findall(r"`((?:\d{4} ){3}\d{4})`", README)}
    assert named
    assert named <= {card.number for card in TEST_CARDS}


@every_page
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)]+)\)", page.read_text()):
        path, _, heading = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists(), target
        assert not heading or heading in slugs(linked), target


def slugs(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.M)
    return {re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in headings}


def code_of(page: Path) -> str:
    """The lines of a page's code blocks, and its code in the midst of prose, one on a line."""
    text = page.read_text()
    blocks = re.findall(r"^ *```[^\n]*\n(.*?)^ *```$", text, re.M | re.S)
    prose = re.sub(r"^ *```.*?^ *```$", "", text, flags=re.M | re.S)
    return "\n".join([*blocks, *re.findall(r"`([^`]+)`", prose)])


@every_page
def test_make_targets_exist(page: Path) -> None:
    assert set(re.findall(r"^make ([a-z]+)", code_of(page), re.M)) <= TARGETS


@every_page
def test_settings_exist(page: Path) -> None:
    known = {PREFIX + name.upper() for name in Settings.model_fields}
    known |= {PREFIX + name.upper() + SUFFIX for name in Settings.secrets()}
    # The composition has a few of its own, which no process of Paydesk reads.
    known |= set(re.findall(r"\$\{(PAYDESK_[A-Z_]+)", (ROOT / "deploy" / "compose.yaml").read_text()))
    assert set(re.findall(r"\bPAYDESK_[A-Z_]*[A-Z]", page.read_text())) <= known | NOT_SETTINGS


@every_page
def test_commands_exist(page: Path) -> None:
    context = get_command(command_line()).make_context("paydesk", [], resilient_parsing=True)
    known = set(get_command(command_line()).list_commands(context))  # type: ignore[attr-defined]
    assert set(re.findall(r"(?:bin/|^)paydesk ([a-z]+)", code_of(page), re.M)) <= known
