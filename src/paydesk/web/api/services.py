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
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.picturing import Pictures
from paydesk.domain.pingbacks.sending import PingbackSender
from paydesk.web.services import DoorServices
from paydesk.web.visits import client_address, in_sandbox

KEY_HEADER = APIKeyHeader(
    name="X-ApiKey", scheme_name="Private key", description="The merchant's private key.", auto_error=False
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiServices(DoorServices):
    """For one call, `sender` makes a sender of pingbacks, and `pictures` what fetches pictures."""

    door: ClassVar[str] = "api"

    calls_per_minute: int
    sender: Callable[[], AbstractAsyncContextManager[PingbackSender]]
    pictures: Pictures

    def base_of(self, shop: Shop) -> str:
        """The public base at which a side of a merchant is."""
        return self.address if shop.live else self.sandbox_address

    def portal_url(self, link: Link) -> str:
        """Where a customer manages the subscription that a link leads to."""
        return f"{self.base_of(link.shop)}/portal/{link.token(self.desk.vault)}"


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
    caller = await _identified(request, services, private_key)
    require_scope(caller.scopes, KeyScope.read if request.method in ("GET", "HEAD") else KeyScope.move)
    return caller


async def authenticate_signer(
    request: Request, services: Services, private_key: Annotated[str | None, Security(KEY_HEADER)]
) -> Caller:
    """Find the caller of what a signed form could do as well; else as `authenticate`."""
    caller = await _identified(request, services, private_key)
    require_scope(caller.scopes, KeyScope.sign)
    return caller


async def _identified(request: Request, services: ApiServices, private_key: str | None) -> Caller:
    """Who a private key belongs to. Raises: Unauthorized, TooMany."""
    if not private_key:
        raise Unauthorized("the header X-ApiKey is missing; send your private key in it")
    return await identify(
        services.desk.database,
        services.desk.vault,
        private_key,
        client_address=client_address(request.scope, services.trusted_proxies),
        sandbox=in_sandbox(request),
        calls_per_minute=services.calls_per_minute,
        now=services.now(),
    )


ByPrivateKey = Annotated[Caller, Depends(authenticate)]
BySigningKey = Annotated[Caller, Depends(authenticate_signer)]
