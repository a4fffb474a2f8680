"""The pages of docs/ that a shop's programmer reads: where they are, installed or not."""

from __future__ import annotations

from pathlib import Path

_INSTALLED = Path(__file__).parent / "texts"
_CHECKOUT = Path(__file__).parents[4] / "docs"


def read_page(name: str) -> str:
    """The Markdown of a page, such as `integrate.md`: a wheel holds a copy of what docs/ has.

    Raises: FileNotFoundError.
    """
    installed = _INSTALLED / name
    return (installed if installed.exists() else _CHECKOUT / name).read_text(encoding="utf-8")
