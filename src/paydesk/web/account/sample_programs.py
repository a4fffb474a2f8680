"""Programs to copy and paste: one small shop each in PHP, Python and Node, and a form by curl."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined


@dataclass(frozen=True, slots=True)
class SampleProgram:
    """A whole program; `run` is the line that starts it."""

    language: str
    filename: str
    run: str
    text: str


def _php(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


_LANGUAGES: tuple[tuple[str, str, str, Callable[[str], str]], ...] = (
    ("PHP", "shop.php", "PRIVATE_KEY=… php -S 127.0.0.1:9000 shop.php", _php),
    ("Python", "shop.py", "PRIVATE_KEY=… python3 shop.py", json.dumps),
    (
        "Python, subscriptions",
        "club.py",
        "pip install ./src/paydesk_client && PRIVATE_KEY=… python3 club.py",
        json.dumps,
    ),
    ("Node", "shop.mjs", "PRIVATE_KEY=… node shop.mjs", json.dumps),
    ("curl", "checkout.sh", "PRIVATE_KEY=… sh checkout.sh", shlex.quote),
)

_TEXTS = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "samples"),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
    autoescape=False,  # noqa: S701 (programs, not HTML: values are quoted for their language)
)


def programs(address: str, public_key: str, version: str) -> list[SampleProgram]:
    """The programs for a base address and a public key; each is quoted for its language.
    `version`: v1 or v2.
    """
    return [
        SampleProgram(
            language,
            filename,
            run,
            _TEXTS.get_template(f"{filename}.jinja").render(
                address=quoted(address), public_key=quoted(public_key), v2=version == "v2"
            ),
        )
        for language, filename, run, quoted in _LANGUAGES
    ]
