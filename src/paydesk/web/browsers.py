"""What a browser and its system are called, by how it names itself."""

from __future__ import annotations

import re

_BROWSERS = (
    ("Edge", r"Edg(?:e|A|iOS)?/"),
    ("Opera", r"OPR/"),
    ("Firefox", r"Firefox/|FxiOS/"),
    ("Chrome", r"Chrom(?:e|ium)/|CriOS/"),
    ("Safari", r"Safari/"),
)
_SYSTEMS = (
    ("Android", r"Android"),
    ("iPhone", r"iPhone"),
    ("iPad", r"iPad"),
    ("Windows", r"Windows"),
    ("macOS", r"Mac OS X"),
    ("Linux", r"Linux"),
)


def browser_of(user_agent: str) -> str:
    """A browser and its system, as it names them itself: `Firefox, Linux`;
    empty if it says nothing known.
    """
    found = [
        next((name for name, pattern in table if re.search(pattern, user_agent)), "") for table in (_BROWSERS, _SYSTEMS)
    ]
    return ", ".join(name for name in found if name)
