"""The plays of pages that the acquirer hosts: who pays there by what takes days, who does not come
back, and what the acquirer tells of its own accord.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta

from tests.faults.customers import APPROVED, AT_THE_BANKS, FAILING_TRANSFER, GONE_FROM_THERE, TRANSFER, Plan
from tests.faults.plays import PAYS, SHIPPED, Deed, Play, charge, have_saved_there, pay, play, value_of
from tests.faults.settling import TRANSFERS_ARE_DUE
from tests.faults.stage import Order, Stage

_PAUSE = 0.05
_STATE = "select count(*) from payment where merchant_order_id = $1 and state = 'pending'"


async def _have_chosen_a_transfer(stage: Stage, order: Order) -> None:
    """The money is on its way."""
    while not await value_of(stage, _STATE, order):
        await pay(stage, order)
        await asyncio.sleep(_PAUSE)


async def _arrive(stage: Stage, order: Order) -> None:
    """The days are over, and the bank says so to whoever asks."""
    await value_of(stage, TRANSFERS_ARE_DUE, order, timedelta(hours=1))


ARRIVES = Deed("arrives", _arrive, _have_chosen_a_transfer)
IS_NOTIFIED = Deed("is notified", pay)
CHARGES_THERE = Deed("charges what is kept there", charge, have_saved_there)

_BY_TRANSFER = Plan((TRANSFER,))
_FAILS = Plan((FAILING_TRANSFER, APPROVED))
_GOES_AWAY = Plan((GONE_FROM_THERE,))
_AT_THE_BANKS = Plan((AT_THE_BANKS,))

OF_PAGES: tuple[Play, ...] = (
    play(PAYS, "after bank.find_page", plan=_BY_TRANSFER),
    play(PAYS, "before hosting.record_pending", plan=_BY_TRANSFER),
    play(PAYS, "after hosting.record_pending", plan=_BY_TRANSFER),
    play(PAYS, "before hosting.record_pending", plan=_FAILS),
    play(PAYS, "before hurrying.hurry_named", plan=_BY_TRANSFER),
    play(IS_NOTIFIED, "before hurrying.hurry_named", plan=_GOES_AWAY),
    play(IS_NOTIFIED, "after hurrying.hurry_named", plan=_GOES_AWAY),
    play(PAYS, "after hosting.begin_page", SHIPPED, _AT_THE_BANKS),
    play(PAYS, "after bank.open_page", SHIPPED, _AT_THE_BANKS),
    play(PAYS, "after bank.find_page", SHIPPED, _AT_THE_BANKS),
    play(PAYS, "after payments.record_approvals", SHIPPED, _AT_THE_BANKS),
    play(CHARGES_THERE, "before charging_saved.begin_charge"),
    play(CHARGES_THERE, "after charging_saved.begin_charge"),
    play(CHARGES_THERE, "before bank.charge_stored"),
    play(CHARGES_THERE, "after bank.charge_stored"),
    play(CHARGES_THERE, "after payments.record_approvals"),
)
"""What a customer or the acquirer waits for: a process of `paydesk serve` stops."""

OF_PAGES_LATER: tuple[Play, ...] = (
    play(IS_NOTIFIED, "before bank.find_page", plan=_GOES_AWAY),
    play(IS_NOTIFIED, "after bank.find_page", plan=_GOES_AWAY),
    play(IS_NOTIFIED, "after payments.record_approvals", plan=_GOES_AWAY),
    play(ARRIVES, "before bank.pass_time", plan=_BY_TRANSFER),
    play(ARRIVES, "after bank.pass_time", plan=_BY_TRANSFER),
    play(ARRIVES, "after bank.find_page", plan=_BY_TRANSFER),
    play(ARRIVES, "before payments.record_approvals", plan=_BY_TRANSFER),
    play(ARRIVES, "after payments.record_approvals", plan=_BY_TRANSFER),
    play(ARRIVES, "after bank.pass_time", plan=_FAILS),
    play(ARRIVES, "after payments.record_declines", plan=_FAILS),
)
"""What is found out in the background: a process of `paydesk work` stops."""
