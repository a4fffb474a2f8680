"""The page that is shown as an example in CONTRIBUTING.md is one of ours, as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ACCOUNT = ROOT / "src" / "paydesk" / "web" / "account"
SHOWN = re.findall(r"^```(?:python|jinja)\n(.*?)^```", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE | re.DOTALL)
PIECES = [piece.strip("\n") for shown in SHOWN for piece in re.split(r"\n\n+(?=\S)", shown)]
OURS = "\n".join(path.read_text() for path in sorted([*ACCOUNT.glob("*.py"), *ACCOUNT.glob("templates/*.html")]))


@pytest.mark.parametrize("piece", PIECES, ids=lambda piece: piece.splitlines()[0])
def test_what_is_shown_stands_so_in_the_account(piece: str) -> None:
    assert piece in OURS
