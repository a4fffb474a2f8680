"""Paying with a saved card: its customer is there, has proved their address, and presses once."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from functools import partial

from paydesk.adapters.acquirers.interface import Acquirer
from paydesk.adapters.acquirers.purchases import CardDetails
from paydesk.core.errors import Conflict, Unavailable
from paydesk.domain.payments.checkouts import Checkout
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.paying import Payer, order_of, pay, takes_card, takes_kept, takes_saved
from paydesk.domain.payments.results import Result
from paydesk.domain.payments.stored_cards import CARD_NUMBER
from paydesk.domain.shoppers.instruments import find_to_pay_with, mark_used
from paydesk.domain.shoppers.sessions import Shopper


async def keepers_of(desk: Desk, checkout: Checkout, keepers: Iterable[str]) -> set[str]:
    """Those of some acquirers at which a checkout may be paid with what they keep, by one press."""
    able: set[str] = set()
    for keeper in keepers:
        with suppress(Unavailable):
            chosen = await desk.choose(order_of(checkout), can=partial(_takes_at, checkout, keeper))
            if takes_kept(chosen, checkout, keeper):
                able.add(keeper)
    return able


def _takes_at(checkout: Checkout, keeper: str, acquirer: Acquirer) -> bool:
    return takes_kept(acquirer, checkout, keeper)


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
    which is stored nowhere: 3-D Secure may be asked for, and the mailed code is none. What an
    acquirer keeps is paid with there, and never as a charge without its customer.

    Raises: as `pay`; NotFound if this shopper has no such card at this shop; Conflict if it may not
        be paid so.
    """
    if shopper.shop != checkout.shop or not checkout.saves_cards:
        raise Conflict("this checkout can't be paid with a saved card")
    await desk.gate.require()
    saved = await find_to_pay_with(desk.database, shopper, instrument_id, now=now)
    if saved.sealed is None:
        number, may = "", saved.acquirer in await keepers_of(desk, checkout, {saved.acquirer})
    else:
        acquirer = await desk.choose(order_of(checkout), can=lambda one: takes_card(one, checkout))
        may = takes_saved(checkout, acquirer)
        names = {"merchant_id": checkout.shop.merchant_id, "row_id": saved.card_id}
        number = desk.vault.open(saved.sealed, purpose=CARD_NUMBER, **names).decode()
    if not may:
        raise Conflict("this checkout can't be paid with this saved card")
    card = CardDetails(number, saved.exp_month, saved.exp_year, saved.holder)
    kept = saved if saved.sealed is None else None
    payer = Payer(card, shopper.email, saved.country, client_address, language=language, kept=kept, saved_id=saved.id)
    result = await pay(desk, checkout, payer, return_url=return_url, now=now)
    desk.later(mark_used(desk.database, checkout.shop, saved.id, now=now))
    return result
