"""When a page that waits for a bank loads itself again in a browser without scripts."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlencode

_LOOKED = "looked"
FIRST, LONGEST, _GROWTH = 4, 60, 1.25
"""Seconds: before the first look, at most, and by how much more each later one waits."""
_MOST_LOOKS = 99


def look_again(query: str = "") -> str:
    """What `<meta http-equiv="refresh">` says on the page at an address with this query: the same
    page, a little later each time; how often it was looked at stands in its address.
    """
    fields = dict(parse_qsl(query, keep_blank_values=True, errors="replace"))
    said = fields.pop(_LOOKED, "0")
    looked = min(int(said), _MOST_LOOKS) if said.isascii() and said.isdigit() and len(said) < 5 else 0
    seconds = min(round(FIRST * _GROWTH**looked), LONGEST)
    return f"{seconds}; url=?{urlencode({**fields, _LOOKED: looked + 1})}"
