"""The merchant's door to the service: one object that holds the key pair and the address."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from paydesk_client.calls import Calls
from paydesk_client.checkouts import Checkouts
from paydesk_client.coupons import Coupons
from paydesk_client.deliveries import Deliveries
from paydesk_client.payment_form import PaymentForm
from paydesk_client.payments import Payments
from paydesk_client.pingback import Pingback
from paydesk_client.signature import Signature
from paydesk_client.subscriptions import Subscriptions


@dataclass(frozen=True, slots=True)
class Gateway:
    """A merchant's key pair and where the service is.

    Args:
        public_key: sent as `api_key` with each form.
        private_key: signs forms and pingbacks; keep it on the server.
        base_url: the service, such as `https://pay.example.com`.
        is_test: use the sandbox below base_url; no money moves (interface.md §9.2).
        header_prefix: what the names of the service's pingback headers begin with, if its operator
            changed it.
        clock: the time now as Unix seconds, which pingbacks are compared with.
        timeout: seconds to wait for an answer of the service's API.

    Raises: ValueError if a key is empty, base_url is no http(s) address, or is the sandbox while
        `is_test` asks for the sandbox below it.
    """

    public_key: str
    private_key: str = field(repr=False)
    base_url: str = "http://127.0.0.1:8000"
    is_test: bool = False
    header_prefix: str = field(default="X-Service", kw_only=True)
    clock: Callable[[], float] = field(default=time.time, kw_only=True, repr=False, compare=False)
    timeout: float = field(default=30.0, kw_only=True)

    def __post_init__(self) -> None:
        if not self.public_key or not self.private_key:
            raise ValueError("public_key and private_key are required; the merchant account shows both")
        address = urlsplit(self.base_url)
        if address.scheme not in ("http", "https") or not address.netloc:
            raise ValueError(f'base_url "{self.base_url}" is no address; expected one like https://pay.example.com')
        if self.is_test and address.path.rstrip("/").endswith("/sandbox"):
            raise ValueError(
                f'base_url "{self.base_url}" is the sandbox already, and is_test=True adds /sandbox once more; leave '
                "one of them out"
            )

    @property
    def api_url(self) -> str:
        """The address that requests go to: base_url, or the sandbox below it in test mode."""
        return self.base_url.rstrip("/") + ("/sandbox" if self.is_test else "")

    def payment_form(self) -> PaymentForm:
        """Build forms that take a customer to the checkout page (interface.md §2.1)."""
        return PaymentForm(self.api_url, self.public_key, self.signature())

    def signature(self) -> Signature:
        """Sign and verify the parameters of requests with this merchant's key."""
        return Signature(self.private_key)

    def pingback(self) -> Pingback:
        """Verify and read the notifications that the service sends (interface.md §4.7)."""
        return Pingback(self.private_key, self.header_prefix, self.clock)

    def checkouts(self) -> Checkouts:
        """Make checkouts without a form."""
        return Checkouts(Calls(self.api_url, self.private_key, self.timeout))

    def coupons(self) -> Coupons:
        """Make coupons, and switch them off."""
        return Coupons(Calls(self.api_url, self.private_key, self.timeout))

    def payments(self) -> Payments:
        """Give money back, and charge saved cards."""
        return Payments(Calls(self.api_url, self.private_key, self.timeout))

    def subscriptions(self) -> Subscriptions:
        """Cancel subscriptions (interface.md §8.4)."""
        return Subscriptions(Calls(self.api_url, self.private_key, self.timeout))

    def deliveries(self) -> Deliveries:
        """Confirm what became of an order's goods (interface.md §8.6)."""
        return Deliveries(Calls(self.api_url, self.private_key, self.timeout))
