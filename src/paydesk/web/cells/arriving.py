"""Takes what another cell has passed on as if its client had come here: by its address,
for the base and the host name that it came to there.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Final
from urllib.parse import quote

import structlog
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from paydesk.adapters.vault import Vault
from paydesk.core.errors import PaydeskError
from paydesk.web.cells.marks import HEADER, NotLately, read_mark
from paydesk.web.visits import PASSED_ON, SANDBOX

log = structlog.get_logger()

_HEADER: Final = HEADER.encode()
_AS_IT_IS: Final = "%!$&'()*+,;=:@/?[]{}|~-._^`"
"""What stays in a query as it came; a second time nothing changes."""

_FORWARDED: Final = (_HEADER, b"x-forwarded-for")


class Arrivals:
    """Believes a genuine mark, and nothing else that a request says of where it came from.

    What bears any mark is passed on no more: so nothing goes round, however far clocks are apart.
    What a cell has marked long ago is answered by a `refusal`, and nothing of it is done.
    """

    def __init__(
        self,
        app: ASGIApp,
        vault: Vault,
        refusal: Callable[[Request, PaydeskError], Awaitable[Response]],
        now: Callable[[], datetime],
    ) -> None:
        self.app = app
        self._vault = vault
        self._refusal = refusal
        self._now = now

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Put in order what bears a mark."""
        if scope["type"] == "http":
            marks = [value for name, value in scope["headers"] if name == _HEADER]
            try:
                if marks:
                    self._take(scope, marks)
            except NotLately as error:
                log.warning("another cell's clock is minutes off, or this one's: what it passes on is refused")
                await (await self._refusal(Request(scope, receive), error))(scope, receive, send)
                return
        await self.app(scope, receive, send)

    def _take(self, scope: Scope, marks: list[bytes]) -> None:
        given = marks[0].decode("latin-1") if len(marks) == 1 else ""
        passed = read_mark(self._vault, scope["method"], target_of(scope), given, now=self._now())
        scope[PASSED_ON] = passed is not None
        if passed is None:
            log.warning("a request bears a mark that no cell has made")
            return
        scope["headers"] = [one for one in scope["headers"] if one[0] not in _FORWARDED]
        scope["client"] = (passed.client, 0)
        if passed.sandbox is not None:
            scope[SANDBOX] = passed.sandbox


def target_of(scope: Scope) -> str:
    """Path and query of a request, as one cell asks another for it: without the sandbox's prefix,
    of which the mark tells.
    """
    query = quote(scope["query_string"], safe=_AS_IT_IS)
    return quote(scope["path"]) + (f"?{query}" if query else "")
