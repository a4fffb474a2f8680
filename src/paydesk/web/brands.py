"""Where a merchant's own stylesheet and logo are:
the checkout serves them, the account shows them.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Look:
    """A shop as its customers know it: its name, the address of its stylesheet and logo, and
    whether there is a logo.
    """

    merchant_name: str
    brand: str
    has_logo: bool


def brand_address(merchant_id: int, changed_at: datetime | None) -> str:
    """The address below which they are, another one after each change;
    empty if the merchant has chosen nothing.
    """
    return f"/brand/{merchant_id}/{int(changed_at.timestamp() * 1_000_000):x}" if changed_at else ""
