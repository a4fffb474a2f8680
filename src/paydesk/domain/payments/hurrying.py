"""Looking at a page of an acquirer's sooner than it would be: its acquirer says that something has
happened to it, or its customer is back. Moves no money.

It is the page of a payment, or one on which a subscription's card is replaced. What is said is
believed in nothing: the janitor asks the acquirer, as it would have later. What is hurried is
written down; what is lost on its way costs some minutes.
"""

from __future__ import annotations

import hmac
import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from urllib.parse import urlencode

from paydesk.adapters.acquirers.notices import Notice
from paydesk.adapters.vault import Vault
from paydesk.database.pool import Database
from paydesk.database.statements import load_statements
from paydesk.domain.merchants.shop import Shop

queries = load_statements(__package__ or "", "hurrying.sql")

REST = timedelta(seconds=5)
"""How long a page is left alone once it was looked at, whoever is in a hurry."""

_NAMED: Final = re.compile(r"([lt])([0-9]{1,18})-(c?)([0-9]{1,18})")
_PURPOSE: Final = "notifications of acquirers"


@dataclass(frozen=True, slots=True)
class Notified:
    """An attempt, or the change of a subscription's card, as the address names it to which its
    acquirer sends what it does not sign; `row_id` is its own.
    """

    shop: Shop
    row_id: int
    is_change: bool = False

    @property
    def name(self) -> str:
        """The same in such an address."""
        side, of = "l" if self.shop.live else "t", "c" if self.is_change else ""
        return f"{side}{self.shop.merchant_id}-{of}{self.row_id}"

    def token(self, vault: Vault, account: str) -> str:
        """What nobody can make up who was not given the address."""
        return vault.fingerprint(f"{account} {self.name}", purpose=_PURPOSE).hex()[:32]


def notify_url(vault: Vault, base: str, account: str, about: Notified) -> str:
    """Where the acquirer `account` may tell of something without signing it; `base` is our public
    address.
    """
    return f"{base}/acquirers/{account}/notify?{urlencode({'of': about.name, 'token': about.token(vault, account)})}"


def named(vault: Vault, account: str, name: str, token: str) -> Notified | None:
    """What such an address names; None if the address is none that we have made."""
    match = _NAMED.fullmatch(name)
    if match is None:
        return None
    about = Notified(Shop(int(match[2]), live=match[1] == "l"), int(match[4]), is_change=bool(match[3]))
    return about if hmac.compare_digest(about.token(vault, account).encode(), token.encode()) else None


async def hurry_named(database: Database, account: str, about: Notified, *, now: datetime) -> bool:
    """Have the janitor look at it at once; false if nobody waits for anything of it.
    `now` is real time, UTC.
    """
    shop = about.shop
    names = {"merchant_id": shop.merchant_id, "live": shop.live, "acquirer": account, "rest": REST, "now": now}
    if about.is_change:
        return bool(await queries.hurry_change(database, change_id=about.row_id, **names))
    return bool(await queries.hurry_named(database, attempt_id=about.row_id, **names))


async def hurry_noticed(database: Database, account: str, notice: Notice, *, now: datetime) -> bool:
    """The same for what an acquirer has signed, which names it by key and merchant."""
    asked = {"acquirer": account, "key": notice.key, "merchant": notice.merchant}
    return bool(await queries.hurry_noticed(database, **asked, rest=REST, now=now))


async def may_look(database: Database, shop: Shop, attempt_id: int, *, now: datetime) -> bool:
    """Whether the acquirer may be asked about an attempt's page now, and note that it is.
    `now` is real time, UTC.
    """
    names = {"merchant_id": shop.merchant_id, "live": shop.live, "attempt_id": attempt_id}
    return bool(await queries.claim_look(database, **names, rest=REST, now=now))
