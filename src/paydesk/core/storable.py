"""Values as PostgreSQL stores them."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


def storable_json(values: Mapping[str, object]) -> str:
    """Values as JSON that PostgreSQL stores: it takes no NUL, which becomes a replacement character."""
    return msgspec.json.encode(values).decode().replace("\\u0000", "\\ufffd")


def storable_text(text: str, *, longest: int) -> str:
    """The beginning of a text as PostgreSQL stores it."""
    return text.replace("\x00", "\ufffd")[:longest]
