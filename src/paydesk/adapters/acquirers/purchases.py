"""A purchase as an acquirer is asked for it, with the card that pays."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal

from paydesk.adapters.acquirers.marks import Mark


@dataclass(frozen=True, slots=True)
class CardDetails:
    """A card as the customer typed it; `cvc` is None for a stored card. Never log or print one.

    `city` and `postal_code` are for the bank's address check, empty where nobody asked for them.
    """

    number: str = field(repr=False)
    exp_month: int
    exp_year: int
    holder: str
    cvc: str | None = field(default=None, repr=False)
    city: str = field(default="", repr=False)
    postal_code: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Purchase:
    """One request to take money from a card.

    `amount` is in the main unit of `currency`, and 0 (with `capture` False) only checks the card;
    `capture` is False for an authorization only. The acquirer must refuse the key after `not_after`
    (UTC, real time, never a test clock's), which is what makes "not found" final. `return_url` is
    where a challenge sends the browser back to. `network_reference` marks a merchant-initiated
    charge of a stored card and names the customer's first payment; `stored_reference` is what the
    acquirer keeps the instrument under, which is charged then instead of `card`, also while its
    customer is there (`Capabilities.one_click`). `keep_card` says
    that the card will be charged again without the customer: its approval's `network_reference` is
    for that. `authenticate` asks for 3-D Secure even if the bank would do without: somebody is
    testing cards. The acquirer keeps `mark` with the purchase.
    """

    key: str
    amount: Decimal
    currency: str
    card: CardDetails
    capture: bool
    not_after: datetime
    return_url: str = ""
    network_reference: str | None = None
    stored_reference: str = field(default="", repr=False)
    keep_card: bool = False
    authenticate: bool = False
    mark: Mark | None = None
