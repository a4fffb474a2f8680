"""Stripe's own page to pay on: a Checkout Session in payment mode, with our key as its idempotency
key, as its reference, and in the metadata of the payment that it makes.

So its payment is found, refunded and disputed as any other. Everything that would make the customer
pay another amount, or in another currency, is off; which methods are offered is the account's own
setting, but for those whose money is not sure for days.

Source: docs.stripe.com/api/checkout/sessions; docs.stripe.com/payments/checkout/fulfillment,
    "Delayed notification payment methods".
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

import msgspec

from paydesk.adapters.acquirers.hosted_pages import Page, PageRequest, PageState
from paydesk.adapters.acquirers.instruments import Instrument, InstrumentKind
from paydesk.adapters.acquirers.interface import AcquirerRefused, KeyUsed, OutcomeUnknown
from paydesk.adapters.acquirers.stripe.amounts import main_units, minor_units
from paydesk.adapters.acquirers.stripe.calls import Calls, KeyTaken, Rejected
from paydesk.adapters.acquirers.stripe.looking import Looking
from paydesk.adapters.acquirers.stripe.objects import KEY, Charge, Intent, metadata_of

SLOW: Final = (
    "acss_debit",
    "au_becs_debit",
    "bacs_debit",
    "boleto",
    "customer_balance",
    "konbini",
    "multibanco",
    "nz_bank_account",
    "oxxo",
    "payto",
    "sepa_debit",
    "sofort",
    "us_bank_account",
)
"""Methods whose money is not sure for days: they are not offered."""

LOCALES: Final = frozenset(
    """
    bg cs da de el en en-GB es es-419 et fi fil fr fr-CA hi-IN hr hu id it ja ko lt lv ms mt nb nl pl pt pt-BR ro ru sk
    sl sv th tr vi zh zh-HK zh-TW
    """.split()  # noqa: SIM905 (one to a line would be a page)
)
"""Languages that Stripe's page has; others get what Stripe chooses."""

BANKS: Final = frozenset({"bancontact", "blik", "eps", "fpx", "giropay", "ideal", "p24", "pay_by_bank", "twint"})
"""Methods that pay from a bank account, at once."""

_BRANDS: Final = {"amex", "diners", "discover", "jcb", "mastercard", "unionpay", "visa"}
_LONGEST_NAME: Final = 250
_EXPANDED: Final = {"expand": ["payment_intent.latest_charge"]}


class Session(msgspec.Struct, frozen=True):
    """A Checkout Session; its amount is in minor units."""

    id: str
    status: str | None = None
    payment_status: str = ""
    url: str | None = None
    client_reference_id: str | None = None
    amount_total: int | None = None
    currency: str | None = None
    payment_intent: Intent | str | None = None


class Sessions:
    """Makes, finds and ends Checkout Sessions."""

    def __init__(self, calls: Calls, looking: Looking) -> None:
        self._calls: Final = calls
        self._looking: Final = looking

    async def open(self, wanted: PageRequest) -> Page:
        """Make a session, or show the one that was made under this key. Moves no money.

        Raises: AcquirerRefused, KeyUsed, OutcomeUnknown.
        """
        asked, options = _asked(wanted), {"idempotency_key": wanted.key}
        try:
            made = await self._calls.ask(self._calls.v1.checkout.sessions.create_async(asked, options), Session)
        except KeyTaken:
            raise KeyUsed("the key was used for something else before") from None
        except Rejected as rejected:
            raise AcquirerRefused(f"Stripe refused: {rejected.reason}") from None
        return self._page(wanted.key, made)

    async def find(self, key: str, reference: str) -> Page:
        """How a session stands. Moves no money. Raises: AcquirerRefused, OutcomeUnknown."""
        service = self._calls.v1.checkout.sessions
        return self._page(key, await self._calls.ask(service.retrieve_async(reference, _EXPANDED), Session))

    async def end(self, key: str, reference: str) -> Page:
        """Expire a session, if it is open. Moves no money.

        Stripe refuses what is not open any more, or what it can't expire just now: how the session
        stands then is the answer. Raises: AcquirerRefused, OutcomeUnknown.
        """
        with suppress(AcquirerRefused):
            await self._calls.ask(self._calls.v1.checkout.sessions.expire_async(reference), Session)
        return await self.find(key, reference)

    def _page(self, key: str, session: Session) -> Page:
        """A session as a page. Raises: OutcomeUnknown if it can't be read as one."""
        intent = session.payment_intent if isinstance(session.payment_intent, Intent) else None
        state = _state(session, intent)
        if state is PageState.PAID and intent is not None:
            self._looking.remember(key, intent)
        currency = (session.currency or "").upper()
        if session.amount_total is None or not currency:
            raise OutcomeUnknown(f"Stripe does not say what {session.id} is for")
        return Page(
            reference=session.id,
            state=state,
            key=session.client_reference_id or "",
            amount=main_units(session.amount_total, currency),
            currency=currency,
            url=session.url or "",
            payment=intent.id if intent is not None else "",
            instrument=_instrument(intent) if state is PageState.PAID else None,
        )


def _asked(wanted: PageRequest) -> dict[str, Any]:
    """The parameters of a session: the same for the same request, to the byte."""
    metadata = metadata_of(wanted.key, wanted.expires_at, wanted.mark)
    name = (wanted.description.strip() or wanted.order)[:_LONGEST_NAME]
    return {
        "mode": "payment",
        "client_reference_id": wanted.key,
        "customer_email": wanted.email,
        "locale": _locale(wanted.language),
        "success_url": wanted.return_url,
        "cancel_url": wanted.return_url,
        "expires_at": int(wanted.expires_at.timestamp()),
        "line_items": [
            {
                "quantity": 1,
                "price_data": {
                    "currency": wanted.currency.lower(),
                    "unit_amount": minor_units(wanted.amount, wanted.currency),
                    "product_data": {"name": name},
                },
            }
        ],
        "metadata": {KEY: wanted.key},
        "payment_intent_data": {"capture_method": "automatic", "metadata": metadata},
        "adaptive_pricing": {"enabled": False},
        "allow_promotion_codes": False,
        "automatic_tax": {"enabled": False},
        "excluded_payment_method_types": list(SLOW),
        "submit_type": "pay",
    }


def _locale(language: str) -> str:
    """A language as Stripe calls it, `auto` for one that its page lacks."""
    return next((tag for tag in (language, language.partition("-")[0]) if tag in LOCALES), "auto")


def _state(session: Session, intent: Intent | None) -> PageState:
    """How a session stands. Raises: OutcomeUnknown if Stripe's words are none that we know."""
    match session.status, session.payment_status:
        case "open", _:
            return PageState.OPEN
        case "expired", _:
            return PageState.ENDED
        case "complete", "paid" if intent is not None and intent.status == "succeeded":
            return PageState.PAID
        case "complete", "unpaid" if intent is not None and intent.status in {"canceled", "requires_payment_method"}:
            return PageState.ENDED
        case "complete", "unpaid":
            return PageState.PENDING
    raise OutcomeUnknown(f"Stripe's session {session.id} is {session.status}, {session.payment_status}")


def _instrument(intent: Intent | None) -> Instrument:
    """What was paid with, as far as Stripe tells."""
    charge = intent.latest_charge if intent is not None else None
    method = charge.payment_method_details if isinstance(charge, Charge) else None
    if method is None:
        return Instrument(InstrumentKind.OTHER)
    if method.card is not None:
        brand = method.card.brand or ""
        wallet = method.card.wallet.type if method.card.wallet else ""
        return Instrument(
            InstrumentKind.CARD, brand if brand in _BRANDS else "unknown", method.card.last4 or "", wallet
        )
    return Instrument(InstrumentKind.BANK if method.type in BANKS else InstrumentKind.OTHER)
