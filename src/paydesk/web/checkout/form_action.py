"""Where the form of a checkout may lead to, as its Content-Security-Policy names it."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

_CSP_HOST = re.compile(r"[a-z0-9.-]+(:[0-9]+)?")


def form_action_for(success_url: str, *origins: str) -> str:
    """The `form_action` of a checkout: the origin or scheme of its `success_url`,
    and acquirers' challenge origins.

    A host that a CSP can't spell (IPv6, underscores) is allowed by its scheme.
    """
    url = urlsplit(success_url)
    if url.scheme not in ("http", "https"):
        return " ".join([f"{url.scheme}:" if url.scheme else "", *origins]).strip()
    try:
        host = url.netloc.rpartition("@")[2].lower().encode("idna").decode()
    except UnicodeError:
        host = ""
    source = f"{url.scheme}://{host}" if _CSP_HOST.fullmatch(host) else f"{url.scheme}:"
    return " ".join([source, *origins])
