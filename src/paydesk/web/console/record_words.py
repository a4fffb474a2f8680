"""How pages say the lines of audit log and alarms: what they are about, and their details.

The records keep words of ours in English, so that logs, commands and the API say the same of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime

from paydesk.domain.accounts.audit import Action
from paydesk.web.console.visit import Visit
from paydesk.web.texts import mark

DETAIL_NAMES: Mapping[str, str] = {
    "about": mark("About"),
    "accent": mark("Accent colour"),
    "accepted": mark("Accepted"),
    "acquirer": mark("Acquirer"),
    "added": mark("Rule"),
    "address": mark("Failed tries an hour from one address"),
    "after": mark("After"),
    "always_authenticate": mark("Ask everybody for 3-D Secure"),
    "amount": mark("Amount"),
    "amounts": mark("Amount"),
    "app_schemes": mark("Schemes"),
    "as": mark("Kind"),
    "at": mark("When"),
    "at_once": mark("At once"),
    "attempt": mark("Attempt"),
    "bank_account": mark("Bank account"),
    "because": mark("Why"),
    "before": mark("Before"),
    "by": mark("Amount"),
    "captured": mark("Taken by the bank"),
    "card": mark("Failed tries an hour with one card"),
    "carrier": mark("Carrier"),
    "charge_notice_days": mark("Days before a charge"),
    "chargeback_fee": mark("Fee of a chargeback"),
    "charged": mark("Charged"),
    "check": mark("Trials and changes of cards an hour with one card"),
    "checkout": mark("Attempts to pay one checkout"),
    "client_address": mark("From the address"),
    "code": mark("Code"),
    "corrected": mark("Corrected"),
    "currencies": mark("Currencies"),
    "currency": mark("Currency"),
    "customer_mails": mark("Send mails to customers"),
    "declines": mark("Declined"),
    "despite": mark("Why it is accepted all the same"),
    "despite_wait": mark("Why it is paid out all the same"),
    "dunning_by_reason": mark("Look at the bank's reason"),
    "dunning_end": mark("After the last try"),
    "dunning_hours": mark("Try again after"),
    "email": mark("E-mail"),
    "event": mark("Event"),
    "extra_events": mark("Event"),
    "fact": mark("Differs"),
    "fee": mark("Fee"),
    "fees_returned": mark("A refund gives back its share of the fees, too"),
    "fixed": mark("Fixed part of each payment"),
    "for_merchant": mark("Merchant"),
    "found": mark("What came"),
    "from": mark("From"),
    "from_cell": mark("From cell"),
    "from_version": mark("From version"),
    "gone": mark("Why"),
    "held": mark("Held"),
    "id": mark("Id"),
    "if": mark("Limits"),
    "item": mark("One-off items"),
    "key": mark("Key"),
    "kind": mark("Kind"),
    "language": mark("Language of your mails and pages"),
    "last4": mark("Last four digits"),
    "list": mark("First day"),
    "logo": mark("Logo"),
    "logo on dark pages": mark("Logo on dark pages"),
    "merchant": mark("Merchant"),
    "missing": mark("Steps of the profile"),
    "movement": mark("Movement"),
    "muted_events": mark("Muted"),
    "name": mark("Name"),
    "note": mark("Note"),
    "off": mark("Amount off"),
    "old_keys_until": mark("The old keys end"),
    "on_customers_pages": mark("On customers’ pages"),
    "order": mark("Order"),
    "payment": mark("Payment"),
    "payments": mark("Payments"),
    "payout": mark("Payout"),
    "pingback_format": mark("Body of version 1 pingbacks"),
    "pingback_url": mark("Pingback URL"),
    "pingbacks": mark("Pingbacks"),
    "portal_cancels": mark("If a customer cancels, it ends"),
    "portal_pauses": mark("Customers may pause"),
    "portal_plans": mark("If a customer changes the plan, it holds"),
    "portal_quantities": mark("Customers may change how many"),
    "price": mark("Price"),
    "process": mark("Worker"),
    "public_key": mark("Public key"),
    "q": mark("Search"),
    "rate": mark("Share of each payment, per cent"),
    "reason": mark("Reason"),
    "reference": mark("Reference"),
    "reference_id": mark("Reference"),
    "removed": mark("Rule"),
    "reserve_days": mark("Days until the reserve is released"),
    "reserve_rate": mark("Rolling reserve, per cent"),
    "role": mark("Role"),
    "rows": mark("Lines"),
    "saves_cards": mark("Customers may save their card"),
    "scopes": mark("It may"),
    "secrets of notifications": mark("Signing secret of notifications"),
    "sessions": mark("Where you are logged in"),
    "settlement_days": mark("Days until money is available"),
    "shipped_goods": mark("We ship goods"),
    "side": mark("Side"),
    "sign_version": mark("Signature"),
    "signs_line_items": mark("Forms may list what is bought as line_items"),
    "signs_quantities": mark("Subscriptions to several of a thing are sold"),
    "since": mark("From"),
    "slow_methods": mark("Customers may pay by bank transfer or direct debit"),
    "status": mark("Status"),
    "subscription": mark("Subscription"),
    "subscriptions": mark("Subscriptions"),
    "taken back": mark("Taken back"),
    "takes new payments": mark("Takes new payments"),
    "test": mark("Test data"),
    "test_mails": mark("Send us the mails about test data"),
    "test_mode": mark("Test mode"),
    "test_pingback_url": mark("Test pingback URL"),
    "time_zone": mark("Time zone"),
    "title": mark("Title"),
    "to": mark("To"),
    "to_come": mark("Still to come"),
    "to_cell": mark("To cell"),
    "to_version": mark("To version"),
    "transfers": mark("Transfers"),
    "trials_without_card": mark("Free trials begin without a card"),
    "until": mark("Until"),
    "url": mark("URL"),
    "version": mark("Version"),
    "what": mark("What"),
    "wrong_cvc": mark("Wrong security codes a day for one card"),
}
"""What the details of audit log and alarms are called: settings as the pages where they are set.
One that is not here is said as it is.
"""

_TYPED = frozenset({"note", "because", "name", "title", "item", "code", "reference", "order", "email", "gone", "q"})
"""Details that hold what people have typed, which is said as it is."""

_ON_NAMES = frozenset(
    {
        Action.acquirer_added,
        Action.acquirer_changed,
        Action.invitation_withdrawn,
        Action.member_invited,
        Action.merchant_opened,
        Action.test_event_sent,
    }
)
"""Acts whose subject is a name, an e-mail address or a URL."""

_SAID = {"True": mark("Yes"), "False": mark("No"), "None": "–", "": "–"}
_BECAME = " → "
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")


def details_in_words(visit: Visit, details: Mapping[str, object]) -> str:
    """The details of a line of audit log or alarms in the reader's language, in one line."""
    told = (f"{name_of_detail(visit, name)}: {_said(visit, name, value)}" for name, value in details.items())
    return ", ".join(told)


def subject_in_words(visit: Visit, action: Action, subject: str) -> str:
    """What an act was done to in the reader's language, but for names that somebody gave, and for
    what stands behind it in brackets.
    """
    if action in _ON_NAMES:
        return subject
    what, opened, which = subject.partition(" (")
    return f"{visit.texts.noted(what)}{opened}{which}" if which.endswith(")") else visit.texts.noted(subject)


def name_of_detail(visit: Visit, name: str) -> str:
    """What a detail is called."""
    return visit.texts.get(DETAIL_NAMES[name]) if name in DETAIL_NAMES else name.replace("_", " ")


def _said(visit: Visit, name: str, value: object) -> str:
    if isinstance(value, list):
        return ", ".join(_said(visit, name, one) for one in value) or "–"
    text = "–" if value is None else str(value)
    if name in _TYPED:
        return text
    before, became, after = text.partition(_BECAME)
    if became:
        return f"{_said(visit, name, before)}{became}{_said(visit, name, after)}"
    if text in _SAID:
        return visit.texts.get(_SAID[text])
    if _MOMENT.fullmatch(text):
        return visit.moment(datetime.fromisoformat(text))
    return visit.texts.noted(text)
