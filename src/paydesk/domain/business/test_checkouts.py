"""A test checkout of a shop's own, opened without a line of code: as if its server had sent a form.
Moves no money.
"""

from __future__ import annotations

from datetime import datetime

from paydesk.domain.accounts.access_needs import Gate
from paydesk.domain.accounts.roles import Permission
from paydesk.domain.accounts.sessions import Session, require
from paydesk.domain.business.key_pairs import public_keys
from paydesk.domain.business.pingback_settings import find_pingback_settings
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.merchants.test_clock import shop_time
from paydesk.domain.payments.requests import read_request
from paydesk.domain.payments.storing import open_checkout

AMOUNT, CURRENCY = "10.00", "EUR"


async def open_test_checkout(gate: Gate, session: Session, *, description: str, success_url: str, now: datetime) -> str:
    """Open a checkout on the test side, whichever side is looked at; the token of its address.

    It is read as a form of the shop's is, stands under its newest key, and is told to its server
    likewise. Whoever presses twice within a second gets the same one. `now` is real time.

    Raises: Forbidden; Malformed if the service's own address can't be returned to.
    """
    shop = Shop(require(session, Permission.manage_integration).merchant_id, live=False)
    key = (await public_keys(gate.database, shop.merchant_id, most=1))[0]
    chosen = await find_pingback_settings(gate.database, shop.merchant_id)
    form = {
        "api_key": key.public_key,
        "merchant_order_id": f"test-{now:%Y%m%d-%H%M%S}",
        "amount": AMOUNT,
        "currency": CURRENCY,
        "description": description,
        "email": session.person.email,
        "success_url": success_url,
        "sign_version": chosen.sign_version,
    }
    shop_now = await shop_time(gate.database, shop, real_now=now)
    link = await open_checkout(gate.database, shop, read_request(form), form=form, key_id=key.id, now=shop_now)
    return link.token(gate.vault)
