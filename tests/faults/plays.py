"""The plays: somebody comes to a named point and stops there; then a process dies, or the database,
or time passes.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from functools import partial

import asyncpg
import pytest
from tests.faults.customers import APPROVED, AT_THE_BANKS, DECLINED, LEFT_THERE, LOST_ANSWER, SECURE, Plan
from tests.faults.fail_points import Stop
from tests.faults.keeping import PART, Wish
from tests.faults.settling import KEYS_ARE_VOID, hereafter
from tests.faults.stage import Order, Stage
from tests.faults.supervising import answering, kill, supervised
from tests.lengths import at_length, long

from paydesk.core.clock import utc_now
from paydesk.database.pool import AWAY
from paydesk.domain.payments.stored_cards import CARD_NUMBER
from paydesk.equipment import vault_of
from paydesk_client.calls import ApiError

_PAUSE = 0.05
_THREADS = ThreadPoolExecutor(max_workers=64, thread_name_prefix="merchant")


class Fate(StrEnum):
    """What happens while a process stands at its point."""

    DIES = "the process is killed"
    LOSES_THE_DATABASE = "PostgreSQL is killed, and the process goes on"
    IS_TOO_LATE = "others do what it should have done, and the process goes on"


EACH_FATE = [
    pytest.param([*Fate], id="one each"),
    *(pytest.param([fate], id=fate.name.lower(), marks=long) for fate in Fate),
]
"""In the short form there are fewer plays, and each has one fate of the three; else every one."""

Do = Callable[[Stage, Order], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Deed:
    """What brings a process to the point, and what must have been done before;
    the first may be done again.

    `too` is what somebody else does while the process stands there, if that is not what workers do
    by themselves.
    """

    name: str
    do: Do
    before: Do | None = None
    too: Do | None = None


@dataclass(frozen=True, slots=True)
class Play:
    """Somebody does a deed with an order, and stops at a point."""

    at: str
    deed: Deed
    order: Order


def played(plays: tuple[Play, ...]) -> tuple[Play, ...]:
    """Those of some plays that there is time for: in the short form every fourteenth."""
    return at_length(plays, plays[::14])


def shared_out(plays: Sequence[Play], fates: Sequence[Fate]) -> list[tuple[Sequence[Play], Fate]]:
    """Which plays have which fate, where each has one: all the same one if there is no other."""
    return [(plays[number :: len(fates)], fate) for number, fate in enumerate(fates) if plays[number :: len(fates)]]


async def perform(stage: Stage, plays: Sequence[Play], fate: Fate) -> None:
    """Bring each order to its point, one after the other, and let the fate come;
    afterwards nothing stands still.
    """
    for play in plays:
        stage.expect(play.order)
        if play.deed.before:
            await play.deed.before(stage, play.order)
    held: list[Stop] = []
    async with supervised(stage.postgres), asyncio.TaskGroup() as doing:
        for play in plays:
            stop = await _stopped(stage, play, doing, leave=fate is Fate.DIES)
            stop.kill() if fate is Fate.DIES else held.append(stop)
        if fate is Fate.LOSES_THE_DATABASE:
            began = utc_now()
            kill(stage.postgres)
            await answering(stage.postgres)
        if fate is Fate.IS_TOO_LATE:
            async with hereafter(stage.settings) as others:
                await others.ask_the_bank(KEYS_ARE_VOID)
                await others.finish_movements(KEYS_ARE_VOID)
                await others.read_on(KEYS_ARE_VOID)
                await others.resend()
            for play in plays:
                if play.deed.too:
                    await play.deed.too(stage, play.order)
        for stop in held:
            stop.go_on()
    if fate is Fate.LOSES_THE_DATABASE:
        stage.outages.append((began, utc_now()))


async def _stopped(stage: Stage, play: Play, doing: asyncio.TaskGroup, *, leave: bool) -> Stop:
    """Do the deed until somebody has stopped at the point;
    with `leave` nobody waits for what comes of it.
    """
    reached = asyncio.Event()

    async def insist() -> None:
        while not reached.is_set():
            with suppress(ApiError, asyncpg.PostgresError, *AWAY):
                await play.deed.do(stage, play.order)
            with suppress(TimeoutError):
                await asyncio.wait_for(reached.wait(), _PAUSE)

    stage.points.arm(play.at)
    task = doing.create_task(insist())
    stop = await stage.points.stopped(play.at)
    reached.set()
    if leave:
        task.cancel()
    return stop


async def pay(stage: Stage, order: Order) -> None:
    """The customer of an order goes on with it as far as it goes."""
    customer = next(one for one in stage.crowd.customers if one.order == order.name)
    await customer.visit()


async def have_paid(stage: Stage, order: Order) -> None:
    """The customer has seen that the order is paid."""
    customer = next(one for one in stage.crowd.customers if one.order == order.name)
    while not customer.is_paid:
        await customer.visit()


async def _give_back(stage: Stage, order: Order) -> None:
    """Ask once, under the key under which the staff will ask again."""
    payments = stage.staff.tasks[order.name].gateway.payments()
    amount = PART if order.wish is Wish.GIVE_BACK_A_PART else None
    number = await value_of(stage, "select id from payment where merchant_order_id = $1", order)
    await _call(partial(payments.refund, number, amount, idempotency_key=f"{order.name}-0-0"))


async def _ship(stage: Stage, order: Order) -> None:
    deliveries = stage.staff.tasks[order.name].gateway.deliveries()
    number = await value_of(stage, "select id from payment where merchant_order_id = $1", order)
    parcel = f"parcel-{order.name}"
    await _call(partial(deliveries.confirm, number, "order_shipped", carrier_type="DHL", carrier_tracking_id=parcel))


_SAVE = """
with paid as (
    select a.merchant_id, a.live, a.id, a.card_id, a.acquirer
      from payment p
      join payment_attempt a on a.merchant_id = p.merchant_id and a.id = p.attempt_id
     where p.merchant_order_id = $1
), seen as (
    update payment_attempt a set challenge_url = 'seen by their bank' from paid where a.id = paid.id
), sealed as (
    update card c set number_sealed = $2, vault_key_id = $3 from paid where c.id = paid.card_id
), known as (
    insert into shopper (merchant_id, live, email, proved_at)
    select merchant_id, live, $1 || '@people.example', now() from paid
 returning id
)
insert into saved_instrument (merchant_id, live, shopper_id, card_id, attempt_id, acquirer, charge_wording,
                              charge_agreed_at, charge_limit, charge_currency, created_at, used_at)
select paid.merchant_id, paid.live, known.id, paid.card_id, paid.id, paid.acquirer, 'agreed', now(), 1000000, 'USD',
       now(), now()
  from paid cross join known
returning id
"""


async def have_saved_there(stage: Stage, order: Order) -> None:
    """The bank keeps what a customer joined with on its page, and they may be charged without them
    by that.
    """
    first = Order(f"{order.name}-first", _JOINS_THERE)
    stage.expect(first)
    await have_paid(stage, first)
    await value_of(stage, _SAVE, first, None, "")


async def _have_saved(stage: Stage, order: Order) -> None:
    """A customer has saved the card of an order before, and may be charged without them."""
    first = Order(f"{order.name}-first", Plan((APPROVED,)))
    stage.expect(first)
    await have_paid(stage, first)
    card = (
        "select a.card_id from payment p join payment_attempt a on a.id = p.attempt_id where p.merchant_order_id = $1"
    )
    merchant = await value_of(stage, "select merchant_id from payment where merchant_order_id = $1", first)
    bound = {"merchant_id": merchant, "row_id": await value_of(stage, card, first)}
    sealed = vault_of(stage.settings).seal(APPROVED.encode(), purpose=CARD_NUMBER, **bound)
    await value_of(stage, _SAVE, first, sealed.blob, sealed.key_id)


async def charge(stage: Stage, order: Order) -> None:
    """The shop charges the order to the saved card; its customer finds that it is paid."""
    task = stage.staff.tasks[order.name]
    saved = (
        "select s.id from saved_instrument s join payment p on p.attempt_id = s.attempt_id"
        " where p.merchant_order_id = $1 || '-first'"
    )
    number = await value_of(stage, saved, order)
    call = partial(task.gateway.payments().charge, number, order.name, task.price, "USD", "Later")
    await _call(partial(call, idempotency_key=f"{order.name}-charge"))


async def _call(call: Callable[[], object]) -> None:
    """Make a merchant's call in a thread; any number of them may stand still."""
    await asyncio.get_running_loop().run_in_executor(_THREADS, call)


_OF_ORDER = "(select id from payment where merchant_order_id = $1)"
_LATER = (
    "update {} set lookup_at = now() + $2::interval"
    f" where payment_id = {_OF_ORDER} and state = 'processing' and lookup_at > now()"
)
_LOOK_UP_ATTEMPT, _LOOK_UP_MOVEMENT = _LATER.format("payment_attempt"), _LATER.format("movement")
_FORGET = (
    "update payment set ship_by = now() + $2, shipping_due_at = now() + $2"
    " where merchant_order_id = $1 and state = 'authorized' and moving_id is null and shipping_due_at > now()"
)
_LONG_AGO, _NOT_YET = timedelta(hours=-1), timedelta(days=1)


async def value_of(stage: Stage, statement: str, order: Order, *values: object) -> int:
    """A number of the database, by the name of an order; 0 if there is none."""
    connection = await asyncpg.connect(stage.settings.database_url)
    try:
        return await connection.fetchval(statement, order.name, *values) or 0
    finally:
        await connection.close()


async def _have_lost_the_answer(stage: Stage, order: Order) -> None:
    """The customer has paid, but the bank's answer was lost, and nobody has asked for it yet."""
    paying = asyncio.create_task(pay(stage, order))
    while not await value_of(stage, f"select count(*) from payment_attempt where payment_id = {_OF_ORDER}", order):  # noqa: ASYNC110
        await asyncio.sleep(_PAUSE)
    paying.cancel()
    await asyncio.gather(paying, return_exceptions=True)
    await postpone_look(stage, order)


async def postpone_look(stage: Stage, order: Order) -> None:
    """Nobody looks for a while what became of an attempt."""
    await value_of(stage, _LOOK_UP_ATTEMPT, order, _NOT_YET)


async def _have_asked(stage: Stage, order: Order) -> None:
    """The refund is begun, and whoever began it died before the bank heard of it."""
    await have_paid(stage, order)
    stage.points.arm("after movements.begin_refund")
    asking = asyncio.create_task(_give_back(stage, order))
    (await stage.points.stopped("after movements.begin_refund")).kill()
    await asyncio.gather(asking, return_exceptions=True)
    await value_of(stage, _LOOK_UP_MOVEMENT, order, _NOT_YET)


async def look_up(stage: Stage, order: Order) -> None:
    """Somebody is to look now what became of an attempt."""
    await value_of(stage, _LOOK_UP_ATTEMPT, order, _LONG_AGO)


async def _finish(stage: Stage, order: Order) -> None:
    await value_of(stage, _LOOK_UP_MOVEMENT, order, _LONG_AGO)


async def _forget(stage: Stage, order: Order) -> None:
    await value_of(stage, _FORGET, order, _LONG_AGO)


PAYS = Deed("pays", pay)
GIVES_BACK = Deed("gives back", _give_back, have_paid)
SHIPS = Deed("ships", _ship, have_paid)
IS_LOOKED_UP = Deed("is looked up", look_up, _have_lost_the_answer)
IS_FINISHED = Deed("is finished", _finish, _have_asked)
IS_FORGOTTEN = Deed("is forgotten", _forget, have_paid)
IS_TOLD = Deed("is told", pay)
CHARGES = Deed("charges", charge, _have_saved)

KEPT = ("socks", Wish.KEEP)
PART_BACK = ("socks", Wish.GIVE_BACK_A_PART)
SHIPPED = ("mugs", Wish.SHIP)
CANCELLED = ("mugs", Wish.CANCEL)
FORGOTTEN = ("mugs", Wish.FORGET)


def play(deed: Deed, at: str, goods: tuple[str, Wish] = KEPT, plan: Plan = Plan((APPROVED,))) -> Play:  # noqa: B008
    """A play whose order is named after it."""
    shop, wish = goods
    cards = " ".join(card[-4:] for card in plan.cards)
    named = re.sub(r"[^a-z0-9]+", "-", f"{deed.name} {cards} {at}")
    return Play(at, deed, Order(f"{shop}-{named}", plan, wish, shop))


_THEN_ANOTHER = Plan((DECLINED, APPROVED))
_AT_THE_BANKS = Plan((AT_THE_BANKS,))
_JOINS_THERE = Plan((AT_THE_BANKS,), joins=True)
_CHANGES_MIND = Plan((LEFT_THERE, APPROVED))
_WITH_BANK = Plan((SECURE,), ("approve",))

OF_THE_WEB = (
    play(PAYS, "after payments.open_checkout"),
    play(PAYS, "before payments.begin_attempt"),
    play(PAYS, "after payments.begin_attempt"),
    play(PAYS, "after bank.authorize"),
    play(PAYS, "after payments.record_approvals"),
    play(PAYS, "after bank.authorize", plan=_THEN_ANOTHER),
    play(PAYS, "after payments.record_declines", plan=_THEN_ANOTHER),
    play(PAYS, "after bank.authorize", plan=_WITH_BANK),
    play(PAYS, "after payments.record_challenge", plan=_WITH_BANK),
    play(PAYS, "after bank.find", plan=_WITH_BANK),
    play(PAYS, "after payments.record_approvals", plan=_WITH_BANK),
    play(PAYS, "before hosting.begin_page", plan=_AT_THE_BANKS),
    play(PAYS, "after hosting.begin_page", plan=_AT_THE_BANKS),
    play(PAYS, "before bank.open_page", plan=_AT_THE_BANKS),
    play(PAYS, "after bank.open_page", plan=_AT_THE_BANKS),
    play(PAYS, "after payments.record_challenge", plan=_AT_THE_BANKS),
    play(PAYS, "after bank.find_page", plan=_AT_THE_BANKS),
    play(PAYS, "after hosting.name_instruments", plan=_AT_THE_BANKS),
    play(PAYS, "after payments.record_approvals", plan=_AT_THE_BANKS),
    play(PAYS, "before hosting.name_instruments", plan=_JOINS_THERE),
    play(PAYS, "before payments.record_approvals", plan=_JOINS_THERE),
    play(PAYS, "before bank.end_page", plan=_CHANGES_MIND),
    play(PAYS, "after bank.end_page", plan=_CHANGES_MIND),
    play(PAYS, "after payments.record_declines", plan=_CHANGES_MIND),
    play(CHARGES, "before charging_saved.begin_charge"),
    play(CHARGES, "after charging_saved.begin_charge"),
    play(CHARGES, "before bank.charge_stored"),
    play(CHARGES, "after bank.charge_stored"),
    play(CHARGES, "after payments.record_approvals"),
    play(CHARGES, "after idempotent_calls.keep_answer"),
    play(GIVES_BACK, "before movements.begin_refund", PART_BACK),
    play(GIVES_BACK, "after movements.begin_refund", PART_BACK),
    play(GIVES_BACK, "after bank.refund", PART_BACK),
    play(GIVES_BACK, "after movements.record_movements", PART_BACK),
    play(GIVES_BACK, "after idempotent_calls.keep_answer", PART_BACK),
    play(SHIPS, "before deliveries.record_delivery", SHIPPED),
    play(SHIPS, "after deliveries.record_delivery", SHIPPED),
    play(SHIPS, "after bank.capture", SHIPPED),
    play(SHIPS, "after movements.record_movements", SHIPPED),
    play(GIVES_BACK, "before movements.begin_void", CANCELLED),
    play(GIVES_BACK, "after movements.begin_void", CANCELLED),
    play(GIVES_BACK, "after bank.void", CANCELLED),
    play(GIVES_BACK, "after movements.record_movements", CANCELLED),
)
"""What a customer or a merchant's server waits for: a process of `paydesk serve` stops."""

OF_THE_WORKERS = (
    play(IS_TOLD, "before merchant.post"),
    play(IS_TOLD, "after merchant.post"),
    play(IS_TOLD, "before pingbacks.record"),
    play(IS_LOOKED_UP, "before bank.find", plan=Plan((LOST_ANSWER,))),
    play(IS_LOOKED_UP, "after bank.find", plan=Plan((LOST_ANSWER,))),
    play(IS_LOOKED_UP, "after payments.record_approvals", plan=Plan((LOST_ANSWER,))),
    play(IS_FINISHED, "before bank.find_movement", PART_BACK),
    play(IS_FINISHED, "after bank.find_movement", PART_BACK),
    play(IS_FINISHED, "after bank.refund", PART_BACK),
    play(IS_FINISHED, "after movements.record_movements", PART_BACK),
    play(IS_FORGOTTEN, "before bank.void", FORGOTTEN),
    play(IS_FORGOTTEN, "after bank.void", FORGOTTEN),
    play(IS_FORGOTTEN, "after movements.record_movements", FORGOTTEN),
    # Not beside the other: whose recording is held up might claim this one each time.
    play(IS_TOLD, "after pingbacks.record"),
)
"""What is done in the background: a process of `paydesk work` stops."""
