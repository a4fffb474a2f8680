"""`paydesk settings`: every setting with its default and meaning, as docs/operate.md shows them."""

from __future__ import annotations

import typer
from pydantic import SecretStr
from pydantic.fields import FieldInfo

from paydesk.secret_files import SUFFIX
from paydesk.settings import PREFIX, Settings


def settings() -> None:
    """Print the table of all settings, in Markdown: names, defaults, meanings."""
    typer.echo(settings_table())


def settings_table() -> str:
    """The table of docs/operate.md, made from the descriptions in settings.py;
    a test compares the two.
    """
    rows = [
        f"| {_name(name)} | {_default(field)} | {field.description} |" for name, field in Settings.model_fields.items()
    ]
    return "\n".join(["| setting | default | meaning |", "|---|---|---|", *rows])


def _name(field: str) -> str:
    """What a setting is called; a secret may be given by the name of a file, too."""
    return f"`{PREFIX}{field.upper()}`" + (f" or `…{SUFFIX}`" if field in Settings.secrets() else "")


def _default(field: FieldInfo) -> str:
    value = field.default
    text = value.get_secret_value() if isinstance(value, SecretStr) else str(value)
    return f"`{text}`" if text and value is not None else ""
