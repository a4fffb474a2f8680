"""Buying by a payment link: the customer's choice becomes an ordinary checkout.

Nothing is taken from what is for sale before somebody begins to pay (`begin_attempt`), and what is
not paid after all is free again. Moves no money.
"""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import dataclass
from datetime import datetime

from paydesk.core.errors import Conflict, Malformed
from paydesk.domain.merchants.customer_links import Link
from paydesk.domain.merchants.sellers import find_seller
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.line_items import LineItem
from paydesk.domain.payments.receiving import refuse_beyond_acquirers, refuse_live
from paydesk.domain.payments.requests import QUANTITY, in_quantity, read_request
from paydesk.domain.payments.storing import Sale, open_checkout
from paydesk.domain.selling.payment_links import PaymentLink, Sold
from paydesk.domain.subscriptions.subscription_terms import as_fields

SIGN_VERSION = "v2"
_PRESS = re.compile(r"[0-9a-f]{32}")


class SoldOut(Conflict):
    """There are not as many left as somebody wants."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What somebody chose on a link's page; `press` was drawn for the page, so that its button may
    be pressed twice.
    """

    sold: Sold
    quantity: int
    press: str


def read_choice(link: PaymentLink, chosen: str, quantity: str, press: str) -> Choice:
    """Check what a link's page posted; `chosen` is the key of what is wanted, and may be missing
    where one thing alone is offered.

    Raises: Malformed, naming the field; SoldOut.
    """
    if not _PRESS.fullmatch(press):
        raise Malformed("press is not what the page was given", "press")
    sold = link.sold
    wanted = next(iter(sold.values())) if len(sold) == 1 and not chosen else sold.get(chosen)
    if wanted is None:
        raise Malformed("this is none of what is offered", "chosen")
    if link.left == 0:
        raise SoldOut("none is left")
    most = link.most
    if not re.fullmatch(r"[0-9]{1,6}", quantity or "1") or not 1 <= int(quantity or "1") <= most:
        raise Malformed(f"quantity must be a whole number from 1 to {most}", "quantity")
    return Choice(wanted, int(quantity or "1"), press)


async def buy(desk: Desk, link: PaymentLink, choice: Choice, *, real_now: datetime) -> Link:
    """Open the checkout of a choice, the same one however often the button is pressed.

    Raises: Conflict if the shop can't sell; Malformed if it all costs more than can be paid.
    """
    shop, offer = link.shop, link.offer
    seller = await find_seller(desk.database, shop.merchant_id, now=real_now)
    if not link.active:
        raise Conflict("this is not sold any more")
    if seller.key_id is None:
        raise Conflict("this shop has no key to sign its pingbacks with")
    digest, sold = _digest(link, choice), choice.sold
    form = {
        "merchant_order_id": f"link-{link.id}-{base64.b32encode(digest[:10]).decode().lower()}",
        "amount": f"{sold.price if sold.terms else sold.price * choice.quantity:f}",
        "currency": offer.currency,
        "description": sold.name,
        "sign_version": SIGN_VERSION,
        "success_url": offer.success_url,
    }
    if sold.terms is not None:
        form |= as_fields(sold.terms) | ({QUANTITY: str(choice.quantity)} if choice.quantity > 1 else {})
    request = in_quantity(read_request(form), form)
    if shop.live:
        refuse_live(seller)
        refuse_beyond_acquirers(shop, request, seller, await desk.serving(shop, request.currency))
    return await open_checkout(
        desk.database,
        shop,
        request,
        form=form,
        key_id=seller.key_id,
        now=real_now if shop.live else real_now + seller.test_clock,
        digest=digest,
        items=_items(link, choice),
        sale=Sale(link.id, choice.quantity),
    )


def _items(link: PaymentLink, choice: Choice) -> list[LineItem]:
    """The one line that shows what is bought, where it says more than the page does anyhow."""
    if choice.quantity == 1 and not link.offer.picture:
        return []
    return [LineItem(choice.sold.name, choice.sold.price, choice.quantity, link.offer.picture)]


def _digest(link: PaymentLink, choice: Choice) -> bytes:
    """Tells choices apart, those of a link that was changed since too, and from any form."""
    said = f"payment link {link.id} {link.changed_at.timestamp()} {choice.sold.key} {choice.quantity} {choice.press}"
    return hashlib.sha256(said.encode()).digest()
