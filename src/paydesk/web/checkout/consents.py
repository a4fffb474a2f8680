"""What customers agree to who save a card: the sentences, in the language that they read."""

from __future__ import annotations

from collections.abc import Mapping

from paydesk.domain.payments.checkouts import Checkout
from paydesk.domain.shoppers.instruments import Agreed, LaterCharges
from paydesk.web.card_fields import text_of
from paydesk.web.checkout.pages import texts_for
from paydesk.web.checkout.wording import CHARGE, KEEP
from paydesk.web.texts import Texts, mark
from paydesk_client.signature import Value

_KEEP = mark("Save this card for my next visit to %(merchant)s. I can remove it at any time.")
_CHARGE = mark(
    "%(merchant)s may charge this card later without me, for: %(purpose)s – at most %(limit)s within 30 days. I can "
    "take that back at any time."
)


def keep_in_words(merchant: str, texts: Texts) -> str:
    """The sentence by which a card is kept for the next visit."""
    return texts.get(_KEEP) % {"merchant": texts.apart(merchant)}


def charge_in_words(merchant: str, later: LaterCharges | None, texts: Texts) -> str:
    """The sentence by which the shop may charge it without its customer; empty if it asks for
    nothing.
    """
    if later is None:
        return ""
    limit = texts.money_with_code(later.limit, later.currency)
    said = {"merchant": merchant, "purpose": later.purpose, "limit": limit}
    return texts.get(_CHARGE) % {name: texts.apart(value) for name, value in said.items()}


def read_agreed(form: Mapping[str, Value], checkout: Checkout, shopper_id: int) -> Agreed | None:
    """What the ticked boxes agree to; None if none is ticked."""
    keep = charge = ""
    if language := text_of(form, KEEP):
        keep = keep_in_words(checkout.merchant_name, texts_for(language))
    if language := text_of(form, CHARGE):
        charge = charge_in_words(checkout.merchant_name, checkout.later, texts_for(language))
    if not (keep or charge):
        return None
    return Agreed(shopper_id, keep, charge, checkout.later if charge else None)
