"""Addresses within the consoles that come back from a browser: only our own are followed."""

from __future__ import annotations

import re
from urllib.parse import quote

from paydesk.web.same_site import split_sent

_OWN = re.compile(r"/(?:account|operator)(/[A-Za-z0-9._~/-]*)?(\?[A-Za-z0-9._~/?=&%+:@,-]*)?", re.ASCII)
_LEADS_ROUND = ("/account/login", "/account/logout", "/account/second-factor", "/account/confirm")
_LONGEST = 1000
HOME = "/account"


def own_path(text: str) -> str:
    """The path and query if they are a page of a console, else HOME:
    never another site, never the log-in itself.
    """
    if len(text) > _LONGEST or "//" in text or not _OWN.fullmatch(text) or text.startswith(_LEADS_ROUND):
        return HOME
    return text


def path_of(url: str) -> str:
    """The path and query of a whole address, such as a `Referer`, as `own_path` takes them."""
    parts = split_sent(url)
    return own_path(parts.path + (f"?{parts.query}" if parts.query else ""))


def with_next(path: str, goal: str) -> str:
    """An address that carries where to go afterwards."""
    return path if goal == HOME else f"{path}?next={quote(goal, safe='/')}"
