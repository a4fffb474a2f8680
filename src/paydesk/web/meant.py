"""Which address was meant by a request that missed one of ours by a slash, or by the sandbox's
prefix written twice.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from starlette.requests import Request
from starlette.routing import BaseRoute, Match, Mount
from starlette.types import Scope

from paydesk.web.visits import base_path, in_sandbox


def meant(request: Request) -> str | None:
    """The path of ours that a request nearly asked for, or None if it is not near any.

    A redirect there would be wrong: of a form that is posted nothing would be left.
    """
    path = request.url.path
    guess = re.sub("/{2,}", "/", path).rstrip("/")
    prefix = base_path(request)
    while in_sandbox(request) and prefix and guess.startswith(f"{prefix}/"):
        guess = guess[len(prefix) :]
    if not guess or guess == path or not _is_ours(request.scope, guess, request.app.routes):
        return None
    return prefix + guess


def _is_ours(scope: Scope, path: str, routes: Sequence[BaseRoute]) -> bool:
    asked = {**scope, "path": path, "raw_path": path.encode(), "root_path": ""}
    return any(route.matches(asked)[0] is Match.FULL for route in routes if not isinstance(route, Mount))
