"""Where a merchant's own stylesheet and logo are:
the checkout serves them, the account shows them.
"""

from __future__ import annotations

from datetime import datetime


def brand_address(merchant_id: int, changed_at: datetime | None) -> str:
    """The address below which they are, another one after each change;
    empty if the merchant has chosen nothing.
    """
    return f"/brand/{merchant_id}/{int(changed_at.timestamp() * 1_000_000):x}" if changed_at else ""
