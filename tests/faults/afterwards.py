"""The plays of what comes after a payment: customers' banks dispute it, members change cards,
shops are paid out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from functools import partial

import aiohttp
import asyncpg
from tests.faults.customers import ANOTHER, APPROVED, AT_THE_BANKS, LOST_ANSWER, SECURE, Plan
from tests.faults.plays import Deed, Play, have_paid, play
from tests.faults.settling import KEYS_ARE_VOID, hereafter
from tests.faults.stage import Order, Stage

from paydesk.adapters.acquirers.simulator import Bank, Record
from paydesk.core.clock import utc_now
from paydesk.database.pool import AWAY, connected
from paydesk.domain.ledger.settling import settle_due
from paydesk.domain.merchants.customer_links import Link, LinkTo
from paydesk.domain.merchants.shop import Shop
from paydesk.equipment import vault_of

SENT = "0.50"
"""What a merchant is sent of each order that is paid out."""
_PAUSE = 0.05
_ROUNDS = 8
_HOLDER = {"expiry": "12 / 39", "cvc": "123", "holder": "Ada Lovelace"}

_LEASE_IS_OVER = "update dispute_reading set leased_until = null where $1 <> ''"
"""Whoever stands still holds the lease for as long; it runs out in the database's own time."""

_tasks: set[asyncio.Task[bool]] = set()


async def ask(stage: Stage, statement: str, order: Order) -> object:
    """One value from the database, by the name of an order."""
    connection = await asyncpg.connect(stage.settings.database_url)
    try:
        return await connection.fetchval(statement, order.name)
    finally:
        await connection.close()


async def _at_the_bank(stage: Stage, order: Order, *, won: bool | None = None) -> None:
    """The customer's bank disputes the order's purchase, or decides on that;
    asked again it changes nothing.
    """
    key = await ask(
        stage,
        "select a.idempotency_key from payment p join payment_attempt a"
        " on a.merchant_id = p.merchant_id and a.id = p.attempt_id where p.merchant_order_id = $1",
        order,
    )
    record = Record(stage.record)
    reference = next((line.reference for line in record.of_purchase(str(key)) if line.kind == "dispute"), None)
    bank = Bank(record)
    if won is None or reference is None:
        bank.open_dispute(str(key), "fraudulent")
    else:
        bank.close_dispute(reference, won)
    record.close()
    await ask(stage, _LEASE_IS_OVER, order)


async def _have_been_disputed(stage: Stage, order: Order) -> None:
    """The dispute is in the books, as open."""
    await have_paid(stage, order)
    known = (
        "select count(*) from chargeback c join payment p on p.merchant_id = c.merchant_id and p.id = c.payment_id"
        " where p.merchant_order_id = $1"
    )
    while not await ask(stage, known, order):
        await _at_the_bank(stage, order)
        await asyncio.sleep(_PAUSE)


async def change_card(stage: Stage, order: Order) -> bool:
    """The member goes on with another card, as far as it goes;
    whether the portal says that it is charged now.
    """
    portal, wanted = await _portal(stage, order), order.plan.cards[-1]
    number = ANOTHER if wanted == AT_THE_BANKS else wanted
    try:
        if await _shows(stage, portal, number):
            return True
        if wanted == AT_THE_BANKS:
            url = await _post(stage, f"{portal}/card/continue", {})
        else:
            url = await _post(stage, f"{portal}/card", {**_HOLDER, "number": number})
        if "/simulator/pay/" in url:
            url = await _post(stage, url, {"way": "card", "number": number})
        if "/simulator/challenge/" in url:
            url = await _post(stage, url, {"decision": "approve"})
        await _shows(stage, url, number)
        return await _shows(stage, portal, number)
    except (aiohttp.ClientError, OSError, TimeoutError):
        return False


async def _portal(stage: Stage, order: Order) -> str:
    """The address of the member's portal."""
    connection = await asyncpg.connect(stage.settings.database_url)
    try:
        row = await connection.fetchrow(
            "select merchant_id, live, id, portal_seed from subscription where init_merchant_order_id = $1", order.name
        )
    finally:
        await connection.close()
    assert row is not None, order.name
    link = Link(LinkTo.PORTAL, Shop(row["merchant_id"], row["live"]), row["id"], row["portal_seed"])
    return f"{stage.settings.address}/portal/{link.token(vault_of(stage.settings))}"


async def _post(stage: Stage, url: str, fields: dict[str, str]) -> str:
    """Send a form; where it leads to, else the same address."""
    async with stage.browser.post(url, data=fields, allow_redirects=False) as answer:
        return answer.headers.get("Location", url)


async def _shows(stage: Stage, url: str, number: str) -> bool:
    """Whether the card that a page shows is this one."""
    async with stage.browser.get(url) as answer:
        return answer.status == 200 and f"•••• {number[-4:]}" in await answer.text()


async def _change(stage: Stage, order: Order) -> None:
    await change_card(stage, order)


async def _have_lost_a_check(stage: Stage, order: Order) -> None:
    """The bank has checked the new card, but its answer was lost, and nobody has asked
    for it yet.
    """
    await have_paid(stage, order)
    begun = (
        "update card_change c set lookup_at = now() + interval '1 day' from subscription s where s.id ="
        " c.subscription_id and s.init_merchant_order_id = $1 and c.state = 'processing' returning c.id"
    )
    while not await ask(stage, begun, order):
        await change_card(stage, order)


async def _look_up_change(stage: Stage, order: Order) -> None:
    await ask(
        stage,
        "update card_change c set lookup_at = now() - interval '1 hour' from subscription s where s.id ="
        " c.subscription_id and s.init_merchant_order_id = $1 and c.state = 'processing' and lookup_at > now()",
        order,
    )


async def _have_settled(stage: Stage, order: Order) -> None:
    """What the merchant gets for the order is available."""
    await have_paid(stage, order)
    await ask(
        stage, "update payment set funds_due_at = now(), funds_look_at = now() where merchant_order_id = $1", order
    )
    async with connected(stage.settings.database_url, most=1) as database:
        await settle_due(database, real_now=utc_now())


async def pay_out(stage: Stage, order: Order) -> bool:
    """Record by command that the merchant was sent money, under the order's name;
    whether the command says so.
    """
    merchant_id = await ask(stage, "select merchant_id from payment where merchant_order_id = $1", order)
    words = ("payout", "record", str(merchant_id), SENT, "USD", "--reference", order.name)
    return await stage.clerk.command(*words) == 0


async def _pay_out(stage: Stage, order: Order) -> None:
    await pay_out(stage, order)


async def _pay_out_too(stage: Stage, order: Order) -> None:
    await beside(stage, order, pay_out(stage, order))


async def beside(stage: Stage, order: Order, same: Coroutine[object, None, bool]) -> None:
    """Another clerk does the same, or waits for the one who stands there with the row in hand."""
    waiting = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and $1 <> ''"
    doing = asyncio.create_task(same)
    while not doing.done() and not await ask(stage, waiting, order):  # noqa: ASYNC110
        await asyncio.sleep(_PAUSE)
    _tasks.add(doing)
    doing.add_done_callback(_tasks.discard)


async def settle_afterwards(stage: Stage, plays: tuple[Play, ...]) -> None:
    """Let time pass until all that can end has ended:
    members come back, and clerks make sure that it is written down.

    The bank and the web service run; the workers do not.
    """
    async with hereafter(stage.settings) as later:
        for _ in range(_ROUNDS):
            await later.ask_the_bank(KEYS_ARE_VOID)
            await later.read_on(KEYS_ARE_VOID)
            if all([await _is_done(stage, one) for one in plays]):
                break
        await later.resend()


async def _is_done(stage: Stage, one: Play) -> bool:
    """Whether the one who waits for a play's end has seen it."""
    try:
        if one.deed in (CHANGES, CHANGE_IS_FOUND):
            return await change_card(stage, one.order)
        return one.deed is not IS_PAID_OUT or await pay_out(stage, one.order)
    except AWAY:
        return False


IS_DISPUTED = Deed("is disputed", _at_the_bank, have_paid)
IS_WON = Deed("is won", partial(_at_the_bank, won=True), _have_been_disputed)
IS_LOST = Deed("is lost", partial(_at_the_bank, won=False), _have_been_disputed)
CHANGES = Deed("changes", _change, have_paid)
CHANGE_IS_FOUND = Deed("is found", _look_up_change, _have_lost_a_check)
IS_PAID_OUT = Deed("is paid out", _pay_out, _have_settled, too=_pay_out_too)

JOINS = Plan((APPROVED,), joins=True)
NEW_CARD = Plan((APPROVED, ANOTHER), joins=True)
SECURE_CARD = Plan((APPROVED, SECURE), joins=True)
CARD_KEPT_THERE = Plan((APPROVED, AT_THE_BANKS), joins=True)
LOST_CARD = Plan((APPROVED, LOST_ANSWER), joins=True)

CHANGES_AT_THE_DOOR = (
    play(CHANGES, "before replacing_cards.begin_card_change", plan=NEW_CARD),
    play(CHANGES, "after replacing_cards.begin_card_change", plan=NEW_CARD),
    play(CHANGES, "after bank.authorize", plan=NEW_CARD),
    play(CHANGES, "before replacing_cards.replace_card", plan=NEW_CARD),
    play(CHANGES, "after replacing_cards.replace_card", plan=NEW_CARD),
    play(CHANGES, "after replacing_cards.challenge_card_change", plan=SECURE_CARD),
    play(CHANGES, "after bank.find", plan=SECURE_CARD),
    play(CHANGES, "after replacing_cards.replace_card", plan=SECURE_CARD),
    play(CHANGES, "after replacing_cards.begin_change_page", plan=CARD_KEPT_THERE),
    play(CHANGES, "before bank.open_page", plan=CARD_KEPT_THERE),
    play(CHANGES, "after bank.open_page", plan=CARD_KEPT_THERE),
    play(CHANGES, "after replacing_cards.challenge_card_change", plan=CARD_KEPT_THERE),
    play(CHANGES, "before hurrying.hurry_change", plan=CARD_KEPT_THERE),
    play(CHANGES, "after bank.find_page", plan=CARD_KEPT_THERE),
    play(CHANGES, "after replacing_cards.name_new_instrument", plan=CARD_KEPT_THERE),
    play(CHANGES, "after replacing_cards.replace_card", plan=CARD_KEPT_THERE),
)
"""What a member waits for: a process of `paydesk serve` stops."""

OF_OPENED = (
    play(IS_DISPUTED, "before chargebacks.hold"),
    play(IS_DISPUTED, "before chargebacks.end_reading"),
    play(IS_DISPUTED, "before chargebacks.subscription_ended", plan=JOINS),
    play(IS_DISPUTED, "after chargebacks.subscription_ended", plan=JOINS),
)
"""What is read of disputes: a process of `paydesk work` stops,
so at each time no more than there are."""

OF_DECIDED = (
    play(IS_WON, "before chargebacks.hold"),
    play(IS_LOST, "before chargebacks.hold"),
    play(CHANGE_IS_FOUND, "before bank.find", plan=LOST_CARD),
    play(CHANGE_IS_FOUND, "after bank.find", plan=LOST_CARD),
    play(CHANGE_IS_FOUND, "after replacing_cards.replace_card", plan=LOST_CARD),
)
"""What is read of their ends, and found out of card changes:
again a process of `paydesk work` stops."""

UNDER_A_LEASE = (
    play(IS_DISPUTED, "before chargebacks.book"),
    play(IS_DISPUTED, "after chargebacks.book"),
    play(IS_DISPUTED, "before chargebacks.move_on"),
    play(IS_DISPUTED, "after chargebacks.move_on"),
    play(IS_WON, "before chargebacks.book"),
    play(IS_WON, "after chargebacks.book"),
    play(IS_LOST, "before chargebacks.book"),
    play(IS_LOST, "after chargebacks.book"),
)
"""What is written of disputes: such a process holds the lease's row, for which others wait in line,
so one at a time stops there, and nobody does it instead."""

BY_COMMAND = (
    play(IS_PAID_OUT, "before merchants.hold_merchants"),
    play(IS_PAID_OUT, "before balances.record_payout"),
    play(IS_PAID_OUT, "after balances.record_payout"),
    play(IS_PAID_OUT, "after operations.pay_out"),
)
"""What an operator's clerk writes down: the process of the command stops."""
