"""What the API's routes work with, and who calls them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Annotated, ClassVar

from fastapi import Depends, Security
from fastapi.security import APIKeyHeader
from starlette.requests import Request

from paydesk.core.errors import Unauthorized
from paydesk.domain.merchants.callers import Caller, identify
from paydesk.domain.merchants.customer_links import Link
from paydesk.domain.merchants.keys import KeyScope, require_scope
from paydesk.domain.pingbacks.sending import PingbackSender
from paydesk.web.services import DoorServices
from paydesk.web.visits import client_address, in_sandbox

KEY_HEADER = APIKeyHeader(
    name="X-ApiKey", scheme_name="Private key", description="The merchant's private key.", auto_error=False
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiServices(DoorServices):
    """`sender` makes a sender of pingbacks for one call."""

    door: ClassVar[str] = "api"

    calls_per_minute: int
    sender: Callable[[], AbstractAsyncContextManager[PingbackSender]]

    def portal_url(self, link: Link) -> str:
        """Where a customer manages the subscription that a link leads to."""
        return f"{self.address if link.shop.live else self.sandbox_address}/portal/{link.token(self.desk.vault)}"


async def _services(request: Request) -> ApiServices:
    # Not `of` itself: what is no coroutine, the framework calls in a thread.
    return ApiServices.of(request)


Services = Annotated[ApiServices, Depends(_services)]


async def authenticate(
    request: Request, services: Services, private_key: Annotated[str | None, Security(KEY_HEADER)]
) -> Caller:
    """Find the caller by the header `X-ApiKey` (interface.md §8.1);
    reading needs one scope, all else another.

    Raises: Unauthorized, TooMany; Forbidden for a key without the scope.
    """
    if not private_key:
        raise Unauthorized("the header X-ApiKey is missing; send your private key in it")
    caller = await identify(
        services.desk.database,
        services.desk.vault,
        private_key,
        client_address=client_address(request.scope, services.trusted_proxies),
        sandbox=in_sandbox(request),
        calls_per_minute=services.calls_per_minute,
        now=services.now(),
    )
    require_scope(caller.scopes, KeyScope.read if request.method in ("GET", "HEAD") else KeyScope.move)
    return caller


ByPrivateKey = Annotated[Caller, Depends(authenticate)]
