"""The plays at the live acquirers' stand-ins: customers pay on their pages, what is kept there is
charged again, and money goes back.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from tests.faults.customers import AT_THE_BANKS, GONE_FROM_THERE, KEPT_OPEN, LEFT_THERE, MISTYPED, Plan
from tests.faults.keeping import Wish
from tests.faults.on_pages import CHARGES_THERE, IS_NOTIFIED
from tests.faults.plays import (
    CANCELLED,
    FORGOTTEN,
    GIVES_BACK,
    IS_FINISHED,
    IS_FORGOTTEN,
    IS_TOLD,
    KEPT,
    PART_BACK,
    PAYS,
    SHIPPED,
    SHIPS,
    Deed,
    Play,
    have_paid,
    look_up,
    pay,
    play,
    postpone_look,
    value_of,
)
from tests.faults.stage import Order, Stage

THERE = Plan((AT_THE_BANKS,))
_JOINS = Plan((AT_THE_BANKS,), joins=True)
GOES_AWAY = Plan((GONE_FROM_THERE,))
LEAVES = Plan((LEFT_THERE, AT_THE_BANKS))
_MENDS = Plan((MISTYPED, AT_THE_BANKS))
PAYS_BOTH = Plan((KEPT_OPEN, AT_THE_BANKS))

_NEW_MEMBER_OWES = """
update subscription s
   set date_next = now() - interval '1 hour'
 where init_merchant_order_id = $1 and charging_attempt_id is null
   and (select count(*) from payment p where p.merchant_id = s.merchant_id and p.subscription_id = s.id) = 1
"""
"""The first renewal is due, unless it was begun."""


async def _have_lost_the_page(stage: Stage, order: Order) -> None:
    """The customer has asked for a page, but the acquirer's answer was lost, and nobody has asked
    for it again yet.
    """
    assert stage.live is not None
    begun = "select count(*) from payment p where merchant_order_id = $1 and state = 'processing'"
    while not await value_of(stage, begun, order):
        await stage.live.do("set", loses=1)
        await pay(stage, order)
    await stage.live.do("set", loses=0)
    await postpone_look(stage, order)


async def _have_joined(stage: Stage, order: Order) -> None:
    """The member has paid for the first month; the shop knows of the second one."""
    await have_paid(stage, order)
    stage.staff.tasks[f"{order.name}:2"] = stage.staff.tasks[order.name]


async def _fall_due(stage: Stage, order: Order) -> None:
    await value_of(stage, _NEW_MEMBER_OWES, order)


IS_ASKED_AGAIN = Deed("is asked again", look_up, _have_lost_the_page)
RENEWS = Deed("renews", _fall_due, _have_joined)

_WORDS = {
    THERE: "",
    _JOINS: "-to-join",
    GOES_AWAY: "-and-goes",
    LEAVES: "-and-leaves",
    _MENDS: "-and-mends",
    PAYS_BOTH: "-and-both",
}


def _play(deed: Deed, at: str, goods: tuple[str, Wish] = KEPT, plan: Plan = THERE) -> Play:
    """A play whose order is named after it, and after what its customer does there."""
    made = play(deed, at, goods, plan)
    return replace(made, order=replace(made.order, name=f"{made.order.name}{_WORDS[plan]}"))


OF_THE_PAGE = (
    _play(PAYS, "before hosting.begin_page"),
    _play(PAYS, "after hosting.begin_page"),
    _play(PAYS, "before bank.open_page"),
    _play(PAYS, "after bank.open_page"),
    _play(PAYS, "before payments.record_challenge"),
    _play(PAYS, "after payments.record_challenge"),
    _play(PAYS, "before bank.find_page"),
    _play(PAYS, "after bank.find_page"),
    _play(PAYS, "before hosting.name_instruments"),
    _play(PAYS, "after hosting.name_instruments"),
    _play(PAYS, "before payments.record_approvals"),
    _play(PAYS, "after payments.record_approvals"),
    _play(PAYS, "after bank.open_page", plan=_JOINS),
    _play(PAYS, "before hosting.name_instruments", plan=_JOINS),
    _play(PAYS, "before payments.record_approvals", plan=_JOINS),
    _play(PAYS, "after bank.find_page", plan=LEAVES),
    _play(PAYS, "before bank.end_page", plan=_MENDS),
    _play(PAYS, "after bank.end_page", plan=_MENDS),
    _play(PAYS, "after payments.record_declines", plan=_MENDS),
    _play(PAYS, "after bank.open_page", plan=_MENDS),
)
"""From the intent to the record, by who comes back: a process of `paydesk serve` stops."""

OF_MOVEMENTS = (
    _play(GIVES_BACK, "before movements.begin_refund", PART_BACK),
    _play(GIVES_BACK, "after movements.begin_refund", PART_BACK),
    _play(GIVES_BACK, "before bank.refund", PART_BACK),
    _play(GIVES_BACK, "after bank.refund", PART_BACK),
    _play(GIVES_BACK, "after movements.record_movements", PART_BACK),
    _play(GIVES_BACK, "after idempotent_calls.keep_answer", PART_BACK),
    _play(CHARGES_THERE, "before charging_saved.begin_charge"),
    _play(CHARGES_THERE, "after charging_saved.begin_charge"),
    _play(CHARGES_THERE, "before bank.charge_stored"),
    _play(CHARGES_THERE, "after bank.charge_stored"),
    _play(CHARGES_THERE, "after payments.record_approvals"),
    _play(CHARGES_THERE, "after idempotent_calls.keep_answer"),
)
"""What a merchant's server asks for: again a process of `paydesk serve` stops."""

OF_TWO_PAGES = (
    _play(PAYS, "before undoing.begin_void", plan=PAYS_BOTH),
    _play(PAYS, "after undoing.begin_void", plan=PAYS_BOTH),
    _play(PAYS, "before bank.undo", plan=PAYS_BOTH),
    _play(PAYS, "after bank.undo", plan=PAYS_BOTH),
    _play(PAYS, "before undoing.record_void", plan=PAYS_BOTH),
    _play(PAYS, "after undoing.record_void", plan=PAYS_BOTH),
)
"""What is paid on a page that could not be ended goes back: of `serve` or of `work`."""

OF_THE_WORKERS = (
    _play(IS_TOLD, "before merchant.post"),
    _play(IS_TOLD, "after merchant.post"),
    _play(IS_TOLD, "before pingbacks.record"),
    _play(IS_ASKED_AGAIN, "before bank.open_page"),
    _play(IS_ASKED_AGAIN, "after bank.open_page"),
    _play(IS_ASKED_AGAIN, "after payments.record_challenge"),
    _play(IS_NOTIFIED, "before bank.find_page", plan=GOES_AWAY),
    _play(IS_NOTIFIED, "after bank.find_page", plan=GOES_AWAY),
    _play(IS_NOTIFIED, "before payments.record_approvals", plan=GOES_AWAY),
    _play(IS_NOTIFIED, "after payments.record_approvals", plan=GOES_AWAY),
    _play(IS_FINISHED, "before bank.find_movement", PART_BACK),
    _play(IS_FINISHED, "after bank.find_movement", PART_BACK),
    _play(IS_FINISHED, "after bank.refund", PART_BACK),
    _play(IS_FINISHED, "after movements.record_movements", PART_BACK),
    _play(RENEWS, "before charging.begin_renewals", plan=_JOINS),
    _play(RENEWS, "after charging.begin_renewals", plan=_JOINS),
    _play(RENEWS, "before bank.charge_stored", plan=_JOINS),
    _play(RENEWS, "after bank.charge_stored", plan=_JOINS),
    _play(RENEWS, "before payments.record_approvals", plan=_JOINS),
    _play(RENEWS, "after payments.record_approvals", plan=_JOINS),
    # Not beside the other: whose recording is held up might claim this one each time.
    _play(IS_TOLD, "after pingbacks.record"),
)
"""What is done in the background: a process of `paydesk work` stops."""

NOTIFIED = {
    "stripe": (
        _play(IS_NOTIFIED, "before hurrying.hurry_noticed", plan=GOES_AWAY),
        _play(IS_NOTIFIED, "after hurrying.hurry_noticed", plan=GOES_AWAY),
    ),
    "mollie": (
        _play(IS_NOTIFIED, "before hurrying.hurry_named", plan=GOES_AWAY),
        _play(IS_NOTIFIED, "after hurrying.hurry_named", plan=GOES_AWAY),
    ),
}
"""A notification arrives, signed at Stripe, and by its address at Mollie: `serve` stops."""

HELD = (
    _play(PAYS, "after bank.open_page", SHIPPED),
    _play(PAYS, "after bank.find_page", SHIPPED),
    _play(PAYS, "after payments.record_approvals", SHIPPED),
    _play(SHIPS, "before deliveries.record_delivery", SHIPPED),
    _play(SHIPS, "after deliveries.record_delivery", SHIPPED),
    _play(SHIPS, "before bank.capture", SHIPPED),
    _play(SHIPS, "after bank.capture", SHIPPED),
    _play(SHIPS, "after movements.record_movements", SHIPPED),
    _play(GIVES_BACK, "before movements.begin_void", CANCELLED),
    _play(GIVES_BACK, "after movements.begin_void", CANCELLED),
    _play(GIVES_BACK, "before bank.void", CANCELLED),
    _play(GIVES_BACK, "after bank.void", CANCELLED),
    _play(GIVES_BACK, "after movements.record_movements", CANCELLED),
)
"""Money that is only held: `serve` stops."""

UNDECIDED = tuple(
    replace(one, order=replace(one.order, name=f"{one.order.name}-undecided"))
    for one in (
        _play(SHIPS, "before bank.capture", SHIPPED),
        _play(GIVES_BACK, "before bank.void", CANCELLED),
        _play(GIVES_BACK, "after bank.void", CANCELLED),
    )
)
"""The same at Mollie, where it decides both some time after it was asked."""

HELD_LATER = (
    _play(IS_FORGOTTEN, "before bank.void", FORGOTTEN),
    _play(IS_FORGOTTEN, "after bank.void", FORGOTTEN),
    _play(IS_FORGOTTEN, "after movements.record_movements", FORGOTTEN),
)
"""Money that nobody took in time: `work` stops."""


def plays_of(live: str) -> tuple[tuple[Play, ...], tuple[Play, ...]]:
    """The plays at a live acquirer: before the workers are at work, and beside them."""
    return OF_THE_PAGE + OF_MOVEMENTS + NOTIFIED[live] + HELD, OF_THE_WORKERS + HELD_LATER


@asynccontextmanager
async def unending_pages(stage: Stage) -> AsyncIterator[None]:
    """No page can be ended for the length of a block, and what goes back arrives at once.

    At Stripe their customers are with their banks; at Mollie it is always so, but there refunds are
    on their way for days.
    """
    assert stage.live is not None
    is_stripe = stage.live.name == "stripe"
    within: dict[str, Any] = {"busy": True} if is_stripe else {"refund_status": "refunded"}
    without: dict[str, Any] = {"busy": False} if is_stripe else {"refund_status": "pending"}
    await stage.live.do("set", **within)
    yield
    await stage.live.do("set", **without)
