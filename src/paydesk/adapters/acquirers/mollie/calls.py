"""Calls to Mollie through its library, and what its errors mean.

Whatever is not a clear no of Mollie's leaves the outcome unknown: a conflict (409: perhaps with the
same request, which is still on its way) and any error of its servers. What reached a limit (429)
was turned away before anything was done. An answer is read from what Mollie sent, not from the
library's own classes, so that a field that they don't know yet stops nothing.

Source: docs.mollie.com/reference/handling-errors, docs.mollie.com/reference/api-idempotency.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import ssl
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from functools import cache
from typing import Any, Final, TypeVar
from uuid import UUID

import httpx
import mollie
import msgspec
from pydantic import ValidationError

from paydesk.adapters.acquirers.interface import AcquirerRefused, OutcomeUnknown, Undecided
from paydesk.adapters.acquirers.quiet import Quiet
from paydesk.adapters.acquirers.reaching import NoConnection, TurnedAway, may_be_sent
from paydesk.core.errors import SetupError
from paydesk.core.wording import noted

_Shape = TypeVar("_Shape")
_CONNECT_SECONDS: Final = 5.0
_LIMITED: Final = 429
_HERE: Final = "https://api.mollie.com"
_ANSWERS: ContextVar[list[httpx.Response]] = ContextVar("answers of Mollie")


class Missing(AcquirerRefused):
    """There is no such object at Mollie."""


class _Problem(msgspec.Struct, frozen=True):
    """Why Mollie refused a request."""

    title: str = ""
    detail: str = ""


class _Silent:
    """Logs nothing: the library's own debug log has the key in it."""

    def debug(self, *_: object, **__: object) -> None:
        """Keep it to itself."""


@cache
def _verified() -> ssl.SSLContext:
    """What makes sure of whom we talk to; to read all that is believed takes a while."""
    return httpx.create_ssl_context(trust_env=False)


async def _keep(answer: httpx.Response) -> None:
    _ANSWERS.get([]).append(answer)


class Calls:
    """The library's client, asked once per question: it never repeats a call by itself."""

    def __init__(self, key: str, api_base: str, timeout: float, *, is_token: bool = False) -> None:
        """Prepare calls; `api_base` is empty for Mollie itself, `timeout` the seconds
        for a whole answer. With `is_token` the key is an access token, for what no API key may ask.

        Raises: SetupError if the environment has settings of the library's own.
        """
        logging.getLogger("httpx").setLevel(logging.WARNING)
        self._timeout: Final = timeout
        self._quiet: Final = Quiet("Mollie")
        self._http: Final = httpx.AsyncClient(
            timeout=httpx.Timeout(timeout, connect=_CONNECT_SECONDS),
            follow_redirects=False,
            trust_env=False,
            verify=_verified(),
            event_hooks={"response": [_keep]},
        )
        try:
            # Requests are checked by Mollie (and in tests by the library's types), and answers by
            # the shapes they are read into.
            self.sdk: Final[Any] = mollie.ClientSDK(
                security=mollie.models.Security(**{"o_auth" if is_token else "api_key": key}),
                server_url=api_base.rstrip("/") or _HERE,
                client=httpx.Client(trust_env=False, verify=_verified()),
                async_client=self._http,
                retry_config=None,
                debug_logger=_Silent(),
            )
        except AttributeError:
            raise SetupError(
                "Mollie's library finds settings of its own in the environment: unset CLIENT_TESTMODE and "
                "CLIENT_PROFILE_ID, which no key of an account goes with"
            ) from None

    async def ask(self, call: Callable[[], Awaitable[object]], shape: type[_Shape]) -> _Shape:
        """Make a call and read its answer.

        No error is chained to the library's own, which may hold what was sent.

        Raises: AcquirerRefused, Missing (both: nothing was done); OutcomeUnknown for everything
            else.
        """
        answer = await self._answer(call)
        if not answer.is_success:
            raise _meaning(answer)
        try:
            return msgspec.json.decode(answer.content, type=shape)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise OutcomeUnknown("Mollie's answer can't be read") from None

    async def do(self, call: Callable[[], Awaitable[object]]) -> None:
        """Make a call whose answer says nothing.

        Raises: AcquirerRefused, Missing, OutcomeUnknown.
        """
        answer = await self._answer(call)
        if not answer.is_success:
            raise _meaning(answer)

    async def look(self, call: Callable[[], Awaitable[object]], shape: type[_Shape]) -> _Shape | None:
        """Read what is there or not (None); a refusal to let us look tells nothing.

        Raises: OutcomeUnknown.
        """
        try:
            return await self.ask(call, shape)
        except Missing:
            return None
        except AcquirerRefused as refused:
            raise Undecided(str(refused)) from None

    async def close(self) -> None:
        """Let go of connections."""
        await self._http.aclose()

    async def _answer(self, call: Callable[[], Awaitable[object]]) -> httpx.Response:
        """What Mollie sent, whatever the library makes of it.

        Raises: AcquirerRefused, OutcomeUnknown.
        """
        self._quiet.keep()
        answers: list[httpx.Response] = []
        before = _ANSWERS.set(answers)
        try:
            async with asyncio.timeout(self._timeout):
                await call()
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise NoConnection(f"no connection to Mollie: {type(error).__name__}") from None
        except (httpx.HTTPError, TimeoutError, OSError) as error:
            may_be_sent()
            raise OutcomeUnknown(f"no answer from Mollie: {type(error).__name__}") from None
        except mollie.models.ClientError:
            pass  # An answer that is an error, or one that the library can't read: we do.
        except (ValidationError, ValueError):
            if not answers:
                raise AcquirerRefused(noted("Mollie's library does not send this request")) from None
        finally:
            _ANSWERS.reset(before)
        if answers and answers[-1].status_code == _LIMITED:
            self._quiet.begin(answers[-1].headers.get("retry-after"))
            return answers[-1]
        may_be_sent()
        if not answers:
            raise OutcomeUnknown("no answer from Mollie")
        return answers[-1]


def header_of(key: str) -> str:
    """A key of ours as the random UUID (version 4) that Mollie asks for as an idempotency key:
    always the same one.
    """
    return str(UUID(bytes=hashlib.sha256(f"paydesk at mollie: {key}".encode()).digest()[:16], version=4))


def _meaning(answer: httpx.Response) -> Exception:
    """What an error of Mollie's means; whatever is not a clear no is unknown."""
    try:
        problem = msgspec.json.decode(answer.content, type=_Problem)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        problem = _Problem()
    why = problem.detail[:200] or problem.title[:200]
    match answer.status_code:
        case 401 | 403:
            return AcquirerRefused(noted("Mollie does not accept PAYDESK_MOLLIE_KEY for this; check it"))
        case 404 | 410:
            return Missing(why or noted("Mollie has no such thing"))
        case 400 | 405 | 415 | 422:
            return AcquirerRefused(why or noted("Mollie refused the request"))
        case 429:
            return TurnedAway("Mollie was asked too often: too many requests")
    return OutcomeUnknown(f"no clear answer from Mollie: status {answer.status_code}")
