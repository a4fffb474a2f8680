"""Customers' links: what names a checkout or a subscription in an address.
It is made from the row and rests nowhere.

A link's token says in clear which merchant's side it belongs to, since rows are found by that; then
come a proof, which takes the deployment's secret key and the row's own seed to make, and the row's
id, hidden by the proof. So neither a dump nor the key alone opens anything, and a row is found by
its primary key. The merchant's id, in hex, also leads a request to the merchant's cell.

Tokens of older versions are random and stood in their rows; these are found by their keyed hash
(`hiding_links.py`).
"""

from __future__ import annotations

import hmac
import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from paydesk.adapters.vault import Vault
from paydesk.core.errors import NotFound
from paydesk.core.paging import LARGEST_ID
from paydesk.domain.merchants.shop import Shop

_PROOF_BYTES: Final = 16
_ID_BYTES: Final = 8
_TOKEN: Final = re.compile(r"([lt])([0-9a-f]{1,14})-([0-9a-f]{32})([0-9a-f]{16})?")


class LinkTo(StrEnum):
    """What a link leads to."""

    CHECKOUT = "checkout"
    PORTAL = "portal"
    PAYING = "paying"
    """The page that pays a subscription's open charge for one period, and does nothing else."""
    SHOPPER = "shopper"
    SALE = "sale"


@dataclass(frozen=True, slots=True)
class Link:
    """A row that a link may be made for; `old_token` is the one that it has
    from an older version, `period` what it is good for alone.
    """

    to: LinkTo
    shop: Shop
    row_id: int
    seed: str = field(repr=False)
    old_token: str | None = field(default=None, repr=False)
    period: int | None = None

    def token(self, vault: Vault) -> str:
        """What stands in the address: always the same for the same row."""
        if self.old_token is not None:
            return self.old_token
        said = f"{self.shop.live} {self.shop.merchant_id} {self.row_id} {self.seed}"
        if self.period is not None:
            said += f" {self.period}"
        proof = vault.fingerprint(said, purpose=f"{self.to} link")[:_PROOF_BYTES]
        side = "l" if self.shop.live else "t"
        return f"{side}{self.shop.merchant_id:x}-{proof.hex()}{_hide(vault, self.to, proof, self.row_id):016x}"

    def fits(self, seed: str | None) -> bool:
        """Whether the row is the one that was meant."""
        return seed == self.seed


@dataclass(frozen=True, slots=True)
class OpenedLink:
    """A token that somebody came with, and which row it claims to lead to:
    None if it is of an older version. `period` is what it claims to be good for, if for one alone.
    """

    vault: Vault
    to: LinkTo
    shop: Shop
    row_id: int | None
    token: str = field(repr=False)
    period: int | None = None

    def fits(self, seed: str | None) -> bool:
        """Whether the token is the one of the row with this seed;
        an older one was found by its hash.
        """
        if self.row_id is None:
            return True
        if not seed:
            return False
        own = Link(self.to, self.shop, self.row_id, seed, period=self.period).token(self.vault)
        return hmac.compare_digest(own.encode(), self.token.encode())

    @property
    def old_hash(self) -> bytes:
        """By which an older version's token is found."""
        return hash_of_old(self.vault, self.to, self.token)


def open_link(vault: Vault, to: LinkTo, token: str, *, period: int | None = None) -> OpenedLink:
    """Read a token; whether it is genuine shows when its row is found.

    No older version made links that are good for one period.

    Raises: NotFound if it can't be one.
    """
    match = _TOKEN.fullmatch(token)
    if match is None:
        raise wrong_link()
    shop = Shop(merchant_id=int(match[2], 16), live=match[1] == "l")
    if match[4] is None:
        if period is not None:
            raise wrong_link()
        return OpenedLink(vault, to, shop, None, token)
    row_id = _hide(vault, to, bytes.fromhex(match[3]), int(match[4], 16))
    if not 0 < row_id <= LARGEST_ID:
        raise wrong_link()
    return OpenedLink(vault, to, shop, row_id, token, period)


def merchant_in(token: str) -> int | None:
    """The merchant that a token names, of whichever version; None if it can't be one.
    Whether it is genuine, only the merchant's own cell can tell.
    """
    match = _TOKEN.fullmatch(token)
    merchant_id = int(match[2], 16) if match else 0
    return merchant_id if 0 < merchant_id <= LARGEST_ID else None


def wrong_link() -> NotFound:
    """What to raise for a link that leads nowhere."""
    return NotFound("this link is incomplete or wrong")


def hash_of_old(vault: Vault, to: LinkTo, token: str) -> bytes:
    """The keyed hash by which an older version's token is found."""
    return vault.fingerprint(token, purpose=f"older {to} link")


def _hide(vault: Vault, to: LinkTo, proof: bytes, number: int) -> int:
    """An id that only this proof shows, and back again."""
    mask = vault.fingerprint(proof.hex(), purpose=f"{to} link id")[:_ID_BYTES]
    return number ^ int.from_bytes(mask)
