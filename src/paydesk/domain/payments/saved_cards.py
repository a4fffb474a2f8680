"""Paying with a saved card: its customer is there, has proved their address, and presses once."""

from __future__ import annotations

from datetime import datetime

from paydesk.adapters.acquirers.interface import CardDetails
from paydesk.core.errors import Conflict
from paydesk.domain.payments.checkouts import Checkout
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.paying import Payer, Result, order_of, pay, takes_card, takes_saved
from paydesk.domain.payments.stored_cards import CARD_NUMBER
from paydesk.domain.shoppers.instruments import find_to_pay_with, mark_used
from paydesk.domain.shoppers.sessions import Shopper


async def pay_with_saved(
    desk: Desk,
    checkout: Checkout,
    shopper: Shopper,
    instrument_id: int,
    *,
    client_address: str,
    language: str,
    return_url: str,
    now: datetime,
) -> Result:
    """Take the checkout's amount from a card that its own shopper has saved. Moves money.

    To the bank it is a payment like any by a customer who is there, without the security code,
    which is stored nowhere: 3-D Secure may be asked for, and the mailed code is none.

    Raises: as `pay`; NotFound if this shopper has no such card at this shop; Conflict if it may not
        be paid so.
    """
    acquirer = await desk.choose(order_of(checkout), can=lambda one: takes_card(one, checkout))
    if shopper.shop != checkout.shop or not takes_saved(checkout, acquirer):
        raise Conflict("this checkout can't be paid with a saved card")
    await desk.gate.require()
    saved = await find_to_pay_with(desk.database, shopper, instrument_id, now=now)
    names = {"merchant_id": checkout.shop.merchant_id, "row_id": saved.card_id}
    number = desk.vault.open(saved.sealed, purpose=CARD_NUMBER, **names).decode()
    card = CardDetails(number, saved.exp_month, saved.exp_year, saved.holder)
    payer = Payer(card, shopper.email, saved.country, client_address, language=language)
    result = await pay(desk, checkout, payer, return_url=return_url, now=now)
    desk.later(mark_used(desk.database, checkout.shop, saved.id, now=now))
    return result
