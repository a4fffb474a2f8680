"""Mollie's own page to pay on: a payment with our key in its metadata, whose customer chooses a
method there.

The page and the payment are one object, so that it is found, refunded and charged back as any
other. Nothing that Mollie answers is believed to be ours unless it has our key and the digest of
what we asked for: it is not written that a repeated idempotency key with another request is
refused.

How long a page lives is Mollie's to say, by the method that its customer has chosen; most can't be
canceled, and none ends on demand.

Source: docs.mollie.com/reference/create-payment, /get-payment, /cancel-payment;
    docs.mollie.com/docs/handling-payment-status.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Final
from urllib.parse import urlsplit

from paydesk.adapters.acquirers.hosted_pages import (
    LONGEST_LIFE,
    SHORTEST_LIFE,
    ListedPage,
    Page,
    PageList,
    PageRequest,
    PageState,
)
from paydesk.adapters.acquirers.instruments import Instrument, InstrumentKind
from paydesk.adapters.acquirers.interface import AcquirerRefused, KeyUsed, NoSuchPage, OutcomeUnknown, Undecided
from paydesk.adapters.acquirers.mollie.amounts import value_of
from paydesk.adapters.acquirers.mollie.calls import Calls, header_of
from paydesk.adapters.acquirers.mollie.kept import KEPT_AS_DEBITS, METHODS, METHODS_FOR_NOTHING, Kept
from paydesk.adapters.acquirers.mollie.looking import REFERENCE, Looking, place
from paydesk.adapters.acquirers.mollie.objects import ASKED, DEBIT, Listed, Payment, digest_of, metadata_of, written
from paydesk.core.wording import noted

PROMPT: Final = (
    "applepay",
    "bancomatpay",
    "bancontact",
    "belfius",
    "bizum",
    "blik",
    "creditcard",
    "eps",
    "ideal",
    "kbc",
    "mbway",
    "mobilepay",
    "mybank",
    "paypal",
    "przelewy24",
    "satispay",
    "swish",
    "twint",
    "vipps",
    "wero",
)
"""Methods that say within minutes whether the money is there: only these are offered, as far as the
account has them.
"""

HELD: Final = ("creditcard", "mobilepay", "vipps")
"""Methods of these whose money may be held until the goods are shipped; a card is not kept by such
a page.
"""

BANKS: Final = frozenset(
    {"bancontact", "belfius", "bizum", "blik", "eps", "ideal", "kbc", "mybank", "przelewy24", "twint", "wero"}
)
"""Methods that pay from a bank account, at once."""

DEBITED_IN: Final = "EUR"
"""The one currency of SEPA direct debits."""

LOCALES: Final = tuple(
    """
    en_US en_GB nl_NL nl_BE de_DE de_AT de_CH fr_FR fr_BE es_ES ca_ES pt_PT it_IT nb_NO sv_SE fi_FI da_DK is_IS hu_HU
    pl_PL lv_LV lt_LT cs_CZ sk_SK sl_SI el_GR tr_TR
    """.split()  # noqa: SIM905 (one to a line would be a page)
)
"""Languages that Mollie's page has, the first one of each where its country is not among them;
others get what the browser asks for.
"""

KEY_KEPT: Final = timedelta(minutes=50)
"""How long a key is relied on: Mollie keeps it for an hour."""

_NOT_PUBLIC: Final = re.compile(r"^[0-9.]+$|:|\.(test|local|localhost|internal|lan|home\.arpa|invalid)$")
_DAY: Final = re.compile(r"([0-9]{4})-(0[1-9]|1[0-2])")
_BRANDS: Final = {
    "American Express": "amex",
    "Diners Club": "diners",
    "Discover": "discover",
    "JCB": "jcb",
    "Mastercard": "mastercard",
    "Unionpay": "unionpay",
    "Visa": "visa",
}
_WALLETS: Final = {"applepay": "apple_pay", "googlepay": "google_pay"}
_LONGEST_NAME: Final = 255
_STATES: Final = {
    "open": PageState.OPEN,
    "pending": PageState.PENDING,
    "authorized": PageState.PENDING,
    "paid": PageState.PAID,
    "canceled": PageState.ENDED,
    "expired": PageState.ENDED,
    "failed": PageState.ENDED,
}


class Pages:
    """Makes, finds and ends payments that customers make on Mollie's page."""

    def __init__(self, calls: Calls, looking: Looking, kept: Kept, now: Callable[[], datetime]) -> None:
        self._calls: Final = calls
        self._kept: Final = kept
        self._looking: Final = looking
        self._now: Final = now

    async def open(self, wanted: PageRequest) -> Page:
        """Make a payment, or show the one that was made under this key. Moves no money.

        One that may have been asked for longer ago than Mollie keeps keys is looked for first.

        Raises: AcquirerRefused, KeyUsed, OutcomeUnknown.
        """
        self._require_life(wanted)
        if wanted.amount == 0 and not wanted.keep:
            raise AcquirerRefused(noted("a page without an amount is for keeping an instrument"))
        if not wanted.capture and wanted.keep:
            raise AcquirerRefused(noted("what is to be charged again is taken at once at Mollie, and not held"))
        asked = _asked(wanted)
        digest = digest_of(asked)
        payment = await self._made_before(wanted) or await self._make(wanted, asked, digest)
        if payment.key != wanted.key or written(payment.metadata, ASKED) != digest:
            raise KeyUsed(noted("the key was used for something else before"))
        self._looking.remember(payment)
        return page_of(payment)

    async def find(self, key: str, reference: str) -> Page:
        """How a payment stands. Moves no money. Raises: NoSuchPage, OutcomeUnknown."""
        return page_of(await self._payment(reference))

    async def end(self, key: str, reference: str) -> Page:
        """Cancel a payment, if Mollie lets us. Moves no money.

        How it stands then is the answer. Raises: NoSuchPage, OutcomeUnknown.
        """
        payment = await self._payment(reference)
        if payment.status == "open" and payment.is_cancelable:
            with suppress(AcquirerRefused):
                await self._calls.ask(partial(self._calls.sdk.payments.cancel_async, payment_id=reference), Payment)
            payment = await self._payment(reference)
        return page_of(payment)

    async def since(self, since: datetime, after: str) -> PageList:
        """A part of Mollie's list, without what is over and was not paid. Moves no money.

        Raises: AcquirerRefused, OutcomeUnknown.
        """
        part = await self._calls.ask(partial(self._calls.sdk.payments.list_async, **place(after)), Listed)
        young = [payment for payment in part.embedded.payments if payment.at >= since]
        listed = [listed for payment in young if (listed := _listed(payment)) is not None]
        alive = tuple(one for one in listed if one.page.state is not PageState.ENDED)
        return PageList(alive, part.next if len(young) == len(part.embedded.payments) else "")

    async def _made_before(self, wanted: PageRequest) -> Payment | None:
        """What was made under the key, where that was perhaps long ago. Raises: OutcomeUnknown."""
        asked_at = wanted.asked_at or wanted.expires_at - LONGEST_LIFE
        if self._now() < asked_at + KEY_KEPT:
            return None
        return await self._looking.under(wanted.key, asked_at)

    async def _make(self, wanted: PageRequest, asked: dict[str, object], digest: str) -> Payment:
        """Ask for a payment. Raises: AcquirerRefused, OutcomeUnknown."""
        # Not part of the digest: its token is another one once our secret key is.
        told = {"webhook_url": wanted.notify_url} if tells(wanted.notify_url) else {}
        keeps = wanted.capture and (wanted.keep or wanted.keep_card)
        kept = {"customer_id": await self._kept.customer(wanted)} if keeps else {}
        create = partial(
            self._calls.sdk.payments.create_async,
            idempotency_key=header_of(wanted.key),
            payment_request=asked | told | kept | {"metadata": metadata_of(wanted.key, digest, wanted.mark)},
        )
        return await self._calls.ask(create, Payment)

    async def _payment(self, reference: str) -> Payment:
        """A payment by its name. Raises: NoSuchPage, OutcomeUnknown."""
        payment = await self._looking.payment(reference) if REFERENCE.fullmatch(reference) else None
        if payment is None:
            raise NoSuchPage("Mollie has no payment of this name")
        return payment

    def _require_life(self, wanted: PageRequest) -> None:
        """Refuse what no page is to be asked for: Mollie would make one of its own length.

        Raises: AcquirerRefused.
        """
        now = self._now()
        if not SHORTEST_LIFE <= wanted.expires_at - (wanted.asked_at or now) <= LONGEST_LIFE:
            raise AcquirerRefused(noted("a page is for half an hour at least, and for a day at most"))
        if now > wanted.expires_at:
            raise AcquirerRefused(noted("the time of this page is over"))


def page_of(payment: Payment) -> Page:
    """A payment as a page. Raises: OutcomeUnknown if it can't be read as one."""
    state = PageState.PAID if payment.is_held else _STATES.get(payment.status)
    if state is None:
        raise Undecided(f"Mollie's payment {payment.id} is {payment.status[:40]}")
    is_paid = state is PageState.PAID
    return Page(
        reference=payment.id,
        state=state,
        key=payment.key,
        amount=payment.amount.amount,
        currency=payment.amount.currency,
        url=payment.url if state is PageState.OPEN else "",
        payment=payment.id if is_paid else "",
        instrument=instrument_of(payment) if is_paid else None,
        hold_until=payment.hold_until,
    )


def _listed(payment: Payment) -> ListedPage | None:
    """A payment as a page in the list, None for one of other software that can't be read as one.

    Raises: OutcomeUnknown for one of ours.
    """
    try:
        return ListedPage(page_of(payment), payment.at, payment.mark)
    except OutcomeUnknown:
        if payment.key:
            raise
        return None


def instrument_of(payment: Payment) -> Instrument:
    """What was paid with, as far as Mollie tells."""
    method, details = payment.method or "", payment.details
    if method in {"creditcard", "applepay", "googlepay"}:
        label = _BRANDS.get((details and details.card_label) or "", "unknown")
        last4 = ((details and details.card_number) or "")[-4:]
        wallet = _WALLETS.get((details and details.wallet) or method, "")
        secured = details is not None and details.card_security == "3dsecure"
        card = Instrument(InstrumentKind.CARD, label, last4 if last4.isdigit() else "", wallet, authenticated=secured)
        if not payment.kept:
            return card
        month, year = _end_of((details and details.card_expiry_date) or "")
        return replace(card, reference=payment.kept, exp_month=month, exp_year=year)
    if method == DEBIT:
        return Instrument(InstrumentKind.SLOW_BANK)
    shown = Instrument(InstrumentKind.BANK if method in BANKS else InstrumentKind.OTHER)
    return replace(shown, reference=payment.kept, slow=True) if method in KEPT_AS_DEBITS else shown


def _end_of(day: str) -> tuple[int, int]:
    """The last month of a card and its year, zeros if Mollie does not say."""
    found = _DAY.match(day)
    return (int(found[2]), int(found[1])) if found else (0, 0)


def _asked(wanted: PageRequest) -> dict[str, object]:
    """The request for a payment: the same for the same page, to the byte."""
    asked: dict[str, object] = {
        "description": (wanted.description.strip() or wanted.order)[:_LONGEST_NAME],
        "amount": {"currency": wanted.currency, "value": value_of(wanted.amount, wanted.currency)},
        "redirect_url": wanted.return_url,
        "method": list(PROMPT),
    }
    if not wanted.capture:
        asked |= {"capture_mode": "manual", "method": list(HELD)}
    elif wanted.keep or wanted.keep_card:
        methods: tuple[str, ...] = METHODS if wanted.amount else METHODS_FOR_NOTHING
        if wanted.slow and wanted.amount and wanted.currency == DEBITED_IN:
            methods += KEPT_AS_DEBITS
        asked |= {"sequence_type": "first", "method": list(methods)}
    if wanted.email:
        asked["billing_address"] = {"email": wanted.email}
    if locale := locale_of(wanted.language):
        asked["locale"] = locale
    return asked


def tells(url: str) -> bool:
    """Whether Mollie may reach an address, as far as that can be seen: it refuses a payment whose
    notifications can't be sent.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.scheme != "https":
        return False
    return "." in host and not _NOT_PUBLIC.search(host)


def locale_of(language: str) -> str:
    """A language as Mollie calls it, empty for one that its page lacks."""
    wanted = language.replace("-", "_")
    short = f"{wanted.partition('_')[0]}_"
    return wanted if wanted in LOCALES else next((tag for tag in LOCALES if tag.startswith(short)), "")
