"""Where small pictures of what is sold are: the checkout serves and shows them,
the API names them.
"""

from __future__ import annotations

from paydesk.domain.merchants.shop import Shop


def picture_address(shop: Shop, name: str) -> str:
    """The address of a stored picture: another content has another name, so it may be kept."""
    return f"/picture/{'live' if shop.live else 'test'}/{shop.merchant_id}/{name}"
