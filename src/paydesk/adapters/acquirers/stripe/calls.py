"""Calls to Stripe through its official library, and what its errors mean for the money.

Its rate limiters (429) stand before everything else, its memory of idempotency keys included: what
they turn away has begun nothing. A lock that was not got in time is also 429: then another request
works on the same object, perhaps this very one, and the outcome is unknown. So it is after a 429 of
a kind that is not known here.

Source: docs.stripe.com/error-low-level, docs.stripe.com/rate-limits ("Object lock timeouts",
    `Stripe-Rate-Limited-Reason`).
"""

from __future__ import annotations

import logging
import os
from collections.abc import Awaitable, Coroutine
from typing import Any, Final, TypeVar

import aiohttp
import msgspec
import stripe

from paydesk.adapters.acquirers.interface import AcquirerRefused, DeclineReason, OutcomeUnknown, Undecided
from paydesk.adapters.acquirers.quiet import KeptQuiet, Quiet
from paydesk.adapters.acquirers.reaching import NoConnection, TurnedAway, may_be_sent
from paydesk.adapters.acquirers.stripe.declines import decline_reason, is_about_the_card
from paydesk.core.errors import SetupError
from paydesk.core.wording import noted

_Shape = TypeVar("_Shape")
_CONNECT_SECONDS: Final = 5.0
_NOT_SENT: Final = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
"""Errors that come before anything of a request is sent."""
_LIMITED: Final = (None, "", "rate_limit")
"""Codes of what a rate limiter turned away."""
_OF_ONE_OBJECT: Final = "resource-specific"


class Rejected(Exception):
    """The card was declined, for `reason`; nothing was taken."""

    def __init__(self, reason: DeclineReason) -> None:
        super().__init__(reason)
        self.reason = reason


class KeyTaken(Exception):
    """Stripe has seen the idempotency key with another request:
    this one was not done, and never will be.
    """


class Missing(AcquirerRefused):
    """There is no such object at Stripe."""


class Calls:
    """The library's client, asked once per question: it never repeats a call by itself."""

    def __init__(self, secret_key: str, api_base: str, timeout: float) -> None:
        """Prepare calls; `api_base` is empty for Stripe itself, `timeout` the seconds
        for a whole answer.

        Raises: SetupError if the library is told to print what it sends.
        """
        # The library's debug output repeats what it sends, card numbers included.
        if os.environ.get("STRIPE_LOG"):
            raise SetupError("STRIPE_LOG makes Stripe's library print card numbers; unset it")
        logging.getLogger("stripe").setLevel(logging.WARNING)
        stripe.enable_telemetry = False
        http = stripe.AIOHTTPClient(
            verify_ssl_certs=True, timeout=aiohttp.ClientTimeout(total=timeout, connect=_CONNECT_SECONDS)
        )
        self._http: Final = http
        self._client: Final = stripe.StripeClient(
            secret_key,
            base_addresses={
                "api": api_base.rstrip("/") or stripe.DEFAULT_API_BASE,
                "files": api_base.rstrip("/") or stripe.DEFAULT_UPLOAD_API_BASE,
            },
            http_client=http,
            max_network_retries=0,
        )
        self._quiet: Final = Quiet("Stripe")
        # Parameters are checked by Stripe, and answers by the shapes they are read into.
        self.v1: Final[Any] = self._client.v1

    async def ask(self, call: Awaitable[Any], shape: type[_Shape], *, begins: bool = True) -> _Shape:
        """Wait for an answer and read it.

        `begins` is false of what only goes before a purchase, and can't be one. No error is chained
        to the library's own, which may hold what was sent.

        Raises: Rejected, KeyTaken, AcquirerRefused (all: nothing was done); OutcomeUnknown for
            everything else.
        """
        try:
            answer = await self._sent(call)
        except stripe.StripeError as error:
            if begins and not (isinstance(error.__cause__, _NOT_SENT) or _is_limited(error)):
                may_be_sent()
            if _is_limited(error):
                self._rest(error)
            raise _meaning(error) from None
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            may_be_sent()
            raise OutcomeUnknown(f"no answer from Stripe: {type(error).__name__}") from None
        if begins:
            may_be_sent()
        try:
            return msgspec.convert(answer.last_response.data, shape, strict=False)
        except (msgspec.ValidationError, AttributeError):
            raise OutcomeUnknown("Stripe's answer can't be read") from None

    async def look(self, call: Awaitable[object], shape: type[_Shape]) -> _Shape | None:
        """Read what is there or not (None); a refusal to let us look tells nothing.

        Raises: OutcomeUnknown.
        """
        try:
            return await self.ask(call, shape)
        except Missing:
            return None
        except AcquirerRefused as refused:
            raise Undecided(str(refused)) from None

    async def _sent(self, call: Awaitable[Any]) -> Any:
        """The answer to a call, unless Stripe is to be left alone. Raises: KeptQuiet."""
        try:
            self._quiet.keep()
        except KeptQuiet:
            if isinstance(call, Coroutine):
                call.close()
            raise
        return await call

    def _rest(self, error: stripe.StripeError) -> None:
        """Leave Stripe alone for as long as it asks, unless that is for one object's sake."""
        said = {name.lower(): value for name, value in (error.headers or {}).items()}
        if said.get("stripe-rate-limited-reason") != _OF_ONE_OBJECT:
            self._quiet.begin(said.get("retry-after"))

    async def close(self) -> None:
        """Let go of connections."""
        if self._http._cached_session is not None:
            await self._http.close_async()


def _is_limited(error: stripe.StripeError) -> bool:
    """Whether a rate limiter has refused a request, and not a lock, or who knows what."""
    return isinstance(error, stripe.RateLimitError) and (error.code or _code(error)) in _LIMITED


def _meaning(error: stripe.StripeError) -> Exception:
    """What an error of Stripe's means; whatever is not a clear no is unknown."""
    match error:
        case stripe.CardError():
            return Rejected(_reason(error))
        case stripe.IdempotencyError() if error.http_status == 400:
            return KeyTaken("Stripe knows this idempotency key from another request")
        case stripe.InvalidRequestError() if is_about_the_card(error.code):
            return Rejected(_reason(error))
        case stripe.InvalidRequestError() if error.http_status == 404:
            return Missing(error.user_message or noted("Stripe has no such thing"))
        case stripe.InvalidRequestError():
            return AcquirerRefused(error.user_message or noted("Stripe refused the request"))
        case stripe.AuthenticationError() | stripe.PermissionError():
            return AcquirerRefused(noted("Stripe does not accept PAYDESK_STRIPE_SECRET_KEY for this; check it"))
        case stripe.RateLimitError() if _is_limited(error):
            return TurnedAway("Stripe was asked too often: too many requests")
        case stripe.APIConnectionError() if isinstance(error.__cause__, _NOT_SENT):
            return NoConnection(f"no connection to Stripe: {type(error.__cause__).__name__}")
    return OutcomeUnknown(f"no clear answer from Stripe: {type(error).__name__}, status {error.http_status}")


def _code(error: stripe.StripeError) -> str | None:
    """The error's code as it stands in the answer: not every class of the library's has it."""
    return getattr(error.error, "code", None) if error.error is not None else None


def _reason(error: stripe.StripeError) -> DeclineReason:
    """Why a card was declined."""
    decline_code = getattr(error.error, "decline_code", None) if error.error is not None else None
    return decline_reason(error.code, decline_code)
