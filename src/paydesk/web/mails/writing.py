"""Writing a mail that is due: its kind's content in the reader's language,
drawn as text and as HTML.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from paydesk.adapters.mail import Letter
from paydesk.domain.accounts.people import unlinked
from paydesk.domain.business.colours import Shades, dark_shades, light_shades
from paydesk.domain.mail.kinds import CUSTOMER_KINDS, LINK_KINDS, MailKind
from paydesk.domain.mail.sending import DueMail
from paydesk.web.brands import brand_address
from paydesk.web.mails import decisions, to_customers, to_merchants
from paydesk.web.mails.content import Content, MailMatter
from paydesk.web.rendering import DoorTemplates
from paydesk.web.texts import Catalogues, Texts, mark

_HERE = Path(__file__).parent
CATALOGUES = Catalogues(_HERE / "locale", "mails")
_PAGES = DoorTemplates(_HERE / "templates")

KINDS: Mapping[MailKind, Callable[[MailMatter], Content]] = {
    MailKind.receipt: to_customers.receipt,
    MailKind.subscription_started: to_customers.subscription_started,
    MailKind.renewal_receipt: to_customers.renewal_receipt,
    MailKind.renewal_failed: to_customers.renewal_failed,
    MailKind.card_expires: to_customers.card_expires,
    MailKind.charge_ahead: to_customers.charge_ahead,
    MailKind.card_wanted: to_customers.card_wanted,
    MailKind.subscription_stopped: to_customers.subscription_stopped,
    MailKind.subscription_cancelled: to_customers.subscription_cancelled,
    MailKind.payment_failed: to_customers.payment_failed,
    MailKind.refund: to_customers.refund,
    MailKind.shipment: to_customers.shipment,
    MailKind.shopper_code: to_customers.shopper_code,
    MailKind.void_reminder: to_merchants.void_reminder,
    MailKind.chargeback_alert: to_merchants.chargeback_alert,
    MailKind.failing_endpoint: to_merchants.failing_endpoint,
    MailKind.authorization_voided: to_merchants.authorization_voided,
    MailKind.profile_accepted: decisions.profile_accepted,
    MailKind.profile_refused: decisions.profile_refused,
    MailKind.profile_change_accepted: decisions.profile_change_accepted,
    MailKind.profile_change_refused: decisions.profile_change_refused,
    MailKind.merchant_suspended: decisions.merchant_suspended,
    MailKind.merchant_restored: decisions.merchant_restored,
    MailKind.security_notice: to_merchants.security_notice,
    MailKind.invitation: to_merchants.invitation,
    MailKind.confirm_email: to_merchants.confirm_email,
    MailKind.reset_password: to_merchants.reset_password,
}

_LIGHT = Shades("#1f5fbf", "#17478f", "#ffffff")
_DARK = Shades("#8ab4f8", "#aecbfa", "#10141a")
"""Our own colours of a mail's button, where a merchant has chosen none."""

_NAMES = ("name", "shop", "by", "invited_by", "merchant_name")
"""Facts that are names: of people and shops, as they or others typed them."""


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where links in mails lead, and in whose name mails to customers come besides the merchant's.

    The public addresses of both bases, without a trailing slash.
    """

    live: str
    sandbox: str
    operator: str = "Paydesk"


def write(mail: DueMail, addresses: Addresses) -> Letter:
    """The letter of a mail that is due.

    Raises: ValueError for a kind that has no text, or a fact that is not what the kind needs.
    """
    kind = MailKind(mail.kind)
    texts = CATALOGUES.texts_for(mail.language)
    test = mail.live is False
    base = addresses.sandbox if test else addresses.live
    merchant = unlinked(mail.merchant_name)
    facts = {**mail.facts, **{name: unlinked(str(mail.facts[name])) for name in _NAMES if mail.facts.get(name)}}
    telling = MailMatter(facts, texts, merchant, mail.time_zone, base, addresses.live)
    content = KINDS[kind](telling)
    to_customer = kind in CUSTOMER_KINDS
    # A link goes to an address before it is known whose it is: no free text of somebody else's
    # greets them.
    name = "" if kind in LINK_KINDS else telling.fact("name")
    greeting = telling.say(mark("Hello %(name)s,"), name=name) if name else telling.say(mark("Hello,"))
    notes = list(content.notes)
    if test:
        notes.append(telling.say(mark("This is a test. No real money has moved.")))
    if to_customer:
        notes.append(
            telling.say(
                mark("Paydesk handles payments for %(merchant)s. Answer this mail to reach them."),
                merchant=merchant,
            )
        )
    imprint = _imprint(mail, telling) if to_customer else []
    shows_accent = to_customer and bool(mail.accent)
    subject = telling.say(mark("[Test] %(subject)s"), subject=content.subject) if test else content.subject
    return Letter(
        reference=f"paydesk-{mail.merchant_id}-{mail.id}",
        sender_name=f"{merchant} via {addresses.operator}" if to_customer else "",
        reply_to=mail.merchant_email if to_customer else "",
        recipient=mail.recipient,
        subject=subject,
        language=texts.language,
        at=mail.created_at,
        text=_text(
            content, greeting, [*notes, *(f"{label}: {value}" if label else value for label, value in imprint)], texts
        ),
        html=_PAGES.render(
            "mail.html",
            texts,
            content=content,
            greeting=greeting,
            notes=notes,
            imprint=imprint,
            brand=merchant if to_customer else "Paydesk",
            logo=_logo(mail, base) if to_customer else "",
            dark_logo=mail.has_dark_logo,
            light=_LIGHT if not shows_accent else light_shades(mail.accent),
            dark=_DARK if not shows_accent else dark_shades(mail.accent),
        ),
    )


def _imprint(mail: DueMail, telling: MailMatter) -> list[tuple[str, str]]:
    """Who the shop is, a line each: a label and an address to link, or a text alone."""
    said = mail.imprint
    contact = ", ".join(filter(None, (unlinked(said.legal_name), said.support_email, said.support_phone)))
    links = (
        (telling.say(mark("Terms and conditions")), said.terms_url),
        (telling.say(mark("Privacy policy")), said.privacy_url),
    )
    return [*([("", contact)] if contact else []), *(link for link in links if link[1])]


def _logo(mail: DueMail, base: str) -> str:
    """Where the merchant's logo is, as its checkout page has it; empty if there is none."""
    return f"{base}{brand_address(mail.merchant_id, mail.branded_at)}/logo" if mail.has_logo else ""


def _text(content: Content, greeting: str, notes: list[str], texts: Texts) -> str:
    """The mail for who reads no HTML: paragraphs, a line for each row, the button's address
    on a line of its own.
    """
    parts = [greeting, *content.paragraphs]
    if content.rows:
        parts.append("\n".join(f"{label}: {texts.apart(value)}" for label, value in content.rows))
    if content.button is not None:
        parts.append(f"{content.button[0]}:\n{content.button[1]}")
    if notes:
        parts.append("-- \n" + "\n".join(notes))
    return "\n\n".join(parts) + "\n"
