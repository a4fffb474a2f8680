"""Pages that say the same to everybody but for a few words: written once, filled in after that."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Hashable, Mapping

from markupsafe import escape

_MARK = secrets.token_hex(8)
_BLANK = re.compile(rf"{_MARK}(\w+?){_MARK}")
"""What stands where a word will be: no shop can guess it, so none writes it into its own words."""


class KeptPages:
    """The last pages of one kind each, with blanks for what differs."""

    def __init__(self, most: int = 256) -> None:
        """Keep at most so many."""
        self._most = most
        self._kept: dict[Hashable, list[str]] = {}

    def fill(self, kind: Hashable, words: Mapping[str, str], write: Callable[[Mapping[str, str]], str]) -> str:
        """The page of a kind with these words in it, escaped as a template would: markup stays.

        `kind` is all else that the page hangs on. `write` writes it with other words under the same
        names, the empty ones empty; it may write them out, and ask whether there are any, nothing
        else.
        """
        given = tuple(name for name, word in words.items() if word)
        parts = self._kept.get((kind, given))
        if parts is None:
            html = write({name: f"{_MARK}{name}{_MARK}" if word else "" for name, word in words.items()})
            if len(self._kept) >= self._most:
                # The oldest alone: with a few more kinds than are kept, most are still there.
                del self._kept[next(iter(self._kept))]
            # Text and the name of a blank by turns, text first.
            parts = self._kept[kind, given] = _BLANK.split(html)
        filled = parts.copy()
        filled[1::2] = [escape(words[name]) for name in parts[1::2]]
        return "".join(filled)
