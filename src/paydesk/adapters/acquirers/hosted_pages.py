"""Pages that an acquirer hosts: what is asked for one, and how one stands.

Making a page moves no money; what the customer does on it may, until the page is paid or over.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum

from paydesk.adapters.acquirers.instruments import Instrument
from paydesk.adapters.acquirers.marks import Mark

SHORTEST_LIFE = timedelta(minutes=33)
"""For how long a page is asked for at least: Stripe takes 30 minutes or more, as its clock says,
and the request may be sent again for a minute and a half.
"""

LONGEST_LIFE = timedelta(hours=24) - timedelta(minutes=1)
"""For how long at most: Stripe takes 24 hours or less."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What an acquirer can do: take cards that were typed on our page, host a page of its own,
    charge a stored instrument without its customer, and with its customer there (`one_click`).

    `answered_at` is where the merchant's side of a dispute is told, in words, if not from here,
    and with `evidence_files` it may be told with files.
    """

    cards: bool = True
    pages: bool = False
    stored: bool = True
    one_click: bool = False
    answered_at: str = ""
    evidence_files: bool = False


@dataclass(frozen=True, slots=True)
class PageRequest:
    """A page for one order, on which its customer pays `amount` (in main units).

    Sent again under the same `key` it must be the same in everything, and the same page comes
    back. `order` is the shop's reference; `return_url` is where the page leads back to, paid or
    not; `language` is a tag such as `de-CH`. With `authenticate` 3-D Secure is asked for even if
    the bank would do without. `notify_url` is for an acquirer that tells of a page, in words that
    nobody signs, at an address named with it. Nobody may pay on it after `expires_at` (UTC, real
    time), which lies between SHORTEST_LIFE and LONGEST_LIFE ahead; an acquirer whose pages have a
    length of their own (Mollie) keeps to that. `asked_at` is when it was asked for first, for an
    acquirer that forgets keys sooner than pages.

    With `keep` the acquirer keeps what is paid with, to be charged again without the customer, and
    without `slow` offers only methods whose later charges are answered at once. Then `amount` may
    be 0: the instrument is only kept (it has to be good for `currency`), and nothing is ever taken
    for that. Without `capture` the money is only held, and no method is offered that would take it
    at once.

    With `keep_card` a card that is paid with is kept for its customer, who wants to find it again;
    with `charge_later`, which is for such a page alone, to be charged without them, too. What else
    is offered is not kept.

    Without `slow` only methods are offered whose banks answer at once; with it also those that may
    take days (`PageState.PENDING`): only for what is captured at once. With `keep` these are direct
    debits, whose later charges take days, too.
    """

    key: str
    amount: Decimal
    currency: str
    order: str
    shop: str
    description: str
    email: str
    language: str
    return_url: str
    expires_at: datetime
    mark: Mark | None = None
    keep: bool = False
    authenticate: bool = False
    notify_url: str = ""
    asked_at: datetime | None = None
    capture: bool = True
    slow: bool = False
    keep_card: bool = False
    charge_later: bool = False


class PageState(StrEnum):
    """How a page stands."""

    OPEN = "open"
    PAID = "paid"
    """The money is taken, or held where that was asked for."""
    PENDING = "pending"
    """The customer is done with it, and the money is not sure yet: PAID or ENDED comes later."""
    ENDED = "ended"
    """Nobody paid on it, and nobody can any more."""


@dataclass(frozen=True, slots=True)
class Page:
    """A page as its acquirer says that it stands.

    `reference` names it there, `key` is the one that it was asked for under; `amount` is what its
    customer was asked for, in main units of `currency`. Of one that is paid `payment` names the
    payment, as that of an approval, `instrument` is what it was paid with, and `hold_until` (UTC)
    when money that is only held is let go of, None if that is not told. `url` is where the customer
    goes while it is open. Of one that is pending, `until` (UTC, real time) is when its bank will
    know at the latest, as far as that can be said, and `instrument` what was chosen.
    """

    reference: str
    state: PageState
    key: str
    amount: Decimal
    currency: str
    url: str = ""
    payment: str = ""
    instrument: Instrument | None = None
    hold_until: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class ListedPage:
    """A page as its acquirer lists it; `at` (UTC) is when it was made, and `mark` says whose it is,
    None if nobody wrote one.
    """

    page: Page
    at: datetime
    mark: Mark | None = None


@dataclass(frozen=True, slots=True)
class PageList:
    """Pages; `next` is the cursor after them, empty at the end of the list."""

    pages: tuple[ListedPage, ...]
    next: str
