"""CSV lines that no spreadsheet takes for a formula, whichever character it separates cells by.

Every cell is quoted. A program that splits at semicolons or tabs begins cells of its own inside
ours, so a sign that would begin a formula is led by an apostrophe after such a separator, too, and
in its other guises (full-width: NFKC). Numbers of ours stay numbers: `-5.00` is nothing but digits.
"""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal

_SIGNS = "=+-@\u2212"
_SEPARATORS = ",;|\t\r\n"
_MAY_HIDE_A_SIGN = re.compile(r"[=+\-@]|[^\x00-\x7f]")


def csv_line(cells: Iterable[object], *, end: str = "\r\n") -> str:
    """A line of a CSV file: None is empty, times are ISO 8601, numbers stay as they are,
    texts are made harmless.
    """
    written = io.StringIO()
    csv.writer(written, quoting=csv.QUOTE_ALL, lineterminator=end).writerow([_cell(cell) for cell in cells])
    return written.getvalue()


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value) if isinstance(value, (int, Decimal)) else harmless(str(value))


def harmless(text: str) -> str:
    """The text with an apostrophe before each sign that would begin a formula,
    here or after a separator.
    """
    if not _MAY_HIDE_A_SIGN.search(text):
        return text
    parts: list[str] = []
    begins = True
    for character in text:
        plain = unicodedata.normalize("NFKC", character)
        if begins and plain[:1] in _SIGNS:
            parts.append("'")
        parts.append(character)
        # Spaces, quotes and what is not seen don't keep what follows from being read as the
        # cell's beginning.
        begins = plain[-1:] in _SEPARATORS or (begins and (not plain.strip() or plain == '"' or _is_unseen(plain)))
    return "".join(parts)


def _is_unseen(character: str) -> bool:
    return unicodedata.category(character[0]) in ("Cc", "Cf", "Zs", "Zl", "Zp", "Mn")
