"""What customers agree to who save a card: the sentences, in the language that they read."""

from __future__ import annotations

from collections.abc import Mapping

from paydesk.domain.billing.charging_saved import LIMITED
from paydesk.domain.payments.checkouts import Checkout
from paydesk.domain.shoppers.instruments import Agreed, LaterCharges
from paydesk.web.card_fields import text_of
from paydesk.web.checkout.pages import CATALOGUES, texts_for
from paydesk.web.checkout.wording import CHARGE, KEEP
from paydesk.web.texts import Texts, mark
from paydesk_client.signature import Value

_KEEP = mark("Save this card for my next visit to %(merchant)s. I can remove it at any time.")
_CHARGE = mark(
    "%(merchant)s may charge this card later without me, for: %(purpose)s – at most %(limit)s within %(days)s days. I "
    "can take that back at any time."
)
_KEEP_ON_PAGE = mark("Save the card that I pay with for my next visit to %(merchant)s. I can remove it at any time.")
_CHARGE_ON_PAGE = mark(
    "%(merchant)s may charge the card that I pay with later without me, for: %(purpose)s – at most %(limit)s within "
    "%(days)s days. I can take that back at any time."
)


def keep_in_words(merchant: str, texts: Texts, *, on_page: bool = False) -> str:
    """The sentence by which a card is kept for the next visit; with `on_page` it is one that its
    customer will type on the acquirer's page.
    """
    return texts.get(_KEEP_ON_PAGE if on_page else _KEEP) % {"merchant": texts.apart(merchant)}


def charge_in_words(merchant: str, later: LaterCharges | None, texts: Texts, *, on_page: bool = False) -> str:
    """The sentence by which the shop may charge it without its customer; empty if it asks for
    nothing.
    """
    if later is None:
        return ""
    limit = texts.money(later.limit, later.currency)
    said = {"merchant": merchant, "purpose": later.purpose, "limit": limit}
    sentence = texts.get(_CHARGE_ON_PAGE if on_page else _CHARGE)
    return sentence % {"days": LIMITED.days, **{name: texts.apart(value) for name, value in said.items()}}


def ticked(form: Mapping[str, Value], box: str) -> str:
    """In which language the sentence was read whose box is ticked, as the box says it; empty if it
    is not, or says no language that our pages speak.
    """
    language = text_of(form, box)
    return language if CATALOGUES.speaks(language) else ""


def read_agreed(
    form: Mapping[str, Value], checkout: Checkout, shopper_id: int, *, on_page: bool = False
) -> Agreed | None:
    """What the ticked boxes agree to; None if none is ticked."""
    keep = charge = ""
    if language := ticked(form, KEEP):
        keep = keep_in_words(checkout.merchant_name, texts_for(language), on_page=on_page)
    if language := ticked(form, CHARGE):
        charge = charge_in_words(checkout.merchant_name, checkout.later, texts_for(language), on_page=on_page)
    if not (keep or charge):
        return None
    return Agreed(shopper_id, keep, charge, checkout.later if charge else None)
