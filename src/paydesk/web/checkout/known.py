"""Who is known in a browser at one shop: the cookies, and what a checkout shows them.

Each shop, and each side of it, has cookies of its own names, which scripts can't read and other
sites can't send.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from datetime import datetime

from starlette.requests import Request
from starlette.responses import Response

from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.checkouts import Checkout
from paydesk.domain.payments.saved_cards import keepers_of
from paydesk.domain.shoppers.instruments import SavedInstrument, list_saved
from paydesk.domain.shoppers.proving import CODE_LIFETIME
from paydesk.domain.shoppers.sessions import NewSession, Shopper, find_shopper
from paydesk.web.checkout.services import CheckoutServices

_LONGEST_TOKEN = 100


@dataclass(frozen=True, slots=True)
class ShopCookies:
    """One shop's cookies in a browser that reaches the service over https (`secure`), or not."""

    shop: Shop
    secure: bool

    def token(self, request: Request) -> str:
        """The token of who is known here, or an empty text."""
        return request.cookies.get(self._name("shopper"), "")[:_LONGEST_TOKEN]

    def asked(self, request: Request) -> str:
        """The secret of the browser that has asked for a code, or an empty text."""
        return request.cookies.get(self._name("asked"), "")[:_LONGEST_TOKEN]

    def know(self, response: Response, session: NewSession) -> None:
        """Let the browser keep a session's token; it replaces any other."""
        self._write(response, "shopper", session.token, session.max_age)

    def ask(self, response: Response, browser: str) -> None:
        """Let the browser keep the secret that its code is bound to."""
        self._write(response, "asked", browser, int(CODE_LIFETIME.total_seconds()))

    def forget(self, response: Response, *what: str) -> None:
        """Let the browser forget `shopper` or `asked`."""
        for name in what:
            self._write(response, name, "", 0)

    def _name(self, what: str) -> str:
        side = "l" if self.shop.live else "t"
        name = f"paydesk-{what}-{side}{self.shop.merchant_id:x}"
        return f"__Host-{name}" if self.secure else name

    def _write(self, response: Response, what: str, value: str, max_age: int | None) -> None:
        response.set_cookie(
            self._name(what), value, max_age=max_age, path="/", secure=self.secure, httponly=True, samesite="lax"
        )


@dataclass(frozen=True, slots=True)
class Known:
    """Who is known in this browser at the checkout's shop, and the cards that they have saved.

    `keepers` are the acquirers that would take the checkout's money by what they keep.
    """

    shopper: Shopper
    instruments: Sequence[SavedInstrument]
    keepers: Set[str] = frozenset()

    def to_pay_with(self, now: datetime, *, takes_numbers: bool) -> list[SavedInstrument]:
        """The cards that they agreed to find again, and that have not expired, as far as the
        checkout can be paid with them: with `takes_numbers` by those whose numbers are kept here.
        """
        agreed = [one for one in self.instruments if one.keep_wording and one.is_good(now)]
        return [one for one in agreed if (one.kept_at in self.keepers if one.kept_at else takes_numbers)]

    def others(self, payable: Sequence[SavedInstrument]) -> list[SavedInstrument]:
        """The rest of them, which they may remove."""
        return [one for one in self.instruments if one not in payable]


def cookies_of(request: Request, services: CheckoutServices, shop: Shop) -> ShopCookies:
    """The cookies of a shop in the base that the request came to."""
    return ShopCookies(shop, services.public_url(request, "").startswith("https://"))


async def find_known(
    request: Request, services: CheckoutServices, checkout: Checkout, *, renew: bool = False
) -> Known | None:
    """Who is known in the browser, if somebody is; with `renew` the answer brings the token's
    successor.
    """
    token = cookies_of(request, services, checkout.shop).token(request)
    if not token:
        return None
    desk, shop = services.desk, checkout.shop
    shopper = await find_shopper(desk.database, desk.vault, shop, token, renew=renew, now=services.now())
    if shopper is None:
        return None
    instruments = await list_saved(desk.database, shop, shopper.id)
    keepers = {one.kept_at for one in instruments if one.kept_at}
    return Known(shopper, instruments, await keepers_of(desk, checkout, sorted(keepers)))
