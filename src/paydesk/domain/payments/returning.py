"""The way back to the shop after paying: by itself or by a button, and whether it has to be named.
Moves no money.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from urllib.parse import urlsplit

from paydesk.core.urls import WEB_SCHEMES, is_systems_own
from paydesk.database.pool import Database
from paydesk.database.statements import load_statements
from paydesk.domain.payments.checkouts import Checkout

queries = load_statements(__package__ or "", "returning.sql")


class Way(StrEnum):
    """How a customer who has paid gets to the shop."""

    NONE = "none"
    """The shop has named no page of its own, or one that no customer may be led to."""
    ITSELF = "itself"
    """The browser is led there, once; afterwards a page has a button."""
    BUTTON = "button"
    """Into an app that the account has not named as its own: only a page's button leads there."""
    NAMED = "named"
    """Nobody stands behind the account yet: a page says where its button leads."""


def way_back(checkout: Checkout) -> Way:
    """How the customer gets from a checkout to its `success_url`;
    the same in test mode as in live.
    """
    scheme = urlsplit(checkout.success_url).scheme
    if not checkout.success_url or is_systems_own(scheme):
        return Way.NONE
    if not checkout.merchant_confirmed:
        return Way.NAMED
    return Way.ITSELF if scheme in WEB_SCHEMES or scheme in checkout.app_schemes else Way.BUTTON


async def leads_by_itself(database: Database, checkout: Checkout, *, now: datetime) -> bool:
    """Whether this very answer leads the customer to the shop: of many, one does.
    Moves no money.
    """
    if way_back(checkout) is not Way.ITSELF:
        return False
    first = await queries.lead_back(
        database, merchant_id=checkout.shop.merchant_id, live=checkout.shop.live, id=checkout.id, now=now
    )
    return first is not None
