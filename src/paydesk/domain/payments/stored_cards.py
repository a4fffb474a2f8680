"""How a card is stored: what shows which it was, its number only to be charged again,
its security code nowhere.
"""

from __future__ import annotations

from paydesk.adapters.acquirers.instruments import Instrument, InstrumentKind
from paydesk.adapters.acquirers.purchases import CardDetails
from paydesk.adapters.vault import Vault
from paydesk.core.cards import Brand, detect_brand
from paydesk.domain.shoppers.instruments import PayableInstrument

CARD_NUMBER = "card number"
"""What a card number is sealed for."""


def card_row(vault: Vault, card: CardDetails, merchant_id: int, card_id: int, *, keep: bool) -> dict[str, object]:
    """A card as it is stored: what shows which it was, and its security code nowhere.

    Its number is stored only if `keep` says that it will be charged again, for a subscription or
    because its customer saved it, sealed for this very row. No outcome needs it: what became of a
    call is asked by the call's key.
    """
    sealed = None
    if keep:
        sealed = vault.seal(card.number.encode(), purpose=CARD_NUMBER, merchant_id=merchant_id, row_id=card_id)
    return {
        "card_id": card_id,
        "number_sealed": sealed.blob if sealed else None,
        "vault_key_id": sealed.key_id if sealed else "",
        "bin": card.number[:6],
        "last4": card.number[-4:],
        "brand": str(detect_brand(card.number)),
        "exp_month": card.exp_month,
        "exp_year": card.exp_year,
        "holder": card.holder,
    }


def kept_row(card_id: int, saved: PayableInstrument) -> dict[str, object]:
    """A card that its acquirer keeps, as it is stored with a payment by it: what shows which it
    is.
    """
    shown = {"last4": saved.last4, "brand": saved.brand, "exp_month": saved.exp_month, "exp_year": saved.exp_year}
    return unknown_row(card_id) | shown


def shown_brand(instrument: Instrument) -> str:
    """The brand that is stored for an instrument: a card's, or what kind it is instead of one."""
    if instrument.kind is InstrumentKind.CARD:
        return instrument.brand if instrument.brand in set(Brand) else str(Brand.UNKNOWN)
    return str(instrument.kind)


def unknown_row(card_id: int) -> dict[str, object]:
    """What is stored while the customer has yet to choose what to pay with, on another's page."""
    return {
        "card_id": card_id,
        "number_sealed": None,
        "vault_key_id": "",
        "bin": "",
        "last4": "",
        "brand": str(Brand.UNKNOWN),
        "exp_month": 0,
        "exp_year": 0,
        "holder": "",
    }
