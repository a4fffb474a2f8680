"""Stripe's own page to pay on: a Checkout Session in payment mode, with our key as its idempotency
key, as its reference, and in the metadata of the payment that it makes.

So its payment is found, refunded and disputed as any other. Everything that would make the customer
pay another amount, or in another currency, is off; which methods are offered is the account's own
setting, but for those whose money is not sure for days (of which direct debits are offered where
slow ones are wanted, and only SEPA's where they are kept), and, where the money is only to be held,
those that take it at once: Stripe leaves these out by itself, and they are named all the same. What
waits for the customer to go and pay somewhere is never offered: the order would be held by it. What
is to be charged again is kept with a customer of Stripe's, by the payment, or in setup mode where
nothing is paid.

Source: docs.stripe.com/api/checkout/sessions; docs.stripe.com/payments/checkout/fulfillment,
    "Delayed notification payment methods"; docs.stripe.com/payments/save-during-payment;
    docs.stripe.com/payments/checkout/save-and-reuse; docs.stripe.com/payments/sepa-debit;
    docs.stripe.com/payments/place-a-hold-on-a-payment-method;
    docs.stripe.com/changelog/clover/2025-09-30/checkout-capture-method-per-payment-method.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from paydesk.adapters.acquirers.hosted_pages import ListedPage, Page, PageList, PageRequest, PageState
from paydesk.adapters.acquirers.interface import (
    AcquirerRefused,
    Earlier,
    KeyUsed,
    NoSuchPage,
    OutcomeUnknown,
    Undecided,
    Voided,
)
from paydesk.adapters.acquirers.stripe.amounts import main_units, minor_units
from paydesk.adapters.acquirers.stripe.calls import Calls, KeyTaken, Missing, Rejected
from paydesk.adapters.acquirers.stripe.looking import Looking
from paydesk.adapters.acquirers.stripe.objects import (
    DEBITS,
    KEY,
    Intent,
    Named,
    instrument_of,
    mark_of,
    metadata_of,
)
from paydesk.core.wording import noted

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
"""Methods whose money is not sure for days: they are not offered, but for `DEBITS` if wanted."""

KEPT_DEBITS: Final = ("sepa_debit",)
"""Those of them that are offered, if wanted, where what is paid with will be charged again: the
others ask for more than a session says (mandates, checks of the account).
"""

KEPT_AS_DEBITS: Final = ("bancontact", "ideal")
"""Methods that pay at once, but are kept as direct debits, under another name than they were paid
with: they are not offered where what is paid with will be charged again.
"""

AT_ONCE: Final = (
    "alipay",
    "bancontact",
    "bizum",
    "blik",
    "crypto",
    "eps",
    "fpx",
    "giropay",
    "grabpay",
    "ideal",
    "mb_way",
    "p24",
    "pay_by_bank",
    "paynow",
    "paypay",
    "pix",
    "promptpay",
    "swish",
    "twint",
    "upi",
    "wechat_pay",
    "zip",
)
"""Methods that can't hold money, only take it: not offered where it is to be held."""

LOCALES: Final = frozenset(
    """
    bg cs da de el en en-GB es es-419 et fi fil fr fr-CA hi-IN hr hu id it ja ko lt lv ms mt nb nl pl pt pt-BR ro ru sk
    sl sv th tr vi zh zh-HK zh-TW
    """.split()  # noqa: SIM905 (one to a line would be a page)
)
"""Languages that Stripe's page has; others get what Stripe chooses."""

_LISTED: Final = ("open", "complete")
_PAGE: Final = 100
_MOST_PAGES: Final = 20
_BACK: Final = timedelta(hours=25)
"""Further back no session can have been made that was open a moment ago."""
_LONGEST_NAME: Final = 250
_EXPANDED: Final = {"expand": ["payment_intent.latest_charge", "setup_intent.payment_method"]}
_SETUP: Final = "setup"


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
    setup_intent: Intent | str | None = None
    mode: str = "payment"
    created: int = 0
    metadata: dict[str, str] | None = None

    @property
    def intent(self) -> Intent | None:
        """What the customer did on it: a payment, or the set-up of what is charged later."""
        made = self.setup_intent if self.mode == _SETUP else self.payment_intent
        return made if isinstance(made, Intent) else None


class SessionList(msgspec.Struct, frozen=True):
    """A page of sessions."""

    data: list[Session]
    has_more: bool = False


class Sessions:
    """Makes, finds and ends Checkout Sessions."""

    def __init__(self, calls: Calls, looking: Looking) -> None:
        self._calls: Final = calls
        self._looking: Final = looking

    async def open(self, wanted: PageRequest) -> Page:
        """Make a session, or show the one that was made under this key. Moves no money.

        Raises: AcquirerRefused, KeyUsed, OutcomeUnknown.
        """
        if wanted.amount == 0 and not wanted.keep:
            raise AcquirerRefused(noted("a page without an amount is for keeping an instrument"))
        options = {"idempotency_key": wanted.key}
        try:
            keeps = wanted.keep or wanted.keep_card
            asked = _asked(wanted, await self._customer(wanted) if keeps else "")
            made = await self._calls.ask(self._calls.v1.checkout.sessions.create_async(asked, options), Session)
        except KeyTaken:
            raise KeyUsed(noted("the key was used for something else before")) from None
        except Rejected as rejected:
            raise AcquirerRefused(noted("Stripe refused: %(reason)s", reason=rejected.reason)) from None
        return self._page(wanted.key, made)

    async def find(self, key: str, reference: str) -> Page:
        """How a session stands. Moves no money.

        Raises: NoSuchPage, AcquirerRefused, OutcomeUnknown.
        """
        asked = self._calls.v1.checkout.sessions.retrieve_async(reference, _EXPANDED)
        try:
            return self._page(key, await self._calls.ask(asked, Session))
        except Missing as missing:
            raise NoSuchPage(str(missing)) from None

    async def end(self, key: str, reference: str) -> Page:
        """Expire a session, if it is open. Moves no money.

        Stripe refuses what is not open any more, or what it can't expire just now: how the session
        stands then is the answer. Raises: NoSuchPage, AcquirerRefused, OutcomeUnknown.
        """
        with suppress(AcquirerRefused):
            await self._calls.ask(self._calls.v1.checkout.sessions.expire_async(reference), Session)
        return await self.find(key, reference)

    async def _customer(self, wanted: PageRequest) -> str:
        """The customer of Stripe's with whom a page keeps what is paid with: one for each page, the
        same one for the same request.
        """
        asked = {"email": wanted.email, "metadata": {KEY: wanted.key}}
        options = {"idempotency_key": f"{wanted.key}:customer"}
        call = self._calls.v1.customers.create_async(asked, options)
        return (await self._calls.ask(call, Named, begins=False)).id

    async def since(self, since: datetime, after: str) -> PageList:
        """The sessions made since a time that are not over, first the open ones and then those that
        are complete: one that is paid meanwhile is among the latter. Moves no money.

        Raises: AcquirerRefused, OutcomeUnknown.
        """
        status, _, place = after.partition(" ")
        status = status or _LISTED[0]
        if status not in _LISTED:
            raise AcquirerRefused(noted("the cursor is none of Stripe's"))
        page = await self._list({"status": status}, since, place)
        listed = tuple(one for one in map(self._listed, page.data) if one is not None)
        if page.has_more and page.data:
            return PageList(listed, f"{status} {page.data[-1].id}")
        return PageList(listed, f"{_LISTED[1]} " if status == _LISTED[0] else "")

    async def expired(self, key: str, now: datetime) -> Earlier | None:
        """The session that was made under a key and has expired, None if there is none among those
        of the last day. Moves no money. Raises: OutcomeUnknown.
        """
        place = ""
        for _ in range(_MOST_PAGES):
            try:
                page = await self._list({"status": "expired"}, now - _BACK, place)
            except AcquirerRefused as refused:
                raise Undecided(str(refused)) from None
            for one in page.data:
                if one.client_reference_id == key:
                    was = self._page(key, one)
                    return Earlier(Voided(), was.amount, was.currency, True, mark_of(one.metadata or {}))
            if not page.has_more or not page.data:
                break
            place = page.data[-1].id
        return None

    async def _list(self, wanted: dict[str, object], since: datetime, place: str) -> SessionList:
        """A page of Stripe's list of sessions. Raises: AcquirerRefused, OutcomeUnknown."""
        asked: dict[str, object] = {"limit": _PAGE, "created": {"gte": int(since.timestamp())}, **wanted}
        asked |= {"expand": ["data.payment_intent.latest_charge", "data.setup_intent.payment_method"]}
        if place:
            asked["starting_after"] = place
        return await self._calls.ask(self._calls.v1.checkout.sessions.list_async(asked), SessionList)

    def _listed(self, session: Session) -> ListedPage | None:
        """A session in the list; None for one of other software that is no such page at all,
        and for one that is over.
        """
        try:
            page = self._page(session.client_reference_id or "", session)
        except OutcomeUnknown:
            return None
        if page.state is PageState.ENDED:
            return None
        return ListedPage(page, datetime.fromtimestamp(session.created, UTC), mark_of(session.metadata or {}))

    def _page(self, key: str, session: Session) -> Page:
        """A session as a page. Raises: OutcomeUnknown if it can't be read as one."""
        intent = session.intent
        state = _state(session, intent)
        if state is PageState.PAID and intent is not None and key:
            self._looking.remember(key, intent)
        currency = (session.currency or "").upper()
        total = 0 if session.mode == _SETUP else session.amount_total
        if total is None or not currency:
            raise Undecided(f"Stripe does not say what {session.id} is for")
        return Page(
            reference=session.id,
            state=state,
            key=session.client_reference_id or "",
            amount=main_units(total, currency),
            currency=currency,
            url=session.url or "",
            payment=intent.id if intent is not None else "",
            instrument=instrument_of(intent) if state in (PageState.PAID, PageState.PENDING) else None,
            hold_until=intent.hold_until if intent is not None else None,
            until=_until(intent) if state is PageState.PENDING else None,
        )


def _asked(wanted: PageRequest, customer: str) -> dict[str, object]:
    """The parameters of a session: the same for the same request, to the byte. `customer` is with
    whom what is paid with is kept, empty if it is not.
    """
    metadata = metadata_of(wanted.key, wanted.expires_at, wanted.mark)
    asked: dict[str, object] = {
        "client_reference_id": wanted.key,
        "locale": _locale(wanted.language),
        "success_url": wanted.return_url,
        "cancel_url": wanted.return_url,
        "expires_at": int(wanted.expires_at.timestamp()),
        "metadata": metadata,
        "excluded_payment_method_types": list(dict.fromkeys(_excluded(wanted))),
        **({"customer": customer} if customer else {"customer_email": wanted.email}),
    }
    if cards := _of_cards(wanted):
        asked["payment_method_options"] = {"card": cards}
    if wanted.amount == 0:
        currency = wanted.currency.lower()
        return asked | {"mode": _SETUP, "currency": currency, "setup_intent_data": {"metadata": metadata}}
    kept = {"setup_future_usage": "off_session"} if wanted.keep else {}
    paid = {"capture_method": "automatic" if wanted.capture else "manual", "metadata": metadata}
    return asked | _payment(wanted) | {"payment_intent_data": paid | kept}


def _of_cards(wanted: PageRequest) -> dict[str, object]:
    """What is asked of cards alone: 3-D Secure even if the bank would do without, and that they are
    kept, for payments with their customer there or also without.
    """
    asked: dict[str, object] = {"request_three_d_secure": "any"} if wanted.authenticate else {}
    if wanted.keep_card:
        asked["setup_future_usage"] = "off_session" if wanted.charge_later else "on_session"
    return asked


def _excluded(wanted: PageRequest) -> tuple[str, ...]:
    """The methods that are not offered for what is asked."""
    return _too_slow(wanted) + (KEPT_AS_DEBITS if wanted.keep else ()) + (() if wanted.capture else AT_ONCE)


def _payment(wanted: PageRequest) -> dict[str, object]:
    """The parameters of a session on which something is paid."""
    name = (wanted.description.strip() or wanted.order)[:_LONGEST_NAME]
    return {
        "mode": "payment",
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
        "adaptive_pricing": {"enabled": False},
        "allow_promotion_codes": False,
        "automatic_tax": {"enabled": False},
        "submit_type": "pay",
    }


def _too_slow(wanted: PageRequest) -> tuple[str, ...]:
    """The methods that are not offered because their money is not sure at once."""
    offered: Iterable[str] = () if not wanted.slow else KEPT_DEBITS if wanted.keep else DEBITS
    return tuple(method for method in SLOW if method not in offered)


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
        case "complete", "paid" | "no_payment_required" if intent is not None and intent.status == "succeeded":
            return PageState.PAID
        # What is only held is called unpaid until it is captured.
        case "complete", _ if intent is not None and intent.status == "requires_capture":
            return PageState.PAID
        case "complete", "no_payment_required" if intent is not None and intent.status == "canceled":
            return PageState.ENDED
        case "complete", "no_payment_required":
            return PageState.PENDING
        case "complete", "unpaid" if intent is not None and intent.status in {"canceled", "requires_payment_method"}:
            return PageState.ENDED
        case "complete", "unpaid":
            return PageState.PENDING
    raise Undecided(f"Stripe's session {session.id} is {session.status}, {session.payment_status}")


def _until(intent: Intent | None) -> datetime | None:
    """When Stripe knows at the latest whether a direct debit was paid; None if nobody can say."""
    takes = intent.waits_for if intent is not None else None
    return datetime.fromtimestamp(intent.created, UTC) + takes if intent is not None and takes else None
